"""A program written down in the orders that were chosen: every array row-major, its dimensions in the order of memory.

Followers and ops with forms are changed in place. Transposes between arrays that lie alike are gone, and others stand
where an array is needed in an order in which nobody makes it. A dot whose result has an order that its operands do not
lead to has a layout, and a transpose behind it that moves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from xlapy.hlo.attributes import ConvolutionDimensionNumbers, DotDimensionNumbers, Window
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Layout, Shape
from xlapy.passes.layouts.followers import SOURCES
from xlapy.passes.layouts.forms import Form, contracted, dot_dims, natural_orders
from xlapy.passes.layouts.orders import Order, inverse, is_movable, is_row_major, row_major, same_memory, taken
from xlapy.passes.layouts.prices import Prices, order_from
from xlapy.passes.layouts.regions import Element, Program
from xlapy.support.registry import Registry


def rebuild(prices: Prices) -> None:
    """Changes the module that the prices are about."""
    computations = [computation for computation in prices.program.runs if _is_affected(prices, computation)]
    builders = [_Builder(prices, computation) for computation in computations]
    for builder in builders:
        builder.run()


def _is_affected(prices: Prices, computation: Computation) -> bool:
    """Something in the computation, or in the state of a loop that it runs or is part of, has another order, or a dot
    reads its operands in another one."""
    program = prices.program
    changed = {element.loop for element, region in program.region_of_state.items() if not is_row_major(region.order)}
    return any(
        (i in program.region_of and not is_row_major(program.region_of[i].order))
        or program.states.get(i) in changed
        or (i.opcode == "dot" and i in prices.ops and prices.ops[i].is_reordered())
        for i in computation
    )


class _Builder:
    """Writes one computation anew. What is decided is read before anything is changed."""

    def __init__(self, prices: Prices, computation: Computation) -> None:
        self.computation = computation
        self.program = program = prices.program
        self.order = computation.post_order()
        self.produced: dict[Instruction, Order] = {}
        self.required: dict[tuple[Instruction, int], Order] = {}
        self.forms: dict[Instruction, Form] = {}
        self.shapes = {i: i.shape for i in self.order}
        for instruction in self.order:
            if instruction in program.region_of:
                self.produced[instruction] = order_from(prices.made(instruction))
            if instruction in prices.ops:
                self.forms[instruction] = prices.ops[instruction].form()
            for place, operand in enumerate(instruction.operands):
                origin = prices.read(instruction, place) if is_movable(operand.shape) else None
                if origin is not None:
                    self.required[instruction, place] = order_from(origin)
        self.spread = {i: i.operands[0] for i in self.order if i.opcode == "broadcast"}
        self.states = {i: _state_shape(program, program.states[i]) for i in self.order if i in program.states}
        self.stored: dict[Instruction, Instruction] = {}
        self.variants: dict[tuple[Instruction, Order], Instruction] = {}

    def run(self) -> None:
        root = self.computation.root
        parts = len(root.shape.parts) if root.shape.is_tuple else 1
        for instruction in self.order:
            self._rewrite(instruction)
        self.computation.set_root(self._result(root, [self.program.demanded.get((root, i)) for i in range(parts)]))
        self._remove_dead()

    def value(self, value: Instruction, wanted: Order) -> Instruction:
        """An array in an order: as it was made, or a copy, of which there is one for all."""
        if value.opcode in SOURCES and value not in self.produced:
            made, base = None, value
        else:
            made = self.produced.get(value) or row_major(self.shapes[value].rank)
            base = self.stored.get(value, value)
        if made == wanted:
            return base
        key = value, wanted
        if key not in self.variants:
            self.variants[key] = self._source(value, wanted) if made is None else self._copy(value, base, made, wanted)
        return self.variants[key]

    def _copy(self, value: Instruction, base: Instruction, made: Order, wanted: Order) -> Instruction:
        shape = self.shapes[value]
        target = shape.select_dims(wanted)
        if same_memory(made, wanted, shape.dims):
            return self.add("reshape", [base], target, value)
        places = tuple(map(made.index, wanted))
        return self.add("transpose", [base], target, value, permutation=places)

    def add(
        self, opcode: str, operands: Sequence[Instruction], shape: Shape, model: Instruction, **attributes: Any
    ) -> Instruction:
        return self.computation.add(opcode, operands, shape=shape, metadata=model.metadata, **attributes)

    def _source(self, source: Instruction, wanted: Order) -> Instruction:
        """A broadcast, iota or constant, made in an order."""
        places = inverse(wanted)
        shape = source.shape.select_dims(wanted)
        if source.opcode == "constant":
            if is_row_major(wanted):
                return source
            literal = source.attributes["literal"]
            turned = Literal(literal.array.transpose(wanted), shape)
            return self.add("constant", [], shape, source, literal=turned)
        if source.opcode == "iota":
            dimension = places[source.attributes["dimension"]]
            return source if is_row_major(wanted) else self.add("iota", [], shape, source, dimension=dimension)
        operand = self.spread[source]
        made = self.produced.get(operand) or row_major(self.shapes[operand].rank)
        stored = self.value(operand, made)
        if is_row_major(wanted) and is_row_major(made):
            self.computation.set_operands(source, [stored])
            return source
        dimensions = tuple(places[source.attributes["dimensions"][dim]] for dim in made)
        return self.add("broadcast", [stored], shape, source, dimensions=dimensions)

    def _rewrite(self, instruction: Instruction) -> None:
        if instruction.opcode in SOURCES:
            return
        if instruction.opcode == "parameter":
            self._parameter(instruction)
            return
        operands = [self._operand(instruction, place) for place in range(len(instruction.operands))]
        form = self.forms.get(instruction)
        if form is not None:
            _FORMS[instruction.opcode](self, instruction, operands, form)
        elif instruction in self.program.followers:
            self._follow(instruction, operands)
        else:
            self._keep(instruction, operands)

    def _operand(self, user: Instruction, place: int) -> Instruction:
        """An operand in the order in which `user` reads it."""
        operand = user.operands[place]
        if not is_movable(self.shapes[operand]):
            return self.stored.get(operand, operand)
        return self.value(operand, self.required.get((user, place)) or row_major(self.shapes[operand].rank))

    def _parameter(self, parameter: Instruction) -> None:
        """The state of a loop has the orders of its elements; what a caller has laid out is read as it lies."""
        loop = self.program.states.get(parameter)
        if loop is not None:
            self.computation.set_shape(parameter, self.states[parameter])
        given = self.program.given.get(parameter)
        if given is not None and not is_row_major(given):
            self.computation.set_shape(parameter, parameter.shape.with_layout(Layout(given[::-1])))
            target = self.shapes[parameter].select_dims(given)
            self.stored[parameter] = self.add("transpose", [parameter], target, parameter, permutation=given)

    def _follow(self, instruction: Instruction, operands: Sequence[Instruction]) -> None:
        """The same op on dimensions in another order."""
        result = self.program.followers[instruction]
        order = self.produced[result] if result is not None else self.required[instruction, 0]
        if not is_row_major(order):
            change = _ATTRIBUTES.get(instruction.opcode)
            if change is not None:
                operands, attributes = change(instruction, operands, order)
                self.computation.set_attributes(instruction, **attributes)
            shape = instruction.shape
            whole = Shape.tuple([part.select_dims(order) for part in shape.parts]) if shape.is_tuple else None
            self.computation.set_shape(instruction, whole or shape.select_dims(order))
        self._keep(instruction, operands)

    def _keep(self, instruction: Instruction, operands: Sequence[Instruction]) -> None:
        """The op as it is, on these operands; tuples and what is read from them have the shapes that there are now."""
        if list(operands) != [*instruction.operands]:
            self.computation.set_operands(instruction, operands)
        if instruction.opcode == "tuple":
            self.computation.set_shape(instruction, Shape.tuple([operand.shape for operand in operands]))
        elif instruction.opcode == "get-tuple-element":
            self.computation.set_shape(instruction, operands[0].shape.parts[instruction.attributes["index"]])
        elif instruction.opcode == "while":
            self.computation.set_shape(instruction, operands[0].shape)

    def _result(self, root: Instruction, demanded: Sequence[Order | None]) -> Instruction:
        """The root, in the order that callers want of it."""
        if root.opcode == "tuple":
            if any(order is not None and not is_row_major(order) for order in demanded):
                pairs = zip(root.operands, self.shapes[root].parts, demanded, strict=True)
                parts = [self._laid_out(operand, shape, order) for operand, shape, order in pairs]
                shape = Shape.tuple([part.shape for part in parts])
                return self.add("tuple", parts, shape, root)
            return root
        if not is_movable(self.shapes[root]):
            return self.stored.get(root, root)
        order = demanded[0] or row_major(self.shapes[root].rank)
        return self._laid_out(self.value(root, order), self.shapes[root], order)

    def _laid_out(self, stored: Instruction, shape: Shape, order: Order | None) -> Instruction:
        """An array that is stored in an order, as one with its own dimensions and a layout."""
        if order is None or is_row_major(order):
            return stored
        whole = shape.with_layout(Layout(order[::-1]))
        return self.add("transpose", [stored], whole, stored, permutation=inverse(order))

    def _remove_dead(self) -> None:
        dead: dict[Instruction, None] = {}
        for instruction in reversed(self.order):
            if instruction.opcode == "parameter" or instruction.is_root or not instruction.is_pure:
                continue
            if all(user in dead for user in instruction.users) and instruction not in self.program.pinned:
                dead[instruction] = None
        self.computation.remove(dead)


def _state_shape(program: Program, loop: Instruction) -> Shape:
    """The state of a loop, each element in its order."""
    regions = [program.region_of_state.get(Element(loop, index)) for index in range(len(loop.shape.parts))]
    parts = zip(loop.shape.parts, regions, strict=True)
    return Shape.tuple([part if region is None else part.select_dims(region.order) for part, region in parts])


# -- followers ---------------------------------------------------------------------------------------------------------

Change = Callable[[Instruction, Sequence[Instruction], Order], tuple[Sequence[Instruction], dict[str, Any]]]
_ATTRIBUTES: Registry[Change] = Registry("attributes in another order")


@_ATTRIBUTES.register("slice", "pad")
def _dimensions(instruction: Instruction, operands: Sequence[Instruction], order: Order) -> Any:
    return operands, {"dimensions": taken(instruction.attributes["dimensions"], order)}


@_ATTRIBUTES.register("reverse")
def _chosen(instruction: Instruction, operands: Sequence[Instruction], order: Order) -> Any:
    return operands, {"dimensions": tuple(sorted(map(order.index, instruction.attributes["dimensions"])))}


@_ATTRIBUTES.register("concatenate", "sort")
def _dimension(instruction: Instruction, operands: Sequence[Instruction], order: Order) -> Any:
    return operands, {"dimension": order.index(instruction.attributes["dimension"])}


@_ATTRIBUTES.register("reduce-window", "select-and-scatter")
def _window(instruction: Instruction, operands: Sequence[Instruction], order: Order) -> Any:
    return operands, {"window": Window(taken(instruction.attributes["window"].dimensions, order))}


@_ATTRIBUTES.register("dynamic-slice")
def _sliced(instruction: Instruction, operands: Sequence[Instruction], order: Order) -> Any:
    sizes = taken(instruction.attributes["slice_sizes"], order)
    return [operands[0], *taken(operands[1:], order)], {"slice_sizes": sizes}


@_ATTRIBUTES.register("dynamic-update-slice")
def _updated(instruction: Instruction, operands: Sequence[Instruction], order: Order) -> Any:
    return [*operands[:2], *taken(operands[2:], order)], {}


# -- ops with forms ----------------------------------------------------------------------------------------------------

Write = Callable[[_Builder, Instruction, Sequence[Instruction], Form], None]
_FORMS: Registry[Write] = Registry("ops written in other layouts")


@_FORMS.register("transpose")
def _transpose(builder: _Builder, instruction: Instruction, operands: Sequence[Instruction], form: Form) -> None:
    builder.stored[instruction] = operands[0]


@_FORMS.register("reshape")
def _reshape(builder: _Builder, instruction: Instruction, operands: Sequence[Instruction], form: Form) -> None:
    builder.computation.set_shape(instruction, instruction.shape.select_dims(form.result))
    builder.computation.set_operands(instruction, operands)


@_FORMS.register("reduce")
def _reduce(builder: _Builder, instruction: Instruction, operands: Sequence[Instruction], form: Form) -> None:
    dims = tuple(sorted(map(form.operands[0].index, instruction.attributes["dimensions"])))
    shape = instruction.shape
    if shape.is_tuple:
        shape = Shape.tuple([part.select_dims(form.result) for part in shape.parts])
    else:
        shape = shape.select_dims(form.result)
    builder.computation.set_attributes(instruction, dimensions=dims)
    builder.computation.set_shape(instruction, shape)
    builder.computation.set_operands(instruction, operands)


@_FORMS.register("dot")
def _dot(builder: _Builder, instruction: Instruction, operands: Sequence[Instruction], form: Form) -> None:
    """Rows first, or columns first; any other order is a layout."""
    left, right = form.operands
    if is_row_major(left) and is_row_major(right) and is_row_major(form.result):
        builder.computation.set_operands(instruction, operands)
        return
    dims = dot_dims(instruction)
    batch = tuple(sorted(dims.batch, key=lambda entry: form.result.index(entry[0])))
    numbers = _dot_numbers(instruction, batch, left, right)
    precision = instruction.attributes["operand_precision"]
    natural, exchanged = natural_orders(replace(dims, batch=batch), left, right)
    if form.result == exchanged and form.result != natural:
        natural, operands, precision = exchanged, operands[::-1], precision[::-1]
        numbers = numbers.exchanged()
    shape = instruction.shape.select_dims(natural)
    if form.result != natural:
        shape = shape.with_layout(Layout(tuple(natural.index(dim) for dim in reversed(form.result))))
    builder.computation.set_attributes(instruction, dimension_numbers=numbers, operand_precision=precision)
    builder.computation.set_operands(instruction, operands)
    builder.computation.set_shape(instruction, shape)
    if form.result != natural:
        permutation = tuple(map(natural.index, form.result))
        target = shape.select_dims(permutation)
        builder.stored[instruction] = builder.add(
            "transpose", [instruction], target, instruction, permutation=permutation
        )


def _dot_numbers(
    dot: Instruction, batch: Sequence[tuple[int, int, int]], left: Order, right: Order
) -> DotDimensionNumbers:
    """The dimension numbers of a dot on operands in these orders, batch dimensions (result, left, right) as listed."""
    lhs_contracting, rhs_contracting = contracted(dot, left)
    return DotDimensionNumbers(
        tuple(map(left.index, lhs_contracting)),
        tuple(map(right.index, rhs_contracting)),
        tuple(left.index(dim) for _, dim, _ in batch),
        tuple(right.index(dim) for _, _, dim in batch),
    )


@_FORMS.register("convolution")
def _convolution(builder: _Builder, instruction: Instruction, operands: Sequence[Instruction], form: Form) -> None:
    numbers: ConvolutionDimensionNumbers = instruction.attributes["dimension_numbers"]
    turned = numbers.reordered(*form.operands, form.result)
    builder.computation.set_attributes(instruction, dimension_numbers=turned)
    builder.computation.set_operands(instruction, operands)
    builder.computation.set_shape(instruction, instruction.shape.select_dims(form.result))
