"""Which columns of a sink stand for the standard ones."""

import pytest

from shardaudit.ingest.rules.sink_columns import ReservedColumnError, resolved_columns
from shardaudit.model.errors import SinkSchemaError
from shardaudit.model.exit_code import ExitCode

ALL = ["message_id", "shard_id", "sequence_number", "sent_at", "landed_at", "arrived_at", "more"]


def resolve(found: list[str], previous: tuple[str, ...] = (), **mapped: str) -> dict[str, str]:
    return resolved_columns(found, mapped, previous=previous, version="version 7 of lake/events")


def test_standard_names_are_found_when_nothing_is_mapped() -> None:
    assert resolve(ALL) == {name: name for name in ALL if name != "more"}


def test_optional_columns_may_be_absent_when_they_never_were_there() -> None:
    found = resolve(["message_id", "shard_id", "sent_at", "landed_at"])
    assert sorted(found) == ["landed_at", "message_id", "sent_at", "shard_id"]


def test_mapped_name_is_taken_when_given() -> None:
    found = [*ALL, "a.b `c`"]
    assert resolve(found, landed_at="a.b `c`")["landed_at"] == "a.b `c`"


def test_case_does_not_matter_when_only_one_column_is_alike() -> None:
    assert resolve([n.upper() for n in ALL])["message_id"] == "MESSAGE_ID"
    assert resolve([*ALL, "Message_Id"])["message_id"] == "message_id"
    with pytest.raises(SinkSchemaError):
        resolve([*ALL[1:], "Message_Id", "MESSAGE_ID"])


@pytest.mark.parametrize("gone", ["message_id", "landed_at"])
def test_refusal_names_column_and_version_when_a_needed_one_is_absent(gone: str) -> None:
    with pytest.raises(SinkSchemaError, match=f"'{gone}'.*version 7 of lake/events") as refused:
        resolve([name for name in ALL if name != gone])
    assert refused.value.exit_code is ExitCode.FAILED
    assert f'columns = {{ {gone} = "…" }}' in str(refused.value)


def test_refusal_names_the_mapped_column_when_it_is_gone() -> None:
    with pytest.raises(SinkSchemaError, match=r"'ingested' .for landed_at. is not"):
        resolve(ALL, landed_at="ingested")


@pytest.mark.parametrize("gone", ["sequence_number", "arrived_at", "shard_id"])
def test_column_may_not_go_when_it_was_read_before(gone: str) -> None:
    with pytest.raises(SinkSchemaError, match=gone):
        resolve([name for name in ALL if name != gone], previous=(gone,))


@pytest.mark.parametrize("absent", ["shard_id", "sent_at"])
def test_sink_may_lack_shard_or_time_when_never_mapped(absent: str) -> None:
    assert absent not in resolve([name for name in ALL if name != absent])


def test_sink_is_refused_when_it_uses_our_prefix() -> None:
    with pytest.raises(ReservedColumnError, match="'_sa_x'"):
        resolve([*ALL, "_sa_x"])
