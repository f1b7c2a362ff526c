"""Hypothesis without its search for constants in sources: strategies here say by themselves what is worth a try."""

from __future__ import annotations

import importlib

PLACE = "hypothesis.internal.conjecture.providers"  # where releases keep the search, if they have it


def use_quick_hypothesis() -> None:
    """It reads and parses every module of ours that was imported, which takes each process of the suite seconds."""
    try:
        providers = importlib.import_module(PLACE)
    except ImportError:
        return
    if hasattr(providers, "is_local_module_file"):
        providers.is_local_module_file = lambda path: False
