"""What functions share that fold windows over rows and positions: with what folds begin, how elements are folded, and
what becomes of results."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.elements import emit_element
from xlapy.codegen.ir import I64, IRType, KernelBuilder, Value
from xlapy.codegen.libraries.fold_problem import FoldKind
from xlapy.codegen.libraries.sliding_lines import SlidingLines
from xlapy.codegen.libraries.sliding_plan import Sliding, bits_of
from xlapy.codegen.registers import register_type
from xlapy.hlo.element_types import ElementType

FOLD_NUMBERS = ("init", "factor", "divisor")
"""By name, in order: the bits of what folds begin with, and of what results are multiplied or divided by."""


def fold_numbers(sliding: Sliding) -> dict[str, int]:
    numbers = (sliding.init, sliding.factor, sliding.divisor)
    return {name: bits_of(number, sliding.type) for name, number in zip(FOLD_NUMBERS, numbers, strict=True)}


class FoldingLines(SlidingLines):
    """Writes the loop over rows of one function, whose numbers have `FOLD_NUMBERS` among them."""

    def __init__(
        self, k: KernelBuilder, names: Sequence[str], operation: str, type: ElementType, lanes: int, group: int = 1
    ) -> None:
        super().__init__(k, names, group)
        self._type = type
        self._vector: IRType = register_type(type).with_lanes(lanes)
        self._combiner = FoldKind(operation, type, type).combiner()

    def _float(self, name: str) -> Value:
        k, scalar = self._k, self._vector.element
        bits = self[name] if scalar.bits == I64.bits else k.trunc(self[name], scalar.integer())
        return k.bitcast(bits, scalar)

    def _combined(self, totals: Sequence[Value], elements: Sequence[Value]) -> list[Value]:
        results = []
        for total, element in zip(totals, elements, strict=True):
            combined = emit_element(self._k, self._combiner, [total, element], unrounded=True)
            assert isinstance(combined, Value)
            results.append(combined)
        return results

    def _scaled(self, sums: list[Value]) -> list[Value]:
        """The results, multiplied or divided if that changes anything."""
        k, lanes = self._k, sums[0].type.lanes
        factor, divisor = self._float("factor"), self._float("divisor")

        def divided() -> list[Value]:
            return [k.div(value, k.splat(divisor, lanes)) for value in sums]

        def multiplied() -> list[Value]:
            return [k.mul(value, k.splat(factor, lanes)) for value in sums]

        def not_divided() -> list[Value]:
            return k.if_else(k.compare("ne", factor, 1), multiplied, lambda: sums)

        return k.if_else(k.compare("ne", divisor, 1), divided, not_divided)
