"""Lines of text files: what is kept of damaged ones."""

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.adapters.files.lines import USUAL_SIZES, ReadSizes, line_groups
from tests.builders import jsonl, noise, trace_line

Found = list[tuple[int | None, str | None, str | None]]
Reader = Callable[..., Found]
TINY = ReadSizes(chunk_bytes=7, packed_bytes=7)


def read_by(sizes: ReadSizes, content: bytes, name: str = "x.jsonl") -> Found:
    """(line, raw, fault) of everything that the reader gives."""
    return [
        (number, line.decode() or None, fault)
        for numbers, given, fault in line_groups(io.BytesIO(content), name, sizes)
        for number, line in zip(numbers, given, strict=True)
    ]


@pytest.fixture(params=[USUAL_SIZES, TINY], ids=["one chunk", "tiny chunks"])
def read(request: pytest.FixtureRequest) -> Reader:
    """The same must come out wherever a chunk ends."""
    return partial(read_by, request.param)


def test_lines_are_numbered_from_one_and_blanks_are_ignored_when_plain(read: Reader) -> None:
    content = b"\xef\xbb\xbfone\r\n\n  \t\r\ntwo\nthree"
    assert read(content) == [(1, "one\r", None), (4, "two", None), (5, "three", None)]


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\n \n"])
def test_nothing_is_found_when_file_is_empty(read: Reader, content: bytes) -> None:
    assert read(content) == []
    assert read(gzip.compress(content), "x.gz") == []
    assert read(zstandard.compress(content), "x.zst") == []


def test_empty_file_has_no_damage_when_named_as_packed(read: Reader) -> None:
    assert read(b"", "x.gz") == []


@pytest.mark.parametrize("name", ["x.jsonl.gz", "x.jsonl", "x.zst"])
def test_content_decides_when_packed_whatever_the_name(read: Reader, name: str) -> None:
    assert read(gzip.compress(b"a\nb\n"), name) == [(1, "a", None), (2, "b", None)]
    assert read(zstandard.compress(b"a\nb\n"), name) == [(1, "a", None), (2, "b", None)]


def test_all_members_are_read_when_gzip_has_several(read: Reader) -> None:
    content = gzip.compress(b"a\nb") + gzip.compress(b"") + gzip.compress(b"c\nd\n") + b"\0" * 600
    assert read(content) == [(1, "a", None), (2, "bc", None), (3, "d", None)]


def test_all_frames_are_read_when_zstd_has_several(read: Reader) -> None:
    content = zstandard.compress(b"a\nb") + zstandard.compress(b"c\nd\n")
    assert read(content) == [(1, "a", None), (2, "bc", None), (3, "d", None)]


@pytest.mark.parametrize("kind", [0x50, 0x5F])
def test_all_frames_are_read_when_pzstd_put_others_before_them(read: Reader, kind: int) -> None:
    other = bytes([kind]) + b"\x2a\x4d\x18\x04\0\0\0size"
    content = other + zstandard.compress(b"a\nb") + other + zstandard.compress(b"c\n")
    assert read(content, "x.zst") == [(1, "a", None), (2, "bc", None)]


def test_what_came_before_is_kept_when_gzip_breaks_off(read: Reader) -> None:
    whole = jsonl([trace_line(i) for i in range(2000)])
    packed = gzip.compress(whole)
    *kept, damage = read(packed[: len(packed) // 2], "x.gz")
    assert len(kept) > 500
    assert [raw for _, raw, _ in kept] == whole.decode().splitlines()[: len(kept)]
    line, raw, fault = damage
    assert line is None
    assert whole.decode().splitlines()[len(kept)].startswith(raw or "")
    assert fault == "the gzip file breaks off"


def test_first_member_is_kept_when_second_gzip_member_breaks_off(read: Reader) -> None:
    packed = gzip.compress(b"a\nb\n") + gzip.compress(b"c\nd\n")[:20]
    assert [(line, raw) for line, raw, _ in read(packed)][:2] == [(1, "a"), (2, "b")]
    assert read(packed)[-1][0] is None


def test_all_before_the_bad_bytes_is_kept_when_gzip_is_corrupt(read: Reader) -> None:
    whole = jsonl([trace_line(i, noise=noise(i)) for i in range(3000)])
    packed = bytearray(gzip.compress(whole))
    at = len(packed) // 2
    packed[at : at + 40] = bytes(byte ^ 0xFF for byte in packed[at : at + 40])
    *kept, damage = read(bytes(packed), "x.gz")
    texts = whole.decode().splitlines()
    sound = sum(raw == text for (_, raw, _), text in zip(kept, texts, strict=False))
    assert sound > 0.45 * len(texts)
    assert damage[0] is None
    assert "gzip file is corrupt" in (damage[2] or "")


def test_every_line_is_kept_when_only_the_checksum_is_wrong(read: Reader) -> None:
    packed = bytearray(gzip.compress(b"a\nb\nc\n"))
    packed[-6] ^= 0xFF
    found = read(bytes(packed))
    assert [raw for _, raw, _ in found] == ["a", "b", "c", None]
    assert "incorrect data check" in (found[-1][2] or "")


def test_garbage_after_the_end_is_damage_when_gzip_is_whole(read: Reader) -> None:
    found = read(gzip.compress(b"a\nb\n") + b"garbage here")
    assert [raw for _, raw, _ in found[:2]] == ["a", "b"]
    assert found[-1][0] is None
    assert "corrupt" in (found[-1][2] or "")


def test_whole_blocks_are_kept_when_zstd_breaks_off(read: Reader) -> None:
    whole = jsonl([trace_line(i, noise=noise(i)) for i in range(3000)])
    packed = zstandard.compress(whole)
    *kept, damage = read(packed[: int(len(packed) * 0.7)], "x.zst")
    assert len(kept) > 1000
    assert [raw for _, raw, _ in kept] == whole.decode().splitlines()[: len(kept)]
    assert (damage[0], damage[2]) == (None, "the zstd file breaks off")


def test_blocks_before_the_bad_bytes_are_kept_when_zstd_is_corrupt(read: Reader) -> None:
    whole = jsonl([trace_line(i, noise=noise(i)) for i in range(6000)])
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(whole))
    at = int(len(packed) * 0.8)
    packed[at : at + 200] = bytes(byte ^ 0xFF for byte in packed[at : at + 200])
    *kept, damage = read(bytes(packed), "x.zst")
    assert len(kept) > 2000
    assert damage[0] is None
    assert "zstd file is corrupt" in (damage[2] or "")


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        (b"{}\n", "x.gz", "named .gz but does not begin as gzip"),
        (b"{}\n", "x.zst", "named .zst but does not begin as zstd"),
        (b"PAR1....", "x.json", "is Parquet"),
        (b"BZh91AY", "x.bz2", "is bzip2"),
    ],
)
def test_file_is_damaged_when_it_is_not_what_it_should_be(
    read: Reader, content: bytes, name: str, reason: str
) -> None:
    [(line, _, fault)] = read(content, name)
    assert line is None
    assert reason in (fault or "")


def test_only_line_feeds_end_lines_when_text_has_other_separators(read: Reader) -> None:
    line = json.dumps({"message_id": "a\u2028b\x85c\x0cd"}, ensure_ascii=False)
    assert read(line.encode() + b"\n")[0][1] == line


def test_long_line_is_set_aside_when_it_exceeds_the_limit() -> None:
    sizes = ReadSizes(chunk_bytes=16, packed_bytes=16, line_bytes=100)
    found = read_by(sizes, b"a\n" + b"x" * 5000 + b"\nb\n" + b"y" * 300)
    assert [line for line, _, _ in found] == [1, 2, 3, 4]
    assert [fault for _, _, fault in found] == [
        None,
        "the line is longer than 100 bytes",
        None,
        "the line is longer than 100 bytes",
    ]
    assert found[2][1] == "b"
    assert set(found[1][1] or "") == {"x"}


@pytest.mark.parametrize("sizes", [USUAL_SIZES, TINY], ids=["one chunk", "tiny chunks"])
def test_line_is_kept_when_just_within_the_limit(sizes: ReadSizes) -> None:
    content = b"x" * 100 + b"\n" + b"y" * 101 + b"\n" + b"z" * 100
    found = read_by(replace(sizes, line_bytes=100), content)
    assert [(line, fault is None) for line, _, fault in found] == [(1, True), (2, False), (3, True)]


def test_any_cut_gives_a_prefix_or_damage_when_file_is_packed(read: Reader) -> None:
    whole = b"".join(b"line %d\n" % i for i in range(50))
    texts = whole.decode().splitlines()
    for packed, name in ((gzip.compress(whole), "a.gz"), (zstandard.compress(whole), "a.zst")):
        for end in range(1, len(packed)):
            *kept, damage = read(packed[:end], name)
            assert [raw for _, raw, _ in kept] == texts[: len(kept)]
            assert damage[0] is None, (name, end)


@given(
    parts=st.lists(st.sampled_from([b"\n", b" ", b"\r", b"a", b"\n\n\n", b"\n \n"]), max_size=60),
    size=st.integers(1, 9),
)
def test_numbers_are_those_of_the_file_whatever_is_blank(parts: list[bytes], size: int) -> None:
    content = b"".join(parts)
    whole = [
        (number, line.decode(), None)
        for number, line in enumerate(content.split(b"\n"), start=1)
        if line.strip()
    ]
    for packed in (content, gzip.compress(content), zstandard.compress(content)):
        assert read_by(ReadSizes(chunk_bytes=size), packed) == whole
