"""Steps of random programs that reach outside: infeed, outfeed, send and recv, in loops, branches and calls, whose
state is of nested tuples of arrays of all types, empty ones too, and of tokens.

Each computation has one chain of tokens, so that the order of its effects is fixed. It may part and join again, and
pass barriers along with arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.e2e.random_programs import MAX_DEPTH, Generator, Program, Scope, random_shape
from tests.e2e.random_structures import STEPS as STRUCTURES
from tests.support.values import random_array
from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.element_types import ALL, PRED, S32, U32, ElementType
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.shape import TOKEN, Shape

SIZES = (0, 1, 1, 2, 3, 5, 8, 17, 33)
TO_HOST, FROM_HOST = 301, 302
"""Channels."""

MOST_TURNS = 3


@dataclass(slots=True)
class Effects:
    """What the host gives in a program: all that comes through the infeed, and on the channel, is of one shape."""

    fed: Shape
    received: Shape


@dataclass(slots=True)
class EffectGenerator(Generator):
    """A generator that has a token, which is None where there are no effects."""

    token: Instruction | None = None
    effects: Effects = field(default_factory=lambda: Effects(Shape.scalar(S32), Shape.scalar(S32)))

    def inner(self, name: str, state: Sequence[Shape]) -> tuple[EffectGenerator, list[Instruction]]:
        """The generator of a computation of one tuple; and the parts of this."""
        made = EffectGenerator(self.random, Computation(name), self.depth + 1, scope=self.scope, effects=self.effects)
        parameter = made.add("parameter", number=0, shape=Shape.tuple(state))
        parts = [made.add("get-tuple-element", parameter, index=index) for index in range(len(state))]
        return made, parts

    def unpacked(self, value: Instruction) -> list[Instruction]:
        """The arrays in nested tuples; a token becomes the one to go on with."""
        if value.shape.is_tuple:
            parts = [self.add("get-tuple-element", value, index=i) for i in range(len(value.shape.parts))]
            return [leaf for part in parts for leaf in self.unpacked(part)]
        if value.shape.is_token:
            self.token = value
            return []
        return [value]

    def nested(self, shape: Shape) -> Instruction:
        """Something of a shape: of what there is, or made of it."""
        if shape.is_tuple:
            return self.add("tuple", *(self.nested(part) for part in shape.parts))
        if shape.is_token:
            assert self.token is not None
            return self.token
        return self.result(shape)

    def grow(self, steps: int) -> None:
        for _ in range(steps):
            self.step()


# -- effects -----------------------------------------------------------------------------------------------------------


def taken_in(g: EffectGenerator) -> Instruction | None:
    if g.token is None:
        return None
    return received(g, g.add("infeed", g.token, shape=Shape.tuple([g.effects.fed, TOKEN])))


def received(g: EffectGenerator, made: Instruction) -> Instruction | None:
    leaves = g.unpacked(made)
    g.values += leaves[1:]
    return leaves[0] if leaves else None


def put_out(g: EffectGenerator) -> None:
    if g.token is not None:
        value = g.nested(nest(g, [value.shape for value in g.state()]))
        g.token = g.add("outfeed", value, g.token, outfeed_shape=value.shape.without_layout())


def sent(g: EffectGenerator) -> None:
    if g.token is not None:
        started = g.add("send", g.value(), g.token, channel_id=TO_HOST, is_host_transfer=True)
        g.token = g.add("send-done", started, channel_id=TO_HOST, is_host_transfer=True)


def heard(g: EffectGenerator) -> Instruction | None:
    if g.token is None:
        return None
    started_shape = Shape.tuple([g.effects.received, Shape.scalar(U32), TOKEN])
    facts = {"channel_id": FROM_HOST, "is_host_transfer": True}
    started = g.add("recv", g.token, shape=started_shape, **facts)
    return received(g, g.add("recv-done", started, **facts))


def joined(g: EffectGenerator) -> None:
    if g.token is not None:
        others = [g.add("after-all"), g.token] if g.chance(0.5) else [g.token] * g.number(1, 3)
        g.token = g.add("after-all", *others)


def barrier(g: EffectGenerator) -> Instruction | None:
    shapes = [value.shape for value in g.state()] + [TOKEN] * (g.token is not None)
    return received(g, g.add("opt-barrier", g.nested(nest(g, shapes))))


# -- control flow ------------------------------------------------------------------------------------------------------


def nest(g: EffectGenerator, shapes: Sequence[Shape]) -> Shape:
    """The shapes in a tuple, some of them in tuples of their own, and an empty one at times."""
    parts: list[Shape] = []
    for shape in shapes:
        if parts and parts[-1].is_tuple and g.chance(0.5):
            parts[-1] = Shape.tuple([*parts[-1].parts, shape])
        else:
            parts.append(Shape.tuple([shape]) if g.chance(0.3) else shape)
    if g.chance(0.1):
        parts.insert(g.number(0, len(parts)), Shape.tuple([]))
    return Shape.tuple(parts)


def state_shapes(g: EffectGenerator) -> Shape:
    """Of arrays there are, others of any types, and the token."""
    shapes = [value.shape.without_layout() for value in g.state()]
    shapes += [random_shape(g).with_type(g.choose(COUNTED + MOVED)) for _ in range(g.number(0, 3))]
    shapes += [TOKEN] * (g.token is not None)
    return nest(g, [shapes[int(i)] for i in g.random.permutation(len(shapes))])


COUNTED: tuple[ElementType, ...] = tuple(t for t in ALL if t.is_integer and t.bits > 2)
MOVED: tuple[ElementType, ...] = tuple(ALL)


def loop(g: EffectGenerator) -> Instruction | None:
    """A loop that counts in any type, and ends early if some predicate of its state says so."""
    if g.depth >= MAX_DEPTH:
        return None
    shapes, kind = state_shapes(g), g.choose(COUNTED)
    state = [Shape.scalar(kind), shapes]
    body, (count, carried) = g.inner("body", state)
    body.values = [count, *body.unpacked(carried)]
    body.grow(g.number(1, 7))
    following = body.add("add", count, body.number_constant(1, kind))
    body.computation.set_root(body.add("tuple", following, body.nested(shapes)))
    condition, (count, carried) = g.inner("condition", state)
    condition.values = [count, *condition.unpacked(carried)]
    condition.token = None
    limit = condition.number_constant(g.number(0, MOST_TURNS), kind)
    goes_on = condition.add("compare", count, limit, direction=ComparisonDirection.LT)
    if g.chance(0.3):
        condition.depth = MAX_DEPTH
        condition.grow(g.number(1, 3))
        goes_on = condition.add("and", goes_on, condition.fitted(condition.value(), Shape.scalar(PRED)))
    condition.computation.set_root(goes_on)
    start = g.add("tuple", g.number_constant(0, kind), g.nested(shapes))
    return received(g, g.add("while", start, called=[condition.computation, body.computation]))


def branch(g: EffectGenerator) -> Instruction | None:
    if g.depth >= MAX_DEPTH:
        return None
    two_way, results = g.chance(0.5), state_shapes(g)
    selector = g.fitted(g.value(lambda shape: not shape.rank), Shape.scalar(PRED if two_way else S32))
    branches, operands = [], []
    for number in range(2 if two_way else g.number(1, 4)):
        shapes = state_shapes(g)
        inner, parts = g.inner(f"branch{number}", shapes.parts)
        inner.values = [leaf for part in parts for leaf in inner.unpacked(part)]
        inner.grow(g.number(0, 5))
        inner.computation.set_root(inner.nested(results))
        branches.append(inner.computation)
        operands.append(g.nested(shapes))
    return received(g, g.add("conditional", selector, *operands, called=branches))


def call(g: EffectGenerator) -> Instruction | None:
    if g.depth >= MAX_DEPTH:
        return None
    shapes, results = state_shapes(g), state_shapes(g)
    inner, parts = g.inner("callee", shapes.parts)
    inner.values = [leaf for part in parts for leaf in inner.unpacked(part)]
    inner.grow(g.number(1, 5))
    inner.computation.set_root(inner.nested(results))
    return received(g, g.add("call", g.nested(shapes), called=[inner.computation]))


def among_effects(step: Callable[[EffectGenerator], Instruction | None]) -> Callable[[Generator], Instruction | None]:
    """The step; nothing in the computations that other steps make, which have no tokens."""
    return lambda g: step(g) if isinstance(g, EffectGenerator) else None


STEPS = tuple(map(among_effects, (taken_in, put_out, sent, heard, joined, barrier, loop, branch, call))) * 2
SCOPE = Scope(sizes=SIZES, max_elements=1024, steps=(*STEPS, *STRUCTURES))


def random_effects(seed: int, steps: int = 15) -> tuple[Program, Effects]:
    """A program, and the shapes of what the host gives it."""
    random = np.random.default_rng(seed)
    g = EffectGenerator(random, Computation("main"), scope=SCOPE)
    g.effects = Effects(nest(g, [random_shape(g) for _ in range(g.number(0, 3))]), random_shape(g))
    shapes = [random_shape(g) for _ in range(g.number(1, 4))]
    g.values = [g.add("parameter", number=number, shape=shape) for number, shape in enumerate(shapes)]
    g.token = g.add("after-all")
    g.grow(steps)
    last = [value.shape for value in g.values[-g.number(1, 6) :]]
    g.computation.set_root(g.nested(nest(g, [shape.without_layout() for shape in last] + [TOKEN] * g.chance(0.5))))
    arguments = [random_array(random, shape.type, shape.dims) for shape in shapes]
    return Program(HloModule(f"effects_{seed}", g.computation), arguments), g.effects
