"""What a program costs in the orders that its regions have at the moment.

    arrays   the bytes moved to bring each into every other order in which somebody reads it
    ops      the prices of their forms, and of followers in the order of their region

each as often as its computation runs. Who makes and reads an array is found once; then only orders change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import BLOCKED_TRANSPOSE_BYTES
from xlapy.hlo.shape import Shape
from xlapy.passes.layouts.followers import PRICED_FOLLOWERS, SOURCES, price_of_following
from xlapy.passes.layouts.forms import FORMS, Form
from xlapy.passes.layouts.orders import Order, fastest, is_movable, is_row_major, row_major, same_memory
from xlapy.passes.layouts.regions import Element, Program, Region
from xlapy.support.errors import InternalError

RELAYOUT_START = 32 * 1024
"""One more kernel, in bytes: it is compiled, and started each time. Small copies are made where they are used."""


def relayout_bytes(shape: Shape, one: Order, other: Order) -> float:
    """What it costs to bring an array from one order into another: bytes read and written.

    Half as much where the fastest dimension stays, as copies of whole runs find a place in other kernels."""
    if same_memory(one, other, shape.dims):
        return 0.0
    factor = 1 if fastest(one, shape.dims) == fastest(other, shape.dims) else 2
    start = RELAYOUT_START if shape.bytes > BLOCKED_TRANSPOSE_BYTES else 0
    return float(factor * shape.bytes + start)


RESULT = -1
"""The place of the result of an op with forms, beside those of its operands."""


@dataclass(slots=True)
class Changes:
    """How often regions have been given other orders."""

    count: int = 0


@dataclass(eq=False, slots=True)
class FormedOp:
    """An op with forms, between the regions of its arrays; the last one is that of the result."""

    instruction: Instruction
    arrays: Sequence[Instruction]
    regions: tuple[Region, ...]
    copied: tuple[bool, ...]  # bringing the array into another order is a copy
    runs: float
    changes: Changes
    _at: int = -1  # how many changes there had been when `_now` was found
    _now: Form | None = None
    _forms: dict[tuple[Order, ...], list[Form]] = field(default_factory=dict)
    _best: dict[tuple[Order, ...], Form] = field(default_factory=dict)

    def orders(self) -> tuple[Order, ...]:
        return tuple([region.order for region in self.regions])

    def forms(self) -> list[Form]:
        """The forms that deserve a thought in the orders that there are."""
        orders = self.orders()
        found = self._forms.get(orders)
        if found is None:
            found = [*FORMS[self.instruction.opcode](self.instruction, orders[:-1], orders[-1])]
            self._forms[orders] = found
        return found

    def form(self) -> Form:
        """The form that is cheapest, together with the copies around the op; the first of equals."""
        if self._now is not None and self._at == self.changes.count:
            return self._now
        orders = self.orders()
        found = self._best.get(orders)
        if found is None:
            found = self._best[orders] = self._cheapest(orders)
        self._at, self._now = self.changes.count, found
        return found

    def _cheapest(self, orders: tuple[Order, ...]) -> Form:
        """Looks at forms until one costs nothing: mostly the op's own."""
        found: Form | None = None
        lowest = 0.0
        for form in self._forms.get(orders) or FORMS[self.instruction.opcode](
            self.instruction, orders[:-1], orders[-1]
        ):
            price = self._price_with_copies(form, orders)
            if found is None or price < lowest:
                found, lowest = form, price
            if not price:
                break
        if found is None:
            raise InternalError(f"{self.instruction} has no form at all")
        return found

    def _price_with_copies(self, form: Form, orders: tuple[Order, ...]) -> float:
        ends = zip(self.regions, self.copied, orders, (*form.operands, form.result), strict=True)
        return form.price + sum(
            relayout_bytes(region.shape, order, wanted) for region, copied, order, wanted in ends if copied
        )

    def price(self) -> float:
        return self.form().price * self.runs

    def is_reordered(self) -> bool:
        """Whether the op reads or writes anything in another order than it does in the program as it is."""
        form = self.form()
        return not all(map(is_row_major, (*form.operands, form.result)))


@dataclass(eq=False, slots=True)
class PricedFollower:
    """An op that takes any order, some at a price."""

    instruction: Instruction
    regions: tuple[Region]
    runs: float

    def price(self) -> float:
        return price_of_following(self.instruction, self.regions[0].order) * self.runs


Origin: TypeAlias = "Order | Region | tuple[FormedOp, int]"
"""Where an order comes from: it is fixed, that of a region, or that of a place in the form of an op."""


def order_from(origin: Origin) -> Order:
    if isinstance(origin, Region):
        return origin.order
    first = origin[0] if origin else 0
    if isinstance(first, int):
        return origin  # type: ignore[return-value]
    form = first.form()
    place = origin[1]
    return form.result if place == RESULT else form.operands[place]


def _regions_of(origin: Origin) -> tuple[Region, ...]:
    """The regions on which an order hangs."""
    if isinstance(origin, Region):
        return (origin,)
    return origin[0].regions if origin and isinstance(origin[0], FormedOp) else ()


@dataclass(eq=False, slots=True)
class Border:
    """An array that may be made in one order and read in others."""

    shape: Shape
    made: Origin
    read: list[Origin]
    runs: float
    regions: tuple[Region, ...]  # those that say how it is made and read
    _copies: dict[tuple[Order, Order], float] = field(default_factory=dict)

    def price(self) -> float:
        made = order_from(self.made)
        wanted = {order_from(origin) for origin in self.read}
        return self.runs * sum([self._copy(made, order) for order in wanted if order != made])

    def _copy(self, made: Order, wanted: Order) -> float:
        found = self._copies.get((made, wanted))
        if found is None:
            found = self._copies[made, wanted] = relayout_bytes(self.shape, made, wanted)
        return found


Priced: TypeAlias = "Border | FormedOp | PricedFollower"


class Prices:
    """All that has a price in a program, by the regions on which it hangs."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.changes = Changes()
        self.ops = {i: self._formed(i) for i in program.formed}
        self.of_region: dict[Region, dict[Priced, None]] = {region: {} for region in program.regions}
        for op in self.ops.values():
            self._enter(op, op.regions)
        for instruction, result in program.followers.items():
            if instruction.opcode in PRICED_FOLLOWERS and result is not None:
                region = program.region_of[result]
                priced = PricedFollower(instruction, (region,), program.runs[instruction.parent])
                self._enter(priced, priced.regions)
        for region in program.regions:
            for member in region.members:
                self._enter_border(member)

    def around(self, regions: Iterable[Region]) -> list[Priced]:
        """All whose price hangs on the orders of some regions."""
        found: dict[Priced, None] = {}
        for region in regions:
            found.update(self.of_region[region])
        return [*found]

    def _formed(self, instruction: Instruction) -> FormedOp:
        program = self.program
        reduces = instruction.opcode == "reduce"
        arrays = instruction.operands[: len(instruction.operands) // 2] if reduces else instruction.operands
        result = next(program.array_results(instruction), instruction)
        ends = [*arrays, result]
        regions = tuple([program.region_of.get(end) or Region(_array_shape(end)) for end in ends])
        copied = tuple([is_movable(end.shape) and end.opcode not in SOURCES for end in ends])
        return FormedOp(instruction, arrays, regions, copied, program.runs[instruction.parent], self.changes)

    def set_orders(self, orders: Mapping[Region, Order]) -> None:
        """Gives regions other orders."""
        self.changes.count += 1
        for region, order in orders.items():
            region.order = order

    def _enter(self, priced: Priced, regions: Iterable[Region]) -> None:
        for region in regions:
            if region in self.of_region:
                self.of_region[region][priced] = None

    def _enter_border(self, value: Instruction) -> None:
        made = self.made(value)
        read = dict.fromkeys(origin for origin in self.readers(value) if origin != made)
        if not read:
            return
        regions: dict[Region, None] = {}
        for origin in (made, *read):
            regions.update(dict.fromkeys(_regions_of(origin)))
        border = Border(value.shape, made, [*read], self.program.runs[value.parent], tuple(regions))
        self._enter(border, border.regions)

    # -- who makes and reads -----------------------------------------------------------------------------------------

    def made(self, value: Instruction) -> Origin:
        """The order in which an array is made."""
        program = self.program
        if program.state_element(value) is not None:
            return program.region_of[value]
        maker = value.operands[0] if value.opcode == "get-tuple-element" else value
        if maker in self.ops:
            return self.ops[maker], RESULT
        if maker in program.followers:
            return program.region_of[value]
        return program.given.get(value) or row_major(value.shape.rank)

    def readers(self, value: Instruction) -> Iterator[Origin]:
        """The orders in which an array is read, that of the result of its computation among them."""
        for user in value.users:
            for place, operand in enumerate(user.operands):
                if operand is value:
                    origin = self.read(user, place)
                    if origin is not None:
                        yield origin
        if value.is_root:
            yield self.program.demanded.get((value, 0)) or row_major(value.shape.rank)

    def read(self, user: Instruction, place: int) -> Origin | None:
        """The order in which `user` reads an operand; None if any will do."""
        program, operand = self.program, user.operands[place]
        if user in self.ops:
            op = self.ops[user]
            return (op, place) if place < len(op.arrays) else row_major(operand.shape.rank)
        if user in program.followers:
            result = program.followers[user]
            return program.region_of.get(result or operand) or row_major(operand.shape.rank)
        if user.opcode == "broadcast":
            return None
        if user.opcode == "tuple":
            loop = program.states.get(user)
            region = program.region_of_state.get(Element(loop, place)) if loop is not None else None
            if region is not None:
                return region
            if user.is_root:
                return program.demanded.get((user, place)) or row_major(operand.shape.rank)
        return row_major(operand.shape.rank)


def _array_shape(value: Instruction) -> Shape:
    """The shape of an array, or of the first one of a tuple that nobody reads."""
    return value.shape.leaves()[0]
