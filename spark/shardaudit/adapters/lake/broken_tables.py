"""Which Delta tables no later try will read: the one place that tells it from what passes.

What storage says at the moment of an error proves nothing: a 404 may follow a write, a clean-up may
have come between. So where a table could not be read, and it was no fault of the network, it is
looked at anew, twice; what both looks find is final:
- its folder is a file;
- its log is not whole as the newest version needs it (`log_fault`);
- the newest version, read afresh, names a data file that is not there (asked of our own tables
  alone: what lacks in a sink is set aside by name).
Storage gives what was written before it was asked (S3 since 2020), a commit comes behind its
files, and no clean-up takes what the newest version needs: so nothing of it comes by itself.
"""

import re
from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from shardaudit.adapters.aws.s3 import delta_rs_options
from shardaudit.adapters.files.access_refused import is_refused, one_line, plain_words
from shardaudit.adapters.files.files import FileStore, S3Access, at_once, s3_access, storage_error
from shardaudit.adapters.lake.delta_log import log_fault
from shardaudit.adapters.lake.sink_batches import located
from shardaudit.model.config.parts import Aws
from shardaudit.model.errors import FinalError, RetryableError, ShardauditError

_NETWORK = "Generic S3 error"  # delta-rs' word for what is no answer
_GONE = re.compile(r"not found|not[_ ]exist|no such (?:file|key)|is a directory", re.IGNORECASE)
_TOLD = 3


class WarehouseUnreadableError(RetryableError, OSError):
    """The warehouse did not answer, or not properly."""

    def __init__(self, place: str, said: object) -> None:
        super().__init__(f"{place} does not answer as it should: {said}")


class BrokenTableError(FinalError, OSError):
    """A Delta table cannot be read, and no other try will. `found`: what is wrong with it."""

    def __init__(self, place: str, found: str) -> None:
        super().__init__(
            f"Delta table {place} is broken, and stays so: {found}; bring it back from a backup "
            "(or an earlier version of the bucket's object)"
        )


def broken_table(place: str, access: S3Access, said: object) -> BrokenTableError | None:
    """Our error for a table of somebody's that is broken for good; None: it may pass.

    Input:
        said: the error that reading it gave.
    """
    return _broken(place, access, said, with_data=False)


def warehouse_error(place: str, aws: Aws, error: Exception) -> Exception:
    """Our error for one that reading or writing a table of ours gave, to be raised from it."""
    if is_refused(error):
        return storage_error(place, error)
    broken = broken_warehouse([place], aws, error)
    return broken or WarehouseUnreadableError(place, plain_words(error))


def is_of_gone_files(said: object) -> bool:
    """Whether an engine's words, all of them, may be those of a file that is not there."""
    return _GONE.search(one_line(said)) is not None


def broken_warehouse(places: Sequence[str], aws: Aws, said: object) -> BrokenTableError | None:
    """The same for the first of our tables that is broken for good, or lacks a data file."""
    access = s3_access(aws)
    each = (_broken(place, access, said, with_data=True) for place in places)
    return next((error for error in each if error is not None), None)


def _broken(
    place: str, access: S3Access, said: object, *, with_data: bool
) -> BrokenTableError | None:
    if _NETWORK in str(said):
        return None
    try:
        found, again = (_fault(place, access, with_data=with_data) for _ in range(2))
    except (ShardauditError, OSError, DeltaError):  # the error at hand is the one to tell
        return None
    return BrokenTableError(place, found) if found is not None and found == again else None


def _fault(place: str, access: S3Access, *, with_data: bool) -> str | None:
    if FileStore(access).found(place) is not None:
        return "a file is where its folder should be"
    found = log_fault(place, access)
    return _data_fault(place, access) if found is None and with_data else found


def _data_fault(place: str, access: S3Access) -> str | None:
    """The data files that the newest version names, and that are not there."""
    address = place.replace("s3a://", "s3://", 1)
    options = delta_rs_options(Aws(region=access.region, endpoint_url=access.endpoint))
    try:
        named = DeltaTable(address, storage_options=options).get_add_actions(flatten=True)
    except TableNotFoundError:
        return None
    paths = [located(place, path) for path in pa.table(named)["path"].to_pylist()]
    found = at_once(FileStore(access).found, paths)
    gone = sorted(path for path, file in zip(paths, found, strict=True) if file is None)
    if not gone:
        return None
    more = f" and {len(gone) - _TOLD} more" if len(gone) > _TOLD else ""
    return f"its log names data files that are gone: {', '.join(gone[:_TOLD])}{more}"
