"""Columns in memory that several sweeps fold: wide strips, the same bits as narrow ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.test_folds_in_parts import EXPONENTIALS, SQUARES, sized
from tests.support.targets import lesser_targets
from xlapy.codegen.target import Target, host_target
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.hlo.text import parse
from xlapy.options import CompileOptions

TARGETS = {"host": host_target(), **lesser_targets()}


def compiled(text: str, target: Target, monkeypatch: pytest.MonkeyPatch, *, far: bool) -> Executable:
    options = CompileOptions(num_threads=2)
    with monkeypatch.context() as patch:
        patch.setenv("XLAPY_CACHE_DIR", "off")
        patch.setattr("xlapy.codegen.kernels.wide_columns.is_in_memory", lambda *_: far)
        return Executable(compile_module(parse(text), options, target), options)


@pytest.mark.parametrize(("type", "rows", "columns"), [("f32", 8192, 1024), ("f32", 16480, 512), ("f64", 4096, 1280)])
def test_wide_strips_fold_in_the_order_of_narrow_ones(
    type: str, rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are no multiple of those folded together, whole rows, pieces of them, and what is not finite."""
    text = sized(SQUARES, rows, columns).replace("f32[", f"{type}[")
    array = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32 if type == "f32" else float)
    array[5, :4] = np.nan, np.inf, -np.inf, -0.0
    array[:, 9] = -np.inf
    narrow, wide = (compiled(text, TARGETS["host"], monkeypatch, far=far) for far in (False, True))
    assert wide.llvm_ir() != narrow.llvm_ir()
    with np.errstate(all="ignore"):
        assert np.asarray(wide(array)).tobytes() == np.asarray(narrow(array)).tobytes()


def test_sums_of_functions_stay_in_narrow_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    text = sized(EXPONENTIALS.replace("CENTER", "c"), 8192, 1024)
    narrow, wide = (compiled(text, TARGETS["host"], monkeypatch, far=far) for far in (False, True))
    assert wide.llvm_ir() == narrow.llvm_ir()


@pytest.mark.parametrize("target", TARGETS)
def test_every_instruction_set_has_them(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, array = sized(SQUARES, 4096, 2048), np.random.default_rng(0).standard_normal((4096, 2048)).astype(np.float32)
    narrow, wide = (compiled(text, TARGETS[target], monkeypatch, far=far) for far in (False, True))
    assert wide.llvm_ir() != narrow.llvm_ir()
    assert np.asarray(wide(array)).tobytes() == np.asarray(narrow(array)).tobytes()
