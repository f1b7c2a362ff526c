"""The pretty form: how each operation is written when it is not generic.

Most are `name %a, %b, clause = value, ... {attributes} : types`, read by `plain_form`; `_CLAUSES` says what the clauses
are called in the generic form. The others have a reader each in `FORMS`.
"""

from __future__ import annotations

import re
from typing import Any

from xlapy.hlo.shape import Shape
from xlapy.stablehlo.parser import Parser, PrettyForm, Steps
from xlapy.stablehlo.quantization import scalar_of
from xlapy.stablehlo.tree import Operation, Region, Symbol, Value
from xlapy.stablehlo.types import FunctionType
from xlapy.support.source import suggestion

_DIMS_TO_DIMENSIONS = {"dims": "dimensions", "dim": "dimension"}
_CLAUSES: dict[str, dict[str, str]] = {
    "stablehlo.broadcast": {"sizes": "broadcast_sizes"},
    "stablehlo.broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.cholesky": {"lower": "lower"},
    "stablehlo.concatenate": _DIMS_TO_DIMENSIONS,
    "stablehlo.dot": {"precision": "precision_config"},
    "stablehlo.dot_general": {
        "batching_dims": "batching_dims",
        "contracting_dims": "contracting_dims",
        "precision": "precision_config",
        "algorithm": "algorithm",
    },
    "stablehlo.dynamic_iota": {"dim": "iota_dimension"},
    "stablehlo.dynamic_slice": {"sizes": "slice_sizes"},
    "stablehlo.einsum": {"config": "einsum_config"},
    "stablehlo.fft": {"type": "fft_type", "length": "fft_length"},
    "stablehlo.get_dimension_size": _DIMS_TO_DIMENSIONS,
    "stablehlo.iota": {"dim": "iota_dimension"},
    "stablehlo.pad": {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
    "stablehlo.reduce_precision": {"format": "format"},
    "stablehlo.reverse": _DIMS_TO_DIMENSIONS,
    "stablehlo.rng": {"distribution": "rng_distribution"},
    "stablehlo.rng_bit_generator": {"algorithm": "rng_algorithm"},
    "stablehlo.set_dimension_size": _DIMS_TO_DIMENSIONS,
    "stablehlo.torch_index_select": {"dim": "dim", "batch_dims": "batch_dims"},
    "stablehlo.transpose": {"dims": "permutation"},
    "stablehlo.unary_einsum": {"config": "einsum_config"},
}
"""Of each operation that has clauses, what they are called in the generic form, by which they may go here, too."""

_OWN_RESULT = frozenset({"stablehlo.complex", "stablehlo.tuple"})
"""The single type that these state is that of the result; their operands have others."""

_ALL_RESULTS = frozenset({"stablehlo.optimization_barrier", "stablehlo.while"})
"""The types that these state are those of the operands and of the results alike."""

_LISTS_BEFORE_CLAUSES = frozenset({"stablehlo.dynamic_slice"})
"""Of the last operands of these MLIR writes the comma behind them even where there are none: `%x, , sizes = []`."""

_STRUCTURE = ("builtin.", "func.", "module")
"""Dialects of which all operations have forms of their own, so that what is in the plain one is misspelt."""


def plain_form(parser: Parser, operation: Operation) -> None:
    """`%a, %b, clause = value {attributes} : types`, with or without parentheses around all but the types."""
    texts = parser.texts
    operands = operation.operands
    parenthesized = parser.accept("(")
    while True:
        token = texts[parser.index]
        if token[:1] == "%":
            operands.append(parser.use())
        elif (token[:1].isalpha() or token[:1] == "_") and texts[parser.index + 1] == "=":
            _clause(parser, operation, token)
        else:
            break
        if texts[parser.index] != ",":
            break
        parser.index += 1
        if operation.name in _LISTS_BEFORE_CLAUSES and texts[parser.index] == ",":
            parser.index += 1
    if parenthesized:
        parser.expect(")")
    if texts[parser.index] != ":":
        some_attributes(parser, operation)
        if texts[parser.index] != ":":
            if operation.name.startswith(_STRUCTURE):
                wrong = f"there is no operation {operation.name!r}{suggestion(operation.name, FORMS)}"
                raise parser.tokens.error(wrong, operation.place)
            raise parser.expected("an operand, a clause or `:`")
    types_suffix(parser, operation)


def _clause(parser: Parser, operation: Operation, name: str) -> None:
    generic_names = _CLAUSES.get(operation.name, {name: name})
    if name not in generic_names and name not in generic_names.values():
        parser.fail(f"{operation.name} has no clause {name!r}{suggestion(name, generic_names)}")
    parser.index += 2
    value = parser.attribute()
    if parser.accept("x"):
        value = (value, parser.attribute())
    operation.attributes[generic_names.get(name, name)] = value


def some_attributes(parser: Parser, operation: Operation) -> None:
    if parser.accept("{"):
        operation.attributes.update(parser.attributes())


def types_suffix(parser: Parser, operation: Operation) -> None:
    """`: (operands) -> results`, `: operand -> result`, or fewer types where one implies the others."""
    parser.expect(":")
    place = parser.index
    if parser.texts[place] == "(":
        inputs, operation.result_types = parser.signature()
        parser.check_operands(operation, inputs, place)
        return
    types = [parser.value_type()]
    while parser.accept(","):
        types.append(parser.value_type())
    if parser.accept("->"):
        parser.check_operands(operation, tuple(types), place)
        operation.result_types = parser.result_types()
    elif operation.name in _ALL_RESULTS:
        parser.check_operands(operation, tuple(types), place)
        operation.result_types = tuple(types)
    else:
        _implied_types(parser, operation, types, place)


def _implied_types(parser: Parser, operation: Operation, types: list[Shape], place: int) -> None:
    """The last type is the result's and that of all operands, those apart that have a type of their own before it."""
    result = types[-1]
    operation.result_types = (result,)
    if operation.name in _OWN_RESULT:
        return
    own = len(types) - 1
    stated = (*types[:-1], *[result] * (len(operation.operands) - own))
    parser.check_operands(operation, stated, place)


def return_(parser: Parser, operation: Operation) -> None:
    """`return %a, %b : T1, T2`"""
    if parser.texts[parser.index][:1] == "%":
        operation.operands.append(parser.use())
        while parser.accept(","):
            operation.operands.append(parser.use())
        parser.expect(":")
        place = parser.index
        types = [parser.value_type()]
        while parser.accept(","):
            types.append(parser.value_type())
        parser.check_operands(operation, tuple(types), place)


def constant(parser: Parser, operation: Operation) -> Steps | None:
    """`constant dense<1.0> : tensor<f32>`; one of a quantized type goes on as in the generic form."""
    if parser.texts[parser.index] == "(":
        return parser.generic(operation)
    some_attributes(parser, operation)
    literal = parser.dense()
    operation.attributes["value"] = literal
    operation.result_types = (literal.shape,)
    return None


def _compare(parser: Parser, operation: Operation) -> None:
    """`compare LT, %a, %b, FLOAT : types`"""
    operation.attributes["comparison_direction"] = word(parser, "a direction: EQ, NE, GE, GT, LE or LT")
    parser.expect(",")
    operation.operands.append(parser.use())
    parser.expect(",")
    operation.operands.append(parser.use())
    if parser.accept(","):
        operation.attributes["compare_type"] = word(parser, "FLOAT, TOTALORDER, SIGNED or UNSIGNED")
    some_attributes(parser, operation)
    types_suffix(parser, operation)


def word(parser: Parser, what: str) -> str:
    token = parser.texts[parser.index]
    if not token[:1].isalpha():
        raise parser.expected(what)
    parser.index += 1
    return token


def _slice(parser: Parser, operation: Operation) -> None:
    """`slice %a [0:2, 1:8:3] : types`"""
    operation.operands.append(parser.use())
    parser.expect("[")
    ranges = parser.listed(lambda: _range(parser), "]")
    for position, name in enumerate(("start_indices", "limit_indices", "strides")):
        operation.attributes[name] = tuple(part[position] for part in ranges)
    some_attributes(parser, operation)
    types_suffix(parser, operation)


def _range(parser: Parser) -> tuple[int, int, int]:
    start = parser.integer("a range, like 0:4 or 0:4:2")
    parser.expect(":")
    limit = parser.integer()
    return start, limit, parser.integer() if parser.accept(":") else 1


def _get_tuple_element(parser: Parser, operation: Operation) -> None:
    """`get_tuple_element %a[0] : types`"""
    operation.operands.append(parser.use())
    (operation.attributes["index"],) = parser.integers() or (0,)
    some_attributes(parser, operation)
    types_suffix(parser, operation)


_FORMAT = re.compile(r"e([0-9]{1,4})m([0-9]{1,4})")


def _reduce_precision(parser: Parser, operation: Operation) -> None:
    """`reduce_precision %a, format = e5m10 : type`"""
    plain_form(parser, operation)
    match = _FORMAT.fullmatch(str(operation.attributes.pop("format", "")))
    if match is None:
        parser.fail("reduce_precision needs a format, like `format = e5m10`", operation.place)
    operation.attributes |= {"exponent_bits": int(match[1]), "mantissa_bits": int(match[2])}


def _dot_general(parser: Parser, operation: Operation) -> None:
    """`dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [...] : types`"""
    plain_form(parser, operation)
    attributes = operation.attributes
    numbers = {}
    for clause, name in (("batching_dims", "batching"), ("contracting_dims", "contracting")):
        pair = attributes.pop(clause, ((), ()))
        if not (isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(side, tuple) for side in pair)):
            parser.fail(f"{clause} pairs two lists, like [0] x [1]", operation.place)
        numbers[f"lhs_{name}_dimensions"], numbers[f"rhs_{name}_dimensions"] = pair
    attributes["dot_dimension_numbers"] = numbers


_WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}


def _convolution(parser: Parser, operation: Operation) -> None:
    """`convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1]} {...} : types`"""
    parser.expect("(")
    operation.operands = list(parser.listed(parser.use, ")"))
    parser.expect("dim_numbers")
    parser.expect("=")
    operation.attributes["dimension_numbers"] = parser.convolution_numbers()
    parser.expect(",")
    parser.expect("window")
    parser.expect("=")
    parser.expect("{")
    for name, value in parser.attributes().items():
        if name not in _WINDOW:
            parser.fail(f"a window has no {name!r}; it has: {', '.join(_WINDOW)}", operation.place)
        operation.attributes[_WINDOW[name]] = value
    some_attributes(parser, operation)
    types_suffix(parser, operation)


def _custom_call(parser: Parser, operation: Operation) -> None:
    """`custom_call @name(%a) {attributes} : types`"""
    operation.attributes["call_target_name"] = parser.symbol()
    parser.expect("(")
    operation.operands = list(parser.listed(parser.use, ")"))
    some_attributes(parser, operation)
    types_suffix(parser, operation)


def _call(parser: Parser, operation: Operation) -> None:
    """`call @name(%a) : types`"""
    operation.attributes["callee"] = Symbol(parser.symbol())
    parser.expect("(")
    operation.operands = list(parser.listed(parser.use, ")"))
    some_attributes(parser, operation)
    types_suffix(parser, operation)


def _composite(parser: Parser, operation: Operation) -> None:
    """`composite "name" %a, %b {attributes} : types`"""
    operation.attributes["name"] = parser.string("the name of a composite")
    plain_form(parser, operation)


def _while(parser: Parser, operation: Operation) -> Steps:
    """`while(%state = %init, ...) : types cond { ... } do { ... }`"""
    parser.expect("(")
    names = parser.listed(lambda: _initialized(parser, operation), ")")
    if names:
        types_suffix(parser, operation)
    if parser.accept("attributes"):
        some_attributes(parser, operation)
    arguments = list(zip(names, operation.result_types, strict=True))
    parser.expect("cond")
    yield parser.open_region(operation, arguments)
    parser.expect("do")
    yield parser.open_region(operation, arguments)


def _initialized(parser: Parser, operation: Operation) -> str:
    name = parser.texts[parser.index]
    if name[:1] != "%" or name == "%":
        raise parser.expected("the name of a state, like %iterArg")
    parser.index += 1
    parser.expect("=")
    operation.operands.append(parser.use())
    return name


def _reduce(parser: Parser, operation: Operation) -> Steps | None:
    """`reduce(%a init: %b) applies stablehlo.add across dimensions = [0] : types`, or with a `reducer` region."""
    pairs = [_reduced(parser)]
    while parser.accept(","):
        pairs.append(_reduced(parser))
    operation.operands = [array for array, _ in pairs] + [init for _, init in pairs]
    applied = ""
    if parser.accept("applies"):
        applied = word(parser, "the operation that folds, like stablehlo.add")
    parser.expect("across")
    parser.expect("dimensions")
    parser.expect("=")
    operation.attributes["dimensions"] = parser.integers()
    some_attributes(parser, operation)
    types_suffix(parser, operation)
    if applied:
        if not operation.result_types or not operation.result_types[0].is_array:
            parser.fail(f"{operation.name} folds arrays, and so results in one or more")
        operation.regions.append(_folding_region(operation, applied))
        return None
    return _reducer(parser, operation, len(pairs))


def _reduced(parser: Parser) -> tuple[Any, Any]:
    parser.expect("(")
    array = parser.use()
    parser.expect("init")
    parser.expect(":")
    init = parser.use()
    parser.expect(")")
    return array, init


def _folding_region(operation: Operation, applied: str) -> Region:
    """The region that `applies OP` abbreviates: one operation on two scalars of the result's element type."""
    return _binary_region(applied, scalar_of(operation.result_types[0]), operation.place)


def _binary_region(name: str, type: Shape, place: int) -> Region:
    """`{ ^(%a, %b): return name(%a, %b) }` on two values of `type`."""
    region = Region()
    region.arguments = [Value("", type, region, None, number) for number in range(2)]
    fold = Operation(name, place)
    fold.operands = list(region.arguments)
    fold.result_types = (type,)
    fold.results = [Value("", type, region, fold, 0)]
    end = Operation("stablehlo.return", place)
    end.operands = list(fold.results)
    region.operations = [fold, end]
    return region


def _reducer(parser: Parser, operation: Operation, count: int) -> Steps:
    """`reducer(%x0: T, %y0: T) (%x1: U, %y1: U) { ... }`: one pair for each input, all x before all y in the region."""
    parser.expect("reducer")
    pairs = []
    for _ in range(count):
        parser.expect("(")
        pairs.append(parser.listed(parser.argument, ")"))
        if len(pairs[-1]) != 2:
            parser.fail("a reducer takes two values for each input", parser.index - 1)
    yield parser.open_region(operation, [left for left, _ in pairs] + [right for _, right in pairs])


def _module(parser: Parser, operation: Operation) -> Steps:
    """`module @name attributes {...} { ... }`"""
    if parser.texts[parser.index][:1] == "@":
        operation.attributes["sym_name"] = parser.symbol()
    if parser.accept("attributes"):
        some_attributes(parser, operation)
    yield parser.open_region(operation)


def _function(parser: Parser, operation: Operation) -> Steps:
    """`func.func private @name(%a: T) -> (T {...}) attributes {...} { ... }`; a declaration has no body."""
    for visibility in ("public", "private", "nested"):
        if parser.accept(visibility):
            operation.attributes["sym_visibility"] = visibility
    operation.attributes["sym_name"] = parser.symbol()
    parser.expect("(")
    arguments: list[tuple[str, Shape]] = []
    if parser.texts[parser.index][:1] in ("%", ")"):
        listed = parser.listed(parser.attributed_argument, ")")
        arguments = [(name, type) for name, type, _ in listed]
        operation.attributes["arg_attrs"] = tuple(attributes for _, _, attributes in listed)
    else:  # a declaration may leave out the names
        arguments = [("", type) for type in parser.listed(parser.value_type, ")")]
    results: tuple[Shape, ...] = ()
    if parser.accept("->"):
        if parser.accept("("):
            results = parser.listed(lambda: _function_result(parser), ")")
        else:
            results = (parser.value_type(),)
    operation.attributes["function_type"] = FunctionType(tuple(type for _, type in arguments), results)
    if parser.accept("attributes"):
        some_attributes(parser, operation)
    if parser.texts[parser.index] == "{":
        yield parser.open_region(operation, arguments)


def _function_result(parser: Parser) -> Shape:
    type = parser.value_type()
    if parser.accept("{"):
        parser.attributes()
    return type


def _mesh(parser: Parser, operation: Operation) -> None:
    """`sdy.mesh @name = <[...]>`: devices have no place in our programs, so only the name is kept."""
    operation.attributes["sym_name"] = parser.symbol()
    parser.expect("=")
    if parser.texts[parser.index] != "<":
        raise parser.expected("`<`")
    parser.skip_balanced()
    some_attributes(parser, operation)


def _sharding_constraint(parser: Parser, operation: Operation) -> None:
    """`sdy.sharding_constraint %a <@mesh, [...]> : type`"""
    operation.operands.append(parser.use())
    if parser.texts[parser.index] == "<":
        parser.skip_balanced()
    types_suffix(parser, operation)


FORMS: dict[str, PrettyForm] = {
    "builtin.module": _module,
    "func.func": _function,
    "func.call": _call,
    "func.return": return_,
    "stablehlo.return": return_,
    "sdy.mesh": _mesh,
    "sdy.sharding_constraint": _sharding_constraint,
    "stablehlo.constant": constant,
    "chlo.constant": constant,
    "stablehlo.compare": _compare,
    "stablehlo.slice": _slice,
    "stablehlo.get_tuple_element": _get_tuple_element,
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.composite": _composite,
    "stablehlo.while": _while,
    "stablehlo.reduce": _reduce,
}


__all__ = ["FORMS", "constant", "plain_form", "return_", "some_attributes", "types_suffix", "word"]
