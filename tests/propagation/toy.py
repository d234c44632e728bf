"""Small ops of our own, so that propagation is tested on rules alone: an einsum over letters, a loop, an annotation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.location import Location
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import OpDef, Trait
from gspmd.ir.rule import Access, Factor, FactorKind, Rule, elementwise_rule
from gspmd.ir.sharding import Sharding, parse_sharding
from gspmd.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class EinsumAttrs(Attrs):
    """`mk,kn->mn`; `(hd)` is a dimension made of two factors; a capital is `whole`, but V is looked up.

    `sizes` are of letters that need one.
    """

    spec: str
    sizes: tuple[tuple[str, int], ...] = ()


def _tensors(spec: str) -> tuple[list[list[str]], list[list[str]]]:
    def dims(text: str) -> list[str]:
        out: list[str] = []
        while text:
            if text[0] == "(":
                inside, _, text = text[1:].partition(")")
                out.append(inside)
            else:
                out.append(text[0])
                text = text[1:]
        return out

    left, _, right = spec.partition("->")
    return [dims(t) for t in left.split(",")], [dims(t) for t in right.split(",")]


def _sizes(types: Sequence[TensorType], attrs: EinsumAttrs) -> dict[str, int]:
    sizes = dict(attrs.sizes)
    for names, type_ in zip(_tensors(attrs.spec)[0], types, strict=True):
        for name, n in zip(names, type_.shape, strict=True):
            if len(name) == 1:
                assert sizes.setdefault(name, n) == n, (attrs, types)
            else:
                assert prod(sizes[c] for c in name) == n, (attrs, types)
    return sizes


def _einsum_infer(types: Any, attrs: EinsumAttrs, regions: Any) -> Any:
    sizes = _sizes(types, attrs)
    return tuple(TensorType("f32", [prod(sizes[c] for c in d) for d in t]) for t in _tensors(attrs.spec)[1])


def _einsum_rule(types: Any, results: Any, attrs: EinsumAttrs) -> Rule:
    sizes = _sizes(types, attrs)
    left, right = _tensors(attrs.spec)
    names = list(sizes)
    kept = {c for t in right for d in t for c in d}
    kinds: list[FactorKind] = [
        "lookup" if n == "V" else "whole" if n.isupper() else "pass" if n in kept else "reduce" for n in names
    ]
    factors = tuple(Factor(sizes[n], k, "add" if k == "reduce" else None) for n, k in zip(names, kinds, strict=True))
    maps = [[tuple(tuple(names.index(c) for c in d) for d in t) for t in side] for side in (left, right)]
    return Rule(factors, tuple(maps[0]), tuple(maps[1]))


EINSUM: OpDef[EinsumAttrs] = OpDef("toy_einsum", EinsumAttrs, _einsum_infer, rule=_einsum_rule)


@dataclass(frozen=True, slots=True)
class CropAttrs(Attrs):
    """The first `limit` rows."""

    limit: int


def _crop_rule(types: Any, results: Any, attrs: CropAttrs) -> Rule:
    factors = tuple(map(Factor, results[0].shape))
    operand = (Access(types[0].shape[0], 0), *((i,) for i in range(1, types[0].rank)))
    return Rule(factors, (operand,), (tuple((i,) for i in range(len(factors))),))


CROP: OpDef[CropAttrs] = OpDef(
    "toy_crop", CropAttrs, lambda t, a, r: (TensorType("f32", (a.limit, *t[0].shape[1:])),), rule=_crop_rule
)


@dataclass(frozen=True, slots=True)
class ShardAttrs(Attrs):
    """The annotation."""

    sharding: Sharding


SHARD: OpDef[ShardAttrs] = OpDef(
    "toy_shard",
    ShardAttrs,
    lambda types, attrs, regions: (types[0].with_sharding(attrs.sharding),),
    rule=lambda operands, results, attrs: elementwise_rule(operands[0].shape, 1),
    traits=frozenset({Trait.IDENTITY}),
)


def _loop_flow(node: Node) -> tuple[tuple[Value, ...], ...]:
    (body,) = node.regions
    return tuple(zip(node.operands, body.params, body.results, node.results, strict=True))


LOOP: OpDef[Attrs] = OpDef(
    "toy_loop", Attrs, lambda types, attrs, regions: tuple(t.bare for t in types), flow=_loop_flow
)
APPLY: OpDef[Attrs] = OpDef(
    "toy_apply",
    Attrs,
    lambda types, attrs, regions: (types[0].bare,),
    rule=lambda operands, results, attrs: elementwise_rule(operands[0].shape, 1),
)  # an op with an element region


class Toy:
    """A program under construction; each op gets its own line of `toy.py`."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh, self.builder, self.line = mesh, Builder(), 0

    def param(self, *shape: int, at: str | None = None, name: str = "") -> Value:
        """A parameter, `at` its annotation: `[data, _?]`."""
        sharding = None if at is None else parse_sharding(at, self.mesh)
        return self.builder.param(TensorType("f32", shape, sharding), name)

    def op(self, spec: str, *xs: Value, name: str = "", **sizes: int) -> Value:
        """An einsum."""
        return EINSUM.emit(self.builder, xs, EinsumAttrs(spec, tuple(sizes.items())), loc=self.loc(), name=name)[0]

    def shard(self, x: Value, at: str, name: str = "") -> Value:
        """An annotation."""
        return SHARD.emit(self.builder, (x,), ShardAttrs(parse_sharding(at, self.mesh)), loc=self.loc(), name=name)[0]

    def loc(self) -> Location:
        """The next line."""
        self.line += 1
        return Location("toy.py", self.line)

    def done(self, *results: Value) -> Program:
        """The finished program."""
        return Program.of("toy", self.builder.region(results), self.mesh)


def text(value: Value) -> str:
    """The sharding of a value of a propagated program."""
    assert value.type.sharding is not None
    return value.type.sharding.text()


def named(program: Program) -> dict[str, str]:
    """The shardings of all values that have a name, those of regions included."""
    values = list(program.body.params) + [v for n in program.body.walk() for v in n.results]
    values += [v for n in program.body.walk() for r in n.regions for v in r.params]
    return {v.name: text(v) for v in values if v.name}


def shuffled(program: Program, rng: random.Random) -> Program:
    """The same program, its nodes in another topological order (within each region)."""
    return replace(program, body=_shuffled(program.body, rng))


def _shuffled(region: Region, rng: random.Random) -> Region:
    nodes = [replace(n, regions=tuple(_shuffled(r, rng) for r in n.regions)) for n in region.nodes]
    known, order = set(region.params), list[Node]()
    while nodes:
        ready = [n for n in nodes if known.issuperset(n.operands)]
        node = rng.choice(ready)
        nodes.remove(node)
        order.append(node)
        known.update(node.results)
    return Region(region.params, tuple(order), region.results)


def random_program(seed: int) -> Program:
    """A program of random rules over a few sizes (some ragged on the mesh) with random, often clashing annotations.

    Those of odd seeds have one shape and many annotations: everything is contested.
    """
    rng = random.Random(seed)
    ops, annotations = 20 + seed % 40, 4 + seed % 13
    shapes = ((8, 8),) if seed % 2 else _SHAPES
    mesh = Mesh({"a": 2, "b": 4, "c": 3})
    toy = Toy(mesh)
    pool = [_maybe_annotated(toy, rng, rng.choice(shapes), 0.4) for _ in range(4)]
    for number in range(ops):
        value = _random_loop(toy, rng, pool) if rng.random() < 0.06 else _random_op(toy, rng, pool)
        if rng.random() < annotations / ops:
            value = toy.shard(value, random_annotation(rng, value.type.shape), name=f"s{number}")
        pool.append(value)
    return toy.done(*rng.sample(pool, 3))


_SHAPES = ((8, 12), (12, 8), (8, 8), (12, 12), (5, 8), (8, 6, 4))


def _maybe_annotated(toy: Toy, rng: random.Random, shape: tuple[int, ...], chance: float) -> Value:
    at = random_annotation(rng, shape) if rng.random() < chance else None
    return toy.param(*shape, at=at)


def random_annotation(rng: random.Random, shape: tuple[int, ...]) -> str:
    """Axes on random dimensions, some of them open."""
    axes = ["a", "b", "c", "b:(1)2"]
    rng.shuffle(axes)
    if "b" in axes and "b:(1)2" in axes:
        axes.remove(rng.choice(["b", "b:(1)2"]))
    dims = [axes.pop() if rng.random() < 0.5 else "_" for _ in shape]
    dims = [d + ("?" if rng.random() < 0.4 else "") for d in dims]
    rest = f"^({axes[0]})" if axes and rng.random() < 0.2 else ""
    return f"[{', '.join(dims)}]{rest}"


def _random_op(toy: Toy, rng: random.Random, pool: list[Value]) -> Value:
    x = rng.choice(pool)
    if x.type.rank == 3:
        return toy.op(rng.choice(["abc->a(bc)", "abc->(ab)c", "abc->acb", "aBc->aBc"]), x)
    if x.type.rank == 1:
        return toy.op("a->ab", x, b=rng.choice([8, 12]))
    n, m = x.type.shape
    same = [y for y in pool if y.type.shape == x.type.shape]
    into = [y for y in pool if y.type.rank == 2 and y.type.shape[0] == m]
    kind = rng.randrange(9)
    if kind == 0 and into:
        return toy.op("mk,kn->mn", x, rng.choice(into))
    if kind == 1:
        return toy.op("mn,mn->mn", x, rng.choice(same))
    if kind == 2:
        return toy.op("mn->nm", x)
    if kind == 3:
        return toy.op(rng.choice(["mn->m", "mn->n"]), x)
    if kind == 4 and m % 4 == 0:
        return toy.op("m(hd)->mhd", x, h=m // 4, d=4)
    if kind == 5 and n > 5:
        return CROP.emit(toy.builder, (x,), CropAttrs(5), loc=toy.loc())[0]
    if kind == 6:
        return toy.op("mn,mk->nk", x, rng.choice([y for y in pool if y.type.rank == 2 and y.type.shape[0] == n]))
    if kind == 7:
        return toy.op(rng.choice(["Mn->Mn", "mN->mN"]), x)
    return toy.op("mn->mn", x)


def _random_loop(toy: Toy, rng: random.Random, pool: list[Value]) -> Value:
    carries = rng.sample(pool, 2)
    body = Toy(toy.mesh)
    inner = [body.param(*v.type.shape) for v in carries]
    outs = [body.op(f"{d}->{d}", v) for v in inner for d in ["abcd"[: v.type.rank]]]
    region = body.builder.region(outs)
    return LOOP.emit(toy.builder, carries, Attrs(), (region,), loc=toy.loc())[0]
