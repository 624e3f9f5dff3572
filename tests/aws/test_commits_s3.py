"""Two JVMs commit to one Delta sink on S3 at the same moment: what of it is there afterwards."""

import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from shardaudit.adapters.engine.apache_spark import JARS
from shardaudit.model.config.parts import Aws
from shardaudit.model.config.settings import Settings
from shardaudit.simulate.s3proxy import REGION, S3Endpoint, s3_proxy
from tests.aws.sink_writers import SPARK, SinkWriter, message_ids
from tests.slow_s3 import SlowS3, slow_s3

pytestmark = pytest.mark.aws

TIMES = 3
LOG_STORE = "shardaudit.tests.ConditionalLogStore"


@dataclass
class Lake:
    """A bucket behind a slow network, and two JVMs that write to it.

    They commit to `s3a://` by a log store for many writers, to `s3://` by Delta's own.
    """

    endpoint: S3Endpoint
    network: SlowS3
    writers: tuple[SinkWriter, SinkWriter]

    def sink(self, name: str) -> None:
        """An empty table."""
        columns = [Field(one, PrimitiveType("string")) for one in ("message_id", "day")]
        DeltaTable.create(
            f"s3://lake/{name}",
            Schema(columns),
            storage_options=self.endpoint.storage_options(),
        )

    def table(self, name: str) -> DeltaTable:
        """As somebody else reads it."""
        return DeltaTable(f"s3://lake/{name}", storage_options=self.endpoint.storage_options())

    def landed(self, name: str) -> Counter[object]:
        """How often each message is there."""
        return Counter(self.table(name).to_pyarrow_table()["message_id"].to_pylist())

    def both(self, first: tuple[str, str, str], second: tuple[str, str, str]) -> None:
        """Each is told what to do, and has done all of it; they meet until one is done."""
        self.network.is_shared = True
        for writer, (act, sink, name) in zip(self.writers, (first, second), strict=True):
            writer.tell(act, sink, name, times=TIMES)
        with ThreadPoolExecutor() as pool:
            answers = [pool.submit(writer.answer) for writer in self.writers]
            wait(answers, return_when=FIRST_COMPLETED)
            self.network.is_shared = False
        assert [answer.result() for answer in answers] == ["done", "done"]


def compiled_log_store(folder: Path) -> Path:
    """A jar with the log store, compiled by the compiler that Spark brings."""
    jars = [*sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar")), *JARS.glob("*.jar")]
    path = ":".join(str(jar) for jar in jars)
    source = Path(__file__).with_name("ConditionalLogStore.java")
    compiler = ["java", "-cp", path, "org.codehaus.commons.compiler.samples.CompilerDemo"]
    subprocess.run(
        [*compiler, "-d", str(folder), "-classpath", path, str(source)],
        check=True,
        capture_output=True,
    )
    jar = folder / "log-store.jar"
    name = f"{LOG_STORE.replace('.', '/')}.class"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.write(folder / name, name)
    return jar


def settings(url: str, jars: list[Path]) -> Settings:
    """What a writer is started with."""
    spark = {
        **SPARK,
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.delta.logStore.s3a.impl": LOG_STORE,
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    }
    aws = Aws(region=REGION, endpoints={"s3": url})
    return Settings(warehouse="s3a://lake/shardaudit", aws=aws, spark=spark, streams={})


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("lake")
    jar = compiled_log_store(folder)
    (folder / "s3" / "lake").mkdir(parents=True)
    with (
        s3_proxy(folder / "s3") as endpoint,
        pytest.MonkeyPatch.context() as patched,
        slow_s3(endpoint.url) as (network, url),
    ):
        for name, value in endpoint.environment().items():
            patched.setenv(name, value)
        told = settings(url, [*sorted(JARS.glob("*.jar")), jar])
        with SinkWriter(told) as one, SinkWriter(told) as other:
            assert [one.answer(), other.answer()] == ["ready", "ready"]
            yield Lake(endpoint, network, (one, other))


@pytest.mark.drill
def test_two_writers_lose_acknowledged_commits_when_the_log_store_is_deltas_own(
    lake: Lake,
) -> None:
    """Why such a sink is refused, and that the tests below would notice."""
    acknowledged = 2 * len(message_ids("any", times=TIMES))
    lake.sink("own")
    lake.both(("merge", "s3://lake/own", "lost"), ("append", "s3://lake/own", "live"))
    assert lake.landed("own").total() < acknowledged


def test_nothing_is_lost_when_merges_meet_a_live_writer(lake: Lake) -> None:
    lake.sink("live")
    met = lake.network.met
    lake.both(("merge", "s3a://lake/live", "lost"), ("append", "s3a://lake/live", "live"))
    wanted = message_ids("lost", times=TIMES) + message_ids("live", times=TIMES)
    assert lake.landed("live") == Counter(wanted)
    assert lake.table("live").version() == 2 * TIMES
    assert lake.network.met - met >= TIMES


@pytest.mark.drill
def test_each_message_lands_once_when_two_merges_bring_the_same(lake: Lake) -> None:
    lake.sink("both")
    met = lake.network.met
    lake.both(*[("merge", "s3a://lake/both", "lost")] * 2)
    assert lake.landed("both") == Counter(message_ids("lost", times=TIMES))
    assert lake.network.met > met
