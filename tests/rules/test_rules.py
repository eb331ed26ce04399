"""Every primitive times every check, on its own samples."""

from contextlib import suppress

import pytest

import fxarray
from fxarray.compile.one_operation import build_operation
from fxarray.core.primitive import REGISTRY
from fxarray.kernel.build import NotAffine
from fxarray.testing.rules import CHECKS, check_bad_sample, check_complete, samples_of
from fxarray.testing.rules.operands import device_arrays, types_of

assert fxarray.Array is not None  # importing the package fills the registry

# Other tests define operations of their own.
OURS = sorted(n for n, cls in REGISTRY.items() if cls.__module__.startswith("fxarray."))
SAMPLED = [name for name in OURS if "samples" not in REGISTRY[name].EXCUSED]


@pytest.mark.parametrize("name", OURS)
def test_every_rule_is_there_or_excused(name):
    check_complete(REGISTRY[name])


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", SAMPLED)
def test_rule_agrees(name, check):
    good, _ = samples_of(REGISTRY[name])
    assert good
    for sample in good:
        CHECKS[check](sample)


@pytest.mark.parametrize("name", SAMPLED)
def test_bad_sample_raises_its_error(name):
    _, bad = samples_of(REGISTRY[name])
    for sample in bad:
        check_bad_sample(sample)


@pytest.mark.parametrize("name", [n for n in SAMPLED if "lower" not in REGISTRY[n].EXCUSED])
def test_a_lower_rule_makes_kernels_of_most_samples(name):
    good, _ = samples_of(REGISTRY[name])
    made = 0
    for sample in good:
        with suppress(NotAffine):
            build_operation(sample.op, types_of(device_arrays(sample)))
            made += 1
    assert made > len(good) / 2
