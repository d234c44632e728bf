"""Train a character-level Transformer on Python's own sources, and compare it with a trigram model of the same text.

    python examples/chars.py                                                    # one device
    gspmd run examples/chars.py --ranks 4 --mesh data=2,model=2                 # four: the same losses

Batches are split over the mesh axis `data`; attention heads and hidden units over `model` (Megatron's way). Three
annotations say so; the weights, their gradients and Adam's two moments follow, and stay where they are between steps.
"""

import argparse
import json
import sysconfig
from pathlib import Path

import numpy as np

import gspmd
import gspmd.numpy as gnp

LAYERS, WIDTH, HEADS, HIDDEN = 2, 64, 4, 256
BATCH, CONTEXT = 32, 64
RATE, WARM_UP = 5e-3, 50
DECAY_1, DECAY_2, EPS = 0.9, 0.99, 1e-8

LETTERS = 96  # line ends and the 95 printable characters of ASCII; '?' stands for all others

mesh = gspmd.default_mesh(data=-1, model=1)


# -- the text --------------------------------------------------------------------------------------------------------


def read_text(limit=2_000_000):
    """The standard library's top-level modules in order of their names: to train on, and every tenth held out."""
    parts, total = [], 0
    for file in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        codes = np.frombuffer(file.read_text(encoding="utf-8").encode("ascii", "replace"), np.uint8)
        total += len(codes)
        if total > limit:
            break
        parts.append(codes.clip(31, 126).astype(np.int32) - 31)
    return np.concatenate([p for i, p in enumerate(parts) if i % 10 != 9]), np.concatenate(parts[9::10])


def trigram_bits(train, held):
    """Bits per character of an interpolated trigram model with Witten-Bell smoothing, which has nothing to tune.

    p(c | ab) = (count(abc) + kinds(ab) p(c | b)) / (count(ab) + kinds(ab)), kinds: how many letters followed ab.
    """
    chances = np.full(LETTERS, 1 / LETTERS)
    for n in (1, 2, 3):
        keys = sum(train[i : len(train) - n + 1 + i].astype(np.int64) * LETTERS ** (n - 1 - i) for i in range(n))
        counts = np.bincount(keys, minlength=LETTERS**n).reshape((LETTERS,) * n).astype(float)
        seen, kinds = counts.sum(-1, keepdims=True), (counts > 0).sum(-1, keepdims=True)
        chances = np.where(seen > 0, (counts + kinds * chances) / np.maximum(seen + kinds, 1), chances)
    return -np.log2(chances[held[:-2], held[1:-1], held[2:]]).mean()


# -- the model -------------------------------------------------------------------------------------------------------


def initial(seed):
    rng = np.random.default_rng(seed)

    def normal(*shape, fan_in):
        return (rng.standard_normal(shape) * fan_in**-0.5).astype(np.float32)

    params = {
        "letters": normal(LETTERS, WIDTH, fan_in=256),
        "places": normal(CONTEXT, WIDTH, fan_in=256),
        "norm": np.ones(WIDTH, np.float32),
        "scores": normal(WIDTH, LETTERS, fan_in=WIDTH),
    }
    for i in range(LAYERS):
        params |= {
            f"{i}.norm1": np.ones(WIDTH, np.float32),
            f"{i}.query": normal(WIDTH, HEADS, WIDTH // HEADS, fan_in=WIDTH),
            f"{i}.key": normal(WIDTH, HEADS, WIDTH // HEADS, fan_in=WIDTH),
            f"{i}.value": normal(WIDTH, HEADS, WIDTH // HEADS, fan_in=WIDTH),
            f"{i}.merge": normal(HEADS, WIDTH // HEADS, WIDTH, fan_in=4 * WIDTH),
            f"{i}.norm2": np.ones(WIDTH, np.float32),
            f"{i}.up": normal(WIDTH, HIDDEN, fan_in=WIDTH),
            f"{i}.down": normal(HIDDEN, WIDTH, fan_in=4 * HIDDEN),
        }
    return params


def attention(x, query, key, value, merge):
    """Each place looks at those before it and at itself."""
    q, k, v = (gnp.einsum("btd,dhk->bhtk", x, w) for w in (query, key, value))
    q, k, v = (gspmd.shard(heads, mesh, "data", "model", None, None) for heads in (q, k, v))
    later = np.triu(np.full((CONTEXT, CONTEXT), -1e9, np.float32), 1)
    weights = gnp.softmax(gnp.einsum("bhtk,bhsk->bhts", q, k) * q.shape[-1] ** -0.5 + later)
    return gnp.einsum("bhtk,hkd->btd", gnp.einsum("bhts,bhsk->bhtk", weights, v), merge)


def loss(params, letters, following):
    """The mean surprise, in nats, at each following letter."""
    p = params
    x = gspmd.shard(p["letters"][letters] + p["places"], mesh, "data", None, None)
    for i in range(LAYERS):
        x += attention(gnp.layer_norm(x, p[f"{i}.norm1"]), *(p[f"{i}.{w}"] for w in ("query", "key", "value", "merge")))
        hidden = gnp.gelu(gnp.layer_norm(x, p[f"{i}.norm2"]) @ p[f"{i}.up"])
        x += gspmd.shard(hidden, mesh, "data", None, "model") @ p[f"{i}.down"]
    chances = gnp.log_softmax(gnp.layer_norm(x, p["norm"]) @ p["scores"])
    return -gnp.mean(gnp.take_along_axis(chances, following[:, :, None], axis=-1))


@gspmd.jit
def step(params, mean, square, rate, letters, following):
    """One step of Adam; `rate` holds the corrections for the moments' start at zero."""
    value, slopes = gspmd.value_and_grad(loss)(params, letters, following)
    mean = {n: DECAY_1 * mean[n] + (1 - DECAY_1) * g for n, g in slopes.items()}
    square = {n: DECAY_2 * square[n] + (1 - DECAY_2) * g * g for n, g in slopes.items()}
    params = {n: w - rate * mean[n] / (gnp.sqrt(square[n]) + EPS) for n, w in params.items()}
    return params, mean, square, value


score = gspmd.jit(loss)


def windows(text, starts):
    """The letters from each start on, and those that follow them; each rank reads only its own rows."""
    type_, rows = gspmd.TensorType("i32", (len(starts), CONTEXT)), gspmd.Sharding.of(mesh, "data", None)
    places = starts[:, None] + np.arange(CONTEXT)
    return [gspmd.from_callback(type_, rows, lambda index, k=k: text[places[index] + k]) for k in (0, 1)]


# -- the run ---------------------------------------------------------------------------------------------------------


def train_model(text, steps, seed, say):
    params, rng = initial(seed), np.random.default_rng(seed)
    mean = square = {name: np.zeros_like(w) for name, w in params.items()}
    losses = []
    for i in range(steps):
        rate = RATE * min(1, (i + 1) / WARM_UP) * (1 - 0.9 * i / steps)
        rate *= (1 - DECAY_2 ** (i + 1)) ** 0.5 / (1 - DECAY_1 ** (i + 1))
        batch = windows(text, rng.integers(0, len(text) - CONTEXT, BATCH))
        params, mean, square, value = step(params, mean, square, rate, *batch)
        losses.append(float(value))
        if i % 50 == 0 or i == steps - 1:
            say(f"step {i:4}  {losses[-1] / np.log(2):.4f} bits per character")
    return params, losses


def model_bits(params, held):
    starts = np.arange(0, len(held) - CONTEXT, CONTEXT)
    batches = [starts[i : i + BATCH] for i in range(0, len(starts) - BATCH + 1, BATCH)]
    return np.mean([float(score(params, *windows(held, batch))) for batch in batches]) / np.log(2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", help="a file for the loss of every step, as JSON")
    options = parser.parse_args()
    first = gspmd.world().rank == 0

    def say(line):
        if first:
            print(line, flush=True)

    train, held = read_text()
    say(f"mesh {mesh.text()}, {len(train)} characters to train on, {len(held)} held out")
    params, losses = train_model(train, options.steps, options.seed, say)
    if options.losses and first:
        Path(options.losses).write_text(json.dumps(losses))
    bits = model_bits(params, held)
    if first:
        print(f"held out: Transformer {bits:.4f}, trigram {trigram_bits(train, held):.4f} bits per character")


if __name__ == "__main__":
    main()
