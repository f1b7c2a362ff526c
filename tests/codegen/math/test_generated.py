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
def test_coefficients_are_reproducible() -> None:
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        derive_coefficients.main()
    module = importlib.import_module("xlapy.codegen.math.coefficients")
    fresh: dict[str, object] = {}
    exec(written.getvalue(), fresh)
    for name, value in fresh.items():
        if name.isupper():
            assert getattr(module, name) == value, name


def test_every_measured_function_is_in_the_table() -> None:
    page = (ROOT / "docs" / "accuracy.md").read_text()
    for name in CASES:
        assert f"| `{name}`" in page
