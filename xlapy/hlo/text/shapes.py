"""Shapes in HLO text: `f32[2,<=3]{1,0:T(8,128)}`, `(f32[], token[])`."""

from __future__ import annotations

import re

from xlapy.hlo.element_types import ALL, element_type_named, is_element_type_name
from xlapy.hlo.shape import MAX_NESTING, TOKEN, UNBOUNDED, Layout, Shape, Signature
from xlapy.hlo.text.lexer import NAME, Lexer, token
from xlapy.support.errors import ParseError, ShapeError
from xlapy.support.source import suggestion

_ARRAY = token(r"[a-z][a-z0-9]*+\[[^\]\n{}()]*+\](?:\{[0-9, ]*+(?::[^{}\n]*+)?\})?")
_PARTS = re.compile(r"([a-z0-9]+)\[([^\]]*)\](?:\{([0-9, ]*)(?::(.*))?\})?")
_DIMENSION = re.compile(r"(<=)?([0-9]{1,40})|(\?)")
_PARAMETER = re.compile(rf"%?{NAME}\s*:\s*")


class ShapeReader:
    """Reads shapes; equal texts give the same object, since a program spells the same few shapes again and again."""

    def __init__(self, lexer: Lexer) -> None:
        self._lexer = lexer
        self._known: dict[str, Shape] = {"token[]": TOKEN}

    def at_array(self) -> Shape | None:
        """Takes an array or token shape if one stands here."""
        lexer = self._lexer
        match = _ARRAY.match(lexer.text, lexer.position)
        if match is None:
            return None
        text = match[1]
        shape = self._known.get(text)
        if shape is None:
            shape = self._known[text] = self._array(text)
        lexer.position = match.end()
        return shape

    def optional(self) -> Shape | None:
        """Takes any shape if one stands here."""
        return self._tuple() if self._lexer.at("(") else self.at_array()

    def shape(self, what: str = "a shape") -> Shape:
        found = self.optional()
        if found is None:
            self._lexer.expected(what)
        return found

    def signature(self) -> Signature:
        """`(p: f32[2], f32[3]) -> f32[]`, where the parameters may be named."""
        lexer = self._lexer
        lexer.expect("(", " before the parameters")
        parameters: list[Shape] = []
        while not lexer.accept(")"):
            if parameters:
                lexer.expect(",", " or ')'")
            lexer.take(_PARAMETER)
            parameters.append(self.shape())
        lexer.expect("->", " before the shape of the result")
        return Signature(tuple(parameters), self.shape())

    def _tuple(self) -> Shape:
        lexer = self._lexer
        open_tuples: list[list[Shape]] = []
        while True:
            if lexer.accept("("):
                open_tuples.append([])
                if len(open_tuples) > MAX_NESTING:
                    raise lexer.error(f"tuples are nested more than {MAX_NESTING} deep")
                if not lexer.at(")"):
                    continue
            else:
                shape = self.at_array()
                if shape is None:
                    lexer.expected("a shape")
                open_tuples[-1].append(shape)
            while not lexer.accept(","):
                lexer.expect(")", " or ',' in the tuple shape")
                finished = Shape.tuple(open_tuples.pop())
                if not open_tuples:
                    return finished
                open_tuples[-1].append(finished)

    def _array(self, text: str) -> Shape:
        lexer = self._lexer
        match = _PARTS.fullmatch(text)
        assert match is not None
        name, sizes, order, tiling = match.groups()
        if not is_element_type_name(name):
            raise lexer.error(f"there is no element type {name!r}{_meant(name)}")
        dims: list[int] = []
        dynamic: list[bool] = []
        for size in sizes.split(",") if sizes.strip() else ():
            dimension = _DIMENSION.fullmatch(size.strip())
            if dimension is None:
                raise lexer.error(f"{size.strip()!r} is not the size of a dimension: expected 3, <=3 or ?")
            dims.append(UNBOUNDED if dimension[3] else int(dimension[2]))
            dynamic.append(bool(dimension[1] or dimension[3]))
        try:
            layout = self._layout(order, tiling, len(dims))
            return Shape.array(element_type_named(name), dims, dynamic, layout)
        except (ShapeError, ValueError) as error:
            message = error.message if isinstance(error, ShapeError) else f"{text!r} is not a shape"
            raise lexer.error(message) from None

    def _layout(self, order: str | None, tiling: str | None, rank: int) -> Layout | None:
        if order is None or (not order.strip() and (not rank or not tiling)):
            return None if not tiling else Layout((), tiling)
        dims = tuple(int(dim) for dim in order.split(",")) if order.strip() else ()
        if not dims and rank:
            return Layout(Layout.row_major(rank).minor_to_major, tiling or "")
        return Layout(dims, tiling or "")


def _meant(name: str) -> str:
    """The element type that numpy calls so, or those of names that are near."""
    found = next((element_type.name for element_type in ALL if element_type.dtype.name == name), "")
    return f": that is {found}" if found else suggestion(name, [element_type.name for element_type in ALL])


def parse_shape(lexer: Lexer) -> Shape:
    """One shape at the cursor."""
    return ShapeReader(lexer).shape()


__all__ = ["ParseError", "ShapeReader", "parse_shape"]
