"""Reads StableHLO text, generic or pretty, into the neutral tree.

Regions nest without recursion: an operation with regions is read by a generator that yields each region it opens, and
`_run` keeps the open ones on a stack. Only attributes and types recurse, to a fixed depth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Any, NoReturn, TypeVar

from xlapy.hlo.element_types import PRED, S64, ElementType
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import TOKEN, UNBOUNDED, Shape
from xlapy.hlo.text.backend_config import mlir_string
from xlapy.stablehlo.attributes import stated
from xlapy.stablehlo.constants import dense_literal, resource_literal
from xlapy.stablehlo.lexer import END, Tokens
from xlapy.stablehlo.quantization import QuantizedConstant, QuantizedShape, quantized_type, storage_shape
from xlapy.stablehlo.spellings import ELEMENT_TYPES
from xlapy.stablehlo.tree import Attributes, Opaque, Operation, Region, Symbol, Value
from xlapy.stablehlo.types import FunctionType, OtherType, Type, tensor_type, type_text
from xlapy.support.errors import ParseError, XlaError
from xlapy.support.source import Source

Item = TypeVar("Item")

Steps = Generator[Region, None, None]
"""The reading of an operation with regions: yields each region where it opens, goes on where it has closed."""

PrettyForm = Callable[["Parser", Operation], "Steps | None"]

MAX_NESTING = 100
MAX_OPEN_REGIONS = 200  # each control-flow operation inside another one takes time to compile
"""How deep attributes and types may nest: far beyond any program, far below Python's recursion limit."""

_OPENING = {"<": ">", "(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())
_STRING = re.compile(r'"(?:[^"\\\n]++|\\.)*+"')
_MAX_NUMBER = 400  # digits; Python refuses to convert beyond some thousands
_TOKEN_TYPES = frozenset({"!stablehlo.token", "!mhlo.token"})
_ISOLATED = frozenset({"builtin.module", "func.func"})
SCALAR_DIALECTS = ("arith.", "tensor.", "shape.")
"""Values of these may have the types of elements, `index` or `i32`: scalars to us."""

_SHAPE_TYPES = {
    "index": Shape.scalar(S64),
    "!shape.size": Shape.scalar(S64),
    "!shape.shape": Shape.array(S64, (UNBOUNDED,)),
    "!shape.witness": Shape.scalar(PRED),
}
"""Types that values of any operation may have in dynamic programs."""

_FIELD_DIALECTS = ("#stablehlo", "#mhlo", "#chlo")


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


class Parser:
    """One text on its way to a tree. `parse_text` is the way in; the pretty forms use the rest."""

    def __init__(self, text: str, forms: dict[str, PrettyForm], default_form: PrettyForm) -> None:
        self.tokens = Tokens(Source(text))
        self.texts = self.tokens.texts
        self.index = 0
        self.attribute_aliases: dict[str, Any] = {}
        self.location_aliases: dict[str, tuple[str, ...]] = {}
        self.has_quantized_types = False
        self._forms = forms
        self._default_form = default_form
        self._type_aliases: dict[str, Type] = {}
        self._tensors: dict[str, Shape] = {}
        self._literals: dict[tuple[str, Shape], Literal | QuantizedConstant] = {}
        self._resources: dict[str, str] | None = None
        self.scalars = False
        self._nesting = 0
        self._scope: dict[str, Value] = {}
        self._stack: list[_Open] = []

    # -- tokens ----------------------------------------------------------------------------------------------------

    def fail(self, message: str, index: int | None = None) -> NoReturn:
        raise self.tokens.error(message, self.index if index is None else index)

    def expected(self, what: str) -> ParseError:
        """The error that something else stands at the current token."""
        found = self.texts[self.index]
        shown = "the end of the text" if found == END else repr(found if len(found) <= 40 else found[:37] + "...")
        return self.tokens.error(f"expected {what}, found {shown}", self.index)

    def expect(self, token: str) -> None:
        if self.texts[self.index] != token:
            raise self.expected(f"`{token}`")
        self.index += 1

    def accept(self, token: str) -> bool:
        if self.texts[self.index] == token:
            self.index += 1
            return True
        return False

    def string(self, what: str = "a string") -> str:
        token = self.texts[self.index]
        if not token.startswith('"'):
            raise self.expected(what)
        if not _STRING.fullmatch(token):
            self.fail("this string does not end on its line")
        self.index += 1
        return mlir_string(token)

    def symbol(self) -> str:
        """`@name` or `@"name"`, without the sign; of nested symbols the whole path."""
        token = self.texts[self.index]
        if not token.startswith("@") or token == "@":
            raise self.expected("a symbol, like @main")
        if token[1] == '"' and not _STRING.fullmatch(token[1:]):
            self.fail("this name does not end on its line")
        self.index += 1
        path = token[1:].strip('"')
        while self.texts[self.index : self.index + 2] == [":", ":"]:
            self.index += 2
            path += "::" + self.symbol()
        return path

    def integer(self, what: str = "an integer") -> int:
        token = self.texts[self.index]
        if not token.lstrip("-+").isdecimal() or len(token) > _MAX_NUMBER:
            raise self.expected(what)
        self.index += 1
        return int(token)

    def integers(self) -> tuple[int, ...]:
        """`[1, 2, 3]`."""
        self.expect("[")
        return self.listed(self.integer, "]")

    def listed(self, item: Callable[[], Item], closing: str) -> tuple[Item, ...]:
        """Items between commas, up to and with `closing`."""
        if self.accept(closing):
            return ()
        items = [item()]
        while self.accept(","):
            items.append(item())
        self.expect(closing)
        return tuple(items)

    def skip_balanced(self) -> tuple[str, ...]:
        """Goes past a bracketed group, however deep, that begins here; returns its tokens."""
        start = self.index
        expected = []
        while True:
            token = self.texts[self.index]
            if token in _OPENING:
                expected.append(_OPENING[token])
            elif token in _CLOSING:
                if not expected or token != expected.pop():
                    self.fail(f"`{token}` closes nothing that is open here")
            elif token == END:
                self.fail("a bracket is not closed", start)
            self.index += 1
            if not expected:
                return tuple(self.texts[start : self.index])

    # -- types -----------------------------------------------------------------------------------------------------

    def type(self) -> Type:
        token = self.texts[self.index]
        known = self._tensors.get(token)
        if known is not None:
            self.index += 1
            return known
        if token.startswith("tensor<"):
            known = self._tensors[token] = self.placed(tensor_type, token, self._type_aliases)
            self.has_quantized_types |= isinstance(known, QuantizedShape)
            self.index += 1
            return known
        if token in _TOKEN_TYPES or token in ELEMENT_TYPES or token == "none":
            self.index += 1
            return TOKEN if token in _TOKEN_TYPES else ELEMENT_TYPES.get(token) or OtherType(token)
        if token.startswith("!"):
            return self._named_type(token)
        if token in ("(", "tuple", "complex"):
            return self.nested(self._compound_type)
        if token == "tensor" and self.texts[self.index + 1] == "<":
            self.fail("this tensor type is not closed, or nests too deep")
        raise self.expected("a type, like tensor<4xf32>")

    def is_type(self, token: str) -> bool:
        """`token` begins a type (one that a word may begin)."""
        return token in self._tensors or token.startswith("tensor<") or token in ELEMENT_TYPES or token in _TYPE_WORDS

    def value_type(self) -> Shape:
        """The type of a value: a tensor, a token or a tuple."""
        token = self.texts[self.index]
        known = self._tensors.get(token) or _SHAPE_TYPES.get(token)
        if known is not None:
            self.index += 1
            return known
        start = self.index
        found = self.type()
        if isinstance(found, ElementType) and self.scalars:
            return Shape.scalar(found)
        if not isinstance(found, Shape):
            self.index = start
            raise self.expected("the type of a value, like tensor<4xf32>")
        return found

    def function_type(self) -> FunctionType:
        self.expect("(")
        inputs = self.listed(self.value_type, ")")
        self.expect("->")
        return FunctionType(inputs, self.result_types())

    def result_types(self) -> tuple[Shape, ...]:
        """One type, or any number of them in parentheses."""
        if self.accept("("):
            return self.listed(self.value_type, ")")
        return (self.value_type(),)

    def nested(self, read: Callable[[], Item]) -> Item:
        """What `read` returns, unless it would nest too deep."""
        if self._nesting >= MAX_NESTING:
            self.fail(f"types and attributes nest deeper than {MAX_NESTING} levels here")
        self._nesting += 1
        try:
            return read()
        finally:
            self._nesting -= 1

    def _compound_type(self) -> Type:
        token = self.texts[self.index]
        if token == "(":
            return self.function_type()
        self.index += 1
        self.expect("<")
        if token == "tuple":
            return Shape.tuple(self.listed(self.value_type, ">"))
        part = self.texts[self.index]
        element_type = ELEMENT_TYPES.get(f"complex<{part}>")
        if element_type is None:
            raise self.expected("f32 or f64")
        self.index += 1
        self.expect(">")
        return element_type

    def _named_type(self, token: str) -> Type:
        alias = self._type_aliases.get(token)
        if alias is not None:
            self.index += 1
            return alias
        start = self.index
        self.index += 1
        tokens = self.skip_balanced() if self.texts[self.index] == "<" else ()
        if not token.startswith("!quant."):
            return OtherType(" ".join((token, *tokens)))
        after, self.index = self.index, start
        found = self.placed(quantized_type, token + "".join(tokens))
        self.index = after
        return found

    def placed(self, read: Callable[..., Item], *arguments: Any) -> Item:
        """What `read` returns; its errors gain the place of the current token."""
        try:
            return read(*arguments)
        except XlaError as error:
            raise error.add_context(where=self.tokens.where(self.index)) from None

    # -- attributes ------------------------------------------------------------------------------------------------

    def attributes(self, closing: str = "}") -> Attributes:
        """`name = value, unit_name, ...` up to and with `closing`, the opening brace being read."""
        found: Attributes = {}
        texts = self.texts
        while texts[self.index] != closing:
            token = texts[self.index]
            if token.startswith('"'):
                name = self.string()
            elif token[:1].isalpha() or token.startswith("_"):
                name = token
                self.index += 1
            else:
                raise self.expected(f"the name of an attribute or `{closing}`")
            found[name] = self.nested(self.typed_attribute) if self.accept("=") else True
            if not self.accept(","):
                break
        self.expect(closing)
        return found

    def typed_attribute(self) -> Any:
        """A value with the type that may follow it: `0 : i64`."""
        value = self.attribute()
        if self.texts[self.index] == ":":
            self.index += 1
            name = self.texts[self.index]
            self.type()
            return stated(value, name)
        return value

    def attribute(self) -> Any:
        """A value without the type of a number. Bare words, which are enumerators, are strings."""
        token = self.texts[self.index]
        first = token[:1]
        if first == '"':
            return self.string()
        if first.isdigit() or (first in "-+" and first and token != "->"):
            return self.number()
        if first == "[":
            self.index += 1
            return self.nested(lambda: self.listed(self.typed_attribute, "]"))
        if first == "{":
            self.index += 1
            return self.nested(self.attributes)
        if first == "@":
            return Symbol(self.symbol())
        if first == "#":
            return self._named_attribute(token)
        if token in ("true", "false", "unit"):
            self.index += 1
            return token != "false"
        if token.startswith(("dense<", "dense_resource<")):
            return self.dense()
        if token.startswith("array<"):
            return self._array(token)
        if self.is_type(token) or first in ("(", "!"):
            return self.type()
        if first == "<":
            self.index += 1
            return self.nested(lambda: self.attributes(">"))
        if first.isalpha() or first == "_":
            return self._word(token)
        raise self.expected("the value of an attribute")

    def number(self) -> int | float:
        token = self.texts[self.index]
        if len(token) > _MAX_NUMBER:
            self.fail("this number has too many digits")
        if token.lstrip("-+").startswith("0x"):
            value: int | float = int(token, 16)
        elif token.lstrip("-+").isdecimal():
            value = int(token)
        else:
            try:
                value = float(token)
            except ValueError:
                raise self.expected("a number") from None
        self.index += 1
        return value

    def dense(self) -> Literal | QuantizedConstant:
        """`dense<...> : type`, decoded once for each spelling and type."""
        index = self.index
        token = self.texts[index]
        if not token.startswith(("dense<", "dense_resource<")):
            if token in ("dense", "dense_resource"):
                self.fail("this constant is not closed, or holds what no tensor can")
            raise self.expected("a constant, like dense<0.0>")
        self.index += 1
        self.expect(":")
        shape = self.value_type()
        after, self.index = self.index, index
        literal = self._literals.get((token, shape))
        if literal is None:
            read = self._resource if token.startswith("dense_resource<") else dense_literal
            stored = self.placed(read, token, storage_shape(shape))
            literal = QuantizedConstant(stored, shape) if isinstance(shape, QuantizedShape) else stored
            self._literals[token, shape] = literal
        self.index = after
        return literal

    def _resource(self, token: str, shape: Shape) -> Literal:
        name = token[len("dense_resource<") : -1].strip().strip('"')
        if self._resources is None:
            self._resources = self._read_resources()
        blob = self._resources.get(name)
        if blob is None:
            raise ParseError(f"the text holds no resource {name[:40]!r}: it was left out when the text was printed")
        return resource_literal(blob, shape)

    def _read_resources(self) -> dict[str, str]:
        """The blobs `name: "0x..."` of the section `{-# ... #-}`, which stands at the end of the text."""
        texts = self.texts
        start = texts.index("{-#") if "{-#" in texts else len(texts)
        return {
            name.strip('"'): value.strip('"')
            for name, colon, value in zip(texts[start:], texts[start + 1 :], texts[start + 2 :], strict=False)
            if colon == ":" and value.startswith('"0x')
        }

    def _array(self, token: str) -> tuple[Any, ...]:
        """`array<i64: 1, 2>`."""
        kind, _, items = token[len("array<") : -1].partition(":")
        words = [word.strip() for word in items.split(",")] if items.strip() else []
        convert = {"i1": _BOOLEANS.__getitem__}.get(kind.strip(), float if "f" in kind else int)
        try:
            values = tuple(map(convert, words))
        except (KeyError, ValueError):
            raise self.expected("an array, like array<i64: 1, 2>") from None
        self.index += 1
        return values

    def _word(self, token: str) -> Any:
        """An enumerator; or the head of something that we skip, like `affine_map<...>`."""
        if token in ("dense", "dense_resource", "tensor") and self.texts[self.index + 1] == "<":
            self.fail(f"this `{token}<` is not closed")
        if token == "loc":
            return Opaque(self._location())
        self.index += 1
        if self.texts[self.index] == "<":
            return Opaque((token, *self.skip_balanced()))
        return token

    def _named_attribute(self, token: str) -> Any:
        """`#alias`, `#stablehlo<precision HIGH>`, `#stablehlo.gather<offset_dims = [1], ...>`, or what we skip."""
        self.index += 1
        texts, index = self.texts, self.index
        if texts[index] != "<":
            return self.attribute_aliases.get(token, Opaque((token,)))
        if not token.startswith(_FIELD_DIALECTS):
            return Opaque((token, *self.skip_balanced()))
        if token.endswith(".conv"):
            self.index += 1
            numbers = self.convolution_numbers()
            self.expect(">")
            return numbers
        if texts[index + 2] == "=":
            self.index += 1
            return self.nested(lambda: self.attributes(">"))
        if texts[index + 3] == ">":
            self.index += 4
            return texts[index + 2]
        if texts[index + 2] == ">":
            self.index += 3
            return texts[index + 1]
        return Opaque((token, *self.skip_balanced()))

    def convolution_numbers(self) -> tuple[tuple[str, ...], ...]:
        """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, as the three lists of letters and digits."""
        lhs = self._dimension_labels()
        self.expect("x")
        rhs = self._dimension_labels()
        self.expect("->")
        return lhs, rhs, self._dimension_labels()

    def _dimension_labels(self) -> tuple[str, ...]:
        self.expect("[")
        return self.listed(self._dimension_label, "]")

    def _dimension_label(self) -> str:
        token = self.texts[self.index]
        if not token.isdecimal() and token not in ("b", "f", "i", "o", "?"):
            raise self.expected("b, f, i, o or a spatial dimension")
        self.index += 1
        return token

    def _location(self) -> tuple[str, ...]:
        """The tokens between the parentheses of `loc(...)`."""
        self.expect("loc")
        texts, index = self.texts, self.index
        if texts[index] != "(":
            raise self.expected("`(`")
        if texts[index + 2] == ")" and texts[index + 1][:1] in ("#", '"'):  # an alias or a name, as most are
            self.index = index + 3
            return (texts[index + 1],)
        return self.skip_balanced()[1:-1]

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
        if value.region is not self._stack[-1].region and not value.is_constant:
            for opened in reversed(self._stack):
                if opened.region is value.region or value in opened.operation.captures:
                    break
                opened.operation.captures[value] = None
        return value

    def _define(self, name: str, value: Value) -> None:
        opened = self._stack[-1]
        opened.hidden.append((name, self._scope.get(name)))
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
        name = self.texts[self.index]
        if not name.startswith("%") or name == "%":
            raise self.expected("an argument, like %arg0: tensor<4xf32>")
        self.index += 1
        self.expect(":")
        type = self.value_type()
        if self.accept("{"):
            self.attributes()
        if self.texts[self.index] == "loc":
            self._location()
        return name, type

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
            if token == "}" and len(self._stack) > 1:
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
                self._operation()

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
            self._type_aliases[token] = self.type()
        elif self.texts[self.index] == "loc":
            self.location_aliases[token] = self._location()
        else:
            self.attribute_aliases[token] = self.typed_attribute()

    def _operation(self) -> None:
        texts = self.texts
        place = self.index
        token = texts[place]
        names: list[tuple[str, int]] = []
        if token[0] == "%":
            names = self._result_names()
            token = texts[self.index]
        if token[:1] == '"':
            operation = Operation(self.string(), place)
            self.scalars = operation.name.startswith(SCALAR_DIALECTS)
            self._advance(operation, names, self.generic(operation))
            return
        if not (token[:1].isalpha() or token[:1] == "_"):
            raise self.expected("an operation")
        self.index += 1
        operation = Operation(_BUILTIN.get(token, token), place)
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
        signature = self.function_type()
        self.check_operands(operation, signature.inputs, place)
        operation.result_types = signature.results

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
            operation.location = self._location()
        if operation.result_types or names:
            self._define_results(operation, names)
        self._stack[-1].region.operations.append(operation)

    def _define_results(self, operation: Operation, names: list[tuple[str, int]]) -> None:
        types = operation.result_types
        named = sum(count for _, count in names)
        if names and len(types) != named:
            self.fail(f"{operation.name} has {len(types)} results, but {named} are named", operation.place)
        region = self._stack[-1].region
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


_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
_BUILTIN = {"module": "builtin.module", "return": "func.return", "call": "func.call"}
_MAX_RESULTS = 1_000_000
_TYPE_WORDS = frozenset({"none", "tuple", "complex"})
