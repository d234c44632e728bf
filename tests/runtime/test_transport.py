"""The lockstep transport against the definition of each collective, written with loops over devices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gspmd.ir.errors import ExecutionError
from gspmd.ir.mesh import Mesh
from gspmd.runtime.transport import LockstepTransport, groups
from tests.runtime.collective_cases import DTYPES, MESHES, Call, add, all_calls, axis_lists, shaped_calls


def by_definition(call: Call) -> list[np.ndarray]:
    """What each device holds afterwards, from coordinates alone."""
    mesh, axes = call.mesh, call.args[0]
    out = []
    for me in range(mesh.size):
        mine = [mesh.digit(me, a) for a in axes]
        members = {}
        for other in range(mesh.size):
            rest = [me - sum(d * mesh.stride(a) for d, a in zip(mine, axes, strict=True))]
            digits = [mesh.digit(other, a) for a in axes]
            if other - sum(d * mesh.stride(a) for d, a in zip(digits, axes, strict=True)) == rest[0]:
                members[tuple(digits)] = other
        group = [members[k] for k in sorted(members)]
        out.append(member_result(call, [call.xs[i] for i in group], group.index(me)))
    return out


def member_result(call: Call, shards: list[np.ndarray], j: int) -> np.ndarray:
    size = len(shards)
    x = shards[j]
    match call.method, call.args[1:]:
        case "all_gather", (dim,):
            return np.concatenate(shards, dim)
        case "all_reduce", (combine,):
            return combine(shards)
        case "reduce_scatter", (dim, combine):
            n = x.shape[dim] // size
            return combine(shards).take(range(j * n, (j + 1) * n), dim)
        case "all_to_all", (split, concat):
            n = x.shape[split] // size
            return np.concatenate([s.take(range(j * n, (j + 1) * n), split) for s in shards], concat)
        case "permute", (pairs,):
            return next((shards[s] for s, d in pairs if d == j), np.zeros_like(x))
    raise ValueError(call.method)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def check(call: Call) -> None:
    before = [x.copy() for x in call.xs]
    results = getattr(LockstepTransport(call.mesh), call.method)(call.xs, *call.args)
    for result, expected in zip(results, by_definition(call), strict=True):
        assert same_bits(result, expected), call
    assert all(same_bits(a, b) for a, b in zip(call.xs, before, strict=True)), "arguments must stay as they are"


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_lockstep_is_the_definition(size: int) -> None:
    for call in all_calls(size):
        check(call)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_lockstep_on_any_shape_and_axes(data: st.DataObject) -> None:
    mesh = data.draw(st.sampled_from(MESHES[4] + MESHES[8] + MESHES[12]))
    axes = data.draw(st.sampled_from(axis_lists(mesh)))
    shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 2, 4, 12]), max_size=3)))
    for call in shaped_calls(mesh, axes, shape, data.draw(st.sampled_from(DTYPES)), data.draw(st.integers(0, 999))):
        check(call)


def test_results_do_not_share_memory_between_devices() -> None:
    for call in all_calls(4):
        results = getattr(LockstepTransport(call.mesh), call.method)(call.xs, *call.args)
        for i, result in enumerate(results):
            assert not any(np.shares_memory(result, other) for other in results[:i]), call.method
            assert not any(np.shares_memory(result, x) for x in call.xs), call.method


def test_results_lie_in_memory_as_what_ranks_receive() -> None:
    """Whatever the shards lie like: a product of matrices rounds as they lie, and ranks give the simulator's bits."""
    mesh = Mesh({"a": 2})
    axes = (mesh.axis("a"),)
    shards = [np.arange(24.0).reshape(2, 4, 3).transpose(2, 1, 0) + i for i in range(2)]
    transport = LockstepTransport(mesh)
    for got in (
        transport.all_gather(shards, axes, 2),
        transport.all_to_all(shards, axes, 1, 2),
        transport.reduce_scatter(shards, axes, 1, add),
        transport.all_reduce(shards, axes, add),
        transport.permute(shards, axes, ((0, 1),)),
    ):
        assert all(x.flags.c_contiguous for x in got)


def test_groups_partition_the_devices() -> None:
    mesh = Mesh({"a": 2, "b": 3, "c": 2})
    axes = (mesh.axis("c"), mesh.axis("a"))
    assert groups(mesh, axes) == ((0, 6, 1, 7), (2, 8, 3, 9), (4, 10, 5, 11))


@pytest.mark.parametrize(
    ("pairs", "rule"), [(((0, 1), (1, 1)), "permute.C2"), (((0, 2),), "permute.C1"), (((-1, 0),), "permute.C1")]
)
def test_permute_refuses_pairs_without_meaning(pairs: tuple[tuple[int, int], ...], rule: str) -> None:
    mesh = Mesh({"a": 2})
    with pytest.raises(ExecutionError, match=rule):
        LockstepTransport(mesh).permute([np.zeros(2)] * 2, (mesh.axis("a"),), pairs)


@pytest.mark.parametrize("method", ["reduce_scatter", "all_to_all"])
def test_a_dimension_that_does_not_divide_is_refused(method: str) -> None:
    mesh = Mesh({"a": 2})
    last = add if method == "reduce_scatter" else 0
    with pytest.raises(ExecutionError, match=r"split.C1: a shard of shape \(3,\)"):
        getattr(LockstepTransport(mesh), method)([np.zeros(3)] * 2, (mesh.axis("a"),), 0, last)
