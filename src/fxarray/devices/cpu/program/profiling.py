"""Timelines: when each kernel of compiled Programs ran, as a trace that browsers show.

Only while a timeline is being made do Programs run under the walker that looks at the clock.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fxarray.compile.graph import CallStep, CopyStep, KernelStep, Step, WhileStep
from fxarray.core.array import DeviceArray
from fxarray.core.errors import ArgumentError
from fxarray.devices.cpu.program.roofline import Peaks, measure_peaks
from fxarray.devices.cpu.program.walker import EVENT_WORDS, Record
from fxarray.kernel import sizes

_EVENTS = 1 << 16  # of one call; later ones are counted only
_MOST_EVENTS = 1 << 20  # of a timeline


class Traced(NamedTuple):
    """A Program's code that writes down when its routines run."""

    bound: Any
    record: np.ndarray[Any, Any]
    events: np.ndarray[Any, Any]
    call: Callable[[list[Any]], list[DeviceArray]]
    lock: Any


class Timeline:
    """What happened since it was begun."""

    def __init__(self) -> None:
        self.peaks: Peaks = measure_peaks()
        self.begun = time.monotonic_ns()
        self.events: list[dict[str, Any]] = []
        self.lost = 0
        self._traced: dict[int, Traced] = {}
        self._lock = threading.Lock()
        libc = ctypes.CDLL(None)
        self._clock = ctypes.cast(libc.clock_gettime, ctypes.c_void_p).value or 0

    def run(self, bound: Any, arrays: list[Any]) -> list[DeviceArray]:
        """Call a Program and write down what its routines do."""
        with self._lock:
            known = self._traced.get(id(bound))
            if known is None:
                known = self._traced[id(bound)] = self._prepare(bound)
        with known.lock:  # calls of one Program share the memory for events
            began = time.monotonic_ns()
            results = known.call(arrays)
            ended = time.monotonic_ns()
            with self._lock:
                self._collect(known, began, ended)
        return results

    def annotate(self, name: str, began: int, ended: int, details: dict[str, Any]) -> None:
        """Write down something that is no Program."""
        with self._lock:
            self._add(name, "annotation", began, ended, threading.get_native_id(), details)

    def _prepare(self, bound: Any) -> Traced:
        events = np.zeros((_EVENTS, EVENT_WORDS), np.int64)
        record = bound.record.copy()
        record[Record.EVENTS] = events.ctypes.data
        record[Record.EVENTS_END] = events.ctypes.data + events.nbytes
        record[Record.CLOCK] = self._clock
        return Traced(bound, record, events, bound.traced(record), threading.RLock())

    def _collect(self, traced: Traced, began: int, ended: int) -> None:
        first = traced.events.ctypes.data
        count = (int(traced.record[Record.EVENTS]) - first) // (8 * EVENT_WORDS)
        traced.record[Record.EVENTS] = first
        self.lost += max(0, count - _EVENTS)
        compiled, values = traced.bound.compiled, traced.bound.values
        thread = threading.get_native_id()
        self._add(compiled.program.name, "program", began, ended, thread, {})
        for number, start, end, _ in traced.events[: min(count, _EVENTS)].tolist():
            step = compiled.code.instructions[number].step
            name, details = self._described(compiled, step, values, end - start)
            self._add(name, "kernel", start, end, thread, details)

    def _described(
        self, compiled: Any, step: Step | None, values: Any, duration: int
    ) -> tuple[str, dict[str, Any]]:
        routine = None if step is None else compiled.routines.get(step)
        if isinstance(step, CopyStep):
            return "copy", {}
        if isinstance(step, KernelStep | CallStep):
            name = step.kernel.name if isinstance(step, KernelStep) else step.op.name
        elif routine is None:
            return "copy of a carry", {}
        else:
            name = "while" if isinstance(step, WhileStep) else "scan"
        if routine is None:
            return f"{name} (host)", {"where": _place(step)}
        flops = sizes.evaluate(routine.flops, values)
        moved = sizes.evaluate(routine.bytes_moved, values)
        share = self.peaks.share(flops, moved, max(duration, 1) * 1e-9)
        return name, {
            "flops": flops,
            "bytes": moved,
            "share of roofline": round(share, 3),
            "where": _place(step),
        }

    def _add(
        self, name: str, kind: str, began: int, ended: int, thread: int, details: dict[str, Any]
    ) -> None:
        if len(self.events) >= _MOST_EVENTS:
            self.lost += 1
            return
        self.events.append(
            {
                "name": name,
                "cat": kind,
                "ph": "X",
                "ts": (began - self.begun) / 1000,
                "dur": (ended - began) / 1000,
                "pid": os.getpid(),
                "tid": thread,
                "args": details,
            }
        )

    def write(self, path: Path) -> None:
        """Write the timeline, in the format that Perfetto and Chrome read."""
        content = {
            "traceEvents": self.events,
            "displayTimeUnit": "ns",
            "otherData": {
                "lost events": self.lost,
                "peak flops per second": self.peaks.flops,
                "peak bytes per second": self.peaks.bytes,
            },
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))


def _place(step: Any) -> str:
    """Where the user wrote what became the step."""
    source = getattr(step, "source", None)
    return "" if source is None else str(source)


_current: list[tuple[Timeline, Path]] = []


@contextmanager
def annotated(name: str, details: dict[str, Any]) -> Generator[None]:
    """Write a block down as part of the timeline, if one is being made."""
    began = time.monotonic_ns()
    try:
        yield
    finally:
        for timeline, _ in _current[-1:]:
            timeline.annotate(name, began, time.monotonic_ns(), details)


def active() -> bool:
    """Whether a timeline is being made."""
    return bool(_current)


def run(bound: Any, arrays: list[Any]) -> list[DeviceArray]:
    """Call a Program as part of the timeline."""
    current = _current[-1:] or None
    return bound.call(arrays) if current is None else current[0][0].run(bound, arrays)


def start(path: str | os.PathLike[str]) -> None:
    """Begin a timeline.

    Raises:
      ArgumentError: if one has been begun already.
    """
    if _current:
        raise ArgumentError("a trace is being made already; end it with stop_trace()")
    _current.append((Timeline(), Path(path)))


def stop() -> Path:
    """End the timeline and write it.

    Raises:
      ArgumentError: if none has been begun.
    """
    if not _current:
        raise ArgumentError("no trace is being made; begin one with start_trace(path)")
    timeline, path = _current.pop()
    timeline.write(path)
    return path
