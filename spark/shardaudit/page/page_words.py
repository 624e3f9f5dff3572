"""The words of the page: what each verdict, number and state means, in a sentence for a hover."""

from enum import StrEnum

from shardaudit.model.verdict import Verdict

UNKNOWN = "unknown"  # no published audit looked at it
NO_SHARD = ""  # no shard lived there

# Told apart without colours: a letter each, and some a pattern, in `templates/`.
LETTERS = {
    Verdict.SILENT: "X",
    Verdict.STALLED: "S",
    Verdict.MIXED: "M",
    Verdict.LOSS: "L",
    Verdict.DUPLICATION: "D",
    Verdict.INCONCLUSIVE: "I",
    Verdict.UNTRACED: "U",
    Verdict.PENDING: "P",
    Verdict.OK: "·",
}
UNKNOWN_LETTER = "?"

MEANINGS = {
    Verdict.SILENT.value: "the shard produced, and nothing of it ever landed",
    Verdict.STALLED.value: "its consumer stands still: messages wait and will be lost",
    Verdict.MIXED.value: "messages are missing, and others landed more than once",
    Verdict.LOSS.value: "acknowledged messages were passed over and are not in the sink",
    Verdict.DUPLICATION.value: "messages landed more than once",
    Verdict.INCONCLUSIVE.value: "too little was traced or read to say anything",
    Verdict.UNTRACED.value: "messages landed without a trace, or on another shard",
    Verdict.PENDING.value: "messages are on their way: too early to say",
    Verdict.OK.value: "each acknowledged message landed exactly once",
    UNKNOWN: "no published audit looked at this time: nothing is known",
}

MEANINGS_OF_WAYS = {
    Verdict.MIXED.value: "messages were lost on this hop, and others doubled",
    Verdict.LOSS.value: "messages were lost on this hop",
    Verdict.DUPLICATION.value: "messages were doubled on this hop",
    Verdict.INCONCLUSIVE.value: "messages were lost on this hop, or on another one",
    Verdict.OK.value: "nothing that was found was lost or doubled on this hop",
    UNKNOWN: "the audit is from before hops were counted",
}


class Metric(StrEnum):
    """What the map shows."""

    VERDICT = "verdict"
    LOSS = "loss"
    DUPLICATION = "duplication"
    P50 = "p50"
    P99 = "p99"
    SKEW = "skew"

    @property
    def is_latency(self) -> bool:
        """Whether the ledger has to be read for it."""
        return self in {Metric.P50, Metric.P99}


METRICS = {
    Metric.VERDICT: ("Verdict", "the worst verdict of the cells in a place"),
    Metric.LOSS: ("Loss", "missing messages ÷ acknowledged messages"),
    Metric.DUPLICATION: ("Duplication", "rows beyond the first of a message ÷ rows in the sink"),
    Metric.P50: ("Latency p50", "half of the rows landed within this time after sending"),
    Metric.P99: ("Latency p99", "99 of 100 rows landed within this time after sending"),
    Metric.SKEW: (
        "Skew",
        "how much older a shard's newest message was than the newest of all shards at work, at "
        "most, when the watch looked in that time",
    ),
}

# The upper ends of a metric's levels; the last level is open. Level 0 is the calm one.
_RATES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
_RATE_NAMES = ("none", "≤ 0.01 %", "≤ 0.1 %", "≤ 1 %", "≤ 10 %", "more")
_LATENCIES = (4.0, 32.0, 256.0, 2048.0, 16384.0)  # seconds: ends of the ledger's bins
_LATENCY_NAMES = ("≤ 4 s", "≤ 32 s", "≤ 4 min", "≤ 34 min", "≤ 5 h", "more")
_SKEWS = (60.0, 300.0, 1800.0, 7200.0, 21600.0)  # seconds
_SKEW_NAMES = ("≤ 1 min", "≤ 5 min", "≤ 30 min", "≤ 2 h", "≤ 6 h", "more")
LEVELS = {
    Metric.LOSS: _RATES,
    Metric.DUPLICATION: _RATES,
    Metric.P50: _LATENCIES,
    Metric.P99: _LATENCIES,
    Metric.SKEW: _SKEWS,
}
LEVEL_NAMES = {
    Metric.LOSS: _RATE_NAMES,
    Metric.DUPLICATION: _RATE_NAMES,
    Metric.P50: _LATENCY_NAMES,
    Metric.P99: _LATENCY_NAMES,
    Metric.SKEW: _SKEW_NAMES,
}
NOT_KNOWN = {
    Metric.P50: "unknown: nothing landed",
    Metric.P99: "unknown: nothing landed",
    Metric.SKEW: "unknown: no watch looked, or the shard was idle or closed",
}

MAP_COUNTS = {
    "sent": "distinct messages that Kinesis acknowledged",
    "landed": "rows in the sink",
    "missing": "acknowledged messages that are not in the sink",
    "pending": "messages that may still arrive",
    "duplicated": "messages that landed more than once",
    "extra_rows": "rows beyond the first of a message",
    "untraced": "messages in the sink without a trace",
}

GATE_LOOKS = {
    "passed": ("✓", "all of its checks hold"),
    "warned": (
        "!",
        "a check does not hold that only warns: the audit is published, with this note",
    ),
    "failed": ("✕", "a check does not hold: nothing of the audit is published"),
    "broken": ("?", "a check could not be made, nobody knows about the data: nothing is published"),
}

WHERE = {"missing": "never reached", "duplicated": "doubled after"}  # what a location says
STREAM_NUMBERS = {
    "verdict": "what the newest audit of the whole window says",
    "coverage": "messages in the sink that have a trace ÷ all messages in the sink",
    "budget": "of the messages that may be lost in this calendar month (UTC)",
    "watermark": "until then every shard is complete, whatever the last audit's window",
    "findings": "messages with something wrong that is not settled yet",
    "deadline": "the first open missing message leaves the stream then",
    "level": "the most urgent shard of the newest watch",
    "read": "when something new was last read, of traces and sink: whichever is longer ago",
    "audited": "when the newest published audit looked",
    "engine": "what ran that audit: it decides how long one takes, not what it finds",
}
