"""A stream of the stand-ins, to be asked."""

import time
from datetime import datetime, timedelta

from tests.unit.simulate.kinesis import Kinesis


class Stream(Kinesis):
    """A stream on a server whose clock runs by itself."""

    def make(self, shards: int) -> None:
        self.create(shards)
        self.settle()

    def settle(self) -> None:
        """Waits until it is ACTIVE."""
        for _ in range(200):
            summary = self.client.describe_stream_summary(StreamName=self.name)
            if summary["StreamDescriptionSummary"]["StreamStatus"] == "ACTIVE":
                return
            time.sleep(0.02)
        raise AssertionError("the stream does not become ACTIVE")

    pause_seconds = 0.02
    shard_time_seconds = 0.02  # how far apart shards must be opened for the filters to tell

    def moment(self) -> datetime:
        """An instant after all that was put and before all that comes. Puts a record itself."""
        time.sleep(self.pause_seconds)
        ack = self.client.put_record(StreamName=self.name, Data=b"0", PartitionKey="moment")
        iterator = self.iterator(
            "AT_SEQUENCE_NUMBER", ack["ShardId"], StartingSequenceNumber=ack["SequenceNumber"]
        )
        at = self.get(iterator, limit=1)["Records"][0]["ApproximateArrivalTimestamp"]
        time.sleep(self.pause_seconds)
        return at + timedelta(milliseconds=10)

    def reshard(self) -> tuple[datetime, datetime, datetime]:
        """Splits 0 of two shards into 2 and 3 and merges these into 4; a moment in each epoch."""
        self.make(2)
        self.put(40)
        before = self.moment()
        self.split(0)
        self.settle()
        self.put(40)
        between = self.moment()
        self.merge(2, 3)
        self.settle()
        self.put(40)
        return before, between, self.moment()
