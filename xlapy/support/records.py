"""Records, where the compiler takes them from; they live with the runtime, which stands alone."""

from xlapy_runtime.records import Record, field, replaced, values_of

__all__ = ["Record", "field", "replaced", "values_of"]
