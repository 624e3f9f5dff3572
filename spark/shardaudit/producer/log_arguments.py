"""What a trace log is opened with, checked while a person looks on: nothing fails afterwards."""

from collections.abc import Mapping

from shardaudit.model.errors import ConfigError
from shardaudit.model.sampling import LEAST_RATE


def check_arguments(
    call: str,
    *,
    texts: Mapping[str, object],
    sources: Mapping[str, object],
    sample_rate: object,
) -> None:
    """Refuses what no log can come of.

    Input:
        call: the function, as the error names it.
        texts, sources: arguments by their names; sources say where an id or a time is.
        sample_rate: as a fraction.

    Raises:
        ConfigError: an argument cannot be used.
    """
    for name, value in texts.items():
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{call}: {name}", value, "a text")
    for name, source in sources.items():
        if not (source is None or callable(source) or (isinstance(source, str) and source)):
            raise ConfigError(f"{call}: {name}", source, "a path in the payload, or a function")
    share = sample_rate if isinstance(sample_rate, int | float) else 0
    if isinstance(sample_rate, bool) or not LEAST_RATE <= share <= 1:
        wanted = f"a share, at least {LEAST_RATE:f}, at most 1"
        raise ConfigError(f"{call}: sample_rate", sample_rate, wanted)
