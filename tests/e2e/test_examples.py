"""The worked examples of the specification, by the evaluator and as native code: both give what the specification
says."""

from __future__ import annotations

import pytest

import xlapy
from tests.builder.examples import EXAMPLES, Example
from tests.support.values import assert_same


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.label)
def test_worked_example(example: Example) -> None:
    computation = example.computation()
    assert_same(xlapy.evaluate(computation, *example.arguments), example.expected, "evaluated")
    assert_same(xlapy.compile(computation)(*example.arguments), example.expected, "compiled")
