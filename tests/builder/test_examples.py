"""The worked examples of the specification are recorded, and have the shapes that it gives."""

from __future__ import annotations

import pytest

from tests.builder.examples import EXAMPLES, Example
from xlapy.hlo.shape import Shape


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.label)
def test_shape_of_the_result(example: Example) -> None:
    signature = example.computation().program_shape
    assert signature.result.static() == Shape.of(example.expected)
    assert signature.parameters == tuple(Shape.of(argument) for argument in example.arguments)


def test_labels_are_unique() -> None:
    assert len({example.label for example in EXAMPLES}) == len(EXAMPLES)
