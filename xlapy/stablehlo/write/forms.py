"""The two forms of an operation without regions: generic, and pretty as MLIR's own printer writes it.

Emitters give attributes as the generic form spells them. The pretty form has a row for each operation that is not
generic there too: which attributes become clauses, and how much of the types is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.convert.elementwise import CHLO_ONLY, OWN
from xlapy.stablehlo.types import type_text

Attributes = Mapping[str, str]
NO_ATTRIBUTES: Attributes = {}


@dataclass(slots=True)
class Line:
    """An operation to be written. Attributes that the form has found a place for are taken out."""

    name: str
    operands: Sequence[str]
    shapes: Sequence[Shape]
    results: Sequence[Shape]
    attributes: dict[str, str]

    def take(self, name: str, default: str = "") -> str:
        return self.attributes.pop(name, default)


def generic_text(line: Line) -> str:
    """`"name"(%a) <{attributes}> : (types) -> types`"""
    properties = f" <{dictionary(line.attributes).lstrip()}>" if line.attributes else ""
    return f'"{line.name}"({", ".join(line.operands)}){properties}{signature(line.shapes, line.results)}'


def pretty_text(line: Line) -> str:
    """`name %a, clause = value {attributes} : types`, or the generic form where there is no other."""
    form = _FORMS.get(line.name)
    return form(line) if form is not None else generic_text(line)


def dictionary(attributes: Attributes) -> str:
    if not attributes:
        return ""
    return " {" + ", ".join(f"{name} = {text}" if text else name for name, text in attributes.items()) + "}"


def signature(operands: Sequence[Shape], results: Sequence[Shape]) -> str:
    return f" : ({', '.join(map(type_text, operands))}) -> ({', '.join(map(type_text, results))})"


# -- types -------------------------------------------------------------------------------------------------------------

Types = Callable[[Line], str]


def function_types(line: Line) -> str:
    """`(operands) -> result`"""
    return f" : ({_joined(line.shapes)}) -> {result_types(line.results)}"


def result_types(results: Sequence[Shape]) -> str:
    return type_text(results[0]) if len(results) == 1 else f"({_joined(results)})"


def _joined(shapes: Sequence[Shape]) -> str:
    return ", ".join(map(type_text, shapes))


def _one_type(line: Line) -> str:
    """The type of all operands and the result, if it is one."""
    if len({*line.shapes, *line.results}) == 1:
        return f" : {type_text(line.results[0])}"
    return function_types(line)


def _result_type(line: Line) -> str:
    return f" : {_joined(line.results)}"


def _select_types(line: Line) -> str:
    if line.shapes[1:] != [line.results[0]] * 2:
        return function_types(line)
    return f" : {type_text(line.shapes[0])}, {type_text(line.results[0])}"


def _arrow_types(line: Line) -> str:
    """`operands -> result`, as CHLO has it"""
    return f" : {_joined(line.shapes)} -> {result_types(line.results)}"


# -- values of attributes ----------------------------------------------------------------------------------------------

_ARRAY = re.compile(r"array<[^:>]*:?\s*([^>]*)>")
_ENUMERATOR = re.compile(r"#stablehlo<\w+ (\w+)>")
_TYPED = re.compile(r"(.*?) : \w+")


def bare(text: str) -> str:
    """The value without what the generic form says about its type: `[0, 1]`, `LT`, `4`."""
    match = _ARRAY.fullmatch(text)
    if match is not None:
        return f"[{match[1]}]"
    match = _TYPED.fullmatch(text)
    return _ENUMERATOR.sub(r"\1", match[1] if match else text)


# -- forms -------------------------------------------------------------------------------------------------------------

Form = Callable[[Line], str]


def _plain(types: Types = function_types, **clauses: str) -> Form:
    """`name %a, %b, clause = value {attributes} : types`; clauses by the names of their attributes."""

    def form(line: Line) -> str:
        parts = list(line.operands)
        for attribute, clause in clauses.items():
            value = line.take(attribute)
            if value:
                parts.append(f"{clause} = {bare(value)}")
        listed = f" {', '.join(parts)}" if parts else ""
        return f"{line.name}{listed}{dictionary(line.attributes)}{types(line)}"

    return form


def _return(line: Line) -> str:
    name = "return" if line.name == "func.return" else line.name
    return f"{name} {', '.join(line.operands)} : {_joined(line.shapes)}" if line.operands else name


def _constant(line: Line) -> str:
    return f"{line.name} {line.take('value')}"


def _compare(line: Line) -> str:
    kind = line.take("compare_type")
    operands = ", ".join([bare(line.take("comparison_direction")), *line.operands, *([bare(kind)] if kind else [])])
    return f"{line.name} {operands}{function_types(line)}"


def _slice(line: Line) -> str:
    columns = (bare(line.take(name))[1:-1].split(", ") for name in ("start_indices", "limit_indices", "strides"))
    ranges = [
        f"{start}:{limit}" + (f":{stride}" if stride != "1" else "")
        for start, limit, stride in zip(*columns, strict=True)
        if start
    ]
    return f"{line.name} {line.operands[0]} [{', '.join(ranges)}]{function_types(line)}"


def _get_tuple_element(line: Line) -> str:
    return f"{line.name} {line.operands[0]}[{bare(line.take('index'))}]{function_types(line)}"


def _reduce_precision(line: Line) -> str:
    exponent, mantissa = (bare(line.take(name)) for name in ("exponent_bits", "mantissa_bits"))
    return f"{line.name} {line.operands[0]}, format = e{exponent}m{mantissa}{_one_type(line)}"


_DOT_DIMENSIONS = re.compile(r"(\w+)_dimensions = (\[[^\]]*\])")


def _dot_general(line: Line) -> str:
    numbers = dict(_DOT_DIMENSIONS.findall(line.take("dot_dimension_numbers")))
    parts = list(line.operands)
    if numbers["lhs_batching"] != "[]":
        parts.append(f"batching_dims = {numbers['lhs_batching']} x {numbers['rhs_batching']}")
    parts.append(f"contracting_dims = {numbers['lhs_contracting']} x {numbers['rhs_contracting']}")
    precision = line.take("precision_config")
    if precision:
        parts.append(f"precision = {bare(precision)}")
    algorithm = line.take("algorithm")
    if algorithm:
        parts.append(f"algorithm = {algorithm.removeprefix('#stablehlo.dot_algorithm')}")
    return f"{line.name} {', '.join(parts)}{dictionary(line.attributes)}{function_types(line)}"


_WINDOW = {
    "window_strides": "stride",
    "padding": "pad",
    "lhs_dilation": "lhs_dilate",
    "rhs_dilation": "rhs_dilate",
    "window_reversal": "reverse",
}
_PADDING = re.compile(r"dense<(.*)> : .*")


def _convolution(line: Line) -> str:
    numbers = line.take("dimension_numbers").removeprefix("#stablehlo.conv<").removesuffix(">")
    window = []
    for attribute, clause in _WINDOW.items():
        value = line.take(attribute)
        padding = _PADDING.fullmatch(value)
        text = padding[1] or "[]" if padding else bare(value)
        if text != "[]":
            window.append(f"{clause} = {text}")
    return (
        f"{line.name}({', '.join(line.operands)}) dim_numbers = {numbers}, window = {{{', '.join(window)}}}"
        f"{dictionary(line.attributes)}{function_types(line)}"
    )


def _custom_call(line: Line) -> str:
    target = line.take("call_target_name")
    name = target[1:-1]
    symbol = name if _SYMBOL.fullmatch(name) else target
    return f"{line.name} @{symbol}({', '.join(line.operands)}){dictionary(line.attributes)}{function_types(line)}"


_SYMBOL = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)


def _call(line: Line) -> str:
    callee = line.take("callee")
    return f"{line.name} {callee}({', '.join(line.operands)}){dictionary(line.attributes)}{function_types(line)}"


def _composite(line: Line) -> str:
    head = " ".join([line.name, line.take("name"), ", ".join(line.operands)])
    return f"{head}{dictionary(line.attributes)}{function_types(line)}"


def _top_k(line: Line) -> str:
    return f"{line.name}({line.operands[0]}, k = {bare(line.take('k'))}){_arrow_types(line)}"


def _dynamic_slice(line: Line) -> str:
    """With the comma behind the start indices, which MLIR wants of scalars, too: these have none."""
    operand, *starts = line.operands
    sizes = bare(line.take("slice_sizes"))
    head = f"{line.name} {operand}, {', '.join(starts)}, sizes = {sizes}"
    return f"{head}{dictionary(line.attributes)}{function_types(line)}"


_SIGNATURE_ONLY = ("convert", "bitcast_convert", "reshape", "dynamic_update_slice", "dynamic_pad", "dynamic_reshape")

_FORMS: dict[str, Form] = {
    **{f"stablehlo.{name}": _plain() for name in (*_SIGNATURE_ONLY, "real_dynamic_slice")},
    **{f"stablehlo.{name}": _plain(_result_type) for name in ("replica_id", "partition_id", "after_all", "tuple")},
    "stablehlo.broadcast_in_dim": _plain(broadcast_dimensions="dims"),
    "stablehlo.cholesky": _plain(_one_type, lower="lower"),
    "stablehlo.compare": _compare,
    "stablehlo.complex": _plain(_result_type),
    "stablehlo.composite": _composite,
    "stablehlo.concatenate": _plain(dimension="dim"),
    "stablehlo.constant": _constant,
    "stablehlo.convolution": _convolution,
    "stablehlo.create_token": _plain(_result_type),
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_broadcast_in_dim": _plain(broadcast_dimensions="dims"),
    "stablehlo.dynamic_iota": _plain(iota_dimension="dim"),
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.fft": _plain(fft_type="type", fft_length="length"),
    "stablehlo.get_dimension_size": _plain(dimension="dim"),
    "stablehlo.get_tuple_element": _get_tuple_element,
    "stablehlo.iota": _plain(_result_type, iota_dimension="dim"),
    "stablehlo.optimization_barrier": _plain(_result_type),
    "stablehlo.pad": _plain(edge_padding_low="low", edge_padding_high="high", interior_padding="interior"),
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.reverse": _plain(_one_type, dimensions="dims"),
    "stablehlo.rng": _plain(rng_distribution="distribution"),
    "stablehlo.rng_bit_generator": _plain(rng_algorithm="algorithm"),
    "stablehlo.set_dimension_size": _plain(dimension="dim"),
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _plain(permutation="dims"),
    "stablehlo.return": _return,
    "func.return": _return,
    "func.call": _call,
    "chlo.top_k": _top_k,
}


def _register_rows() -> None:
    """The element-wise operations, whose operands and results have one type."""
    for name, spec in OPS.items():
        if not spec.has(Trait.ELEMENTWISE) or spec.attributes or spec.regions or name in OWN or name == "copy":
            continue
        if name in CHLO_ONLY:
            _FORMS.setdefault(f"chlo.{spec.python_name}", _plain(_arrow_types))
        else:
            _FORMS.setdefault(f"stablehlo.{spec.python_name}", _plain(_one_type))


_register_rows()
_FORMS["stablehlo.select"] = _plain(_select_types)
