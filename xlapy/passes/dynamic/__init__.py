"""Bounded dimensions made static: `padder` is the pass, `rules` says what each op does to sizes and padding."""

from xlapy.passes.dynamic import rules

__all__ = ["rules"]
