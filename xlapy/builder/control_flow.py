"""Control flow: Call, While, Conditional. Computations are built ones or Python functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlapy.builder.arguments import as_list
from xlapy.builder.builder import ComputationLike, XlaBuilder
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_op, as_ops, builder_of
from xlapy.builder.regions import Structure, computation_of, pack, state_computation_of
from xlapy.builder.registry import op_function
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError, ShapeError


@op_function("call")
def Call(builder: XlaBuilder, computation: ComputationLike, operands: Sequence[Operand] = ()) -> XlaOp:
    """The result of `computation` for the operands; there may be none."""
    arguments = as_ops(builder, operands)
    called = computation_of(builder, computation, [argument.shape for argument in arguments], "called")
    return builder.record("call", arguments, called=[called])


@op_function("while")
def While(condition: ComputationLike, body: ComputationLike, init: Structure) -> XlaOp:
    """Runs `body` on the state as long as `condition` holds for it, from `init` on; returns the last state.

    `init` may be a list or tuple of values, nested if need be: Python functions then get the state in the same
    structure (or spread over as many parameters), and the body returns it so. The result is a tuple to unpack."""
    builder = builder_of(*_leaves(init))
    state = pack(builder, init)
    tested = state_computation_of(builder, condition, state, init, "condition", None)
    repeated = state_computation_of(builder, body, state, init, "body", state.shape)
    return builder.record("while", [state], called=[tested, repeated])


def _leaves(value: Structure) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for element in value for leaf in _leaves(element)]
    return [value]


@op_function("conditional")
def Conditional(selector: Operand | None = None, *arguments: Any, **named: Any) -> XlaOp:
    """Runs one branch on its operand and returns its result.

    `Conditional(predicate, true_operand, true_computation, false_operand, false_computation)` chooses by pred[];
    `Conditional(branch_index, branch_computations, branch_operands)` by s32[], where the last branch serves every index
    out of range. Operands may be structures, as for While."""
    if selector is None:
        raise ArgumentError(
            "nothing chooses a branch; it takes a predicate of type pred[], or a branch_index of type s32[]"
        )
    if len(arguments) + len(named) == len(_N_WAY):
        computations, operands = _bound(_N_WAY, arguments, named)
        return _conditional(
            selector, as_list(computations, "branch_computations"), as_list(operands, "branch_operands")
        )
    values = _bound(_TWO_WAY, arguments, named)
    true_operand, true_computation, false_operand, false_computation = values
    return _conditional(selector, [true_computation, false_computation], [true_operand, false_operand])


_N_WAY = ("branch_computations", "branch_operands")
_TWO_WAY = ("true_operand", "true_computation", "false_operand", "false_computation")


def _bound(names: Sequence[str], arguments: Sequence[Any], named: dict[str, Any]) -> list[Any]:
    """The arguments in the order of `names`."""
    values = dict(zip(names, arguments, strict=False))
    if len(arguments) + len(named) != len(names) or set(values) & set(named) or set(values) | set(named) != set(names):
        raise ArgumentError(
            f"besides the selector it takes ({', '.join(_TWO_WAY)}) or ({', '.join(_N_WAY)}); got {len(arguments)} "
            f"arguments and the names ({', '.join(named)})"
        )
    values.update(named)
    return [values[name] for name in names]


def _conditional(selector: Operand, computations: Sequence[Any], operands: Sequence[Structure]) -> XlaOp:
    builder = builder_of(selector, *_leaves(operands))
    if len(computations) != len(operands):
        raise ShapeError("Conditional.B1", f"{len(operands)} operands are given for {len(computations)} branches")
    values = [pack(builder, operand) for operand in operands]
    called = []
    like: Shape | None = None  # Python scalars that a branch returns have the types of the first branch
    for number, (computation, value) in enumerate(zip(computations, values, strict=True)):
        branch = state_computation_of(builder, computation, value, operands[number], f"branch_{number}", like)
        like = like or branch.root.shape
        called.append(branch)
    return builder.record("conditional", [as_op(builder, selector), *values], called=called)
