"""Imports run one way: every import of every file is held against the table of the design.

Read from the syntax tree, so that what stands inside a function or under TYPE_CHECKING counts as well, and so does what
`late("...")` imports when it is asked for.
"""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (ROOT, ROOT / "runtime")  # where the packages `xlapy` and `xlapy_runtime` lie
OURS = ("xlapy", "xlapy_runtime")

TOP = "top"  # the files directly in xlapy/: they know the whole route

MAY_IMPORT = {
    "xlapy_runtime": set(),
    "xlapy.support": {f"xlapy_runtime.{name}" for name in ("errors", "given", "late", "records", "wording")},
    "xlapy.hlo": {"xlapy.support"},
    "xlapy.builder": {"xlapy.hlo", "xlapy.support"},
    "xlapy.stablehlo": {"xlapy.hlo", "xlapy.support"},
    "xlapy.passes": {"xlapy.hlo", "xlapy.support"},
    "xlapy.codegen": {"xlapy.hlo", "xlapy_runtime", "xlapy.support"},
    "xlapy.report": {"xlapy.hlo", "xlapy.passes", "xlapy.codegen", "xlapy_runtime", "xlapy.support"},
    TOP: {
        "xlapy_runtime",
        "xlapy.support",
        "xlapy.hlo",
        "xlapy.builder",
        "xlapy.stablehlo",
        "xlapy.passes",
        "xlapy.codegen",
        "xlapy.report",
    },
}
MAY_IMPORT["xlapy.tools"] = {TOP, *MAY_IMPORT[TOP]}
MAY_IMPORT["xlapy.jax"] = {TOP, *MAY_IMPORT[TOP]}
MAY_IMPORT["xlapy.xla_client"] = {TOP, *MAY_IMPORT[TOP]}
MAY_IMPORT["xlapy.pjrt"] = {"xlapy.jax", TOP, *MAY_IMPORT[TOP]}

# The floors inside xlapy.hlo, from the ground up. Its other files hold values and stand on the ground.
HLO_FLOORS = (
    {"values"},
    {"ops"},
    {"graph", "instruction", "computation", "module", "structure"},
    {
        "text",
        "proto",
        "verifier",
        "evaluate",
        "patterns",
        "schedule",
        "buffer_plan",
        "donation",
        "column_folds",
        "fold_steps",
        "kernel_plan",
        "kernel_faults",
        "matrix_products",
        "axis_maps",
        "moved_runs",
        "short_products",
        "spread_products",
        "row_blocks",
        "phases",
        "padded_selections",
        "identities",
        "regions",
        "sort_plan",
        "choices",
        "contents",
        "bitcasts",
        "leaves",
        "drawing",
        "cost",
        "loop_counter",
        "progressions",
        "overwritten",
        "views",
        "nesting",
        "specialize",
    },
)

# Big or optional packages, which a file may import inside the function that needs them.
LAZY = {"jax", "jaxlib", "llvmlite", "matplotlib", "mpi4py", "networkx", "scipy"}
NEVER_AT_MODULE_LEVEL = {
    "jax": {"xlapy.jax", "xlapy.pjrt"},
    "jaxlib": {"xlapy.jax", "xlapy.pjrt"},
    "matplotlib": set(),
    "mpi4py": set(),
    "networkx": set(),
    "scipy": set(),
}  # with the packages that are excepted


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, and where the statement stands."""

    target: str
    line: int
    in_function: bool
    for_types: bool  # under `if TYPE_CHECKING`
    is_late: bool = False  # by `late("...")`, or `importlib.import_module("...")`


@cache
def modules() -> dict[str, Path]:
    """Every module of ours by its dotted name."""
    found = {}
    for source, package in zip(SOURCES, OURS, strict=True):
        for path in sorted((source / package).rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports(name: str) -> tuple[Import, ...]:
    path = modules()[name]
    return tuple(imports_of(path.read_text(), name, is_package=path.name == "__init__.py"))


def imports_of(source: str, name: str, *, is_package: bool) -> list[Import]:
    """The imports of the module `name`; `from package import module` counts as an import of the module."""

    found: list[Import] = []

    def visit(node: ast.AST, in_function: bool, for_types: bool) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            named = dict.fromkeys(targets(node, name, is_package=is_package))
            found.extend(Import(target, node.lineno, in_function, for_types) for target in named)
        late = late_target(node)
        if late is not None:
            found.append(Import(late, node.lineno, in_function, for_types, is_late=True))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for child in node.body:
                visit(child, in_function, True)
            for child in node.orelse:
                visit(child, in_function, for_types)
            return
        inside = in_function or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            visit(child, inside, for_types)

    visit(ast.parse(source), False, False)
    return found


def late_target(node: ast.AST) -> str | None:
    """The module that a call imports by its name."""
    match node:
        case ast.Call(func=ast.Name("late") | ast.Attribute(attr="import_module"), args=[ast.Constant(str(name))]):
            return name
    return None


def targets(node: ast.Import | ast.ImportFrom, name: str, *, is_package: bool) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        home = name.split(".")[: len(name.split(".")) - node.level + is_package]
        base = ".".join([*home, *([node.module] if node.module else [])])
    for alias in node.names:
        inner = f"{base}.{alias.name}"
        yield inner if inner in modules() else base


def package_of(name: str) -> str:
    """The row of the table that a module of ours belongs to."""
    first, *rest = name.split(".")
    if first == "xlapy_runtime":
        return first
    if rest == ["__main__"]:
        return "xlapy.tools"  # the same command under a shorter name
    is_package = bool(rest) and f"xlapy.{rest[0]}" in modules() and modules()[f"xlapy.{rest[0]}"].name == "__init__.py"
    return f"xlapy.{rest[0]}" if is_package else TOP


def permitted(importer: str, target: str) -> bool:
    """The table's word on one import between modules of ours."""
    here, there = package_of(importer), package_of(target)
    if here == there == "xlapy.hlo":
        return hlo_floor(target) <= hlo_floor(importer)
    allowed = MAY_IMPORT[here]
    return here == there or there in allowed or target in allowed


def hlo_floor(name: str) -> int:
    """The floor of a module of xlapy.hlo; the package itself, which gathers the public names, is above them all."""
    parts = name.split(".")
    if len(parts) == 2:
        return len(HLO_FLOORS)
    return next((floor for floor, names in enumerate(HLO_FLOORS) if parts[2] in names), 0)


def is_ours(target: str) -> bool:
    return target.partition(".")[0] in OURS


def report(name: str, found: Import) -> str:
    return f"{modules()[name].relative_to(ROOT)}:{found.line} imports {found.target}"


def test_every_package_has_a_row_in_the_table() -> None:
    assert {package_of(name) for name in modules()} <= set(MAY_IMPORT)


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_imports_follow_the_table(package: str) -> None:
    """What is imported for types only must go in a permitted direction too: it is a dependency all the same."""
    wrong = [
        report(name, found)
        for name in modules()
        if package_of(name) == package
        for found in imports(name)
        if is_ours(found.target) and not permitted(name, found.target)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_import_hides_in_a_function() -> None:
    """An import of ours inside a function escapes a cycle; others may stand there only to be loaded when needed."""
    hidden = [
        report(name, found)
        for name in modules()
        for found in imports(name)
        if found.in_function and not found.is_late and found.target.partition(".")[0] not in LAZY
    ]
    assert not hidden, "\n".join(hidden)


def test_modules_form_no_cycle() -> None:
    """Types may refer to each other within a floor (an instruction knows its computation); running code may not."""
    graph = {
        name: {
            found.target
            for found in imports(name)
            if found.target in modules() and not found.for_types and not found.is_late
        }
        for name in modules()
    }
    graphlib.TopologicalSorter(graph).prepare()


def test_big_packages_are_loaded_only_when_needed() -> None:
    early = [
        report(name, found)
        for name in modules()
        for found in imports(name)
        if not found.in_function
        and not found.for_types
        and package_of(name) not in NEVER_AT_MODULE_LEVEL.get(found.target.partition(".")[0], {package_of(name)})
    ]
    assert not early, "\n".join(early)


def test_the_reader_sees_every_kind_of_import() -> None:
    source = """
import networkx as nx
from typing import TYPE_CHECKING
from . import errors
from xlapy_runtime.errors import XlaError
if TYPE_CHECKING:
    import scipy
else:
    import json
class Late:
    def load(self):
        import jax
        return late("xlapy.compiler").compile_module, importlib.import_module("scipy.linalg")
"""
    found = imports_of(source, "xlapy_runtime", is_package=True)
    assert found == [
        Import("networkx", 2, False, False),
        Import("typing", 3, False, False),
        Import("xlapy_runtime.errors", 4, False, False),
        Import("xlapy_runtime.errors", 5, False, False),
        Import("scipy", 7, False, True),
        Import("json", 9, False, False),
        Import("jax", 12, True, False),
        Import("xlapy.compiler", 13, True, False, is_late=True),
        Import("scipy.linalg", 13, True, False, is_late=True),
    ]


def test_what_is_imported_late_exists() -> None:
    """A name in a string is nothing that other tools check."""
    wrong = [
        report(name, found)
        for name in modules()
        for found in imports(name)
        if found.is_late and is_ours(found.target) and found.target not in modules()
    ]
    assert not wrong, "\n".join(wrong)


def test_late_imports_name_their_module() -> None:
    """With a name that is put together the test could not see it. (`xlapy` looks up its public names in a table.)"""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for name, path in modules().items()
        if name not in ("xlapy", "xlapy_runtime.late")
        if "late(" in (source := path.read_text())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "late"
        if late_target(node) is None
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("importer", "target", "answer"),
    [
        ("xlapy.support.registry", "xlapy_runtime.errors", True),
        ("xlapy.support.registry", "xlapy_runtime", False),
        ("xlapy.hlo.shape", "xlapy.support.registry", True),
        ("xlapy.hlo.shape", "xlapy_runtime.errors", False),
        ("xlapy.hlo.shape", "xlapy.hlo.ops", False),
        ("xlapy.hlo.ops.elementwise", "xlapy.hlo.shape", True),
        ("xlapy.hlo.ops.elementwise", "xlapy.hlo.computation", False),
        ("xlapy.hlo.computation", "xlapy.hlo.ops.elementwise", True),
        ("xlapy.hlo.verifier", "xlapy.hlo.computation", True),
        ("xlapy.hlo.computation", "xlapy.hlo.verifier", False),
        ("xlapy.hlo.verifier", "xlapy.hlo", False),
        ("xlapy.passes.dce", "xlapy.codegen.jit", False),
        ("xlapy.codegen.jit", "xlapy_runtime.program", True),
        ("xlapy_runtime.program", "xlapy.support", False),
        ("xlapy.api", "xlapy.compiler", True),
        ("xlapy.api", "xlapy.passes.dce", True),
        ("xlapy.passes.dce", "xlapy.api", False),
    ],
)
def test_the_table_is_read_as_meant(importer: str, target: str, answer: bool) -> None:
    assert permitted(importer, target) is answer
