"""Values that engines disagree on, as literals: the rows of the tables are made of them."""

from datetime import UTC, datetime

MIB = 2**20

# One character of every Unicode plane, assigned or not, and the edges of the surrogates.
PLANES = "".join(chr(plane * 0x10000 + 0x1F1E) for plane in range(17))

TEXTS = (
    None, "", " ", "  a  ", "a", "A", "a ", "\t", "\n", "\r\n", "a\nb", "\x00", "a\x00b", "\x7f",
    "é", "e\u0301", "ß", "ẞ", "İ", "\u0131", "ŉ", "ǅ", "Σς", "ﬁ", "\u212b", "Å", "\u0430", "\uff41",
    "٣", "\U0001d7db",
    "\u0085", "\u00a0", "\u200b", "\u2028", "\u3000", "\ufeff", "\ud7ff", "\ue000", "\uffff",
    *map(chr, range(1, 32)), *map(chr, range(127, 160)),
    "\U0010ffff", PLANES, "😀", "👩‍👩‍👧", "\u202eabc", "a\u0300\u0301\u0302" * 9,
    "'", '"', "\\", "\\N", "%", "_", "`", "$1", "(", "[", ".", ";--", "null", "NULL", "NaN",
    "true", "0", "-0", "00", "007", "+7", "1e3", "0x10", "1_000", "99999999999999999999999",
    "9" * 129, "1" + "0" * 128, "xyz" * 9, "x" * MIB, "😀" * (MIB // 4), "a\u0301" * 999,
)  # fmt: skip

# Of one shard: equal lengths, other lengths, none at all.
NUMBERS = (None, "", "0", "9", "10", "99", "100", "9" * 56, "1" + "0" * 56, "9" * 129)

LONGS = (
    None, 0, 1, -1, 2, -2, 7, 10, -10, 59, 60, 61, 100, 127, 128, 255, 32_767, 32_768, 65_535,
    2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32, 2**32 + 1, -(2**32), 2**53 - 1,
    2**53, 2**53 + 1, -(2**53) - 1, 10**18, 2**62, -(2**62), 2**63 - 2, 2**63 - 1, -(2**63) + 1,
    -(2**63),
)  # fmt: skip

INTS = (None, 0, 1, -1, 2, 3, 21, 22, 23, 2**31 - 1, -(2**31))

DOUBLES = (
    None, 0.0, -0.0, 1.0, -1.0, 0.1, 0.1 + 0.2, 1 / 3, 0.5, 1.5, 2.5, -0.5, -1.5, 99.99999, 1e15,
    1e16, 1e17, 2.0**53, 2.0**63, -(2.0**63), 1e300, 5e-324, 1.7976931348623157e308,
    float("inf"), float("-inf"), float("nan"),
)  # fmt: skip


def micros(*moment: int) -> int:
    """The microseconds from the epoch to a moment in UTC."""
    since = datetime(*moment, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)  # type: ignore[misc, arg-type] # 3 to 7 parts
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


INSTANTS_US = (
    None,
    micros(1, 1, 1),
    micros(1, 1, 1, 0, 0, 0, 1),
    micros(1582, 10, 4, 23, 59, 59, 999_999),  # the calendars change
    micros(1582, 10, 15),
    micros(1677, 9, 21, 0, 12, 43),  # nanoseconds of 64 bits begin
    micros(1899, 12, 31, 23, 59, 59, 1),
    micros(1900, 1, 1),
    micros(1969, 12, 31),
    micros(1969, 12, 31, 23, 58, 59, 999_999),
    -1_000_001,
    -1_000_000,
    -999_999,
    -1,
    0,
    1,
    999_999,
    1_000_000,
    micros(1999, 12, 31, 23, 59, 59, 999_999),
    micros(2000, 1, 1),
    micros(2000, 2, 29, 12, 30, 15, 120_000),
    micros(2026, 3, 8, 6, 59, 59, 999_999),  # New York's clocks go forward
    micros(2026, 3, 8, 7),
    micros(2026, 11, 1, 5, 30),  # New York's clocks go back: this half hour and the next are one
    micros(2026, 11, 1, 6, 30),
    micros(2026, 11, 20, 12, 0, 0, 123_456),
    micros(2026, 11, 20, 12, 0, 0, 123_000),
    micros(2038, 1, 19, 3, 14, 8),
    micros(2262, 4, 11, 23, 47, 17),  # they end
    micros(9999, 12, 31),
    micros(9999, 12, 31, 23, 59, 59, 999_999),
)
