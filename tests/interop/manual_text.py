"""StableHLO modules whose function is one region of per-device code, and what each device should come to.

Replica groups list devices, so parts are kept by the number of the device here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gspmd
from tests.frontend.hand import Entry, Hand

Array = NDArray[Any]
Parts = dict[int, Array]
MESH = gspmd.Mesh({"a": 2, "b": 4})
SHUFFLED = gspmd.Mesh({"a": 2, "b": 2}, [2, 0, 3, 1])
X = np.arange(1, 129, dtype=np.float32).reshape(8, 16)  # parts of 4 x 4 on MESH
PART = "tensor<4x4xf32>"
ADD = """({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
  })"""
ODD = ADD.replace("stablehlo.add %l, %r", "stablehlo.subtract %l, %r")


def dense(groups: Sequence[Sequence[int]]) -> str:
    """A list of groups or pairs as an attribute."""
    shape = f"{len(groups)}x{len(groups[0]) if groups else 0}"
    return f"dense<{[list(g) for g in groups]}> : tensor<{shape}xi64>"


def text(body: str, result: str = PART, mesh: gspmd.Mesh = MESH, whole: tuple[int, int] = (8, 16)) -> str:
    """A module with a region over all axes: `%p` is its part, `%y` its result, split as the part."""
    spec = '<@mesh, [{"a"}, {"b"}]>'
    sizes = ", ".join(f'"{n}"={s}' for n, s in mesh.axes)
    order = "" if mesh.device_order is None else f", device_ids={list(mesh.device_order)}"
    rows, columns = (int(n) for n in result.split("<")[1].split("x")[:2])
    out = f"tensor<{rows * mesh.axis_size('a')}x{columns * mesh.axis_size('b')}x{result.rsplit('x', 1)[1]}"
    part = f"tensor<{whole[0] // mesh.axis_size('a')}x{whole[1] // mesh.axis_size('b')}xf32>"
    return f"""module attributes {{mhlo.num_partitions = {mesh.size} : i32, mhlo.num_replicas = 1 : i32}} {{
sdy.mesh @mesh = <[{sizes}]{order}>
func.func @main(%x: tensor<{whole[0]}x{whole[1]}xf32>) -> {out} {{
  %0 = sdy.manual_computation(%x) in_shardings=[{spec}] out_shardings=[{spec}] manual_axes={{"a", "b"}} (%p: {part}) {{
{body}
    sdy.return %y : {result}
  }} : (tensor<{whole[0]}x{whole[1]}xf32>) -> {out}
  return %0 : {out}
}}
}}
"""


def parts_of(x: Array, mesh: gspmd.Mesh = MESH) -> Parts:
    """Parts by the number of the device, as replica groups list them."""
    hand = Hand(mesh)
    cut = hand.cut(x, ("a", "b"))
    return {mesh.device(mesh.index(d)): part for d, part in cut.items()}


def joined(parts: Parts, mesh: gspmd.Mesh = MESH, spec: tuple[Entry, ...] = ("a", "b")) -> Array:
    """The whole of such parts."""
    return Hand(mesh).join({mesh.coordinates(i): parts[mesh.device(i)] for i in range(mesh.size)}, spec)


def run(module_text: str, x: Array = X) -> Array:
    """The result, which all stages give."""
    module = gspmd.from_stablehlo(module_text)
    gspmd.compile(module).check(x)
    return np.asarray(module.run(x))


CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
GLOBAL = f"{CHANNEL}, use_global_device_ids"


def in_groups(groups: Sequence[Sequence[int]], function: Callable[[list[Array], int], Array], parts: Parts) -> Parts:
    """For each device what a function makes of its group's parts and of its place there."""
    return {d: function([parts[e] for e in g], i) for g in groups for i, d in enumerate(g)}


LOOSE = {
    # Over replicas, of which there is one: nobody else.
    "no channel, no groups": ("replica_groups = dense<> : tensor<0x0xi64>", [[i] for i in range(8)]),
    "no channel, one replica": ("replica_groups = dense<0> : tensor<1x1xi64>", [[i] for i in range(8)]),
    # Replicas, each with all its partitions.
    "a channel, no groups": (f"replica_groups = dense<> : tensor<0x0xi64>, {CHANNEL}", [list(range(8))]),
    "a channel, one replica": (f"replica_groups = dense<0> : tensor<1x1xi64>, {CHANNEL}", [list(range(8))]),
}
