"""HLO text in both directions: XLA's own syntax, driven by the op table."""

from xlapy.hlo.text.parser import parse
from xlapy.hlo.text.printer import canonical_text, fingerprint, structural_equal, to_text

__all__ = ["canonical_text", "fingerprint", "parse", "structural_equal", "to_text"]
