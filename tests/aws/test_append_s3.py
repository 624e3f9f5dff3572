"""Files that a backfill adds to a Parquet sink on S3, whose run is killed between two of them."""

import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shardaudit.adapters.aws.s3 import s3_client
from shardaudit.model.config.parts import Aws
from shardaudit.model.config.settings import Settings
from shardaudit.simulate.s3proxy import REGION, s3_proxy
from tests.aws.sink_writers import DAYS, JOB_ID, SPARK, SinkWriter, message_ids
from tests.slow_s3 import SlowS3, slow_s3

pytestmark = pytest.mark.aws

SINK = "s3a://lake/files"
WANTED = message_ids("lost", times=1)


@dataclass
class Lake:
    """A bucket, which is a folder of this machine, and the network before it."""

    folder: Path
    network: SlowS3
    settings: Settings

    def put(self, day: str, message_id: str) -> None:
        """A file of the sink, as its consumer writes it."""
        file = io.BytesIO()
        pq.write_table(pa.table({"message_id": [message_id]}), file)
        client = s3_client(self.settings.aws)
        key = f"files/day={day}/part-0.parquet"
        client.put_object(Bucket="lake", Key=key, Body=file.getvalue())
        client.close()

    @property
    def files(self) -> list[Path]:
        """What a reader of the sink reads."""
        found = (self.folder / "files").rglob("*.parquet")
        return [file for file in found if "_shardaudit" not in file.parts]

    def landed(self) -> Counter[tuple[str, object]]:
        """How often each message is there, and in which folder."""
        return Counter(
            (file.parent.name, one)
            for file in self.files
            for one in pq.ParquetFile(file).read()["message_id"].to_pylist()
        )


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    folder = tmp_path / "s3" / "lake"
    folder.mkdir(parents=True)
    with s3_proxy(folder.parent) as endpoint, slow_s3(endpoint.url) as (network, url):
        for name, value in endpoint.environment().items():
            monkeypatch.setenv(name, value)
        settings = Settings(
            warehouse="s3a://lake/shardaudit",
            aws=Aws(region=REGION, endpoints={"s3": url}),
            spark=SPARK,
            streams={},
        )
        yield Lake(folder, network, settings)


def test_each_message_is_there_once_when_a_run_was_killed_between_two_files(lake: Lake) -> None:
    lake.put(DAYS[1], "old")
    old = lake.landed()
    wanted = Counter({(f"day={day}", one): 1 for day, one in zip(DAYS, WANTED, strict=True)})
    moved: list[str] = []
    with SinkWriter(lake.settings) as first:

        def dies_at_the_second(path: str) -> None:
            if f"/shardaudit-{JOB_ID}-" in path:
                moved.append(path)
                if len(moved) == 2:
                    first.kill()

        lake.network.before = dies_at_the_second
        assert first.answer() == "ready"
        first.tell("add", SINK, "lost", times=1)
        assert first.answer() == ""
    there = lake.landed() - old
    assert Counter() < there < wanted
    lake.network.before = lambda _: None
    with SinkWriter(lake.settings) as second:
        assert second.answer() == "ready"
        for _ in range(2):
            second.tell("add", SINK, "lost", times=1)
            assert second.answer() == "done"
    assert lake.landed() == old + wanted
    added = [file.name for file in lake.files if file.name != "part-0.parquet"]
    assert {name.startswith(f"shardaudit-{JOB_ID}-") for name in added} == {True}
    assert not list((lake.folder / "files").rglob("_shardaudit/**/*.parquet"))
