"""dot_general and convolution: dimension numbers, mixed result types, strides, dilations, padding, groups."""

from __future__ import annotations

from math import prod

from tests.xla.sweep import values
from tests.xla.sweep.cases import (
    COMPLEX,
    EVERY,
    FLOATS,
    INTS,
    UINTS,
    Case,
    Draw,
    Generator,
    choose,
    flags,
    flip,
    integer,
    listed,
    pairs,
    permutation,
    random,
    single,
)

# Results of another type than the operands'.
_WIDER = {
    "i8": ("i8", "i32"),
    "u8": ("u8", "u32"),
    "i16": ("i16", "i32"),
    "f16": ("f16", "f32"),
    "bf16": ("bf16", "f32"),
    "f32": ("f32", "f64"),
    "f8e4m3fn": ("f32",),
    "f8e5m2": ("f32",),
}
_EXACT = ("bool", *INTS, *UINTS)


def _dot_general(draw: Draw, dtype: str) -> Case:
    rng = random(draw)
    sizes = {kind: [integer(draw, 1, 4) for _ in range(integer(draw, 0, 2))] for kind in "blrk"}
    if integer(draw, 0, 24) == 7 and sizes["k"]:
        sizes["k"][0] = 0
    names = {kind: [f"{kind}{i}" for i in range(len(sizes[kind]))] for kind in "blrk"}
    size = {name: n for kind in "blrk" for name, n in zip(names[kind], sizes[kind], strict=True)}
    left = permutation(draw, names["b"] + names["l"] + names["k"])
    right = permutation(draw, names["b"] + names["r"] + names["k"])
    batch, contract = permutation(draw, names["b"]), permutation(draw, names["k"])
    free = [n for n in left if n[0] == "l"], [n for n in right if n[0] == "r"]
    out = tuple(size[n] for n in (*batch, *free[0], *free[1]))
    arrays = tuple(values.finite(rng, dtype, tuple(size[n] for n in side), 1.0) for side in (left, right))
    result = choose(draw, _WIDER.get(dtype, (dtype,)))
    numbers = ", ".join(
        f"{side}_{what}_dimensions = [{', '.join(str(dims.index(n)) for n in wanted)}]"
        for what, wanted in (("batching", batch), ("contracting", contract))
        for side, dims in (("lhs", left), ("rhs", right))
    )
    attrs = f"dot_dimension_numbers = #stablehlo.dot<{numbers}>"
    if flip(draw) and dtype in FLOATS:
        level = f"#stablehlo<precision {choose(draw, ('DEFAULT', 'HIGH', 'HIGHEST'))}>"
        attrs += f", precision_config = [{level}, {level}]"
    text = single("stablehlo.dot_general", arrays, [(result, out)], attrs)
    terms = max(prod(sizes["k"]), 1)
    return Case("dot_general", dtype, text, arrays, exact=dtype in _EXACT, terms=terms, absolute=dtype not in _EXACT)


def _dot(draw: Draw, dtype: str) -> Case:
    rng, k = random(draw), integer(draw, 1, 5)
    left = (k,) if flip(draw) else (integer(draw, 1, 4), k)
    right = (k,) if flip(draw) else (k, integer(draw, 1, 4))
    arrays = values.finite(rng, dtype, left, 1.0), values.finite(rng, dtype, right, 1.0)
    text = single("stablehlo.dot", arrays, [(dtype, left[:-1] + right[1:])])
    return Case("dot", dtype, text, arrays, exact=dtype in _EXACT, terms=k, absolute=dtype not in _EXACT)


def _letters(draw: Draw, names: tuple[str, str], spatial: int) -> list[str]:
    return list(permutation(draw, [*names, *map(str, range(spatial))]))


def _convolution(draw: Draw, dtype: str) -> Case:
    rng, spatial = random(draw), integer(draw, 0, 3)
    most = 7 if spatial < 3 else 4
    space = [integer(draw, 1, most) for _ in range(spatial)]
    taps = [integer(draw, 1, 3) for _ in range(spatial)]
    stride, base, dilation = ([choose(draw, (1, 1, 2, 3)) for _ in range(spatial)] for _ in range(3))
    low, high = ([integer(draw, -1, 3) for _ in range(spatial)] for _ in range(2))
    turned = [flip(draw) for _ in range(spatial)] if flip(draw) else [False] * spatial
    grouping = choose(draw, ("", "", "feature", "batch"))
    groups = integer(draw, 2, 3) if grouping else 1
    batch = integer(draw, 1, 2) * (groups if grouping == "batch" else 1)
    features_in = integer(draw, 1, 3)
    features = features_in * (groups if grouping == "feature" else 1)
    outs = integer(draw, 1, 2) * groups
    sizes: list[int] = []
    for d in range(spatial):
        padded = (space[d] - 1) * base[d] + 1 + low[d] + high[d]
        window = (taps[d] - 1) * dilation[d] + 1
        if padded < 0:
            low[d], padded = 0, (space[d] - 1) * base[d] + 1 + max(high[d], 0)
            high[d] = max(high[d], 0)
        sizes.append((padded - window) // stride[d] + 1 if padded >= window else 0)
    specs = (
        _letters(draw, ("b", "f"), spatial),
        _letters(draw, ("i", "o"), spatial),
        _letters(draw, ("b", "f"), spatial),
    )
    extent = [
        {"b": batch, "f": features, **{str(d): n for d, n in enumerate(space)}},
        {"i": features_in, "o": outs, **{str(d): n for d, n in enumerate(taps)}},
        {"b": batch // (groups if grouping == "batch" else 1), "f": outs, **{str(d): n for d, n in enumerate(sizes)}},
    ]
    x, w = (values.finite(rng, dtype, tuple(extent[i][c] for c in specs[i]), 1.0) for i in range(2))
    result = choose(draw, [t for t in _WIDER.get(dtype, (dtype,)) if dtype not in ("i8", "u8", "i16")] or [dtype])
    numbers = "x".join(f"[{', '.join(spec)}]" for spec in specs[:2]) + f"->[{', '.join(specs[2])}]"
    attrs = (
        f"dimension_numbers = #stablehlo.conv<{numbers}>, window_strides = {listed(stride)}, "
        f"padding = {pairs(low, high)}, lhs_dilation = {listed(base)}, rhs_dilation = {listed(dilation)}, "
        f"window_reversal = {flags(turned)}, "
        f"feature_group_count = {groups if grouping == 'feature' else 1} : i64, "
        f"batch_group_count = {groups if grouping == 'batch' else 1} : i64"
    )
    text = single("stablehlo.convolution", (x, w), [(result, tuple(extent[2][c] for c in specs[2]))], attrs)
    exact = dtype in _EXACT
    terms = max(prod(taps) * features_in, 1)
    return Case("convolution", dtype, text, (x, w), exact=exact, terms=terms, absolute=not exact)


GENERATORS = (
    Generator("dot_general", EVERY + ("f8e4m3fn", "f8e5m2"), _dot_general, 8),
    Generator("dot", ("f32", "i32", "c64"), _dot, 3),
    Generator("convolution", (*INTS, *UINTS, *FLOATS, *COMPLEX), _convolution, 12),
)
