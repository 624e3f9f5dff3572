"""Keeps each night's report beside the tables, and says where it and the map are."""

import logging

from shardaudit.airflow.planned import PlannedAudit, configured
from shardaudit.model.errors import ShardauditError

log = logging.getLogger(__name__)


def keep_report(planned: PlannedAudit) -> None:
    """Writes the report of the audit. Without one the verdict is said all the same."""
    # Not at the module's top: it reads with pyarrow, and this file is parsed every few seconds.
    from shardaudit.adapters.clock import now  # noqa: PLC0415
    from shardaudit.page.page_report import kept_report  # noqa: PLC0415

    settings = configured()
    try:
        kept = kept_report(settings, planned["stream"], planned["audit_id"], now=now())
    except ShardauditError as error:
        log.warning("there is no report of %s: %s", planned["audit_id"], error)
        return
    log.info("report: %s", kept.place)
    log.info("map: %s, in the menu under Shardaudit", kept.link)
