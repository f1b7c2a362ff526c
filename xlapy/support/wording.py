"""Words of messages, where the compiler takes them from; they live with the runtime, which stands alone."""

from xlapy_runtime.wording import counted

__all__ = ["counted"]
