"""What the ranks of the program tests run: every program over MPI gives the bits that the simulator gives."""

from __future__ import annotations

import numpy as np

import gspmd
from gspmd.frontend.tree import flatten
from tests.runtime.mesh_programs import MESHES, PROGRAMS, arguments

ENOUGH = 15


def bits_of(results: object) -> list[tuple[str, tuple[int, ...], bytes]]:
    arrays = [np.asarray(x) for x in flatten(results)[0]]
    return [(x.dtype.name, x.shape, x.tobytes()) for x in arrays]


def main() -> None:
    ranks, rank, compared = gspmd.world().size, gspmd.world().rank, 0
    kinds: set[str] = set()
    for axes in MESHES[ranks]:
        mesh = gspmd.Mesh(axes)
        for name, make in PROGRAMS.items():
            function, types = make(mesh)
            compiled, arrays = gspmd.compile(function, *types), arguments(types)
            kinds.update(use.kind for use in compiled.collectives())
            results = compiled(*arrays)
            expected = bits_of(compiled.simulate(*arrays))
            assert bits_of(results) == expected, (axes, name)
            again = compiled(*arrays)
            assert bits_of(again) == bits_of(results) == expected, (axes, name, "a second call")
            compared += len(expected)
    state_in_shards(mesh)
    if rank == 0:
        print(f"{compared} results equal, {len(PROGRAMS)} programs; {' '.join(sorted(kinds))}")


def state_in_shards(mesh: gspmd.Mesh) -> None:
    """Results go into the next call as they are; a donated array is gone; no rank reads what another one holds."""
    rows = gspmd.Sharding.of(mesh, "a", None)
    whole = np.arange(35, dtype=np.float32).reshape(7, 5)
    seen: list[object] = []

    def read(index: tuple[slice, ...]) -> np.ndarray:
        seen.append(index)
        return whole[index]

    x = gspmd.from_callback(gspmd.TensorType("f32", (7, 5)), rows, read)
    assert len(seen) == len(x.shards) == 1
    step = gspmd.compile(lambda x: gspmd.shard(x, mesh, "a", None) + 1.0, x.type.bare, donate=(0,))
    y = step(x)
    z = step(y)
    assert z.sharding == rows and z.shards[0].shape == x.type.local.shape
    assert (np.asarray(z) == whole + 2).all()
    for gone in (x, y):
        try:
            np.asarray(gone)
        except gspmd.GspmdError as error:
            assert "donated" in str(error)
        else:
            raise AssertionError("a donated array can be used")
    moved = gspmd.shard(z, mesh, None, "a")
    assert moved.sharding != rows and (np.asarray(moved) == whole + 2).all()
    own = gspmd.from_shards(z.type.bare, rows, [z.local])
    assert (np.asarray(step(own)) == whole + 3).all()


if __name__ == "__main__":
    main()
