"""The graph as a networkx graph, for analyses, and as DOT text, for drawings.

networkx takes longer to import than xlapy does, so it is imported when asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xlapy.hlo.graph import Computation, HloModule, Instruction, no_module
from xlapy.hlo.ops import Trait
from xlapy.support.text_forms import GRAPH_FORMS

if TYPE_CHECKING:
    import networkx

_COLOURS: Mapping[str, str] = {
    "structure": "#eeeeee",
    "elementwise": "#d7e8fa",
    "shapes": "#dff3df",
    "contractions": "#fde2c8",
    "reductions": "#f6d9ec",
    "collectives": "#fbd5d5",
    "communication": "#fbd5d5",
    "control_flow": "#fff3bf",
}


@GRAPH_FORMS.register("networkx")
def to_networkx(module: HloModule) -> networkx.MultiDiGraph[Any]:
    """A graph with one node per instruction of every computation.

    Nodes are named "computation/instruction" and carry `opcode`, `shape` and `bytes`; edges run from operand to user,
    with `operand` (its number) or `kind="control"`, and from the root of a called computation to its caller
    (`kind="call"`)."""
    _check_module(module)
    import networkx

    graph: networkx.MultiDiGraph[Any] = networkx.MultiDiGraph(name=module.name)
    for computation in module.computations():
        for instruction in computation.post_order():
            node = _name(instruction)
            graph.add_node(
                node,
                opcode=instruction.opcode,
                shape=str(instruction.shape),
                bytes=instruction.shape.bytes,
                computation=computation.name,
            )
            for number, operand in enumerate(instruction.operands):
                graph.add_edge(_name(operand), node, operand=number)
            for before in instruction.control_predecessors:
                graph.add_edge(_name(before), node, kind="control")
            for called in instruction.called:
                graph.add_edge(_name(called.root), node, kind="call")
    return graph


def critical_path(module: HloModule) -> list[str]:
    """The chain of instructions of the entry along which the most bytes are produced, first to last, by node names."""
    _check_module(module)
    import networkx

    entry = module.entry
    graph: networkx.DiGraph[Any] = networkx.DiGraph()
    for instruction in entry.post_order():
        graph.add_node(_name(instruction))
        for operand in instruction.operands:
            graph.add_edge(_name(operand), _name(instruction), weight=instruction.shape.bytes)
    path: list[str] = networkx.dag_longest_path(graph)
    return path


def to_dot(module: HloModule) -> str:
    """The module in Graphviz's language: one cluster per computation, colours by family of ops."""
    _check_module(module)
    lines = [f"digraph {_quoted(module.name)} {{", '  node [shape=box, style=filled, fontname="monospace"];']
    for number, computation in enumerate(module.computations()):
        lines += _cluster(number, computation)
    for computation in module.computations():
        for instruction in computation.post_order():
            lines += [
                f"  {_quoted(_name(operand))} -> {_quoted(_name(instruction))};" for operand in instruction.operands
            ]
            lines += [
                f"  {_quoted(_name(called.root))} -> {_quoted(_name(instruction))} [style=dashed];"
                for called in instruction.called
            ]
    return "\n".join([*lines, "}", ""])


def _check_module(module: object) -> None:
    if not isinstance(module, HloModule):
        raise no_module(module, "drawn")


def _cluster(number: int, computation: Computation) -> list[str]:
    lines = [f"  subgraph cluster_{number} {{", f"    label={_quoted(computation.name)};"]
    for instruction in computation.post_order():
        label = f"{instruction.opcode}\\n{instruction.name}\\n{instruction.shape.to_text()}"
        colour = "#f4b6b6" if instruction.has_effect else _COLOURS.get(instruction.spec.family, "#ffffff")
        border = ", penwidth=2" if instruction.is_root or Trait.CONTROL in instruction.spec.traits else ""
        lines.append(f'    {_quoted(_name(instruction))} [label={_quoted(label)}, fillcolor="{colour}"{border}];')
    return [*lines, "  }"]


def _name(instruction: Instruction) -> str:
    return f"{instruction.parent.name}/{instruction.name}"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
