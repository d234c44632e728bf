"""What the ranks of the JAX program tests run: programs over MPI give the bits of the simulator, and JAX's values."""

from __future__ import annotations

import jax
import numpy as np

import gspmd
from gspmd.frontend.tree import flatten
from tests.interop.programs import CASES
from tests.interop.test_programs import check, compiled

# For each number of devices a handful: between them gradients, halos, transposes, loops, experts, factorisations and
# per-device code.
CHOSEN = {
    4: (
        "transformer/model",
        "convolution/both",
        "poisson/pencils",
        "gru/zero",
        "experts/experts_hidden",
        "solve_batch/rows",
        "least_squares/samples",
        "block/both",
        "local_steps/samples",
    ),
}


def main() -> None:
    ranks, compared = gspmd.world().size, 0
    for name in CHOSEN[ranks]:
        program, _ = CASES[name]
        c = compiled(name)
        results = c(*program.arguments)
        gathered = [np.asarray(x) for x in flatten(results)[0]]
        alone = [np.asarray(x) for x in flatten(c.simulate(*program.arguments))[0]]
        assert [x.tobytes() for x in gathered] == [x.tobytes() for x in alone], name
        if gspmd.world().rank == 0:  # JAX has to compile as well: once is enough
            check(jax.tree.unflatten(jax.tree.structure(program.expected), gathered), program)
        compared += len(gathered)
    if gspmd.world().rank == 0:
        print(f"{compared} results equal, {len(CHOSEN[ranks])} programs")


if __name__ == "__main__":
    main()
