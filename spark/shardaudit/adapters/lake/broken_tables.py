"""Which Delta tables no later try will read: the one place that tells it from what passes.

What storage says at the moment of an error proves nothing: a 404 may follow a write, a clean-up may
have come between. So where a table could not be read, and it was no fault of the network, it is
looked at anew, twice; what both looks find is final:
- its folder is a file;
- its log is not whole as the newest version needs it (`log_fault`);
- the newest version, read afresh, names a data file that is not there, or of another length (asked
  of our own tables alone: what lacks in a sink is set aside by name).
Storage gives what was written before it was asked (S3 since 2020), a commit comes behind its
files, and no clean-up takes what the newest version needs: so nothing of it comes by itself.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from shardaudit.adapters.aws.s3 import delta_rs_options
from shardaudit.adapters.files.access_refused import is_refused, one_line, plain_words
from shardaudit.adapters.files.files import FileStore, S3Access, at_once, s3_access, storage_error
from shardaudit.adapters.lake.delta_log import log_fault
from shardaudit.adapters.lake.sink_batches import located
from shardaudit.model.config.parts import Aws
from shardaudit.model.errors import FinalError, LockLostError, RetryableError, ShardauditError

_NETWORK = "Generic S3 error"  # delta-rs' word for what is no answer
_GONE = re.compile(
    r"not found|not[_ ]exist|no such (?:file|key)|is a directory|parquet error|not a parquet file",
    re.IGNORECASE,
)
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


@contextmanager
def warehouse_errors(place: str, aws: Aws) -> Iterator[None]:
    """Turns what is said against reading or writing a table of ours into our errors."""
    try:
        yield
    except (TableNotFoundError, LockLostError):
        raise
    except (OSError, DeltaError, pa.ArrowInvalid) as error:
        if is_refused(error):
            raise storage_error(place, error) from error
        broken = broken_warehouse([place], aws, error)
        if broken is None and isinstance(error, pa.ArrowInvalid):
            raise  # a defect of ours, and no file that is none
        raise broken or WarehouseUnreadableError(place, plain_words(error)) from error


def is_of_gone_files(said: object) -> bool:
    """Whether an engine's words, all of them, may be those of a file that is gone, or cut short."""
    return _GONE.search(one_line(said)) is not None


def broken_warehouse(places: Sequence[str], aws: Aws, said: object) -> BrokenTableError | None:
    """The same for the first of our tables that is broken for good, or not all of its data is."""
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
    """The data files that the newest version names, and that are not there, or cut short."""
    address = place.replace("s3a://", "s3://", 1)
    options = delta_rs_options(Aws(region=access.region, endpoint_url=access.endpoint))
    try:
        named = DeltaTable(address, storage_options=options).get_add_actions(flatten=True)
    except TableNotFoundError:
        return None
    told = pa.table(named)
    paths = [located(place, path) for path in told["path"].to_pylist()]
    found = at_once(FileStore(access).found, paths)
    sizes = zip(paths, found, told["size_bytes"].to_pylist(), strict=True)
    gone, cut = list[str](), list[str]()
    for path, file, size_bytes in sizes:
        if file is None:
            gone.append(path)
        elif file.size_bytes != size_bytes:
            cut.append(path)
    faults = {"are gone": gone, "are of another length": cut}
    return next((_named(what, files) for what, files in faults.items() if files), None)


def _named(what: str, files: list[str]) -> str:
    more = f" and {len(files) - _TOLD} more" if len(files) > _TOLD else ""
    return f"its log names data files that {what}: {', '.join(sorted(files)[:_TOLD])}{more}"
