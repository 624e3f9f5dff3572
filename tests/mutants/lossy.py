"""The small audit whose self-check is tried: a stream that lost a message, and doubled another."""

import shutil
from datetime import timedelta
from pathlib import Path

from shardaudit.adapters.engine.door import Engine
from shardaudit.model.errors import GateError, InvariantError, SelfCheckError
from shardaudit.store.warehouse import Warehouse
from tests.builders import NOW, T0, sequence
from tests.history import Question, SinkRow, Trace
from tests.spark.trial import Trial

MINUTE = timedelta(minutes=1)
_LOST, _DOUBLED, _UNTRACED = 7, 12, 15


def prepared(engine: Engine, folder: Path) -> None:
    """Writes the stream's inputs and ingests them."""
    trial = _trial(engine, folder)
    sent = [
        Trace(f"m{i}", f"shard-{i % 2}", sequence(i), T0 + i * timedelta(seconds=10))
        for i in range(24)
    ]
    trial.log([t for t in sent if t.message_id != f"m{_UNTRACED}"])
    landed = [(t, 2 if t.message_id == f"m{_DOUBLED}" else 1) for t in sent]
    trial.land(
        [
            SinkRow(t.message_id, t.shard_id, t.sequence_number, t.sent_at, t.sent_at + MINUTE)
            for t, times in landed
            if t.message_id != f"m{_LOST}"
            for _ in range(times)
        ]
    )
    trial.ingest()


def said(engine: Engine, folder: Path, *, at: Path, is_ingested: bool) -> str:
    """What an audit of a copy of the stream comes to: a verdict, or what stopped it."""
    shutil.copytree(folder, at)
    if not is_ingested:
        shutil.rmtree(at / "warehouse")
    try:
        trial = _trial(engine, at)
        if not is_ingested:
            trial.ingest()
        return str(trial.audit().audit.verdict)
    except SelfCheckError:
        return "self-check"
    except InvariantError:
        return "invariant"
    except GateError:
        return "gate"
    except Exception as error:  # noqa: BLE001 - a mutant may break anything
        return f"error {type(error).__name__}"
    finally:
        shutil.rmtree(at)


def _trial(engine: Engine, folder: Path) -> Trial:
    warehouse = Warehouse(engine.session, str(folder / "warehouse"), engine=engine.version)
    return Trial(warehouse, folder, Question(T0, T0 + 4 * MINUTE, NOW))
