"""HLO text in both directions: XLA's own syntax, driven by the op table."""

import copyreg
from typing import Any

from xlapy.hlo.graph import HloModule
from xlapy.hlo.text.parser import parse
from xlapy.hlo.text.printer import canonical_text, complete_text, fingerprint, structural_equal, to_text

__all__ = ["canonical_text", "complete_text", "fingerprint", "parse", "structural_equal", "to_text"]


def _pickled(module: HloModule) -> tuple[Any, ...]:
    """Pickled is the text: graphs are deeper than what pickles by recursion."""
    return parse, (to_text(module, long=True),), {"source": module.source}


copyreg.pickle(HloModule, _pickled)
