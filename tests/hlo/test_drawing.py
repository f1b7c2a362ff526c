"""Graphs for analyses and drawings."""

from __future__ import annotations

import xlapy

MODULE = """HloModule drawn
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY main { x = f32[4,8] parameter(0)  z = f32[] constant(0)
  e = f32[4,8] exponential(x)
  ROOT r = f32[4] reduce(e, z), dimensions={1}, to_apply=add }
"""


def test_networkx_graph() -> None:
    graph = xlapy.hlo.parse(MODULE).to_networkx()
    assert graph.nodes["main/e"] == {"opcode": "exponential", "shape": "f32[4,8]", "bytes": 128, "computation": "main"}
    assert [data for _, _, data in graph.edges("main/z", data=True)] == [{"operand": 1}]
    assert [data for _, _, data in graph.edges("add/s", data=True)] == [{"kind": "call"}]
    assert len(graph) == 7


def test_critical_path() -> None:
    assert xlapy.hlo.critical_path(xlapy.hlo.parse(MODULE)) == ["main/x", "main/e", "main/r"]


def test_dot_text() -> None:
    text = xlapy.hlo.to_dot(xlapy.hlo.parse(MODULE))
    assert text.startswith('digraph "drawn" {') and text.rstrip().endswith("}")
    assert '"main/e" -> "main/r";' in text and '"add/s" -> "main/r" [style=dashed];' in text
    assert text.count("subgraph") == 2
