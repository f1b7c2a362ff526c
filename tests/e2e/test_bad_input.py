"""Bad arguments, options and calls of the builder: a clear XlaError each time, or it simply works."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.machine import LIMITS
from tests.support.values import assert_same
from xlapy import ops

Array = np.ndarray[Any, Any]
F32 = np.float32


def exe_of(dims: tuple[int, ...] = (3, 4), dtype: Any = F32) -> xlapy.Executable:
    b = xlapy.XlaBuilder("sum")
    x, y = (ops.Parameter(b, number, xlapy.Shape.array(dtype, dims), name) for number, name in enumerate("xy"))
    return xlapy.compile(b.build(x - y))


# -- arguments at call time --------------------------------------------------------------------------------------------

GOOD = np.arange(12, dtype=F32).reshape(3, 4)


@pytest.mark.parametrize(
    ("title", "value"),
    [
        ("another shape", np.zeros((4, 3), F32)),
        ("another rank", np.zeros(12, F32)),
        ("a scalar", F32(3)),
        ("another type", np.zeros((3, 4), np.float64)),
        ("integers", np.zeros((3, 4), np.int32)),
        ("strings", np.full((3, 4), "1")),
        ("objects", np.full((3, 4), None)),
        ("a Python scalar", 3.0),
        ("a list", [[0.0] * 4] * 3),
        ("nothing", None),
        ("a string", "zeros"),
        ("empty", np.zeros((3, 0), F32)),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
@pytest.mark.parametrize("position", [0, 1])
def test_wrong_arguments(title: str, value: Any, position: int) -> None:
    exe = exe_of()
    arguments = [GOOD, GOOD]
    arguments[position] = value
    with pytest.raises(xlapy.ArgumentError, match=rf"parameter {position} \({'xy'[position]}\): expected f32\[3,4\]"):
        exe(*arguments)
    assert_same(exe(GOOD, GOOD), GOOD - GOOD)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_wrong_number_of_arguments(count: int) -> None:
    with pytest.raises(xlapy.ArgumentError, match="takes 2 arguments"):
        exe_of()(*[GOOD] * count)


def unaligned(value: Array) -> Array:
    raw = np.zeros(value.nbytes + 1, np.uint8)
    view = raw[1:].view(value.dtype).reshape(value.shape)
    view[...] = value
    return view


def read_only(value: Array) -> Array:
    copy = value.copy()
    copy.flags.writeable = False
    return copy


FORMS = {
    "Fortran order": np.asfortranarray,
    "every second element": lambda value: np.repeat(value, 2, axis=1)[:, ::2],
    "reversed": lambda value: value[::-1, ::-1].copy()[::-1, ::-1],
    "broadcast": lambda value: np.broadcast_to(value[:1], value.shape),
    "the other byte order": lambda value: value.astype(value.dtype.newbyteorder()),
    "read-only": read_only,
    "unaligned": unaligned,
    "a subclass": np.ma.masked_array,
    "a matrix of memoryview": lambda value: np.asarray(memoryview(value)),
}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.replace(" ", "-"))
def test_every_form_of_an_array_is_taken(form: str) -> None:
    """Whatever its strides, byte order, alignment; and it is not changed."""
    value = FORMS[form](GOOD)
    before = np.array(value)
    result = exe_of()(value, GOOD)
    assert_same(result, np.array(value, F32) - GOOD)
    np.testing.assert_array_equal(np.array(value), before)
    assert result.flags.writeable and result.flags.owndata | (result.base is not None)


def test_a_parameter_that_is_the_result_is_copied() -> None:
    b = xlapy.XlaBuilder("same")
    x = ops.Parameter(b, 0, xlapy.Shape.array(F32, (4,)))
    exe = xlapy.compile(b.build(ops.Tuple(b, [x, x])))
    value = np.arange(4, dtype=F32)
    first, second = exe(value)
    first += 1
    assert_same(value, np.arange(4, dtype=F32))
    assert_same(second, value)


def test_one_array_for_both_parameters() -> None:
    assert_same(exe_of()(GOOD, GOOD), np.zeros_like(GOOD))


def test_tuple_parameters() -> None:
    b = xlapy.XlaBuilder("tuple")
    vector = xlapy.Shape.array(F32, (4,))
    p = ops.Parameter(b, 0, xlapy.Shape.tuple([vector, xlapy.Shape.tuple([vector])]))
    exe = xlapy.compile(b.build(p[0] + p[1][0]))
    value = np.arange(4, dtype=F32)
    assert_same(exe((value, (value,))), 2 * value)
    for wrong in [value, (value,), (value, value), (value, (value, value)), (value, (value[:3],))]:
        with pytest.raises(xlapy.ArgumentError, match="parameter 0"):
            exe(wrong)


def test_how_to_make_the_argument_that_is_wanted() -> None:
    exe = xlapy.compile("ENTRY e { x = f32[2] parameter(0)  ROOT y = f32[2] negate(x) }")
    with pytest.raises(xlapy.ArgumentError, match=r"f32\[2\], got f64\[2\]; \.astype\('float32'\) converts it"):
        exe(np.zeros(2))
    with pytest.raises(xlapy.ArgumentError, match=r"f32\[2\], got f64\[3\]$"):
        exe(np.zeros(3))
    with pytest.raises(xlapy.ArgumentError, match=r"f32\[2\], got list; np\.asarray\(it, 'float32'\) makes an array"):
        exe([1.0, 2.0])
    like_an_array = SimpleNamespace(__array_interface__=np.zeros(2, F32).__array_interface__)
    with pytest.raises(xlapy.ArgumentError, match=r"got SimpleNamespace; np\.asarray\(it, 'float32'\) makes an array"):
        exe(like_an_array)
    with pytest.raises(xlapy.ArgumentError, match=r"got SimpleNamespace; np\.from_dlpack\(it\) makes an array of it"):
        exe(SimpleNamespace(__dlpack__=np.zeros(2, F32).__dlpack__))


SCALARS: list[tuple[Any, Any, Any]] = [
    (np.int32, 7, 7),
    (np.int32, 2.5, None),
    (np.int32, 100.0, None),
    (np.int32, True, None),
    (np.int32, 1 << 31, None),
    (np.uint8, -1, None),
    (ml_dtypes.int4, -8, -8),
    (ml_dtypes.int4, 300, None),
    (np.bool_, True, True),
    (np.bool_, 7, None),
    (np.bool_, np.nan, None),
    (F32, 3, 3),
    (F32, (1 << 24) + 1, 1 << 24),
    (F32, np.inf, np.inf),
    (F32, 1e300, None),
    (F32, 1j, None),
    (ml_dtypes.bfloat16, 10**400, None),
    (ml_dtypes.float8_e4m3fn, 1e300, None),
    (ml_dtypes.float8_e4m3fn, 10**400, None),
    (ml_dtypes.float8_e8m0fnu, 4.0, 4),
    (ml_dtypes.float8_e8m0fnu, -4.0, None),
    (np.complex64, 1e300, None),
    (np.complex64, 2, 2),
    *((dtype, 10**5000, None) for dtype in (np.int32, F32, ml_dtypes.int4, ml_dtypes.bfloat16, np.bool_)),
]


@pytest.mark.parametrize(("dtype", "value", "expected"), SCALARS, ids=range(len(SCALARS)))
def test_python_scalars_have_the_type_of_the_parameter_or_are_refused(dtype: Any, value: Any, expected: Any) -> None:
    """Nothing is cut off, wraps around or becomes infinite, and the evaluator agrees."""
    b = xlapy.XlaBuilder("same")
    computation = b.build(ops.Tuple(b, [ops.Parameter(b, 0, xlapy.Shape.scalar(dtype))]))
    for run in (xlapy.compile(computation), lambda given: xlapy.evaluate(computation, given)):
        if expected is None:
            with pytest.raises(xlapy.ArgumentError, match=r"(parameter|argument) 0"):
                run(value)
        else:
            assert_same(run(value), (np.array(expected).astype(dtype),))


class NoArray:
    """What says that it is an array, and is none."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        raise self.error


def test_what_the_methods_of_an_argument_raise_is_raised_with_a_note() -> None:
    """Through exe, evaluate, queues and results of custom calls; a user's own error keeps its type."""
    text = "ENTRY e { x = f32[3,4] parameter(0)  ROOT y = f32[3,4] negate(x) }"
    exe, device = xlapy.compile(text), xlapy.devices(1)[0]
    for error in (KeyError("mine"), MemoryError("mine"), RuntimeError("mine")):
        calls = [
            exe,
            exe.run,
            lambda bad: exe.run_parallel([[bad]]),
            lambda bad: xlapy.evaluate(text, bad),
            device.transfer_to_infeed,
        ]
        for call in calls:
            with pytest.raises(type(error), match="mine") as caught:
                call(NoArray(type(error)("mine")))
            assert any("numpy makes no array of this NoArray" in note for note in caught.value.__notes__)
    with pytest.raises(xlapy.ArgumentError, match=r"parameter 0 \(x\): expected f32\[3,4\], got Never"):
        exe(type("Never", (), {"__array__": None})())


def test_masked_elements_have_no_value() -> None:
    masked = np.ma.masked_array(GOOD, GOOD > 3)
    b = xlapy.XlaBuilder("masked")
    text = "ENTRY e { x = f32[3,4] parameter(0)  ROOT y = f32[3,4] negate(x) }"
    calls = [
        lambda: exe_of()(GOOD, masked),
        lambda: xlapy.evaluate(text, masked),
        lambda: b.constant(masked),
        lambda: xlapy.devices(1)[0].transfer_to_infeed(masked),
    ]
    for call in calls:
        with pytest.raises(xlapy.ArgumentError, match=r"elements of this array are masked; \.filled"):
            call()
    assert_same(exe_of()(masked.filled(1), GOOD), np.where(GOOD > 3, F32(1), GOOD) - GOOD)


def test_keywords_are_refused_in_the_name_of_the_executable() -> None:
    with pytest.raises(TypeError, match=r"Executable\.__call__\(\) takes no keyword arguments"):
        exe_of()(GOOD, y=GOOD)


# -- builders ----------------------------------------------------------------------------------------------------------


def test_a_computation_used_in_two_builders() -> None:
    inner = xlapy.XlaBuilder("inner")
    x, y = (ops.Parameter(inner, number, xlapy.Shape.scalar(F32)) for number in range(2))
    combine = inner.build(x + y * 2)
    value = np.arange(6, dtype=F32)
    for name in ("first", "second"):
        b = xlapy.XlaBuilder(name)
        v = ops.Parameter(b, 0, xlapy.Shape.array(F32, (6,)))
        mapped = ops.Map(b, [v, v], combine)
        exe = xlapy.compile(b.build(mapped + ops.Call(b, combine, [b.constant(F32(1)), b.constant(F32(2))])))
        assert_same(exe(value), value * 3 + 5)


def test_an_operand_of_another_builder() -> None:
    first, second = xlapy.XlaBuilder("first"), xlapy.XlaBuilder("second")
    x = ops.Parameter(first, 0, xlapy.Shape.array(F32, (4,)))
    y = ops.Parameter(second, 0, xlapy.Shape.array(F32, (4,)))
    with pytest.raises(xlapy.XlaError, match="second") as caught:
        ops.Add(x, y)
    assert "test_bad_input.py" in str(caught.value)
    with pytest.raises(xlapy.XlaError):
        first.build(y)


@pytest.mark.parametrize(
    "call",
    [
        lambda b, x: ops.Add(x, b.constant(np.zeros(3, F32))),
        lambda b, x: ops.Add(x, b.constant(np.zeros(4, np.int32))),
        lambda b, x: ops.Reshape(x, (5,)),
        lambda b, x: ops.Transpose(x, (1, 0)),
        lambda b, x: ops.Slice(x, (0,), (9,)),
        lambda b, x: ops.ConcatInDim(b, [x, b.constant(F32(1))], 0),
        lambda b, x: ops.Dot(x, b.constant(np.zeros((3, 3), F32))),
        lambda b, x: ops.While(lambda v: v, lambda v: v, x),
        lambda b, x: ops.Conditional(x, x, lambda v: v, x, lambda v: v),
        lambda b, x: x.reduce(0, lambda p, q: p < q, (0,)),
        lambda b, x: ops.DynamicSlice(x, [b.constant(F32(0))], (2,)),
        lambda b, x: ops.Select(x, x, x),
        lambda b, x: ops.GetTupleElement(x, 0),
        lambda b, x: x + "one",
        lambda b, x: x + 1j,
        lambda b, x: x & 1,
    ],
    ids=range(16),
)
def test_errors_come_at_the_faulty_call(call: Any) -> None:
    b = xlapy.XlaBuilder("wrong")
    x = ops.Parameter(b, 0, xlapy.Shape.array(F32, (4,)))
    with pytest.raises(xlapy.XlaError) as caught:
        call(b, x)
    assert "test_bad_input.py" in str(caught.value)
    assert xlapy.compile(b.build(x + 1)) is not None, "the builder is usable afterwards"


def test_errors_need_no_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    b = xlapy.XlaBuilder("wrong")
    x = ops.Parameter(b, 0, xlapy.Shape.array(F32, (4,)))
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    with pytest.raises(xlapy.XlaError, match=r"test_bad_input\.py"):
        ops.Reshape(x, (5,))
    assert "add" in xlapy.compile(b.build(x + 1)).explain(LIMITS)


# -- options, and values of another kind -------------------------------------------------------------------------------


def test_a_misspelt_option() -> None:
    with pytest.raises(TypeError, match=r"was given num_thread; did you mean num_threads\?"):
        xlapy.CompileOptions(num_thread=2)  # type: ignore[call-arg]


def test_a_misspelt_name_of_the_package() -> None:
    with pytest.raises(AttributeError) as caught:
        xlapy.complie  # noqa: B018
    assert caught.value.name == "complie" and caught.value.obj is xlapy


@pytest.mark.parametrize("count", [0, -3, "2", 2.5, None])
@pytest.mark.parametrize("name", ["num_replicas", "num_partitions"])
def test_a_number_of_processes_is_one_or_more(name: str, count: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=f"{name} is a number of processes, 1 or more, not {count!r}"):
        xlapy.CompileOptions(**{name: count})


@pytest.mark.parametrize(
    "options",
    [
        {"num_replicas": 10**5000},
        {"num_threads": 10**5000},
        {"seed": 10**5000},
        {"seed": 1 << 64},
        {"device_assignment": [10**5000]},
        {"custom_calls": {3: print}},
        {"custom_calls": {"f": "printf"}},
        {"custom_calls": {"f": 0}},
        {"custom_calls": {"f": 1 << 64}},
        {"custom_calls": {"f": 3}},
        {"custom_calls": {"f": ctypes.CFUNCTYPE(None)()}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_that_nothing_can_be_done_with(options: dict[str, Any]) -> None:
    with pytest.raises(xlapy.ArgumentError) as caught:
        xlapy.CompileOptions(**options)
    assert "Exceeds the limit" not in str(caught.value)


@pytest.mark.parametrize("body", ["negate(x)", "all-reduce(x), to_apply=sum"])
def test_more_processes_than_devices(body: str) -> None:
    region = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }"
    text = (
        f"HloModule m, replica_count=4294967296\n{region}\nENTRY e {{ x = f32[] parameter(0)  ROOT y = f32[] {body} }}"
    )
    with pytest.raises(xlapy.ArgumentError, match="4294967296 replicas of 1 partitions are more processes"):
        xlapy.compile(text)


def test_a_device_with_an_enormous_number() -> None:
    with pytest.raises(xlapy.ArgumentError, match="no 1099511627777 devices"):
        xlapy.compile("ENTRY e { ROOT x = f32[] parameter(0) }", xlapy.CompileOptions(device_assignment=[1 << 40]))


OPTIONS = [
    *(("num_threads", value) for value in ("x", 2.5)),
    *(("seed", value) for value in ("x", None, 1.5)),
    *(("device_assignment", value) for value in (3, ["a"], "0")),
    *(("disabled_passes", 3), ("disabled_laws", None), ("passes", 3), ("laws", 3), ("custom_calls", ["f"])),
    *(
        ("disabled_passes", [3]),
        ("disabled_laws", b"f"),
        ("passes", "dce"),
        ("laws", [[3]]),
        ("fast_math", "off"),
        ("contract", 1),
    ),
    *((name, np.array([None])) for name in ("num_threads", "seed", "passes")),
    *(("timeout", value) for value in ("x", -1, True, float("nan"))),
]


@pytest.mark.parametrize(("name", "value"), OPTIONS)
def test_options_of_another_kind(name: str, value: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=name):
        xlapy.CompileOptions(**{name: value})


@pytest.mark.parametrize("dims", [(2.5,), ("a",), 3, None, (np.float32(2),), ((2,),)])
def test_sizes_are_integers(dims: Any) -> None:
    with pytest.raises(xlapy.ShapeError, match="the sizes of an array are a list of integers"):
        xlapy.Shape.array(F32, dims)


@pytest.mark.parametrize(
    "dtype", [None, 3, "float31", np.array(1), object, [("x", "f4")], "U5", "M8[s]", (1, 2)], ids=str
)
def test_what_is_no_element_type(dtype: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match="element type"):
        xlapy.Shape.array(dtype, (2,))


@pytest.mark.parametrize("elements", [None, 3, "ab", [None], [xlapy.Shape.scalar(F32), (2, 3)]], ids=str)
def test_tuples_are_of_shapes(elements: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match="a tuple is made of"):
        xlapy.Shape.tuple(elements)


def test_flags_and_layouts_are_lists() -> None:
    for flags in (3, None, [np.zeros(2)]):
        with pytest.raises(xlapy.ShapeError, match="flags of dimensions are a list of bools"):
            xlapy.Shape.array(F32, (2,), flags)  # type: ignore[arg-type]
    for layout in (3, ["a", "b"], [0.0, 1.0]):
        with pytest.raises(xlapy.ShapeError, match="a layout is a list of dimensions"):
            xlapy.Shape.array(F32, (2, 3), (), layout)  # type: ignore[arg-type]
    assert str(xlapy.Shape.array(F32, (2, 3), np.array([False, True]))) == "f32[2,<=3]"  # type: ignore[arg-type]


def test_a_flag_for_each_dimension() -> None:
    with pytest.raises(xlapy.ShapeError, match="2 flags say which of 1 dimensions are dynamic"):
        xlapy.Shape.array(F32, (2,), (True, False))


def test_arguments_of_another_kind() -> None:
    exe = exe_of()
    for arguments in ({"seed": "x"}, {"device": 3}, {"device": 0}):
        with pytest.raises(xlapy.ArgumentError, match=next(iter(arguments))):
            exe.run(GOOD, GOOD, **arguments)
    for rows in (3, None, [3], [GOOD], GOOD):
        with pytest.raises(xlapy.ArgumentError, match="takes a list of lists: of the arguments for its process"):
            exe.run_parallel(rows)  # type: ignore[arg-type]
    for profile in (3, "page.html"):
        with pytest.raises(xlapy.ArgumentError, match=r"a profile is what Executable\.profile returns"):
            exe.html_report(None, profile)  # type: ignore[arg-type]
    with pytest.raises(xlapy.ArgumentError, match="options are CompileOptions"):
        xlapy.compile("ENTRY e { ROOT x = f32[] parameter(0) }", {"num_threads": 1})  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [0, -1, 1.0, 2.5, "2", [1], (1 << 16) + 1])
def test_numbers_of_devices(count: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=r"no -?\d+ devices|is an integer"):
        xlapy.devices(count)
    assert len(xlapy.devices(np.int64(2))) == 2


@pytest.mark.parametrize("value", [3, "x", ["f"]])
def test_functions_that_are_given_something_else(value: Any) -> None:
    program = "ENTRY e { ROOT x = f32[] parameter(0) }"
    calls = [
        lambda: xlapy.evaluate(program, F32(1), custom_calls=value),
        lambda: xlapy.stablehlo.to_text(value),
        lambda: xlapy.register_custom_call_target(value, value),
        lambda: xlapy.hlo.parse(program) and xlapy.devices("x"),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(
            xlapy.ArgumentError,
            match=r"custom_calls|is written as text|custom call target|nor a function pointer|devices",
        ):
            call()


# -- names and texts that go along -------------------------------------------------------------------------------------

AWKWARD = ['a"b', "a\nb", "a\\b", "na\u00efve", "{", "}", "a b", "", "\0", "x" * 10_000, "//", "/*", "\t", '\u00e9"\\n']


class Metadata:
    def __init__(self, text: str) -> None:
        self.op_name = self.op_type = self.source_file = text
        self.source_line = 3


@pytest.mark.parametrize("text", AWKWARD, ids=range(len(AWKWARD)))
def test_any_text_is_carried_along(text: str) -> None:
    """As the name of a builder and a parameter, in metadata and frontend attributes: in all forms of the program."""
    b = xlapy.XlaBuilder(text)
    b.set_op_metadata(Metadata(text))
    b.set_frontend_attributes({"key": text})
    x = ops.Parameter(b, 0, xlapy.Shape.array(F32, (4,)), text)
    computation = b.build(x + 1)
    written = computation.module.to_text(long=True)
    again = xlapy.hlo.parse(written)
    assert again.to_text(long=True) == written
    assert again.entry.root.metadata.op_name == text
    value = np.ones(4, F32)
    for program in (computation, written, xlapy.stablehlo.to_text(again), xlapy.stablehlo.to_text(again, pretty=True)):
        assert_same(xlapy.compile(program)(value), value + 1)


def test_half_a_character_is_no_text() -> None:
    b = xlapy.XlaBuilder("half")
    shape = xlapy.Shape.scalar(F32)
    half = "\ud800"
    calls = [
        lambda: xlapy.XlaBuilder(half),
        lambda: b.parameter(0, shape, half),
        lambda: b.set_op_metadata(Metadata(half)),
        lambda: b.set_frontend_attributes({"key": half}),
        lambda: ops.CustomCall(b, half, [], shape),
    ]
    for call in calls:
        with pytest.raises(xlapy.ArgumentError, match="half a character"):
            call()


def test_a_program_with_half_a_character_in_a_comment() -> None:
    text = 'ENTRY e { x = f32[] parameter(0)  ROOT y = f32[] negate(x), metadata={op_name="\ud800"} } // \udfff'
    for program in (text, xlapy.hlo.parse(text)):
        assert_same(xlapy.compile(program)(F32(1)), F32(-1))


def test_a_source_file_whose_name_is_no_text() -> None:
    b = xlapy.XlaBuilder("named in Latin-1")
    made = compile("x = b.constant(np.ones(2, np.float32)) + 1", "/tmp/caf\udce9.py", "exec")
    scope = {"b": b, "np": np}
    exec(made, scope)
    computation = b.build()
    assert_same(xlapy.compile(computation)(), np.full(2, 2, F32))
    assert computation.module.entry.root.metadata.source_file == "/tmp/caf?.py"


@pytest.mark.parametrize(
    "attributes", [None, 3, "key", {"key": 3}, {3: "text"}, {"a key": "text"}, {"": ""}, {'"': ""}]
)
def test_what_are_no_frontend_attributes(attributes: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=r"set_frontend_attributes(?s:.*)test_bad_input\.py"):
        xlapy.XlaBuilder("b").set_frontend_attributes(attributes)


@pytest.mark.parametrize("sharding", [None, "", "replicated", "{", "}{", "{replicated} {}", '{"}', "{a}, metadata={"])
def test_what_is_no_sharding(sharding: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=r"a sharding is HLO's text in braces(?s:.*)test_bad_input\.py"):
        xlapy.XlaBuilder("b").set_sharding(sharding)


def test_aliases_and_donors_of_another_kind() -> None:
    b = xlapy.XlaBuilder("alias")
    calls = [
        lambda: xlapy.XlaBuilder(3),  # type: ignore[arg-type]
        lambda: b.setup_alias((), "x"),  # type: ignore[arg-type]
        lambda: b.setup_alias(("x",), 0),  # type: ignore[arg-type]
        lambda: b.add_buffer_donor(None),  # type: ignore[arg-type]
        lambda: b.add_buffer_donor(0, 1.5),  # type: ignore[arg-type]
        lambda: b.set_hidden_token(True),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(xlapy.ArgumentError):
            call()
