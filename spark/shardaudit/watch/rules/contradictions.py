"""What the witnesses say besides each other, where it matters: contradictions are shown."""

from datetime import timedelta

from shardaudit.model.sequence import START_WORDS
from shardaudit.watch.rules.facts import Rules, Witness
from shardaudit.watch.rules.texts import at, messages


def evidence(witness: Witness, rules: Rules, *, settle_grace: timedelta) -> tuple[str, ...]:
    """Sentences; empty when no witness contradicts another."""
    said = (_hole(witness, rules, settle_grace), _hung(witness), _start_word(witness))
    return tuple(sentence for sentence in said if sentence is not None)


def _hole(witness: Witness, rules: Rules, settle_grace: timedelta) -> str | None:
    """The consumer says that it is past messages which have not landed."""
    passed, position = witness.progress.passed, witness.position
    if passed is None or position is None:
        return None
    if rules.as_of - (passed.first_arrival + rules.bucket) <= settle_grace:
        return None
    return (
        f"a HOLE in the making: {position.consumer} says {position.checkpoint}, which is past "
        f"{messages(passed.messages)} from {at(passed.since)} on that have not landed"
    )


def _hung(witness: Witness) -> str | None:
    """The lease is renewed, the checkpoint stays, and messages wait."""
    now, ahead = witness.position, witness.progress.ahead
    old = witness.before.position if witness.before else None
    if now is None or old is None or ahead is None or now.is_at_end:
        return None
    if now.lease_counter is None or old.lease_counter is None:
        return None
    if now.checkpoint != old.checkpoint or now.lease_counter <= old.lease_counter:
        return None
    return (
        f"its processor hangs or is blocked: {now.lease_owner} renews the lease "
        f"({old.lease_counter} → {now.lease_counter}), the checkpoint stays at {now.checkpoint}"
    )


def _start_word(witness: Witness) -> str | None:
    """A consumer that never stored how far it is: a restart begins at that word."""
    position, ahead = witness.position, witness.progress.ahead
    if position is None or ahead is None or position.checkpoint not in START_WORDS:
        return None
    skips = ": a restart skips what waits" if position.checkpoint == "LATEST" else ""
    return f"{position.consumer} never stored a checkpoint, only {position.checkpoint}{skips}"
