"""Code that loads, stores, counts, calls and branches: from LLVM IR, as emitters write it, to that of x86-64.

    %v6 = getelementptr i8, ptr %table, i64 8
    store ptr %v2, ptr %v6, align 8
    call void @kernel.0(ptr %table, i64 0, i64 16)

Each value has a register. In functions that call others it is one that calls keep, or, if there are too many, a word in
the frame; what is a known distance from another one has neither. What blocks get from those before them is put there on
the way. Numbers of 32 bits are the low halves of words. Floats are in registers of vectors (`vectors`). Anything else
than that in a function, and LLVM takes the module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from xlapy.codegen.assembler.last_uses import ELSEWHERE, NAME, last_uses
from xlapy.codegen.assembler.not_known import NotKnown
from xlapy.codegen.assembler.vectors import FLOAT_TYPE, Vectors
from xlapy.codegen.assembler.x86 import (
    ARGUMENTS,
    ARITHMETIC,
    CONDITIONS,
    FLOAT_ARITHMETIC,
    FLOAT_EXTREMES,
    FLOAT_SETTINGS,
    KEPT,
    LOST,
    SHIFTS,
    WORD_BYTES,
    Assembler,
    Register,
    is_short,
)

MOST_FRAME = 1 << 16  # bytes
_FRAME_ALIGNMENT = 16
_FOR_WORK = 3  # registers that loops do not take for what is made in front of them
_FIRST, _SECOND = Register.RAX, Register.R10  # what operations work in; no arguments are in either
_BETWEEN_CALLS = Register.R11  # what a call loses
_ONE, _OTHER = Register.RCX, Register.RDX  # what is chosen from in functions that call others


class _Home(NamedTuple):
    """Where a value is: at a distance from a register, or from a word in memory that is as far from it."""

    base: Register
    word: int | None  # the distance of that word, if there is one
    distance: int


class Function:
    """One function: where its values are, and what is still to be filled in of its jumps."""

    def __init__(self, head: str, body: Sequence[str], *, vector_bytes: int, keeps_numbers: bool = True) -> None:
        found = _HEAD.match(head)
        if found is None:
            raise NotKnown(head)
        parameters = _PARAMETER.findall(found[1])
        self._code = Assembler()
        self._body = body
        self._homes: dict[str, _Home] = {}
        self._derived: set[str] = set()  # values that are a known distance from what another one is in
        self._comparisons: dict[str, tuple[int, str, str, str]] = {}
        text = "\n".join(body)
        calls = self._calls = _CALL.search(text) is not None
        self._free = list(reversed(KEPT if calls else (*LOST, _OTHER, _ONE, *KEPT)))
        self._between = [_BETWEEN_CALLS] if calls else []
        self._call_lines = [number for number, line in enumerate(body) if "call " in line] if calls else []
        self._used: set[Register] = set()
        has_floats = ("float" in text or "double" in text) and _FLOATS.search(text) is not None
        # What is between calls takes no time.
        last = self._last = last_uses(body) if has_floats or not calls else {}
        self._vectors = Vectors(self._code, last, vector_bytes) if vector_bytes and has_floats else None
        self._ending: dict[int, list[str]] = {}
        for name, number in last.items():
            self._ending.setdefault(number, []).append(name)
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []
        self._label = ""  # of the block at hand
        self._number = 0  # of the line that is read
        self._next = ""  # the line behind the one that is read, if it is a label
        most = max((line.count(", ") + 1 for line in body if "call " in line), default=0)
        self._frame = WORD_BYTES * max(0, most - len(ARGUMENTS))
        given = dict(zip(parameters, ARGUMENTS, strict=False))
        for parameter, register in given.items():
            if register in self._free:
                self._free.remove(register)
                self._homes[parameter] = _Home(register, None, 0)
        for parameter, register in given.items():
            if parameter not in self._homes:
                goal = self._goal(parameter)
                self._code.move(goal, register)
                self._keep(parameter, goal)
        self._on_stack = [self._fetch_parameter(parameter) for parameter in parameters[len(ARGUMENTS) :]]
        if self._vectors is not None and not calls and keeps_numbers:
            self._vectors.keep_numbers(body)
        self._given = _given_to_blocks(body)
        for values in self._given.values():
            for name in values:
                self._homes[name] = self._new_home(name)
                if not self._calls and self._homes[name].word is not None:
                    raise NotKnown("more loops than registers, which LLVM makes faster")

    def assembled(self) -> Assembler:
        for number, (line, following) in enumerate(zip(self._body, [*self._body[1:], ""], strict=True)):
            self._next, self._number = following, number
            if line.startswith("  "):
                ending = self._ending.get(number)
                if ending:
                    self._release(ending)
                if not (self._last and self._is_for_nobody(line)):
                    self._instruction(line)
                if ending:
                    for name in ending:
                        self._homes.pop(name, None)
            else:
                self._label = line.removesuffix(":")
                self._labels[self._label] = len(self._code.code)
        self._labels[_END] = len(self._code.code)
        for place, label in self._jumps:
            self._code.land(place, self._labels[label])
        return self._with_frame()

    def _is_for_nobody(self, line: str) -> bool:
        """Whether a line makes a number that no line reads."""
        name, equals, rest = line[2:].partition(" = ")
        return bool(equals) and name not in self._last and rest.partition(" ")[0] in _NUMBERS_MADE

    def _with_frame(self) -> Assembler:
        """All of it: what calls keep is saved, and the frame begins where calls want it to."""
        whole, used = Assembler(), [register for register in KEPT if register in self._used]
        saved = WORD_BYTES * (1 + len(used))  # with the address to return to
        frame = self._frame + -(self._frame + saved) % _FRAME_ALIGNMENT
        for number, place in enumerate(self._on_stack):
            self._code.set_distance(place, frame + saved + number * WORD_BYTES)
        for register in used:
            whole.push(register)
        whole.add_number(Register.RSP, -frame)
        whole.append(self._code)
        if self._vectors is not None and self._vectors.are_used:
            whole.forget_vectors()
        whole.add_number(Register.RSP, frame)
        for register in reversed(used):
            whole.pop(register)
        whole.ret()
        return whole

    def _instruction(self, line: str) -> None:
        name, equals, rest = line[2:].partition(" = ")
        if not equals:
            name, rest = "", name
        opcode, _, rest = rest.partition(" ")
        handler = _HANDLERS.get(opcode)
        parsed = None if handler is None else handler[0].match(rest)
        if handler is None or parsed is None:
            raise NotKnown(line)
        handler[1](self, opcode, name, *parsed.groups())

    # -- values

    def _fetch_parameter(self, name: str) -> int:
        """Brings a parameter that is on the stack to where it stays; where in the code its distance is missing."""
        goal = self._goal(name)
        place = self._code.load_later(goal, Register.RSP)
        self._keep(name, goal)
        return place

    def _goal(self, name: str) -> Register:
        """Where a value that is made now is to be put first."""
        return self._free[-1] if self._has_register(name) else _FIRST

    def _keep(self, name: str, register: Register) -> None:
        """Notes the value that was put where `_goal` said."""
        home = self._homes[name] = self._new_home(name)
        if home.word is not None:
            self._code.store(register, home.base, home.word)
        elif home.base is not register:
            self._code.move(home.base, register)

    def _has_register(self, name: str) -> bool:
        """Loops leave some to what only one block reads."""
        return len(self._free) > (0 if self._calls or self._is_local(name) else _FOR_WORK)

    def _is_local(self, name: str) -> bool:
        return self._last.get(name, ELSEWHERE) != ELSEWHERE

    def _new_home(self, name: str) -> _Home:
        if self._has_register(name):
            register = self._free.pop()
            self._used.add(register)
            return _Home(register, None, 0)
        if not self._calls and self._is_local(name):
            raise NotKnown("a loop with more values than registers, which LLVM makes faster")
        if self._between and self._is_between_calls(name):
            return _Home(self._between.pop(), None, 0)
        return _Home(Register.RSP, self._room(WORD_BYTES, WORD_BYTES), 0)

    def _is_between_calls(self, name: str) -> bool:
        """Whether a value that is made now is read for the last time in front of the next call."""
        last = self._last.get(name, ELSEWHERE)
        return last != ELSEWHERE and not any(self._number < line <= last for line in self._call_lines)

    def _release(self, names: Iterable[str]) -> None:
        """Frees the registers of values that are read for the last time now: what is made of them may go there."""
        for name in names:
            home = self._homes.get(name)
            if home is not None and home.word is None and name not in self._derived:
                (self._between if home.base is _BETWEEN_CALLS else self._free).append(home.base)

    def _room(self, size: int, alignment: int) -> int:
        """Memory in the frame: its distance from the stack pointer."""
        place = self._frame + -self._frame % alignment
        self._frame = place + size
        if self._frame > MOST_FRAME:
            raise NotKnown("a large frame")
        return place

    def _fetch(self, operand: str, goal: Register) -> None:
        """Puts an operand into a register."""
        if operand.startswith("%"):
            base, distance = self._address(operand, goal)
            if distance:
                self._code.address(goal, base, distance)
            else:
                self._code.move(goal, base)
        elif operand.startswith("@table."):
            self._code.data_address(goal, operand[1:], 0)
        elif operand.startswith("@"):
            self._code.function_address(goal, operand[1:])
        else:
            self._code.number(goal, _number(operand))

    def _in_register(self, operand: str, scratch: Register) -> Register:
        """The register that an operand is in; `scratch`, if it has to be put into one."""
        home = self._homes.get(operand)
        if home is not None and home.word is None and not home.distance:
            return home.base
        self._fetch(operand, scratch)
        return scratch

    def _short_number(self, operand: str) -> int | None:
        """An operand that instructions can have in them."""
        number = None if operand[0] in "%@" else _number(operand)
        return number if number is not None and is_short(number) else None

    def _address(self, operand: str, scratch: Register) -> tuple[Register, int]:
        """A register, `scratch` if there is no other, and how far an operand is from it."""
        home = self._homes.get(operand)
        if home is None:
            if operand.startswith("%"):
                raise NotKnown(operand)
            self._fetch(operand, scratch)
            return scratch, 0
        if home.word is None:
            return home.base, home.distance
        self._code.load(scratch, home.base, home.word)
        return scratch, home.distance

    # -- instructions

    def _alloca(self, _opcode: str, name: str, type: str, count: str | None, alignment: str) -> None:
        size, aligned = _SIZES[type] * int(count or 1), int(alignment)
        if aligned > _FRAME_ALIGNMENT:
            goal, place = self._goal(name), self._room(size + aligned - _FRAME_ALIGNMENT, _FRAME_ALIGNMENT)
            self._code.address(goal, Register.RSP, place + aligned - _FRAME_ALIGNMENT)
            self._code.arithmetic_number("and", goal, -aligned)
            self._keep(name, goal)
            return
        place = self._room(size, aligned)
        self._homes[name] = _Home(Register.RSP, None, place)
        self._derived.add(name)

    def _gep(self, _opcode: str, name: str, pointer: str, index: str) -> None:
        home = self._homes.get(pointer)
        if home is not None and not index.startswith("%"):
            distance = home.distance + int(index)
            if not -_FAR < distance < _FAR:
                raise NotKnown("a large distance")
            self._homes[name] = _Home(home.base, home.word, distance)
            self._derived.add(name)
            return
        base, distance = self._address(pointer, _FIRST)
        goal = self._goal(name)
        self._code.sum_address(goal, base, self._in_register(index, _SECOND), distance)
        self._keep(name, goal)

    def _load(self, _opcode: str, name: str, type: str, pointer: str) -> None:
        if type not in _BYTES:
            self._floats.load(self._number, name, self._floats.type(type), *self._address(pointer, _SECOND))
            return
        base, distance = self._address(pointer, _SECOND)
        goal = self._goal(name)
        self._code.load(goal, base, distance, narrow=type == "i32")
        self._keep(name, goal)

    def _store(self, _opcode: str, _name: str, type: str, value: str, pointer: str) -> None:
        if type not in _BYTES:
            self._floats.store(self._number, value, self._floats.type(type), *self._address(pointer, _SECOND))
            return
        source = self._in_register(value, _FIRST)
        base, distance = self._address(pointer, _SECOND)
        self._code.store(source, base, distance, narrow=type == "i32")

    def _call(self, _opcode: str, name: str, type: str, function: str, arguments: str) -> None:
        if type not in _BYTES and type != "void":
            self._float_function(name, type, function, arguments)
            return
        given = [argument.split(" ") for argument in filter(None, arguments.split(", "))]
        if function.startswith("@llvm."):
            self._intrinsic(name, type, function.removeprefix("@llvm."), given)
            return
        if any(len(words) != 2 or words[0] not in _BYTES for words in given):
            raise NotKnown(function)
        for number, (_, operand) in enumerate(given[len(ARGUMENTS) :]):
            self._fetch(operand, _FIRST)
            self._code.store(_FIRST, Register.RSP, number * WORD_BYTES)
        for (_, operand), register in zip(given, ARGUMENTS, strict=False):
            self._fetch(operand, register)
        if self._vectors is not None:
            self._vectors.leave()
        if function.startswith("@"):
            self._code.call(function[1:])
        else:
            self._fetch(function, _FIRST)
            self._code.call_at(_FIRST)
        if type != "void":
            self._keep_first(name)

    @property
    def _floats(self) -> Vectors:
        if self._vectors is None:
            raise NotKnown("floats")
        return self._vectors

    def _float_arithmetic(self, opcode: str, name: str, type: str, one: str, other: str) -> None:
        self._floats.arithmetic(self._number, opcode, name, self._floats.type(type), one, other)

    def _negate(self, _opcode: str, name: str, type: str, value: str) -> None:
        self._floats.negate(self._number, name, self._floats.type(type), value)

    def _float_function(self, name: str, type: str, function: str, arguments: str) -> None:
        if function.startswith("@math."):
            given = [(value, self._floats.type(of)) for of, value in _ONE_FLOAT.findall(arguments)]
            self._floats.call(self._number, name, self._floats.type(type), function[1:], given)
            return
        opcode, found = function.split(".")[1], _TWO_FLOATS.match(arguments)
        if not function.startswith("@llvm.") or opcode not in FLOAT_EXTREMES or found is None:
            raise NotKnown(function)
        self._floats.extreme(self._number, opcode, name, self._floats.type(type), found[1], found[2])

    def _repeat(self, _opcode: str, name: str, type: str, value: str) -> None:
        """A number in the first place of a vector, or in all of them: nobody asks for what else is there."""
        self._floats.repeat(self._number, name, self._floats.type(type), value)

    def _shuffle(self, _opcode: str, name: str, type: str, given: str, value: str, wanted: str) -> None:
        if given != wanted:
            raise NotKnown("a vector of another length")
        self._floats.repeat(self._number, name, self._floats.type(type), value)

    def _intrinsic(self, name: str, type: str, function: str, given: Sequence[Sequence[str]]) -> None:
        operands = [words[-1] for words in given]
        function, _, operation = function.partition(".")
        if function in _EXTREMES:
            one, other = operands
            self._choose(name, (CONDITIONS[_EXTREMES[function]], type, one, other), one, other)
        elif function == "readcyclecounter" and self._calls:
            self._code.read_clock(_FIRST)
            self._keep_first(name)
        elif function == "memcpy" and operands[3] == "false":
            self._copy(*operands[:3])
        elif function == "x86" and operation in _SETTINGS:
            self._code.float_settings(_SETTINGS[operation], *self._address(operands[0], _SECOND))
        else:
            raise NotKnown(function)

    def _copy(self, goal: str, source: str, size: str) -> None:
        if size in _SHORT:
            base, distance = self._address(source, _SECOND)
            self._code.load(_FIRST, base, distance, narrow=_SHORT[size])
            base, distance = self._address(goal, _SECOND)
            self._code.store(_FIRST, base, distance, narrow=_SHORT[size])
            return
        for operand, register in zip((goal, source, size), ARGUMENTS, strict=False):
            self._fetch(operand, register)
        if self._vectors is not None:
            self._vectors.leave()
        self._code.call("memcpy")

    def _keep_first(self, name: str) -> None:
        """Notes a value that is in the first register."""
        goal = self._goal(name)
        self._code.move(goal, _FIRST)
        self._keep(name, goal)

    def _arithmetic(self, opcode: str, name: str, _type: str, one: str, other: str) -> None:
        goal, number = self._goal(name), self._short_number(other)
        if opcode == "mul" and number is not None:
            self._code.multiply_number(goal, self._in_register(one, _FIRST), number)
        elif number is not None:
            self._fetch(one, goal)
            self._code.arithmetic_number(opcode, goal, number)
        else:
            register = self._in_register(other, _SECOND)
            work = _FIRST if register == goal else goal
            self._fetch(one, work)
            if opcode == "mul":
                self._code.multiply(work, register)
            else:
                self._code.arithmetic(opcode, work, register)
            self._code.move(goal, work)
        self._keep(name, goal)

    def _divide(self, _opcode: str, name: str, one: str, other: str) -> None:
        number = self._short_number(other)
        if number is not None and number > 0 and not number & (number - 1):
            self._shift("lshr", name, one, str(number.bit_length() - 1))
            return
        self._fetch(other, _SECOND)
        self._fetch(one, _FIRST)
        is_taken = not self._calls and _OTHER not in self._free
        if is_taken:
            self._code.push(_OTHER)
        self._code.divide(_SECOND)
        if is_taken:
            self._code.pop(_OTHER)
        self._keep_first(name)

    def _shift(self, opcode: str, name: str, one: str, count: str) -> None:
        self._fetch(one, _FIRST)
        self._code.shift(opcode, _FIRST, int(count))
        self._keep_first(name)

    def _widen(self, opcode: str, name: str, value: str) -> None:
        self._fetch(value, _FIRST)
        if opcode == "sext":
            self._code.sign_extend(_FIRST, _FIRST)
        else:
            self._code.zero_extend(_FIRST, _FIRST)
        self._keep_first(name)

    def _narrow(self, _opcode: str, name: str, value: str) -> None:
        self._fetch(value, _FIRST)
        self._keep_first(name)

    def _select(self, _opcode: str, name: str, condition: str, _type: str, one: str, other: str) -> None:
        self._choose(name, self._comparison(condition), one, other)

    def _choose(self, name: str, comparison: tuple[int, str, str, str], one: str, other: str) -> None:
        """One of two values, the first one where the comparison holds."""
        if not self._calls:
            raise NotKnown("a choice in a loop, which LLVM makes faster")
        self._fetch(one, _ONE)
        self._fetch(other, _OTHER)
        holds = self._compared(comparison)
        self._code.move_if(holds ^ 1, _ONE, _OTHER)
        self._code.move(_FIRST, _ONE)
        self._keep_first(name)

    def _compare(self, _opcode: str, name: str, predicate: str, type: str, one: str, other: str) -> None:
        self._comparisons[name] = CONDITIONS[predicate], type, one, other

    def _comparison(self, name: str) -> tuple[int, str, str, str]:
        """What a value stands for that says whether something is so."""
        if name not in self._comparisons:
            raise NotKnown(name)
        return self._comparisons[name]

    def _compared(self, comparison: tuple[int, str, str, str]) -> int:
        """Compares, and returns the condition that the result is to be asked for."""
        holds, type, one, other = comparison
        register, number, narrow = self._in_register(one, _FIRST), self._short_number(other), type == "i32"
        if number is None:
            self._code.compare(register, self._in_register(other, _SECOND), narrow=narrow)
        else:
            self._code.compare_number(register, number, narrow=narrow)
        return holds

    # -- from block to block

    def _phi(self, _opcode: str, name: str, _type: str, _values: str) -> None:
        """There already: those before the block have put it where it is."""

    def _branch(self, _opcode: str, _name: str, condition: str | None, first: str, second: str | None) -> None:
        if condition is not None and second is not None:
            holds = self._compared(self._comparison(condition))
            if self._next == f"{second}:" and second not in self._given and self._is_done_with(first):
                self._hand_over(first)  # which leaves the comparison as it is
                self._jumps.append((self._code.jump(holds), first))
                return
            self._go_if(holds ^ 1, second)
        self._go(first)

    def _is_done_with(self, label: str) -> bool:
        """Whether a block behind this one may be given its values now, if it is gone to or not: they are not numbers,
        and nothing behind here reads what was there before."""
        given = self._given.get(label)
        if given is None:
            return True
        if not all(values[self._label].startswith("%") for values in given.values()):
            return False
        homes = [self._homes[name] for name in given]
        lost = {name for name, home in self._homes.items() if home._replace(distance=0) in homes}
        lost |= {name for name, (_, _, *operands) in self._comparisons.items() if not lost.isdisjoint(operands)}
        behind = "\n".join(self._body[self._number + 1 :])
        others = (
            value
            for block, values in self._given.items()
            for sources in values.values()
            for source, value in sources.items()
            if (block, source) != (label, self._label)
        )
        return lost.isdisjoint(NAME.findall(behind)) and lost.isdisjoint(others)

    def _switch(self, _opcode: str, _name: str, type: str, value: str, default: str, cases: str) -> None:
        equal = CONDITIONS["eq"]
        for number, label in _CASE.findall(cases):
            self._go_if(self._compared((equal, type, value, number)), label)
        self._go(default)

    def _go_if(self, condition: int, label: str) -> None:
        if label not in self._given:
            self._jumps.append((self._code.jump(condition), label))
            return
        place = self._code.jump(condition ^ 1)
        self._hand_over(label)
        self._jumps.append((self._code.jump(), label))
        self._code.land(place, len(self._code.code))

    def _go(self, label: str) -> None:
        self._hand_over(label)
        if self._next != f"{label}:":
            self._jumps.append((self._code.jump(), label))

    def _hand_over(self, label: str) -> None:
        """Puts what a block gets from the one at hand where it belongs: all of it at once."""
        moves = [(self._homes[name], values[self._label]) for name, values in self._given.get(label, {}).items()]
        homes = [goal for goal, _ in moves]
        if any(self._is_in(value, homes[:number]) for number, (_, value) in enumerate(moves)):
            words = [_Home(Register.RSP, self._room(WORD_BYTES, WORD_BYTES), 0) for _ in moves]
            for word, (_, value) in zip(words, moves, strict=True):
                self._put(value, word)
            for word, goal in zip(words, homes, strict=True):
                self._put(word, goal)
        else:
            for goal, value in moves:
                self._put(value, goal)

    def _is_in(self, value: str, homes: Sequence[_Home]) -> bool:
        """Whether a value is lost where something else is put into one of these."""
        home = self._homes.get(value)
        return home is not None and home._replace(distance=0) in homes

    def _put(self, value: str | _Home, goal: _Home) -> None:
        """Puts a value, or a word of the frame, into a register or a word of the frame."""
        register = goal.base if goal.word is None else _FIRST
        if isinstance(value, str):
            self._fetch(value, register)
        elif value.word is not None:
            self._code.load(register, value.base, value.word)
        if goal.word is not None:
            self._code.store(register, goal.base, goal.word)

    def _return(self, _opcode: str, _name: str, type: str, value: str | None) -> None:
        if value is not None:
            self._fetch(value, _FIRST)
        if self._next:
            self._jumps.append((self._code.jump(), _END))


def _number(operand: str) -> int:
    try:
        return 0 if operand == "null" else int(operand)
    except ValueError:
        raise NotKnown(operand) from None


def _given_to_blocks(body: Sequence[str]) -> dict[str, dict[str, dict[str, str]]]:
    """By blocks, and the values that they begin with: by the blocks before them, which values these are."""
    given: dict[str, dict[str, dict[str, str]]] = {}
    label = ""
    for line in body:
        if not line.startswith("  "):
            label = line.removesuffix(":")
        elif " = phi " in line and (found := _PHI.match(line)):
            given.setdefault(label, {})[found[1]] = {block: value for value, block in _SOURCE.findall(found[2])}
    return given


_FAR = 1 << 30
_END = "the end"
_BYTES = {"ptr": 8, "i64": 8, "i32": 4}
_SIZES = {**_BYTES, "i8": 1}
_SHORT = {"4": True, "8": False}  # bytes that are copied in one go: whether they are narrow
_SETTINGS = {f"sse.{operation}": operation for operation in FLOAT_SETTINGS}
_EXTREMES = {"smax": "sge", "smin": "sle", "umax": "uge", "umin": "ule"}
_TYPE = "(ptr|i64|i32)"
_FLOAT = r"(?:%[\w.]+|splat \(\w+ \w+\)|0x\w+|zeroinitializer)"

_HEAD = re.compile(r"define (?:void|ptr|i64|i32) @[\w.]+\(((?:(?:ptr|i64|i32) %[\w.]+(?:, )?)*)\)[^({]*\{$")
_PARAMETER = re.compile(r"%[\w.]+")
_PHI = re.compile(r"  (%[\w.]+) = phi \S+ (.*)$")
_SOURCE = re.compile(r"\[ (\S+), %([\w.]+) \]")
_CALL = re.compile(r"call (?!.*@llvm\.(?!memcpy))")
_FLOATS = re.compile(r"\b(?:float|double)\b")
_CASE = re.compile(r"i\d+ (-?\d+), label %([\w.]+)")

_NUMBERS_MADE = frozenset({*ARITHMETIC, "mul", "getelementptr", *SHIFTS})
_ONE_FLOAT = re.compile(f"({FLOAT_TYPE}) ({_FLOAT})")
_TWO_FLOATS = re.compile(f"(?:{FLOAT_TYPE}) ({_FLOAT}), (?:{FLOAT_TYPE}) ({_FLOAT})$")

_Handler = Callable[..., None]
_HANDLERS: Mapping[str, tuple[re.Pattern[str], _Handler]] = {
    "alloca": (re.compile(r"(ptr|i64|i32|i8)(?:, i64 (\d+))?, align (\d+)$"), Function._alloca),
    "getelementptr": (re.compile(r"i8, ptr (\S+), i64 (\S+)$"), Function._gep),
    "load": (re.compile(f"(?:volatile )?({FLOAT_TYPE}|ptr|i64|i32), ptr ([^ ,]+)"), Function._load),
    "store": (
        re.compile(f"(?:volatile )?({FLOAT_TYPE}|ptr|i64|i32) ({_FLOAT}|\\S+), ptr ([^ ,]+)"),
        Function._store,
    ),
    "call": (re.compile(f"({FLOAT_TYPE}|void|ptr|i64|i32) ([@%][\\w.]+)\\((.*)\\)$"), Function._call),
    "icmp": (re.compile(f"({'|'.join(CONDITIONS)}) {_TYPE} (\\S+), (\\S+)$"), Function._compare),
    "select": (re.compile(f"i1 (\\S+), {_TYPE} (\\S+), (?:ptr|i64|i32) (\\S+)$"), Function._select),
    "phi": (re.compile(f"{_TYPE} (.*)$"), Function._phi),
    "br": (re.compile(r"(?:i1 (\S+), )?label %([\w.]+)(?:, label %([\w.]+))?$"), Function._branch),
    "switch": (re.compile(r"(i64|i32) (\S+), label %([\w.]+) \[(.*)\]$"), Function._switch),
    **dict.fromkeys((*ARITHMETIC, "mul"), (re.compile(r"(?:nsw |nuw )*(i64|i32) (\S+), (\S+)$"), Function._arithmetic)),
    "udiv": (re.compile(r"(?:exact )?i64 (\S+), (\S+)$"), Function._divide),
    **dict.fromkeys(SHIFTS, (re.compile(r"(?:nsw |nuw |exact )*i64 (\S+), (\d+)$"), Function._shift)),
    **dict.fromkeys(("sext", "zext"), (re.compile(r"(?:nneg )?i32 (\S+) to i64$"), Function._widen)),
    "trunc": (re.compile(r"(?:nsw |nuw )*i64 (\S+) to i32$"), Function._narrow),
    **dict.fromkeys(
        FLOAT_ARITHMETIC, (re.compile(f"({FLOAT_TYPE}) ({_FLOAT}), ({_FLOAT})$"), Function._float_arithmetic)
    ),
    "fneg": (re.compile(f"({FLOAT_TYPE}) ({_FLOAT})$"), Function._negate),
    "insertelement": (re.compile(f"({FLOAT_TYPE}) poison, \\w+ ({_FLOAT}), i64 0$"), Function._repeat),
    "shufflevector": (
        re.compile(r"(<(\d+) x (?:float|double)>) (%[\w.]+), <.*> poison, <(\d+) x i32> zeroinitializer$"),
        Function._shuffle,
    ),
    "freeze": (re.compile(f"({FLOAT_TYPE}) (splat \\(\\w+ \\w+\\)|0x\\w+)$"), Function._repeat),
    "ret": (re.compile(f"(?:void|{_TYPE} (\\S+))$"), Function._return),
}
"""By opcodes: how the rest of a line is taken apart, and who writes it."""
