"""Control flow: call, while, conditional."""

from __future__ import annotations

from xlapy.hlo.element_types import PRED, S32
from xlapy.hlo.ops.spec import Regions, Trait, Variadic, op
from xlapy.hlo.ops.structure import check_arguments
from xlapy.hlo.shape import Shape, Signature
from xlapy.support.errors import ShapeError


@op("call", traits={Trait.CONTROL}, hlo_text={"computation": "to_apply"})
def call(operands: Variadic, *, computation: Signature, is_composite: bool = False) -> Shape:
    """Invokes a computation.

    parameters [B1]: the arguments have the shapes of the parameters.
    """
    check_arguments("parameters", operands, computation)
    return computation.result.without_layout()


@op("while", traits={Trait.CONTROL})
def while_(init: Shape, *, condition: Signature, body: Signature) -> Shape:
    """Runs `body` on the state as long as `condition` holds for it, starting from `init`.

    condition-type [B1 C1]: the condition has type S -> pred, for a state of type S.
    body-type [B1 C2]: the body has type S -> S.
    """
    if len(condition.parameters) != 1 or not condition.parameters[0].fits(init):
        raise ShapeError("condition-type", f"a condition of type {condition} does not take a state of type {init}")
    if not condition.result.is_scalar or condition.result.element_type is not PRED:
        raise ShapeError("condition-type", f"a condition of type {condition} does not return pred[]")
    if len(body.parameters) != 1 or not body.parameters[0].fits(init) or not body.result.fits(init):
        raise ShapeError("body-type", f"a body of type {body} does not take a state of type {init} to itself")
    return body.result.without_layout()


@op("conditional", traits={Trait.CONTROL})
def conditional(selector: Shape, operands: Variadic, *, branches: Regions) -> Shape:
    """Runs one branch on its operand and returns its result.

    A selector of pred chooses between branch 0 (true) and branch 1 (false). One of s32 chooses branch `selector`; the
    last branch serves every other value.

    some-branches [B4 C1]: there is at least one branch.
    selector-type [B3]: the selector is a scalar, pred for two branches or s32.
    operand-each [B1]: each branch has one operand, of the type of its parameter.
    same-result [B2 C3]: all branches return the same type, but for dimensions that are bounded in some of them: those
    are bounded in the result.
    """
    if not branches:
        raise ShapeError("some-branches", "there is no branch to run")
    two_way = selector.element_type is PRED
    if not selector.is_scalar or (selector.element_type is not S32 and not two_way):
        raise ShapeError("selector-type", f"{selector} cannot choose a branch: pred[] or s32[] can")
    if two_way and len(branches) != 2:
        raise ShapeError("selector-type", f"pred[] chooses between two branches, not {len(branches)}")
    if len(operands) != len(branches):
        raise ShapeError("operand-each", f"{len(operands)} operands are given for {len(branches)} branches")
    for operand, branch in zip(operands, branches, strict=True):
        check_arguments("operand-each", (operand,), branch)
        if not branch.result.static().fits(branches[0].result.static()):
            raise ShapeError("same-result", f"the branches return {branches[0].result} and {branch.result}")
    result = branches[0].result.without_layout()
    for branch in branches[1:]:
        result = _bounded_in_either(result, branch.result)
    return result


def _bounded_in_either(one: Shape, other: Shape) -> Shape:
    """The shape of both, with every dimension bounded that is so in one of them."""
    if one.elements is not None:
        return Shape.tuple([_bounded_in_either(*parts) for parts in zip(one.parts, other.parts, strict=True)])
    if not one.is_array or one.dynamic == other.dynamic:
        return one
    return one.with_dims(one.dims, [one.is_dynamic_dim(dim) or other.is_dynamic_dim(dim) for dim in range(one.rank)])
