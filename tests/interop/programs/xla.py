"""What XLA's GSPMD sends in the same programs: asks it about all, and records the bytes.

    python -m tests.interop.programs.xla [NAME ...]

XLA gets the program as JAX lowers it, the layout's shardings in it, and its results as we lay them out. Programs with
per-device code are propagated by Shardy: GSPMD aborts where such code leaves axes to annotations. The record,
`xla.json`, says with which jaxlib. The bytes are in the units of `tests/xla/hlo.py`.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
from jax.sharding import NamedSharding

import gspmd
from tests.interop.programs import CASES
from tests.interop.programs.case import Layout, ManualProgram, P, Program, wire_bytes
from tests.xla.oracle import Answer, ask
from tests.xla.version import jaxlib_version

RECORD = Path(__file__).with_name("xla.json")


def recorded() -> dict[str, float]:
    """XLA's bytes by the name of the case."""
    stored: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"bytes": {}}
    return stored["bytes"]


def exported(program: Program, layout: Layout, compiled: gspmd.Compiled) -> str:
    """The program as JAX lowers it for XLA's own propagation, or for Shardy's if it has per-device code."""
    results = [_named(layout, t.sharding) for t in compiled.output_types]
    nested = jax.tree.unflatten(jax.tree.structure(program.expected), results)
    jax.config.update("jax_use_shardy_partitioner", isinstance(program, ManualProgram))
    try:
        function = jax.jit(program.function(layout), keep_unused=True, out_shardings=nested)
        return function.trace(*program.types(layout)).lower(lowering_platforms=("cpu",)).as_text()
    finally:
        jax.config.update("jax_use_shardy_partitioner", True)


def _named(layout: Layout, sharding: Any) -> NamedSharding:
    entries = [tuple(sharding.mesh.axis_text(a) for a in d.axes) or None for d in sharding.dims]
    return NamedSharding(layout.jax_mesh, P(*entries))


def main(names: list[str]) -> int:
    """Ask about the cases whose names start so, print a table, and record; returns 1 if XLA refused one."""
    chosen = {name: case for name, case in CASES.items() if not names or name.startswith(tuple(names))}
    compiled = {name: gspmd.compile(p.module(at)) for name, (p, at) in chosen.items()}
    texts = {name: exported(p, at, compiled[name]) for name, (p, at) in chosen.items()}
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda name: ask(texts[name], chosen[name][1].devices), chosen)
        answers: dict[str, Answer] = dict(zip(chosen, found, strict=True))
    print("| program | ours | XLA | ratio |\n|---|---:|---:|---:|")
    for name, answer in answers.items():
        ours = wire_bytes(compiled[name])
        ratio = f"{ours / answer.wire_bytes:.2f}" if answer.wire_bytes else "-"
        print(f"| {name} | {ours:,.0f} | {answer.wire_bytes:,.0f} | {ratio} | {answer.error}")
    good = {name: a.wire_bytes for name, a in answers.items() if not a.error}
    stored = {name: size for name, size in {**recorded(), **good}.items() if name in CASES}
    text = json.dumps({"jaxlib": jaxlib_version(), "bytes": stored}, indent=1)
    RECORD.write_text(text + "\n", encoding="utf-8")
    return 0 if len(good) == len(answers) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
