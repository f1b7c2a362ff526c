"""The command line: finds the subcommand and reports errors without a traceback."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from xlapy.support.errors import InternalError, XlaError
from xlapy.tools import cache, ops, programs

SUBCOMMANDS = (programs, ops, cache)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `xlapy ARGUMENTS`; returns the exit status."""
    parser = argparse.ArgumentParser(prog="xlapy", description="Tools around the xlapy compiler.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in SUBCOMMANDS:
        module.add_to(commands)
    chosen = parser.parse_args(arguments)
    try:
        status: int = chosen.run(chosen)
        return status
    except InternalError:
        raise
    except (XlaError, OSError) as error:
        print(f"xlapy: {error}", file=sys.stderr)
        return 1
