"""The command line: finds the subcommand and reports errors without a traceback."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from xlapy.support.errors import InternalError, XlaError
from xlapy.support.version import VERSION
from xlapy.tools import cache, laws, ops, opt, report, run, show, text
from xlapy.tools.console import report_error

SUBCOMMANDS = (run, opt, text, show, report, laws, ops, cache)

WRONG, INTERRUPTED = 1, 130
"""Exit statuses, besides 0, argparse's 2 for a wrong command line, and 3 of `run` for a difference."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `xlapy ARGUMENTS`; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="xlapy",
        description="Tools around the xlapy compiler.",
        epilog="`xlapy COMMAND --help` tells more. Exit status: 0; 1 for a program that is wrong or fails; "
        "2 for a wrong command line; 3 if `run --compare` finds a difference.",
    )
    parser.add_argument("--version", action="version", version=f"xlapy {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in SUBCOMMANDS:
        module.add_to(commands)
    chosen = parser.parse_args(arguments)
    try:
        status: int = chosen.run(chosen)
        sys.stdout.flush()
        return status
    except InternalError:
        raise
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (XlaError, OSError) as error:
        report_error(error)
        return WRONG
    except KeyboardInterrupt:
        print("xlapy: interrupted", file=sys.stderr)
        return INTERRUPTED
