"""Texts that are times, nearly times, or times in a form that few parsers know."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

ODD_TIMES = (
    "2026-11-20T12:00Z", "2026-11-20t12:00:00z", "2026-11-20 12:00:00,123Z", "2026-11-20T12:00z",
    "2026-11-20T12:00:00.123456789+05", "2026-11-20T12:00:00-0530", "2026-11-20T12:00:00+00:00",
    "2026-11-20T12:00+01", "2024-02-29T23:59:59.9Z", "2026-02-29T12:00:00Z", "2026-02-30T12:00Z",
    "2026-11-20T24:00:00Z", "2026-11-20T12:00:60Z", "2026-11-20T12:60:00Z", "2026-13-01T00:00:00Z",
    "2026-11-20T12:00:00", "2026-11-20", "2026-11-20T12Z", "20261120T120000Z", "2026-W47-5T12:00Z",
    "2026-11-20T12:00:00 Europe/Paris", "2026-11-20T12:00:00UTC", " 2026-11-20T12:00:00Z",
    "2026-11-20T12:00:00Z ", "2026-11-20T12:00:00Z\n", "2026-11-20T12:00:00.Z",
    "+2026-11-20T12:00Z",
    "2026-11-20T12:00:00+5:30", "2026-11-20T12:00:00+05:30:10", "2026-11-20T12:00:00\u221205:00",
    "\u0662\u0660\u0662\u0666-11-20T12:00:00Z", "1795176000000",
    "1795176000000.5", "true", "null", "", "now", "Z",
)  # fmt: skip


def time_texts() -> SearchStrategy[str]:
    """Texts of the form of a time: each part right, or just wrong."""
    two = st.integers(0, 61).map("{:02}".format)
    month, day = (st.integers(0, most).map("{:02}".format) for most in (13, 32))
    seconds = st.one_of(st.just(""), two.map(":{}".format))
    fraction = st.one_of(st.just(""), st.from_regex(r"[.,][0-9]{1,9}", fullmatch=True))
    zone = st.one_of(
        st.sampled_from(["Z", "z", "", "+00", "-0000", "+05:30", "+18:00", "-17:59"]),
        st.from_regex(r"[+-][0-9]{2}(:?[0-9]{2})?", fullmatch=True),
    )
    year = st.integers(1970, 9998).map("{:04}".format)
    parts = st.tuples(
        year, st.just("-"), month, st.just("-"), day, st.sampled_from("Tt "),
        two, st.just(":"), two, seconds, fraction, zone,
    )  # fmt: skip
    return parts.map("".join)
