"""The examples as a user runs them, made small."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import fxarray.numpy as fnp
from fxarray import random, tree

EXAMPLES = Path(__file__).parents[2] / "examples"


def load_example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


gpt = load_example("train_gpt")
projectile = load_example("projectile")
SMALL = {"width": 16, "heads": 2, "layers": 2, "context": 12, "batch": 4}


@pytest.fixture
def small(monkeypatch):
    """The training script with a small model."""
    monkeypatch.setattr(gpt.Config, "__new__", _small_config(gpt.Config.__new__))
    return gpt


def _small_config(new):
    def make(cls, vocabulary, **changes):
        return new(cls, vocabulary, **{**SMALL, **changes})

    return make


def test_the_corpus_is_english_in_two_parts_and_the_bigram_model_beats_the_unigram():
    corpus = gpt.read_corpus()
    assert len(corpus.training) > 8 * len(corpus.validation) > 100_000
    text = "".join(corpus.characters[c] for c in corpus.training[:2000])
    assert " the " in text
    assert gpt.bigram_loss(corpus) < gpt.unigram_loss(corpus) < np.log(len(corpus.characters))


def test_training_writes_its_files_and_goes_on_from_a_checkpoint(small, tmp_path, capsys):
    arguments = ["--out", str(tmp_path), "--sample", "5"]
    assert small.main(["--steps", "3", *arguments]) == 1  # three steps beat no baseline
    printed = capsys.readouterr().out
    for part in ("unigram", "bigram", "this model", "does NOT beat"):
        assert part in printed
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert small.main(["--steps", "5", *arguments]) == 1
    assert "going on from" in capsys.readouterr().out
    assert not list(tmp_path.glob("*.partial"))


def test_a_step_lowers_the_loss_of_its_own_batch(small):
    corpus = gpt.read_corpus()
    sizes = {"width": 96, "heads": 4, "layers": 3, "context": 96, "rate": 3e-3}
    config = gpt.Config(len(corpus.characters), steps=40, **sizes)
    params = gpt.init(random.key(0), config)
    zeros = tree.map(fnp.zeros_like, params)
    state = gpt.State(params, zeros, zeros, fnp.asarray(0, fnp.int32))
    step = gpt.make_step(config)
    windows = next(gpt.batches(corpus.training, config, 0))
    losses = []
    for _ in range(20):
        state, value = step(state, windows)
        losses.append(float(value))
    assert losses[-1] < losses[0] - 0.3


def test_a_broken_or_foreign_checkpoint_is_reported_and_kept(small, tmp_path, capsys):
    path = tmp_path / "gpt.safetensors"
    path.write_bytes(b"not a checkpoint")
    assert small.main(["--steps", "1", "--out", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert path.read_bytes() == b"not a checkpoint"
    config = gpt.Config(10)
    params = gpt.init(random.key(0), config)
    gpt.save(path, gpt.State(params, params, params, fnp.asarray(1, fnp.int32)), config, [1.0])
    before = path.read_bytes()
    assert small.main(["--steps", "1", "--out", str(tmp_path)]) == 2
    assert "another model" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_checkpoints_hold_the_whole_state(small, tmp_path):
    config = gpt.Config(7)
    params = gpt.init(random.key(3), config)
    state = gpt.State(params, params, params, fnp.asarray(9, fnp.int32))
    gpt.save(tmp_path / "a.safetensors", state, config, [2.0, 1.0])
    found, losses = gpt.load(tmp_path / "a.safetensors", state, config)
    assert losses == [2.0, 1.0]
    for a, b in zip(tree.leaves(state), tree.leaves(found), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("example", [gpt, projectile], ids=["train_gpt", "projectile"])
def test_a_folder_that_cannot_be_written_to_is_reported_before_anything_runs(
    example, tmp_path, capsys
):
    (tmp_path / "file").write_text("in the way")
    assert example.main(["--out", str(tmp_path / "file" / "folder")]) == 2
    assert "--out" in capsys.readouterr().err


def test_the_drag_of_the_ball_is_recovered(tmp_path, capsys):
    assert projectile.main(["--out", str(tmp_path), "--iterations", "6"]) == 0
    assert "true" in capsys.readouterr().out
    assert (tmp_path / "projectile.png").read_bytes().startswith(b"\x89PNG")
