"""`xlapy cache`: what the cache of compiled code holds, and how to empty it."""

from __future__ import annotations

import argparse
from typing import Any

from xlapy.codegen.object_cache import CacheInfo
from xlapy.native import object_cache
from xlapy.options import environment
from xlapy.report.units import bytes_text
from xlapy.tools.commands import add_command


def add_to(commands: Any) -> None:
    """Adds the subcommand to the parser."""
    parser = add_command(commands, "cache", "show or clear the cache of compiled code")
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--info", action="store_true", help="where it is, how many entries, how many bytes (the default)"
    )
    action.add_argument("--clear", action="store_true", help="remove everything in it")
    parser.set_defaults(run=_cache)


def _cache(chosen: argparse.Namespace) -> int:
    cache = object_cache(environment())
    if chosen.clear:
        cache.clear()
    print(_described(cache.info()))
    return 0


def _described(info: CacheInfo) -> str:
    if info.directory is None:
        return "the cache is off"
    if not info.directory.exists():
        return f"{info.directory}: nothing there yet"
    if not info.usable:
        return f"{info.directory}: not used, because it is no directory that belongs to you alone"
    size, limit = bytes_text(info.total_bytes), bytes_text(info.limit_bytes)
    return f"{info.directory}: {info.entries:,} entries, {size} of at most {limit}"
