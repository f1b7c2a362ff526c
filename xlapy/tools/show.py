"""`xlapy show`: what the compiler makes of a program."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import xlapy
from xlapy.executable import Executable
from xlapy.hlo.text import parse
from xlapy.support.errors import ParseError
from xlapy.tools.commands import add_command
from xlapy.tools.console import BOLD, painted, progress
from xlapy.tools.programs import add_options, add_program, add_size, chosen_options, load_static


def add_to(commands: Any) -> None:
    """Adds the subcommand to the parser."""
    parser = add_command(commands, "show", "show the kernels, LLVM IR or assembly of a program")
    add_program(parser)
    add_size(parser)
    add_options(parser)
    parser.add_argument("--hlo", action="store_true", help="the module after all passes")
    parser.add_argument("--kernels", action="store_true", help="what each kernel computes, and costs (the default)")
    parser.add_argument("--llvm", action="store_true", help="the LLVM IR of entry and kernels")
    parser.add_argument("--asm", action="store_true", help="their assembly")
    parser.set_defaults(run=_show)


def _show(chosen: argparse.Namespace) -> int:
    module = load_static(chosen)
    with progress("compiling"):
        executable = xlapy.compile(module, chosen_options(chosen))
    if chosen.kernels or not (chosen.hlo or chosen.llvm or chosen.asm):
        print(_kernels(executable))
    if chosen.hlo:
        print(executable.hlo_text(), end="")
    if chosen.llvm:
        print(executable.llvm_ir(), end="")
    if chosen.asm:
        print(executable.assembly(), end="")
    return 0


def _kernels(executable: Executable) -> str:
    """The instructions of the entry that are neither parameters nor constants, and the totals."""
    lines = [painted(str(executable.compile_stats()), BOLD, sys.stdout)]
    totals = {**executable.cost_analysis(), **executable.memory_analysis()}
    lines += [f"{name.replace('_', ' ')}: {value:,.0f}" for name, value in totals.items()]
    text = executable.hlo_text()
    try:
        entry = parse(text).entry
    except ParseError:  # large constants are left out
        return "\n".join([*lines, "", text])
    for instruction in entry.post_order():
        if instruction.opcode not in ("parameter", "constant", "tuple", "get-tuple-element"):
            inside = [one.opcode for called in instruction.called for one in called if one.opcode != "parameter"]
            ops = f" of {', '.join(dict.fromkeys(inside))}" if inside else ""
            operands = ", ".join(str(operand.shape) for operand in instruction.operands)
            lines.append(f"{instruction.name}: {instruction.opcode}({operands}) -> {instruction.shape}{ops}")
    return "\n".join(lines)
