"""Maxima and minima that order signed zeros as IEEE 754-2019 and XLA do: -0 is less than +0.

NumPy's take the second operand of a tie, whichever zero it is. So only a -0 among the operands can do harm, and a pass
over the smaller of them, which for a constant or a bias costs nothing, tells that there is none.
"""

from __future__ import annotations

import numpy as np

from gspmd.kernels.finite import Array, signed_bits


def has_negative_zero(x: Array) -> bool:
    """Whether an element is -0.0; False for dtypes that are not NumPy's own floats. Repeated elements count once."""
    if x.dtype.kind != "f" or not x.size:
        return False
    bits = signed_bits(_distinct(x))
    return bool(bits.min() == np.iinfo(bits.dtype).min)


def extremum(operation: np.ufunc, x: Array, y: Array, out: Array | None = None) -> Array:
    """`operation`, NumPy's maximum or minimum, of two arrays; `out` may be one of them."""
    if x.dtype.kind != "f":
        return np.asarray(operation(x, y, out=out))
    greater = operation is np.maximum
    # A -0 does harm in a maximum's second operand and a minimum's first: let that be the one with less to look at.
    if (_distinct(x).size < _distinct(y).size) == greater:
        x, y = y, x
    if not has_negative_zero(y if greater else x):
        return np.asarray(operation(x, y, out=out))
    ties = np.asarray((x == 0) & (y == 0))
    zeros = np.add(x, y) if greater else -np.subtract(-x, y)  # of two zeros the right one
    out = np.asarray(operation(x, y, out=out))
    np.copyto(out, zeros, where=ties)
    return out


def reduce(operation: np.ufunc, x: Array, axes: tuple[int, ...], initial: object) -> Array:
    """The greatest or least along axes that disappear."""
    out = np.asarray(operation.reduce(x, axis=axes, dtype=x.dtype, initial=initial))
    if x.dtype.kind == "f" and (ties := out == 0).any() and has_negative_zero(x):
        np.copyto(out, _zeros(operation, np.asarray(_wins(operation, x).any(axis=axes)), x), where=ties)
    return out


def accumulate(operation: np.ufunc, x: Array, axis: int) -> Array:
    """The greatest or least of each element and all before it."""
    out = operation.accumulate(x, axis=axis, dtype=x.dtype)
    if has_negative_zero(x):
        seen = np.logical_or.accumulate(_wins(operation, x), axis=axis)
        np.copyto(out, _zeros(operation, seen, x), where=out == 0)
    return out


def update(operation: np.ufunc, table: Array, rows: Array, values: Array) -> None:
    """Combine each value into the element of a 1-d table that `rows` names, in place."""
    if table.dtype.kind != "f":
        operation.at(table, rows, values)
        return
    won = rows[_wins(operation, values) | _wins(operation, table[rows])]
    operation.at(table, rows, values)
    table[won[table[won] == 0]] = _zeros(operation, np.asarray(True), table)


def _distinct(x: Array) -> Array:
    """The array without the repetitions that a broadcast made."""
    return x[tuple(slice(None) if step or not n else slice(1) for n, step in zip(x.shape, x.strides, strict=True))]


def _wins(operation: np.ufunc, x: Array) -> Array:
    """Where an element is the zero that the other zero gives way to."""
    return np.asarray((x == 0) & (np.signbit(x) == (operation is np.minimum)))


def _zeros(operation: np.ufunc, won: Array, x: Array) -> Array:
    """The zeros where the winning one was met, or not."""
    positive = np.asarray(won == (operation is np.maximum))
    return np.where(positive, 0.0, -0.0).astype(x.dtype)
