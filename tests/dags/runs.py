"""A run of a DAG in this process."""

from pathlib import Path

from airflow.dag_processing.dagbag import DagBag

DAGS = Path(__file__).parents[2] / "dags"
FORM = {
    "from": "2026-11-01T00:00:00Z",
    "to": "2026-11-02T00:00:00Z",
    "as_of": "2026-11-03T00:00:00Z",
}


def run(conf: dict[str, str]) -> tuple[str, dict[str, str]]:
    """The state of a run with this form, and of its tasks by `task` or `task stream`."""
    dag_run = DagBag(str(DAGS)).dags["nightly_audit"].test(run_conf=conf)
    states = {
        " ".join(filter(None, (ti.task_id, ti.rendered_map_index))): str(ti.state)
        for ti in dag_run.get_task_instances()
    }
    return str(dag_run.state), states
