"""How collectives are written in StableHLO.

A start op is written as the whole operation; the done op is its result.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import ReplicaGroups
from xlapy.hlo.graph import Instruction
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.convert.collectives import FILLER
from xlapy.stablehlo.convert.communication import DEVICE_TO_DEVICE
from xlapy.stablehlo.write.base import (
    EMITTERS,
    Steps,
    Tree,
    Writer,
    integers_text,
    leaves,
    list_text,
    unpacked_shapes,
)
from xlapy.stablehlo.write.forms import Attributes

Trees = Sequence[Tree]
emits = EMITTERS.register


@emits("all-reduce", "all-reduce-start")
def all_reduce(w: Writer, i: Instruction, operands: Trees) -> Steps:
    return (yield from _reducing(w, "stablehlo.all_reduce", i, operands, _group(i)))


@emits("reduce-scatter", "reduce-scatter-start")
def reduce_scatter(w: Writer, i: Instruction, operands: Trees) -> Steps:
    attributes = {"scatter_dimension": f"{i.attributes['dimension']} : i64", **_group(i)}
    return (yield from _reducing(w, "stablehlo.reduce_scatter", i, operands, attributes))


def _reducing(w: Writer, name: str, i: Instruction, operands: Trees, attributes: Attributes) -> Steps:
    names, shapes = _flat(i, operands)
    result = _result(i)
    regions = [(computation, None) for computation in i.called]
    written = yield from w.with_regions(name, names, shapes, unpacked_shapes(result), regions, attributes)
    return w.packed(written, result)


@emits("all-gather", "all-gather-start")
def all_gather(w: Writer, i: Instruction, operands: Trees) -> Tree:
    attributes = {"all_gather_dim": f"{i.attributes['dimension']} : i64", **_group(i)}
    names, shapes = _flat(i, operands)
    result = _result(i)
    return w.packed(w.simple("stablehlo.all_gather", names, shapes, unpacked_shapes(result), attributes), result)


@emits("all-to-all", "all-to-all-start")
def all_to_all(w: Writer, i: Instruction, operands: Trees) -> Tree:
    names, shapes = _flat(i, operands)
    dimension = i.attributes["dimension"]
    if dimension is None:
        return _exchanged_operands(w, i, names, shapes[0])
    groups: ReplicaGroups = i.attributes["replica_groups"]
    count = len(groups.groups[0]) if groups.groups else w.process_count(bool(i.attributes["channel_id"]))
    return w.simple("stablehlo.all_to_all", names, shapes, shapes, _exchange(i, dimension, count))[0]


def _exchange(i: Instruction, dimension: int, count: int) -> Attributes:
    return {
        "split_dimension": f"{dimension} : i64",
        "concat_dimension": f"{dimension} : i64",
        "split_count": f"{count} : i64",
        **_group(i),
    }


def _exchanged_operands(w: Writer, i: Instruction, names: Sequence[str], shape: Shape) -> Tree:
    """The operands as rows of one array, which is cut along a dimension in front of all others."""
    count = len(names)
    row = shape.with_dims((1, *shape.dims))
    table = shape.with_dims((count, *shape.dims))
    rows = [w.simple("stablehlo.reshape", [name], [shape], [row])[0] for name in names]
    (joined,) = w.simple("stablehlo.concatenate", rows, [row] * count, [table], {"dimension": "0 : i64"})
    (received,) = w.simple("stablehlo.all_to_all", [joined], [table], [table], _exchange(i, 0, count))
    results = []
    for number in range(count):
        limits = {
            "start_indices": integers_text([number, *[0] * shape.rank]),
            "limit_indices": integers_text([number + 1, *shape.dims]),
            "strides": integers_text([1] * table.rank),
        }
        (part,) = w.simple("stablehlo.slice", [received], [table], [row], limits)
        results += w.simple("stablehlo.reshape", [part], [row], [shape])
    return tuple(results)


@emits("collective-broadcast", "collective-broadcast-start")
def collective_broadcast(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return _each(w, "stablehlo.collective_broadcast", i, operands, _group(i))


@emits("collective-permute", "collective-permute-start")
def collective_permute(w: Writer, i: Instruction, operands: Trees) -> Tree:
    pairs = i.attributes["source_target_pairs"].pairs
    attributes = {"source_target_pairs": _table_text(pairs, 2), **_channel(i)}
    return _each(w, "stablehlo.collective_permute", i, operands, attributes)


def _each(w: Writer, name: str, i: Instruction, operands: Trees, attributes: Attributes) -> Tree:
    """One operation for each operand."""
    names, shapes = _flat(i, operands)
    results = [
        w.simple(name, [value], [shape], [shape], attributes)[0] for value, shape in zip(names, shapes, strict=True)
    ]
    return results[0] if len(results) == 1 else tuple(results)


def _flat(i: Instruction, operands: Trees) -> tuple[list[str], list[Shape]]:
    return [name for operand in operands for name in leaves(operand)], [operand.shape for operand in i.operands]


def _result(i: Instruction) -> Shape:
    """What the synchronous op returns."""
    return i.shape.parts[1] if i.spec.start_of and "async_shape" in i.spec.options else i.shape


def _done(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return operands[0]


for _name, _spec in OPS.items():
    if _spec.done_of is not None:
        EMITTERS.add(_name, _done)


def _group(i: Instruction) -> Attributes:
    """The attributes that collectives share: who takes part."""
    groups = i.attributes["replica_groups"].groups
    attributes = {"replica_groups": _table_text(groups, max(map(len, groups), default=0)), **_channel(i)}
    if i.attributes.get("use_global_device_ids"):
        attributes["use_global_device_ids"] = ""
    return attributes


def _channel(i: Instruction) -> Attributes:
    channel = i.attributes["channel_id"]
    if not channel:
        return {}
    return {"channel_handle": f"#stablehlo.channel_handle<handle = {channel}, type = {DEVICE_TO_DEVICE}>"}


def _table_text(rows: Sequence[Sequence[int]], width: int) -> str:
    """A table, in which short rows are filled up."""
    texts = [list_text([*row, *[FILLER] * (width - len(row))]) for row in rows]
    body = f"[{', '.join(texts)}]" if texts and width else ""
    return f"dense<{body}> : tensor<{len(rows)}x{width}xi64>"
