"""Train a small GPT on real English: the documentation topics that ship with Python.

    python examples/train_gpt.py                 # train, or go on from the last checkpoint
    python examples/train_gpt.py --fresh         # start anew
    python examples/train_gpt.py --steps 100     # stop earlier

The model is written as pure functions on a tree of parameters: `jit` compiles the training step,
`value_and_grad` differentiates it, `scan` runs the layers, whose weights are stacked along a first
axis, and `checkpoint` recomputes each layer's insides in the backward pass instead of storing them.
A unigram and a bigram model of the same characters are fitted beside it, as a measure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import pydoc_data.topics
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax, nn, random, tree

Params = dict[str, Any]


class Config(NamedTuple):
    """Sizes of the model and of its training."""

    vocabulary: int
    width: int = 256
    heads: int = 8
    layers: int = 5
    context: int = 128
    batch: int = 16
    rate: float = 2e-3
    decay: float = 0.05
    steps: int = 250


# --- data -----------------------------------------------------------------------------------------


class Corpus(NamedTuple):
    """Characters as integers, split into training and validation."""

    characters: str
    training: np.ndarray
    validation: np.ndarray


def read_corpus() -> Corpus:
    """The text of Python's help topics; the last tenth is for validation."""
    text = "\n\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    text = "".join(c if c == "\n" or " " <= c <= "~" else " " for c in text)
    characters = "".join(sorted(set(text)))
    table = np.full(128, -1, np.int32)
    table[[ord(c) for c in characters]] = np.arange(len(characters))
    codes = table[np.frombuffer(text.encode("ascii"), np.uint8)]
    cut = len(codes) * 9 // 10
    return Corpus(characters, codes[:cut], codes[cut:])


def unigram_loss(corpus: Corpus) -> float:
    """Validation loss per character of smoothed character frequencies, in nats."""
    size = len(corpus.characters)
    counts = np.bincount(corpus.training, minlength=size) + 1.0
    return float(-np.log(counts / counts.sum())[corpus.validation].mean())


def bigram_loss(corpus: Corpus) -> float:
    """Validation loss per character of smoothed frequencies given the previous character."""
    size = len(corpus.characters)
    counts = np.full((size, size), 0.1)
    np.add.at(counts, (corpus.training[:-1], corpus.training[1:]), 1.0)
    table = np.log(counts / counts.sum(1, keepdims=True))
    return float(-table[corpus.validation[:-1], corpus.validation[1:]].mean())


def batches(codes: np.ndarray, config: Config, seed: int) -> Iterator[np.ndarray]:
    """Endless random windows of `context + 1` characters."""
    rng = np.random.default_rng(seed)
    window = np.arange(config.context + 1)
    while True:
        starts = rng.integers(0, len(codes) - config.context - 1, config.batch)
        yield codes[starts[:, None] + window]


# --- model ----------------------------------------------------------------------------------------


def init(key: Any, config: Config) -> Params:
    """Random parameters; those of the layers are stacked along a first axis."""
    width, layers = config.width, config.layers
    keys = iter(random.split(key, 6))

    def normal(*shape: int, scale: float) -> Any:
        return scale * random.normal(next(keys), shape)

    residual = 0.02 / math.sqrt(2 * layers)
    return {
        "embedding": normal(config.vocabulary, width, scale=0.02),
        "positions": normal(config.context, width, scale=0.02),
        "layers": {
            "norm1": fnp.ones((layers, width)),
            "qkv": normal(layers, width, 3 * width, scale=1 / math.sqrt(width)),
            "out": normal(layers, width, width, scale=residual),
            "norm2": fnp.ones((layers, width)),
            "up": normal(layers, width, 4 * width, scale=1 / math.sqrt(width)),
            "down": normal(layers, 4 * width, width, scale=residual),
        },
        "norm": fnp.ones(width),
    }


def normalize(x: Any, gain: Any) -> Any:
    """Root-mean-square normalisation over the last axis (Zhang and Sennrich, 2019)."""
    return x * lax.rsqrt(fnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * gain


def attention(x: Any, layer: Params, heads: int) -> Any:
    """Causal self-attention over `[batch, time, width]` (Vaswani et al., 2017)."""
    batch, time_, width = x.shape
    q, k, v = fnp.split(
        (x @ layer["qkv"]).reshape(batch, time_, 3 * heads, width // heads), 3, axis=2
    )
    scores = fnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(width // heads)
    causal = fnp.tril(fnp.ones((time_, time_), bool))
    weights = nn.softmax(fnp.where(causal, scores, -1e9), axis=-1)
    mixed = fnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, time_, width)
    return mixed @ layer["out"]


def logits(params: Params, tokens: Any, heads: int) -> Any:
    """Scores of the next character: `[batch, time]` to `[batch, time, vocabulary]`."""

    @fx.checkpoint
    def block(x: Any, layer: Params) -> Any:
        x = x + attention(normalize(x, layer["norm1"]), layer, heads)
        hidden = nn.gelu(normalize(x, layer["norm2"]) @ layer["up"])
        return x + hidden @ layer["down"]

    x = params["embedding"][tokens] + params["positions"][: tokens.shape[1]]
    x, _ = lax.scan(lambda x, layer: (block(x, layer), None), x, params["layers"])
    return normalize(x, params["norm"]) @ params["embedding"].T


def loss(params: Params, windows: Any, heads: int) -> Any:
    """Mean cross-entropy of each window's next characters, in nats."""
    scores = nn.log_softmax(logits(params, windows[:, :-1], heads))
    return -fnp.mean(fnp.take_along_axis(scores, windows[:, 1:, None], axis=-1))


# --- training -------------------------------------------------------------------------------------


class State(NamedTuple):
    """Everything that training changes."""

    params: Params
    mean: Params
    square: Params
    step: Any


def make_step(config: Config) -> Any:
    """The compiled training step: AdamW (Loshchilov and Hutter, 2019) with a cosine schedule."""

    def step(state: State, windows: Any) -> tuple[State, Any]:
        value, gradients = fx.value_and_grad(loss)(state.params, windows, config.heads)
        norm = fnp.sqrt(sum(fnp.sum(g * g) for g in tree.leaves(gradients)))
        gradients = tree.map(lambda g: g * fnp.minimum(1.0, 1.0 / norm), gradients)
        count = state.step + 1
        progress = count / config.steps
        rate = config.rate * fnp.minimum(count / 50, 0.5 * (1 + fnp.cos(fnp.pi * progress)) + 0.02)
        mean = tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, gradients)
        square = tree.map(lambda s, g: 0.98 * s + 0.02 * g * g, state.square, gradients)

        def update(p: Any, m: Any, s: Any) -> Any:
            direction = (m / (1 - 0.9**count)) / (fnp.sqrt(s / (1 - 0.98**count)) + 1e-8)
            return p - rate * (direction + config.decay * p * (p.ndim > 1))

        return State(tree.map(update, state.params, mean, square), mean, square, count), value

    return fx.jit(step)


def evaluate(params: Params, corpus: Corpus, config: Config) -> float:
    """Loss per character over the validation text, in windows side by side."""
    score = fx.jit(lambda params, windows: loss(params, windows, config.heads))
    span = config.context
    count = min((len(corpus.validation) - 1) // span, 32 * config.batch) // config.batch
    total = 0.0
    for number in range(count):
        starts = (number * config.batch + np.arange(config.batch)) * span
        total += float(score(params, corpus.validation[starts[:, None] + np.arange(span + 1)]))
    return total / count


def sample(params: Params, corpus: Corpus, config: Config, length: int, key: Any) -> str:
    """Characters drawn one by one from the model."""

    @fx.jit
    def draw(window: Any, key: Any) -> tuple[Any, Any]:
        scores = logits(params, window[None], config.heads)[0, -1]
        code = random.categorical(key, scores / 0.8)
        return fnp.append(window[1:], code), code

    prompt = "\n\nThe " + " " * config.context
    window = fnp.asarray([max(corpus.characters.find(c), 0) for c in prompt[: config.context]])
    window = fnp.roll(window, config.context - 6)
    codes = []
    for step_key in random.split(key, length):
        window, code = draw(window, step_key)
        codes.append(int(code))
    return "The " + "".join(corpus.characters[code] for code in codes)


# --- files ----------------------------------------------------------------------------------------


class CheckpointError(Exception):
    """A checkpoint cannot be read, or belongs to another model."""


def save(path: Path, state: State, config: Config, losses: list[float]) -> None:
    """Write a checkpoint; the old one is replaced only when the new one is complete."""
    flat = {tree.keystr(place): np.asarray(x) for place, x in tree.leaves_with_path(state)}
    flat = {name: np.array(x, order="C") for name, x in flat.items()}
    flat["losses"] = np.asarray(losses, np.float32)
    partial = path.with_suffix(".partial")
    save_file(flat, partial, metadata={"config": json.dumps(config._asdict())})
    os.replace(partial, path)


def load(path: Path, like: State, config: Config) -> tuple[State, list[float]]:
    """Read a checkpoint into a state of the same structure.

    Raises:
      CheckpointError: if the file is broken or does not fit the model.
    """
    try:
        flat = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    leaves = []
    for place, wanted in tree.leaves_with_path(like):
        found = flat.get(tree.keystr(place))
        if found is None or found.shape != tuple(wanted.shape):
            shape = None if found is None else found.shape
            raise CheckpointError(
                f"{path} is of another model: {tree.keystr(place)} has shape {shape}, expected "
                f"{tuple(wanted.shape)} ({config})"
            )
        leaves.append(fnp.asarray(found))
    return tree.unflatten(tree.structure(like), leaves), flat["losses"].tolist()


def plot(path: Path, losses: list[float], marks: dict[str, float]) -> None:
    """Draw the loss curve, with the losses of other models as lines."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    axes.plot(np.arange(1, len(losses) + 1), losses, linewidth=1, label="training (each step)")
    for color, (name, value) in zip(("tab:red", "tab:green", "black"), marks.items(), strict=False):
        axes.axhline(value, linestyle="--", color=color, label=f"{name}: {value:.3f}")
    axes.set(
        xlabel="step", ylabel="loss (nats per character)", title="Small GPT on Python's help topics"
    )
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


class Progress:
    """A bar with step, loss, tokens per second and time left; plain lines without a terminal."""

    def __init__(self, start: int, total: int, characters: int) -> None:
        self.start, self.total, self.characters = start, total, characters
        self.began = time.perf_counter()
        self.terminal = sys.stderr.isatty()

    def show(self, step: int, value: float) -> None:
        if not self.terminal and step % 50 and step != self.total:
            return
        spent = time.perf_counter() - self.began
        done = step - self.start
        left = spent / done * (self.total - step)
        filled = 30 * step // self.total
        line = (
            f"[{'#' * filled}{'.' * (30 - filled)}] step {step}/{self.total}  loss {value:.3f}  "
            f"{done * self.characters / spent:,.0f} tokens/s  {left:4.0f} s left"
        )
        print(
            f"\r{line}" if self.terminal else line,
            end="" if self.terminal else "\n",
            file=sys.stderr,
        )
        sys.stderr.flush()

    def close(self) -> None:
        if self.terminal:
            print(file=sys.stderr)


@contextlib.contextmanager
def stop_on_interrupt() -> Iterator[list[bool]]:
    """Turn Ctrl-C into a request that the loop sees after its step; a second one interrupts."""
    asked: list[bool] = []

    def ask(_number: int, _frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(True)

    previous = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, previous)


def writable(folder: Path) -> bool:
    """Whether files can be made in `folder`, tried rather than guessed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


def main(arguments: list[str] | None = None) -> int:
    """Train, compare, sample, write curve and checkpoint; 0 if both baselines are beaten."""
    parser = argparse.ArgumentParser(description="Train a small GPT on Python's help topics.")
    usual = Config._field_defaults["steps"]
    parser.add_argument("--steps", type=int, default=usual, help="training steps in all")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="where files are written")
    parser.add_argument("--fresh", action="store_true", help="ignore an existing checkpoint")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=300, help="characters to draw at the end")
    options = parser.parse_args(arguments)
    if options.steps < 1:
        parser.error("--steps must be at least 1")
    if not writable(options.out):
        print(f"cannot write to {options.out}: choose another folder with --out", file=sys.stderr)
        return 2

    corpus = read_corpus()
    config = Config(len(corpus.characters), steps=options.steps)
    params = init(random.key(options.seed), config)
    zeros = tree.map(fnp.zeros_like, params)
    state = State(params, zeros, zeros, fnp.asarray(0, fnp.int32))
    losses: list[float] = []
    path = options.out / "gpt.safetensors"
    if path.exists() and not options.fresh:
        try:
            state, losses = load(path, state, config)
        except CheckpointError as error:
            print(f"{error}\nNothing was changed. Move it away, or use --fresh.", file=sys.stderr)
            return 2
        print(f"going on from {path} at step {int(state.step)}")
    count = sum(x.size for x in tree.leaves(params))
    print(
        f"{len(corpus.training):,} characters to train on, {len(corpus.validation):,} to validate; "
        f"{len(corpus.characters)} kinds; {count:,} parameters"
    )

    step = make_step(config)
    start = int(state.step)
    stopped = False
    data = batches(corpus.training, config, options.seed + start)
    progress = Progress(start, config.steps, config.batch * config.context)
    with stop_on_interrupt() as asked:
        for number in range(start + 1, config.steps + 1):
            state, value = step(state, next(data))
            losses.append(float(value))
            progress.show(number, losses[-1])
            if asked:
                stopped = True
                break
    progress.close()
    save(path, state, config, losses)
    print(f"wrote {path} at step {int(state.step)}")
    if stopped:
        print("stopped; run again to go on from here")
        return 0

    validation = evaluate(state.params, corpus, config)
    marks = {
        "unigram": unigram_loss(corpus),
        "bigram": bigram_loss(corpus),
        "this model": validation,
    }
    print("\nvalidation loss in nats per character")
    for name, value in marks.items():
        print(f"  {name:12s} {value:.3f}   ({value / math.log(2):.3f} bits)")
    picture = options.out / "loss.png"
    plot(picture, losses, marks)
    print(f"wrote {picture}\n\na sample:\n")
    print(sample(state.params, corpus, config, options.sample, random.key(options.seed + 1)))
    beaten = validation < min(marks["unigram"], marks["bigram"])
    print(f"\n{'beats' if beaten else 'does NOT beat'} both the unigram and the bigram model")
    return 0 if beaten else 1


if __name__ == "__main__":
    raise SystemExit(main())
