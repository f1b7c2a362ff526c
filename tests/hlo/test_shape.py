"""Shapes as keys: what is equal hashes equal, however it was made."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.shape import MAX_NESTING, MAX_PARTS, TOKEN, Layout, Shape
from xlapy.support.errors import ShapeError

MATRIX = Shape.array(np.float32, (3, 4))
SHAPES = (
    MATRIX,
    Shape.array(np.float32, (4, 3)),
    Shape.array(np.int32, (3, 4)),
    Shape.array(np.float32, (3, 4), [True, False]),
    Shape.array(np.float32, (3, 4), layout=[0, 1]),
    Shape.array(np.float32, (3, 4), layout=[1, 0]),
    Shape.scalar(np.float32),
    Shape.tuple([MATRIX, TOKEN]),
    Shape.tuple([MATRIX]),
    Shape.tuple([]),
    TOKEN,
)


def test_different_shapes_are_different_keys() -> None:
    assert len(set(SHAPES)) == len(SHAPES)
    assert all((one == other) == (one is other) for one in SHAPES for other in SHAPES)
    assert all(shape not in (None, "f32[3,4]", (3, 4)) for shape in SHAPES)


def test_copies_are_the_same_key() -> None:
    known = {shape: number for number, shape in enumerate(SHAPES)}
    for number, shape in enumerate(SHAPES):
        for same in (copy.copy(shape), copy.deepcopy(shape), pickle.loads(pickle.dumps(shape))):
            assert known[same] == number and same == shape
        assert "_hash" not in repr(shape) and shape.leaves() == copy.deepcopy(shape).leaves()


def test_row_major_layouts() -> None:
    assert Layout.row_major(3) is Layout.row_major(3)
    assert MATRIX.row_major().layout == Layout((1, 0)) and MATRIX.row_major() == SHAPES[5]
    turned = SHAPES[4].row_major()
    assert turned == SHAPES[5] and turned.row_major() is turned
    assert Shape.tuple([MATRIX, TOKEN]).row_major() == Shape.tuple([SHAPES[5], TOKEN])
    assert Shape.scalar(np.float32).row_major() == Shape.scalar(np.float32)


def test_matching_says_nothing_of_layouts() -> None:
    assert SHAPES[4].matches(MATRIX) and SHAPES[5].matches(SHAPES[4])
    assert not MATRIX.matches(SHAPES[3]) and not MATRIX.matches(SHAPES[2]) and not MATRIX.matches(TOKEN)
    assert Shape.tuple([MATRIX]).matches(Shape.tuple([SHAPES[4]])) and not Shape.tuple([MATRIX]).matches(MATRIX)


@pytest.mark.parametrize("kind", [Shape, Instruction, Computation])
def test_attributes_that_passes_ask_for_are_found_at_once(kind: type) -> None:
    """Python looks up all attributes slowly of a class that has a function for those that are missing."""
    assert not hasattr(kind, "__getattr__") and kind.__getattribute__ is object.__getattribute__


def test_other_names_are_not_listed() -> None:
    assert "dims" in dir(MATRIX) and "dtype" not in dir(MATRIX)


def test_how_deep_tuples_nest_is_bounded() -> None:
    shape = MATRIX
    for _ in range(MAX_NESTING):
        shape = Shape.tuple([shape])
    with pytest.raises(ShapeError, match="nests 101 deep"):
        Shape.tuple([MATRIX, shape])


@pytest.mark.parametrize("innermost", [Shape.tuple([]), Shape.tuple([TOKEN])])
def test_a_tuple_that_doubles_again_and_again_is_refused_in_time(innermost: Shape) -> None:
    shape = innermost
    with pytest.raises(ShapeError, match="parts in all"):
        for _ in range(MAX_PARTS.bit_length() + 1):
            shape = Shape.tuple([shape, shape])
