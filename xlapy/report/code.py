"""The code of each function of a program, as LLVM IR and as assembly."""

from __future__ import annotations

import re
from collections.abc import Mapping

from xlapy.codegen.program import assembly_of
from xlapy.report.observation import Observation

MOST_IR = 4_000_000
"""Characters of IR beyond which assembly is left out: making it takes as long as compiling does."""

_IR_FUNCTION = re.compile(r"^define [^@\n]*@\"?([\w.$-]+)\"?\(.*?^\}", re.MULTILINE | re.DOTALL)
_ASSEMBLY_FUNCTION = re.compile(
    r"^\s*\.type\s+\"?([\w.$-]+)\"?,[@%]function\n(.*?)^\.Lfunc_end\d+:", re.MULTILINE | re.DOTALL
)
_NOISE = re.compile(r"^\s*\.(?:cfi_\w+|p2align|type|globl|size|section|text).*\n", re.MULTILINE)


def ir_functions(observation: Observation) -> dict[str, str]:
    """The LLVM IR of each function, by name."""
    return {
        found[1]: found[0] for module in observation.emitted.modules for found in _IR_FUNCTION.finditer(module.text)
    }


def assembly_functions(observation: Observation) -> Mapping[str, str]:
    """The assembly of each function, by name; none of a program that is very large."""
    modules = observation.emitted.modules
    if sum(len(module.text) for module in modules) > MOST_IR:
        return {}
    found = {}
    for text, level, reduces_strength in modules:
        assembly = assembly_of(text, observation.target, level, reduces_strength=reduces_strength)
        for function in _ASSEMBLY_FUNCTION.finditer(assembly):
            found[function[1]] = _NOISE.sub("", function[2])
    return found
