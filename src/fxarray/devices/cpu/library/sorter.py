"""Sorting records as a module of its own, which all sorts of records of one form share.

Its entry is `void @entry(i64 %what, ptr %a, ptr %b, i64 %n, ptr %c, ptr %d)`, where `what` says
which function is called; `Sorter` writes the calls.
"""

from __future__ import annotations

from functools import cache

from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.library.quick import define_quick_sort
from fxarray.devices.cpu.library.radix import Records, define_radix_sort
from fxarray.devices.cpu.library.segments import define_segments
from fxarray.devices.cpu.library.text import Layout, ModuleText
from fxarray.devices.cpu.native.routine import FunctionPointer

_SORT, _LIST, _SORT_LISTED = range(3)
_CALLS = {
    _SORT: "@sort_records(ptr %a, ptr %b, i64 %n, ptr %c, ptr %d)",
    _LIST: "@list_segments(ptr %a, ptr %b, ptr %a, i64 %n, i64 0, ptr %c)",
    _SORT_LISTED: "@sort_listed(ptr %a, i64 %n, ptr %c)",
}
_WORD = "sorter"


@cache
def sorter_text(records: Records, quick: bool) -> str:
    """The module.

    Args:
      records: their form.
      quick: whether `quick` sorts them, which takes a processor that compresses vectors.
    """
    text = ModuleText()
    define_radix_sort(text, records, "@sort_quick" if quick else "")
    calls = [_SORT]
    if quick:
        define_quick_sort(text, records)
        define_segments(text, records)
        calls += [_LIST, _SORT_LISTED]
    f = text.function(
        "@entry(i64 %what, ptr %a, ptr %b, i64 %n, ptr %c, ptr %d)",
    )
    for what in calls:
        chosen = f.new(f"icmp eq i64 %what, {what}")
        f.branch(chosen, lambda what=what: f.do(f"call void {_CALLS[what]}"))
    return text.text()


def add_sorter(layout: Layout, records: Records, quick: bool) -> None:
    """Add the module's address to the words of a routine."""
    layout.append(_WORD, FunctionPointer(sorter_text(records, quick)))


class Sorter:
    """Calls of the module from a function.

    Args:
      f: the function that is being written.
      pointer: the address of the module's entry.
    """

    def __init__(self, f: FunctionText, pointer: Operand) -> None:
        self.f = f
        self.pointer = pointer

    @classmethod
    def of(cls, f: FunctionText, layout: Layout) -> Sorter:
        """By the word of a routine."""
        return cls(f, layout.pointer(f, _WORD))

    def _call(
        self, what: int, a: Operand, b: Operand, n: Operand, c: Operand, d: Operand = "null"
    ) -> None:
        self.f.do(
            f"call void {self.pointer}(i64 {what}, ptr {a}, ptr {b}, i64 {n}, ptr {c}, ptr {d})"
        )

    def sort(self, a: Operand, b: Operand, n: Operand, histograms: Operand) -> Operand:
        """Sort n records at `a`, with equal memory at `b`; which of the two they are at then."""
        result = self.f.alloca("ptr")
        self._call(_SORT, a, b, n, histograms, result)
        return self.f.new(f"load ptr, ptr {result}")

    def list_segments(self, a: Operand, b: Operand, n: Operand, listed: Operand) -> None:
        """List segments of the n records at `a`, which are sorted when all of them are."""
        self._call(_LIST, a, b, n, listed)

    def sort_listed(self, listed: Operand, number: Operand, histograms: Operand) -> None:
        """Sort one segment of a list."""
        self._call(_SORT_LISTED, listed, "null", number, histograms)
