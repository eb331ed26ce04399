"""The native code that runs a whole Program: a loop over a table of instructions.

It is compiled once for all Programs, so a Program costs a table, not a compilation. An instruction
is eight 8-byte words, `operation, a, b, c, d, e, -, -`. `entry(record, bases)` is called with

    record    what is the same in all calls of a Program: the words of `Record` below
    bases     addresses: of the inputs, the outputs and the scratch memory, then of constants and
              slices of scans

No two calls share their bases and their scratch memory, which is laid out by `entry` as

    words     the arguments of all routines, one after the other; most are addresses, each a base
              plus an offset, which RELOCATE computes where bases are new
    counters  of loops; the first counts turns down to when Python looks for signals
    arena     temporary values, 64-byte aligned
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache

INSTRUCTION_WORDS = 8
FIRST_TURNS = 64
TURNS = 0  # the counter of turns


class Record(IntEnum):
    """The words of a record.

    RUNTIME       address of the runtime block
    CODE          address of the instructions
    TEMPLATE      address of what the words are at first
    WORDS         their number
    SCRATCH       which base is the scratch memory
    ARENA         where the arena begins in it, in bytes
    HOST          address of `i64 host(i64 number, ptr words, ptr counters)`
    EVENTS        address of the next event
    EVENTS_END    and of the end of the memory for them
    CLOCK         address of `clock_gettime`
    """

    RUNTIME = 0
    CODE = 1
    TEMPLATE = 2
    WORDS = 3
    SCRATCH = 4
    ARENA = 5
    HOST = 6
    EVENTS = 7
    EVENTS_END = 8
    CLOCK = 9
    SIZE = 16


class Operation(IntEnum):
    """What instructions do; `word[i]` and so on are the frame's.

    END           stop
    CALL          a(runtime, &word[b])
    COPY          copy c bytes from word[b] to word[a]
    HOST          call the host with a and &word[b]; stop unless it returns 0
    JUMP          go to a
    UNLESS        go to a if the bool at word[b] is false
    SWITCH        skip as many instructions as the i32 at word[a] says, clamped to 0 .. b - 1
    SET           counter[a] = b
    NEXT          counter[a] += 1; go to c while it is below b
    LIMIT         counter[a] = the i32 at word[b], clamped to 0 .. c; go to d if it is 0
    NEXT_LIMITED  counter[a] += 1; go to c while it is below counter[b]
    BOUND         go to c if counter[a] is b, else add 1 to it
    RELOCATE      for b triples at a (word, base, offset): word = base + offset
    SLICES        for b rows at a (base, whole, offset, stride, counter, limit):
                  base[base] = base[whole] + offset + stride * i, where i is the counter, or the
                  limit less the counter less 1 where there is a limit
    ZERO          zeros at word[a], from byte counter[b] * c to byte d
    REPORT        call the host with a
    TURN          count a turn of a loop down; at 0 call the host with -1
    """

    END = 0
    CALL = 1
    COPY = 2
    HOST = 3
    JUMP = 4
    UNLESS = 5
    SWITCH = 6
    SET = 7
    NEXT = 8
    LIMIT = 9
    NEXT_LIMITED = 10
    BOUND = 11
    RELOCATE = 12
    SLICES = 13
    ZERO = 14
    REPORT = 15
    TURN = 16


# Numbers with which the host is called; those of steps are not negative. The bound that is reached
# is subtracted from BOUND_REACHED.
SIGNALS = -1
BOUND_REACHED = -2

SLICE_WORDS = 6
EVENT_WORDS = 4


class _Text:
    """Lines of LLVM; `%pc` and the like are memory, which `sroa` makes registers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def new(self, text: str) -> str:
        self._count += 1
        self.lines.append(f"  %t{self._count} = {text}")
        return f"%t{self._count}"

    def do(self, *lines: str) -> None:
        self.lines.extend(f"  {line}" for line in lines)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def at(self, base: str, index: str | int) -> str:
        return self.new(f"getelementptr i64, ptr {base}, i64 {index}")

    def load(self, base: str, index: str | int, type_: str = "i64") -> str:
        place = self.at(base, index)
        return self.new(f"load {type_}, ptr {place}, align 8")

    def store(self, value: str, base: str, index: str | int) -> None:
        place = self.at(base, index)
        self.do(f"store i64 {value}, ptr {place}, align 8")


C_CONTIGUOUS_AND_ALIGNED = 0x0001 | 0x0100


@lru_cache(maxsize=2)
def walker_text(traced: bool = False) -> str:
    """The module.

    Args:
      traced: whether to write down when each routine began and ended.
    """
    t = _Text()
    t.do("%pc = alloca i64", "%n = alloca i64", "%began = alloca i64")
    t.do("%time = alloca [2 x i64], align 16")
    for name, word in (
        *(("runtime", Record.RUNTIME), ("code", Record.CODE)),
        *(("template", Record.TEMPLATE), ("outside", Record.HOST)),
    ):
        t.do(
            f"%{name}.at = getelementptr i64, ptr %record, i64 {int(word)}",
            f"%{name} = load ptr, ptr %{name}.at",
        )
    host = "%outside"
    scratch = t.load("%record", int(Record.SCRATCH))
    t.do(f"%words.at = getelementptr i64, ptr %bases, i64 {scratch}")
    t.do("%words = load ptr, ptr %words.at")
    count = t.load("%record", int(Record.WORDS))
    size = t.new(f"shl i64 {count}, 3")
    t.do(f"call void @llvm.memcpy.p0.p0.i64(ptr %words, ptr %template, i64 {size}, i1 false)")
    counters = t.at("%words", count)
    t.store(str(FIRST_TURNS), counters, TURNS)
    start = t.load("%record", int(Record.ARENA))
    arena = t.new(f"getelementptr i8, ptr %words, i64 {start}")
    t.do(f"store ptr {arena}, ptr %words.at")
    t.do("store i64 0, ptr %pc", "br label %walk")

    # Instructions advance %pc before they run.
    t.label("walk")
    pc = t.new("load i64, ptr %pc")
    advanced = t.new(f"add i64 {pc}, 1")
    t.do(f"store i64 {advanced}, ptr %pc")
    scaled = t.new(f"shl i64 {pc}, 3")
    t.do(f"%i = getelementptr i64, ptr %code, i64 {scaled}")
    operation = t.new("load i64, ptr %i")
    cases = " ".join(f"i64 {int(op)}, label %{op.name.lower()}" for op in Operation)
    t.do(f"switch i64 {operation}, label %end [ {cases} ]")

    def operands(*names: str) -> list[str]:
        return [t.load("%i", "abcde".index(name) + 1) for name in names]

    def begin(operation: Operation) -> None:
        t.label(operation.name.lower())

    def go_on() -> None:
        t.do("br label %walk")

    def clamped(word: str, high: str) -> str:
        """The i32 that a word points to, within 0 .. high."""
        number = t.new(f"load i32, ptr {t.load('%words', word, 'ptr')}")
        wide = t.new(f"sext i32 {number} to i64")
        low = t.new(f"call i64 @llvm.smax.i64(i64 {wide}, i64 0)")
        return t.new(f"call i64 @llvm.smin.i64(i64 {low}, i64 {high})")

    def jump(target: str) -> None:
        t.do(f"store i64 {target}, ptr %pc")
        go_on()

    def jump_if(condition: str, target: str, name: str) -> None:
        t.do(f"br i1 {condition}, label %{name}, label %walk")
        t.label(name)
        jump(target)

    def clock() -> str:
        function = t.load("%record", int(Record.CLOCK), "ptr")
        t.do(f"call i32 {function}(i32 1, ptr %time)")
        seconds, nanoseconds = t.load("%time", 0), t.load("%time", 1)
        whole = t.new(f"mul i64 {seconds}, 1000000000")
        return t.new(f"add i64 {whole}, {nanoseconds}")

    def timed() -> None:
        if traced:
            t.do(f"store i64 {clock()}, ptr %began")

    def record(name: str) -> None:
        """Write (instruction, began, ended, call) down if there is room; go on."""
        if not traced:
            go_on()
            return
        ended = clock()
        cursor = t.at("%record", int(Record.EVENTS))
        size = 8 * EVENT_WORDS
        place = t.new(f"atomicrmw add ptr {cursor}, i64 {size} monotonic, align 8")
        last = t.new(f"sub i64 {t.load('%record', int(Record.EVENTS_END))}, {size}")
        room = t.new(f"icmp ule i64 {place}, {last}")
        t.do(f"br i1 {room}, label %{name}.event, label %walk")
        t.label(f"{name}.event")
        event = t.new(f"inttoptr i64 {place} to ptr")
        t.store(pc, event, 0)
        t.store(t.new("load i64, ptr %began"), event, 1)
        t.store(ended, event, 2)
        t.store(t.new("ptrtoint ptr %words to i64"), event, 3)
        go_on()

    begin(Operation.END)
    t.do("ret void")

    begin(Operation.CALL)
    timed()
    function = t.load("%i", 1, "ptr")
    (first,) = operands("b")
    arguments = t.at("%words", first)
    t.do(f"call void {function}(ptr %runtime, ptr {arguments})")
    record("call")

    begin(Operation.COPY)
    timed()
    a, b, count = operands("a", "b", "c")
    target, source = t.load("%words", a, "ptr"), t.load("%words", b, "ptr")
    t.do(f"call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {source}, i64 {count}, i1 false)")
    record("copy")

    begin(Operation.HOST)
    timed()
    a, b = operands("a", "b")
    arguments = t.at("%words", b)
    status = t.new(f"call i64 {host}(i64 {a}, ptr {arguments}, ptr {counters})")
    fine = t.new(f"icmp eq i64 {status}, 0")
    t.do(f"br i1 {fine}, label %host.fine, label %end")
    t.label("host.fine")
    record("host")

    begin(Operation.JUMP)
    jump(operands("a")[0])

    begin(Operation.UNLESS)
    a, b = operands("a", "b")
    place = t.load("%words", b, "ptr")
    value = t.new(f"load i8, ptr {place}")
    jump_if(t.new(f"icmp eq i8 {value}, 0"), a, "unless.jump")

    begin(Operation.SWITCH)
    a, b = operands("a", "b")
    skipped = clamped(a, t.new(f"sub i64 {b}, 1"))
    jump(t.new(f"add i64 {advanced}, {skipped}"))

    begin(Operation.SET)
    a, b = operands("a", "b")
    t.store(b, counters, a)
    go_on()

    for operation, limited in ((Operation.NEXT, False), (Operation.NEXT_LIMITED, True)):
        begin(operation)
        a, b, c = operands("a", "b", "c")
        limit = t.load(counters, b) if limited else b
        value = t.new(f"add i64 {t.load(counters, a)}, 1")
        t.store(value, counters, a)
        jump_if(t.new(f"icmp slt i64 {value}, {limit}"), c, f"{operation.name.lower()}.jump")

    begin(Operation.LIMIT)
    a, b, c, d = operands("a", "b", "c", "d")
    value = clamped(b, c)
    t.store(value, counters, a)
    jump_if(t.new(f"icmp eq i64 {value}, 0"), d, "limit.jump")

    begin(Operation.BOUND)
    a, b, c = operands("a", "b", "c")
    value = t.load(counters, a)
    reached = t.new(f"icmp sge i64 {value}, {b}")
    t.store(t.new(f"add i64 {value}, 1"), counters, a)
    jump_if(reached, c, "bound.jump")

    def rows(name: str, width: int) -> str:
        """A loop over the rows at a, b of them; the row's address."""
        table = t.load("%i", 1, "ptr")
        (count,) = operands("b")
        t.do("store i64 0, ptr %n", f"br label %{name}.test")
        t.label(f"{name}.test")
        n = t.new("load i64, ptr %n")
        t.do(f"br i1 {t.new(f'icmp slt i64 {n}, {count}')}, label %{name}.row, label %walk")
        t.label(f"{name}.row")
        t.do(f"store i64 {t.new(f'add i64 {n}, 1')}, ptr %n")
        return t.at(table, t.new(f"mul i64 {n}, {width}"))

    begin(Operation.RELOCATE)
    row = rows("relocate", 3)
    word, base, offset = (t.load(row, i) for i in range(3))
    t.store(t.new(f"add i64 {t.load('%bases', base)}, {offset}"), "%words", word)
    t.do("br label %relocate.test")

    begin(Operation.SLICES)
    row = rows("slices", SLICE_WORDS)
    base, whole, offset, stride, counter, limit = (t.load(row, i) for i in range(SLICE_WORDS))
    turn = t.load(counters, counter)
    known = t.new(f"icmp sge i64 {limit}, 0")
    place = t.new(f"select i1 {known}, i64 {limit}, i64 0")
    back = t.new(f"sub i64 {t.new(f'sub i64 {t.load(counters, place)}, 1')}, {turn}")
    turn = t.new(f"select i1 {known}, i64 {back}, i64 {turn}")
    start = t.new(f"add i64 {t.load('%bases', whole)}, {offset}")
    t.store(t.new(f"add i64 {start}, {t.new(f'mul i64 {turn}, {stride}')}"), "%bases", base)
    t.do("br label %slices.test")

    begin(Operation.ZERO)
    a, b, c, d = operands("a", "b", "c", "d")
    done = t.new(f"mul i64 {t.load(counters, b)}, {c}")
    place = t.new(f"getelementptr i8, ptr {t.load('%words', a, 'ptr')}, i64 {done}")
    rest = t.new(f"sub i64 {d}, {done}")
    t.do(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {rest}, i1 false)")
    go_on()

    begin(Operation.REPORT)
    (a,) = operands("a")
    status = t.new(f"call i64 {host}(i64 {a}, ptr %words, ptr {counters})")
    t.do(f"br i1 {t.new(f'icmp eq i64 {status}, 0')}, label %walk, label %end")

    begin(Operation.TURN)
    left = t.new(f"sub i64 {t.load(counters, TURNS)}, 1")
    t.store(left, counters, TURNS)
    t.do(f"br i1 {t.new(f'icmp sgt i64 {left}, 0')}, label %walk, label %turn.host")
    t.label("turn.host")
    status = t.new(f"call i64 {host}(i64 {SIGNALS}, ptr %words, ptr {counters})")
    t.do(f"br i1 {t.new(f'icmp eq i64 {status}, 0')}, label %walk, label %end")

    return "\n".join(
        [
            "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)",
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
            "declare i64 @llvm.smin.i64(i64, i64)",
            "declare i64 @llvm.smax.i64(i64, i64)",
            "define void @entry(ptr %record, ptr %bases) {",
            "start:",
            *t.lines,
            "}",
            "",
        ]
    )
