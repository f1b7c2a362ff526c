"""Bounded dimensions made static: `padder` is the pass, the rules say what each op does to sizes and padding."""

from xlapy.passes.dynamic import rules, window_rules

__all__ = ["rules", "window_rules"]
