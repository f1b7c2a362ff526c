"""Imports at the last moment, where the compiler takes it from; it lives with the runtime, which stands alone."""

from xlapy_runtime.late import late

__all__ = ["late"]
