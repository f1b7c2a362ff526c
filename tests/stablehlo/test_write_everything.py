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
def written(pretty: bool) -> list[str]:
    return [stablehlo.to_text(module, pretty=pretty) for module in corpus()]


@cache
def read(pretty: bool) -> list[HloModule]:
    return [stablehlo.parse(text) for text in written(pretty)]


@pytest.mark.parametrize("pretty", [False, True])
def test_what_is_written_reads_back(pretty: bool) -> None:
    for module in read(pretty):
        text = stablehlo.to_text(module, pretty=pretty)
        again = stablehlo.parse(text)
        assert structure(again) == structure(module), module.name
        assert stablehlo.to_text(again, pretty=pretty) == text


def test_both_forms_are_one_program() -> None:
    for generic, pretty in zip(read(False), read(True), strict=True):
        assert structure(generic) == structure(pretty), generic.name


@pytest.mark.parametrize("pretty", [False, True])
def test_mlir_accepts_it(pretty: bool) -> None:
    with mlir.make_ir_context():
        for module, text in zip(corpus(), written(pretty), strict=True):
            assert ir.Module.parse(text).operation.verify(), module.name
