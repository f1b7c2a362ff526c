"""Reads StableHLO text, generic or pretty, into the neutral tree.

Regions nest without recursion: an operation with regions is read by a generator that yields each region it opens, and
`_run` keeps the open ones on a stack.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from xlapy.hlo.shape import Shape
from xlapy.stablehlo.lexer import END, Tokens, cut
from xlapy.stablehlo.lines import NotALineError, is_alias, split_line
from xlapy.stablehlo.reader import Item, Reader
from xlapy.stablehlo.tree import Attributes, Operation, Region, Template, Value
from xlapy.stablehlo.types import type_text
from xlapy.support.errors import UnsupportedError
from xlapy.support.source import Source

Steps = Generator[Region, None, None]
"""The reading of an operation with regions: yields each region where it opens, goes on where it has closed."""

PrettyForm = Callable[["Parser", Operation], "Steps | None"]

MAX_OPEN_REGIONS = 200  # each control-flow operation inside another one takes time to compile
_ISOLATED = frozenset({"builtin.module", "func.func"})
SCALAR_DIALECTS = ("arith.", "tensor.", "shape.")
"""Values of these may have the types of elements, `index` or `i32`: scalars to us."""


class _Open:
    """A region being read: what goes on behind it, and the names it hides."""

    __slots__ = ("hidden", "names", "operation", "outer_scope", "region", "steps")

    def __init__(
        self,
        region: Region,
        operation: Operation,
        names: list[tuple[str, int]],
        steps: Steps,
        outer_scope: dict[str, Value],
    ) -> None:
        self.region = region
        self.operation = operation
        self.names = names  # of the operation's results, defined when all its regions are read
        self.steps = steps
        self.outer_scope = outer_scope
        self.hidden: list[tuple[str, Value | None]] = []


class Parser(Reader):
    """One text on its way to a tree. `program` is the way in; the pretty forms use the rest."""

    def __init__(
        self, text: str, forms: dict[str, PrettyForm], default_form: PrettyForm, *, by_line: bool = False
    ) -> None:
        super().__init__(Tokens(Source(text), by_line=by_line))
        self._forms = forms
        self._default_form = default_form
        self._scope: dict[str, Value] = {}
        self._stack: list[_Open] = []
        self._templates: dict[str, Template] = {}
        self._locations: dict[str, tuple[str, ...]] = {"": ()}
        self._lines_read = self._lines_repeated = 0

    # -- values ----------------------------------------------------------------------------------------------------

    def use(self) -> Value:
        """The value that the current token names; notes the capture if an outer region defines it."""
        token = self.texts[self.index]
        value = self._scope.get(token)
        if value is None:
            if not token.startswith("%"):
                raise self.expected("a value, like %0")
            self.fail(f"no value {token} is defined before its use")
        self.index += 1
        if value.region is not self._stack[-1].region:
            self._capture(value)
        return value

    def _capture(self, value: Value) -> None:
        """Notes that regions which are open use a value from outside."""
        if value.is_constant:
            return
        for opened in reversed(self._stack):
            if opened.region is value.region or value in opened.operation.captures:
                break
            opened.operation.captures[value] = None

    def _define(self, name: str, value: Value) -> None:
        opened = self._stack[-1]
        hidden = self._scope.get(name)
        if hidden is not None and hidden.region is opened.region:
            place = self.index if value.definition is None else value.definition.place
            self.fail(f"{name} is the name of an earlier value, too", place)
        opened.hidden.append((name, hidden))
        self._scope[name] = value

    # -- regions and operations ------------------------------------------------------------------------------------

    def open_region(self, operation: Operation, arguments: list[tuple[str, Shape]] | None = None) -> Region:
        """Reads `{` and, unless `arguments` are given, `^label(arguments):`. The caller yields the region next."""
        self.expect("{")
        if len(self._stack) > MAX_OPEN_REGIONS:
            self.fail(f"regions nest deeper than {MAX_OPEN_REGIONS} levels here")
        region = Region()
        operation.regions.append(region)
        if self.texts[self.index].startswith("^"):
            self.index += 1
            if self.accept("("):
                arguments = [*self.listed(self.argument, ")")]
            self.expect(":")
        values = [Value(name, type, region, None, number) for number, (name, type) in enumerate(arguments or ())]
        region.arguments = values
        if len({value.name for value in values}) != len(values):
            self.fail(f"two arguments of a region of {operation.name} have one name")
        return region

    def argument(self) -> tuple[str, Shape]:
        """`%name: type`, with attributes and a location that we skip."""
        name, type, _ = self.attributed_argument()
        return name, type

    def attributed_argument(self) -> tuple[str, Shape, Attributes]:
        """`%name: type {attributes}`, with a location that we skip."""
        name = self.texts[self.index]
        if not name.startswith("%") or name == "%":
            raise self.expected("an argument, like %arg0: tensor<4xf32>")
        self.index += 1
        self.expect(":")
        type = self.value_type()
        attributes = self.attributes() if self.accept("{") else {}
        if self.texts[self.index] == "loc":
            self.location()
        return name, type, attributes

    def program(self) -> Operation:
        """The whole text, as the operations of one region of a nameless module."""
        top = Operation("builtin.module", 0)
        region = Region()
        top.regions.append(region)
        self._stack.append(_Open(region, top, [], _nothing(), {}))
        self._run()
        return top

    def _run(self) -> None:
        texts = self.texts
        while True:
            token = texts[self.index]
            if token[:1] == "%" and " " in token:
                self._line(token)
            elif token == "}" and len(self._stack) > 1:
                self.index += 1
                self._close_region()
            elif token == END:
                if len(self._stack) > 1:
                    raise self.expected("an operation or `}`")
                return
            elif token[0] == "^":
                self.fail("a second block begins here: only regions of one block are understood")
            elif len(self._stack) == 1 and (token[0] in "#!" or token == "{-#"):
                self._definition(token)
            else:
                self._operation(self.index)

    def _definition(self, token: str) -> None:
        """`#name = attribute`, `!name = type`, or the section of resources, read only when a constant asks for it."""
        self.index += 1
        if token == "{-#":
            while self.texts[self.index] not in ("#-}", END):
                self.index += 1
            self.expect("#-}")
            return
        self.expect("=")
        if token[0] == "!":
            self.type_aliases[token] = self.type()
        elif self.texts[self.index] == "loc":
            self.location_aliases[token] = self.location()
            return
        else:
            self.attribute_aliases[token] = self.typed_attribute()
        self._templates.clear()  # what was read may mean something else from here on

    def _line(self, line: str) -> None:
        """An operation that is a line of its own. One that says the same as an earlier one, but for the names of
        values, is the same operation on other values: nothing but the names needs to be read."""
        wording, names, location = split_line(line)
        template = self._templates.get(wording)
        if template is None or not self._repeat(template, names, location):
            self._lines_read += 1
            if self._lines_read > self._lines_repeated + _PATIENCE:
                raise NotALineError
            self._read_line(line, wording, names, location)
        else:
            self._lines_repeated += 1
        self.index += 1

    def _repeat(self, template: Template, names: list[str], location: str) -> bool:
        """Adds the operation of `template` on other values; False if there is more to find out about it."""
        region = self._stack[-1].region
        scope = self._scope
        operation = Operation(template.name, self.index)
        operands = operation.operands
        for name, type in zip(names[1:], template.operand_types, strict=True):
            value = scope.get(name)
            if value is None or value.type is not type:
                return False
            if value.region is not region:
                self._capture(value)
            operands.append(value)
        operation.location = self._location_of(location)
        operation.template = template
        operation.attributes = template.attributes
        operation.regions = template.regions
        operation.result_types = template.result_types
        self._define_results(operation, [(names[0], len(template.result_types))])
        region.operations.append(operation)
        return True

    def _read_line(self, line: str, wording: str, names: list[str], location: str) -> None:
        """Reads an operation token by token, and remembers it for lines like it."""
        opened, place = self._stack[-1], self.index
        self._within(line, lambda: self._operation(place))
        if self._stack[-1] is not opened:
            raise NotALineError
        operation = opened.region.operations[-1]
        used = [self._scope.get(name) for name in names[1:]]
        if used == operation.operands and operation.location == self._location_of(location):
            operation.template = self._templates[wording] = Template(operation)

    def _location_of(self, text: str) -> tuple[str, ...]:
        """The tokens of the location that `text` is without `loc(`."""
        if is_alias(text):
            return (text[:-1],)
        known = self._locations.get(text)
        if known is None:
            known = self._locations[text] = self._within("loc(" + text, self.location)
        return known

    def _within(self, text: str, read: Callable[[], Item]) -> Item:
        """What `read` finds in `text` alone, of which it must leave nothing over."""
        outer, index = self.texts, self.index
        self.texts, self.index = cut(text), 0
        found = read()
        if self.texts[self.index] != END:
            raise NotALineError
        self.texts, self.index = outer, index
        return found

    def _operation(self, place: int) -> None:
        texts = self.texts
        token = texts[self.index]
        names: list[tuple[str, int]] = []
        if token[0] == "%":
            names = self._result_names()
            token = texts[self.index]
        if token[:1] == '"':
            operation = _operation_named(self.string(), place)
            self.scalars = operation.name.startswith(SCALAR_DIALECTS)
            self._advance(operation, names, self.generic(operation))
            return
        if not (token[:1].isalpha() or token[:1] == "_"):
            raise self.expected("an operation")
        self.index += 1
        operation = _operation_named(_BUILTIN.get(token, token), place)
        self.scalars = operation.name.startswith(SCALAR_DIALECTS)
        steps = self._forms.get(operation.name, self._default_form)(self, operation)
        if steps is None:
            self._finish(operation, names)
        else:
            self._advance(operation, names, steps)

    def _result_names(self) -> list[tuple[str, int]]:
        """`%a, %b:2 =`."""
        texts = self.texts
        name = texts[self.index]
        if texts[self.index + 1] == "=":
            self.index += 2
            return [(name, 1)]
        names = []
        while True:
            name = texts[self.index]
            if name[:1] != "%" or name == "%" or "#" in name:
                raise self.expected("the name of a result, like %0")
            self.index += 1
            count = self.integer("the number of results") if self.accept(":") else 1
            if not 0 < count < _MAX_RESULTS:
                self.fail(f"{name} cannot stand for {count} results")
            names.append((name, count))
            if not self.accept(","):
                break
        self.expect("=")
        return names

    def generic(self, operation: Operation) -> Steps:
        """`"name"(%operands) <{properties}> ({regions}) {attributes} : (types) -> types`."""
        self.expect("(")
        operation.operands = list(self.listed(self.use, ")"))
        if self.texts[self.index] == "<" and self.texts[self.index + 1] == "{":
            self.index += 2
            operation.attributes = self.attributes()
            self.expect(">")
        if self.accept("("):
            yield self.open_region(operation)
            while self.accept(","):
                yield self.open_region(operation)
            self.expect(")")
        if self.accept("{"):
            operation.attributes.update(self.attributes())
        self.expect(":")
        place = self.index
        inputs, operation.result_types = self.signature()
        self.check_operands(operation, inputs, place)

    def check_operands(self, operation: Operation, types: tuple[Shape, ...], place: int) -> None:
        """Fails unless the operands have the types that the text states at `place`."""
        operands = operation.operands
        if len(types) != len(operands):
            self.fail(f"{operation.name} has {len(operands)} operands, but {len(types)} types are given", place)
        for number, (value, type) in enumerate(zip(operands, types, strict=True)):
            if value.type is not type and value.type != type:
                stated = f"operand {number} of {operation.name} is stated as {type_text(type)}"
                self.fail(f"{stated}, but the value is {type_text(value.type)}", place)

    def _advance(self, operation: Operation, names: list[tuple[str, int]], steps: Steps) -> None:
        """Reads on in an operation, to its next region or to its end."""
        region = next(steps, None)
        if region is None:
            self._finish(operation, names)
            return
        self._stack.append(_Open(region, operation, names, steps, self._scope))
        if operation.name in _ISOLATED:
            self._scope = {}
        for value in region.arguments:
            self._define(value.name, value)

    def _close_region(self) -> None:
        """Forgets the names of the innermost region, and goes on with the operation that it belongs to."""
        opened = self._stack.pop()
        self._scope = opened.outer_scope
        if opened.operation.name not in _ISOLATED:
            for name, outer in reversed(opened.hidden):
                if outer is None:
                    del self._scope[name]
                else:
                    self._scope[name] = outer
        self._advance(opened.operation, opened.names, opened.steps)

    def _finish(self, operation: Operation, names: list[tuple[str, int]]) -> None:
        if self.texts[self.index] == "loc":
            operation.location = self.location()
        if operation.result_types or names:
            self._define_results(operation, names)
        self._stack[-1].region.operations.append(operation)

    def _define_results(self, operation: Operation, names: list[tuple[str, int]]) -> None:
        types = operation.result_types
        region = self._stack[-1].region
        if len(types) == 1 == len(names) == names[0][1]:  # as most have
            result = Value("", types[0], region, operation, 0)
            operation.results = [result]
            self._define(names[0][0], result)
            return
        named = sum(count for _, count in names)
        if names and len(types) != named:
            self.fail(f"{operation.name} has {len(types)} results, but {named} are named", operation.place)
        results = [Value("", type, region, operation, number) for number, type in enumerate(types)]
        operation.results = results
        position = 0
        for name, count in names:
            self._define(name, results[position])
            if count > 1:
                for number in range(count):
                    self._define(f"{name}#{number}", results[position + number])
            position += count


def _nothing() -> Steps:
    """The steps of the outermost region, behind which nothing comes."""
    yield from ()


def _operation_named(name: str, place: int) -> Operation:
    """An operation at its name, of which nothing else is read by then."""
    if name in _REFUSED:
        raise UnsupportedError(f"{name}: {_REFUSED[name]}")
    return Operation(name, place)


_REFUSED = {
    "sdy.manual_computation": (
        "this program is to be cut up for several devices, which XLA does when it compiles; in JAX, "
        "jit(f).lower(...).compile().as_text() is then the program of each device, and run_parallel runs that"
    )
}
"""What `jax.shard_map` is on several devices."""

_BUILTIN = {"module": "builtin.module", "return": "func.return", "call": "func.call"}
_MAX_RESULTS = 1_000_000
_PATIENCE = 1000
"""So many lines more may be new than known: where few are known, it is faster to read all tokens at once."""
