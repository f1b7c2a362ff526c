"""The coefficients and the table of accuracies are what their scripts write."""

from __future__ import annotations

import contextlib
import importlib
import io
from pathlib import Path

import pytest

from tests.support import derive_coefficients
from tests.support.accuracy_cases import CASES

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [("elementary", "coefficients"), ("special", "special_coefficients")])
def test_coefficients_are_reproducible(kind: str, name: str) -> None:
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        derive_coefficients.main(kind)
    source = importlib.import_module(f"xlapy.codegen.math.{name}").__file__
    assert source is not None
    assert Path(source).read_text() == written.getvalue()


def test_every_measured_function_is_in_the_table() -> None:
    page = (ROOT / "docs" / "accuracy.md").read_text()
    for name in CASES:
        assert f"| `{name}`" in page
