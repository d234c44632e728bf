"""Loops, branches, annotations and barriers: what they compute, their gradients, and what their rules refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gspmd.ir.attrs import Attrs, Dense
from gspmd.ir.builder import Builder
from gspmd.ir.errors import ExecutionError, TraceError, TypeRuleError
from gspmd.ir.graph import Region, Value
from gspmd.ir.location import Location
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import node_rule
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.ops.annotate import OPTIMIZATION_BARRIER, SHARDING_CONSTRAINT, ShardingConstraintAttrs
from gspmd.ops.collective import ALL_REDUCE
from gspmd.ops.control import CASE, WHILE, WhileAttrs
from gspmd.ops.elementwise import ADD, COMPARE, MULTIPLY, NEGATE, SINE
from gspmd.ops.layout import RESHAPE
from gspmd.ops.literal import CONSTANT, scalar
from gspmd.ops.slicing import DYNAMIC_SLICE, ResultShape
from gspmd.runtime.transport import LockstepTransport
from gspmd.runtime.walker import Walker
from tests.ops.bench import Pullback, gradient_of, node_of, pull, run, type_of

I32, F64, BOOL = TensorType("i32", ()), TensorType("f64", (3,)), TensorType("bool", ())


def region(types: list[TensorType], make: Any) -> Region:
    builder = Builder()
    params = [builder.param(t) for t in types]
    return builder.region(make(builder, *params))


def counting(limit: int, types: list[TensorType]) -> Region:
    """Whether the first carry is below a limit."""
    return region(types, lambda b, i, *_: [COMPARE(b, i, scalar(b, limit, "i32"), direction="LT")])


def loop(trips: int, known: bool = True) -> Region:
    """for i in range(trips): x, y = sin(x) * w + table[i], x   with w and the table invariant."""
    types = [I32, F64, F64, F64, TensorType("f64", (trips + 1, 3))]

    def body(b: Builder, i: Value, x: Value, y: Value, w: Value, table: Value) -> list[Value]:
        row = DYNAMIC_SLICE(b, table, i, scalar(b, 0, "i32"), sizes=ResultShape((1, 3)))
        row = RESHAPE(b, row, shape=ResultShape((3,)))
        following = ADD(b, MULTIPLY(b, SINE(b, x), w), row)
        return [ADD(b, i, scalar(b, 1, "i32")), following, ADD(b, x, y), w, table]

    def whole(b: Builder, *carries: Value) -> list[Value]:
        attrs = WhileAttrs(trips if known else None)
        return list(WHILE.emit(b, carries, attrs, (counting(trips, types), region(types, body)), Location("m.py", 7)))

    return region(types, whole)


def unrolled(trips: int, x: Any, y: Any, w: Any, table: Any) -> tuple[Any, Any]:
    for i in range(trips):
        x, y = np.sin(x) * w + table[i], x + y
    return x, y


def loop_inputs(trips: int) -> list[Any]:
    rng = np.random.default_rng(trips)
    return [np.int32(0), *(rng.standard_normal(s) for s in ((3,), (3,), (3,), (trips + 1, 3)))]


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_a_loop_runs_and_hands_its_carries_on(trips: int) -> None:
    inputs = loop_inputs(trips)
    i, x, y, w, _ = run(loop(trips), inputs)
    want = unrolled(trips, *inputs[1:])
    assert i == trips and np.array_equal(w, inputs[3])
    np.testing.assert_allclose([x, y], want, rtol=1e-14)


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_the_gradient_of_a_loop_agrees_with_differences(trips: int) -> None:
    inputs, step = loop_inputs(trips), 1e-6
    rng = np.random.default_rng(9)
    cts = [
        np.int32(0),
        rng.standard_normal(3),
        rng.standard_normal(3),
        rng.standard_normal(3),
        np.zeros((trips + 1, 3)),
    ]
    pulled = gradient_of(loop(trips), inputs, cts)

    def value(*arrays: Any) -> float:
        x, y = unrolled(trips, *arrays)
        return float(cts[1] @ x + cts[2] @ y + cts[3] @ arrays[2])

    for k in range(1, 5):
        for cell in np.ndindex(inputs[k].shape):
            pair = []
            for sign in (1, -1):
                moved = [np.array(a) for a in inputs[1:]]
                moved[k - 1][cell] += sign * step
                pair.append(value(*moved))
            assert pulled[k][cell] == pytest.approx((pair[0] - pair[1]) / (2 * step), abs=1e-7)


def test_a_loop_that_was_not_saved_is_run_again() -> None:
    inputs = loop_inputs(3)
    cts = [np.int32(0), *(np.ones_like(a) for a in inputs[1:])]
    (node,) = loop(3).nodes
    plain = pull(node, inputs, cts)
    saved = gradient_of(loop(3), inputs, cts)
    assert plain[0] is None
    for got, want in zip(plain[1:], saved[1:], strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_loop_of_unknown_length_has_no_gradient() -> None:
    with pytest.raises(TraceError, match=r"(?s)loop of unknown length.*m\.py:7.*fix") as error:
        gradient_of(loop(2, known=False), loop_inputs(2), loop_inputs(2))
    assert error.value.loc == Location("m.py", 7)


def test_only_carries_that_change_are_stacked() -> None:
    (node,) = loop(3).nodes
    builder = Builder()
    results, stacks = WHILE.save(Pullback(builder), node) if WHILE.save else ((), ())
    assert len(results) == 5
    assert [s.type.shape for s in stacks] == [(3,), (3, 3), (3, 3)]


BRANCHES = (
    region([F64, F64], lambda b, x, y: [ADD(b, x, y), x]),
    region([F64, F64], lambda b, x, y: [MULTIPLY(b, x, y), y]),
    region([F64, F64], lambda b, x, y: [NEGATE(b, x), MULTIPLY(b, y, y)]),
)


@pytest.mark.parametrize(("index", "branch"), [(0, 0), (1, 1), (2, 2), (3, 2), (-1, 2), (2**31 - 1, 2)])
def test_a_branch_and_its_gradient(index: int, branch: int) -> None:
    rng = np.random.default_rng(index % 7)
    x, y, u, v = rng.standard_normal((4, 3))
    node = node_of(CASE, [I32, F64, F64], Attrs(), BRANCHES)
    whole = region([I32, F64, F64], lambda b, *xs: list(CASE.emit(b, xs, Attrs(), BRANCHES)))
    want = [(x + y, x), (x * y, y), (-x, y * y)][branch]
    for got, w in zip(run(whole, [np.int32(index), x, y]), want, strict=True):
        np.testing.assert_array_equal(got, w)
    pulled = pull(node, [np.int32(index), x, y], [u, v])
    wanted = [(u + v, u), (u * y, u * x + v), (-u, 2 * v * y)][branch]
    assert pulled[0] is None
    np.testing.assert_allclose(pulled[1:], wanted, rtol=1e-14)


@pytest.mark.parametrize(("index", "want"), [(False, 0), (True, 1)])
def test_a_bool_picks_one_of_two(index: bool, want: int) -> None:
    branches = tuple(region([I32], lambda b, x, k=k: [ADD(b, x, scalar(b, k, "i32"))]) for k in range(2))
    whole = region([BOOL, I32], lambda b, *xs: list(CASE.emit(b, xs, Attrs(), branches)))
    assert run(whole, [np.bool_(index), np.int32(10)])[0] == 10 + want


@pytest.mark.parametrize("op", ["while", "case"])
@pytest.mark.parametrize("exchange", [None, "x", "y"])
def test_devices_go_their_own_ways(op: str, exchange: str | None) -> None:
    """On a mesh x=2, y=2 devices with one x agree: they may exchange data along y, but not along x."""
    mesh = Mesh({"x": 2, "y": 2})
    axes = () if exchange is None else (mesh.axis(exchange),)

    def summed(b: Builder, x: Value) -> Value:
        return ALL_REDUCE(b, x, axes=axes, monoid="add")

    numbers, data = [np.array(i, np.int32) for i in (0, 0, 2, 2)], [np.array([1.0, 10.0**i, i]) for i in range(4)]
    if op == "case":
        branches = tuple(region([F64], lambda b, x, k=k: [summed(b, x) if k % 2 == 0 else x]) for k in range(3))
        whole = region([I32, F64], lambda b, *xs: list(CASE.emit(b, xs, Attrs(), branches)))
    else:
        body = region([I32, F64], lambda b, i, x: [ADD(b, i, scalar(b, 1, "i32")), summed(b, x)])
        loops = (counting(3, [I32, F64]), body)
        whole = region([I32, F64], lambda b, *xs: [WHILE.emit(b, xs, WhileAttrs(), loops)[1]])
    walker = Walker(LockstepTransport(mesh))
    if exchange == "x":
        with pytest.raises(ExecutionError, match=r"collective.C4: devices .* wait for ever"):
            walker.run(whole, [numbers, data])
        return
    (found,) = walker.run(whole, [numbers, data])
    sums = [1 if op == "case" or i == 2 else 3 for i in (0, 0, 2, 2)] if exchange else [0] * 4
    for i, (x, times) in enumerate(zip(found, sums, strict=True)):
        pair = data[i] + data[i ^ 1]
        np.testing.assert_array_equal(x, pair * 2 ** (times - 1) if times else data[i])


def test_flow_groups_hold_the_places_of_one_value() -> None:
    (node,) = loop(2).nodes
    cond, body = node.regions
    assert node.op.flow is not None
    groups = node.op.flow(node)
    assert len(groups) == 5
    assert groups[1] == (node.operands[1], cond.params[1], body.params[1], body.results[1], node.results[1])
    case = node_of(CASE, [I32, F64, F64], Attrs(), BRANCHES)
    assert case.op.flow is not None
    groups = case.op.flow(case)
    assert groups[0] == (case.operands[1], *(b.params[0] for b in BRANCHES))
    assert groups[3] == (*(b.results[1] for b in BRANCHES), case.results[1])


def _true(b: Builder, *_: Value) -> list[Value]:
    return [CONSTANT(b, value=Dense(np.array(True)))]


SAME = region([F64], lambda b, x: [x])


@pytest.mark.parametrize(
    ("op", "types", "attrs", "regions", "rule"),
    [
        (WHILE, [F64], WhileAttrs(), (SAME,), "while.C1"),
        (WHILE, [I32], WhileAttrs(), (region([F64], _true), SAME), "while.C2"),
        (WHILE, [F64], WhileAttrs(), (SAME, SAME), "while.C3"),
        (WHILE, [F64], WhileAttrs(), (region([F64], _true), region([F64], _true)), "while.C4"),
        (WHILE, [F64], WhileAttrs(-1), (region([F64], _true), SAME), "while.C5"),
        (CASE, [I32, F64], Attrs(), (), "case.C1"),
        (CASE, [TensorType("i64", ()), F64], Attrs(), (SAME, SAME), "case.C2"),
        (CASE, [BOOL, F64], Attrs(), (SAME, SAME, SAME), "case.C2"),
        (CASE, [I32, I32], Attrs(), (SAME,), "case.C3"),
        (CASE, [I32, F64], Attrs(), (SAME, region([F64], _true)), "case.C4"),
    ],
)
def test_type_rules(op: Any, types: Any, attrs: Attrs, regions: Any, rule: str) -> None:
    with pytest.raises(TypeRuleError) as error:
        node_of(op, types, attrs, regions)
    assert error.value.rule == rule


MESH = Mesh({"data": 2})


def test_a_constraint_types_the_value_and_its_cotangent() -> None:
    sharding = Sharding.of(MESH, "data")
    attrs = ShardingConstraintAttrs(sharding)
    node = node_of(SHARDING_CONSTRAINT, [F64], attrs)
    assert node.result.type.sharding == sharding
    rule = node_rule(node)
    assert rule is not None and not rule.linear
    (ct,) = pull(node, [np.arange(3.0)], [np.ones(3)])
    np.testing.assert_array_equal(ct, np.ones(3))
    with pytest.raises(TypeRuleError, match="dims"):
        node_of(SHARDING_CONSTRAINT, [TensorType("f64", (3, 4))], attrs)


def test_a_barrier_keeps_operands_apart() -> None:
    arrays = [np.ones((2, 3)), np.arange(4)]
    node = node_of(OPTIMIZATION_BARRIER, [type_of(a) for a in arrays], Attrs())
    rule = node_rule(node)
    assert rule is not None
    assert rule.operands == rule.results == (((0,), (1,)), ((2,),))
    pulled = pull(node, arrays, [np.full((2, 3), 5.0), np.arange(4)])
    np.testing.assert_array_equal(pulled[0], np.full((2, 3), 5.0))
