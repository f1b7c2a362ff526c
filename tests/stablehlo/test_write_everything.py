"""Every op of the table, in both forms: what is written reads back as itself, and MLIR accepts it."""

from __future__ import annotations

from functools import cache

import pytest
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

from tests.e2e.corpus import corpus
from tests.stablehlo.structure import structure
from xlapy import stablehlo
from xlapy.hlo.graph import HloModule


@cache
def modules() -> list[HloModule]:
    return [*corpus()]


@pytest.mark.parametrize("pretty", [False, True])
def test_what_is_written_reads_back(pretty: bool) -> None:
    for module in modules():
        read = stablehlo.parse(stablehlo.to_text(module, pretty=pretty))
        text = stablehlo.to_text(read, pretty=pretty)
        again = stablehlo.parse(text)
        assert structure(again) == structure(read), module.name
        assert stablehlo.to_text(again, pretty=pretty) == text


def test_both_forms_are_one_program() -> None:
    for module in modules():
        generic, pretty = (stablehlo.parse(stablehlo.to_text(module, pretty=pretty)) for pretty in (False, True))
        assert structure(generic) == structure(pretty), module.name


@pytest.mark.parametrize("pretty", [False, True])
def test_mlir_accepts_it(pretty: bool) -> None:
    with mlir.make_ir_context():
        for module in modules():
            assert ir.Module.parse(stablehlo.to_text(module, pretty=pretty)).operation.verify(), module.name
