"""A Transformer's training step, written once for every array library that it is measured with.

Forward, softmax cross-entropy, backward, Adam; layers unrolled. Weights are annotated as the paper's dense Transformer
(section 5.1): heads and hidden over `model`, batch over `data`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Library:
    """What the model needs of an array library: its array functions, annotation, differentiation.

    `shard(x, *entries)` annotates with one mesh axis or None a dimension.
    """

    numpy: Any
    shard: Callable[..., Any]
    value_and_grad: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The shape of the model. The defaults divide by (2, 4) as well as by (4096, 16) devices (data, model).

    The batch is large, so that a device of either mesh has work worth a kernel; nothing of this size is ever allocated.
    No two dimensions are equal on a device by chance: equal constants would merge on one mesh and not on another.
    """

    layers: int = 32
    batch: int = 1 << 20
    sequence: int = 512
    model: int = 1024
    hidden: int = 5120
    heads: int = 16
    vocabulary: int = 32768


# Per weight its dimensions by name, and the axis that each is split over.
_WEIGHTS: dict[str, tuple[tuple[str, ...], tuple[str | None, ...]]] = {
    "query": (("model", "heads", "head"), (None, "model", None)),
    "key": (("model", "heads", "head"), (None, "model", None)),
    "value": (("model", "heads", "head"), (None, "model", None)),
    "out": (("heads", "head", "model"), ("model", None, None)),
    "up": (("model", "hidden"), (None, "model")),
    "down": (("hidden", "model"), ("model", None)),
    "scale1": (("model",), (None,)),
    "scale2": (("model",), (None,)),
}
# What stands outside the layers. The input table is whole everywhere: which of table and activations is cheaper to move
# depends on how many tokens a device has, and the benchmark wants one program for any number of devices.
_TABLES: dict[str, tuple[tuple[str, ...], tuple[str | None, ...]]] = {
    "embedding": (("vocabulary", "model"), (None, None)),
    "readout": (("model", "vocabulary"), (None, "model")),
}


def parameter_shapes(sizes: Sizes) -> dict[str, Any]:
    """The nesting of the parameters, with shapes as leaves."""
    named = {
        "model": sizes.model,
        "heads": sizes.heads,
        "head": sizes.model // sizes.heads,
        "hidden": sizes.hidden,
        "vocabulary": sizes.vocabulary,
    }
    shapes = {name: tuple(named[d] for d in dims) for name, (dims, _) in (_WEIGHTS | _TABLES).items()}
    layers = [{name: shapes[name] for name in _WEIGHTS} for _ in range(sizes.layers)]
    return {"layers": layers} | {name: shapes[name] for name in _TABLES}


def map_parameters(function: Callable[..., Any], *trees: Any) -> Any:
    """A function applied to the leaves of parameter trees."""
    first = trees[0]
    layers = [
        {name: function(*(t["layers"][i][name] for t in trees)) for name in layer}
        for i, layer in enumerate(first["layers"])
    ]
    return {"layers": layers} | {name: function(*(t[name] for t in trees)) for name in _TABLES}


def arguments(sizes: Sizes, leaf: Callable[[tuple[int, ...], str], Any]) -> tuple[Any, ...]:
    """The arguments of the step: parameters, two moments, tokens, targets; `leaf(shape, dtype)` makes each."""
    shapes = parameter_shapes(sizes)
    tokens = leaf((sizes.batch, sizes.sequence), "i32")
    trees = [map_parameters(lambda shape: leaf(shape, "f32"), shapes) for _ in range(3)]
    return (*trees, tokens, tokens)


def training_step(library: Library, sizes: Sizes) -> Callable[..., Any]:
    """A function (weights, first moments, second moments, tokens, targets) -> (loss, and the three anew)."""
    model = _Model(library, sizes)

    def step(weights: Any, first: Any, second: Any, tokens: Any, targets: Any) -> Any:
        loss, gradients = library.value_and_grad(model.loss)(model.annotated(weights), tokens, targets)
        first = map_parameters(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = map_parameters(lambda v, g: 0.99 * v + 0.01 * g * g, second, gradients)
        sqrt = library.numpy.sqrt
        weights = map_parameters(lambda w, m, v: w - 1e-3 * m / (sqrt(v) + 1e-8), weights, first, second)
        return loss, weights, first, second

    return step


class _Model:
    """The forward pass on a library's arrays."""

    def __init__(self, library: Library, sizes: Sizes) -> None:
        self.np, self.shard, self.sizes = library.numpy, library.shard, sizes

    def annotated(self, weights: Any) -> Any:
        """The weights, each with its annotation."""
        layers = [{name: self.shard(w, *_WEIGHTS[name][1]) for name, w in layer.items()} for layer in weights["layers"]]
        return {"layers": layers} | {name: self.shard(weights[name], *_TABLES[name][1]) for name in _TABLES}

    def loss(self, weights: Any, tokens: Any, targets: Any) -> Any:
        """The mean cross-entropy of the next token."""
        np = self.np
        x = self.activations(np.take(weights["embedding"], tokens, axis=0))
        for w in weights["layers"]:
            x = self.activations(x + self.attention(self.norm(x, w["scale1"]), w))
            h = self.gelu(np.einsum("bsm,mh->bsh", self.norm(x, w["scale2"]), w["up"]))
            x = self.activations(x + np.einsum("bsh,hm->bsm", h, w["down"]))
        logits = np.einsum("bsm,mv->bsv", x, weights["readout"])
        top = np.max(logits, axis=-1, keepdims=True)
        total = np.log(np.sum(np.exp(logits - top), axis=-1)) + top[..., 0]
        hit = targets[..., None] == np.arange(self.sizes.vocabulary)[None, None, :]
        return np.mean(total - np.sum(np.where(hit, logits, 0.0), axis=-1))

    def activations(self, x: Any) -> Any:
        """Activations between layers are annotated too."""
        return self.shard(x, "data", None, None)

    def norm(self, x: Any, scale: Any) -> Any:
        """Root-mean-square normalisation."""
        return x / self.np.sqrt(self.np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale

    def gelu(self, x: Any) -> Any:
        """The usual approximation."""
        return 0.5 * x * (1.0 + self.np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def attention(self, x: Any, w: Any) -> Any:
        """Causal multi-head attention."""
        np, n = self.np, self.sizes.sequence
        q = np.einsum("bsm,mnd->bnsd", x, w["query"])
        k = np.einsum("bsm,mnd->bnsd", x, w["key"])
        v = np.einsum("bsm,mnd->bnsd", x, w["value"])
        scores = np.einsum("bnsd,bntd->bnst", q, k) * (self.sizes.model // self.sizes.heads) ** -0.5
        causal = np.arange(n)[:, None] >= np.arange(n)[None, :]
        scores = np.where(causal[None, None], scores, -1e30)
        scores = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
        shares = scores / np.sum(scores, axis=-1, keepdims=True)
        mixed = np.einsum("bnst,bntd->bnsd", shares, v)
        return np.einsum("bnsd,ndm->bsm", mixed, w["out"])
