"""What a Delta table may ask of its readers; what else one asks is refused, never read half."""

import re
from collections.abc import Collection, Iterable

from shardaudit.adapters.files.files import storage_error
from shardaudit.adapters.files.refused import plain_words
from shardaudit.model.errors import ConfigError

# By the names of Delta's protocol, "Table Features".
READABLE = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    # Columns of such a type are never among those that are read.
    "variantType",
    "variantType-preview",
    "variantShredding-preview",
}
# What delta-rs (1.6) says of a table that it does not open for its features.
_UNKNOWN = re.compile(r"Feature '(?P<feature>[^']+)' is not supported")
_CATALOG = re.compile(r"catalog-managed")
_VERSION = re.compile(r"Unsupported minimum reader version (?P<version>[0-9]+)")


class TableFeatureError(ConfigError):
    """A table asks something of its readers that shardaudit cannot do."""

    def __init__(self, path: str, features: Collection[str]) -> None:
        super().__init__(
            f"sink.path {path}",
            f"a Delta table that asks {', '.join(sorted(features))} of its readers",
            f"one that asks nothing but {', '.join(sorted(READABLE))}: take the feature away with "
            "ALTER TABLE … DROP FEATURE, or give a table without it",
        )


def check_features(path: str, features: Iterable[str]) -> None:
    """Returns when a table that asks these features of its readers can be read.

    Raises:
        TableFeatureError: it cannot.
    """
    unknown = set(features) - READABLE
    if unknown:
        raise TableFeatureError(path, unknown)


def opening_error(path: str, error: Exception) -> Exception:
    """Our error for one that delta-rs raised when it opened a table, to be raised from it."""
    said = plain_words(error)
    if found := _UNKNOWN.search(said):
        return TableFeatureError(path, [found["feature"]])
    if _CATALOG.search(said):
        return TableFeatureError(path, ["catalogManaged"])
    if found := _VERSION.search(said):
        return TableFeatureError(path, [f"reader version {found['version']}"])
    return storage_error(path, said)
