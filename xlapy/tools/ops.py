"""`xlapy ops`: the op table as it is, with what each op has and lacks, and all that is said of one op."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from xlapy.builder.methods import snake_case
from xlapy.builder.registry import FUNCTIONS, NOT_RECORDED, RECORDED_BY
from xlapy.codegen.elements import ELEMENTS
from xlapy.codegen.entry import HANDLERS, NO_CODE
from xlapy.codegen.kernels.makers import KERNELS, RUNS_AS_LOOP
from xlapy.hlo.evaluate import EVALUATORS
from xlapy.hlo.ops import OPS, OpSpec, Trait
from xlapy.passes.pipelines import EXPANDED
from xlapy.stablehlo.write import EMITTERS
from xlapy.support.errors import UnsupportedError
from xlapy.support.source import suggestion
from xlapy.tools.commands import add_command
from xlapy.tools.method_types import stub
from xlapy.tools.operations_page import builder_names, page, section, stablehlo_names


def has_native_code(spec: OpSpec) -> bool:
    """Compiled programs run the op: in registers, as a kernel, as simpler ops, as control flow, or through the
    runtime."""
    return (
        spec.name in ELEMENTS
        or spec.name in EXPANDED
        or spec.name in KERNELS
        or spec.name in HANDLERS
        or spec.name in NO_CODE
        or spec.name in RUNS_AS_LOOP
        or bool(spec.traits & {Trait.INDEX_MAP, Trait.RUNTIME, Trait.ELEMENTWISE})
    )


CONCERNS: dict[str, Callable[[OpSpec], bool]] = {
    "builder": lambda spec: spec.name in RECORDED_BY or spec.name in NOT_RECORDED,
    "StableHLO": lambda spec: spec.name in EMITTERS,
    "evaluator": lambda spec: spec.name in EVALUATORS,
    "native code": has_native_code,
}
"""What an op needs besides its row in the table, from which HLO text and verification follow."""


def lacking(spec: OpSpec) -> list[str]:
    """The concerns that the op has nothing for."""
    return [concern for concern, has in CONCERNS.items() if not has(spec)]


def add_to(commands: Any) -> None:
    """Adds the subcommand to the parser."""
    parser = add_command(commands, "ops", "list the operations, and what each has and lacks; describe one")
    parser.add_argument("name", metavar="NAME", nargs="?", help="tell all of this one, by any of its names")
    parser.add_argument("--lacking", action="store_true", help="only those that lack something")
    parser.add_argument("--page", action="store_true", help="print docs/operations.md instead")
    parser.add_argument("--stub", action="store_true", help="print xlapy/builder/method_types.pyi instead")
    parser.set_defaults(run=_ops)


def _ops(chosen: argparse.Namespace) -> int:
    if chosen.page:
        print(page(), end="")
        return 0
    if chosen.stub:
        print(stub(), end="")
        return 0
    if chosen.name is not None:
        print("\n".join(_described(chosen.name)))
        return 0
    width = max(len(name) for name in OPS)
    for spec in OPS.values():
        missing = lacking(spec)
        if missing or not chosen.lacking:
            status = f"lacks {', '.join(missing)}" if missing else "complete"
            print(f"{spec.name:{width}}  {spec.family:14}  {status}")
    complete = sum(not lacking(spec) for spec in OPS.values())
    print(f"{complete} of {len(OPS)} operations are complete")
    return 0


def _described(name: str) -> Iterable[str]:
    """Of the op that HLO, StableHLO or the builder calls so, what the page says; of a function that is made of others,
    what it says itself."""
    specs: dict[str, OpSpec] = {}
    for spec in OPS.values():
        specs |= dict.fromkeys((*builder_names(spec), *stablehlo_names(spec), spec.python_name, spec.name), spec)
    methods = {snake_case(function): function for function in FUNCTIONS}
    if name not in specs:
        name = methods.get(name, name)
    if name in specs:
        return section(specs[name])
    if name not in FUNCTIONS:
        raise UnsupportedError(f"there is no operation {name!r}{suggestion(name, {*specs, *FUNCTIONS, *methods})}")
    function = FUNCTIONS[name]
    signature = str(inspect.signature(function)).replace("'", "")
    return f"### {name}", "", f"`{name}{signature}`", "", inspect.getdoc(function) or ""
