"""The worked examples of the specification are recorded, and have the shapes and the values that it gives."""

from __future__ import annotations

import pytest

from tests.builder.examples import EXAMPLES, Example
from tests.support.values import assert_same
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import parse, structural_equal
from xlapy.hlo.verifier import verify


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.label)
def test_shape_of_the_result(example: Example) -> None:
    signature = example.computation().program_shape
    assert signature.result.static() == Shape.of(example.expected)
    assert signature.parameters == tuple(Shape.of(argument) for argument in example.arguments)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.label)
def test_value_of_the_result(example: Example) -> None:
    module = example.computation().module
    verify(module)
    assert_same(evaluate(module, *example.arguments), example.expected)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.label)
def test_text_says_the_same(example: Example) -> None:
    module = example.computation().module
    assert structural_equal(parse(module.to_text()), module)


def test_labels_are_unique() -> None:
    assert len({example.label for example in EXAMPLES}) == len(EXAMPLES)
