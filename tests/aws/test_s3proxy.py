"""The embedded S3, and a simulation on it."""

import gzip
import tempfile
from collections.abc import Iterator
from pathlib import Path

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError
from deltalake import DeltaTable

from shardaudit.model.config.settings import load_settings
from shardaudit.model.errors import FinalError
from shardaudit.simulate.job import Endpoints, simulate_stream
from shardaudit.simulate.output import BUCKET, SimulatedSink, simulation_bucket
from shardaudit.simulate.s3proxy import S3Credentials, S3Endpoint, s3_proxy
from tests.scenarios import scenario
from tests.unit.simulate.kinesis import START

pytestmark = pytest.mark.aws


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Endpoint]:
    with s3_proxy(tmp_path_factory.mktemp("s3")) as endpoint:
        yield endpoint


def test_the_endpoint_is_on_loopback_and_keeps_its_credentials_to_itself(s3: S3Endpoint) -> None:
    assert s3.url.startswith("http://127.0.0.1:")
    assert s3.credentials.secret_key not in repr(s3)


def test_wrong_credentials_are_refused(s3: S3Endpoint) -> None:
    client = simulation_bucket(s3)
    assert BUCKET in [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]
    client.close()
    stranger = boto3.client(
        "s3",
        endpoint_url=s3.url,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    with pytest.raises(ClientError, match="Forbidden"):
        stranger.list_buckets()
    stranger.close()


def test_it_keeps_no_log_of_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with s3_proxy(tmp_path / "s3") as endpoint:
        simulation_bucket(endpoint).close()
        [log] = tmp_path.glob("shardaudit-s3proxy-*/log")
        assert log.stat().st_size < 2000


def test_a_sink_grows_by_commits_when_rows_are_appended(s3: S3Endpoint) -> None:
    simulation_bucket(s3).close()
    place = f"s3://{BUCKET}/grows"
    rows = pa.table({"message_id": ["a", "b"], "day": ["2026-11-01", "2026-11-02"]})
    for _ in range(2):
        SimulatedSink(place, s3.storage_options()).append(rows.to_reader())
    table = DeltaTable(place, storage_options=s3.storage_options())
    assert table.version() == 1
    assert table.to_pyarrow_table().num_rows == 4


def test_an_append_fails_with_the_place_when_the_bucket_is_not_there(s3: S3Endpoint) -> None:
    rows = pa.table({"day": ["2026-11-01"]})
    with pytest.raises(FinalError, match="s3://nowhere/sink"):
        SimulatedSink("s3://nowhere/sink", s3.storage_options()).append(rows.to_reader())


def test_a_simulation_is_on_s3_when_it_was_asked_for(tmp_path: Path) -> None:
    out = tmp_path / "out"
    simulate_stream(
        scenario(messages=1000, hours=1, faults={"lost": 5}), out, endpoints=Endpoints(s3=True)
    )
    stream = load_settings(out / "shardaudit.toml").stream("events")
    assert (stream.traces.path, stream.sink.path) == (
        f"s3a://{BUCKET}/traces",
        f"s3a://{BUCKET}/sink",
    )
    assert pq.read_table(out / "planted.parquet").num_rows == 5
    # Its content outlives it, and can be served again with other credentials.
    with s3_proxy(out / "s3", credentials=S3Credentials("mine", "mine too")) as again:
        client = simulation_bucket(again)
        logs = client.list_objects_v2(Bucket=BUCKET, Prefix="traces/")["Contents"]
        first = client.get_object(Bucket=BUCKET, Key=logs[0]["Key"])["Body"].read()
        sink = DeltaTable(f"s3://{BUCKET}/sink", storage_options=again.storage_options())
        assert START.strftime("%Y-%m-%dT%H").encode() in gzip.decompress(first)
        assert sink.to_pyarrow_table().num_rows == 995
        client.close()
