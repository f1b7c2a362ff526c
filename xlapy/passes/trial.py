"""Tests of passes and laws as HLO text: what goes in, what comes out, and that both compute the same.

    for case in load_cases(Path("my-pass.hlo")):
        check_case(case, MyPass())

A `.hlo` file holds cases. The title is the property; "stays" cases matter as much as "becomes" cases:

    // ==== transposes that undo each other disappear
    ENTRY main { ... }
    // ---- becomes
    ENTRY main { ... }
    // ==== an effect is never merged
    ENTRY main { ... }
    // ---- stays

With `bless=True` the file gets what the pass returns as the new expectation; read the difference before you keep it.
Inputs are random, NaN, infinities, zeros of both signs and the edges of integers among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xlapy.hlo.element_types import ElementType, element_type_of
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.evaluate.numerics import Array, widen
from xlapy.hlo.graph import HloModule
from xlapy.hlo.random_values import random_arguments
from xlapy.hlo.text import canonical_text, fingerprint, parse, to_text
from xlapy.hlo.verifier import verify
from xlapy.passes.base import Pass

SEEDS = (0, 1, 2)
MANY_ELEMENTS = 1 << 20  # of all arguments: whatever is special comes up many thousand times, so one seed is enough
NO_TARGETS: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Case:
    path: Path
    title: str
    before: str
    verdict: str  # "becomes" or "stays"
    after: str

    def __str__(self) -> str:
        return f"{self.path.stem}: {self.title}"


def load_cases(path: Path) -> list[Case]:
    """The cases of one file. Raises ValueError for a case without a verdict."""
    cases = []
    for block in re.split(r"^// ==== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, _, rest = block.partition("\n")
        parts = re.split(r"^// ---- (becomes|stays)\n", rest, flags=re.MULTILINE)
        if len(parts) != 3:
            raise ValueError(f"{path.name}: {title!r} does not say what it becomes")
        cases.append(Case(path, title.strip(), parts[0].strip(), parts[1], parts[2].strip()))
    return cases


def check_case(
    case: Case,
    step: Pass,
    *,
    tolerance: float = 0.0,
    custom_calls: Mapping[str, Any] = NO_TARGETS,
    bless: bool = False,
) -> None:
    """Runs the pass on the case: the text must be as expected, the claim true, and the values of what it changed the
    same.

    With a tolerance they may be as far apart, relative and absolute. `custom_calls` are targets that the case calls."""
    before = parse(case.before)
    verify(before)
    after = before.clone()
    changed = step.run(after)
    verify(after)
    assert changed == (fingerprint(before) != fingerprint(after)), f"{step.name} lied about having changed the module"
    assert not changed or step.may_change(before.opcodes()), f"{step.name} changed a module without any of its ops"
    if bless:
        _bless(case, after, changed)
    elif case.verdict == "stays":
        assert canonical_text(after) == canonical_text(before), f"it was to stay, and becomes:\n{to_text(after)}"
    else:
        expected = canonical_text(parse(case.after))
        assert canonical_text(after) == expected, f"now it becomes:\n{to_text(after)}"
    if changed:
        check_same_values(before, after, tolerance=tolerance, custom_calls=custom_calls)


def _bless(case: Case, after: HloModule, changed: bool) -> None:
    text = case.path.read_text(encoding="utf-8")
    old = f"// ==== {case.title}\n{case.before}\n// ---- {case.verdict}\n" + (f"{case.after}\n" if case.after else "")
    assert old in text, f"{case.path.name} is not laid out as the harness writes it"
    new = f"// ==== {case.title}\n{case.before}\n// ---- " + ("becomes\n" if changed else "stays\n")
    if changed:
        printed = to_text(after).split("\n", 1)
        new += (printed[1] if printed[0] == f"HloModule {after.name}" else "\n".join(printed)).strip() + "\n"
    case.path.write_text(text.replace(old, new), encoding="utf-8")


def check_same_values(
    before: HloModule,
    after: HloModule,
    *,
    tolerance: float = 0.0,
    custom_calls: Mapping[str, Any] = NO_TARGETS,
) -> None:
    """Evaluates both modules on the same inputs, special values among them, and compares bit for bit (or closely)."""
    parameters = before.signature.parameters
    size = sum(leaf.size for shape in parameters for leaf in shape.leaves())
    for seed in SEEDS if size < MANY_ELEMENTS else SEEDS[:1]:
        arguments = random_arguments(parameters, seed)
        expected = evaluate(before, *arguments, custom_calls=custom_calls)
        actual = evaluate_padded(after, arguments, custom_calls)
        assert_same(actual, expected, tolerance)


def evaluate_padded(module: HloModule, arguments: list[Any], custom_calls: Mapping[str, Any] = NO_TARGETS) -> Any:
    """Evaluates a module, passing and returning run-time sizes where the padder has made it take them."""
    config = module.config
    if not config.size_parameters and not config.size_results:
        return evaluate(module, *arguments, custom_calls=custom_calls)
    leaves = list(_leaves(tuple(arguments)))
    sizes = [np.int32(leaves[place.leaf].shape[place.dimension]) for place in config.size_parameters]
    shapes = module.signature.parameters[: len(arguments)]
    padded = [_pad_to(value, shape) for value, shape in zip(arguments, shapes, strict=True)]
    result = evaluate(module, *padded, *sizes, custom_calls=custom_calls)
    if not config.size_results:
        return result
    value, result_sizes = result
    cut = list(_leaves(value))
    for place, size in zip(config.size_results, result_sizes, strict=True):
        cut[place.leaf] = np.take(cut[place.leaf], range(int(size)), axis=place.dimension)
    return _rebuilt(value, iter(cut))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for element in value:
            yield from _leaves(element)
    else:
        yield value


def _rebuilt(value: Any, leaves: Iterator[Any]) -> Any:
    return tuple(_rebuilt(element, leaves) for element in value) if isinstance(value, tuple) else next(leaves)


def _pad_to(value: Any, shape: Any) -> Any:
    """The array in the corner of one of `shape`, garbage elsewhere: nobody may read it."""
    if isinstance(value, tuple):
        return tuple(_pad_to(element, part) for element, part in zip(value, shape.parts, strict=True))
    array = np.asarray(value)
    if array.shape == shape.dims:
        return value
    padded = np.full(shape.dims, 77, array.dtype)
    padded[tuple(slice(size) for size in array.shape)] = array
    return padded


def assert_same(actual: Any, expected: Any, tolerance: float = 0.0) -> None:
    """Same structure and same bits; any NaN equals any NaN. With a tolerance: floats close, relative and absolute."""
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple), f"{actual!r} instead of a tuple of {len(expected)}"
        assert len(actual) == len(expected), f"a tuple of {len(actual)} instead of {len(expected)}"
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other, tolerance)
        return
    if expected is None:
        assert actual is None, f"{actual!r} instead of a token"
        return
    one, other = np.asarray(actual), np.asarray(expected)
    assert one.dtype == other.dtype, f"elements of {one.dtype} instead of {other.dtype}"
    assert one.shape == other.shape, f"an array of {one.shape} instead of {other.shape}"
    kind = element_type_of(other.dtype)
    if tolerance and (kind.is_float or kind.is_complex):
        np.testing.assert_allclose(widen(one), widen(other), rtol=tolerance, atol=tolerance)
        return
    different = np.zeros(other.shape, np.bool_)
    for part, wanted in zip(_parts(one, kind), _parts(other, kind), strict=True):
        different |= ~_same_bits(part, wanted)
    assert not different.any(), f"{np.count_nonzero(different)} of {other.size} differ: {one} instead of {other}"


def _parts(array: Array, kind: ElementType) -> tuple[Array, ...]:
    """The array as numbers that numpy compares itself: complex ones as their two parts, narrow ones widened."""
    return (array.real, array.imag) if kind.is_complex else (widen(array),)


def _same_bits(one: Array, other: Array) -> Array:
    if other.dtype.kind != "f":
        return np.asarray(one == other)
    equal = (one == other) & (np.signbit(one) == np.signbit(other))
    return np.asarray(equal | (np.isnan(one) & np.isnan(other)))
