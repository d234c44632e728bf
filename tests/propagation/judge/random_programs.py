"""Random annotated programs out of the pieces that models are made of, in sizes at which bytes matter."""

from __future__ import annotations

import random
from typing import Any

import gspmd
from gspmd import numpy as gnp

MESHES = (
    gspmd.Mesh({"x": 2, "y": 4}),
    gspmd.Mesh({"x": 4}),
    gspmd.Mesh({"x": 4, "y": 2}),
    gspmd.Mesh({"x": 2, "y": 2, "z": 2}),
)
SIZES = (64, 128, 256, 512)


def annotate(rng: random.Random, x: Any, mesh: gspmd.Mesh, opened: float = 0.3) -> Any:
    """The value with axes on random dimensions, some dimensions open."""
    return gspmd.shard(x, mesh, *_entries(rng, x.ndim, mesh, opened))


def _entries(rng: random.Random, rank: int, mesh: gspmd.Mesh, opened: float) -> list[str | tuple[str, ...] | None]:
    held: list[list[str]] = [[] for _ in range(rank)]
    names = [name for name, _ in mesh.axes]
    rng.shuffle(names)
    for name in names:
        if rank and rng.random() < 0.7:
            held[rng.randrange(rank)].append(name)
    out: list[str | tuple[str, ...] | None] = []
    for dim in held:
        mark = "?" if rng.random() < opened else ""
        if len(dim) > 1:
            out.append((*dim[:-1], dim[-1] + mark))
        else:
            out.append(dim[0] + mark if dim else mark or None)
    return out


def _plan(rng: random.Random) -> tuple[list[tuple[int, ...]], list[tuple[Any, ...]]]:
    """Shapes of the parameters and the steps of a program over a list of values, decided before anything is traced."""
    shapes: list[tuple[int, ...]] = [tuple(rng.choice(SIZES) for _ in range(rng.choice((2, 2, 3)))) for _ in range(2)]
    values = list(shapes)
    params = [0, 1]
    steps: list[tuple[Any, ...]] = []

    def param(shape: tuple[int, ...]) -> int:
        values.append(shape)
        params.append(len(values) - 1)
        steps.append(("param", shape))
        return len(values) - 1

    def made(shape: tuple[int, ...], *step: Any) -> None:
        values.append(shape)
        steps.append(step)

    for _ in range(rng.randrange(4, 12)):
        i = rng.randrange(max(0, len(values) - 4), len(values))
        s = values[i]
        kind = rng.choice(
            ("unary", "add", "add", "matmul", "matmul", "matmul", "tmatmul", "reduce", "norm", "softmax", "transpose",
             "split", "merge", "slice", "pad", "concat", "bias", "gather", "cumsum", "loop", "sort", "scores")
        )  # fmt: skip
        r = len(s)
        if kind == "unary":
            made(s, "unary", i)
        elif kind == "add":
            same = [j for j, t in enumerate(values) if t == s and j != i]
            j = rng.choice(same) if same and rng.random() < 0.8 else param(s)
            made(s, "add", i, j)
        elif kind == "matmul" and r >= 2:
            fits = [j for j, t in enumerate(values) if len(t) == 2 and t[0] == s[-1] and j != i]
            j = rng.choice(fits) if fits and rng.random() < 0.5 else param((s[-1], rng.choice(SIZES)))
            made((*s[:-1], values[j][1]), "matmul", i, j)
        elif kind == "tmatmul" and r == 2:
            fits = [j for j, t in enumerate(values) if len(t) == 2 and t[0] == s[0]]
            j = rng.choice(fits)
            made((s[1], values[j][1]), "tmatmul", i, j)
        elif kind == "scores" and r == 3:
            fits = [j for j, t in enumerate(values) if len(t) == 3 and (t[0], t[2]) == (s[0], s[2])]
            j = rng.choice(fits)
            made((s[0], s[1], values[j][1]), "scores", i, j)
        elif kind == "reduce" and r >= 2:
            d = rng.randrange(r)
            made((*s[:d], *s[d + 1 :]), "reduce", i, d)
        elif kind in ("norm", "softmax", "cumsum", "sort") and r >= 1:
            made(s, kind, i, rng.randrange(r))
        elif kind == "transpose" and r >= 2:
            perm = list(range(r))
            rng.shuffle(perm)
            made(tuple(s[p] for p in perm), "transpose", i, tuple(perm))
        elif kind == "split" and r in (1, 2) and max(s) >= 64:
            d = rng.randrange(r)
            h = rng.choice((4, 8, 16))
            shape = (*s[:d], h, s[d] // h, *s[d + 1 :])
            made(shape, "reshape", i, shape)
        elif kind == "merge" and r == 3:
            d = rng.randrange(2)
            shape = (*s[:d], s[d] * s[d + 1], *s[d + 2 :])
            made(shape, "reshape", i, shape)
        elif kind == "slice" and r >= 1:
            d = rng.randrange(r)
            made(tuple(n // 2 if k == d else n for k, n in enumerate(s)), "slice", i, d)
        elif kind == "pad" and r >= 1:
            d = rng.randrange(r)
            made(tuple(2 * n if k == d else n for k, n in enumerate(s)), "pad", i, d)
        elif kind == "concat" and r >= 1:
            d = rng.randrange(r)
            made(tuple(2 * n if k == d else n for k, n in enumerate(s)), "concat", i, d)
        elif kind == "bias" and r >= 1:
            j = param((s[-1],))
            made(s, "bias", i, j)
        elif kind == "gather" and r >= 2:
            n = rng.choice(SIZES)
            made((n, *s[1:]), "gather", i, n)
        elif kind == "loop" and r == 2:
            j = param((s[1], s[1]))
            made(s, "loop", i, j)
    return shapes, steps


def _run(step: tuple[Any, ...], v: list[Any], mesh: gspmd.Mesh) -> Any:
    kind, i, *rest = step
    x = v[i]
    match kind:
        case "unary":
            return gnp.tanh(x)
        case "add":
            return x + v[rest[0]]
        case "matmul":
            return x @ v[rest[0]]
        case "tmatmul":
            return x.T @ v[rest[0]]
        case "scores":
            return gnp.einsum("bqd,bkd->bqk", x, v[rest[0]])
        case "reduce":
            return x.sum(axis=rest[0])
        case "norm":
            return x - x.mean(axis=rest[0], keepdims=True)
        case "softmax":
            return gnp.softmax(x, axis=rest[0])
        case "cumsum":
            return gnp.cumsum(x, axis=rest[0])
        case "sort":
            return gnp.sort(x, axis=rest[0])
        case "transpose":
            return gnp.transpose(x, rest[0])
        case "reshape":
            return gnp.reshape(x, rest[0])
        case "slice":
            return x[tuple(slice(0, n // 2) if d == rest[0] else slice(None) for d, n in enumerate(x.shape))]
        case "pad":
            return gnp.pad(x, [(n // 2, n // 2) if d == rest[0] else (0, 0) for d, n in enumerate(x.shape)])
        case "concat":
            return gnp.concatenate([x, gnp.exp(x)], axis=rest[0])
        case "bias":
            return x + v[rest[0]]
        case "gather":
            return gnp.take(x, gnp.asarray([(7 * k) % x.shape[0] for k in range(rest[0])], "int32"), axis=0)
        case "loop":
            w = v[rest[0]]
            return gspmd.fori_loop(0, 3, lambda k, a: gnp.tanh(a @ w), x)
        case _:
            raise AssertionError(kind)


def random_module(seed: int) -> gspmd.Module:
    """A program of the seed: its parameters and some of its values annotated, the last ones returned."""
    rng = random.Random(seed)
    mesh = MESHES[seed % len(MESHES)]
    shapes, steps = _plan(rng)
    wanted = shapes + [s[1] for s in steps if s[0] == "param"]
    density = rng.choice((0.15, 0.3, 0.5))
    types: list[gspmd.TensorType] = []
    for shape in wanted:
        if rng.random() < density + 0.2:
            held = gspmd.Sharding.of(mesh, *_entries(rng, len(shape), mesh, 0.0))
            types.append(gspmd.TensorType("f32", shape, held))
        else:
            types.append(gspmd.TensorType("f32", shape))
    chosen = [rng.random() < density / 2 for _ in steps]
    inner = random.Random(seed + 1)

    def program(*args: Any) -> Any:
        given = list(args)
        values = given[:2]
        rest = iter(given[2:])
        for step, marked in zip(steps, chosen, strict=True):
            if step[0] == "param":
                values.append(next(rest))
                continue
            y = _run(step, values, mesh)
            values.append(annotate(inner, y, mesh) if marked else y)
        out = values[-1]
        used = [x for x in values[-3:-1] if not any(x is a for a in args)]
        return (out, *used)

    program.__name__ = f"random_{seed}"
    return gspmd.trace(program, *types, mesh=mesh)
