"""Into an Airflow of somebody's own, on PostgreSQL, and out of it: by the commands of the docs.

What a person has: an environment with Airflow, a database, a folder of DAGs. What we give: a wheel
and one file. Of the package indexes it needs PyPI.
"""

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from deltalake import DeltaTable

from shardaudit.model.verdict import Verdict
from shardaudit.page.page_state import PREFIX
from tests.cluster.own_postgres import OwnPostgres, own_postgres, programs_of_postgres
from tests.cluster.own_venv import ROOT, OwnVenv, constraints_of_airflow, own_venv
from tests.dags.scheduling import until
from tools.airflow_processes import LocalAirflow
from tools.release import release

pytestmark = [
    pytest.mark.drill,
    pytest.mark.skipif(
        programs_of_postgres() is None,
        reason="PostgreSQL is not installed: apt-get install postgresql",
    ),
]

PAGE = (ROOT / "docs" / "installing.md").read_text()
DAGS = ("nightly_audit", "retention_watch", "maintenance", "backfill", "backfill_on_alarm")
NIGHT = {"from": "2026-11-01T00:00:00Z", "to": "2026-11-02T00:00:00Z"}
AS_OF = "2026-11-02T00:30:00Z"
ENDS = {"success", "failed"}
Run = tuple[str, list[str]]  # its state, and the tasks of it that failed
# What Airflow keeps of any DAG that is deleted, as the page says.
STAYS = {"log", "asset", "asset_active", "asset_event"}
# What the page says of the versions that may change.
NOT_HELD = {"boto3", "botocore", "s3transfer", "importlib_metadata", "importlib-metadata"}

_FILE = """
from shardaudit.airflow import dags

globals().update(dags(config="{config}"))
"""
_CONFIG = """
warehouse = "warehouse"
engine = "embedded"
"""
_STREAM = """
[streams.{name}]
stream_name = "{name}"
retention = "24h"
traces = {{ path = "{name}/traces", format = "parquet" }}
sink = {{ path = "{name}/sink", derived = {{ day = "date_format(sent_at, 'yyyy-MM-dd')" }} }}
"""


def commands(heading: str) -> list[str]:
    """The commands of the first block of the page after these words."""
    block = PAGE.partition(heading)[2].partition("```sh\n")[2].partition("```")[0]
    return block.strip().splitlines()


@dataclass
class OwnSite:
    """A person's machine."""

    folder: Path
    venv: OwnVenv
    postgres: OwnPostgres

    @property
    def config(self) -> Path:
        return self.folder / "shardaudit.toml"

    @property
    def dag_file(self) -> Path:
        return self.folder / "dags" / "lake.py"

    def airflow(self) -> LocalAirflow:
        """An Airflow of that environment on that database, which is not started."""
        changed = {
            "PATH": self.venv.environment["PATH"],
            "PYTHONPATH": "",
            "SHARDAUDIT_JARS": "",
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dag_file.parent),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": self.postgres.url,
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        }
        home, given = self.folder / "airflow", self.venv.environment
        return LocalAirflow(home, self.config, given, changed=changed)

    def says(self, command: str) -> str:
        """What Airflow's command says in its environment."""
        return self.venv.sh(command, **self.airflow().around())

    def make_streams(self) -> None:
        """One where all is well, and one that lost five messages; by the installed command."""
        for name, faults in (("events", "--no-faults"), ("orders", "--fault=lost=5")):
            made = f"--out {self.folder / name} --messages 3000 --shards 4 --stream {name}"
            self.venv.sh(f"shardaudit simulate files {made} {faults}")
        streams = [_STREAM.format(name=name) for name in ("events", "orders")]
        self.config.write_text("".join((_CONFIG, *streams)))

    def verdicts(self) -> dict[str, tuple[str, str]]:
        """Of each stream that was audited: the verdict, and the engine that found it."""
        audits = DeltaTable(str(self.folder / "warehouse" / "audits")).to_pyarrow_table()
        return {row["stream"]: (row["verdict"], row["engine"]) for row in audits.to_pylist()}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnSite]:
    """With Airflow and no more: the first command of the page."""
    folder = tmp_path_factory.mktemp("own")
    programs = programs_of_postgres()
    assert programs is not None
    (folder / "constraints.txt").write_text(constraints_of_airflow())
    with own_postgres(programs) as postgres:
        made = OwnSite(folder, own_venv(folder / "venv"), postgres)
        made.dag_file.parent.mkdir()
        made.venv.sh(commands("**With pip**")[0], CONSTRAINTS=str(folder / "constraints.txt"))
        yield made


@dataclass(frozen=True, slots=True)
class Trace:
    """What a stranger finds of us at one moment."""

    packages: dict[str, str]
    files: set[str]
    schema: list[str]  # of Airflow's database
    rows: Counter[str]  # of it that name us, by table


def trace(site: OwnSite) -> Trace:
    """As it is now."""
    rows = site.postgres.rows_about("shardaudit", *(f"'{dag}'" for dag in DAGS))
    return Trace(site.venv.packages(), site.venv.files(), site.postgres.schema(), rows)


@pytest.fixture(scope="module")
def before(site: OwnSite) -> Trace:
    """Airflow alone, with its tables."""
    site.says("airflow db migrate")
    return trace(site)


@pytest.fixture(scope="module")
def installed(site: OwnSite, before: Trace) -> Trace:
    """The wheel, by the other commands of the page, and the file in the folder of DAGs."""
    assert before.rows == {}
    release(site.folder / "dist")
    [wheel] = (site.folder / "dist").glob("*.whl")
    shutil.copy(wheel, site.folder)
    site.venv.sh("\n".join(commands("**With pip**")[1:]))
    site.make_streams()
    site.dag_file.write_text(_FILE.format(config=site.config))
    return trace(site)


@dataclass(frozen=True, slots=True)
class Nights:
    """What ran, and what was seen while Airflow was up."""

    runs: dict[str, Run]
    page: str
    trace: Trace


@pytest.fixture(scope="module")
def nights(site: OwnSite, installed: Trace) -> Nights:
    """A night of each stream and the upkeep, asked for at once; then the watch."""
    del installed
    with site.airflow() as airflow:
        until(lambda: all(map(airflow.api().knows, DAGS)), seconds=180)
        forms = {name: NIGHT | {"as_of": AS_OF, "stream": name} for name in ("events", "orders")}
        asked = {name: ("nightly_audit", form) for name, form in forms.items()}
        runs = ended(airflow, {**asked, "maintenance": ("maintenance", {})})
        # Behind the others: while an audit has the ledger, a first watch has nothing to go by.
        runs |= ended(airflow, {"retention_watch": ("retention_watch", {})})
        return Nights(runs, page_of(airflow), trace(site))


def ended(airflow: LocalAirflow, asked: dict[str, tuple[str, dict[str, str]]]) -> dict[str, Run]:
    """How runs of these DAGs and forms end that are asked for together."""
    api = airflow.api()
    for dag, _ in asked.values():
        api.switch(dag, on=True)
    ids = {name: (dag, api.trigger(dag, form)) for name, (dag, form) in asked.items()}
    until(lambda: all(api.run_state(*of) in ENDS for of in ids.values()), seconds=1500)
    for dag, _ in asked.values():
        api.switch(dag, on=False)  # or the clock starts another one
    return {
        name: (
            api.run_state(*of),
            [one.task_id for one in api.task_states(*of) if one.state == "failed"],
        )
        for name, of in ids.items()
    }


@pytest.fixture(scope="module")
def left(site: OwnSite, nights: Nights) -> Trace:
    """Gone again, by the page."""
    assert nights.runs
    site.dag_file.unlink()
    site.says("\n".join(commands("with Airflow's processes stopped:")))
    return trace(site)


def no_import_error(site: OwnSite) -> bool:
    """Whether Airflow can read every file; what it says of its own packages stands before that."""
    return site.says("airflow dags list-import-errors").splitlines()[-1].strip() == "No data found"


def page_of(airflow: LocalAirflow) -> str:
    """What who is logged in gets at our address; Airflow answers all addresses, its own page."""
    headers = {"Authorization": f"Bearer {airflow.api().token}"}
    asks = Request(f"{airflow.url}/{PREFIX}/", headers=headers)  # noqa: S310 - our own Airflow
    with urlopen(asks, timeout=60) as answer:  # noqa: S310
        body: bytes = answer.read()
    return body.decode()


def test_nothing_of_airflow_is_changed_but_what_the_page_says(
    before: Trace, installed: Trace
) -> None:
    changed = {
        name for name, version in before.packages.items() if installed.packages.get(name) != version
    }
    assert changed <= NOT_HELD
    assert {"shardaudit", "pyspark", "pysail", "deltalake"} <= installed.packages.keys()


def test_the_installation_is_whole(site: OwnSite, installed: Trace) -> None:
    del installed
    site.venv.sh("pip check")
    assert "never audited" in site.venv.sh(f"shardaudit --config {site.config} doctor")
    assert no_import_error(site)


def test_two_nights_asked_for_at_once_come_to_their_ends(nights: Nights) -> None:
    good = ("success", list[str]())
    assert nights.runs == {
        "events": good,
        "orders": ("failed", ["verdict"]),  # red is how it says that messages are missing
        "maintenance": good,
        "retention_watch": good,
    }


def test_the_warehouse_has_the_verdicts_of_the_embedded_engine(
    site: OwnSite, nights: Nights
) -> None:
    assert all(f"stream={name}" in nights.page for name in ("events", "orders"))
    verdicts = site.verdicts()
    assert {name: verdict for name, (verdict, _) in verdicts.items()} == {
        "events": Verdict.OK,
        "orders": Verdict.LOSS,
    }
    assert all(engine.startswith("pysail ") for _, engine in verdicts.values())


def test_we_add_rows_to_the_database_of_airflow_and_no_table(before: Trace, nights: Nights) -> None:
    assert nights.trace.schema == before.schema
    assert nights.trace.rows["dag_run"] >= len(nights.runs)


def test_no_package_file_or_table_of_ours_stays(before: Trace, left: Trace) -> None:
    assert left.packages == before.packages
    assert left.files - before.files == set()
    assert before.files - left.files == set()
    assert left.schema == before.schema


def test_rows_that_stay_are_those_that_the_page_names(left: Trace) -> None:
    named = PAGE.partition("\nLeave: ")[2]
    assert left.rows.keys() <= STAYS
    assert all(f"`{table}`" in named for table in STAYS)


def test_airflow_starts_without_us(site: OwnSite, left: Trace) -> None:
    del left
    with site.airflow() as airflow:
        assert "shardaudit" not in page_of(airflow)
        assert no_import_error(site)
        assert "shardaudit" not in site.says("airflow plugins")
        assert airflow.api().import_errors() == []
