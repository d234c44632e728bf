"""Memos of what follows from an op's attributes: layers of a model repeat, so most questions were asked before.

A memo outlives the program that filled it. Attributes that hold an array are therefore not kept in one, unless it is a
single number: the constants of a program die with it. Nor are those whose `==` is not equality to the bit: 0.0 is no
-0.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any, Generic, ParamSpec, TypeVar

from gspmd.ir.attrs import Attrs, Dense

P = ParamSpec("P")
R = TypeVar("R")


class Memo(Generic[P, R]):
    """A function whose last argument is an op's attributes, memoised where these may be kept and compared."""

    __slots__ = ("_function", "_remembered")

    def __init__(self, function: Callable[P, R], maxsize: int) -> None:
        self._function = function
        self._remembered = lru_cache(maxsize)(function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        ask = self._remembered if memoisable(args[-1]) else self._function
        return ask(*args, **kwargs)

    def cache_info(self) -> Any:
        """Hits and misses so far, as `functools.lru_cache` counts them."""
        return self._remembered.cache_info()


def memo_by_attrs(maxsize: int) -> Callable[[Callable[P, R]], Memo[P, R]]:
    """Memoise a function whose last argument is an op's attributes."""
    return lambda function: Memo(function, maxsize)


def memoisable(attrs: object) -> bool:
    """Whether attributes may be the key of a memo: compared to the bit, and small."""
    arrays = _arrays(attrs.__class__)
    return arrays is not None and (not arrays or all(_is_number(getattr(attrs, name)) for name in arrays))


def _is_number(held: object) -> bool:
    return isinstance(held, Dense) and held.array.size == 1


@cache
def _arrays(kind: type[object]) -> tuple[str, ...] | None:
    """The fields of an attribute class that hold arrays; None for a class that is not compared to the bit."""
    return _telling(kind, "Dense") if compares_bits(kind) else None


@cache
def compares_bits(kind: type[object]) -> bool:
    """Whether `==` on attributes of a class is equality to the bit: no field of theirs may hold a float."""
    return not _telling(kind, "float|complex|Any|object")


def _telling(kind: type[object], words: str) -> tuple[str, ...]:
    """The fields of an attribute class whose annotation has one of some words."""
    assert issubclass(kind, Attrs)
    return tuple(f.name for f in fields(kind) if re.search(words, str(f.type)))
