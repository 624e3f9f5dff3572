"""A Delta sink on S3, read without an engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shardaudit.adapters.files.files import FileStore, S3Access, s3_access
from shardaudit.adapters.lake.delta_log import CommitGoneError
from shardaudit.adapters.lake.delta_sink_reader import DeltaSink
from shardaudit.ingest.rules.commits import net_change
from shardaudit.model.config.parts import Aws
from shardaudit.model.errors import ConfigError
from shardaudit.simulate.s3proxy import REGION, s3_proxy
from tests.sink_reading import delta_rows
from tests.spark_tables import SparkTable, spark_table

pytestmark = pytest.mark.aws


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the stand-in serves."""
    (tmp_path_factory.getbasetemp() / "s3" / "lake").mkdir(parents=True)
    return tmp_path_factory.getbasetemp() / "s3"


@pytest.fixture(scope="module")
def access(folder: Path) -> Iterator[S3Access]:
    with s3_proxy(folder) as server, pytest.MonkeyPatch.context() as patched:
        for name, value in server.environment().items():
            patched.setenv(name, value)
        yield s3_access(Aws(region=REGION, endpoints={"s3": server.url}))


@pytest.fixture(scope="module")
def vectors(folder: Path) -> SparkTable:
    return spark_table("vectors", folder / "lake")


@pytest.fixture(scope="module")
def checkpointed(folder: Path) -> SparkTable:
    return spark_table("checkpointed", folder / "lake")


@pytest.mark.parametrize("name", ["vectors", "checkpointed"])
def test_rows_are_apache_sparks_when_the_table_is_on_s3(
    name: str, access: S3Access, request: pytest.FixtureRequest
) -> None:
    table: SparkTable = request.getfixturevalue(name)
    sink = DeltaSink(f"s3a://lake/{name}", access)
    for number in (0, 2, 4, 6):
        version, known = sink.at(number), table.versions[number]
        rows = delta_rows(version, version.files(), known.columns, access)
        assert rows == known.rows, number
        if number:
            change = net_change(version.commits_since(number - 2))
            rows = table.versions[number - 2].rows + delta_rows(
                version, change.added, known.columns, access
            )
            rows.subtract(delta_rows(version, change.removed, known.columns, access))
            assert rows == known.rows, number


def test_what_is_not_there_is_told_when_s3_is_asked(vectors: SparkTable, access: S3Access) -> None:
    with pytest.raises(ConfigError, match="wanted a Delta table"):
        DeltaSink("s3a://lake/nothing", access).at()
    (vectors.path / "_delta_log" / f"{3:020d}.json").rename(vectors.path / "kept")
    with pytest.raises(CommitGoneError):
        DeltaSink("s3a://lake/vectors", access).at().commits_since(1)
    (vectors.path / "kept").rename(vectors.path / "_delta_log" / f"{3:020d}.json")
    store = FileStore(access)
    assert store.found("s3a://lake/nothing") is None
    found = store.found(f"s3a://lake/vectors/_delta_log/{3:020d}.json")
    assert found is not None
    assert found.size_bytes > 0
