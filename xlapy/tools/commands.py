"""How subcommands are declared."""

from __future__ import annotations

import argparse
from typing import Any


def add_command(
    commands: Any, name: str, does: str, *, more: str = "", epilog: str | None = None
) -> argparse.ArgumentParser:
    """A subcommand. What it `does` stands in the list of commands and, as a sentence, at the head of its own help;
    `more` is said there only."""
    sentence = f"{does[:1].upper()}{does[1:]}. {more}".rstrip()
    parser: argparse.ArgumentParser = commands.add_parser(name, help=does, description=sentence, epilog=epilog)
    return parser
