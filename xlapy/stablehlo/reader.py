"""Reads what operations are made of in StableHLO text: tokens, types, attributes and locations.

Attributes and types recurse, to a fixed depth.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from xlapy.hlo.element_types import PRED, S64, ElementType
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import TOKEN, UNBOUNDED, Shape
from xlapy.hlo.text.backend_config import mlir_string
from xlapy.stablehlo.attributes import stated
from xlapy.stablehlo.constants import dense_literal, resource_literal
from xlapy.stablehlo.lexer import END, LONG_DIGITS, Tokens
from xlapy.stablehlo.quantization import QuantizedConstant, QuantizedShape, quantized_type, storage_shape
from xlapy.stablehlo.spellings import ELEMENT_TYPES
from xlapy.stablehlo.tree import Attributes, Opaque, Symbol
from xlapy.stablehlo.types import FunctionType, OtherType, Type, tensor_type
from xlapy.support.errors import ParseError, XlaError
from xlapy.support.source import Source
from xlapy.support.wording import excerpt

Item = TypeVar("Item")

MAX_NESTING = 100
"""How deep attributes and types may nest: far beyond any program, far below Python's recursion limit."""

_OPENING = {"<": ">", "(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())
_STRING = re.compile(r'"(?:[^"\\\n]++|\\.)*+"')
_MAX_NUMBER = 400  # digits; Python refuses to convert beyond some thousands
_TOKEN_TYPES = frozenset({"!stablehlo.token", "!mhlo.token"})
_TYPE_WORDS = frozenset({"none", "tuple", "complex"})
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}

_SHAPE_TYPES = {
    "index": Shape.scalar(S64),
    "!shape.size": Shape.scalar(S64),
    "!shape.shape": Shape.array(S64, (UNBOUNDED,)),
    "!shape.witness": Shape.scalar(PRED),
}
"""Types that values of any operation may have in dynamic programs."""

_FIELD_DIALECTS = ("#stablehlo", "#mhlo", "#chlo")


class Reader:
    """A place among tokens, and what the text has said so far: aliases, types, constants."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.texts = tokens.texts
        self.index = 0
        self.attribute_aliases: dict[str, Any] = {}
        self.location_aliases: dict[str, tuple[str, ...]] = {}
        self.type_aliases: dict[str, Type] = {}
        self.has_quantized_types = False
        self.scalars = False
        """Values may have the types of elements: they are scalars to us."""
        self._tensors: dict[str, Shape] = {}
        self._literals: dict[tuple[str, Shape], Literal | QuantizedConstant] = {}
        self._resources: dict[str, str] | None = None
        self._nesting = 0

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
            known = self._tensors[token] = self.placed(tensor_type, token, self.type_aliases)
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

    def signature(self) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
        """`(inputs) -> (results)`, `(inputs) -> result`."""
        self.expect("(")
        inputs = self.listed(self.value_type, ")")
        self.expect("->")
        return inputs, self.result_types()

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
            return FunctionType(*self.signature())
        self.index += 1
        self.expect("<")
        if token == "tuple":
            return self.placed(Shape.tuple, self.listed(self.value_type, ">"))
        part = self.texts[self.index]
        element_type = ELEMENT_TYPES.get(f"complex<{part}>")
        if element_type is None:
            raise self.expected("f32 or f64")
        self.index += 1
        self.expect(">")
        return element_type

    def _named_type(self, token: str) -> Type:
        alias = self.type_aliases.get(token)
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
            place = self.index
            token = texts[place]
            if token.startswith('"'):
                name = self.string()
            elif token[:1].isalpha() or token.startswith("_"):
                name = token
                self.index += 1
            else:
                raise self.expected(f"the name of an attribute or `{closing}`")
            if name in found:
                self.fail(f"the attribute {name!r} is given twice", place)
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
        """`dense<...> : type`, decoded once for each short spelling and type."""
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
        is_long = len(token) > LONG_DIGITS  # to hash megabytes takes longer than to decode them once more
        literal = None if is_long else self._literals.get((token, shape))
        if literal is None:
            read = self._resource if token.startswith("dense_resource<") else dense_literal
            stored = self.placed(read, token, storage_shape(shape))
            literal = QuantizedConstant(stored, shape) if isinstance(shape, QuantizedShape) else stored
            if not is_long:
                self._literals[token, shape] = literal
        self.index = after
        return literal

    def _resource(self, token: str, shape: Shape) -> Literal:
        name = token[len("dense_resource<") : -1].strip().strip('"')
        if self._resources is None:
            self._resources = self._read_resources()
        blob = self._resources.get(name)
        if blob is None:
            raise ParseError(f"the text holds no resource {excerpt(name)!r}: it was left out when the text was printed")
        return resource_literal(blob, shape)

    def _read_resources(self) -> dict[str, str]:
        """The blobs `name: "0x..."` of the section `{-# ... #-}`, which stands at the end of the text."""
        texts = self.tokens.texts
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
            return Opaque(self.location())
        self.index += 1
        if self.texts[self.index] == "<":
            return Opaque((token, *self.skip_balanced()))
        return token

    def _named_attribute(self, token: str) -> Any:
        """`#alias`, `#stablehlo<precision HIGH>`, `#stablehlo.gather<offset_dims = [1], ...>`, or what we skip.

        All fields may be absent: `#stablehlo.dot<>`."""
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
        if texts[index + 2] == "=" or texts[index + 1] == ">":
            self.index += 1
            return self.nested(lambda: self.attributes(">"))
        if texts[index + 2] == ">":
            self.index += 3
            return texts[index + 1]
        if texts[index + 3] == ">":
            self.index += 4
            return texts[index + 2]
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

    def location(self) -> tuple[str, ...]:
        """The tokens between the parentheses of `loc(...)`."""
        self.expect("loc")
        texts, index = self.texts, self.index
        if texts[index] != "(":
            raise self.expected("`(`")
        if texts[index + 2] == ")" and texts[index + 1][:1] in ("#", '"'):  # an alias or a name, as most are
            self.index = index + 3
            return (texts[index + 1],)
        return self.skip_balanced()[1:-1]


def read_attribute(text: str) -> Any:
    """The attribute that a text is, which stands nowhere else. Raises ParseError if there is more to it."""
    reader = Reader(Tokens(Source(text)))
    value = reader.attribute()
    reader.expect(END)
    return value
