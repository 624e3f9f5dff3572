"""The canary's messages: every word of the closed lists is among them."""

from collections import Counter

from shardaudit.audit.rules.canary.canary import MESSAGES, VERDICTS, Planted
from shardaudit.model.verdict import VANISHED, Cause, Kind, State, Verdict


def test_every_verdict_kind_cause_and_state_is_planted() -> None:
    found = [(kind, cause) for message in MESSAGES for kind, cause in message.found.items()]
    after = [message.before.after for message in MESSAGES if message.before]
    assert {*VERDICTS.values()} == set(Verdict)
    assert {kind for kind, _ in found} == set(Kind)
    assert {cause for _, cause in found} == set(Cause) - {Cause.EXPIRED}  # a state, by now
    assert {*after, State.OPEN, State.REPLAYED} - {None} == set(State)


def test_names_are_unique_and_a_cell_has_one_verdict() -> None:
    assert max(Counter(message.name for message in MESSAGES).values()) == 1
    not_ok = {(m.home, m.slot) for m in MESSAGES if m.found or m.not_landed not in {None, VANISHED}}
    assert not_ok <= VERDICTS.keys()


def test_message_that_is_read_again_has_one_trace() -> None:
    def is_read(message: Planted) -> bool:
        return message.in_evidence or message.was_read or bool(message.later)

    assert all(len(message.sent) == 1 for message in MESSAGES if is_read(message))
