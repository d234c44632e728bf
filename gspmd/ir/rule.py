"""The factor rule of an op: its index structure, stated once as data.

Every dimension of every operand and result is a product of *factors* (loop indices of the op) or an *access* to one.
`dot_general` on `[b,m,k] x [b,k,n]` has factors b, m, n (pass) and k (reduce); a slice reads `p = stride*o + start`.
Propagation, the choice of a partitioning, its cost, the local program and the tests all follow from this record
(factor form: Shardy's `OpShardingRule`; accesses are ours).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

Direction = Literal["forward", "backward", "sideways"]
FactorKind = Literal["pass", "reduce", "scan", "lookup", "select", "whole"]


@dataclass(frozen=True, slots=True)
class Factor:
    """One loop index of an op.

    kind: `pass` (each index stands alone), `reduce` (combined by `monoid`; a split leaves the results unreduced),
    `scan` (cumulative by `monoid`, `reverse` from the end), `lookup` (addressed by data: gather, scatter, dynamic
    slice; if the factor is in no result, a split leaves the results unreduced by `monoid`), `select` (each device picks
    among its own, then all pick among the picks: arg-max, top-k), `whole` (never split: a sort or fft dimension).
    `position`: the values depend on the index itself (iota, random bits).
    """

    size: int
    kind: FactorKind = "pass"
    monoid: str | None = None
    reverse: bool = False
    position: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """An operand dimension read at `div*p = mul*o + kmul*k + add` for factor indices o and k.

    Valid iff `div` divides the right side and 0 <= p < `size`; elsewhere the value read is `fill` (None: such a cell
    is never part of a result), or the scalar operand numbered `fill_operand`. Negative `mul` reads backwards.
    `window`: the number of the `Window` dimension in the op's attributes that says the same.
    """

    size: int
    factor: int
    mul: int = 1
    add: int = 0
    div: int = 1
    kernel_factor: int | None = None
    kmul: int = 0
    fill: int | float | None = None
    fill_operand: int | None = None
    window: int | None = None


# One dimension of one tensor: its factors, major to minor (() for a dimension that carries none), or an access.
DimMap = tuple[int, ...] | Access
TensorMap = tuple[DimMap, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """The factors of one op application, and how each tensor's dimensions are made of them.

    `linear` lists groups of operand numbers: a group may be unreduced (by a sum) over the same axes all together, the
    operands outside it being reduced, and the result is then unreduced alike. `flops` counts the whole op's scalar
    operations when it computes more than it streams (0 for data movement and element-wise work). `silent` lists the
    directions in which propagation does not pass: "forward" (operands to results), "backward", and "sideways".
    """

    factors: tuple[Factor, ...]
    operands: tuple[TensorMap, ...]
    results: tuple[TensorMap, ...]
    linear: tuple[tuple[int, ...], ...] = ()
    flops: int = 0
    silent: tuple[Direction, ...] = ()

    def __post_init__(self) -> None:
        for tensor in self.tensors:
            for dim in tensor:
                for f in dim_factors(dim):
                    if not 0 <= f < len(self.factors):
                        raise ValueError(f"the rule names factor {f} of {len(self.factors)}")

    @property
    def tensors(self) -> tuple[TensorMap, ...]:
        """The operands' maps, then the results'."""
        return self.operands + self.results

    def dim_size(self, dim: DimMap) -> int:
        """Elements of a dimension with this map."""
        return dim.size if isinstance(dim, Access) else prod(self.factors[f].size for f in dim)

    def main_factor(self, dim: Access) -> int:
        """The factor whose split is that of an access dimension: the longer of its two (k in a kernel gradient)."""
        o, k = dim.factor, dim.kernel_factor
        if k is not None and self.factors[k].kind != "whole" and self.factors[k].size > self.factors[o].size:
            return k
        return o

    def sizes(self, dim: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes of the factors of a dimension."""
        return tuple([self.factors[f].size for f in dim])

    def result_factors(self) -> frozenset[int]:
        """Factors that some result dimension carries."""
        return frozenset(f for t in self.results for d in t for f in dim_factors(d))

    def text(self) -> str:
        """`bmk,bkn->bmn | k: reduce(add)` with letters for factors and accesses spelled out."""
        from_names = [_letter(i) for i in range(len(self.factors))]

        def show(tensor: TensorMap) -> str:
            return "[" + ", ".join(_dim_text(d, from_names) for d in tensor) + "]"

        head = f"({', '.join(map(show, self.operands))}) -> ({', '.join(map(show, self.results))})"
        notes = [f"{n}={f.size}{_factor_note(f)}" for n, f in zip(from_names, self.factors, strict=True)]
        linear = " linear " + " ".join("{" + ",".join(map(str, g)) + "}" for g in self.linear) if self.linear else ""
        silent = f" silent {' '.join(self.silent)}" if self.silent else ""
        return f"{head} {{{', '.join(notes)}}}{linear}{silent}"


def dim_factors(dim: DimMap) -> tuple[int, ...]:
    """The factors that a dimension is made of, major to minor; for an access, o and then k."""
    if isinstance(dim, Access):
        return (dim.factor,) if dim.kernel_factor is None else (dim.factor, dim.kernel_factor)
    return dim


def sole_factor(dim: DimMap) -> int:
    """The one factor that a dimension is; of dimensions that can be nothing else."""
    assert isinstance(dim, tuple)
    (factor,) = dim
    return factor


def identity_map(rank: int) -> TensorMap:
    """The map of a tensor whose dimension i is factor i."""
    return tuple((i,) for i in range(rank))


def elementwise_rule(
    shape: tuple[int, ...], operands: int, results: int = 1, linear: tuple[tuple[int, ...], ...] = ()
) -> Rule:
    """The rule of an op that works position by position on tensors of one shape."""
    maps = identity_map(len(shape))
    return Rule(tuple(Factor(n) for n in shape), (maps,) * operands, (maps,) * results, linear)


def _letter(i: int) -> str:
    return "ijklmnopqrstuvwxyzabcdefgh"[i] if i < 26 else f"f{i}"


def _factor_note(f: Factor) -> str:
    kind = "" if f.kind == "pass" else f" {f.kind}" + (f"({f.monoid})" if f.monoid else "")
    return kind + (" reverse" if f.reverse else "") + (" position" if f.position else "")


def _dim_text(dim: DimMap, names: list[str]) -> str:
    if not isinstance(dim, Access):
        return "".join(names[f] for f in dim) or "1"
    terms = [names[dim.factor] if dim.mul == 1 else f"{dim.mul}{names[dim.factor]}"]
    if dim.kernel_factor is not None:
        terms.append(f"{dim.kmul}{names[dim.kernel_factor]}")
    if dim.add:
        terms.append(str(dim.add))
    text = "+".join(terms).replace("+-", "-")
    return f"({text})" if dim.div == 1 else f"({text})/{dim.div}"
