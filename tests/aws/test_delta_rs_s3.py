"""The rows that a driver holds, in a warehouse on S3."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from shardaudit.adapters.aws.s3 import s3_client
from shardaudit.adapters.lake.broken_tables import BrokenTableError
from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.adapters.lake.delta_schema import is_before
from shardaudit.model.config.parts import Aws
from shardaudit.model.tables.audit_tables import AUDITS, CELLS
from shardaudit.simulate.s3proxy import s3_proxy
from shardaudit.store.superseded_cells import delete_superseded_cells
from shardaudit.store.warehouse import Warehouse
from tests.noted import EVERYTHING, NOTED, T0, row

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


def test_a_table_on_s3_is_broken_for_good_when_a_file_of_it_is_gone(
    lake: Aws, tmp_path: Path
) -> None:
    place = f"s3a://lake/{tmp_path.name}"
    tables = DeltaRs(place, lake)
    tables.create(NOTED)
    for name in "ab":
        tables.upsert([row(name)], NOTED)
    path = tables.files(NOTED)[0]["path"]
    for gone in (path, f"_delta_log/{1:020d}.json"):
        s3_client(lake).delete_object(Bucket="lake", Key=f"{tmp_path.name}/noted/{gone}")
        with pytest.raises(BrokenTableError, match=gone):
            DeltaRs(place, lake).rows(NOTED, where=EVERYTHING)


def test_old_rows_go_when_the_warehouse_is_on_s3(lake: Aws, tmp_path: Path) -> None:
    place, hour = f"s3a://lake/{tmp_path.name}", timedelta(hours=1)
    warehouse = Warehouse(None, place, aws=lake)  # type: ignore[arg-type] # no engine is asked
    nights = [
        {
            "audit_id": f"n{n}",
            "stream": "s",
            "status": "published",
            "window_start": T0 + n * hour,
            "window_end": T0 + (n + 4) * hour,
            **dict.fromkeys(("as_of", "started_at", "finished_at"), T0 + (n + 4) * hour),
            "pending": 0,
        }
        for n in range(3)
    ]
    cells = [
        {"audit_id": f"n{n}", "stream": "s", "bucket_start": T0 + (n + m) * hour}
        for n in range(3)
        for m in range(4)
    ]
    warehouse.upsert(nights, AUDITS)
    warehouse.upsert(cells, CELLS)
    for gone in (2, 0):
        assert delete_superseded_cells(warehouse, nights, over_by=T0 + 5 * hour) == gone
    left = warehouse.rows(CELLS, where=EVERYTHING)
    assert sum(cell["audit_id"] == "n0" for cell in left) == 2

    tables = DeltaRs(place, lake)
    tables.create(NOTED)
    tables.upsert([row("a"), row("b")], NOTED)
    assert tables.delete(NOTED, where=is_before("seen_at", T0)) == 0
    assert tables.delete(NOTED, where=is_before("seen_at", T0 + 1000 * hour)) == 2
