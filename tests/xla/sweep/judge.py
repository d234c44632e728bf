"""Run many cases through XLA at once, and compare ours with them one by one.

A batch is one module: the cases' functions under names of their own, called by one `main`. XLA compiles it without
optimising, so that every op is computed as it is written.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import gspmd
from gspmd.kernels.closeness import compare
from gspmd.kernels.finite import tiny
from tests.xla.sweep.cases import Array, Case
from tests.xla.sweep.exceptions import reference

# Without its fusion emitters XLA compiles thrice as fast.
_OPTIONS = [("xla_backend_optimization_level", 0), ("xla_cpu_use_fusion_emitters", False)]
_DEFINED = re.compile(r"func\.func\s+(?:public\s+|private\s+)?@([\w.$-]+)")
_MAIN = re.compile(r"func\.func\s+(?:public\s+)?@main\(")


@dataclass(frozen=True)
class Mismatch:
    """A case whose results are not the same, or that one of the two refused."""

    case: Case
    message: str

    def text(self) -> str:
        """The case as it can be repeated, and what is wrong."""
        shown = "\n".join(f"  %a{i} = {np.array2string(x, threshold=200)}" for i, x in enumerate(self.case.arrays))
        return f"{self.case.label}: {self.message}\n{self.case.text}\n{shown}"


def judge(cases: Sequence[Case]) -> list[Mismatch]:
    """The cases in which we differ from XLA (or from the reference, where one stands in for it)."""
    found: list[Mismatch] = []
    cases = [c if c.moves else replace(c, arrays=tuple(map(flushed, c.arrays))) for c in cases]
    for case, theirs in zip(cases, ask(cases), strict=True):
        message = theirs if isinstance(theirs, str) else differs(case, theirs)
        if message:
            found.append(Mismatch(case, message))
    return found


def differs(case: Case, theirs: Sequence[Array]) -> str:
    """How our results differ from others, if they do."""
    try:
        ours = run(case.text, case.arrays)
    except Exception as error:  # noqa: BLE001 - whatever it raises is a finding
        return f"ours raised {type(error).__name__}: {error}"
    if len(ours) != len(theirs):
        return f"ours has {len(ours)} results, theirs {len(theirs)}"
    if not case.moves:
        ours, theirs = [flushed(y) for y in ours], [flushed(y) for y in theirs]
    sizes: Sequence[Any] = [None] * len(ours)
    if case.absolute:
        sizes = run(case.text, [_magnitude(x) for x in case.arrays])
    elif case.elementwise:
        with np.errstate(all="ignore"):
            sizes = [np.maximum(np.abs(y), case.least) if y.dtype.kind != "b" else None for y in theirs]
    wanted = reference(case, theirs)
    for i, (a, b, size) in enumerate(zip(ours, wanted, sizes, strict=True)):
        got = compare(a, b, size, case.terms, exact=case.exact)
        if not got:
            return f"result {i}: {got.message}"
    return ""


def run(text: str, arrays: Sequence[Array]) -> list[Array]:
    """Our results."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        out = gspmd.from_stablehlo(text).run(*arrays)
    return [np.asarray(y) for y in (out if isinstance(out, tuple) else (out,))]


def flushed(x: Array) -> Array:
    """The array with zeros for subnormal numbers: XLA on a CPU sets the processor to take and make them so."""
    if x.dtype.kind == "c":
        out: Any = np.empty_like(x)
        out.real, out.imag = flushed(np.real(x)), flushed(np.imag(x))
        return out
    if x.dtype.name not in ("float32", "float64", "bfloat16"):
        return x
    with np.errstate(all="ignore"):
        return np.where(np.abs(x) <= tiny(x.dtype), x * x.dtype.type(0), x).astype(x.dtype)


def _magnitude(x: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.abs(x).astype(x.dtype) if x.dtype.kind not in "biu" else x


# -- XLA -------------------------------------------------------------------------------------------------------------


def ask(cases: Sequence[Case]) -> list[list[Array] | str]:
    """XLA's results of each case, or why it refused."""
    if not cases:
        return []
    try:
        flat = _execute(_merged(cases), [x for c in cases for x in c.arrays])
    except Exception as error:  # noqa: BLE001
        if len(cases) == 1:
            return [f"XLA refused: {str(error)[:600]}"]
        half = len(cases) // 2
        return ask(cases[:half]) + ask(cases[half:])
    rest = iter(flat)
    return [[next(rest) for _ in range(count)] for count in map(_result_count, cases)]


@lru_cache(maxsize=1)
def _client() -> Any:
    """A client that computes in the calling thread: XLA's own threads take subnormal numbers for zero."""
    from jaxlib import xla_client

    return xla_client.make_cpu_client(asynchronous=False)


def _execute(text: str, arrays: Sequence[Array]) -> list[Array]:
    import jax
    from jaxlib import xla_client

    client = _client()
    device = client.devices()[0]
    options = xla_client.CompileOptions()
    options.env_option_overrides = _OPTIONS
    compiled = client.compile_and_load(text.encode(), xla_client.DeviceList((device,)), options)
    with jax.enable_x64(True):
        outputs = compiled.execute_sharded([jax.device_put(x, device) for x in arrays])
        return [np.asarray(shards[0]) for shards in outputs.disassemble_into_single_device_arrays()]


def _merged(cases: Sequence[Case]) -> str:
    parts: list[str] = []
    calls: list[str] = []
    params: list[str] = []
    outs: list[str] = []
    types: list[str] = []
    for i, case in enumerate(cases):
        parts.append(_renamed(case.text, f"c{i}_"))
        inputs, results = signature(case.text)
        names = [f"%a{len(params) + k}" for k in range(len(inputs))]
        params += [f"{n}: {t}" for n, t in zip(names, inputs, strict=True)]
        head = f"%r{i}:{len(results)}" if len(results) > 1 else f"%r{i}"
        made = f"({', '.join(inputs)}) -> ({', '.join(results)})"
        calls.append(f"{head} = func.call @c{i}_main({', '.join(names)}) : {made}")
        outs += [f"%r{i}#{k}" if len(results) > 1 else f"%r{i}" for k in range(len(results))]
        types += results
    body = "\n  ".join(calls)
    main = f"func.func public @main({', '.join(params)}) -> ({', '.join(types)}) {{\n  {body}\n"
    return (
        "module @sweep {\n" + main + f"  return {', '.join(outs)} : {', '.join(types)}\n}}\n" + "\n".join(parts) + "}"
    )


def _renamed(text: str, prefix: str) -> str:
    """The functions of a module, all private, their names with a prefix."""
    text = _bare(text)
    for name in sorted(set(_DEFINED.findall(text)), key=len, reverse=True):
        text = re.sub(rf"(?<!custom_call )@{re.escape(name)}(?![\w.$-])", f"@{prefix}{name}", text)
    text = re.sub(r"func\.func\s+(?:public\s+|private\s+)?@", "func.func private @", text)
    return re.sub(r"\{jax\.\w+ = [^{}]*\}", "", text)


def _bare(text: str) -> str:
    """What is inside `module ... { }`."""
    start = text.find("module")
    if start < 0 or start > text.find("func.func"):
        return text
    lines = text[start:].rstrip().splitlines()
    return "\n".join(lines[1:-1])


def signature(text: str) -> tuple[list[str], list[str]]:
    """The types of main's arguments and results, as text."""
    found = _MAIN.search(text)
    assert found is not None, text
    at = found.end() - 1
    params, at = _enclosed(text, at)
    arrow = text.index("->", at)
    rest = text[arrow + 2 :].lstrip()
    results = _enclosed(rest, 0)[0] if rest.startswith("(") else rest[: rest.index(" {")]
    return re.findall(r"tensor<[^<>]*(?:<[^<>]*>)?>", params), re.findall(r"tensor<[^<>]*(?:<[^<>]*>)?>", results)


def _enclosed(text: str, at: int) -> tuple[str, int]:
    """What is within the parenthesis that opens at a place, and where it ends."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[at + 1 : i], i + 1
    raise AssertionError("unbalanced")


def _result_count(case: Case) -> int:
    return len(signature(case.text)[1])
