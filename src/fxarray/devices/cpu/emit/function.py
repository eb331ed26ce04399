"""The text of one LLVM function: instructions, memory on the stack, structured loops and branches.

Counters and accumulators live in allocas, which LLVM's `sroa` pass turns into registers, so nothing
here writes a phi. Text is written and parsed, since that is fifty times cheaper than building the
objects of LLVM from Python.
"""

from __future__ import annotations

from collections.abc import Callable

Operand = str


class FunctionText:
    """One function under construction.

    Operands are LLVM operand texts: `%v3`, `0`, `splat (float 1.0)`, ... Integers used as indices
    and sizes are i64.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.declarations: set[str] = set()
        self._count = 0

    def name(self, prefix: str = "v") -> str:
        """A fresh name, without its `%`."""
        self._count += 1
        return f"{prefix}{self._count}"

    def new(self, text: str) -> Operand:
        """An instruction with a result."""
        name = self.name()
        self.lines.append(f"  %{name} = {text}")
        return f"%{name}"

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def declare(self, text: str) -> None:
        """An external function or intrinsic: `declare float @llvm.sqrt.f32(float)`."""
        self.declarations.add(text)

    def alloca(self, type_: str, initial: Operand | None = None) -> Operand:
        """Memory on the stack, made once at the start; `initial` is stored here and now."""
        name = self.name()
        self.allocas.append(f"  %{name} = alloca {type_}, align 64")
        if initial is not None:
            self.do(f"store {type_} {initial}, ptr %{name}")
        return f"%{name}"

    # --- i64 arithmetic, with what is known at compile time folded ------------------------------

    def add(self, a: Operand | int, b: Operand | int) -> Operand:
        a, b = str(a), str(b)
        if a == "0" or b == "0":
            return b if a == "0" else a
        if _is_number(a) and _is_number(b):
            return str(int(a) + int(b))
        return self.new(f"add nsw i64 {a}, {b}")

    def subtract(self, a: Operand | int, b: Operand | int) -> Operand:
        a, b = str(a), str(b)
        if b == "0":
            return a
        if _is_number(a) and _is_number(b):
            return str(int(a) - int(b))
        return self.new(f"sub nsw i64 {a}, {b}")

    def multiply(self, a: Operand | int, b: Operand | int) -> Operand:
        a, b = str(a), str(b)
        if a == "0" or b == "0":
            return "0"
        if a == "1" or b == "1":
            return b if a == "1" else a
        if _is_number(a) and _is_number(b):
            return str(int(a) * int(b))
        return self.new(f"mul nsw i64 {a}, {b}")

    def smaller(self, a: Operand | int, b: Operand | int) -> Operand:
        """The smaller of two i64."""
        a, b = str(a), str(b)
        if _is_number(a) and _is_number(b):
            return str(min(int(a), int(b)))
        self.declare("declare i64 @llvm.smin.i64(i64, i64)")
        return self.new(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def larger(self, a: Operand | int, b: Operand | int) -> Operand:
        """The larger of two i64."""
        a, b = str(a), str(b)
        if _is_number(a) and _is_number(b):
            return str(max(int(a), int(b)))
        self.declare("declare i64 @llvm.smax.i64(i64, i64)")
        return self.new(f"call i64 @llvm.smax.i64(i64 {a}, i64 {b})")

    def offset(self, pointer: Operand, elements: Operand | int, type_: str = "i8") -> Operand:
        """A pointer moved by a number of elements of an LLVM type."""
        if str(elements) == "0":
            return pointer
        return self.new(f"getelementptr {type_}, ptr {pointer}, i64 {elements}")

    def load_word(self, pointer: Operand, index: int, type_: str = "i64") -> Operand:
        """The 8-byte word number `index` of an array of words, as i64 or ptr."""
        return self.new(f"load {type_}, ptr {self.offset(pointer, index, 'i64')}, align 8")

    # --- structure --------------------------------------------------------------------------------

    def loop(
        self,
        low: Operand | int,
        high: Operand | int,
        step: Operand | int,
        body: Callable[[Operand], None],
    ) -> None:
        """`for (i = low; i < high; i += step) body(i)`, tested at the bottom behind a guard."""
        name = self.name("loop")
        counter = self.alloca("i64", str(low))
        some = self.new(f"icmp slt i64 {low}, {high}")
        self.do(f"br i1 {some}, label %{name}, label %{name}.end")
        self.label(name)
        index = self.new(f"load i64, ptr {counter}")
        body(index)
        following = self.new(f"add nsw i64 {index}, {step}")
        self.do(f"store i64 {following}, ptr {counter}")
        more = self.new(f"icmp slt i64 {following}, {high}")
        self.do(f"br i1 {more}, label %{name}, label %{name}.end")
        self.label(f"{name}.end")

    def loop_while(self, condition: Callable[[], Operand], body: Callable[[], None]) -> None:
        """`while (condition()) body()`; the condition is an i1."""
        name = self.name("while")
        self.do(f"br label %{name}")
        self.label(name)
        more = condition()
        self.do(f"br i1 {more}, label %{name}.body, label %{name}.end")
        self.label(f"{name}.body")
        body()
        self.do(f"br label %{name}")
        self.label(f"{name}.end")

    def branch(
        self,
        condition: Operand,
        then: Callable[[], None],
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        """`if (condition) then() else otherwise()`; results pass through allocas."""
        name = self.name("if")
        other = f"{name}.else" if otherwise else f"{name}.end"
        self.do(f"br i1 {condition}, label %{name}, label %{other}")
        self.label(name)
        then()
        self.do(f"br label %{name}.end")
        if otherwise:
            self.label(f"{name}.else")
            otherwise()
            self.do(f"br label %{name}.end")
        self.label(f"{name}.end")

    # --- the whole --------------------------------------------------------------------------------

    def definition(self, signature: str, linkage: str = "", attributes: str = "") -> str:
        """The function's text.

        Args:
          signature: such as `@entry(ptr %runtime, ptr %arguments)`; the function returns nothing.
          linkage: such as "internal".
          attributes: such as "noinline".
        """
        body = "\n".join(["start:", *self.allocas, *self.lines])
        head = " ".join(part for part in ("define", linkage, "void", signature, attributes) if part)
        return f"{head} {{\n{body}\n  ret void\n}}\n"


def module(functions: list[tuple[FunctionText, str]], others: str = "") -> str:
    """The text of a module.

    Args:
      functions: pairs of a function, for its declarations, and its definition.
      others: further definitions, as text.
    """
    declarations: set[str] = set().union(*[function.declarations for function, _ in functions])
    return "\n".join([*sorted(declarations), others, *[text for _, text in functions]])


def _is_number(operand: str) -> bool:
    return operand.lstrip("-").isdigit()
