"""The algorithms of dot products: HLO's names, and the fields by which StableHLO describes each.

An algorithm allows less precise products than those that we compute, so it changes nothing but the text.
"""

from __future__ import annotations

from typing import Any

from xlapy.support.records import Record


class DotAlgorithm(Record):
    """Operands are rounded to `precision_type`, perhaps as several components, of which products are accumulated."""

    precision_type: str
    accumulation_type: str
    components: int = 1
    operations: int = 1
    imprecise: bool = False

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> DotAlgorithm | None:
        """The algorithm that fields of the text describe, if both sides are treated alike."""
        sides = [
            (str(fields.get(f"{side}_precision_type")), fields.get(f"{side}_component_count", 1))
            for side in ("lhs", "rhs")
        ]
        if sides[0] != sides[1]:
            return None
        (precision_type, components), _ = sides
        return cls(
            precision_type,
            str(fields.get("accumulation_type")),
            components,
            fields.get("num_primitive_operations", 1),
            bool(fields.get("allow_imprecise_accumulation", False)),
        )

    def text(self) -> str:
        """`#stablehlo.dot_algorithm<...>`"""
        return (
            f"#stablehlo.dot_algorithm<lhs_precision_type = {self.precision_type}, "
            f"rhs_precision_type = {self.precision_type}, accumulation_type = {self.accumulation_type}, "
            f"lhs_component_count = {self.components}, rhs_component_count = {self.components}, "
            f"num_primitive_operations = {self.operations}, "
            f"allow_imprecise_accumulation = {str(self.imprecise).lower()}>"
        )


ALGORITHMS = {
    "dot_any_f8_any_f8_f32": DotAlgorithm("f8E5M2", "f32"),
    "dot_any_f8_any_f8_f32_fast_accum": DotAlgorithm("f8E5M2", "f32", imprecise=True),
    "dot_f16_f16_f16": DotAlgorithm("f16", "f16"),
    "dot_f16_f16_f32": DotAlgorithm("f16", "f32"),
    "dot_bf16_bf16_bf16": DotAlgorithm("bf16", "bf16"),
    "dot_bf16_bf16_f32": DotAlgorithm("bf16", "f32"),
    "dot_bf16_bf16_f32_x3": DotAlgorithm("bf16", "f32", operations=3),
    "dot_bf16_bf16_f32_x6": DotAlgorithm("bf16", "f32", operations=6),
    "dot_bf16_bf16_f32_x9": DotAlgorithm("bf16", "f32", operations=9),
    "dot_tf32_tf32_f32": DotAlgorithm("tf32", "f32"),
    "dot_tf32_tf32_f32_x3": DotAlgorithm("tf32", "f32", operations=3),
    "dot_f32_f32_f32": DotAlgorithm("f32", "f32"),
    "dot_f64_f64_f64": DotAlgorithm("f64", "f64"),
}
"""By HLO's names."""

NAMES = {algorithm: name for name, algorithm in ALGORITHMS.items()}


def algorithm_name(fields: dict[str, Any]) -> str | None:
    """HLO's name of the algorithm that fields of the text describe; None where it has none."""
    sides = ("lhs_precision_type", "rhs_precision_type")
    if all(str(fields.get(side)).startswith("f8") for side in sides):
        fields = {**fields, **dict.fromkeys(sides, "f8E5M2")}
    algorithm = DotAlgorithm.from_fields(fields)
    return NAMES.get(algorithm) if algorithm is not None else None
