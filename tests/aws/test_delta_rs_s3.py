"""The rows that a driver holds, in a warehouse on S3."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.parts import Aws
from shardaudit.simulate.s3proxy import s3_proxy
from tests.noted import EVERYTHING, NOTED, row

pytestmark = pytest.mark.aws


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    folder = tmp_path_factory.mktemp("s3")
    (folder / "lake").mkdir()
    with s3_proxy(folder) as server, pytest.MonkeyPatch.context() as patched:
        for name, value in server.environment().items():
            patched.setenv(name, value)
        yield Aws(region="us-east-1", endpoints={"s3": server.url})


def test_rows_are_updated_and_inserted_when_the_warehouse_is_on_s3(
    lake: Aws, tmp_path: Path
) -> None:
    tables = DeltaRs(f"s3a://lake/{tmp_path.name}", lake)
    assert tables.rows(NOTED, where=EVERYTHING) == []
    for _ in range(2):
        tables.create(NOTED)
        tables.upsert([row("a"), row("b")], NOTED)
    tables.upsert([row("b", parents=["p"])], NOTED)
    found = sorted(tables.rows(NOTED, where=EVERYTHING), key=lambda r: str(r["shard_id"]))
    assert found == [row("a"), row("b", parents=["p"])]
