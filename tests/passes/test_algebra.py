"""The laws, each on cases of its family in `cases/algebra`."""

from collections import Counter
from pathlib import Path

import pytest

import xlapy.passes.algebra  # noqa: F401  (fills the book)
from tests.support.hlo_cases import Case, check_case, load_folder
from xlapy.hlo.text import parse
from xlapy.passes.rewrite import LAWS, AlgebraicSimplification, Exactness

FOLDER = Path(__file__).parent / "cases" / "algebra"
CASES = list(load_folder(FOLDER))


def simplification(case: Case) -> AlgebraicSimplification:
    return AlgebraicSimplification(fast_math="fast math" in case.title)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    """Both sides have the same value on random inputs, NaN and the other edges among them: to the bit if all laws say
    so."""
    trial = simplification(case)
    trial.run(parse(case.before))
    exact = all(LAWS[name].exactness is Exactness.EXACT for name in trial.counts)
    check_case(case, simplification(case), tolerance=0.0 if exact else 1e-5)


def test_every_law_fires() -> None:
    fired: Counter[str] = Counter()
    for case in CASES:
        step = simplification(case)
        step.run(parse(case.before))
        fired += step.counts
    assert sorted({law.name for law in LAWS} - set(fired)) == []


def test_arrays_that_are_joined_one_at_a_time_are_joined_at_once() -> None:
    lines = [f"c{n} = f32[{n + 2},3] concatenate(c{n - 1}, x), dimensions={{0}}" for n in range(1, 40)]
    lines.insert(0, "x = f32[1,3] parameter(0) y = f32[1,3] negate(x) c0 = f32[2,3] concatenate(x, y), dimensions={0}")
    module = parse(f"ENTRY e {{ {' '.join(lines)} }}".replace("c39 =", "ROOT c39 ="))
    step = AlgebraicSimplification()
    step.run(module)
    assert len(module.entry.root.operands) == 41
    assert step.counts["concatenate-nested"] == 1


def test_columns_that_are_joined_again_are_found_at_once() -> None:
    """The first column is joined to the others, hundreds of times, where each is behind all the joins before it."""
    lines = ["x = f32[2,3] parameter(0)", "c0 = f32[2,3] negate(x)"]
    for n in range(1, 200):
        lines.append(f"s{n} = f32[2,1] slice(c{n - 1}), slice={{[0:2], [0:1]}}")
        lines.append(f"c{n} = f32[2,{n + 3}] concatenate(c{n - 1}, s{n}), dimensions={{1}}")
    module = parse(f"ENTRY e {{ {' '.join(lines)} }}".replace("c199 =", "ROOT c199 ="))
    step = AlgebraicSimplification()
    step.run(module)
    assert step.counts["slice-of-concatenate"] == 198
    assert len(module.entry.root.operands) == 200


def test_a_law_can_be_switched_off() -> None:
    case = next(case for case in CASES if "negations" in case.title)
    step = AlgebraicSimplification(disabled=frozenset({"negate-twice"}))
    assert not step.run(parse(case.before))
