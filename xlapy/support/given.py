"""What users give as values, where the compiler takes it from; it lives with the runtime, which stands alone."""

from xlapy_runtime.given import array_of, is_python_scalar, is_taken, represented, spelled

__all__ = ["array_of", "is_python_scalar", "is_taken", "represented", "spelled"]
