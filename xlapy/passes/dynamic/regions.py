"""Scalar computations that know which of their arguments exist.

A pred beside each element says whether it does. Where the padder cannot find an element that a computation ignores,
it gives the computation this pred, and a wrapper that heeds it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.element_types import PRED
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape

EXISTS = Shape.scalar(PRED)
TRUE, FALSE = Literal(True, EXISTS), Literal(False, EXISTS)


class _Wrapper:
    """A computation around another one, in the making."""

    def __init__(self, region: Computation, suffix: str) -> None:
        self.region = region
        self.computation = Computation(f"{region.name}.{suffix}")

    def parameters(self, shapes: Sequence[Shape]) -> list[Instruction]:
        first = len(self.computation.parameters)
        return [
            self.computation.add("parameter", shape=shape, number=first + place) for place, shape in enumerate(shapes)
        ]

    def results(self, arguments: Sequence[Instruction]) -> list[Instruction]:
        """What the wrapped computation returns, one by one."""
        root = self.computation.insert(self.region, arguments)
        return self.computation.unpacked(root) if root.shape.is_tuple else [root]

    def either(self, selector: Instruction, one: Instruction, other: Instruction) -> Instruction:
        return self.computation.add("select", [selector, one, other])

    def finished(self, results: Sequence[Instruction]) -> Computation:
        is_one = len(results) == 1
        self.computation.set_root(results[0] if is_one else self.computation.add("tuple", results))
        return self.computation


def folding_what_exists(region: Computation) -> Computation:
    """(a.., a exists, b.., b exists) -> (region(a.., b..), true) if both do, else what does exist."""
    wrapper = _Wrapper(region, "existing")
    shapes = [parameter.shape for parameter in region.parameters]
    half = len(shapes) // 2
    *ours, first = wrapper.parameters([*shapes[:half], EXISTS])
    *theirs, second = wrapper.parameters([*shapes[half:], EXISTS])
    folded = wrapper.results([*ours, *theirs])
    results = [
        wrapper.either(second, wrapper.either(first, both, other), own)
        for both, own, other in zip(folded, ours, theirs, strict=True)
    ]
    return wrapper.finished([*results, wrapper.computation.add("or", [first, second])])


def updating_by_what_exists(region: Computation) -> Computation:
    """(present.., p, update.., update exists) -> (region(present.., update..), p), or (present.., p) if it does not."""
    wrapper = _Wrapper(region, "existing")
    shapes = [parameter.shape for parameter in region.parameters]
    half = len(shapes) // 2
    *present, companion = wrapper.parameters([*shapes[:half], EXISTS])
    *updates, exists = wrapper.parameters([*shapes[half:], EXISTS])
    combined = wrapper.results([*present, *updates])
    results = [wrapper.either(exists, new, old) for new, old in zip(combined, present, strict=True)]
    return wrapper.finished([*results, companion])


def what_exists_first(comparator: Computation) -> Computation:
    """(a, b, .., a exists, b exists) -> comparator(a, b, ..) if both do, else whether only the first does."""
    wrapper = _Wrapper(comparator, "existing")
    arguments = wrapper.parameters([parameter.shape for parameter in comparator.parameters])
    first, second = wrapper.parameters([EXISTS, EXISTS])
    (answer,) = wrapper.results(arguments)
    return wrapper.finished([wrapper.computation.add("and", [first, wrapper.either(second, answer, first)])])


def selecting_what_exists(select: Computation, place: Shape) -> Computation:
    """(a, place, a exists, b, place, b exists) -> what `select` keeps of the elements that exist: the first if true."""
    wrapper = _Wrapper(select, "existing")
    element = select.parameters[0].shape
    *ours, first = wrapper.parameters([element, place, EXISTS])
    *theirs, second = wrapper.parameters([element, place, EXISTS])
    (keeps,) = wrapper.results([ours[0], theirs[0]])
    is_lost = wrapper.computation.add("not", [second])
    stays = wrapper.computation.add("and", [first, wrapper.computation.add("or", [is_lost, keeps])])
    results = [wrapper.either(stays, own, other) for own, other in zip(ours, theirs, strict=True)]
    return wrapper.finished([*results, wrapper.computation.add("or", [first, second])])
