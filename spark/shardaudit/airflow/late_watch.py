"""The alarm about the alarm: a retention watch that is not done in time."""

import asyncio
import hashlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shardaudit.adapters.notifiers import OutgoingMessage, has_receiver, send
from shardaudit.model.config.parts import CONFIG
from shardaudit.model.config.settings import load_settings
from shardaudit.model.verdict import Level

log = logging.getLogger(__name__)


async def tell_late(context: Mapping[str, Any]) -> None:  # Any: what Airflow gives a callback
    """Airflow's callback of a missed deadline: tells every receiver, under the run's own id.

    Raises:
        ConfigError: the configuration cannot be read.
        NotSentError: a receiver did not take it.
    """
    await asyncio.to_thread(_tell, context)  # notifiers wait, the triggerer's loop may not


def _tell(context: Mapping[str, Any]) -> None:  # Any: as above
    run = context.get("dag_run") or {}
    run_id = str(run.get("dag_run_id") or run.get("run_id") or "unknown")
    message = OutgoingMessage(
        message_id=hashlib.sha256(f"late\n{run_id}".encode()).hexdigest()[:24],
        stream="all",
        level=Level.WARN.value,
        title="shardaudit: the retention watch is late",
        text=f"run {run_id} of retention_watch is not done in time: nobody watches the shards now. "
        "See its tasks in Airflow",
    )
    log.warning("%s: %s", message.title, message.text)
    settings = load_settings(Path(os.environ[CONFIG]))
    if has_receiver(settings.notify):
        send(settings.notify, message)
