"""How StableHLO text spells element types."""

from __future__ import annotations

from xlapy.hlo.element_types import ALL, ElementType, element_type_named, real_part_type

_FLOAT_SPELLINGS = (
    "f4E2M1FN f6E2M3FN f6E3M2FN f8E3M4 f8E4M3 f8E4M3FN f8E4M3FNUZ f8E4M3B11FNUZ f8E5M2 f8E5M2FNUZ f8E8M0FNU"
    " f16 bf16 f32 f64"
)


def _spellings() -> dict[ElementType, str]:
    """How StableHLO text spells each element type; integers are signless in MLIR when they are signed."""
    floats = {spelling.lower(): spelling for spelling in _FLOAT_SPELLINGS.split()}
    names: dict[ElementType, str] = {}
    for element_type in ALL:
        if element_type.kind == "pred":
            names[element_type] = "i1"
        elif element_type.is_integer:
            names[element_type] = ("i" if element_type.is_signed else "ui") + str(element_type.bits)
        elif element_type.is_complex:
            names[element_type] = f"complex<{real_part_type(element_type).name}>"
        else:
            names[element_type] = floats[element_type.name]
    return names


SPELLING = _spellings()
ELEMENT_TYPES = {spelling: element_type for element_type, spelling in SPELLING.items()} | {
    f"si{bits}": element_type_named(f"s{bits}") for bits in (2, 4, 8, 16, 32, 64)
}
ELEMENT_TYPES["index"] = element_type_named("s64")  # layouts and shapes of dynamic programs are lists of these
