"""Cases of passes in `.hlo` files; `BLESS=1 pytest ...` writes what the pass returns as the new expectation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from xlapy.hlo.graph import HloModule
from xlapy.passes import trial
from xlapy.passes.base import Pass
from xlapy.passes.trial import Case, assert_same, evaluate_padded, load_cases

__all__ = ["Case", "assert_same", "check_case", "check_same_values", "evaluate_padded", "load_cases", "load_folder"]

TARGETS: dict[str, Any] = {"negate": np.negative}  # what cases may call by custom calls


def load_folder(folder: Path) -> Iterator[Case]:
    """The cases of all files of a folder."""
    for path in sorted(folder.glob("*.hlo")):
        yield from load_cases(path)


def check_case(case: Case, step: Pass, *, tolerance: float = 0.0) -> None:
    """`trial.check_case` with the targets of our cases."""
    bless = bool(os.environ.get("BLESS"))
    trial.check_case(case, step, tolerance=tolerance, custom_calls=TARGETS, bless=bless)


def check_same_values(before: HloModule, after: HloModule, *, tolerance: float = 0.0) -> None:
    """`trial.check_same_values` with the targets of our cases."""
    trial.check_same_values(before, after, tolerance=tolerance, custom_calls=TARGETS)
