"""A mutant in the place of its original, for as long as a block lasts."""

import functools
import importlib
import types
from collections.abc import Iterator
from contextlib import contextmanager

from tests.mutants.mutations import Mutant, mutated


@contextmanager
def in_place(mutant: Mutant) -> Iterator[None]:
    """Runs the block with the function's code exchanged, wherever it was imported."""
    function = original(mutant)
    code = function.__code__
    function.__code__ = _code(mutant)
    try:
        yield
    finally:
        function.__code__ = code


def original(mutant: Mutant) -> types.FunctionType:
    """The function as the product has it, without what decorates it."""
    found: object = importlib.import_module(mutant.module)
    for name in mutant.function.split("."):
        found = vars(found)[name]
        if isinstance(found, property) and found.fget is not None:
            found = found.fget
        elif isinstance(found, functools.cached_property):
            found = found.func
        elif isinstance(found, classmethod | staticmethod):
            found = found.__func__
        found = getattr(found, "__wrapped__", found)
    if not isinstance(found, types.FunctionType):
        raise TypeError(f"{mutant.name}: {found!r} is no function")
    return found


def _code(mutant: Mutant) -> types.CodeType:
    pending = [compile(mutated(mutant), f"<mutant {mutant.name}>", "exec")]
    while pending:
        code = pending.pop()
        if code.co_qualname == mutant.function:
            return code
        pending += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    raise LookupError(mutant.name)
