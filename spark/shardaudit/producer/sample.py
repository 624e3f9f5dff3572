"""Which ids are traced: the rule of `columns/instants.in_sample`, without an engine."""

from struct import iter_unpack

from shardaudit.model.sampling import SAMPLED_PARTS

_SEED = 42  # Spark's
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MASK, _SIGN = 2**64 - 1, 2**63
_STRIPE = 32  # bytes


def is_sampled(message_id: str, sample_rate: float) -> bool:
    """Whether an id belongs to the share: the same here, in the sink and in every audit."""
    if sample_rate == 1:
        return True
    unsigned = xxh64(message_id.encode(errors="surrogatepass"), _SEED)
    signed = unsigned - 2**64 if unsigned & _SIGN else unsigned
    return signed % SAMPLED_PARTS < round(sample_rate * SAMPLED_PARTS)


def xxh64(content: bytes, seed: int) -> int:
    """XXH64 of some bytes, unsigned.

    Source: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
    """
    rest, size = content, len(content)
    hashed = (seed + _P5) & _MASK
    if size >= _STRIPE:
        stripes = size - size % _STRIPE
        hashed, rest = _striped(content[:stripes], seed), content[stripes:]
    hashed = (hashed + size) & _MASK
    words = len(rest) - len(rest) % 8
    for (word,) in iter_unpack("<Q", rest[:words]):
        # _turned and _round, spelled out: ids are mostly words.
        mixed = word * _P2 & _MASK
        hashed ^= (mixed << 31 | mixed >> 33) * _P1 & _MASK
        hashed = ((hashed << 27 | hashed >> 37) * _P1 + _P4) & _MASK
    rest = rest[words:]
    if len(rest) >= 4:  # noqa: PLR2004 - half a word
        hashed ^= int.from_bytes(rest[:4], "little") * _P1 & _MASK
        hashed = (_turned(hashed, 23) * _P2 + _P3) & _MASK
        rest = rest[4:]
    for byte in rest:
        hashed = _turned(hashed ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    hashed = (hashed ^ hashed >> 33) * _P2 & _MASK
    hashed = (hashed ^ hashed >> 29) * _P3 & _MASK
    return hashed ^ hashed >> 32


def _striped(content: bytes, seed: int) -> int:
    lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
    for start in range(0, len(content), 8):
        lane = start // 8 % 4
        lanes[lane] = _round(lanes[lane], int.from_bytes(content[start : start + 8], "little"))
    turns = (1, 7, 12, 18)
    hashed = sum(_turned(lane, by) for lane, by in zip(lanes, turns, strict=True)) & _MASK
    for lane in lanes:
        hashed = ((hashed ^ _round(0, lane)) * _P1 + _P4) & _MASK
    return hashed


def _round(lane: int, word: int) -> int:
    return _turned((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _turned(word: int, by: int) -> int:
    return (word << by | word >> (64 - by)) & _MASK
