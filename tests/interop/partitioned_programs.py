"""Programs whose local stages XLA compiles: families of ops under even and ragged shardings, on one to two axes.

`PROGRAMS` are written in our front end; `example_questions` are the examples of all ops, each under several shardings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gspmd
from gspmd import numpy as gnp
from gspmd.driver.pipeline import run_stages
from gspmd.interop.export_stablehlo import exports
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.sharding import DimSharding, Sharding
from tests.interop.partitioned import MOST_DEVICES, Question
from tests.ops.cases import LOCAL_EXAMPLES, name_of, parse
from tests.ops.inputs import example_inputs
from tests.xla.case import Case
from tests.xla.judge_programs import loops, windows

X2, X3, X4 = (gspmd.Mesh({"x": n}) for n in (2, 3, 4))
XY = gspmd.Mesh({"x": 2, "y": 2})
SHUFFLED = gspmd.Mesh({"x": 2, "y": 2}, [2, 0, 3, 1])


def dot(a: Any, b: Any) -> Any:
    return a @ b


def mlp(x: Any, w: Any, v: Any) -> Any:
    return gnp.tanh(x @ w) @ v


def mlp_gradient(x: Any, w: Any, v: Any) -> Any:
    return gspmd.grad(lambda a, b: (mlp(x, a, b) ** 2).mean(), argnums=(0, 1))(w, v)


def attention(q: Any, k: Any, v: Any) -> Any:
    return gnp.softmax(q @ gnp.swapaxes(k, -1, -2) * 0.25, axis=-1) @ v


def totals(a: Any) -> Any:
    return a.sum(axis=0), a.max(axis=1), a.min(), gnp.prod(1 + a * 0.01, axis=0)


def bools(a: Any) -> Any:
    return (a > 0).all(axis=0), (a > 1).any(axis=0)


def winners(a: Any) -> Any:
    return gnp.argmax(a, axis=0), gnp.argmin(a, axis=1)


def conv(x: Any, w: Any) -> Any:
    return gnp.conv(x, w, padding="SAME")


def conv_strided(x: Any, w: Any) -> Any:
    return gnp.conv(x, w, stride=2, padding=((1, 1), (2, 0)))


def conv_gradient(x: Any, w: Any) -> Any:
    return gspmd.grad(lambda k: (gnp.conv(x, k, stride=2) ** 2).sum())(w)


def pooled(x: Any) -> Any:
    return gnp.max_pool(x, 3, 2, "SAME"), gnp.avg_pool(x, 2, 2, "VALID")


def pooled_gradient(x: Any) -> Any:
    return gspmd.grad(lambda a: (gnp.max_pool(a, 3, 2, "SAME") ** 2).sum())(x)


def running(a: Any) -> Any:
    return gnp.cumsum(a, axis=0), gnp.cumprod(1 + a * 0.01, axis=1)


def ordered(a: Any) -> Any:
    return gnp.sort(a, axis=0), gnp.argsort(a, axis=1)


def largest(a: Any) -> Any:
    return gnp.top_k(a, 3)


def looked_up(table: Any, ids: Any) -> Any:
    return gnp.take(table, ids, axis=0)


def lookup_gradient(table: Any, ids: Any) -> Any:
    return gspmd.grad(lambda t: (gnp.take(t, ids, axis=0) ** 2).sum())(table)


def block(a: Any) -> Any:
    return gnp.dynamic_slice(a, (2, 1), (5, 3))


def transform(a: Any) -> Any:
    return gnp.real(gnp.fft.ifft(gnp.fft.fft(a, axis=1) * 2.0, axis=1)), gnp.fft.rfft(a, axis=1)


def solved(a: Any, b: Any) -> Any:
    matrix = a @ gnp.swapaxes(a, -1, -2) + 3.0 * gnp.eye(a.shape[-1])
    return gnp.linalg.cholesky(matrix), gnp.linalg.solve(matrix, b)


def decomposed(a: Any) -> Any:
    q, r = gnp.linalg.qr(a)
    return q @ r, gnp.linalg.svdvals(a)


def random_numbers(a: Any) -> Any:
    key = gspmd.random.key(7)
    return a + gspmd.random.uniform(key, a.shape), gspmd.random.normal(key, a.shape)


def reshaped(a: Any) -> Any:
    return gnp.reshape(a, (a.shape[0] * a.shape[1],)) * 2.0


def halves(a: Any) -> Any:
    return gnp.reshape(a, (2, a.shape[0] // 2, a.shape[1])) + 1.0


def turned(a: Any) -> Any:
    return gnp.transpose(a) * 2.0


def counted(a: Any) -> Any:
    return a + gnp.arange(a.shape[0], dtype=a.dtype)[:, None], gnp.eye(a.shape[0])


def chosen(a: Any) -> Any:
    return gspmd.cond(a.sum() > 0, lambda x: x * 2.0, lambda x: -x, a)


def unchanged(a: Any) -> Any:
    return a


def nothing_given() -> Any:
    return gnp.reshape(gnp.arange(24, dtype="f32"), (8, 3)) * 2.0


def special(a: Any) -> Any:
    return gnp.erf(a), gnp.log1p(gnp.abs(a)), gnp.sinh(a), gnp.arctan2(a, 1.0 + a * a)


def layers(x: Any, w: Any) -> Any:
    return gnp.layer_norm(x @ w) * gnp.gelu(x @ w)


PROGRAMS: tuple[Case, ...] = (
    Case("dot_rows", X2, dot, ("f32[6@x, 8]", "f32[8, 10]"), ("x, _",)),
    Case("dot_contracted", X4, dot, ("f32[6, 8@x]", "f32[8@x, 10]"), ("_, _",)),
    Case("dot_contracted_ragged", X3, dot, ("f32[6, 8@x]", "f32[8@x, 10]"), ("x, _",)),
    Case("dot_scattered", X4, dot, ("f32[8, 8@x]", "f32[8@x, 10]"), ("x, _",)),
    Case("dot_2d", XY, dot, ("f32[6@x, 8@y]", "f32[8@y, 10]"), ("x, y",)),
    Case("dot_2d_both", XY, dot, ("f32[7@x, 9@y]", "f32[9@x, 10@y]"), ("x, y",)),
    Case("dot_shuffled", SHUFFLED, dot, ("f32[6@x, 8@y]", "f32[8@y, 10]"), ("x, y",)),
    Case("dot_bf16", X4, dot, ("bf16[6, 8@x]", "bf16[8@x, 10]"), ("_, _",)),
    Case("dot_i32", X2, dot, ("i32[6, 8@x]", "i32[8@x, 10]"), ("_, _",), below=9),
    Case("mlp", XY, mlp, ("f32[6@x, 8]", "f32[8, 12@y]", "f32[12@y, 5]"), ("x, _",)),
    Case("mlp_ragged", XY, mlp, ("f32[7@x, 8]", "f32[8, 11@y]", "f32[11@y, 5]"), ("x, _",)),
    Case("mlp_gradient", XY, mlp_gradient, ("f32[6@x, 8]", "f32[8, 12@y]", "f32[12@y, 5]"), ("_, y", "y, _")),
    Case("attention_heads", X4, attention, ("f32[4@x, 6, 8]",) * 3, ("x, _, _",)),
    Case("attention_keys", X2, attention, ("f32[2, 6, 8]", "f32[2, 6@x, 8]", "f32[2, 6@x, 8]"), ("_, _, _",)),
    Case("layers", XY, layers, ("f32[6@x, 8]", "f32[8, 12@y]"), ("x, y",)),
    Case("totals", XY, totals, ("f32[6@x, 8@y]",)),
    Case("totals_ragged", X3, totals, ("f32[7@x, 8]",)),
    Case("totals_i32", X4, totals, ("i32[8@x, 5]",), below=9),
    Case("bools", X4, bools, ("f32[9@x, 5]",)),
    Case("winners", XY, winners, ("f32[7@x, 6@y]",)),
    Case("reshard_dims", X4, unchanged, ("f32[8@x, 4]",), ("_, x",)),
    Case("reshard_ragged", X4, unchanged, ("f32[9@x, 7]",), ("_, x",)),
    Case("reshard_axes", XY, unchanged, ("f32[8@x, 4@y]",), ("y, x",)),
    Case("reshard_gathered", SHUFFLED, unchanged, ("f32[8@x, 4@y]",), ("_, _",)),
    Case("reshard_sliced", SHUFFLED, unchanged, ("f32[8, 4]",), ("y+x, _",)),
    Case("reshard_order", SHUFFLED, unchanged, ("f32[8, 4]",), ("x+y, _",)),
    Case("roll", X4, windows.rolled, ("f32[8@x, 3]",), ("x, _",)),
    Case("roll_ragged", X4, windows.rolled, ("f32[9@x, 3]",), ("x, _",)),
    Case("strided", X3, windows.every_other, ("f32[11@x, 3]",), ("x, _",)),
    Case("pad", X2, windows.padded, ("f32[7@x, 3]",), ("x, _",)),
    Case("concatenate", X4, windows.joined, ("f32[6@x, 3]", "f32[5@x, 3]"), ("x, _",)),
    Case("reverse", SHUFFLED, windows.reversed_rows, ("f32[7@x, 6@y]",), ("x, y",)),
    Case("laplacian", XY, windows.laplacian, ("f32[8@x, 9@y]",), ("x, y",)),
    Case("conv", XY, conv, ("f32[2, 8@x, 9@y, 3]", "f32[3, 3, 3, 4]")),
    Case("conv_strided", X3, conv_strided, ("f32[2, 11@x, 9, 3]", "f32[3, 3, 3, 4]")),
    Case("conv_gradient", X4, conv_gradient, ("f32[2, 8@x, 8, 3]", "f32[3, 3, 3, 4]")),
    Case("pool", XY, pooled, ("f32[2, 9@x, 8@y, 3]",)),
    Case("pool_gradient", X4, pooled_gradient, ("f32[2, 9@x, 8, 3]",), ("_, x, _, _",)),
    Case("running", X3, running, ("f32[7@x, 5]",), ("x, _", "x, _")),
    Case("sort", XY, ordered, ("f32[6@x, 8@y]",)),
    Case("top_k", X4, largest, ("f32[3, 11@x]",)),
    Case("lookup", XY, looked_up, ("f32[11@x, 4@y]", "i32[6]"), below=11),
    Case("lookup_gradient", X4, lookup_gradient, ("f32[11@x, 4]", "i32[6]"), ("x, _",), below=11),
    Case("dynamic_slice", X3, block, ("f32[9@x, 5]",)),
    Case("fft", X2, transform, ("f32[5@x, 8]",)),
    Case("solve", X2, solved, ("f32[4@x, 3, 3]", "f32[4@x, 3, 2]")),
    Case("decompose", X3, decomposed, ("f32[5@x, 4, 3]",)),
    Case("random", XY, random_numbers, ("f32[6@x, 5@y]",), ("x, y", "x, y")),
    Case("reshape", X4, reshaped, ("f32[8@x, 3]",), ("x",)),
    Case("reshape_split", X2, halves, ("f32[6@x, 5]",)),
    Case("transpose", XY, turned, ("f32[6@x, 5@y]",), ("x, y",)),
    Case("iota", X4, counted, ("f32[9@x, 3]",), ("x, _", "x, _")),
    Case("iota_two_axes", SHUFFLED, counted, ("f32[9@y+x, 3]",), ("y+x, _", "y+x, _")),
    Case("no_inputs", X4, nothing_given, (), ("x, _",)),
    Case("cond", X2, chosen, ("f32[6@x, 5]",), ("x, _",)),
    Case("loop", X4, loops.powers, ("f32[6, 8@x]", "f32[8@x, 8]"), ("_, x",)),
    Case("loop_gradient", X2, loops.stacked_gradient, ("f32[6@x, 4]", "f32[3, 4, 8]", "f32[3, 8, 4]")),
    Case("recurrence", XY, loops.recurrent, ("f32[5, 4@x, 6]", "f32[4@x, 8]", "f32[6, 8@y]", "f32[8, 8@y]")),
    Case("relaxation", X4, loops.relaxed, ("f32[13@x, 3]",), ("x, _",)),
    Case("while", X2, loops.until_small, ("f32[6@x, 4]", "f32[4, 4]"), ("x, _",)),
    Case("special", X3, special, ("f32[7@x, 5]",)),
)
# One of each kind, in the test command.
HANDFUL = (
    *("dot_scattered", "mlp_ragged", "mlp_gradient", "totals", "reshard_ragged", "reshard_order", "laplacian"),
    "iota_two_axes",
    *("pool_gradient", "random", "no_inputs", "loop", "decompose"),
)


def question(case: Case, stage: str = "local") -> Question:
    """A program to be asked about."""
    return Question(f"{case.name}:{stage}", case.module().program, tuple(case.arrays()), stage)


def all_questions() -> Iterator[Question]:
    """Everything there is to ask."""
    for case in PROGRAMS:
        for stage in ("local", "optimized", "scheduled"):
            yield question(case, stage)
    yield from example_questions()


# -- examples of ops -------------------------------------------------------------------------------------------------

# Made for one device's part alone; what XLA computes less exactly than we ask, or not at all.
SKIPPED = frozenset(("random_block",))
CRUDE = ("erf_inv(f64", "atanh(f64", "lgamma(", "svd(f32", "bitcast_convert(c128")

Split = Callable[[int, int], str]


def _first(dim: int, rank: int) -> str:
    return "x" if dim == 0 else ""


def _last(dim: int, rank: int) -> str:
    return "x" if dim == rank - 1 else ""


def _both(dim: int, rank: int) -> str:
    return "x" if dim == 0 else "y" if dim == rank - 1 else ""


SPLITS: tuple[tuple[gspmd.Mesh, Split], ...] = ((X2, _first), (X3, _last), (SHUFFLED, _both))


def example_questions() -> Iterator[Question]:
    """Every example of every op that is exported, its operands split along first or last dimensions."""
    for number, (mesh, split) in enumerate(SPLITS):
        for example in LOCAL_EXAMPLES:
            name = name_of(example)
            if name in SKIPPED or example.startswith((*CRUDE, "mesh")) or not exports(name):
                continue
            program = parse(example)
            asked = sharded(program, mesh, split)
            try:
                run_stages(asked, "local")
            except GspmdError:  # control flow by what differs from device to device
                continue
            yield Question(f"{example[:70]}:{number}", asked, tuple(example_inputs(program)))


def sharded(program: Program, mesh: gspmd.Mesh, split: Split) -> Program:
    """A program of one op with annotated inputs."""
    (node,) = program.body.nodes
    params: list[Value] = []
    for v in node.operands:
        rank = v.type.rank
        dims = [split(d, rank) for d in range(rank)]
        sharding = Sharding(mesh, tuple(DimSharding((mesh.axis(a),) if a else ()) for a in dims))
        params.append(Value(v.type.with_sharding(sharding), v.name))
    again = Node(node.op, tuple(params), node.results, node.attrs, node.regions, node.loc)
    return Program.of(program.name, Region(tuple(params), (again,), node.results), mesh)


assert all(m.size <= MOST_DEVICES for m in (X2, X3, X4, XY, SHUFFLED))
assert set(HANDFUL) <= {c.name for c in PROGRAMS}
