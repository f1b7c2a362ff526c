"""Loops, branches and calls. Values that change are carried by phis; no emitter ever writes a block or a phi itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from xlapy.codegen.ir_memory import Memory
from xlapy.codegen.ir_types import I64, IRType, Operand, Value
from xlapy_runtime.errors import InternalError

Values = Value | Sequence[Value] | None


def _as_values(values: Values) -> list[Value]:
    if values is None:
        return []
    return [values] if isinstance(values, Value) else list(values)


class Loop:
    """What a loop's body sees: the index, the carried values, and the place for their next values.

    `results` are the carried values after the last iteration, to be used once the loop is closed.
    """

    __slots__ = ("index", "next", "results", "values")

    def __init__(self, index: Value, values: list[Value]) -> None:
        self.index = index
        self.values = values
        self.next: Sequence[Operand] = values
        self.results: list[Value] = []


def _known_runs(first: Value, last: Value, stride: Value) -> int | None:
    """How many iterations a loop with these bounds has, if that is known."""
    begin, end, step = (bound.constant for bound in (first, last, stride))
    if begin is None or end is None or step is None:
        return None
    return max(0, -int((begin - end) // step))


class Control(Memory):
    """Structured control flow."""

    # Loops

    @contextmanager
    def loop(
        self,
        begin: Operand,
        end: Operand,
        step: Operand = 1,
        carry: Sequence[Value] = (),
        *,
        runs: bool = False,
    ) -> Iterator[Loop]:
        """A counted loop over begin, begin + step, ... below `end`; `step` is positive, comparison signed.

            with k.loop(0, n, carry=[zero]) as loop:
                loop.next = [k.add(loop.values[0], k.load(k.gep(x, loop.index, 4), F32))]
            total = loop.results[0]

        Tested at the bottom, behind a guard unless it is known to run at least once, or the caller says so (`runs`).
        What is known to run just once is no loop.
        """
        first, last = self._pair(self._as_index(begin), self._as_index(end))
        stride = self._value(step, first.type)
        if _known_runs(first, last, stride) == 1:
            body = Loop(first, list(carry))
            yield body
            if self._terminated:
                raise InternalError("the body of a counted loop cannot return")
            body.results = [self._value(value, old.type) for value, old in zip(body.next, body.values, strict=True)]
            return
        head, done, before = self._new_label("loop"), self._new_label("done"), self._block
        guard = self.compare("lt", first, last)
        initial = list(carry)
        skipped = not runs and guard.constant != 1
        if not skipped:
            self._branch(head)
        else:
            self._branch_if(guard, head, done)
        # Hoisted code must go in front of the branch just written.
        preheader, ending = self._scope.lines, self._scope.lines.pop()
        scope = self._open_scope(loop=True)
        scope.runs = _known_runs(first, last, stride)
        self._start_block(head)
        phis = scope.lines = self._new_chunk()
        scope.lines = self._new_chunk()
        index = self._named(first.type, scope)
        if self.hoists_addresses and index.type is I64 and stride.constant is not None:
            scope.multiples = {1: index}
        body = Loop(index, [self._named(value.type, scope) for value in initial])
        yield body
        if self._terminated:
            raise InternalError("the body of a counted loop cannot return")
        following = [self._value(value, old.type) for value, old in zip(body.next, body.values, strict=True)]
        growing = [
            (
                multiple,
                self.mul(first, factor),
                self._result(I64, f"add i64 {multiple.text}, {int(stride.constant or 0) * factor}"),
            )
            for factor, multiple in scope.multiples.items()
            if factor != 1
        ]
        advanced = self._result(first.type, f"add nsw {first.type.text} {index.text}, {stride.text}")
        again = self._result(guard.type, f"icmp slt {first.type.text} {advanced.text}, {last.text}")
        latch = self._block
        values = zip(body.values, initial, following, strict=True)
        phis += [
            self._phi(new, [(start, before), (update, latch)])
            for new, start, update in [(index, first, advanced), *values, *growing]
        ]
        self._branch_if(again, head, done)
        self._close_scope()
        preheader.append(ending)
        self._start_block(done)
        body.results = [self._named(value.type, self._scope) for value in initial]
        self._scope.lines += [
            self._phi(result, [(start, before), (update, latch)] if skipped else [(update, latch)])
            for result, start, update in zip(body.results, initial, following, strict=True)
        ]

    def while_loop(
        self,
        condition: Callable[[list[Value]], Value],
        body: Callable[[list[Value]], Values],
        carry: Sequence[Value],
    ) -> list[Value]:
        """Runs `body` on the carried values while `condition` of them holds; what they are in the end."""
        head, inside, done = self._new_label("while"), self._new_label("do"), self._new_label("done")
        before, preheader = self._block, self._scope.lines
        scope = self._open_scope(loop=True)
        self._start_block(head)
        phis = scope.lines = self._new_chunk()
        scope.lines = self._new_chunk()
        values = [self._named(value.type, scope) for value in carry]
        self._branch_if(condition(values), inside, done)
        self._start_block(inside)
        following = [self._value(value, old.type) for value, old in zip(_as_values(body(values)), values, strict=True)]
        edges = [] if self._terminated else [self._block]
        self._branch(head)
        phis += [
            self._phi(new, [(start, before), *((update, latch) for latch in edges)])
            for new, start, update in zip(values, carry, following, strict=True)
        ]
        self._close_scope()
        preheader.append(f"  br label %{head}")
        self._start_block(done)
        return [Value(value.type, value.text, None, self._scope) for value in values]

    def _phi(self, result: Value, inputs: Sequence[tuple[Value, str]]) -> str:
        pairs = ", ".join(f"[ {value.text}, %{block} ]" for value, block in inputs)
        return f"  {result.text} = phi {result.type.text} {pairs}"

    # Branches

    @contextmanager
    def rarely(self, *, is_rare: bool = True) -> Iterator[None]:
        """What is written now runs rarely, beside loops around it, if that `is_rare`: elementary functions are called
        there, instead of being copies that are compiled with each kernel."""
        before, self.runs_rarely = self.runs_rarely, self.runs_rarely or is_rare
        try:
            yield
        finally:
            self.runs_rarely = before

    @contextmanager
    def if_(self, condition: Value) -> Iterator[None]:
        """The body runs only if the bit `condition` is set."""
        inside, done = self._new_label("then"), self._new_label("done")
        self._branch_if(condition, inside, done)
        with self._arm(inside):
            yield
            self._branch(done)
        self._start_block(done)

    def if_else(
        self,
        condition: Value,
        then: Callable[[], Values],
        otherwise: Callable[[], Values],
        *,
        likely: bool | None = None,
    ) -> list[Value]:
        """Runs one of the two; their values, merged. `likely` says how the condition mostly is, if that is known."""
        if condition.constant is not None:
            return _as_values(then() if condition.constant else otherwise())
        first, second, done = self._new_label("then"), self._new_label("else"), self._new_label("done")
        self._branch_if(condition, first, second, likely)
        rare = None if likely is None else second if likely else first
        return self._merged(done, {first: then, second: otherwise}, rare)

    def switch(
        self, value: Value, cases: Mapping[int, Callable[[], Values]], default: Callable[[], Values]
    ) -> list[Value]:
        """Runs the case of an integer, or `default`; the values, merged."""
        if value.constant is not None:
            return _as_values(cases.get(int(value.constant), default)())
        done, other = self._new_label("done"), self._new_label("default")
        arms = {self._new_label("case"): (number, function) for number, function in cases.items()}
        table = " ".join(f"{value.type.text} {number}, label %{label}" for label, (number, _) in arms.items())
        self._effect(f"switch {value.type.text} {value.text}, label %{other} [{table}]")
        self._terminated = True
        return self._merged(done, {**{label: function for label, (_, function) in arms.items()}, other: default})

    def _merged(self, done: str, arms: Mapping[str, Callable[[], Values]], rare: str | None = None) -> list[Value]:
        """Writes each arm and joins those that do not return. The one that is `rare` comes behind all other code, out
        of the way of what comes usually, wherever LLVM leaves blocks in their order."""
        edges: list[tuple[str, list[Value]]] = []
        for label, function in arms.items():
            written = len(self._chunks)
            with self._arm(label):
                values = _as_values(function())
                if not self._terminated:
                    edges.append((self._block, values))
                self._branch(done)
            if label == rare:
                self._last_chunks += self._chunks[written:]
                del self._chunks[written:]
        self._start_block(done)
        if not edges:
            self._effect("unreachable")
            self._terminated = True
            return []
        merged: list[Value] = []
        phis: list[str] = []
        for column in zip(*(values for _, values in edges), strict=True):
            result = self._named(column[0].type, self._scope)
            phis.append(self._phi(result, [(value, block) for value, (block, _) in zip(column, edges, strict=True)]))
            merged.append(result)
        self._scope.lines += phis
        return merged

    @contextmanager
    def _arm(self, label: str) -> Iterator[None]:
        """A scope for one arm, from its first block on."""
        self._open_scope(loop=False)
        self._start_block(label)
        yield
        self._close_scope()

    # Calls

    def call(self, function: str | Value, arguments: Sequence[Value], returns: IRType | None = None) -> Value | None:
        """Calls a function by its name, declared if the module does not define it, or through a pointer."""
        if isinstance(function, str):
            self.module.declare(function, returns, [argument.type for argument in arguments])
        target = f"@{function}" if isinstance(function, str) else self.require_pointer(function).text
        passed = ", ".join(f"{argument.type.text} {argument.text}" for argument in arguments)
        if returns is None:
            self._effect(f"call void {target}({passed})")
            return None
        return self._result(returns, f"call {returns.text} {target}({passed})")

    def call_value(self, function: str | Value, arguments: Sequence[Value], returns: IRType) -> Value:
        """Calls a function, like `call`; what it returns."""
        value = self.call(function, arguments, returns)
        assert value is not None
        return value

    def call_pure(self, function: str, arguments: Sequence[Value], returns: IRType) -> Value:
        """Calls a function whose result depends on its arguments alone, and that does nothing else: an operation like
        any other, which is written once."""
        self.module.declare(function, returns, [argument.type for argument in arguments])
        passed = ", ".join(f"{argument.type.text} {argument.text}" for argument in arguments)
        return self._pure(returns, f"call {returns.text} @{function}({passed})", *arguments)

    def ret(self, value: Value | None = None) -> None:
        """Returns from the function; nothing may follow in this arm."""
        self._effect("ret void" if value is None else f"ret {value.type.text} {value.text}")
        self._terminated = True
