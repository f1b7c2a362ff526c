"""Object code becomes callable, and goes without a trace."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.forks import works_in_a_child
from xlapy.codegen.jit import emit_object
from xlapy.codegen.target import host_target
from xlapy_runtime import prelinking
from xlapy_runtime.alignment import LINE_BYTES, aligned_words
from xlapy_runtime.errors import InternalError
from xlapy_runtime.linking import InstalledOnce, LinkedCode, link

pytestmark = pytest.mark.usefixtures("only_new_garbage")

UNARY = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)

CALLER = """declare double @callee(double)
define double @caller(double %x) nounwind {
  %y = call double @callee(double %x)
  ret double %y
}
"""
CALLEE = """@table = private constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5]
declare double @sin(double)
declare double @imported(double)
define double @callee(double %x) nounwind {
  %a = call double @sin(double %x)
  %b = call double @imported(double %a)
  %i = fptosi double %b to i64
  %p = getelementptr [4 x double], ptr @table, i64 0, i64 %i
  %c = load double, ptr %p
  %d = fadd double %b, %c
  ret double %d
}
"""


@pytest.fixture(params=["images", "LLVM"], autouse=True)
def linker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who links. LLVM does where objects are of a kind that images cannot be made of."""
    name: str = request.param
    if name == "LLVM":
        monkeypatch.setattr(prelinking, "prelinked", tuple)
    return name


def object_of(text: str) -> bytes:
    return emit_object(text, host_target())


def linked_pair() -> tuple[LinkedCode, object]:
    imported = UNARY(lambda value: value + 1)
    address = ctypes.cast(imported, ctypes.c_void_p).value
    assert address
    return link([object_of(CALLER), object_of(CALLEE)], {"imported": address}, ["caller"]), imported


def test_objects_see_each_other_imports_tables_and_the_math_library() -> None:
    code, _imported = linked_pair()
    assert UNARY(code.address("caller"))(0.5) == math.sin(0.5) + 1 + 2.5


def test_only_exports_have_addresses() -> None:
    code, _imported = linked_pair()
    with pytest.raises(InternalError, match="callee was not exported; exported: caller"):
        code.address("callee")


def test_unknown_symbols_are_named(linker: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InternalError, match="callee" if linker == "images" else "cannot link"):
        link([object_of(CALLER)], {}, ["caller"])
    assert linker == "images" or "callee" in capfd.readouterr().err
    with pytest.raises(InternalError, match="absent"):
        link([object_of(CALLER)], {"callee": 1}, ["absent"])


def test_repeated_symbols_are_refused() -> None:
    with pytest.raises(InternalError, match="caller"):
        link([object_of(CALLER), object_of(CALLER)], {"callee": 1}, ["caller"])


def test_damaged_objects_are_refused() -> None:
    with pytest.raises(InternalError):
        link([object_of(CALLER)[:200]], {"callee": 1}, ["caller"])


def test_thousands_of_programs_leave_no_memory_behind() -> None:
    code = object_of(CALLER)

    def link_many(count: int) -> None:
        for _ in range(count):
            link([code], {"callee": 1}, ["caller"])
        gc.collect()

    link_many(300)
    before, mappings_before = resident_bytes(), mappings()
    link_many(1500)
    assert resident_bytes() - before < 1 << 20
    assert mappings() <= mappings_before + 4


def test_threads_may_link_and_unload_at_once() -> None:
    results: list[float] = []

    def work() -> None:
        for _ in range(30):
            code, _imported = linked_pair()
            results.append(UNARY(code.address("caller"))(0.5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [math.sin(0.5) + 1 + 2.5] * 120


def test_the_process_may_end_while_a_thread_is_inside_the_code() -> None:
    program = """
import ctypes, threading, time
from xlapy.codegen.jit import emit_object
from xlapy.codegen.target import host_target
from xlapy_runtime.linking import link
text = '''define void @spin(ptr %entered) nounwind {
  store volatile i32 1, ptr %entered
  br label %again
again:
  %x = load volatile i32, ptr %entered
  br label %again
}
'''
code = link([emit_object(text, host_target())], {}, ["spin"])
entered = ctypes.c_int(0)
spin = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("spin"))
threading.Thread(target=spin, args=(ctypes.addressof(entered),), daemon=True).start()
while not entered.value:
    time.sleep(0.001)
"""
    root = Path(__file__).parents[2]
    finished = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": f"{root}:{root / 'runtime'}"}, timeout=60, check=False
    )
    assert finished.returncode == 0


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def mappings() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


def test_native_code_of_the_process_is_made_once() -> None:
    made: list[Sequence[bytes]] = []

    def make(objects: Sequence[bytes]) -> int:
        made.append(objects)
        return len(made)

    code = InstalledOnce("the code", make)
    assert code.found is None
    with pytest.raises(InternalError, match="the code is not installed"):
        code.get()
    for text in (b"first", b"second"):
        code.install([text])
        assert code.get() == code.found == 1
    assert made == [[b"first"]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_installs_what_another_thread_was_installing() -> None:
    is_inside, may_end = threading.Event(), threading.Event()

    def make(text: bytes) -> int:
        if text == b"slow":
            is_inside.set()
            may_end.wait()
        return len(text)

    code = InstalledOnce("the code", make)
    thread = threading.Thread(target=code.install, args=(b"slow",))
    thread.start()
    is_inside.wait()
    has_worked = works_in_a_child(lambda: code.install(b"fast") or code.get())
    may_end.set()
    thread.join()
    assert has_worked
    assert code.get() == 4


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_words_begin_on_a_cache_line(count: int) -> None:
    words = aligned_words(count)
    assert words.ctypes.data % LINE_BYTES == 0 or not count
    assert words.tolist() == [0] * count


def test_programs_run_where_only_llvm_can_link(tmp_path: Path) -> None:
    """The whole route, twice: what was compiled is linked, and what comes from the cache."""
    program = """
import xlapy_runtime.prelinking
xlapy_runtime.prelinking.prelinked = tuple  # as for objects of another machine
import numpy, sys, xlapy
text = "ENTRY main { x = f32[100000] parameter(0) ROOT y = f32[100000] add(x, x) }"
executable = xlapy.compile(text)
assert executable(numpy.ones(100000, numpy.float32)).tolist() == [2.0] * 100000
assert "xlapy_runtime.llvm_linking" in sys.modules
print(executable.compile_stats().cached)
"""
    root = Path(__file__).parents[2]
    surroundings = {"PYTHONPATH": f"{root}:{root / 'runtime'}", "XLAPY_CACHE_DIR": str(tmp_path / "cache")}
    answers = [
        subprocess.run([sys.executable, "-c", program], env=surroundings, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [answer.stdout for answer in answers] == ["False\n", "True\n"]
