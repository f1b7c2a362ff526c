"""Saved programs: what runs in a process that has no compiler, and what happens to files that are not as they were."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
import xlapy_runtime
from tests.support.fresh import ROOT
from xlapy import CompileOptions, ops
from xlapy.codegen.target import REFERENCE_MACHINES, host_target, reference_target
from xlapy_runtime import calling, processor_features, saved, saved_file, threads
from xlapy_runtime.errors import ArgumentError, ExecutionError, SavedProgramError, UnsupportedError
from xlapy_runtime.hand_written import is_linux_on_x86
from xlapy_runtime.saved_file import read_saved, write_saved

RANDOM = np.random.default_rng(20)


def normal(*dims: int, dtype: Any = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(dims).astype(dtype)


@dataclass(frozen=True)
class Case:
    """A program, and a call of it. `arguments` are lists of them, one for each process, where there are several."""

    name: str
    text: str
    arguments: list[Any]
    options: Mapping[str, Any] = field(default_factory=dict)


REGIONS = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
"""

CASES = [
    Case(
        "loop_and_branches",
        """HloModule control
        twice { p = f32[64] parameter(0)
          ROOT q = f32[64] add(p, p) }
        halved { p = f32[64] parameter(0)
          h = f32[] constant(0.5)
          hs = f32[64] broadcast(h), dimensions={}
          ROOT q = f32[64] multiply(p, hs) }
        body { p = (s32[], f32[64]) parameter(0)
          n = s32[] get-tuple-element(p), index=0
          x = f32[64] get-tuple-element(p), index=1
          one = s32[] constant(1)
          m = s32[] add(n, one)
          two = s32[] constant(2)
          r = s32[] remainder(n, two)
          zero = s32[] constant(0)
          even = pred[] compare(r, zero), direction=EQ
          y = f32[64] conditional(even, x, x), true_computation=twice, false_computation=halved
          ROOT t = (s32[], f32[64]) tuple(m, y) }
        goes_on { p = (s32[], f32[64]) parameter(0)
          n = s32[] get-tuple-element(p), index=0
          limit = s32[] constant(7)
          ROOT c = pred[] compare(n, limit), direction=LT }
        ENTRY main { n = s32[] parameter(0)
          x = f32[64] parameter(1)
          t = (s32[], f32[64]) tuple(n, x)
          ROOT w = (s32[], f32[64]) while(t), condition=goes_on, body=body }""",
        [np.int32(2), normal(64)],
    ),
    Case(
        "product_in_threads",
        """HloModule product
        ENTRY main { x = f32[150,130] parameter(0)
          y = f32[130,170] parameter(1)
          ROOT z = f32[150,170] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }""",
        [normal(150, 130), normal(130, 170)],
        {"num_threads": 2},
    ),
    Case(
        "sort",
        f"""HloModule sorted
        {REGIONS}
        ENTRY main {{ x = f32[1000] parameter(0)
          ROOT y = f32[1000] sort(x), dimensions={{0}}, to_apply=less }}""",
        [normal(1000)],
    ),
    Case(
        "fourier_transform",
        """HloModule transformed
        ENTRY main { x = c64[60,8] parameter(0)
          ROOT y = c64[60,8] fft(x), fft_type=FFT, fft_length={60,8} }""",
        [normal(60, 8, dtype=np.complex64)],
    ),
    Case(
        "convolution",
        """HloModule convolved
        ENTRY main { x = f32[2,12,12,8] parameter(0)
          w = f32[3,3,8,16] parameter(1)
          ROOT y = f32[2,12,12,16] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }""",
        [normal(2, 12, 12, 8), normal(3, 3, 8, 16)],
    ),
    Case(
        "functions_of_libraries",
        """HloModule angles
        ENTRY main { x = f32[3,5] parameter(0)
          s = f32[3,5] sine(x)
          a = f32[3,5] abs(x)
          p = f32[3,5] power(a, s)
          ROOT t = f32[3,5] add(p, s) }""",
        [normal(3, 5) * 1e6],
    ),
    Case(
        "softmax",
        f"""HloModule softmax
        most {{ a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] maximum(a, b) }}
        {REGIONS}
        ENTRY main {{ x = f32[30,200] parameter(0)
          low = f32[] constant(-inf)
          m = f32[30] reduce(x, low), dimensions={{1}}, to_apply=most
          ms = f32[30,200] broadcast(m), dimensions={{0}}
          d = f32[30,200] subtract(x, ms)
          e = f32[30,200] exponential(d)
          zero = f32[] constant(0)
          s = f32[30] reduce(e, zero), dimensions={{1}}, to_apply=add
          ss = f32[30,200] broadcast(s), dimensions={{0}}
          ROOT y = f32[30,200] divide(e, ss) }}""",
        [normal(30, 200)],
    ),
    Case(
        "lapack",
        """HloModule factors
        ENTRY main { x = f32[4,3,3] parameter(0)
          ROOT y = (f32[4,3,3]{1,2,0}, s32[4,3], s32[4]) custom-call(x), custom_call_target="lapack_sgetrf_ffi",
            operand_layout_constraints={f32[4,3,3]{1,2,0}}, api_version=API_VERSION_TYPED_FFI }""",
        [normal(4, 3, 3)],
    ),
    Case(
        "constants",
        f"""HloModule constants
        ENTRY main {{ x = f32[300] parameter(0)
          c = f32[300] constant({{{", ".join(str(n / 7) for n in range(300))}}})
          k = s64[3] constant({{1, 2, 3}})
          y = f32[300] add(x, c)
          ROOT t = (f32[300], s64[3]) tuple(y, k) }}""",
        [normal(300)],
    ),
    Case(
        "nested_tuples",
        """HloModule nested
        ENTRY main { p = ((f32[4], s8[2]), f64[]) parameter(0)
          a = (f32[4], s8[2]) get-tuple-element(p), index=0
          b = f64[] get-tuple-element(p), index=1
          e = () tuple()
          ROOT t = (f64[], (), ((f32[4], s8[2]), f64[])) tuple(b, e, p) }""",
        [((normal(4), np.array([1, -2], np.int8)), np.float64(0.5))],
    ),
    Case(
        "donation",
        """HloModule step, input_output_alias={ {}: (0, {}) }
        ENTRY main { w = f32[100] parameter(0)
          g = f32[100] parameter(1)
          ROOT y = f32[100] subtract(w, g) }""",
        [normal(100), normal(100)],
    ),
    Case(
        "random_numbers",
        """HloModule drawn
        ENTRY main { low = f32[] constant(-1)
          high = f32[] constant(3)
          x = f32[50] rng(low, high), distribution=rng_uniform
          s = u64[2] parameter(0)
          b = (u64[2], u32[9]) rng-bit-generator(s), algorithm=rng_philox
          ROOT t = (f32[50], (u64[2], u32[9])) tuple(x, b) }""",
        [np.array([3, 4], np.uint64)],
        {"seed": 2**63 + 5},
    ),
    Case(
        "nothing_in_arrays",
        """HloModule nothing
        ENTRY main { x = f32[0,5] parameter(0)
          y = f32[3,0] parameter(1)
          z = f32[0,5] add(x, x)
          d = f32[3,5] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          ROOT t = (f32[0,5], f32[3,5]) tuple(z, d) }""",
        [np.zeros((0, 5), np.float32), np.zeros((3, 0), np.float32)],
    ),
    Case(
        "narrow_and_complex",
        """HloModule kinds
        ENTRY main { x = bf16[40,40] parameter(0)
          f = f8e4m3fn[33] parameter(1)
          z = c128[20] parameter(2)
          p = pred[7] parameter(3)
          i = s4[5] parameter(4)
          xx = bf16[40,40] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          ff = f8e4m3fn[33] add(f, f)
          zz = c128[20] exponential(z)
          pp = pred[7] not(p)
          ii = s4[5] negate(i)
          ROOT t = (bf16[40,40], f8e4m3fn[33], c128[20], pred[7], s4[5]) tuple(xx, ff, zz, pp, ii) }""",
        [
            normal(40, 40, dtype=ml_dtypes.bfloat16),
            normal(33, dtype=ml_dtypes.float8_e4m3fn),
            normal(20, dtype=np.complex128) * (1 + 2j),
            normal(7) > 0,
            np.arange(5).astype(ml_dtypes.int4),
        ],
    ),
    Case(
        "sizes_of_their_own",
        """HloModule bounded
        ENTRY main { x = f32[<=8] parameter(0)
          ROOT y = f32[<=8] add(x, x) }""",
        [normal(5)],
    ),
    Case(
        "four_devices",
        f"""HloModule met, replica_count=4
        {REGIONS}
        ENTRY main {{ x = f32[40] parameter(0)
          s = f32[40] all-reduce(x), replica_groups={{{{0,1,2,3}}}}, to_apply=add
          r = u32[] replica-id()
          p = f32[40] collective-permute(s), source_target_pairs={{{{0,1}},{{1,2}},{{2,3}},{{3,0}}}}
          y = f32[40] add(s, p)
          ROOT t = (f32[40], u32[]) tuple(y, r) }}""",
        [[normal(40)] for _ in range(4)],
        {"device_assignment": [3, 1, 0, 2], "timeout": 20.0},
    ),
]

CHILD = """
import pickle, sys
import xlapy_runtime
path, given, answer, is_parallel = sys.argv[1:]
with open(given, "rb") as file:
    arguments = pickle.load(file)
program = xlapy_runtime.load(path)
results = program.run_parallel(arguments) if int(is_parallel) else program(*arguments)
with open(answer, "wb") as file:
    pickle.dump(results, file)
print([name for name in sys.modules if name.partition(".")[0] in ("xlapy", "llvmlite")])
"""


def run_apart(script: str, *arguments: str) -> str:
    """What a script prints in a process that has the runtime only, no cache, and no home."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("XLAPY_")}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**surroundings, "PYTHONPATH": str(ROOT / "runtime"), "HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def bits(value: Any) -> Any:
    """All of a result, down to the last bit."""
    if isinstance(value, (tuple, list)):
        return [bits(part) for part in value]
    array = np.asarray(value)
    return array.dtype, array.shape, array.tobytes()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_runtime_alone_computes_the_same_bits(case: Case, tmp_path: Path) -> None:
    executable = xlapy.compile(case.text, CompileOptions(**case.options))
    path, given, answer = (tmp_path / name for name in ("program.xlapy", "given", "answer"))
    executable.save(path)
    given.write_bytes(pickle.dumps(case.arguments))
    is_parallel = case.name == "four_devices"
    loaded = run_apart(CHILD, str(path), str(given), str(answer), str(int(is_parallel)))
    assert loaded == "[]"
    arguments = copy.deepcopy(case.arguments)
    expected = executable.run_parallel(arguments) if is_parallel else executable(*arguments)
    assert bits(pickle.loads(answer.read_bytes())) == bits(expected)


def test_the_cases_are_of_all_kinds(tmp_path: Path) -> None:
    """Some need the libraries, the native code of parallel runs, the loops of LAPACK, and constants."""
    found: set[str] = set()
    for case in CASES:
        executable = xlapy.compile(case.text, CompileOptions(**case.options))
        executable.save(tmp_path / "program.xlapy")
        parts = read_saved(str(tmp_path / "program.xlapy"))[1]
        found |= {name.partition("_")[0] for name, codes in parts.items() if codes}
        found |= {"constants"} if executable._compiled.program.constants else set()
    wanted = {"planned calls", "constants", "pool", "rendezvous", "wrapper"}
    wanted |= {f"library {name}" for name in ("fft", "gemm", "scratch", "sort")}
    assert wanted <= found


def test_feeds_and_targets_of_the_loading_process(tmp_path: Path) -> None:
    text = """HloModule talks
    ENTRY main { x = f32[4] parameter(0)
      t = token[] after-all()
      i = (f32[4], token[]) infeed(t)
      v = f32[4] get-tuple-element(i), index=0
      y = f32[4] add(x, v)
      c = f32[4] custom-call(y), custom_call_target="sort_down"
      t2 = token[] get-tuple-element(i), index=1
      o = token[] outfeed(c, t2), outfeed_shape=f32[4]
      ROOT r = f32[4] negate(c) }"""
    path = tmp_path / "talks.xlapy"
    xlapy.compile(text, CompileOptions(custom_calls={"sort_down": lambda v: np.sort(v)[::-1]})).save(path)
    script = """
import sys
import numpy as np
import xlapy_runtime
from xlapy_runtime.device import devices
program = xlapy_runtime.load(sys.argv[1], custom_calls={"sort_down": lambda v: np.sort(v)[::-1]})
(device,) = devices(1)
x = np.arange(4, dtype=np.float32)
device.transfer_to_infeed(x)
print(program(x).tolist(), device.transfer_from_outfeed(timeout=10).tolist())
"""
    assert run_apart(script, str(path)) == "[-6.0, -4.0, -2.0, -0.0] [6.0, 4.0, 2.0, 0.0]"


SOURCE = """HloModule doubled
ENTRY main { x = f32[100] parameter(0)
  ROOT y = f32[100] add(x, x) }"""
X = np.arange(100, dtype=np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A small saved program."""
    xlapy.compile(SOURCE).save(tmp_path / "doubled.xlapy")
    return tmp_path / "doubled.xlapy"


def changed(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Path:
    """The file with another header or other parts, as if it had been saved so."""
    header, parts = read_saved(str(path))
    own = {name: [bytes(code) for code in codes] for name, codes in parts.items()}
    change(header, own)
    write_saved(str(path), header, own)
    return path


def test_a_saved_program_is_called_like_an_executable(path: Path) -> None:
    program = xlapy_runtime.load(path)
    assert isinstance(program, xlapy_runtime.SavedProgram)
    assert (program(X) == 2 * X).all() and (program(X[::-1]) == 2 * X[::-1]).all()
    assert (program.run(X, device=xlapy.devices(2)[1], seed=3, timeout=5) == 2 * X).all()
    assert (program.run_parallel([[X]])[0] == 2 * X).all()
    assert program.name == "doubled" and program.donations == {}
    assert repr(program) == f"<SavedProgram doubled (f32[100]) -> f32[100], from {path}>"
    assert copy.copy(program) is copy.deepcopy(program) is program
    with pytest.raises(ArgumentError, match=r"f32\[100\]"):
        program(X[:5])
    with pytest.raises(TypeError, match=f"load {path}"):
        pickle.dumps(program)


def test_donated_arguments_are_results(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "donation")
    xlapy.compile(case.text).save(tmp_path / "step.xlapy")
    step = xlapy_runtime.load(tmp_path / "step.xlapy")
    mine, slope = np.ones(100, np.float32), np.full(100, 0.25, np.float32)
    assert step(mine, slope) is mine and (mine == 0.75).all()
    assert step.donations == {0: 0}


def test_options_are_those_it_was_compiled_with(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "random_numbers")
    path = tmp_path / "drawn.xlapy"
    xlapy.compile(case.text, CompileOptions(seed=7, timeout=2, num_threads=1)).save(path)
    drawn, other = xlapy_runtime.load(path), xlapy.compile(case.text, CompileOptions(seed=7))
    assert bits(drawn(*case.arguments)) == bits(other(*case.arguments))
    assert bits(drawn(*case.arguments)) == bits(other(*case.arguments))  # the second call, with other numbers
    assert drawn._executable.timeout == 2


def test_the_threads_of_a_loaded_program_are_the_callers_choice(path: Path) -> None:
    case = next(case for case in CASES if case.name == "product_in_threads")
    executable = xlapy.compile(case.text, CompileOptions(num_threads=2))
    executable.save(path)
    expected = bits(executable(*case.arguments))
    for count in (1, 3, None):
        assert bits(xlapy_runtime.load(path, num_threads=count)(*case.arguments)) == expected
    for wrong in (0, -1, 2.5, "2"):
        with pytest.raises(ArgumentError, match="num_threads is "):
            xlapy_runtime.load(path, num_threads=wrong)  # type: ignore[arg-type]


def test_a_file_is_the_same_each_time(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the program comes from the cache."""
    monkeypatch.setenv("XLAPY_CACHE_DIR", str(tmp_path / "cache"))
    xlapy.compile(SOURCE)
    cached = xlapy.compile(SOURCE)
    assert cached.compile_stats().cached
    cached.save(str(tmp_path / "again.xlapy"))
    assert (tmp_path / "again.xlapy").read_bytes()[:64] == path.read_bytes()[:64]


def test_programs_share_libraries(tmp_path: Path) -> None:
    for rows in (33, 40):
        text = f"""HloModule product
        ENTRY main {{ x = f32[{rows},130] parameter(0)
          y = f32[130,170] parameter(1)
          ROOT z = f32[{rows},170] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}"""
        executable = xlapy.compile(text)
        assert "gemm_f32" in executable._compiled.program.libraries
        executable.save(tmp_path / f"{rows}.xlapy")
    programs = [xlapy_runtime.load(tmp_path / "33.xlapy")]
    count = len(saved._LOADED_LIBRARIES)
    programs.append(xlapy_runtime.load(tmp_path / "40.xlapy"))
    assert len(saved._LOADED_LIBRARIES) == count
    for rows, program in zip((33, 40), programs, strict=True):
        assert (program(np.ones((rows, 130), np.float32), np.ones((130, 170), np.float32)) == 130).all()
    xlapy.trim()


def test_programs_with_open_sizes_have_nothing_to_save(tmp_path: Path) -> None:
    text = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"
    executable = xlapy.compile(text)
    with pytest.raises(UnsupportedError, match=r"exe.specialize\(\*arguments\)"):
        executable.save(tmp_path / "open.xlapy")
    executable.specialize(X).save(tmp_path / "open.xlapy")
    assert (xlapy_runtime.load(tmp_path / "open.xlapy")(X) == X).all()


# -- custom calls --------------------------------------------------------------------------------------------------


def test_targets_are_given_when_loading(tmp_path: Path) -> None:
    b = xlapy.XlaBuilder("custom")
    x = ops.Parameter(b, 0, xlapy.Shape.of(X))
    computation = b.build(ops.CustomCall(b, "only_here", [x], xlapy.Shape.of(X)))
    xlapy.compile(computation, CompileOptions(custom_calls={"only_here": np.sqrt})).save(tmp_path / "custom.xlapy")
    program = xlapy_runtime.load(tmp_path / "custom.xlapy", custom_calls={"only_here": np.negative})
    assert (program(X) == -X).all()
    without = xlapy_runtime.load(tmp_path / "custom.xlapy")
    with pytest.raises(ExecutionError, match="no custom call target 'only_here'"):
        without(X)
    with pytest.raises(ArgumentError, match="custom_calls gives targets by their names"):
        xlapy_runtime.load(tmp_path / "custom.xlapy", custom_calls=[np.sqrt])  # type: ignore[arg-type]


# -- files that are not as they were -------------------------------------------------------------------------------


def refusal(path: Path) -> str:
    """What is said about a file that is not loaded; it names the file."""
    with pytest.raises(SavedProgramError) as raised:
        xlapy_runtime.load(path)
    assert isinstance(raised.value, ValueError) and str(path) in str(raised.value)
    return str(raised.value).replace(str(path), "it")


def test_truncated_files_are_refused(path: Path) -> None:
    whole = path.read_bytes()
    for length in reversed(range(len(whole))):
        os.truncate(path, length)
        said = refusal(path)
        assert said.startswith("it is empty" if length == 0 else "it is cut short: it has"), said
    path.write_bytes(whole + b"\0")
    assert refusal(path).startswith("it is damaged: something follows its end")


def test_no_byte_may_change(path: Path) -> None:
    said = set()
    with path.open("r+b", buffering=0) as file:
        for place, byte in enumerate(path.read_bytes()):
            os.pwrite(file.fileno(), bytes([byte ^ 1 << place % 8]), place)
            said.add(refusal(path).partition(":")[0])
            os.pwrite(file.fileno(), bytes([byte]), place)
    assert {"it is no saved program", "it is damaged", "it is cut short"} <= said


@pytest.mark.parametrize("content", [SOURCE.encode(), b"\x7fELF" + bytes(100), b"\0"], ids=["text", "objects", "zero"])
def test_other_files_are_refused(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    assert refusal(path) == "it is no saved program: give a file that `executable.save(path)` wrote"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.xlapy"):
        xlapy_runtime.load(tmp_path / "absent.xlapy")
    with pytest.raises(IsADirectoryError):
        xlapy_runtime.load(tmp_path)


@pytest.mark.parametrize("what", ["pipe", "device", "link to a pipe"])
def test_what_is_no_file_is_refused_at_once(what: str, path: Path) -> None:
    path.unlink()
    if what == "device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(path.with_suffix(".pipe"))
        path.symlink_to(path.with_suffix(".pipe"))
    if what == "pipe":
        path = path.with_suffix(".pipe")
    assert refusal(path) == "it is no regular file: give one that `executable.save(path)` wrote"


def test_another_format_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_file, "FORMAT", 7)
    xlapy.compile(SOURCE).save(path)
    monkeypatch.undo()
    assert refusal(path).startswith("it is of format 7, and this version of xlapy reads format 1; save the program")


def test_another_system_is_named(path: Path) -> None:
    changed(path, lambda header, parts: header.update(system="linux on aarch64, 64 bits, little endian"))
    assert refusal(path).startswith("it was saved for linux on aarch64, 64 bits, little endian, and this is ")


def test_another_version_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose native code and runtime do not lay out memory as they do here."""
    monkeypatch.setattr(threads, "MAX_THREADS", 77)
    assert refusal(path).startswith(f"it was saved by xlapy {xlapy.__version__}, whose native code this version cannot")


def test_processors_that_lack_something_are_told_what(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed(path, lambda header, parts: header["features"].append("avx4096"))
    assert refusal(path).startswith("it was saved on a machine whose processor has avx4096, which this one has not")


def test_processors_may_have_more(path: Path) -> None:
    changed(path, lambda header, parts: header.update(features=header["features"][:3]))
    assert (xlapy_runtime.load(path)(X) == 2 * X).all()


def test_another_python_looks_again_and_calls_as_it_can(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed(path, lambda header, parts: header.update(python="Python 4"))
    assert (xlapy_runtime.load(path)(X) == 2 * X).all()
    monkeypatch.setattr("xlapy_runtime.object_layouts.is_layout_known", lambda: False)
    program = xlapy_runtime.load(path)
    assert (program(X) == 2 * X).all()
    assert type(program._executable._direct.bound).__name__ == "PortableCall"  # type: ignore[union-attr]
    monkeypatch.setattr(calling, "_numpy_multiarray", lambda: None)
    calling.layout_identity.cache_clear()
    assert calling.layout_identity() is None
    assert (xlapy_runtime.load(changed(path, lambda header, parts: header.update(python=None)))(X) == 2 * X).all()
    calling.layout_identity.cache_clear()


@pytest.mark.parametrize(
    "change",
    [
        lambda header, parts: header.pop("libraries"),
        lambda header, parts: header.update(options=[1]),
        lambda header, parts: header.update(libraries=[["absent", [], ""]]),
        lambda header, parts: parts.update(program=[b"no program"]),
        lambda header, parts: parts.update(program=[]),
        lambda header, parts: parts.update(program=[parts["program"][0].replace(b"xlapy image 1", b"xlapy imago 1")]),
        lambda header, parts: parts.update(wrapper=[b"xlapy image 1\n\0\0" + bytes(20)]),
    ],
)
def test_files_that_were_never_right_are_refused(
    change: Callable[[dict[str, Any], dict[str, Any]], None], path: Path
) -> None:
    assert refusal(changed(path, change)).startswith("it cannot be loaded: ")


def test_a_wrong_environment_is_not_blamed_on_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAPY_NUM_THREADS", "many")
    with pytest.raises(ArgumentError, match="XLAPY_NUM_THREADS"):
        xlapy_runtime.load(path)


def test_saved_programs_are_no_sources(path: Path) -> None:
    with pytest.raises(xlapy.ParseError, match=r"xlapy_runtime\.load\(path\)"):
        xlapy.compile(path.read_bytes())


# -- saving --------------------------------------------------------------------------------------------------------


def test_what_cannot_be_written_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="the disk is full"):
        xlapy.compile(SOURCE.replace("add", "multiply")).save(path)
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


def test_saving_into_no_folder_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        xlapy.compile(SOURCE).save(tmp_path / "nowhere" / "program.xlapy")


def test_a_file_that_is_loaded_may_be_replaced(path: Path) -> None:
    program = xlapy_runtime.load(path)
    xlapy.compile(SOURCE.replace("add", "multiply")).save(path)
    assert (program(X) == 2 * X).all() and (xlapy_runtime.load(path)(X) == X * X).all()


# -- processors ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not is_linux_on_x86(), reason="nobody but LLVM can tell")
def test_the_processor_says_what_llvm_says() -> None:
    by_llvm = processor_features._features_by_llvm()
    answers = processor_features._answers()
    assert {name: answers[name] for name in answers if name in by_llvm} == {
        name: bool(by_llvm[name]) for name in answers if name in by_llvm
    }
    assert {"avx2", "fma", "avx512f", "sse4.2"} <= answers.keys() & by_llvm.keys()


def test_this_machine_has_what_it_needs() -> None:
    needed = processor_features.needed_features(host_target().features)
    assert needed and not processor_features.lacking_features(needed)


def test_what_stands_for_other_features_is_not_needed() -> None:
    features = "+amx-avx512,+amx-int8,+amx-tile,+avx,+avx10.1,-avx512f,+rdseed"
    assert processor_features.needed_features(features) == ["amx-int8", "amx-tile", "avx"]


def test_a_matrix_unit_that_the_system_does_not_lend_is_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_features, "uses_matrix_unit", lambda: False)
    assert processor_features.lacking_features(["amx-tile"]) == ["amx-tile"]


@pytest.mark.skipif(not is_linux_on_x86(), reason="nobody but LLVM can tell")
@pytest.mark.parametrize("name", [name for name in REFERENCE_MACHINES if name != "neon"])
def test_what_references_need_is_known_without_llvm(name: str) -> None:
    assert set(processor_features.needed_features(reference_target(name).features)) <= (
        processor_features._answers().keys()
    )


@pytest.mark.skipif(not is_linux_on_x86(), reason="nobody but LLVM can tell")
@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        ({"saved": 0x06}, {"avx512f"}),  # the system does not save the registers of AVX-512
        ({"saved": 0x00}, {"avx512f", "avx", "avx2", "f16c", "fma"}),
        ({(0, 0): 6}, {"avx512f", "avx2", "bmi"}),  # an old processor, which says anything where it knows nothing
        ({(0x8000_0000, 0): 0}, {"lzcnt"}),
    ],
)
def test_features_are_not_taken_from_rows_without_meaning(
    change: dict[Any, int], lacking: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = dict.fromkeys(processor_features._QUESTIONS, [0xFFFF_FFFF] * 4)
    rows |= {question: [value] * 4 for question, value in change.items() if question != "saved"}
    monkeypatch.setattr(processor_features, "_asked", lambda: (rows, change.get("saved", 0xFF)))
    answers = processor_features._answers.__wrapped__()
    asked = {"avx512f", "avx", "avx2", "bmi", "f16c", "fma", "lzcnt", "popcnt"}
    assert {name for name in asked if not answers[name]} == lacking
