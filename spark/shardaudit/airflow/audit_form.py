"""The form of an audit run by hand. Airflow refuses what does not fit, and says why."""

from airflow.sdk import Param


def _time(title: str, description: str) -> Param:
    return Param(
        None, type=["null", "string"], format="date-time", title=title, description=description
    )


AUDIT_FORM = {
    "stream": Param(
        None,
        type=["null", "string"],
        pattern=r"^[A-Za-z0-9_.-]{1,128}$",
        title="Stream",
        description="The name of a stream in shardaudit.toml. Empty: all of them.",
    ),
    "from": _time("From", "Start of the window. Empty: the stream's audit_window before its end."),
    "to": _time("To", "End of the window, itself not in it. Empty: as of."),
    "as_of": _time("As of", "The now of the audit. Empty: the time of the run."),
}
