"""Formulas on tensors as Python expressions, for gradients: `ct * (1 - y * y)` emits the ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gspmd.ir.attrs import ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DType
from gspmd.ir.graph import Value
from gspmd.ops import layout, literal
from gspmd.ops.elementwise import arithmetic, conversion


@dataclass(frozen=True, slots=True)
class Expression:
    """A value under construction; Python numbers take its dtype and shape."""

    builder: Builder
    value: Value

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.value.type.dtype

    def number(self, number: complex) -> Expression:
        """A tensor of this one's type whose elements are all the number."""
        return Expression(self.builder, literal.full(self.builder, number, self.dtype, self.value.type.shape))

    def apply(self, op: Any, *others: Expression, **attrs: Any) -> Expression:
        """An op with this value as its first operand."""
        return Expression(self.builder, op(self.builder, self.value, *(o.value for o in others), **attrs))

    def compare(self, direction: str, other: Expression | complex) -> Expression:
        """Where the relation holds."""
        return self.apply(arithmetic.COMPARE, self._tensor(other), direction=direction)

    def select(self, on_true: Expression, on_false: Expression) -> Expression:
        """`on_true` where this predicate holds, else `on_false`."""
        return self.apply(arithmetic.SELECT, on_true, on_false)

    def convert(self, dtype: DType) -> Expression:
        """In another element type."""
        return self if dtype == self.dtype else self.apply(conversion.CONVERT, dtype=dtype)

    def spread(self, shape: tuple[int, ...]) -> Expression:
        """This scalar repeated to a shape."""
        return self.apply(layout.BROADCAST_IN_DIM, shape=ResultShape(shape), dims=())

    def _tensor(self, other: Expression | complex) -> Expression:
        return other if isinstance(other, Expression) else self.number(other)

    def __neg__(self) -> Expression:
        return self.apply(arithmetic.NEGATE)

    def __add__(self, other: Expression | complex) -> Expression:
        return self.apply(arithmetic.ADD, self._tensor(other))

    def __sub__(self, other: Expression | complex) -> Expression:
        return self.apply(arithmetic.SUBTRACT, self._tensor(other))

    def __rsub__(self, other: complex) -> Expression:
        return self.number(other) - self

    def __mul__(self, other: Expression | complex) -> Expression:
        return self.apply(arithmetic.MULTIPLY, self._tensor(other))

    def __truediv__(self, other: Expression | complex) -> Expression:
        return self.apply(arithmetic.DIVIDE, self._tensor(other))

    def __mod__(self, other: Expression | complex) -> Expression:
        return self.apply(arithmetic.REMAINDER, self._tensor(other))
