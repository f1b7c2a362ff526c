"""Custom calls in compiled programs: every kind of target, what it is told, its order, its memory, its failures."""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import cffi
import numpy as np
import pytest

import xlapy
from xlapy import ops
from xlapy.hlo.shape import TOKEN

Array = np.ndarray[Any, Any]
VECTOR = xlapy.Shape.array(np.float32, (4,))
X = np.arange(4, dtype=np.float32)


def calling(shape: xlapy.Shape = VECTOR, count: int = 1, **attributes: Any) -> xlapy.XlaComputation:
    """A program of one call of "target" with one operand, given several times."""
    builder = xlapy.XlaBuilder("calling")
    x = builder.parameter(0, VECTOR)
    return builder.build(ops.CustomCall(builder, "target", [x] * count, shape, **attributes))


def compiled(program: Any, target: Any, **options: Any) -> xlapy.Executable:
    return xlapy.compile(program, xlapy.CompileOptions(custom_calls={"target": target}, **options))


# -- what a target is told -------------------------------------------------------------------------------------------

VERSIONS: Mapping[str, tuple[bytes, dict[str, Any]]] = {
    "API_VERSION_ORIGINAL": (b"unread", {}),
    "API_VERSION_STATUS_RETURNING": (b'a"b\\\n\x00\xff', {"opaque": b'a"b\\\n\x00\xff'}),
    "API_VERSION_STATUS_RETURNING_UNIFIED": (b"", {"opaque": b""}),
    "API_VERSION_TYPED_FFI": (b'{scale = 2.5 : f32, name = "\\22x", on}', {"scale": 2.5, "name": '"x', "on": True}),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_tells_the_target_its_configuration(version: str) -> None:
    opaque, expected = VERSIONS[version]
    seen = []

    def target(x: Array, **keywords: Any) -> Array:
        seen.append(keywords)
        return x + 1

    program = calling(opaque=opaque, api_version=version)
    for source in (program, program.module.to_text(), xlapy.stablehlo.to_text(program.module)):
        assert compiled(source, target)(X).tolist() == [1, 2, 3, 4]
    xlapy.evaluate(program, X, custom_calls={"target": target})
    assert seen == [expected] * 4


def test_a_dictionary_of_stablehlo_becomes_keywords() -> None:
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.custom_call @target(%x) {api_version = 4 : i32, backend_config = {
        scale = 2.0 : f32, count = 3 : i64, axes = [0, 1], more = {deep = false}, word = "a\\0Ab"
      }} : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    seen: dict[str, Any] = {}
    compiled(text, lambda x, **keywords: (seen.update(keywords), x)[1])(X)
    assert seen == {"scale": 2.0, "count": 3, "axes": (0, 1), "more": {"deep": False}, "word": "a\nb"}


def test_json_of_hlo_text_becomes_keywords() -> None:
    text = """
    HloModule m
    ENTRY e {
      p = f32[4] parameter(0)
      ROOT c = f32[4] custom-call(p), custom_call_target="target", api_version=API_VERSION_TYPED_FFI,
        backend_config={"scale":2,"axes":[0,1]}
    }"""
    seen: dict[str, Any] = {}
    compiled(text, lambda x, **keywords: (seen.update(keywords), x)[1])(X)
    assert seen == {"scale": 2, "axes": (0, 1)}


def test_a_configuration_that_is_no_dictionary_is_an_error_that_shows_it() -> None:
    with pytest.raises(xlapy.ParseError, match=r"backend_config \{scale 2\}: expected"):
        compiled(calling(opaque="{scale 2}", api_version="API_VERSION_TYPED_FFI"), lambda x: x)


def test_operands_and_results_may_be_nested() -> None:
    """Arrays come one by one, whatever tuples they were in; tokens do not come."""
    builder = xlapy.XlaBuilder("nested")
    x = builder.parameter(0, VECTOR)
    operand = builder.tuple([x, builder.tuple([x + 1, ops.CreateToken(builder)])])
    shape = xlapy.Shape.tuple([VECTOR, xlapy.Shape.tuple([xlapy.Shape.scalar(np.int32), TOKEN])])
    result = ops.CustomCall(builder, "target", [operand, x + 2], shape, has_side_effect=True)
    program = builder.build(builder.tuple([result[0], result[1][0]]))

    def target(a: Array, b: Array, c: Array) -> Any:
        return (a + b + c, (np.int32(a.size), None))

    for total, size in (compiled(program, target)(X), xlapy.evaluate(program, X, custom_calls={"target": target})):
        assert total.tolist() == [3, 6, 9, 12] and size == 4


# -- native targets --------------------------------------------------------------------------------------------------

Plain = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.POINTER(ctypes.c_float)))
Table = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.POINTER(ctypes.c_float)), ctypes.POINTER(ctypes.POINTER(ctypes.c_float))
)
Reporting = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_float),
    ctypes.POINTER(ctypes.POINTER(ctypes.c_float)),
    ctypes.POINTER(ctypes.c_char),
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_void_p * 2),
)


@Plain
def doubled(out: Any, operands: Any) -> None:
    for position in range(4):
        out[position] = 2 * operands[0][position]


@Reporting
def scaled(out: Any, operands: Any, opaque: Any, length: int, status: Any) -> None:
    text = opaque[:length]
    if text == b"fail":
        status.contents[0], status.contents[1] = ctypes.cast(MESSAGE, ctypes.c_void_p).value, len(MESSAGE.value)
    for position in range(4):
        out[position] = length * operands[0][position]


MESSAGE = ctypes.create_string_buffer(b"will not")


def test_a_pointer_of_ctypes() -> None:
    assert compiled(calling(), doubled)(X).tolist() == [0, 2, 4, 6]


def test_a_pointer_of_cffi() -> None:
    ffi = cffi.FFI()

    @ffi.callback("void(void *, void **)")
    def target(out: Any, operands: Any) -> None:
        results, values = ffi.cast("float *", out), ffi.cast("float **", operands)
        for position in range(4):
            results[position] = 3 * values[0][position]

    assert compiled(calling(), target)(X).tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize("version", ["API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED"])
def test_a_function_that_returns_a_status(version: str) -> None:
    assert compiled(calling(opaque="abc", api_version=version), scaled)(X).tolist() == [0, 3, 6, 9]
    failing = compiled(calling(opaque="fail", api_version=version), scaled)
    with pytest.raises(xlapy.ExecutionError, match="target 'target' failed: will not") as caught:
        failing(X)
    assert "test_custom_calls.py" in str(caught.value)


def test_a_symbol_of_a_loaded_library() -> None:
    """`strcpy(out, in)` copies the first entry of the table of operands, an address, up to its first zero byte."""
    program = calling(xlapy.Shape.array(np.uint8, (9,)))
    text = program.module.to_text().replace('"target"', '"strcpy"')
    address = X.ctypes.data.to_bytes(8, "little")
    copied = address[: address.index(0)]
    assert xlapy.compile(text)(X).tobytes()[: len(copied)] == copied
    with pytest.raises(xlapy.ExecutionError, match="no custom call target 'no_such_symbol'"):
        xlapy.compile(text.replace("strcpy", "no_such_symbol"))(X)


# -- order, memory, failure ------------------------------------------------------------------------------------------


def test_side_effects_follow_their_tokens() -> None:
    builder = xlapy.XlaBuilder("ordered")
    token = ops.CreateToken(builder)
    for number in (3, 1, 2):
        operands = [builder.constant(np.int32(number)), token]
        token = ops.CustomCall(builder, "target", operands, TOKEN, has_side_effect=True)
    seen: list[int] = []
    compiled(builder.build(builder.constant(np.int32(0))), lambda number: seen.append(int(number)))()
    assert seen == [3, 1, 2]


def test_side_effects_without_tokens_follow_their_recording() -> None:
    builder = xlapy.XlaBuilder("ordered")
    for number in (3, 1, 2):
        operand = builder.constant(np.int32(number))
        ops.CustomCall(builder, "target", [operand], xlapy.Shape.tuple([]), has_side_effect=True)
    seen: list[int] = []
    compiled(builder.build(builder.constant(np.int32(0))), lambda number: seen.append(int(number)))()
    assert seen == [3, 1, 2]


@Plain
def added_in_place(out: Any, operands: Any) -> None:
    """Adds the second operand to the first, which is the result."""
    assert ctypes.addressof(out.contents) == ctypes.addressof(operands[0].contents)
    for position in range(4):
        out[position] += 10 * operands[1][position]


@pytest.mark.parametrize("plus", [0, 1])
def test_a_target_changes_an_operand_where_the_result_is(plus: int) -> None:
    """Also one that others need as it was: a parameter (plus 0), a value that is passed twice and read later."""
    builder = xlapy.XlaBuilder("in_place")
    x = builder.parameter(0, VECTOR)
    value = x + plus if plus else x
    result = ops.CustomCallWithAliasing(
        builder, "target", [value, value], VECTOR, [VECTOR, VECTOR], output_operand_aliasing=[((), (0, ()))]
    )
    executable = compiled(builder.build(builder.tuple([result, ops.Neg(value)])), added_in_place)
    mine = X.copy()
    changed, after = executable(mine)
    assert changed.tolist() == (11 * (X + plus)).tolist()
    assert after.tolist() == (-(X + plus)).tolist()
    assert mine.tolist() == X.tolist()


def test_one_array_of_a_tuple_is_changed_in_place() -> None:
    builder = xlapy.XlaBuilder("in_place")
    x = builder.parameter(0, VECTOR)
    pair = xlapy.Shape.tuple([VECTOR, VECTOR])
    operand = builder.tuple([x + 1, x + 2])
    result = ops.CustomCallWithAliasing(
        builder, "target", [operand], pair, [pair], output_operand_aliasing=[((1,), (0, (1,)))]
    )

    @Table
    def target(out: Any, operands: Any) -> None:
        assert ctypes.addressof(out[1].contents) == ctypes.addressof(operands[1].contents)
        for position in range(4):
            out[0][position] = -operands[0][position]
            out[1][position] *= 10

    first, second = compiled(builder.build(result), target)(X)
    assert first.tolist() == [-1, -2, -3, -4]
    assert second.tolist() == [20, 30, 40, 50]


def test_an_operand_that_dies_is_changed_without_a_copy() -> None:
    builder = xlapy.XlaBuilder("in place")
    x = builder.parameter(0, VECTOR)
    result = ops.CustomCallWithAliasing(
        builder, "target", [x + 1], VECTOR, [VECTOR], output_operand_aliasing=[((), (0, ()))]
    )
    executable = compiled(builder.build(result), Plain(lambda out, operands: None))
    assert executable(X).tolist() == [1, 2, 3, 4]
    assert "memcpy" not in executable.llvm_ir().split("declare")[0]


def failing(x: Array) -> Array:
    raise LookupError("inside the target")


def test_an_exception_arrives_with_its_traceback_and_its_place() -> None:
    executable = compiled(calling(), failing)
    for _ in range(2):
        with pytest.raises(LookupError, match="inside the target") as caught:
            executable(X)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "failing"
    assert "test_custom_calls.py" in "".join(caught.value.__notes__)


WRONG: Mapping[str, tuple[Callable[[Array], Any], str]] = {
    "shape": (lambda x: x[:2], r"declared as f32\[4\], f32\[2\] was returned"),
    "type": (lambda x: x.astype(np.float64), r"declared as f32\[4\], f64\[4\] was returned"),
    "count": (lambda x: (x, x), "2 arrays were returned, 1 are declared"),
    "nothing": (lambda x: None, "0 arrays were returned"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_result_is_an_error_and_the_program_stays_usable(wrong: str) -> None:
    target, message = WRONG[wrong]
    answers = [target]
    executable = compiled(calling(), lambda x: answers.pop()(x) if answers else x)
    with pytest.raises(xlapy.ShapeError, match=message):
        executable(X)
    assert executable(X).tolist() == X.tolist()
