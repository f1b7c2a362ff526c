"""Many functions of JAX in every text form: StableHLO pretty and generic, XLA's HLO before and after its optimization.

Each text is read, written, read by jaxlib, and read again; and what was read gives XLA's numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

import xlapy
from tests.hlo.text.test_xla_reads_our_text import hlo_options, logical, through_xla
from tests.stablehlo.breadth import PROGRAMS
from tests.stablehlo.structure import structure
from tests.support.xla_flags import usual_fusions
from xlapy import stablehlo
from xlapy.hlo import text as hlo_text
from xlapy.hlo.graph import HloModule

ALL = {function.__name__: (function, arguments) for function, arguments in PROGRAMS}
every_program = pytest.mark.parametrize("name", ALL, scope="module")  # one after the other, for what they share


@cache
def lowered(name: str) -> Any:
    function, arguments = ALL[name]
    return jax.jit(function, keep_unused=True).lower(*arguments)


@cache
def compiled(name: str) -> Any:
    return lowered(name).compile({} if name in LONG_TO_COMPILE else usual_fusions())


@cache
def read(name: str) -> HloModule:
    return stablehlo.parse(lowered(name).as_text())


LONG_TO_COMPILE = ("special_functions",)
"""Long loops of plain arithmetic, whose usual fusions take XLA six seconds."""

CALLS_LIBRARIES = ("ordering", "products")
"""Library calls become ops of ours, some of whose operands and results nobody uses: they are not written."""


def as_written(module: HloModule, name: str) -> HloModule:
    return stablehlo.parse(stablehlo.to_text(module)) if name in CALLS_LIBRARIES else module


def hlo_dumps(name: str) -> tuple[str, str]:
    """The module as XLA gets it, and as it compiles it, with all constants."""
    (optimized,) = compiled(name).runtime_executable().hlo_modules()
    return lowered(name).as_text(dialect="hlo"), optimized.to_string(hlo_options())


def test_the_sample_is_broad() -> None:
    assert sum(len(lowered(name).out_info) for name in ALL) >= 250
    assert len({i.opcode for name in ALL for i in read(name).instructions()}) >= 80


@every_program
def test_generic_and_pretty_text_are_one_program(name: str) -> None:
    generic = lowered(name).compiler_ir().operation.get_asm(print_generic_op_form=True)
    assert structure(stablehlo.parse(generic)) == structure(read(name))


@every_program
def test_stablehlo_comes_back_through_jaxlib(name: str) -> None:
    """In both forms; of either, jaxlib makes the same program, down to the text."""
    located = stablehlo.parse(lowered(name).as_text(debug_info=True))
    ours = structure(as_written(located, name))
    texts = set()
    for pretty in (False, True):
        written = stablehlo.to_text(located, pretty=pretty)
        assert structure(stablehlo.parse(written)) == ours
        with mlir.make_ir_context():
            theirs = ir.Module.parse(written)
            assert theirs.operation.verify()
            texts |= {theirs.operation.get_asm(print_generic_op_form=generic) for generic in (False, True)}
    assert len(texts) == 2
    expected = structure(as_written(read(name), name))
    for text in texts:
        assert structure(stablehlo.parse(text)) == expected


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in LONG_TO_COMPILE else name for name in ALL],
    scope="module",
)
def test_hlo_comes_back_through_xla(name: str) -> None:
    for dump in hlo_dumps(name):
        module = hlo_text.parse(dump)
        written = hlo_text.to_text(module, long=True)
        assert hlo_text.structural_equal(hlo_text.parse(written), module)
        again = hlo_text.parse(through_xla(written, hlo_options()))
        assert hlo_text.structural_equal(logical(again), logical(module))


@every_program
def test_what_is_read_gives_the_numbers_of_xla(name: str) -> None:
    _, arguments = ALL[name]
    expected = jax.tree.leaves(compiled(name)(*arguments))
    optimized = hlo_dumps(name)[1]
    ways = {
        "evaluated": xlapy.evaluate(read(name), *arguments),
        "compiled": xlapy.compile(read(name))(*arguments),
        "compiled from what XLA made of it": xlapy.compile(optimized)(*arguments),
    }
    for way, results in ways.items():
        flat = jax.tree.leaves(results)
        assert len(flat) == len(expected)
        for number, (result, value) in enumerate(zip(flat, expected, strict=True)):
            assert result.dtype == value.dtype
            result, value = np.asarray(result).astype(np.complex128), np.asarray(value).astype(np.complex128)
            np.testing.assert_allclose(result, value, rtol=2e-4, atol=2e-5, err_msg=f"result {number}, {way}")
