"""JAX on eight forced CPU devices: `python -m tests.interop.manual_child OUT shardy|gspmd`.

OUT gets a pickled dictionary: for each program its StableHLO text, its arguments and its results, leaf by leaf.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tests.interop.manual_programs import PROGRAMS


def main(out: str, lowering: str) -> None:
    """Lower and run all programs."""
    jax.config.update("jax_use_shardy_partitioner", lowering == "shardy")
    found: dict[str, Any] = {}
    for name, make in PROGRAMS.items():
        function, arguments = make()
        jitted = jax.jit(function)
        results = [np.asarray(x) for x in jax.tree.leaves(jitted(*arguments))]
        found[name] = (jitted.lower(*arguments).as_text(debug_info=False), arguments, results)
    Path(out).write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
