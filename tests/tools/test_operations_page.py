"""docs/operations.md says what the op table says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jaxlib.mlir.dialects import chlo, func, stablehlo

from xlapy.builder.registry import NOT_RECORDED, RECORDED_BY
from xlapy.hlo.ops import OPS
from xlapy.stablehlo.convert import CONVERSIONS
from xlapy.tools.main import main
from xlapy.tools.operations_page import OTHER_NAMES, page, stablehlo_names

ROOT = Path(__file__).resolve().parent.parent.parent


def sections() -> dict[str, str]:
    """The sections of the page by op."""
    without_families = re.sub(r"^## .*$", "", page(), flags=re.MULTILINE)
    _, *parts = re.split(r"^### (.+)$", without_families, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "operations.md").read_text() == page(), "run: xlapy ops --page > docs/operations.md"


def test_the_page_is_linked() -> None:
    assert "(operations.md)" in (ROOT / "docs" / "index.md").read_text()


def test_the_command_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--page"]) == 0
    assert capsys.readouterr().out == page()


def test_every_op_has_a_section_with_its_rules() -> None:
    found = sections()
    assert found.keys() == OPS.keys()
    for name, spec in OPS.items():
        for constraint in spec.constraints.values():
            assert f"- Rule `{constraint.slug}`" in found[name]


def test_a_section_in_full() -> None:
    assert sections()["concatenate"].strip().splitlines() == [
        "Joins `inputs` along `dimension`, in order.",
        "",
        "- Operands: `*inputs`",
        "- Attribute `dimension`: `int`, in HLO text `dimensions`",
        "- Builder: `ConcatInDim`",
        "- StableHLO: `stablehlo.concatenate`",
        "- Rule `array-operands`: the inputs are arrays.",
        "- Rule `some-inputs` [B1 C3]: there is at least one input.",
        "- Rule `not-scalars` [B4 C4]: the inputs have dimensions.",
        "- Rule `dimension-in-range` [C4]: `dimension` is a dimension of the inputs.",
        "- Rule `same-type` [B2 C1]: the inputs agree in element type.",
        "- Rule `same-rank` [B2 C2]: the inputs agree in rank.",
        "- Rule `same-other-dims` [B3 C2]: the inputs agree in every other dimension.",
    ]


def test_element_types_are_named_where_a_row_declares_them() -> None:
    found = sections()
    assert "- Element types: float or complex\n" in found["tanh"]
    assert "- Element types: all\n" in found["add"]
    assert "Element types" not in found["concatenate"]


def test_every_op_that_users_record_names_its_function() -> None:
    for name, section in sections().items():
        assert ("- Builder: none" in section) == (name in NOT_RECORDED or name not in RECORDED_BY)


def test_other_names_are_names_that_the_parser_reads() -> None:
    assert OTHER_NAMES.keys() <= OPS.keys()
    assert all(name in CONVERSIONS for names in OTHER_NAMES.values() for name in names)
    assert stablehlo_names(OPS["dot"]) == ["stablehlo.dot_general", "stablehlo.dot"]


def test_other_names_are_operations_of_those_dialects() -> None:
    members = [member for dialect in (stablehlo, chlo, func) for member in vars(dialect).values()]
    known = {name for member in members if (name := getattr(member, "OPERATION_NAME", None))}
    assert {name for spec in OPS.values() for name in stablehlo_names(spec)} <= known | {"func.call"}
