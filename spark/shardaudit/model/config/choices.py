"""The closed choices of the configuration, and what a name in it can be."""

from enum import StrEnum

# Also what Kinesis allows in a stream's name: harmless in paths, SQL, TOML and batch ids.
NAME_PATTERN = r"^[A-Za-z0-9_.-]{1,128}$"


class EngineName(StrEnum):
    """What runs the PySpark program."""

    EMBEDDED = "embedded"
    SPARK = "spark"


class TraceFormat(StrEnum):
    """How a producer writes its log."""

    JSON = "json"
    PARQUET = "parquet"


class SinkFormat(StrEnum):
    """What the sink is."""

    DELTA = "delta"
    PARQUET = "parquet"


class PositionSource(StrEnum):
    """Who says how far the consumer is."""

    SINK = "sink"
    KCL = "kcl"
    FILE = "file"


class BackfillMode(StrEnum):
    """What a backfill does with the records that it read again."""

    MERGE = "merge"
    APPEND = "append"
    REPUBLISH = "republish"
    REQUEST = "request"

    @property
    def hands_over(self) -> bool:
        """Whether somebody else writes the sink: what comes of it is seen by a later audit."""
        return self in {BackfillMode.REPUBLISH, BackfillMode.REQUEST}


class Approval(StrEnum):
    """When a person must approve a backfill."""

    ALWAYS = "always"
    AUTO = "auto"
