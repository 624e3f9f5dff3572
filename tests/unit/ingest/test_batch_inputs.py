"""Inputs of batches as text and back."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from shardaudit.ingest.rules.batch_inputs import (
    MOST_LANDINGS,
    DamagedFile,
    DeltaInputs,
    ParquetInputs,
    TraceInputs,
    files_then,
    sink_inputs,
    with_landings,
)
from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.source import FileGroup, SourceFile

SHAPE = Eras(CellShape(60, 0.5))
A, B, C = (SourceFile(f"s3a://lake/{name}'é", 1, 2) for name in "abc")
DELTA = DeltaInputs(
    columns={"message_id": "id"},
    shape=SHAPE,
    damaged=(DamagedFile(B, "broken"),),
    path="s3a://lake",
    meaning="m",
    to_version=7,
    from_version=3,
    excluded=("c",),
)
PARQUET = ParquetInputs(
    columns={"message_id": "id"},
    shape=SHAPE,
    damaged=(DamagedFile(B, "broken"),),
    path="lake",
    meaning="m",
    groups=(FileGroup({"message_id": ("id", "string")}, (A,)),),
    added=("x",),
    excluded=(C,),
)


def test_inputs_are_the_same_when_stored_and_read() -> None:
    traces = TraceInputs({"message_id": "id"}, SHAPE, (DamagedFile(A, "why"),), files=(A, B))
    assert TraceInputs.from_json(traces.as_json()) == traces
    assert sink_inputs(DELTA.as_json()) == DELTA
    assert sink_inputs(PARQUET.as_json()) == PARQUET
    knowing = with_landings(DELTA, [5, 3, 5])
    assert sink_inputs(knowing.as_json()) == knowing
    assert knowing.own_landings == (3, 5)
    full = ParquetInputs({}, SHAPE)
    assert sink_inputs(full.as_json()) == full
    assert (full.is_full, PARQUET.is_full, DELTA.is_full) == (True, False, False)


def test_newest_landings_alone_are_kept() -> None:
    some = with_landings(DELTA, range(MOST_LANDINGS))
    assert with_landings(some, [MOST_LANDINGS]).own_landings == tuple(range(1, MOST_LANDINGS + 1))


def test_text_is_the_same_when_made_twice() -> None:
    assert DELTA.as_json() == sink_inputs(DELTA.as_json()).as_json()
    assert json.loads(DELTA.as_json())["to_version"] == 7


def test_unread_files_are_old_and_new_damage_when_both_are_there() -> None:
    assert DELTA.unread == {B.path, "c"}
    assert PARQUET.unread == {B, C}
    assert PARQUET.files == [A, B, C]


def test_damage_is_healed_when_a_file_no_longer_counts_as_unread() -> None:
    assert (DELTA.heals(A), DELTA.heals(B), PARQUET.heals(A), PARQUET.heals(C)) == (
        True,
        False,
        True,
        False,
    )


def test_trace_damage_is_healed_when_a_later_version_was_read_to_its_end() -> None:
    again = SourceFile(A.path, 9, 9)
    sound = TraceInputs({}, SHAPE, files=(again,))
    broken = TraceInputs({}, SHAPE, (DamagedFile(again, "why"),), files=(again,))
    assert (sound.heals(A), broken.heals(A), sound.heals(B)) == (True, False, False)


def test_text_of_version_0_1_is_read_when_it_is_of_a_parquet_sink() -> None:
    text = (
        '{"added":null,"columns":{"message_id":"message_id","shard_id":"shard_id"},"damaged":'
        '[[["/lake/bad.parquet",1,1795346532790],"unreadable Parquet file"]],"excluded":[],'
        '"format":"parquet","groups":[[{"message_id":["message_id","string"],"shard_id":'
        '["shard_id","string"]},[["/lake/shard_id=a/x.parquet",1076,1795346532788]]]],"meaning":'
        '"[\\"/lake\\", {}]","path":"/lake","shape":{"bucket_s":60,"sample_rate":1.0}}'
    )
    found = sink_inputs(text)
    assert json.loads(found.as_json()) == json.loads(text) | {
        "own_landings": [],
        "gaps": ["/lake/shard_id=a/x.parquet"],
        "is_whole": True,
    }
    assert isinstance(found, ParquetInputs)
    assert found.groups[0].files == (SourceFile("/lake/shard_id=a/x.parquet", 1076, 1795346532788),)
    assert found.is_full


FILES = st.sets(st.sampled_from(range(40)), max_size=6)
# Of a batch: the files that came, whether all is read anew, those of the new ones that are broken.
STEPS = st.lists(st.tuples(FILES, st.booleans(), FILES), min_size=1, max_size=8)


def folder_after(steps: list[tuple[set[int], bool, set[int]]]) -> list[ParquetInputs]:
    """The inputs of each batch of a folder, whole as they are while they are the newest."""
    made = [ParquetInputs({}, SHAPE, groups=())]
    for came, is_anew, broken in steps:
        before = made[-1]
        names = {f"{len(made)}-{n}": n for n in came}
        new = {n: SourceFile(n, 1, 2) for n in names}
        damaged = tuple(DamagedFile(new[n], "") for n, of in names.items() if of in broken)
        sound = [file for file in new.values() if file not in {d.file for d in damaged}]
        kept = {f for group in before.groups for f in group.files}
        kinds = [{}, {"message_id": ("id", "string")}]
        groups = [FileGroup(kinds[n % 2], (f,)) for n, f in enumerate(sorted({*kept, *sound}))]
        added = None if is_anew else tuple(sorted(new))
        excluded = tuple(sorted(before.unread))
        gaps = tuple(sorted({*before.gaps, *(f.path for f in sound if f.path.endswith("7"))}))
        one = replace(before, damaged=damaged, excluded=excluded, added=added, gaps=gaps)
        made.append(replace(one, groups=tuple(groups), own_landings=(len(made),)))
    return made


@given(STEPS)
def test_files_of_each_batch_are_known_by_what_is_kept_of_it(
    steps: list[tuple[set[int], bool, set[int]]],
) -> None:
    made = folder_after(steps)
    kept = [sink_inputs(each.older().as_json()) for each in made]
    for number, whole in enumerate(made):
        assert sorted(files_then(reversed(kept[: number + 1]))) == whole.files
        assert kept[number].older() == kept[number]
    newer = [each for each in kept if isinstance(each, ParquetInputs) and not each.is_full]
    told = [f for each in newer for g in each.groups for f in g.files]
    assert len(told) == len(set(told)) <= sum(len(came) for came, _, _ in steps)


def test_heals_are_told_by_what_is_kept_of_a_batch() -> None:
    older = replace(PARQUET, gaps=("x", "y")).older()
    assert (older.heals(A), older.heals(B), older.heals(C)) == (True, False, False)
    assert (older.groups, older.gaps, older.is_whole) == ((), ("x",), False)
    assert with_landings(DELTA, [5]).older() == DELTA
