"""The graph: shapes, the op table, instructions, HLO text, the verifier and the reference evaluator."""

from xlapy.hlo.drawing import critical_path, to_dot, to_networkx
from xlapy.hlo.text import parse, to_text

__all__ = ["critical_path", "parse", "to_dot", "to_networkx", "to_text"]
