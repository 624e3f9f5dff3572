"""A small file that unpacks to very much, of which nothing is of use."""

import gzip
import io
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
import zstandard

from shardaudit.adapters.files import lines


def unrolled(group: lines.Lines) -> Iterator[tuple[int | None, bytes, str | None]]:
    for number, line in zip(group.numbers, group.texts, strict=True):
        yield number, line, group.fault


@pytest.mark.slow
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize(("blank", "many"), [(b"\n", 25_000_000), (b" ", 100_000_000)])
def test_file_of_blanks_takes_no_memory_however_well_they_were_packed(
    pack: Callable[[bytes], bytes], blank: bytes, many: int
) -> None:
    """100 MB of line feeds are 3 kB of zstd, as many empty lines 3 GB: a quarter shows it, too."""
    content = pack(b"one\n" + blank * many + b"\ntwo")
    tracemalloc.start()
    try:
        given = lines.line_groups(io.BytesIO(content), "x.jsonl")
        found = [
            (number, line, fault) for group in given for number, line, fault in unrolled(group)
        ]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    last = 3 + (many if blank == b"\n" else 0)
    assert (found[0], found[-1]) == ((1, b"one", None), (last, b"two", None))
    assert [fault for _, _, fault in found[1:-1]] == (
        [] if blank == b"\n" else ["the line is longer than 8388608 bytes"]
    )
    assert peak < 250 * 2**20
