"""A function of the user's own, named in the configuration as `package.module:function`."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from shardaudit.model.errors import ConfigError

# What a record's content means: names and values that JSON can hold, times as datetimes.
Decode = Callable[[bytes], Any]  # Any: the user's


def decoder(text: str) -> Decode:
    """The function that turns a record's content into the message's fields.

    Raises:
        ConfigError: it cannot be imported here, or is no function.
    """
    module, _, name = text.partition(":")
    wanted = "package.module:function, to be imported on the driver and on every worker"
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError("backfill.decoder", f"{text} ({error})", wanted) from error
    if not callable(function):
        raise ConfigError("backfill.decoder", f"{text}, which is no function", wanted)
    return function  # type: ignore[no-any-return] # the user's
