"""The command line: finds the subcommand and reports errors without a traceback."""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence

from xlapy.support.errors import InternalError, XlaError
from xlapy.support.source import suggestion
from xlapy.support.version import VERSION
from xlapy.tools import cache, compile, laws, ops, opt, report, run, show, text
from xlapy.tools.console import WRONG, report_error

SUBCOMMANDS = (run, compile, opt, text, show, report, laws, ops, cache)

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it. Others are 0, WRONG, argparse's 2, and 3 of `run --compare`."""


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
    for command in commands.choices.values():
        command.usage = _file_first(command)
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:
        given = [*given[1:2], "--help"]
    chosen = _parsed(parser, commands.choices, given or ["--help"])
    try:
        status: int = chosen.run(chosen)
        if sys.stdout is not None:  # it is None where the shell has closed it
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


def _file_first(command: argparse.ArgumentParser) -> str | None:
    """The usage of a command with FILE in front of its options; None if it has another end. argparse writes it behind
    them, where an option that takes several values would take it, too."""
    usage = " ".join(command.format_usage().removeprefix("usage: ").split())
    if not usage.endswith(" FILE"):
        return None
    options = _OPTION.findall(usage[len(command.prog) : -len(" FILE")])
    whole = [option.replace(" ", "\0") for option in options]
    indent = " " * len("usage: ")
    return textwrap.fill(" ".join([command.prog, "FILE", *whole]), 90, subsequent_indent=indent).replace("\0", " ")


_OPTION = re.compile(r"\[(?:[^][]|\[[^]]*\])*\]|\S+")


def _parsed(
    parser: argparse.ArgumentParser, commands: Mapping[str, argparse.ArgumentParser], arguments: Sequence[str]
) -> argparse.Namespace:
    """What the command line says. What it gets wrong is answered with what may have been meant."""
    command = next((word for word in arguments if not word.startswith("-")), None)
    if command is not None and command not in commands:
        near = suggestion(command, commands)
        parser.error(f"there is no command {command!r}{near}; the commands are {', '.join(commands)}")
    chosen, unknown = parser.parse_known_args(arguments)
    if unknown:
        options = sorted(set(re.findall(r"--[\w-]+", commands[chosen.command].format_help())))
        near = next(filter(None, (suggestion(word.partition("=")[0], options) for word in unknown)), "")
        if "--input" in options and unknown[0].endswith((".npy", ".npz")):
            near = f"; arrays are given by --input {' '.join(unknown)}"
        commands[chosen.command].error(f"unrecognized arguments: {' '.join(unknown)}{near}")
    return chosen
