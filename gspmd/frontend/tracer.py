"""`Tracer`: a value of a program under construction, as the user's function sees it.

It behaves like an array as far as a value without numbers can. Operators and methods are looked up in a table that the
package fills once, when it is imported (`bind`), because they are built on this class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from gspmd.frontend.scope import Scope, current_scope, library_error, trace_error
from gspmd.ir.dtypes import DType
from gspmd.ir.graph import Region, Value
from gspmd.ir.location import user_location
from gspmd.ir.opdef import OpDef
from gspmd.ir.types import TensorType

_TABLE: dict[str, Callable[..., Any]] = {}


def bind(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Give the operators and methods of tracers their meaning."""
    _TABLE.update(functions)


class Tracer:
    """A traced array: `.shape`, `.dtype`, operators, indexing, and the methods of NumPy arrays that need no numbers."""

    __slots__ = ("scope", "value")
    value: Value
    scope: Scope

    def __init__(self, value: Value, scope: Scope) -> None:
        self.value = value
        self.scope = scope

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def type(self) -> TensorType:
        """The tensor type, with its sharding if it is annotated."""
        return self.value.type

    @property
    def shape(self) -> tuple[int, ...]:
        """The global shape."""
        return self.value.type.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.value.type.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.value.type.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.value.type.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.value.type.nbytes

    @property
    def T(self) -> Tracer:
        """The dimensions in reverse order."""
        return _TABLE["transpose"](self)

    @property
    def mT(self) -> Tracer:
        """The last two dimensions swapped."""
        return _TABLE["matrix_transpose"](self)

    @property
    def real(self) -> Tracer:
        """The real part."""
        return _TABLE["real"](self)

    @property
    def imag(self) -> Tracer:
        """The imaginary part."""
        return _TABLE["imag"](self)

    @property
    def at(self) -> Any:
        """Functional updates: `x.at[index].set(y)`, `.add`, `.mul`, `.max`, `.min` return a changed copy."""
        return _TABLE["at"](self)

    def __repr__(self) -> str:
        return f"Tracer({self.value.type.text()})"

    # -- methods ------------------------------------------------------------------------------------------------------

    def astype(self, dtype: Any, copy: bool = True) -> Tracer:
        """The values converted to a dtype."""
        return _TABLE["astype"](self, dtype)

    def reshape(self, *shape: Any) -> Tracer:
        """The elements in row-major order under another shape; one size may be -1."""
        return _TABLE["reshape"](self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Tracer:
        """The dimensions in another order, by default reversed."""
        order = None if not axes else axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return _TABLE["transpose"](self, order)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """NumPy's methods that are functions of gspmd.numpy too: `x.sum(axis=0)`, `x.ravel()`, `x.clip(0, 1)`."""
        if name in _METHODS:
            function = _TABLE[name]
            return lambda *args, **keywords: function(self, *args, **keywords)
        raise AttributeError(f"a traced array has no attribute {name!r}")

    # -- operators ----------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Tracer:
        return _TABLE["add"](self, other)

    def __radd__(self, other: Any) -> Tracer:
        return _TABLE["add"](other, self)

    def __sub__(self, other: Any) -> Tracer:
        return _TABLE["subtract"](self, other)

    def __rsub__(self, other: Any) -> Tracer:
        return _TABLE["subtract"](other, self)

    def __mul__(self, other: Any) -> Tracer:
        return _TABLE["multiply"](self, other)

    def __rmul__(self, other: Any) -> Tracer:
        return _TABLE["multiply"](other, self)

    def __truediv__(self, other: Any) -> Tracer:
        return _TABLE["divide"](self, other)

    def __rtruediv__(self, other: Any) -> Tracer:
        return _TABLE["divide"](other, self)

    def __floordiv__(self, other: Any) -> Tracer:
        return _TABLE["floor_divide"](self, other)

    def __rfloordiv__(self, other: Any) -> Tracer:
        return _TABLE["floor_divide"](other, self)

    def __mod__(self, other: Any) -> Tracer:
        return _TABLE["remainder"](self, other)

    def __rmod__(self, other: Any) -> Tracer:
        return _TABLE["remainder"](other, self)

    def __divmod__(self, other: Any) -> tuple[Tracer, Tracer]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Tracer, Tracer]:
        return other // self, other % self

    def __round__(self, digits: int = 0) -> Tracer:
        return _TABLE["round"](self, digits)

    def __pow__(self, other: Any) -> Tracer:
        return _TABLE["power"](self, other)

    def __rpow__(self, other: Any) -> Tracer:
        return _TABLE["power"](other, self)

    def __matmul__(self, other: Any) -> Tracer:
        return _TABLE["matmul"](self, other)

    def __rmatmul__(self, other: Any) -> Tracer:
        return _TABLE["matmul"](other, self)

    def __and__(self, other: Any) -> Tracer:
        return _TABLE["bitwise_and"](self, other)

    def __rand__(self, other: Any) -> Tracer:
        return _TABLE["bitwise_and"](other, self)

    def __or__(self, other: Any) -> Tracer:
        return _TABLE["bitwise_or"](self, other)

    def __ror__(self, other: Any) -> Tracer:
        return _TABLE["bitwise_or"](other, self)

    def __xor__(self, other: Any) -> Tracer:
        return _TABLE["bitwise_xor"](self, other)

    def __rxor__(self, other: Any) -> Tracer:
        return _TABLE["bitwise_xor"](other, self)

    def __lshift__(self, other: Any) -> Tracer:
        return _TABLE["bitwise_left_shift"](self, other)

    def __rlshift__(self, other: Any) -> Tracer:
        return _TABLE["bitwise_left_shift"](other, self)

    def __rshift__(self, other: Any) -> Tracer:
        return _TABLE["bitwise_right_shift"](self, other)

    def __rrshift__(self, other: Any) -> Tracer:
        return _TABLE["bitwise_right_shift"](other, self)

    def __eq__(self, other: Any) -> Tracer:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _TABLE["equal"](self, other)

    def __ne__(self, other: Any) -> Tracer:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _TABLE["not_equal"](self, other)

    def __lt__(self, other: Any) -> Tracer:
        return _TABLE["less"](self, other)

    def __le__(self, other: Any) -> Tracer:
        return _TABLE["less_equal"](self, other)

    def __gt__(self, other: Any) -> Tracer:
        return _TABLE["greater"](self, other)

    def __ge__(self, other: Any) -> Tracer:
        return _TABLE["greater_equal"](self, other)

    def __neg__(self) -> Tracer:
        return _TABLE["negative"](self)

    def __pos__(self) -> Tracer:
        return self

    def __abs__(self) -> Tracer:
        return _TABLE["abs"](self)

    def __invert__(self) -> Tracer:
        return _TABLE["bitwise_invert"](self)

    def __getitem__(self, index: Any) -> Tracer:
        return _TABLE["getitem"](self, index)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise trace_error(
            "traced arrays are immutable, so x[index] = y cannot be traced",
            rule="trace.C4",
            fix="write x = x.at[index].set(y)",
        )

    __hash__ = object.__hash__

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a traced array without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tracer]:
        if not self.shape:
            raise TypeError("iteration over a traced array without dimensions")
        return (self[i] for i in range(self.shape[0]))

    # -- what needs numbers -------------------------------------------------------------------------------------------

    def _no_number(self, what: str, fix: str) -> NoReturn:
        raise trace_error(
            f"{what} needs the value of a traced array of type {self.type.text()}, which is only known when the "
            "program runs",
            rule="trace.C5",
            fix=fix,
        )

    def __bool__(self) -> bool:
        self._no_number("a Python condition", "use gspmd.numpy.where or gspmd.cond instead of if, while, and, or, not")

    def __int__(self) -> int:
        self._no_number("int()", "use .astype('i32')")

    def __float__(self) -> float:
        self._no_number("float()", "use .astype('f32')")

    def __complex__(self) -> complex:
        self._no_number("complex()", "use .astype('c64')")

    def __index__(self) -> int:
        self._no_number(
            "use as a Python index or size",
            "index with x[i] or gspmd.numpy.dynamic_slice, loop with gspmd.fori_loop; sizes must be known numbers",
        )

    def __format__(self, spec: str) -> str:
        if spec:
            self._no_number(f"the format {spec!r}", "return the value from the traced function and print it outside")
        return str(self)

    def item(self) -> NoReturn:
        """Not possible while tracing."""
        self._no_number(".item()", "return the value from the traced function and read it outside")

    def tolist(self) -> NoReturn:
        """Not possible while tracing."""
        self._no_number(".tolist()", "return the value from the traced function and read it outside")

    def _no_array(self, what: str, fix: str) -> NoReturn:
        """Refuse to become a NumPy array; whoever gave a traced array to another library is told so."""
        error = library_error(self.type.text())
        if error is not None:
            raise error
        self._no_number(what, fix)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        self._no_array("NumPy", "use the function of the same name in gspmd.numpy")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Tracer:
        function = _TABLE.get(_UFUNC_NAMES.get(ufunc.__name__, ufunc.__name__))
        if method != "__call__" or keywords or function is None:
            self._no_number(f"numpy.{ufunc.__name__}", "use the functions of gspmd.numpy")
        return function(*inputs)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, keywords: Any) -> NoReturn:
        module = function.__module__ if function.__module__ in ("numpy.linalg", "numpy.fft") else "numpy"
        name = f"{module}.{function.__name__}"
        self._no_array(name, f"use gspmd.{name}")


class WeakTracer(Tracer):
    """A traced Python number, an argument say: as the number would, it takes the dtype of its partner if it can.

    `kind` is the number's Python type; what is computed of such numbers alone is weak, too.
    """

    __slots__ = ("kind",)
    kind: type

    def __init__(self, value: Value, scope: Scope, kind: type) -> None:
        super().__init__(value, scope)
        self.kind = kind


_METHODS = frozenset((
    "all", "any", "argmax", "argmin", "argsort", "clip", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal",
    "dot", "flatten", "max", "mean", "min", "prod", "ravel", "repeat", "round", "squeeze", "std", "sum", "swapaxes",
    "take", "trace", "var",
))  # fmt: skip
_UFUNC_NAMES = {"left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "invert": "bitwise_invert"}

Scalar = bool | int | float | complex
ArrayLike = Tracer | NDArray[Any] | np.generic | Scalar


def emit(op: OpDef[Any], *operands: Tracer, **attrs: Any) -> Tracer:
    """Append an op to the innermost region, at the user's line; returns its only result."""
    scope = current_scope()
    values = tuple([x.value if x.scope is scope else scope.held(x.value, x.scope) for x in operands])
    (value,) = scope.builder.emit(op, values, op.attrs(**attrs), (), user_location())
    return Tracer(value, scope)


def emit_all(op: OpDef[Any], operands: list[Tracer], regions: tuple[Region, ...] = (), **attrs: Any) -> list[Tracer]:
    """Append an op with regions or several results to the innermost region; returns all results."""
    scope = current_scope()
    values = tuple(scope.held(x.value, x.scope) for x in operands)
    results = scope.builder.emit(op, values, op.attrs(**attrs), regions, user_location())
    return [Tracer(value, scope) for value in results]


def is_scalar(x: object) -> bool:
    """Whether a thing is a Python number, whose type is weak (NumPy's scalars have a dtype and are not)."""
    return isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic)


def python_type(x: Any) -> type:
    """Of which of Python's four types of number a thing is (a bool is an int in Python, but not here)."""
    return next(kind for kind in (bool, int, float, complex) if isinstance(x, kind))


def weak_kind(x: object) -> type | None:
    """The Python type of a number whose type is weak, traced or not; None for what has a dtype of its own."""
    if isinstance(x, WeakTracer):
        return x.kind
    return python_type(x) if is_scalar(x) else None


def as_sequence(x: Any) -> tuple[Any, ...]:
    """A number or a sequence of numbers, as a tuple."""
    return tuple(cast("Any", x)) if isinstance(x, (tuple, list, range)) else (x,)
