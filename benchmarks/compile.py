"""Compile time: a Transformer's training step through every stage, beside XLA on the same program in the same run.

    python -m benchmarks.compile [--layers 32] [--repeat 5] [--no-xla]

Every measurement is a fresh process without an on-disk cache: our compiler for 8 devices and for 65,536, each stage
verified; XLA's GSPMD on the very program that we trace (exported as StableHLO) and on the same model written in JAX.
Runs alternate; the table shows medians. Numbers of one run compare, numbers of different machines do not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks.transformer import Library, Sizes, arguments, training_step

SMALL, LARGE = (2, 4), (4096, 16)  # (data, model): 8 and 65,536 devices
MOST_SECONDS = 5.0
_MODULE = "benchmarks.compile"


def traced(layers: int, mesh_shape: Sequence[int]) -> Any:
    """The training step, traced for a mesh (data, model)."""
    import gspmd
    import gspmd.numpy

    mesh = gspmd.Mesh({"data": mesh_shape[0], "model": mesh_shape[1]})
    library = Library(gspmd.numpy, lambda x, *entries: gspmd.shard(x, mesh, *entries), gspmd.value_and_grad)
    sizes = Sizes(layers=layers)
    given = arguments(sizes, lambda shape, dtype: gspmd.TensorType(dtype, shape))
    return gspmd.trace(training_step(library, sizes), *given)


def measure(layers: int, mesh_shape: Sequence[int]) -> dict[str, Any]:
    """Seconds of each step of one cold compilation, and what each stage looks like."""
    start = perf_counter()
    from gspmd.driver.pipeline import run_stages
    from gspmd.ir.printer import print_program

    imported, cpu = perf_counter(), process_time()
    module = traced(layers, mesh_shape)
    tracing = perf_counter() - imported
    stages = run_stages(module.program)
    total = perf_counter() - imported
    cpu = process_time() - cpu
    shapes: dict[str, Any] = {}
    for name, program in stages.programs.items():
        ops = [node.op.name for node in program.body.walk()]
        digest = hashlib.sha256(" ".join(ops).encode()).hexdigest()
        shapes[name] = {"ops": len(ops), "sequence": digest, "text": len(print_program(program))}
    seconds = {"import": imported - start, "tracing": tracing, **stages.seconds, "total": total, "total, CPU time": cpu}
    return {"seconds": seconds, "stages": shapes}


def run_child(arguments_: Sequence[str]) -> dict[str, Any]:
    """A measurement in a process of its own."""
    done = subprocess.run([sys.executable, "-m", _MODULE, *arguments_], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def medians(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """The median of each number."""
    return {key: median(run[key] for run in runs) for key in runs[0]}


def compare_meshes(small: dict[str, Any], large: dict[str, Any]) -> list[str]:
    """Lines on how the two programs differ, stage by stage."""
    lines: list[str] = []
    for name, a in small["stages"].items():
        b = large["stages"][name]
        same = "same ops" if a["sequence"] == b["sequence"] else f"OPS DIFFER ({a['ops']} and {b['ops']})"
        lines.append(f"  {name:12} {a['ops']:7} ops  {same}, text {b['text'] / a['text']:.3f} of the small one's")
    return lines


def report(ours: dict[str, list[dict[str, Any]]], xla: dict[str, list[dict[str, Any]]]) -> str:
    """The tables."""
    small, large = (medians([run["seconds"] for run in ours[key]]) for key in ("small", "large"))
    lines = ["seconds (median)           8 devices   65,536 devices"]
    lines += [f"  {key:22} {small[key]:10.3f} {large[key]:13.3f}" for key in small]
    lines += ["", "8 and 65,536 devices, stage by stage", *compare_meshes(ours["small"][-1], ours["large"][-1])]
    lines += [f"  time: {large['total, CPU time'] / small['total, CPU time']:.2f} of the small one's (CPU)"]
    for title, runs in xla.items():
        found = medians(runs)
        lines += ["", f"XLA (GSPMD), 8 devices, {title}: {found.pop('ops'):.0f} ops"]
        lines += [f"  {key:22} {value:10.3f}" for key, value in found.items()]
        best = min(run["seconds"]["propagated"] for run in ours["small"]), min(r["sharding-propagation"] for r in runs)
        lines += [f"  propagation at best: ours {best[0]:.3f} s, XLA's {best[1]:.3f} s, ratio {best[0] / best[1]:.2f}"]
    return "\n".join(lines)


def main(given: Sequence[str] | None = None) -> int:
    """The command; returns 1 if a promise is broken (`broken_promises`)."""
    parser = argparse.ArgumentParser(prog=f"python -m {_MODULE}", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-xla", action="store_true", help="leave XLA out, which takes most of the time")
    parser.add_argument("--child", metavar="MESH", help="measure our compiler once, print JSON: small or large")
    parser.add_argument("--export", type=Path, help="write the program for 8 devices as StableHLO")
    args = parser.parse_args(given)
    if args.child:
        print(json.dumps(measure(args.layers, SMALL if args.child == "small" else LARGE)))
        return 0
    if args.export:
        from gspmd.interop.export_stablehlo import export_stablehlo

        args.export.write_text(export_stablehlo(traced(args.layers, SMALL).program))
        return 0
    return _run(args.layers, args.repeat, not args.no_xla)


def _run(layers: int, repeat: int, with_xla: bool) -> int:
    from benchmarks.xla import run_xla

    ours: dict[str, list[dict[str, Any]]] = {"small": [], "large": []}
    xla: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder, "program.mlir")
        if with_xla:
            subprocess.run([sys.executable, "-m", _MODULE, f"--layers={layers}", f"--export={exported}"], check=True)
        for _ in range(repeat):
            for key, runs in ours.items():
                runs.append(run_child([f"--layers={layers}", f"--child={key}"]))
            if with_xla:
                xla.setdefault("the same program", []).append(run_xla(["--file", str(exported)]))
                xla.setdefault("the model in JAX", []).append(run_xla(["--layers", str(layers)]))
    print(report(ours, xla))
    broken = list(broken_promises(ours, xla))
    for line in broken:
        print(f"BROKEN: {line}")
    return 1 if broken else 0


def broken_promises(ours: dict[str, list[dict[str, Any]]], xla: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """What the compiler promises and these measurements deny."""
    small, large = (medians([run["seconds"] for run in ours[key]]) for key in ("small", "large"))
    best = min(run["seconds"]["propagated"] for run in ours["small"])  # what the machine did least to
    for title, runs in xla.items():
        rival = min(run["sharding-propagation"] for run in runs)
        if best >= rival:
            yield f"propagation takes {best:.3f} s at best, XLA's on {title} {rival:.3f} s"
    # By CPU time, since the machine may be busy with other things.
    if small["total, CPU time"] > MOST_SECONDS:
        yield f"compiling takes {small['total, CPU time']:.1f} s, more than {MOST_SECONDS}"
    if large["total, CPU time"] > 1.3 * small["total, CPU time"]:
        yield "65,536 devices take more than 1.3 of the time for 8"
    for name, a in ours["small"][-1]["stages"].items():
        b = ours["large"][-1]["stages"][name]
        if a["sequence"] != b["sequence"] or not 0.8 < b["text"] / a["text"] < 1.2:
            yield f"at stage {name} 65,536 devices have another program than 8"


if __name__ == "__main__":
    raise SystemExit(main())
