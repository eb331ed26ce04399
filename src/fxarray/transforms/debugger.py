"""The command loop of `debug.breakpoint`: values are real, and control can only go on or quit."""

from __future__ import annotations

import cmd
import linecache
import pprint
from dataclasses import dataclass
from types import CodeType
from typing import Any


@dataclass
class Frame:
    """A frame of the user's code, with the run-time values of its variables."""

    code: CodeType
    line: int
    variables: dict[str, Any]

    @property
    def place(self) -> str:
        return f"{self.code.co_filename}({self.line}){self.code.co_name}()"


class Quit(Exception):
    """The user quit the debugger."""


class Debugger(cmd.Cmd):
    """Answers commands about frames, innermost first."""

    prompt = "(fxdb) "

    def __init__(self, frames: list[Frame], stdin: Any = None, stdout: Any = None) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames = frames
        self.position = 0
        self.intro = f"> {frames[0].place}" if frames else "> (no frames)"

    def say(self, text: str) -> None:
        self.stdout.write(text + "\n")

    def _evaluate(self, expression: str) -> tuple[bool, Any]:
        variables = self.frames[self.position].variables if self.frames else {}
        try:
            return True, eval(expression, {}, dict(variables))
        except Exception as error:  # noqa: BLE001, whatever the user's expression raises is shown
            self.say(f"*** {type(error).__name__}: {error}")
            return False, None

    def do_p(self, argument: str) -> None:
        """p expression: evaluate and print it."""
        good, value = self._evaluate(argument)
        if good:
            self.say(repr(value))

    def do_pp(self, argument: str) -> None:
        """pp expression: evaluate and print it prettily."""
        good, value = self._evaluate(argument)
        if good:
            self.say(pprint.pformat(value))

    def do_l(self, argument: str) -> None:
        """l: list the source around the current line."""
        if not self.frames:
            return
        frame = self.frames[self.position]
        for number in range(max(1, frame.line - 5), frame.line + 6):
            text = linecache.getline(frame.code.co_filename, number)
            if text:
                mark = "->" if number == frame.line else "  "
                self.say(f"{number:5d} {mark} {text.rstrip()}")

    def do_w(self, argument: str) -> None:
        """w: where we are, innermost frame last."""
        for number, frame in reversed(list(enumerate(self.frames))):
            self.say(f"{'>' if number == self.position else ' '} {frame.place}")

    def _move(self, step: int) -> None:
        if 0 <= self.position + step < len(self.frames):
            self.position += step
            self.say(f"> {self.frames[self.position].place}")
        else:
            self.say("*** no further frame")

    def do_u(self, argument: str) -> None:
        """u: up, to the caller."""
        self._move(1)

    def do_d(self, argument: str) -> None:
        """d: down, to the callee."""
        self._move(-1)

    def do_c(self, argument: str) -> bool:
        """c: go on running."""
        return True

    def do_q(self, argument: str) -> bool:
        """q: stop the computation with an error."""
        raise Quit("quit from the debugger")

    def do_EOF(self, argument: str) -> bool:
        """End of input: go on running."""
        return True

    do_print, do_list, do_where, do_bt = do_p, do_l, do_w, do_w
    do_up, do_down, do_continue, do_quit, do_exit = do_u, do_d, do_c, do_q, do_q

    def default(self, line: str) -> None:
        """Anything else is evaluated, as in pdb."""
        self.do_p(line)

    def emptyline(self) -> bool:
        return False
