"""Whole programs in the cache on disk: the second compilation skips everything, and no damage gives a wrong result."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import xlapy
from xlapy import ops
from xlapy_runtime.program import ArraySpec, Program, RuntimeCall, TokenSpec
from xlapy_runtime.program_file import dump_program, load_program

SOURCE = """HloModule cached
ENTRY main { x = f32[100] parameter(0)
  two = f32[] constant(2)
  b = f32[100] broadcast(two), dimensions={}
  ROOT y = f32[100] multiply(x, b) }
"""
SORTED = """HloModule sorted
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
ENTRY main { x = f32[100] parameter(0)
  y = f32[100] sort(x), dimensions={0}, to_apply=less
  ROOT z = f32[100] add(y, y) }
"""
COMPILER = (
    "llvmlite.binding",
    "ml_dtypes",
    "pathlib",
    "xlapy.builder",
    "xlapy.codegen.ir",
    "xlapy.codegen.jit",
    "xlapy.codegen.libraries",
    "xlapy.compiler",
    "xlapy.hlo",
    "xlapy.hlo.graph",
    "xlapy_runtime.custom_calls",
    "xlapy_runtime.llvm_linking",
    "xlapy_runtime.prelinking",
    "xlapy_runtime.runs",
    "xlapy.passes.pipelines",
    "xlapy.codegen.program",
    "xlapy.hlo.evaluate",
    "xlapy.stablehlo",
)
X = np.arange(100, dtype=np.float32)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XLAPY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def computation(factor: float, name: str = "scaled") -> xlapy.XlaComputation:
    b = xlapy.XlaBuilder(name)
    x = ops.Parameter(b, 0, xlapy.Shape.of(X), "x")
    return b.build(x * factor)


def test_the_second_compilation_is_a_load(folder: Path) -> None:
    first, second = xlapy.compile(SOURCE), xlapy.compile(SOURCE)
    assert not first.compile_stats().cached
    assert second.compile_stats().cached
    assert (second(X) == X * 2).all()
    assert second.compile_stats().kernels == first.compile_stats().kernels


def test_texts_of_a_program_from_the_cache_are_made_again(folder: Path) -> None:
    first, second = xlapy.compile(LIBRARIES_OF), xlapy.compile(LIBRARIES_OF)
    assert second.compile_stats().cached
    assert second.hlo_text() == first.hlo_text() and second.llvm_ir() == first.llvm_ir()


def test_a_module_that_is_given_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read from text for one compilation need not; the program is the same."""
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    donor = SORTED.replace("HloModule sorted", "HloModule sorted, input_output_alias={ {}: (0, {}, may-alias) }")
    module = xlapy.hlo.parse(donor)
    before = module.to_text(long=True)
    given, read = xlapy.compile(module), xlapy.compile(donor)
    assert module.to_text(long=True) == before
    assert given.hlo_text() == read.hlo_text() and given.llvm_ir() == read.llvm_ir()
    assert given.compile_stats().instructions == read.compile_stats().instructions == module.instruction_count
    assert given.memory_analysis() == read.memory_analysis()


def test_another_process_loads_it(folder: Path) -> None:
    xlapy.compile(SOURCE)
    script = f"import xlapy; print(xlapy.compile({SOURCE!r}).compile_stats().cached)"
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=surroundings)
    assert answer.stdout.strip() == "True"


def test_a_program_from_the_cache_needs_no_compiler(folder: Path) -> None:
    """Nor LLVM, nor the graph, nor what only other programs need: to import these would take several times as long as
    everything else."""
    text = xlapy.stablehlo.to_text(xlapy.load(SOURCE))
    assert xlapy.compile(SORTED)._compiled.program.libraries
    for source in (SOURCE, text, SORTED):
        xlapy.compile(source)
        script = f"""
import sys, numpy, xlapy
exe = xlapy.compile({source!r})
assert exe.compile_stats().cached
assert exe(numpy.ones(100, numpy.float32))[99] == 2
print([name for name in {COMPILER} if name in sys.modules])"""
        surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", script]
        subprocess.run(command, capture_output=True, check=True, env=surroundings)  # makes what programs share
        answer = subprocess.run(command, capture_output=True, text=True, check=False, env=surroundings)
        assert answer.stdout.strip() == "[]", answer.stderr


LIBRARIES_OF = """HloModule cached
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT p = pred[] compare(a, b), direction=LT }
ENTRY main { x = f32[200,300] parameter(0)  zero = f32[] constant(0)
  r = f32[300] reduce(x, zero), dimensions={0}, to_apply=sum
  ROOT s = f32[300] sort(r), dimensions={0}, to_apply=less }
"""


def test_nor_do_the_libraries_that_it_calls(folder: Path) -> None:
    assert len(xlapy.compile(LIBRARIES_OF)._compiled.program.libraries) == 2
    script = f"""
import sys, numpy, xlapy
exe = xlapy.compile({LIBRARIES_OF!r})
assert exe.compile_stats().cached
assert (exe(numpy.ones((200, 300), numpy.float32)) == 200).all()
print([name for name in {(*COMPILER, "xlapy.codegen.libraries.catalogue")} if name in sys.modules])"""
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script]
    subprocess.run(command, capture_output=True, check=True, env=surroundings)  # makes the libraries
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env=surroundings)
    assert answer.stdout.strip() == "[]", answer.stderr


def test_what_differs_is_compiled_apart(folder: Path) -> None:
    assert (xlapy.compile(computation(2.0))(X) == X * 2).all()
    assert (xlapy.compile(computation(3.0))(X) == X * 3).all()
    assert xlapy.compile(computation(3.0)).compile_stats().cached
    fast = xlapy.CompileOptions(fast_math=True)
    assert not xlapy.compile(computation(3.0), fast).compile_stats().cached


def test_large_constants_differ_too(folder: Path) -> None:
    def added(last: float) -> xlapy.Executable:
        b = xlapy.XlaBuilder("added")
        x = ops.Parameter(b, 0, xlapy.Shape.of(X))
        values = np.arange(100, dtype=np.float32)
        values[-1] = last
        return xlapy.compile(b.build(x + values))

    assert added(5)(X)[-1] == 104
    assert added(6)(X)[-1] == 105


def test_names_in_messages_are_those_of_the_program(folder: Path) -> None:
    xlapy.compile(computation(2.0))
    b = xlapy.XlaBuilder("scaled")
    executable = xlapy.compile(b.build(ops.Parameter(b, 0, xlapy.Shape.of(X), "image") * 2.0))
    with pytest.raises(xlapy.ArgumentError, match="image"):
        executable(X[:5])


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty"])
def test_damage_means_another_compilation(folder: Path, damage: str) -> None:
    xlapy.compile(SOURCE)
    for path in folder.rglob("*"):
        if path.is_file():
            data = bytearray(path.read_bytes())
            if damage == "flip" and data:
                data[len(data) // 2] ^= 0x40
            path.write_bytes({"flip": bytes(data), "truncate": bytes(data[: len(data) // 2]), "empty": b""}[damage])
    assert (xlapy.compile(SOURCE)(X) == X * 2).all()


def test_verified_compilations_do_not_come_from_the_cache(folder: Path) -> None:
    xlapy.compile(SOURCE)
    assert not xlapy.compile(SOURCE, xlapy.CompileOptions(verify=True)).compile_stats().cached


def test_no_cache_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    xlapy.compile(SOURCE)
    assert not xlapy.compile(SOURCE).compile_stats().cached


def test_a_program_survives_its_bytes() -> None:
    array = ArraySpec(np.dtype(np.float32), (3, 4), (True, False))
    call = RuntimeCall(
        "custom-call",
        "call.1",
        "model.py:3",
        (array,),
        (array,),
        {"target": "f", "backend_config": b"\x00\xff", "groups": ((0, 1), (2, 3)), "tree": (array, TokenSpec())},
    )
    program = Program(
        name="p",
        objects=(b"code", b""),
        entry="entry",
        parameters=((array, TokenSpec()), array),
        result=array,
        kernels=("k",),
        parameter_names=("x", "y"),
        arena_bytes=64,
        constants=(np.arange(6, dtype=np.int16).reshape(2, 3), np.zeros((0, 2), np.float64)),
        runtime_calls=(call,),
        num_replicas=2,
        aliases={0: 1},
        libraries=("gemm_f32",),
        has_loops=True,
    )
    loaded, extra = load_program(dump_program(program, {"kernels": 3}))
    assert extra() == {"kernels": 3}
    for name in Program.__dataclass_fields__:
        if name != "constants":
            assert getattr(loaded, name) == getattr(program, name), name
    for one, other in zip(loaded.constants, program.constants, strict=True):
        assert one.dtype == other.dtype and (one == other).all() and one.shape == other.shape


def test_running_leaves_constants_alone(folder: Path) -> None:
    """Constants of a loaded program lie in the bytes that were read; single bytes are even shared by all of Python."""
    one_byte = bytes(range(256))[8:9]
    for _ in range(2):
        loaded = xlapy.compile("ENTRY main { ROOT c = s4[1] constant({-8}) }")
        assert loaded().astype(np.int8).tolist() == [-8]
        assert one_byte == bytes((8,))
    assert loaded.compile_stats().cached


def test_a_header_with_a_field_of_another_kind_is_damaged() -> None:
    good = dump_program(Program("p", (b"code",), "entry", (), (), arena_bytes=64))
    for field, other in (
        (b'"p"', b"[1]"),
        (b"64", b"[]"),
        (b"false", b'"yes"'),
        (b'"entry"', b"[12345]"),
        (b"[4]", b'"4"'),
    ):
        assert good.count(field) == 1
        with pytest.raises(ValueError, match="damaged program"):
            load_program(good.replace(field, other))


def test_bytes_that_are_no_program() -> None:
    good = dump_program(Program("p", (b"code",), "entry", (), ()))
    for data in (b"", b"xlapy", good[:30], good[:-1], b"y" + good[1:], good.replace(b'"entry"', b'["rye"]')):
        with pytest.raises(ValueError, match="program"):
            load_program(data)


def run(folder: Path, script: str) -> str:
    """What another process prints that has the same cache."""
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "XLAPY_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", f"import numpy, xlapy, xlapy.native\n{script}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env=surroundings)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


STARTS = f"""
exe = xlapy.compile({LIBRARIES_OF!r})
assert exe.compile_stats().cached
assert (exe(numpy.ones((200, 300), numpy.float32)) == 200).all()
"""


@pytest.fixture
def kept(folder: Path) -> Path:
    """A cache with a program that shares code with others beside it."""
    first = xlapy.compile(LIBRARIES_OF)
    assert not first.compile_stats().cached
    if not xlapy.native.shared_by(first._compiled.program):
        pytest.skip("nothing is kept beside programs here")
    return folder


def test_the_first_program_brings_along_what_it_shares(kept: Path) -> None:
    """So that it is found without libraries, and without what is known of the machine."""
    for folder in ("library", "hosts"):
        shutil.rmtree(kept / folder, ignore_errors=True)
    script = f"""
exe = xlapy.compile({LIBRARIES_OF!r})
print(exe.compile_stats().cached, len(xlapy.native._LIBRARIES) >= 2, len(xlapy.native._WRAPPER))"""
    assert run(kept, script).split() == ["True", "True", "1"]
    assert not (kept / "library").exists() and not (kept / "hosts").exists()
    run(kept, STARTS)


def test_later_programs_use_what_the_first_has_brought(kept: Path) -> None:
    xlapy.compile(SORTED)
    script = f"""{STARTS}
before = dict(xlapy.native._LIBRARIES)
wrapper = xlapy.native.native_wrapper()
for source in ({SORTED!r}, {SOURCE!r}, {LIBRARIES_OF!r}):
    exe = xlapy.compile(source)
assert (exe(numpy.ones((200, 300), numpy.float32)) == 200).all()
assert xlapy.compile({SORTED!r})(numpy.ones(100, numpy.float32))[5] == 2
print(all(xlapy.native._LIBRARIES[name] is code for name, code in before.items()))
print(xlapy.native.native_wrapper() is wrapper)"""
    assert run(kept, script).split() == ["True", "True"]


def test_another_numpy_does_without_what_lies_beside_a_program(kept: Path) -> None:
    script = f"""
xlapy.native.link_members = lambda room, identity, imports: []
{STARTS}print(len(xlapy.native._LIBRARIES) >= 2)"""
    assert run(kept, script) == "True"


def test_two_threads_may_start_at_once(kept: Path) -> None:
    script = f"""
import threading
def start():
{STARTS.replace(chr(10), chr(10) + "    ")}
threads = [threading.Thread(target=start) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
start()
print("done")"""
    assert run(kept, script) == "done"
