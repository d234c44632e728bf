"""examples/minilm.py on the ranks of a job, and what each of them reads of the weights.

    gspmd run tests/examples/minilm_on_ranks.py --ranks 4 --mesh model=4 -- MODEL OUT SENTENCE ...

Leaves `vectors.npy` in the folder OUT, and for each rank `rank-N.json`: the parts of tensors that it read.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gspmd
from gspmd.interop.safetensors import SafeTensors
from tests.examples.runs import load_example


def main(model: Path, out: Path, sentences: list[str]) -> None:
    """Embed the sentences, and write down what was read."""
    reads: list[dict[str, Any]] = []
    read = SafeTensors.read

    def watched(
        self: SafeTensors, name: str, index: tuple[slice, ...] = (), shape: tuple[int, ...] | None = None
    ) -> NDArray[Any]:
        found = read(self, name, index, shape)
        part = [s.indices(n)[:2] for s, n in zip(index, shape or self.types[name].shape, strict=True)]
        reads.append({"name": name, "shape": shape, "part": part, "bytes": found.nbytes})
        return found

    SafeTensors.read = watched
    minilm = load_example("minilm.py")
    tokens = minilm.tokens_of(model / "tokenizer.json", sentences)
    weights = minilm.load(model / "model.safetensors", tokens)
    held = sum(x.local.nbytes for x in weights.values())
    vectors = np.asarray(minilm.embed(weights, tokens))
    rank = gspmd.world().rank
    (out / f"rank-{rank}.json").write_text(json.dumps({"held": held, "reads": reads}))
    if rank == 0:
        np.save(out / "vectors.npy", vectors)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
