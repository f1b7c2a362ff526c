"""Shapes: the type of a value. An array of one element type, a tuple of shapes, or a token.

A dimension is a static size, a bounded one (`<=n`: at most n at run time), or an unbounded one (`?`). A layout lists
the dimensions from minor (fastest varying in memory) to major; none means row-major.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from xlapy.hlo.element_types import ElementType, element_type_of
from xlapy.support.errors import ArgumentError, ShapeError
from xlapy.support.other_names import SHAPE as OTHER_NAMES
from xlapy.support.other_names import hint_for

UNBOUNDED = -1  # the size of a `?` dimension

Dims = tuple[int, ...]
Flags = tuple[bool, ...]
Shapes: TypeAlias = "tuple[Shape, ...]"
Extent: TypeAlias = "tuple[int, int]"


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of the dimensions in memory, minor to major. Tiling of accelerators is kept as text, and ignored."""

    minor_to_major: tuple[int, ...]
    tiling: str = ""

    @staticmethod
    def row_major(rank: int) -> Layout:
        """The same object for the same rank: nearly all layouts are such."""
        return _row_major(rank)

    @property
    def is_row_major(self) -> bool:
        rank = len(self.minor_to_major)
        return self.minor_to_major == tuple(range(rank - 1, -1, -1))

    def __str__(self) -> str:
        tiling = f":{self.tiling}" if self.tiling else ""
        return "{" + ",".join(map(str, self.minor_to_major)) + tiling + "}"


@functools.cache
def _row_major(rank: int) -> Layout:
    return Layout(tuple(range(rank - 1, -1, -1)))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Shape:
    """An array shape, a tuple shape, or the token shape. Build one with `array`, `scalar`, `tuple` or `token`."""

    element_type: ElementType | None
    dims: Dims = ()
    dynamic: Flags = ()  # one flag per dimension; empty when all dimensions are static
    layout: Layout | None = None
    elements: Shapes | None = None
    _leaves: Shapes = field(default=(), init=False, compare=False)  # of a tuple, once somebody asked
    _extent: Extent | None = field(default=None, init=False, compare=False)  # likewise
    _strides: Dims | None = field(default=None, init=False, compare=False)  # likewise
    _hash: int | None = field(default=None, init=False, compare=False)  # likewise: shapes are parts of many keys

    def __post_init__(self) -> None:
        if self.element_type.__class__ is not ElementType and self.element_type is not None:
            raise ArgumentError(
                f"shapes are made by Shape.array(dtype, sizes), as in Shape.array('f32', (2, 3)), and by Shape.scalar, "
                f"Shape.tuple and Shape.of(array), not by Shape({self.element_type!r}, ...)"
            )

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Shape) or other.__class__ is not self.__class__:
            return NotImplemented  # those of quantized types say more
        return (
            self.dims == other.dims
            and self.element_type is other.element_type
            and self.layout == other.layout
            and self.dynamic == other.dynamic
            and self.elements == other.elements
        )

    def __hash__(self) -> int:
        known = self._hash
        if known is None:
            known = hash((self.element_type, self.dims, self.dynamic, self.layout, self.elements))
            object.__setattr__(self, "_hash", known)
        return known

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what is known of it here: hashes are other ones in another process."""
        return Shape, (self.element_type, self.dims, self.dynamic, self.layout, self.elements)

    @classmethod
    def array(
        cls,
        element_type: Any,
        dims: Sequence[int] = (),
        dynamic: Sequence[bool] = (),
        layout: Sequence[int] | Layout | None = None,
    ) -> Shape:
        """An array of `dims`; `dynamic[d]` makes `dims[d]` a bound; `layout` is minor to major (None: row-major).

        `element_type` is an `ElementType` or a numpy dtype. A size of -1 is one that is not known, `?` in text. Raises
        ShapeError for another negative size or a bad layout."""
        try:
            dims = (*map(operator.index, dims),)
        except TypeError:
            hint = "; -1 is a size that is not known" if isinstance(dims, (list, tuple)) and _has_unknown(dims) else ""
            raise ShapeError(
                "shape.sizes", f"the sizes of an array are a list of integers, not {dims!r}{hint}"
            ) from None
        _check_dims(dims)
        flags = _flags(dims, dynamic) if not _is_empty(dynamic) or UNBOUNDED in dims else ()
        chosen = layout if isinstance(layout, Layout) or layout is None else _layout(layout)
        if chosen is not None and sorted(chosen.minor_to_major) != list(range(len(dims))):
            raise ShapeError("shape.layout", f"layout {chosen} is not a permutation of {len(dims)} dimensions")
        return cls(element_type_of(element_type), dims, flags, chosen)

    @classmethod
    def scalar(cls, element_type: Any) -> Shape:
        """An array without dimensions, of one element."""
        return cls.array(element_type)

    @classmethod
    def tuple(cls, elements: Sequence[Shape]) -> Shape:
        """A tuple of `elements`. Raises ShapeError if it nests too deep, or has too many parts: a tuple of one tuple
        twice, which is twice in another, and so on, is soon more than memory holds."""
        try:
            made = cls(None, elements=(*elements,))
        except TypeError:
            raise ArgumentError(f"a tuple is made of a list of shapes, not of {elements!r}") from None
        for element in made.parts:
            if not isinstance(element, Shape):
                raise ArgumentError(f"a tuple is made of shapes, which {element!r} is none of")
        if any(element.elements is not None for element in made.parts):
            made._check_extent()
        return made

    @classmethod
    def token(cls) -> Shape:
        """What orders effects: it has no value, and `None` stands for it in arguments and results."""
        return TOKEN

    @classmethod
    def of(cls, value: Any) -> Shape:
        """The shape of a numpy array, a Python scalar, or a (nested) tuple of these."""
        if isinstance(value, (tuple, list)):
            return cls.tuple([cls.of(element) for element in value])
        array = np.asarray(value)
        return cls.array(array.dtype, array.shape)

    @property
    def is_array(self) -> bool:
        """It has an element type; scalars are arrays, too."""
        return self.element_type is not None

    @property
    def is_tuple(self) -> bool:
        """It has parts, none perhaps."""
        return self.elements is not None

    @property
    def is_token(self) -> bool:
        """It is neither an array nor a tuple."""
        return self.element_type is None and self.elements is None

    @property
    def is_scalar(self) -> bool:
        """It is an array without dimensions."""
        return self.element_type is not None and not self.dims

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def type(self) -> ElementType:
        """The element type of an array; use where an array is certain."""
        assert self.element_type is not None, f"{self} is not an array"
        return self.element_type

    @property
    def parts(self) -> Shapes:
        """The element shapes of a tuple; use where a tuple is certain."""
        assert self.elements is not None, f"{self} is not a tuple"
        return self.elements

    def part_at(self, index: Sequence[int]) -> Shape | None:
        """The part of a tuple at an index into nested tuples; None if there is none."""
        part = self
        for number in index:
            if not part.is_tuple or not 0 <= number < len(part.parts):
                return None
            part = part.parts[number]
        return part

    @property
    def size(self) -> int:
        """The number of elements, bounds counted in full."""
        return math.prod(self.dims)

    @property
    def bytes(self) -> int:
        """Bytes of all elements (of all leaves, for a tuple); tokens have none."""
        if self.element_type is not None:
            return math.prod(self.dims) * self.element_type.bytes
        return sum(leaf.size * leaf.type.bytes for leaf in self.leaves() if leaf.is_array)

    @property
    def is_static(self) -> bool:
        """No dimension of any array is a bound, or `?`."""
        if self.elements is None:
            return not self.dynamic
        return not any(leaf.dynamic for leaf in self.leaves())

    @property
    def is_unbounded(self) -> bool:
        """Some dimension is `?`."""
        return any(UNBOUNDED in leaf.dims for leaf in self.leaves())

    @property
    def minor_to_major(self) -> Dims:
        """The dimensions, the fastest in memory first; row-major where no layout is set."""
        return self.layout.minor_to_major if self.layout else tuple(range(self.rank - 1, -1, -1))

    @property
    def is_flat(self) -> bool:
        """A tuple whose elements are its leaves."""
        return self.leaves() is self.elements

    def is_dynamic_dim(self, dim: int) -> bool:
        """The size of the dimension is known at run time; `dims` has its bound, or `?`."""
        return bool(self.dynamic) and self.dynamic[dim]

    def leaves(self) -> Shapes:
        """The array and token shapes, depth first."""
        if self.elements is None:
            return (self,)
        if not self._leaves:
            # Passes ask again and again, and the state of a loop can have hundreds.
            is_flat = all(element.elements is None for element in self.elements)
            leaves = self.elements if is_flat else sum((element.leaves() for element in self.elements), ())
            object.__setattr__(self, "_leaves", leaves)
        return self._leaves

    def _check_extent(self) -> None:
        parts, depth = self._measured()
        if depth > MAX_NESTING:
            raise ShapeError("shape.nesting", f"a tuple nests {depth} deep, beyond the deepest, {MAX_NESTING}")
        if parts > MAX_PARTS:
            raise ShapeError("shape.parts", f"a tuple has {parts} parts in all, beyond the largest, {MAX_PARTS}")

    def _measured(self) -> Extent:
        """The number of parts in all, tuples included, and how deep they nest."""
        if self.elements is None:
            return 1, 0
        if self._extent is None:
            measured = [element._measured() for element in self.elements]
            parts = 1 + sum(count for count, _ in measured)
            object.__setattr__(self, "_extent", (parts, 1 + max((depth for _, depth in measured), default=0)))
        assert self._extent is not None
        return self._extent

    def strides(self) -> Dims:
        """Distance, in elements, between neighbours along each dimension."""
        if self._strides is None:
            strides = [0] * self.rank
            distance = 1
            for dim in self.minor_to_major:
                strides[dim] = distance
                distance *= self.dims[dim]
            object.__setattr__(self, "_strides", (*strides,))
        assert self._strides is not None
        return self._strides

    def with_type(self, element_type: ElementType) -> Shape:
        """The same dimensions and layout with another element type."""
        if element_type is self.element_type:
            return self
        return Shape(element_type, self.dims, self.dynamic, self.layout, self.elements)

    def with_dims(self, dims: Sequence[int], dynamic: Sequence[bool] = ()) -> Shape:
        """The same element type with other dimensions, in the default layout."""
        return Shape.array(self.type, dims, dynamic)

    def with_dim(self, dim: int, size: int, *, dynamic: bool | None = None) -> Shape:
        """The same shape with another size of one dimension."""
        flags = list(self.dynamic or (False,) * self.rank)
        if dynamic is not None:
            flags[dim] = dynamic
        return Shape.array(self.type, self.dims[:dim] + (size,) + self.dims[dim + 1 :], flags)

    def without(self, *dims: int) -> Shape:
        """The array shape that is left when `dims` are dropped, in the default layout."""
        kept = [dim for dim in range(self.rank) if dim not in dims]
        return self.select_dims(kept)

    def select_dims(self, order: Sequence[int]) -> Shape:
        """The array shape whose dimension i is dimension `order[i]` of this one, in the default layout."""
        dynamic = [self.dynamic[dim] for dim in order] if self.dynamic else ()
        return Shape.array(self.type, [self.dims[dim] for dim in order], dynamic)

    def with_layout(self, layout: Layout | None) -> Shape:
        """The same array in another order in memory; None leaves the order open."""
        if layout is self.layout:
            return self
        return Shape(self.element_type, self.dims, self.dynamic, layout, self.elements)

    def without_layout(self) -> Shape:
        """The same shape with no layout anywhere: what shape rules compare."""
        if self.elements is not None:
            return Shape(None, elements=tuple(element.without_layout() for element in self.elements))
        return self.with_layout(None) if self.layout else self

    def with_default_layout(self) -> Shape:
        """Row-major wherever no layout is set; a scalar has none."""
        if self.elements is not None:
            return Shape(None, elements=tuple(element.with_default_layout() for element in self.elements))
        return self.with_layout(Layout.row_major(self.rank)) if self.dims and self.layout is None else self

    def row_major(self) -> Shape:
        """The same shape with all arrays row-major."""
        if self.elements is not None:
            return Shape(None, elements=tuple(element.row_major() for element in self.elements))
        return self.with_layout(Layout.row_major(self.rank) if self.dims else None)

    def matches(self, other: Shape) -> bool:
        """Equal but for layouts."""
        if self.__class__ is other.__class__ is Shape and self.elements is None and other.elements is None:
            return self.dims == other.dims and self.element_type is other.element_type and self.dynamic == other.dynamic
        return self.without_layout() == other.without_layout()

    def agrees(self, other: Shape) -> bool:
        """Equal as far as both are known: a size that one of them leaves open agrees with any. Layouts say nothing."""
        if self.elements is not None and other.elements is not None:
            pairs = zip(self.elements, other.elements, strict=False)
            return len(self.elements) == len(other.elements) and all(one.agrees(another) for one, another in pairs)
        if not (self.is_array and other.is_array):
            return self.without_layout() == other.without_layout()
        return self.type is other.type and self.has_dims_of(other)

    def has_dims_of(self, other: Shape) -> bool:
        """Equal dimensions, but for those that one of them leaves open."""
        if self.dims == other.dims:
            return True
        pairs = zip(self.dims, other.dims, strict=False)
        return self.rank == other.rank and all(one == another or UNBOUNDED in (one, another) for one, another in pairs)

    def fits(self, other: Shape) -> bool:
        """`matches`, or `agrees` where one of the two has a `?`."""
        return self.matches(other) or ((self.is_unbounded or other.is_unbounded) and self.agrees(other))

    def static(self) -> Shape:
        """The same shape with every bounded dimension taken at its bound."""
        if self.elements is not None:
            return Shape(None, elements=tuple(element.static() for element in self.elements))
        return Shape(self.element_type, self.dims, (), self.layout) if self.dynamic else self

    def __str__(self) -> str:
        return self.to_text(layouts=True)

    if not TYPE_CHECKING:

        def __getitem__(self, index: object) -> NoReturn:
            """What people write who know arrays, whose shape is a tuple of sizes; they also iterate over it."""
            raise ArgumentError(
                f"{self} is no list: shape.dims has the sizes of an array, shape.parts those of a tuple"
            )

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in OTHER_NAMES]

    def to_text(self, *, layouts: bool = False) -> str:
        """HLO's spelling: `f32[2,<=3]{1,0}`, `(f32[], token[])`."""
        if self.elements is not None:
            return "(" + ", ".join(element.to_text(layouts=layouts) for element in self.elements) + ")"
        if self.element_type is None:
            return "token[]"
        layout = str(self.layout) if layouts and self.layout is not None and self.dims else ""
        return f"{self.element_type.name}[{self._sizes_to_text()}]{layout}"

    def _sizes_to_text(self) -> str:
        if not self.dynamic and UNBOUNDED not in self.dims:
            return ",".join(map(str, self.dims))
        sizes = []
        for dim, size in enumerate(self.dims):
            sizes.append("?" if size == UNBOUNDED else f"<={size}" if self.is_dynamic_dim(dim) else str(size))
        return ",".join(sizes)

    def __repr__(self) -> str:
        return str(self)


def _has_unknown(dims: Sequence[object]) -> bool:
    """Whether a size is written as other libraries write one that is not known."""
    return any(size is None or isinstance(size, str) for size in dims)


class _NameElsewhere:
    """What people ask a shape for under another name: says what to write here.

    `__getattr__` would do so for any name, but Python looks up all attributes of a class that has one slowly: programs
    took 2 to 4 % longer to compile."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, shape: Shape | None, owner: type[Shape]) -> NoReturn:
        hint = hint_for(OTHER_NAMES, self._name)
        raise AttributeError(f"a Shape has no {self._name!r}{hint}", name=self._name, obj=shape)


for _name in OTHER_NAMES:
    setattr(Shape, _name, _NameElsewhere(_name))


def _is_empty(flags: Any) -> bool:
    return isinstance(flags, (tuple, list)) and not flags


def _flags(dims: Dims, dynamic: Sequence[bool]) -> Flags:
    """Which dimensions are dynamic; empty if none is."""
    try:
        given = [bool(flag) for flag in dynamic] or [False] * len(dims)
    except (TypeError, ValueError):
        raise ShapeError("shape.sizes", f"the flags of dimensions are a list of bools, not {dynamic!r}") from None
    if len(given) != len(dims):
        raise ShapeError("shape.sizes", f"{len(given)} flags say which of {len(dims)} dimensions are dynamic")
    flags = tuple(flag or size == UNBOUNDED for flag, size in zip(given, dims, strict=True))
    return flags if any(flags) else ()


def _layout(minor_to_major: Sequence[int]) -> Layout:
    try:
        return Layout((*map(operator.index, minor_to_major),))
    except TypeError:
        raise ShapeError("shape.layout", f"a layout is a list of dimensions, not {minor_to_major!r}") from None


def _check_dims(dims: Dims) -> None:
    """Raises unless an array may have these dimensions."""
    if dims and max(map(abs, dims)) >> 64:  # Python may refuse to spell it
        raise ShapeError("shape.sizes", f"dimension {dims.index(max(dims, key=abs))} of an array has more than 64 bits")
    if dims and min(dims) < 0 and any(size < 0 and size != UNBOUNDED for size in dims):
        raise ShapeError("shape.sizes", f"a dimension of {list(dims)} is negative")
    if len(dims) > MAX_RANK:
        raise ShapeError("shape.rank", f"rank {len(dims)} is beyond the largest rank, {MAX_RANK}")
    if abs(math.prod(dims)) > MAX_ELEMENTS or (0 in dims and math.prod(max(size, 1) for size in dims) > MAX_ELEMENTS):
        raise ShapeError("shape.sizes", f"an array of dimensions {list(dims)} has more than 2^48 elements")


MAX_RANK = 64
MAX_ELEMENTS = 1 << 48
MAX_NESTING = 100  # of tuples: far beyond any program, far below Python's recursion limit
MAX_PARTS = 1 << 20
TOKEN = Shape(None)


def shape_of_results(shapes: Sequence[Shape]) -> Shape:
    """The shape of what has these results: of the only one as it is, of several (or none) as a tuple."""
    return shapes[0] if len(shapes) == 1 else Shape.tuple(shapes)


def row_major_strides(dims: Sequence[int]) -> Dims:
    """Elements between neighbours along each dimension of a row-major array."""
    return tuple(math.prod(dims[dim + 1 :]) for dim in range(len(dims)))


@dataclass(frozen=True, slots=True)
class Signature:
    """The type of a computation: its parameters and its result. What a shape rule sees of a called computation."""

    parameters: tuple[Shape, ...]
    result: Shape

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.parameters)) + ") -> " + str(self.result)

    def matches(self, other: Signature) -> bool:
        """Equal but for layouts."""
        return (
            len(self.parameters) == len(other.parameters)
            and all(a.matches(b) for a, b in zip(self.parameters, other.parameters, strict=True))
            and self.result.matches(other.result)
        )
