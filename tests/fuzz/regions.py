"""Control flow around random bodies, and per-device code."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.axes import parts
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import dtype_name
from gspmd.ir.graph import Region, Value
from gspmd.ir.types import TensorType
from gspmd.ops.control import CALL, CASE, WHILE, CallAttrs, WhileAttrs
from gspmd.ops.elementwise import ADD, COMPARE, TANH
from gspmd.ops.literal import scalar
from tests.fuzz.families import MAKERS
from tests.fuzz.fit import fit
from tests.fuzz.layouts import one_in
from tests.fuzz.writer import MOST_ELEMENTS, Rejected, Writer
from tests.partitioner import test_manual

_DEEPEST = 2


def body(w: Writer, operands: Sequence[Value], wanted: Sequence[TensorType], first: int = 0) -> Writer:
    """The code of a region that takes the operands and gives values of some types, left as its last values."""
    inner = Writer(w.rng, w.mesh, w.seed, w)
    params = [inner.given(v.type, w.known[v]) for v in operands]
    del inner.values[:first]
    for _ in range(1 + w.below(3)):
        step(inner)
    results: list[Value] = []
    for param, type_ in zip(params[first:], wanted, strict=True):
        choice = w.below(6)
        if choice == 0:
            results.append(param if param.type.bare == type_ else fit(inner, param, type_))
        elif choice == 1:
            results.append(
                inner(TANH, fit(inner, inner.some(inner.values), type_)) if _float(type_) else fit(inner, param, type_)
            )
        elif choice == 2 and type_ == param.type.bare and _float(type_):
            results.append(inner(ADD, param, fit(inner, inner.some(inner.values), type_)))
        else:
            results.append(fit(inner, inner.some(inner.values), type_))
    inner.values += results
    return inner


def _float(type_: TensorType) -> bool:
    return dtype_name(type_.dtype) in ("f32", "f64", "bf16", "f16")


def step(w: Writer) -> None:
    """One step inside of a region."""
    for _ in range(4):
        x = w.some(w.values)
        if w.attempt(lambda x=x: [MAKERS[w.below(len(MAKERS))](w, x)]):
            return


def _chosen(w: Writer) -> list[Value]:
    if not w.values or w.depth >= _DEEPEST:
        raise Rejected("nothing to start from")
    return [w.some(w.values) for _ in range(1 + w.below(3))]


def loop(w: Writer) -> Sequence[Value]:
    """A counted loop, or one whose count nobody is told."""
    carries, trips = _chosen(w), 1 + w.below(3)
    start = scalar_of(w, 0)
    inner = body(w, [start, *carries], [v.type.bare for v in carries], first=1)
    counter = inner.b.params[0]
    after = inner(ADD, counter, scalar_of(inner, 1))
    results = inner.values[len(inner.values) - len(carries) :]
    cond = Builder()
    params = [cond.param(v.type.bare) for v in (start, *carries)]
    test = COMPARE(cond, params[0], scalar(cond, trips, "i32"), direction="LT")
    regions = (cond.region([test]), inner.b.region([after, *results]))
    made = w.emit(WHILE, (start, *carries), WhileAttrs(trips if w.below(3) else None), regions)
    return made[1:]


def branches(w: Writer) -> Sequence[Value]:
    """A choice by data."""
    operands = _chosen(w)
    wanted = [w.some(operands).type.bare for _ in operands]
    count = 1 + w.below(3)
    inside = [body(w, operands, wanted) for _ in range(count)]
    regions = tuple(i.b.region(i.values[len(i.values) - len(wanted) :]) for i in inside)
    index = w.take(TensorType("i32", ()), "i") if w.outer is None else scalar_of(w, w.below(3))
    return w.emit(CASE, (index, *operands), Attrs(), regions)


def call(w: Writer) -> Sequence[Value]:
    """A function, called."""
    operands = _chosen(w)
    inner = body(w, operands, [v.type.bare for v in operands])
    region = inner.b.region(inner.values[len(inner.values) - len(operands) :])
    return w.emit(CALL, operands, CallAttrs(name="f"), (region,))


def scalar_of(w: Writer, value: int) -> Value:
    """A counter."""
    at = len(w.b.nodes)
    made = scalar(w.b, value, "i32")
    w._evaluate(w.b.nodes[at])  # pyright: ignore[reportPrivateUsage]
    return made


class _Outside:
    """A writer as the makers of per-device code see it: all values are of f32."""

    def __init__(self, w: Writer) -> None:
        self.w, self.rng, self.mesh, self.b = w, w.rng, w.mesh, w.b
        self.values = [v for v in w.values if dtype_name(v.type.dtype) == "f32" and v.type.rank]
        self.values = self.values or [w.param((w.pick(4, 6, 8, 12), w.pick(2, 5, 6)))]

    def param(self, shape: tuple[int, ...]) -> Value:
        """A parameter."""
        if prod(shape) > MOST_ELEMENTS:
            raise Rejected("too large")
        return self.w.param(shape)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.w, name)


def manual(w: Writer) -> Sequence[Value]:
    """Per-device code over some axes of the mesh, which may stand in a loop."""
    whole = w.mesh.whole
    if not whole or w.outer is not None:
        raise Rejected("no axes")
    axes = tuple(a for a in whole if w.below(2)) or (whole[w.below(len(whole))],)
    if parts(axes) > MOST_ELEMENTS:
        raise Rejected("too many devices")
    at = len(w.b.nodes)
    outside: Any = _Outside(w)
    make = test_manual.in_a_loop if one_in(w.rng, 3) else test_manual.region
    try:
        made = make(outside, axes)
    except Exception as error:  # noqa: BLE001  what does not go together
        raise Rejected(str(error)) from None
    for node in w.b.nodes[at:]:
        w._evaluate(node)  # pyright: ignore[reportPrivateUsage]
    return made


def nodes_in(region: Region) -> int:
    """How many nodes there are, inside too."""
    return sum(1 for _ in region.walk())
