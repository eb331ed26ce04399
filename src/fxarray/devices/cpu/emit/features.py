"""What the processor that code is written for can do in one instruction."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from fxarray.devices.cpu.native.target import Target, host

_target: ContextVar[Target | None] = ContextVar("target", default=None)


def target() -> Target:
    """The processor that code is written for: the host, but inside `using`."""
    return _target.get() or host()


@contextmanager
def using(other: Target) -> Generator[None]:
    """Code written inside is for another processor."""
    token = _target.set(other)
    try:
        yield
    finally:
        _target.reset(token)


def scales_by_powers_of_two() -> bool:
    """Whether x * 2**n, rounded once for every n, is an instruction: AVX-512 has it."""
    return target().vector_bytes == 64


def estimates_reciprocals() -> bool:
    """Whether there are reciprocals of 14 bits that are the same everywhere: AVX-512's."""
    return target().vector_bytes == 64


def converts_half() -> bool:
    """Whether float16 is converted by an instruction: on x86 since AVX2, on arm64 always."""
    return target().architecture == "aarch64" or target().vector_bytes >= 32
