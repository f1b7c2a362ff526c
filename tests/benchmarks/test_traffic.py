"""No program of the gallery launches more kernels or moves more bytes than XLA's, unless a reason is on record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.traffic import EXEMPTIONS, Comparison, Load, Program, compare, exemption_of, gallery, line, main

pytest.importorskip("jax")

QUICK = {
    "programs/perceptron",
    "programs/lstm",
    "elementwise/gelu_tanh/cache",
    "elementwise/silu_bf16/small",
    "reductions/argmax_rows/cache",
    "reductions/sum_columns_bf16/cache",
    "normalization/softmax/cache",
    "normalization/batch_norm_statistics/small",
    "normalization/log_sum_exp_columns/small",
    "dot/bias_gelu_f32/64",
    "convolution/3x3_late_image_gradient_nhwc/8x14x14x256-256",
    "convolution/grouped_image_gradient_nhwc/4x28x28x128-128",
    "indexing/embedding/cache",
    "loops/recurrent_network/cache",
    "loops/heat_equation/small",
    "models/causal_attention/cache",
    "movement/pad/small",
}


def more_without_reason(programs: Sequence[Program]) -> list[str]:
    comparisons = (compare(program) for program in programs if exemption_of(program) is None)
    return [line(comparison) for comparison in comparisons if comparison.is_more]


def test_some_programs_have_no_more_than_with_xla() -> None:
    chosen = [program for program in gallery() if program.name in QUICK]
    assert len(chosen) == len(QUICK)
    assert not any(map(exemption_of, chosen))
    assert not more_without_reason(chosen)


@pytest.mark.slow
def test_no_program_has_more_than_with_xla() -> None:
    assert not more_without_reason(gallery())


def test_every_reason_is_of_some_program_and_none_is_for_whole_families() -> None:
    programs = gallery()
    for exemption in EXEMPTIONS:
        covered = [program for program in programs if exemption.covers(program)]
        assert covered, exemption
        families = {program.family for program in covered}
        assert len(covered) < sum(program.family in families for program in programs) / 2, exemption
        assert exemption.reason.endswith(".")


def comparison(ours: Load, theirs: Load) -> Comparison:
    return Comparison(Program("family", "family/name/small", lambda: None), Load(9, 900), ours, theirs)


@pytest.mark.parametrize(
    ("ours", "mark"),
    [
        (Load(2, 100), ""),
        (Load(1, 50), ""),
        (Load(3, 100), "MORE KERNELS"),
        (Load(2, 101), "MORE BYTES"),
        (Load(3, 101), "MORE KERNELS AND BYTES"),
    ],
)
def test_rows_say_what_is_more(ours: Load, mark: str) -> None:
    found = comparison(ours, Load(2, 100))
    assert found.is_more == bool(mark)
    assert line(found).partition("MORE")[1:] == (("MORE", mark[4:]) if mark else ("", ""))


def test_a_program_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("as it was")
    assert main(["--only", "dispatch", "--match", "add_4", "--page", str(page)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"dispatch/add_4_elements/small +1 +1 +1 +48 B +48 B +48 B +1\.00 +1\.00\n", printed)
    assert "only part of the gallery" in printed
    assert page.read_text() == "as it was"
