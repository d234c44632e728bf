"""What is wrong with per-device code is said in one message at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd import PartitionSpec as P
from gspmd.ir.errors import ExecutionError, GspmdError
from tests.frontend.hand import random

MESH = gspmd.Mesh({"a": 2, "b": 3})
BOTH = P("a", "b")
X = gspmd.TensorType("f32", (4, 6))


def mapped(body: Callable[..., Any], into: Any = BOTH, out: Any = BOTH, **more: Any) -> Callable[..., Any]:
    return gspmd.shard_map(body, MESH, into, out, **more)


def within(body: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Something that goes wrong inside."""
    return lambda x: gspmd.shard_map(body, MESH, P("a", "b"), P("a", "b"))(x)


def twice(x: Any) -> Any:
    return mapped(lambda p: mapped(lambda q: q)(p))(x)


CASES: list[tuple[str, Callable[[Any], Any], str]] = [
    (
        "does not divide",
        lambda x: mapped(lambda p: p, P("b"))(x),
        r"C4: dim 0 of the operand f32\[4, 6\] has 4 elements.*3 dev",
    ),
    ("an axis of no mesh", lambda x: mapped(lambda p: p, P("z"))(x), r"mesh.C4: the mesh \[a=2, b=3\] has no axis 'z'"),
    ("axes= of no mesh", lambda x: mapped(lambda p: p, axes=("z",))(x), r"mesh.C4: .* has no axis 'z'"),
    ("an axis twice", lambda x: mapped(lambda p: p, P("a", "a"))(x), r"sharding.C2: a sharding can use an axis once"),
    (
        "an axis that is not manual",
        lambda x: mapped(lambda p: p, axes=("a",))(x),
        r"C3: .* over b, which is not one of",
    ),
    ("a spec too long", lambda x: mapped(lambda p: p, P("a", None, None))(x), r"shard_map.C2: .* 3 entries .* 2 dim"),
    (
        "an out spec too long",
        lambda x: mapped(lambda p: p.sum(), out=P("a"))(x),
        r"shard_map.C2: .* 1 entries .* 0 dim",
    ),
    (
        "specs for other arguments",
        lambda x: mapped(lambda p: p, (P(), P()))(x),
        r"shard_map.C2: in_specs .* do not fit",
    ),
    (
        "specs for other results",
        lambda x: mapped(lambda p: p, out=(P(), P()))(x),
        r"shard_map.C2: out_specs .* do not fit",
    ),
    (
        "specs with other keys",
        lambda x: mapped(lambda p: {"y": p}, out={"z": P()})(x),
        r"shard_map.C2: out_specs have the keys",
    ),
    (
        "a pair for a dict",
        lambda x: mapped(lambda p: {"k": p, "l": p}, BOTH, (P("a"), BOTH))(x),
        r"C2: out_specs .* do not fit",
    ),
    ("no spec at all", lambda x: mapped(lambda p: p, ("a", "b"))(x), r"shard_map.C2: in_specs .* do not fit"),
    ("manual already", twice, r"shard_map.C1: .*manual already"),
    (
        "outside",
        lambda x: gspmd.all_reduce(x, "a"),
        r"collective.C1: all_reduce works along the axis 'a'.*not manual here",
    ),
    ("outside, a number", lambda x: x * gspmd.axis_index("a"), r"collective.C1: axis_index works along"),
    ("outside, a size", lambda x: x * gspmd.axis_size("a"), r"collective.C1: axis_size works along"),
    ("another axis", within(lambda p: gspmd.all_gather(p, "z")), r"collective.C1: .*'z'.*\(manual are a, b\)"),
    (
        "an axis twice in a collective",
        within(lambda p: gspmd.all_reduce(p, ("a", "a"))),
        r"collective.C4: all_reduce names the axis 'a' twice",
    ),
    (
        "a dim too many",
        within(lambda p: gspmd.all_gather(p, "a", 2)),
        r"collective.C2: all_gather along dim 2 of f32\[2, 2\]",
    ),
    (
        "all_to_all to nowhere",
        within(lambda p: gspmd.all_to_all(p, "a", 0, -3)),
        r"collective.C2: all_to_all along dim -3",
    ),
    (
        "scatter unevenly",
        within(lambda p: gspmd.reduce_scatter(p, "b", 0)),
        r"reduce_scatter.C3: .* size 2 .* 3 devices",
    ),
    ("exchange unevenly", within(lambda p: gspmd.all_to_all(p, "b", 0, 0)), r"all_to_all.C3: .* size 2 .* 3 devices"),
    (
        "an unknown monoid",
        within(lambda p: gspmd.all_reduce(p, "a", "avg")),
        r"all_reduce.C5: unknown monoid 'avg'(.|\n)*use one of add",
    ),
    (
        "to scatter too",
        within(lambda p: gspmd.reduce_scatter(p, "a", 0, "avg")),
        r"reduce_scatter.C5: unknown monoid 'avg'",
    ),
    ("bits of floats", within(lambda p: gspmd.all_reduce(p, "a", "and")), r"all_reduce.C6: .*f32"),
    (
        "from nobody",
        within(lambda p: gspmd.collective_permute(p, "b", [(3, 0)])),
        r"permute.C3: pairs name device 3 of 3",
    ),
    (
        "sends twice",
        within(lambda p: gspmd.collective_permute(p, "b", [(0, 1), (0, 2)])),
        r"permute.C3: device 0 sends twice",
    ),
    (
        "receives twice",
        within(lambda p: gspmd.collective_permute(p, "b", [(0, 1), (2, 1)])),
        r"C3: device 1 receives twice",
    ),
    (
        "annotates what is manual",
        within(lambda p: gspmd.shard(p, MESH, "a", None)),
        r"shard.C4: .* splits over a, which is manual",
    ),
    (
        "another mesh",
        lambda x: mapped(lambda p: p)(gspmd.shard(x, gspmd.Mesh({"a": 2}), "a", None)),
        r"\[a=2\].*\[a=2, b=3\]",
    ),
]


@pytest.mark.parametrize(("name", "function", "message"), CASES, ids=[c[0] for c in CASES])
def test_errors(name: str, function: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(GspmdError, match=message) as caught:
        gspmd.trace(lambda x: function(x), X)
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__, caught.value.loc


def test_devices_that_wait_for_ever() -> None:
    """They would, as processes; in one process that is said at the line of the collective."""

    def body(p: Any) -> Any:
        return gspmd.cond(gspmd.axis_index("b") == 0, lambda: gspmd.all_reduce(p, "b"), lambda: p)

    x = random("f32", 4, 6)
    module = gspmd.trace(mapped(body), X)
    for run in (module.run, gspmd.compile(module).simulate):
        with pytest.raises(ExecutionError, match=r"collective.C4: devices \[0\] would wait .* with \[1, 2\]") as caught:
            run(x)
        assert caught.value.loc is not None and caught.value.loc.file == __file__


def test_devices_go_their_own_ways() -> None:
    """Branches and loops may differ from device to device; those along other axes exchange data as before."""
    x = random("f32", 4, 6)

    def body(p: Any) -> Any:
        def grown(q: Any) -> Any:
            return gspmd.while_loop(lambda y: gnp.sum(abs(y)) < 20.0, lambda y: y * 1.5, q)

        me = gspmd.axis_index("b")
        return gspmd.switch(me, [grown, lambda q: gspmd.all_reduce(q, "a"), lambda q: -q], p)

    module = gspmd.trace(mapped(body), X)
    gspmd.compile(module).check(x)
    parts = [np.split(row, 3, axis=1) for row in np.split(x, 2)]
    for row in parts:
        while np.abs(row[0]).sum() < 20.0:
            row[0] = row[0] * np.float32(1.5)
        row[2] = -row[2]
    parts[0][1] = parts[1][1] = parts[0][1] + parts[1][1]
    np.testing.assert_array_equal(module.run(x), np.block(parts))


def test_nothing_is_left_of_a_failed_trace() -> None:
    with pytest.raises(GspmdError):
        gspmd.trace(within(lambda p: p + gspmd.all_gather(p, "z")), X)
    with pytest.raises(GspmdError, match="not manual here"):
        gspmd.trace(lambda x: gspmd.all_reduce(x, "a"), X)
