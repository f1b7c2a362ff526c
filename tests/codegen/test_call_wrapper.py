"""The wrapper's code; how it behaves is tested with `xlapy_runtime.calling`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from xlapy.codegen import call_wrapper, stored_code
from xlapy.codegen.call_wrapper import call_wrapper_ir, call_wrapper_object
from xlapy.codegen.jit import emit_object
from xlapy.codegen.object_cache import ObjectCache
from xlapy.codegen.stored_code import SharedCode, dump_shared_code, find_code, read_shared_code, wrapper_name
from xlapy.codegen.target import host_target, reference_target
from xlapy_runtime import calling, object_layouts
from xlapy_runtime.calling import load_wrapper


def test_the_wrapper_is_compiled_once_per_machine(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "cache", version=b"1")
    first = call_wrapper_object(host_target(), cache)
    assert call_wrapper_object(host_target(), cache) == first
    assert cache.info().hits == 1
    assert load_wrapper(first) is load_wrapper(first)


def test_only_a_wrapper_that_is_safe_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds it does not look again how Python and numpy are laid out: not in the same Python and numpy."""
    cache = ObjectCache(tmp_path / "cache", version=b"1")
    monkeypatch.setattr(call_wrapper, "is_layout_known", lambda: False)
    call_wrapper_object(host_target(), cache)
    assert not cache.info().entries
    monkeypatch.setattr(call_wrapper, "is_layout_known", lambda: True)
    code = call_wrapper_object(host_target(), cache)
    assert cache.info().entries == 1
    found = find_code(wrapper_name(), host_target(), cache)
    assert found is not None and found.objects == [code]
    monkeypatch.setattr(stored_code, "layout_identity", lambda: "another numpy")
    assert find_code(wrapper_name(), host_target(), cache) is None


def test_the_pool_and_the_wrapper_are_kept_together() -> None:
    kept = read_shared_code(dump_shared_code(SharedCode([b"pool", b"its table"], b"wrapper")))
    assert kept == SharedCode([b"pool", b"its table"], b"wrapper")


def test_the_wrapper_names_no_address() -> None:
    assert "inttoptr" not in call_wrapper_ir()


@pytest.mark.parametrize(
    ("name", "structure"),
    [
        ("Array", object_layouts.ArrayFields),
        ("Parameter", calling.ParameterRecord),
        ("Result", calling.ResultRecord),
        ("Table", calling.TableRecord),
    ],
)
def test_ir_and_runtime_agree_on_every_struct(name: str, structure: Any) -> None:
    spelled = {"c_void_p": "ptr", "c_long": "i64", "c_longlong": "i64", "c_int": "i32", "_ObjectFields": "i64, ptr"}
    expected = ", ".join(spelled[kind.__name__] for _, kind in structure._fields_)
    declared = re.search(rf"%{name} = type {{ (.*) }}", call_wrapper_ir())
    assert declared is not None
    assert declared[1] == expected


@pytest.mark.parametrize("name", ["sse2", "neon"])
def test_the_wrapper_can_be_made_for_other_machines(name: str) -> None:
    assert emit_object(call_wrapper_ir(), reference_target(name), optimization="full")
