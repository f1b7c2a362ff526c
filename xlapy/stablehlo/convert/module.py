"""From the tree of a text to an `HloModule`: functions callees first, regions inner first, so that nothing recurses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from xlapy.hlo.graph import Computation, HloModule, Instruction, ModuleConfig, ModuleSource
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import fingerprint
from xlapy.stablehlo.convert.arity import check_arity
from xlapy.stablehlo.convert.base import (
    CONVERSIONS,
    FLAT,
    Body,
    Conversion,
    Elements,
    attribute,
    composed,
    constant_literal,
)
from xlapy.stablehlo.convert.donation import donations
from xlapy.stablehlo.convert.labels import other_label, result_count_label, result_label
from xlapy.stablehlo.convert.quantized import convert_quantized, involves_quantized
from xlapy.stablehlo.locations import Locations
from xlapy.stablehlo.parser import Parser
from xlapy.stablehlo.quantization import is_quantized, storage_shape
from xlapy.stablehlo.tree import CONSTANTS, Operation, Region, Symbol, Template, Value
from xlapy.stablehlo.types import FunctionType, type_text
from xlapy.support.errors import ParseError, ShapeError, UnsupportedError, XlaError
from xlapy.support.ordering import CycleError, post_order
from xlapy.support.source import suggestion

_SKIPPED = frozenset({"sdy.mesh"})
"""Module-level operations that say nothing about what is computed."""

_CALLERS = frozenset({"func.call", "stablehlo.composite", "stablehlo.custom_call"})
"""Operations whose symbols are functions that they call."""

_LABEL = re.compile(r"C[0-9]+")
_NOT_IN_NAMES = re.compile(r"[^\w.-]")

_TERMINATORS = frozenset({"func.return", "stablehlo.return", "mhlo.return", "shape.assuming_yield"})


def convert_program(parser: Parser, top: Operation) -> HloModule:
    """The module of a whole text, which holds one module or some functions."""
    return _ProgramConverter(parser).convert(top)


class _ProgramConverter:
    def __init__(self, parser: Parser) -> None:
        self._tokens = parser.tokens
        self._has_quantized_types = parser.has_quantized_types
        self._locations = Locations(parser.location_aliases)
        self._functions: dict[str, Operation] = {}
        self._computations: dict[str, Computation] = {}
        self._regions: dict[Operation, Sequence[Computation]] = {}
        self._of_regions: dict[Region, Computation] = {}
        self._examples: dict[Template, Instruction] = {}
        self._names: dict[str, int] = {}

    def convert(self, top: Operation) -> HloModule:
        module = self._module(top)
        for operation in module.regions[0].operations:
            self._declare(operation)
        try:
            config = ModuleConfig(
                num_replicas=attribute(module, "mhlo.num_replicas", int, 1),
                num_partitions=attribute(module, "mhlo.num_partitions", int, 1),
            )
            name = attribute(module, "sym_name", str, "module")
        except XlaError as error:
            raise self._located(error, module) from None
        entry = self._entry(module)
        for needed in self._callees_first(entry):
            self._convert_function(needed)
        converted = HloModule(name, self._computations[entry], config)
        try:
            config.aliases, config.donors = donations(self._functions[entry], converted.signature)
        except XlaError as error:
            raise self._located(error, self._functions[entry]) from None
        if self._has_quantized_types:
            converted.source = ModuleSource(self._tokens.source.text, fingerprint(converted))
        return converted

    def _declare(self, operation: Operation) -> None:
        if operation.name in _SKIPPED:
            return
        if operation.name != "func.func":
            raise self._error("expected a function here", operation)
        name = operation.attributes.get("sym_name")
        if not isinstance(name, str):
            raise self._error("a function needs a name", operation)
        if name in self._functions:
            raise self._error(f"a second function is named @{name}", operation)
        self._functions[name] = operation

    def _error(self, message: str, operation: Operation) -> ParseError:
        return self._tokens.error(message, operation.place)

    def _module(self, top: Operation) -> Operation:
        """The module that holds the functions: the text's own, or the nameless one around its functions."""
        operations = top.regions[0].operations
        modules = [operation for operation in operations if operation.name == "builtin.module"]
        if not modules:
            return top
        if len(operations) > 1 or len(modules[0].regions) != 1:
            raise self._error("expected one module, and nothing beside it", operations[-1])
        return modules[0]

    def _entry(self, module: Operation) -> str:
        """`main`, or else the only function that is public."""
        if "main" in self._functions:
            return "main"
        public = [
            name
            for name, function in self._functions.items()
            if function.attributes.get("sym_visibility") in (None, "public")
        ]
        if len(public) != 1:
            found = ", ".join("@" + name for name in public) or "none"
            raise self._error(f"expected a function @main, or only one that is public; found {found}", module)
        return public[0]

    def _callees_first(self, entry: str) -> list[str]:
        """The functions that `entry` needs, each behind those that it calls."""
        try:
            return post_order([entry], lambda name: (callee for callee, _ in self._calls(name)))
        except CycleError as cycle:
            caller = next(operation for callee, operation in self._calls(cycle.source) if callee == cycle.target)
            raise self._error(f"function @{cycle.target} calls itself", caller) from None

    def _calls(self, name: str) -> Iterator[tuple[str, Operation]]:
        """The functions that a function names, with the operation that names each; every one is there."""
        for operation in _all_operations(self._functions[name]):
            if operation.name not in _CALLERS or composed(operation) is not None:
                continue
            for value in operation.attributes.values():
                for symbol in value if isinstance(value, tuple) else (value,):
                    if isinstance(symbol, Symbol):
                        self._check_callee(symbol.name, operation)
                        yield symbol.name, operation

    def _check_callee(self, name: str, operation: Operation) -> None:
        if name not in self._functions:
            near = suggestion(name, self._functions)
            raise self._error(f"there is no function @{name}{near}", operation)
        if self._has_quantized_types and operation.name != "stablehlo.custom_call":
            stated = self._functions[name].attributes.get("function_type")
            used = FunctionType(tuple(value.type for value in operation.operands), operation.result_types)
            if stated != used and any(map(is_quantized, (*used.inputs, *used.results))):
                raise self._error(f"function @{name} is {stated}, but is used as {used}", operation)

    def _convert_function(self, name: str) -> None:
        function = self._functions[name]
        if len(function.regions) != 1:
            raise self._error(f"function @{name} has no body", function)
        for operation in reversed(list(_all_operations(function))):
            if operation.regions:
                self._convert_regions(operation)
        region = function.regions[0]
        self._check_signature(function, region)
        body = Body(self._unique(name), self._computations, self._locations)
        body.set_parameters(region.arguments)
        self._fill(body, region)
        body.computation.set_root(FLAT.root(function, region, body))
        self._computations[name] = body.computation

    def _check_signature(self, function: Operation, region: Region) -> None:
        end = self._terminator(function, region)
        stated = function.attributes.get("function_type")
        found = FunctionType(tuple(v.type for v in region.arguments), tuple(v.type for v in end.operands))
        if stated != found:
            raise self._error(f"the function is stated as {stated}, but its body is {found}", end)

    def _terminator(self, operation: Operation, region: Region) -> Operation:
        if not region.operations:
            raise self._error(f"a region of {operation.name} does not end with a return: it is empty", operation)
        last = region.operations[-1]
        if last.name not in _TERMINATORS:
            raise self._error(f"a region of {operation.name} does not end with a return, but with {last.name}", last)
        return last

    def _convert_regions(self, operation: Operation) -> None:
        """Builds the computations of an operation; those of the operations inside are built already."""
        computations = []
        for region in operation.regions:
            known = self._of_regions.get(region)  # operations of one template share their regions
            if known is not None:
                computations.append(known.clone(self._unique(f"{operation.mnemonic}_region")))
                continue
            self._terminator(operation, region)
            body = Body(self._unique(f"{operation.mnemonic}_region"), self._computations, self._locations)
            try:
                kind = self._conversion(operation).regions
                kind.parameters(operation, region, body)
                self._fill(body, region)
                body.computation.set_root(kind.root(operation, region, body))
            except XlaError as error:
                raise self._located(error, operation) from None
            self._of_regions[region] = body.computation
            computations.append(body.computation)
        self._regions[operation] = computations

    def _unique(self, wanted: str) -> str:
        """A name that no computation has yet, of characters that HLO text takes in a name."""
        stem = _NOT_IN_NAMES.sub("_", wanted)
        count = self._names.get(stem, 0)
        self._names[stem] = count + 1
        return self._unique(f"{stem}.{count}") if count else stem

    def _fill(self, body: Body, region: Region) -> None:
        """Converts the operations of a region, the terminator apart."""
        for operation in region.operations[:-1]:
            try:
                self._convert_operation(body, operation)
            except XlaError as error:
                raise self._located(error, operation) from None

    def _convert_operation(self, body: Body, operation: Operation) -> None:
        if operation.name in CONSTANTS:
            constant_literal(operation)
            return  # a constant becomes an instruction where it is used
        body.at(operation)
        if operation.template is not None and self._repeated(body, operation, operation.template):
            return
        conversion = self._conversion(operation)
        body.called = self._regions.get(operation, ())
        check_arity(operation)
        count = len(body.computation)
        if self._has_quantized_types and involves_quantized(operation):
            converted = convert_quantized(body, operation, conversion.convert)
        else:
            converted = conversion.convert(body, operation)
        if len(operation.results) != 1 or not isinstance(converted, Instruction):
            self._set_results(body, operation, converted)
            return
        self._set_result(body, operation, converted)
        is_all = len(body.computation) == count + 1 and not conversion.by_value
        if operation.template is not None and is_all and converted.operands == (*body.operands(operation),):
            self._examples[operation.template] = converted

    def _repeated(self, body: Body, operation: Operation, template: Template) -> bool:
        """Converts an operation as another one of its template was, if that became one instruction on its operands."""
        example = self._examples.get(template)
        if example is None:
            return False
        operands = body.operands(operation)
        if [operand.shape for operand in operands] != [operand.shape for operand in example.operands]:
            return False
        called = self._regions.get(operation, example.called)
        body.set_value(operation.results[0], body.add_like(example, operands, called))
        return True

    def _set_result(self, body: Body, operation: Operation, converted: Instruction) -> None:
        (result,) = operation.results
        stated = storage_shape(result.type)
        if converted.shape == stated:
            body.computation.set_shape(converted, stated)  # one object for equal shapes is compared fastest
        else:
            self._check_result(operation, converted.shape, result)
        body.set_value(result, converted)

    def _set_results(self, body: Body, operation: Operation, converted: Instruction | Elements) -> None:
        """The results of an operation are the elements of a tuple."""
        results = operation.results
        whole = converted.whole if isinstance(converted, Elements) else converted
        parts = whole.shape.parts if whole.shape.is_tuple else (whole.shape,)
        if len(parts) < len(results) or (whole is converted and len(parts) != len(results)):
            message = f"there are {len(parts)} results, but {len(results)} are stated"
            raise ShapeError(result_count_label(operation.mnemonic), message).add_context(subject=operation.name)
        for part, result in zip(parts, results, strict=False):
            self._check_result(operation, part, result)
        body.set_elements(results, whole)

    def _check_result(self, operation: Operation, shape: Shape, result: Value) -> None:
        """Raises unless the shape that the rules give is the stated one, where both say something."""
        stated = storage_shape(result.type)
        if shape is not stated and shape != stated and not shape.agrees(stated):
            label = result_label(operation.mnemonic, result.index, shape, stated)
            message = f"the result is {type_text(shape)}, but it is stated as {type_text(stated)}"
            raise ShapeError(label, message).add_context(subject=operation.name)

    def _conversion(self, operation: Operation) -> Conversion:
        conversion = CONVERSIONS.get(operation.name)
        if conversion is None:
            wanted = operation.name if "." in operation.name else f"stablehlo.{operation.name}"
            near = suggestion(wanted, CONVERSIONS)
            raise UnsupportedError(f"there is no conversion for the operation {operation.name}{near}")
        return conversion

    def _located(self, error: XlaError, operation: Operation) -> XlaError:
        """The error with its place, under the label that the constraint has in StableHLO's specification."""
        if error.where:
            return error
        opcode, _, slug = error.rule.partition(".")
        if opcode in OPS and not _LABEL.fullmatch(slug):
            label = OPS[opcode].label(error.rule, "C").rpartition(".")[2]
            error.rule = f"{operation.mnemonic}.{other_label(operation.mnemonic, slug) or label}"
        return error.add_context(where=self._tokens.where(operation.place))


def _all_operations(function: Operation) -> Iterator[Operation]:
    """The operations in a function, outer before inner."""
    stack = [function]
    while stack:
        operation = stack.pop()
        if operation is not function:
            yield operation
        for region in operation.regions:
            stack.extend(region.operations)
