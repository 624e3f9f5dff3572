"""A run that takes a warehouse over from a holder that is alive, and was silent for too long."""

import json
from pathlib import Path

from shardaudit.model.config.settings import Settings
from shardaudit.store.lock import warehouse_lock
from shardaudit.store.lock_files import FOLDER


def take_over(settings: Settings, owner: str = "second") -> None:
    """Takes it, and gives it back."""
    newest = max((Path(settings.warehouse) / FOLDER).glob("*.json"))
    newest.write_text(json.dumps(json.loads(newest.read_text()) | {"process_start": "long ago"}))
    with warehouse_lock(settings, owner=owner) as held:
        held.check()
