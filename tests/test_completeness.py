"""Every op of the table has everything: builder function, texts, evaluator, native code, and an end-to-end test.

What is missing must stand in the table of limitations. `pytest tests/test_completeness.py -s` prints the list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.e2e.corpus import corpus
from xlapy.builder.registry import FUNCTIONS, NOT_RECORDED, RECORDED_BY
from xlapy.codegen.elements import ELEMENTS
from xlapy.codegen.entry import HANDLERS, NO_CODE
from xlapy.codegen.kernels.makers import KERNELS, RUNS_AS_LOOP
from xlapy.codegen.target import REFERENCE_MACHINES
from xlapy.hlo import limitations
from xlapy.hlo.evaluate.base import EVALUATORS
from xlapy.hlo.ops import OPS, OpSpec, Trait
from xlapy.hlo.text import parse
from xlapy.passes.pipelines import EXPANDED
from xlapy.stablehlo.convert import CONVERSIONS
from xlapy_runtime import runs  # noqa: F401 - fills PREPARE
from xlapy_runtime.calls import PREPARE
from xlapy_runtime.collectives import is_collective

ROOT = Path(__file__).resolve().parent.parent
OWN_STABLEHLO_CODE = ("call",)  # func.call belongs to another dialect


@cache
def specified() -> dict[str, tuple[str, str]]:
    """The names of each op in StableHLO and for the builder, where the specifications give one."""
    names = {}
    for line in (ROOT / "tests" / "support" / "operations.txt").read_text().splitlines():
        if not line.startswith("#"):
            opcode, stablehlo, function = line.split()
            names.setdefault(opcode, (stablehlo, function))
    return names


@cache
def compiled_somewhere() -> dict[str, bool]:
    """The ops that end-to-end tests use, and whether their HLO text round-trips in some module."""
    found: dict[str, bool] = {}
    for module in corpus():
        text = module.to_text()
        round_trips = parse(text).to_text() == text
        for instruction in module.instructions():
            found[instruction.opcode] = found.get(instruction.opcode, True) and round_trips
    return found


def has_builder_function(spec: OpSpec) -> bool:
    wanted = specified().get(spec.name)
    return spec.name in NOT_RECORDED or (spec.name in RECORDED_BY and (wanted is None or wanted[1] in FUNCTIONS))


def has_stablehlo(spec: OpSpec) -> bool:
    wanted = specified().get(spec.name)
    return wanted is None or spec.name in OWN_STABLEHLO_CODE or f"stablehlo.{wanted[0]}" in CONVERSIONS


def has_native_code(spec: OpSpec) -> bool:
    if spec.has(Trait.RUNTIME) and spec.name not in HANDLERS:
        return spec.name in PREPARE or is_collective(spec.name)
    if spec.has(Trait.ELEMENTWISE) and spec.name != "map":
        return spec.name in ELEMENTS
    return (
        spec.name in KERNELS
        or spec.name in HANDLERS
        or spec.name in NO_CODE
        or spec.name in EXPANDED
        or spec.name in RUNS_AS_LOOP
        or spec.name == "map"  # its computation becomes part of a loop
        or spec.has(Trait.INDEX_MAP)
    )


MADE_BY_PASSES = frozenset(NOT_RECORDED)
"""Ops that no program brings: the corpus cannot show them."""

CONCERNS: dict[str, Callable[[OpSpec], bool]] = {
    "documentation": lambda spec: bool(spec.doc),
    "builder function": has_builder_function,
    "HLO text": lambda spec: spec.name in MADE_BY_PASSES or compiled_somewhere().get(spec.name, False),
    "StableHLO text": has_stablehlo,
    "evaluator": lambda spec: spec.name in EVALUATORS,
    "native code": has_native_code,
    "end-to-end test": lambda spec: spec.name in MADE_BY_PASSES or spec.name in compiled_somewhere(),
}


def lacks(spec: OpSpec) -> list[str]:
    return [concern for concern, is_there in CONCERNS.items() if not is_there(spec)]


def test_what_each_op_lacks() -> None:
    missing = {name: lacks(spec) for name, spec in OPS.items()}
    here = len(specified().keys() & OPS.keys())
    print(f"\n{len(OPS)} ops; of {len(specified())} in the specifications, {here} are here")
    for name, concerns in missing.items():
        if concerns:
            print(f"  {name}: lacks {', '.join(concerns)}")
    print("not in the table yet:", ", ".join(name for name in specified() if name not in OPS) or "none")
    for limitation in limitations.LIMITATIONS:
        print(f"limitation: {', '.join(limitation.ops)} {limitation.what}")
    unexplained = {name: c for name, c in missing.items() if c and not limitations.limitations_of(name)}
    assert not unexplained


def test_limitations_are_of_ops() -> None:
    for limitation in limitations.LIMITATIONS:
        assert all(op in OPS for op in limitation.ops), limitation
        assert limitation.reason


def test_every_kind_of_processor_has_its_row() -> None:
    for row in limitations.PROCESSORS:
        assert bool(row.reason) == (row.tested != limitations.ON_HARDWARE), row
    rows = [row.machine for row in limitations.PROCESSORS]
    assert sorted(rows) == sorted(REFERENCE_MACHINES)


def test_the_page_of_limitations_is_up_to_date() -> None:
    page = ROOT / "docs" / "limitations.md"
    assert page.read_text() == limitations.page(), "run: python -m xlapy.hlo.limitations > docs/limitations.md"


@pytest.mark.parametrize("concern", CONCERNS)
def test_every_concern_is_met_by_most(concern: str) -> None:
    """A concern that looks in the wrong place would find nothing anywhere."""
    assert sum(map(CONCERNS[concern], OPS.values())) > len(OPS) * 0.8
