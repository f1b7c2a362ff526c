"""The graph: shapes, the op table, instructions, HLO text, the verifier and the reference evaluator."""

from xlapy.hlo.text import parse, to_text

__all__ = ["parse", "to_text"]
