"""Native code against the reference evaluator, bit for bit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import xlapy
from tests.support.values import assert_same
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.hlo.element_types import element_type_of
from xlapy.hlo.graph import Computation, HloModule
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import parse
from xlapy.passes import joint_runs


def record(function: Callable[..., Any], *arguments: Any) -> HloModule:
    """The module that `function` of one XlaOp for each argument records; it returns one XlaOp, or a list."""
    builder = XlaBuilder("recorded")
    parameters = [builder.parameter(number, Shape.of(value)) for number, value in enumerate(arguments)]
    result = function(*parameters)
    root = result if isinstance(result, XlaOp) else xlapy.ops.Tuple(builder, list(result))
    return builder.build(root).module


def together(programs: Sequence[str | HloModule]) -> HloModule:
    """One program that calls all of these, each with parameters of its own, and has a tuple of their results: what each
    is compiled to is the same, and what every compilation takes besides is taken once."""
    entry = Computation("together")
    results = []
    for program in programs:
        called = (parse(program) if isinstance(program, str) else program).entry
        first = len(entry.parameters)
        parameters = [
            entry.add("parameter", number=first + parameter.attributes["number"], shape=parameter.shape)
            for parameter in called.parameters
        ]
        results.append(entry.add("call", parameters, called=[called]))
    entry.set_root(entry.add("tuple", results))
    return HloModule("together", entry)


def flatten(value: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(value, (tuple, list)):
        return [leaf for element in value for leaf in flatten(element)]
    return [np.asarray(value)]


def on_threads(executable: xlapy.Executable, count: int) -> xlapy.Executable:
    """The same code on so many threads. Programs learn of them when they run, so there is nothing to compile again."""
    return xlapy.Executable(executable._compiled, dataclasses.replace(executable.options, num_threads=count))


def assert_same_bits(found: Any, expected: Any) -> None:
    leaves, wanted = flatten(found), flatten(expected)
    assert len(leaves) == len(wanted)
    for number, (one, other) in enumerate(zip(leaves, wanted, strict=True)):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), f"result {number}"
        if element_type_of(one.dtype).bits < 8:
            np.testing.assert_array_equal(one.astype(np.float32), other.astype(np.float32), err_msg=f"result {number}")
        elif one.tobytes() != other.tobytes():
            np.testing.assert_array_equal(one, other, err_msg=f"result {number}")
            raise AssertionError(f"result {number} differs in bits only: {one} and {other}")


def check_text(text: str) -> None:
    """Compiles a program, and compares it with the evaluator for small whole numbers, which every type has."""
    generator = np.random.default_rng(3)
    arguments = [
        generator.integers(0, 50, parameter.shape.dims).astype(parameter.shape.type.dtype)
        for parameter in parse(text).entry.parameters
    ]
    assert_same(xlapy.compile(text)(*arguments), xlapy.evaluate(text, *arguments), text)


def check_moves(text: str, compiled: xlapy.Executable) -> None:
    """Compares a program that moves elements with the evaluator: of operands that begin with a line of a cache, and an
    element behind that, on one thread and on several."""
    parameters = parse(text).entry.parameters
    for first in (0, parameters[0].shape.type.bytes):
        arrays = [_behind_line(parameter.shape, first, number) for number, parameter in enumerate(parameters)]
        expected = flatten(xlapy.evaluate(text, *arrays))
        for threads in (1, 3):
            found = flatten(on_threads(compiled, threads)(*arrays))
            for number, (one, other) in enumerate(zip(found, expected, strict=True)):
                np.testing.assert_array_equal(one, other, f"result {number}, {threads} threads")


def _behind_line(shape: Shape, first: int, number: int) -> np.ndarray[Any, Any]:
    """An array that begins so many bytes behind a line of a cache, whose elements tell themselves apart."""
    memory = np.zeros(shape.bytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + first
    array = memory[start : start + shape.bytes].view(shape.type.dtype).reshape(shape.dims)
    array[...] = np.arange(array.size).reshape(array.shape) % 113 + number
    return array


def check_native(function: Callable[..., Any], *arguments: Any) -> xlapy.Executable:
    """Compiles, with all checks on, and compares with the evaluator; returns the executable."""
    module = record(function, *arguments)
    executable = xlapy.compile(module, xlapy.CompileOptions(verify=True))
    expected = xlapy.evaluate(module, *arguments)
    assert_same_bits(executable(*arguments), expected)
    return executable


def check_all_native(cases: Mapping[str, tuple[Callable[..., Any], Sequence[Any]]]) -> xlapy.Executable:
    """`check_native` for functions and arguments that are called as the keys say, all in one program, in which each
    kernel runs by itself, as it would in a program of its own."""
    module = together([record(function, *arguments) for function, arguments in cases.values()])
    arguments = [argument for _, given in cases.values() for argument in given]
    options = xlapy.CompileOptions(verify=True, disabled_passes={joint_runs.NAME})
    executable = xlapy.compile(module, options)
    for case, found, expected in zip(cases, executable(*arguments), xlapy.evaluate(module, *arguments), strict=True):
        try:
            assert_same_bits(found, expected)
        except AssertionError as error:
            raise AssertionError(f"{case}: {error}") from None
    return executable
