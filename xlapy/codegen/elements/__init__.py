"""Element-wise native code, by family."""

from xlapy.codegen.elements import arithmetic, conversion, logic, special
from xlapy.codegen.elements.registry import ELEMENTS, Emission, emit_element

__all__ = ["ELEMENTS", "Emission", "arithmetic", "conversion", "emit_element", "logic", "special"]
