"""Mistakes that users of other compilers make: what is raised says what to write here."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlapy
import xlapy_runtime
from xlapy import ops
from xlapy.passes.dce import Dce
from xlapy.passes.user import after
from xlapy.support import other_names

ONE = np.ones(4, np.float32)


def computation() -> xlapy.XlaComputation:
    b = xlapy.XlaBuilder("twice")
    return b.build(2 * ops.Parameter(b, 0, xlapy.Shape.array(np.float32, (4,)), "x"))


PROGRAM = computation()
EXECUTABLE = xlapy.compile(PROGRAM)


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        (
            {"num_threads": 2},
            r"it is an option: xlapy\.compile\(program, xlapy\.CompileOptions\(num_threads=\.\.\.\)\)",
        ),
        ({"threads": 2}, "num_threads=n"),
        ({"compiler_options": {}}, r"options=xlapy\.CompileOptions\(\.\.\.\)"),
        ({"options": {"num_threads": 1}}, r"CompileOptions\(name=value, \.\.\.\) makes them"),
        ({"options": xlapy.CompileOptions}, r"CompileOptions\(\) makes the usual ones"),
    ],
)
def test_arguments_of_compile(keywords: dict[str, Any], told: str) -> None:
    with pytest.raises(xlapy.ArgumentError, match=told) as caught:
        xlapy.compile(PROGRAM, **keywords)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("pipeline", "passes="),
        ("profile", r"exe\.profile\(\*arrays\)"),
        ("threads", "num_threads=n"),
        ("optimization_level", "disabled_passes"),
        ("xla_cpu_enable_fast_math", "fast_math=True"),
        ("xla_allow_excess_precision", "excess_precision=True"),
        ("fastmath", r"did you mean fast_math\?"),
        ("check", r"docs/report\.md"),
    ],
)
def test_options_of_other_compilers(name: str, told: str) -> None:
    with pytest.raises(TypeError, match=f"was given {name}.*{told}"):
        xlapy.CompileOptions(**{name: 1})


@pytest.mark.parametrize("passes", [[Dce()], after("simplify", Dce()), [print]])
def test_passes_have_places(passes: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=r"as \[after\('simplify', YourPass\(\)\)\] with xlapy\.passes\.user"):
        xlapy.CompileOptions(passes=passes)


@pytest.mark.parametrize("count", [0, -1, 2.5, "2"])
def test_threads_are_counted(count: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=r"num_threads is a number of threads, 1 or more, or None"):
        xlapy.CompileOptions(num_threads=count)


def test_the_usual_options_belong_to_one_executable() -> None:
    xlapy.compile(PROGRAM).options.custom_calls["mine"] = print  # type: ignore[index]
    assert "mine" not in xlapy.compile(PROGRAM).options.custom_calls


@pytest.mark.parametrize(
    ("owner", "name", "told"),
    [
        (EXECUTABLE, "execute", "exe(*arrays) calls it"),
        (EXECUTABLE, "as_hlo_text", "exe.hlo_text()"),
        (EXECUTABLE, "benchmark", "exe.profile(*arrays)"),
        (EXECUTABLE, "specialize", "`?` dimensions"),
        (EXECUTABLE, "to_stablehlo", "xlapy.stablehlo.to_text(module)"),
        (PROGRAM.module, "as_hlo_text", "module.to_text()"),
        (PROGRAM.module, "to_stablehlo", "xlapy.stablehlo.to_text(module)"),
        (PROGRAM.program_shape.result, "dtype", "shape.type.dtype"),
        (PROGRAM, "compile", "xlapy.compile(computation)"),
        (PROGRAM, "GetHloText", "as_hlo_text()"),
        (PROGRAM, "GetProgramShape", "program_shape"),
        (xlapy.XlaBuilder("b"), "compile", "xlapy.compile(builder.build(root))"),
        (xlapy, "execute", "xlapy.compile(program)(*arrays)"),
        (xlapy, "make_cpu_client", "xlapy.xla_client.make_cpu_client"),
        (xlapy, "set_num_threads", "XLAPY_NUM_THREADS"),
        (ops, "exp", "ops.Exp"),
        (ops, "dot_general", "ops.DotGeneral"),
    ],
)
def test_names_elsewhere(owner: object, name: str, told: str) -> None:
    with pytest.raises(AttributeError, match=rf"'{name}': .*{re.escape(told)}"):
        getattr(owner, name)


@pytest.mark.parametrize(
    ("table", "owner"),
    [
        (other_names.EXECUTABLE, xlapy.Executable),
        (other_names.COMPUTATION, xlapy.XlaComputation),
        (other_names.MODULE, PROGRAM.module),
        (other_names.SHAPE, xlapy.Shape),
        (other_names.PACKAGE, xlapy),
        (other_names.OPTIONS, xlapy.CompileOptions),
    ],
)
def test_tables_name_what_is_not_there_and_tell_of_what_is(table: dict[str, str], owner: object) -> None:
    assert [name for name in table if hasattr(owner, name)] == []
    subject = {"exe": EXECUTABLE, "xlapy": xlapy, "xlapy_runtime": xlapy_runtime}
    subject |= {"module": PROGRAM.module, "shape": xlapy.Shape}
    for told in table.values():
        for first, name in re.findall(r"\b(exe|xlapy|xlapy_runtime|module|shape)\.(\w+)", told):
            assert name in ("jax", "passes", "xla_client") or hasattr(subject[first], name), told


@pytest.mark.parametrize("first", ["f32[2]", "f32", np.float32, float, 3])
def test_shapes_are_made_by_their_functions(first: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=r"shapes are made by Shape\.array\(dtype, sizes\)"):
        xlapy.Shape(first, (2,))


@pytest.mark.parametrize("source", [EXECUTABLE, "saved"])
def test_what_is_compiled_already_is_called(source: Any, tmp_path: Path) -> None:
    if source == "saved":
        EXECUTABLE.save(tmp_path / "twice.xlapy")
        source = xlapy_runtime.load(tmp_path / "twice.xlapy")
    for use in (xlapy.compile, xlapy.load, xlapy.evaluate):
        with pytest.raises(xlapy.ParseError, match="it is compiled already: call it"):
            use(source)


@pytest.mark.parametrize(
    "show",
    [xlapy.hlo.to_text, xlapy.hlo.to_dot, xlapy.hlo.to_networkx, xlapy.hlo.critical_path, xlapy.stablehlo.to_text],
)
@pytest.mark.parametrize("given", [PROGRAM, "HloModule m", None])
def test_modules_are_shown(show: Callable[[Any], Any], given: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=r"an HloModule is .*; xlapy\.load makes one of any program"):
        show(given)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as absent:
        EXECUTABLE.save(tmp_path / "absent" / "twice.xlapy")
    assert absent.value.filename == str(tmp_path / "absent" / "twice.xlapy")
    with pytest.raises(IsADirectoryError) as folder:
        EXECUTABLE.save(tmp_path)
    assert folder.value.filename == str(tmp_path) and list(tmp_path.iterdir()) == []


def test_a_saved_program_says_who_has_the_rest(tmp_path: Path) -> None:
    EXECUTABLE.save(tmp_path / "twice.xlapy")
    saved = xlapy_runtime.load(tmp_path / "twice.xlapy")
    names = {name for name in vars(xlapy.Executable) if not name.startswith("_")} - set(dir(saved))
    assert "profile" in names
    for name in names:
        with pytest.raises(AttributeError, match="the executable that saved it has the rest"):
            getattr(saved, name)
    with pytest.raises(AttributeError, match=r"a SavedProgram has no 'frobnicate'$"):
        saved.frobnicate  # type: ignore[attr-defined]  # noqa: B018


def public_objects() -> dict[str, Any]:
    """One of each class in `xlapy.__all__` and `xlapy_runtime.__all__` that is not an error."""
    b = xlapy.XlaBuilder("twice")
    return {
        "CompileOptions": xlapy.CompileOptions(num_threads=2, custom_calls={"f": print, "g": len}),
        "Device": xlapy.devices()[0],
        "Executable": EXECUTABLE,
        "HloModule": PROGRAM.module,
        "ResultMemoryStatistics": xlapy.memory_statistics(),
        "SavedProgram": None,
        "Shape": xlapy.Shape.array(np.float32, (2,)),
        "XlaBuilder": b,
        "XlaComputation": PROGRAM,
        "XlaOp": b.constant(1),
    }


def test_public_objects_show_what_they_are(tmp_path: Path) -> None:
    objects = public_objects()
    EXECUTABLE.save(tmp_path / "twice.xlapy")
    objects["SavedProgram"] = xlapy_runtime.load(tmp_path / "twice.xlapy")
    public = [getattr(owner, name) for owner in (xlapy, xlapy_runtime) for name in owner.__all__]
    classes = [each for each in public if isinstance(each, type) and not issubclass(each, Exception)]
    assert {each.__name__ for each in classes} == set(objects)
    objects["CompileStats"], objects["Profile"] = EXECUTABLE.compile_stats(), EXECUTABLE.profile(ONE, calls=2)
    for name, each in objects.items():
        shown = repr(each)
        assert "\n" not in shown and " at 0x" not in shown and len(shown) < 400, f"{name}: {shown}"


def test_options_show_what_is_not_usual() -> None:
    assert repr(xlapy.CompileOptions()) == "CompileOptions()"
    options = xlapy.CompileOptions(num_threads=2, custom_calls={"f": print}, disabled_passes={"dce"})
    assert repr(options) == "CompileOptions(num_threads=2, disabled_passes={'dce'}, custom_calls={'f': ...})"
