"""C++ handlers of the typed custom-call API, compiled here from XLA's header, called by native programs."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.ffi
import ml_dtypes
import numpy as np
import pytest

import xlapy
from xlapy_runtime import typed_calls

COMPILER = shutil.which("g++") or shutil.which("c++")

SOURCE = r"""
#include <cstring>
#include <string>
#include <thread>
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error Scaled(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y, float scale, int32_t shift,
                         bool negate, std::string_view name, ffi::Span<const int64_t> axes, ffi::Dictionary more) {
  if (name != "sc\"aled") return ffi::Error::InvalidArgument("the name is " + std::string(name));
  ffi::ErrorOr<double> bias = more.get<double>("bias");
  if (bias.has_error()) return bias.error();
  for (size_t i = 0; i < x.element_count(); ++i) {
    float value = x.typed_data()[i] * scale + shift + static_cast<float>(*bias) + axes[axes.size() - 1];
    y->typed_data()[i] = negate ? -value : value;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(scaled, Scaled, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>()
    .Attr<float>("scale").Attr<int32_t>("shift").Attr<bool>("negate").Attr<std::string_view>("name")
    .Attr<ffi::Span<const int64_t>>("axes").Attr<ffi::Dictionary>("more"));

// What it is given, as numbers: element type, rank and dimensions of each operand.
static ffi::Error Described(ffi::RemainingArgs args, ffi::RemainingRets rets) {
  auto result = rets.get<ffi::Buffer<ffi::S64>>(rets.size() - 1);
  int64_t* out = (*result)->typed_data();
  for (size_t i = 0; i < args.size(); ++i) {
    auto x = args.get<ffi::AnyBuffer>(i);
    *out++ = static_cast<int64_t>(x->element_type());
    *out++ = x->dimensions().size();
    for (int64_t d : x->dimensions()) *out++ = d;
  }
  if (rets.size() > 1) {
    auto copy = rets.get<ffi::AnyBuffer>(0);
    std::memcpy((*copy)->untyped_data(), args.get<ffi::AnyBuffer>(0)->untyped_data(), (*copy)->size_bytes());
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(described, Described, ffi::Ffi::Bind().RemainingArgs().RemainingRets());

struct Counter { static ffi::TypeId id; int64_t calls; static int64_t ended; ~Counter() { ++ended; } };
ffi::TypeId Counter::id = {};
int64_t Counter::ended = 0;
extern "C" int64_t ended() { return Counter::ended; }

static ffi::ErrorOr<std::unique_ptr<Counter>> Begin(int64_t first) {
  if (first < 0) return ffi::Unexpected(ffi::Error(ffi::ErrorCode::kOutOfRange, "it cannot begin below zero"));
  auto counter = std::make_unique<Counter>();
  counter->calls = first;
  return ffi::ErrorOr<std::unique_ptr<Counter>>(std::move(counter));
}
static ffi::Error Count(Counter* counter, ffi::ResultBuffer<ffi::S64> y) {
  *y->typed_data() = counter->calls++;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(begin_count, Begin, ffi::Ffi::BindInstantiate().Attr<int64_t>("first"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(count, Count, ffi::Ffi::Bind().Ctx<ffi::State<Counter>>().Ret<ffi::Buffer<ffi::S64>>());

static XLA_FFI_TypeInfo counter_info = ffi::MakeTypeInfo<Counter>();
extern "C" XLA_FFI_Error* register_counter(const XLA_FFI_Api* api) {
  return ffi::Ffi::RegisterTypeId(api, "counter", &Counter::id, &counter_info);
}

static ffi::Future Later(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  int scheduled = 0;
  pool.Schedule([&] { ++scheduled; });
  std::thread([x, y, scheduled, promise = std::move(promise)]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i] + scheduled;
    if (x.typed_data()[0] < 0) promise.SetError(ffi::Error::Internal("negative"));
    else promise.SetAvailable();
  }).detach();
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(later, Later,
    ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

static ffi::Error Odd(int64_t code) {
  return ffi::Error(static_cast<ffi::ErrorCode>(code), "what has happened");
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(odd, Odd, ffi::Ffi::Bind().Attr<int64_t>("code"));

static ffi::Error Where(int32_t device, ffi::RunId run, ffi::ResultBuffer<ffi::S64> y) {
  y->typed_data()[0] = device;
  y->typed_data()[1] = run.run_id != 0;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(where, Where,
    ffi::Ffi::Bind().Ctx<ffi::DeviceOrdinal>().Ctx<ffi::RunId>().Ret<ffi::Buffer<ffi::S64>>());
"""


@pytest.fixture(scope="module")
def handlers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if COMPILER is None:
        pytest.skip("needs a C++ compiler")
    folder: Path = tmp_path_factory.mktemp("handlers")
    (folder / "handlers.cc").write_text(SOURCE)
    command = [COMPILER, "-std=c++17", "-O0", "-shared", "-fPIC", f"-I{jax.ffi.include_dir()}", "-pthread"]
    subprocess.run([*command, "handlers.cc", "-o", "handlers.so"], cwd=folder, check=True)
    yield ctypes.CDLL(str(folder / "handlers.so"))


def compiled(target: Any, call: str, parameters: str = "", **options: Any) -> xlapy.Executable:
    text = f"""HloModule m
      ENTRY main {{ {parameters}
        ROOT c = {call}, custom_call_target="target", api_version=API_VERSION_TYPED_FFI{options.pop("config", "")} }}"""
    return xlapy.compile(text, xlapy.CompileOptions(custom_calls={"target": target}, **options))


X = np.arange(6, dtype=np.float32).reshape(2, 3)
F32_23 = "x = f32[2,3] parameter(0)"
CONFIG = (
    '{scale = 2.5 : f32, shift = 3 : i32, negate = true, name = "sc\\22aled", '
    "axes = array<i64: 7, 100>, more = {bias = 0.5 : f64, other = 1 : ui8}}"
)


def test_buffers_and_attributes_of_every_kind(handlers: Any) -> None:
    run = compiled(handlers.scaled, "f32[2,3] custom-call(x)", F32_23, config=f", backend_config={CONFIG}")
    np.testing.assert_array_equal(run(X), -(X * np.float32(2.5) + 103.5))


def test_jax_says_the_attributes(handlers: Any) -> None:
    def function(x: Any) -> Any:
        call = jax.ffi.ffi_call("target", jax.ShapeDtypeStruct(X.shape, X.dtype))
        attributes = {
            "scale": np.float32(2.5),
            "shift": np.int32(3),
            "negate": False,
            "name": 'sc"aled',
            "axes": np.array([7, 100]),
            "more": {"bias": np.float64(0.5)},
        }
        return call(x, **attributes)

    text = jax.jit(function).lower(X).as_text()
    run = xlapy.compile(text, xlapy.CompileOptions(custom_calls={"target": handlers.scaled}))
    np.testing.assert_array_equal(run(X), X * np.float32(2.5) + 103.5)


def test_errors_come_with_their_code_and_their_place(handlers: Any) -> None:
    config = CONFIG.replace("sc\\22aled", "x")
    run = compiled(handlers.scaled, "f32[2,3] custom-call(x)", F32_23, config=f", backend_config={config}")
    for _ in range(2):
        with pytest.raises(xlapy.ExecutionError, match="'target' failed: INVALID_ARGUMENT: the name is x") as caught:
            run(X)
        assert str(caught.value).startswith("c on device 0: ")
    missing = compiled(handlers.scaled, "f32[2,3] custom-call(x)", F32_23)
    with pytest.raises(xlapy.ExecutionError, match=r"INVALID_ARGUMENT.*[Ww]rong number of attributes"):
        missing(X)
    halves = compiled(handlers.scaled, "f32[2,3] custom-call(x)", "x = f16[2,3] parameter(0)",
                      config=f", backend_config={CONFIG}")  # fmt: skip
    with pytest.raises(xlapy.ExecutionError, match=r"F32.*F16"):
        halves(X.astype(np.float16))


@pytest.mark.parametrize("code", [17, 253])
def test_errors_of_unknown_codes_keep_their_message(handlers: Any, code: int) -> None:
    run = compiled(handlers.odd, "s64[] custom-call()", config=f", backend_config={{code = {code} : i64}}")
    with pytest.raises(xlapy.ExecutionError, match=rf"'target' failed: error code {code}: what has happened"):
        run()


def test_any_number_of_arrays_of_any_type(handlers: Any) -> None:
    types = {"pred": 1, "s8": 2, "u64": 9, "bf16": 16, "c128": 18, "f8e4m3fn": 20, "s4": 21, "f64": 12}
    for name, number in types.items():
        shape = xlapy.Shape.array(name, (2,))
        run = compiled(
            handlers.described,
            f"({name}[2], s64[8]) custom-call(x, y)",
            f"x = {name}[2] parameter(0)  y = f32[1,1,5] parameter(1)",
        )
        value = np.array([1, 0]).astype(shape.type.dtype)
        copied, described = run(value, np.zeros((1, 1, 5), np.float32))
        assert copied.tobytes() == value.tobytes()
        assert described.tolist() == [number, 1, 2, 11, 3, 1, 1, 5]
    assert ml_dtypes.int4 == xlapy.Shape.array("s4", ()).type.dtype


def test_state_lives_as_long_as_its_program(handlers: Any) -> None:
    from xlapy_runtime import typed_calls

    handlers.register_counter.restype = ctypes.c_void_p
    assert not handlers.register_counter(ctypes.c_void_p(ctypes.addressof(typed_calls._API)))
    stages = {"instantiate": handlers.begin_count, "execute": handlers.count}
    before = handlers.ended()
    run = compiled(stages, "s64[] custom-call()", config=", backend_config={first = 5 : i64}")
    assert [int(run()) for _ in range(3)] == [5, 6, 7]
    other = compiled(stages, "s64[] custom-call()", config=", backend_config={first = -1 : i64}")
    with pytest.raises(xlapy.ExecutionError, match="OUT_OF_RANGE: it cannot begin below zero"):
        other()
    assert handlers.ended() == before
    del run
    gc.collect()
    assert handlers.ended() == before + 1


def test_a_handler_may_end_later(handlers: Any) -> None:
    run = compiled(handlers.later, "f32[2,3] custom-call(x)", F32_23)
    np.testing.assert_array_equal(run(X), X + 1)
    with pytest.raises(xlapy.ExecutionError, match="INTERNAL: negative"):
        run(X - 1)


def test_a_handler_knows_its_device(handlers: Any) -> None:
    run = compiled(handlers.where, "s64[2] custom-call()", num_replicas=3)
    assert [row.tolist() for row in run.run_parallel([[]] * 3)] == [[0, 1], [1, 1], [2, 1]]


def test_what_later_headers_ask_for() -> None:
    """Versions 0.4 and 0.5 ask for an error's code, for extensions, and for options of a single call."""

    def ask(number: int, arguments: Any) -> Any:
        arguments.struct_size = ctypes.sizeof(arguments)
        assert not typed_calls.Handler(typed_calls._API.functions[number])(ctypes.addressof(arguments))
        return arguments

    error = typed_calls._error(3, b"what has happened")
    assert ask(1, typed_calls._MessageArguments(error=error)).message == b"what has happened"
    details = ask(1, typed_calls._DetailsArguments(error=error))
    assert (details.message, details.code) == (b"what has happened", 3)
    ask(2, typed_calls._ErrorOnly(error=error))
    assert ask(18, typed_calls._ExtensionArguments(type=7, extension=1)).extension is None
    options = ask(19, typed_calls._OptionsArguments())
    assert typed_calls.Attributes.from_address(options.attributes).size == 0


@pytest.mark.parametrize(("version", "is_taken"), [((0, 2), False), ((0, 3), True), ((0, 5), True), ((0, 6), False)])
def test_versions_of_the_header(version: tuple[int, int], is_taken: bool) -> None:
    def handler(frame: int) -> None:
        extension = typed_calls.CallFrame.from_address(frame).extension
        if extension:
            metadata = typed_calls.MetadataExtension.from_address(extension).metadata
            told = typed_calls.Metadata.from_address(metadata).version
            told.major, told.minor = version

    run = compiled(ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(handler), "s64[] custom-call()")
    if is_taken:
        assert run().shape == ()
        return
    with pytest.raises(xlapy.ExecutionError, match=r"and this takes 0\.3 to 0\.5"):
        run()


def test_handlers_that_cannot_be_called_are_refused(handlers: Any) -> None:
    without = compiled({"prepare": handlers.count}, "s64[] custom-call()")
    with pytest.raises(xlapy.ArgumentError, match="there must be execute"):
        without()
    old = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda frame: None)
    with pytest.raises(xlapy.ExecutionError, match=r"compiled with version 0\.0 of XLA's FFI header"):
        compiled(old, "s64[] custom-call()")()
    with pytest.raises(xlapy.ArgumentError, match="neither callable nor a function pointer"):
        xlapy.register_custom_call_target("no handler", {"execute": "x"})
