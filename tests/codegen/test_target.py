"""What targets say about machines, and how the host is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from xlapy.codegen.target import (
    Target,
    _host_cache_sizes,
    host_target,
    reference_target,
)
from xlapy_runtime.records import replaced


def test_host_target_is_read_once_and_complete() -> None:
    target = host_target()
    assert target is host_target()
    assert target.triple and target.cpu and target.features
    assert target.vector_bytes in (16, 32, 64)
    assert target.l1_bytes <= target.l2_bytes <= target.l3_bytes
    assert 1 <= target.cores <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("name", "vector_bytes", "has_fma", "is_avx512"),
    [("sse2", 16, False, False), ("avx2", 32, True, False), ("avx512", 64, True, True), ("neon", 16, True, False)],
)
def test_reference_targets(name: str, vector_bytes: int, has_fma: bool, is_avx512: bool) -> None:
    target = reference_target(name)
    assert (target.vector_bytes, target.has_fma, target.is_avx512) == (vector_bytes, has_fma, is_avx512)
    assert target == reference_target(name)


def test_lanes_fill_one_vector_and_are_at_least_one() -> None:
    target = reference_target("avx2")
    assert [target.lanes(bits) for bits in (8, 16, 32, 64, 128, 512)] == [32, 16, 8, 4, 2, 1]


def test_lanes_are_gathered_by_an_instruction_where_it_is_fast() -> None:
    avx2 = reference_target("avx2")
    assert reference_target("avx512").has_gather
    assert replaced(avx2, cpu="skylake").has_gather
    assert not replaced(avx2, cpu="znver3").has_gather
    assert not reference_target("sse2").has_gather


def test_features_are_asked_by_exact_name() -> None:
    target = reference_target("avx512")
    assert target.has("avx512bw")
    assert not target.has("avx512")


def test_narrow_vectors_on_avx512_need_attributes_and_another_key() -> None:
    wide = reference_target("avx512")
    narrow = replaced(wide, vector_bytes=32)
    assert wide.function_attributes == ""
    assert '"prefer-vector-width"="256"' in narrow.function_attributes
    assert wide.code_key != narrow.code_key


def test_plans_differ_by_cache_sizes_but_code_does_not() -> None:
    target = reference_target("avx2")
    larger = Target(**{name: getattr(target, name) for name in Target.__slots__} | {"l3_bytes": 1 << 30})
    assert larger != target
    assert larger.code_key == target.code_key


def test_cache_sizes_come_from_the_table_and_else_from_defaults(tmp_path: Path) -> None:
    for index, (kind, level, size) in enumerate([("Data", 1, "48K"), ("Instruction", 1, "99K"), ("Unified", 2, "2M")]):
        directory = tmp_path / f"index{index}"
        directory.mkdir()
        (directory / "type").write_text(kind + "\n")
        (directory / "level").write_text(f"{level}\n")
        (directory / "size").write_text(size + "\n")
    assert _host_cache_sizes(str(tmp_path)) == (48 << 10, 2 << 20, 8 << 20)
    assert _host_cache_sizes(str(tmp_path / "absent")) == (32 << 10, 512 << 10, 8 << 20)


@pytest.mark.parametrize(
    ("sharing", "size", "expected"),
    [
        ("0-1", "480M", 32 << 20),
        ("0-3,8", "480M", 80 << 20),
        ("0-7", "32M", 32 << 20),
        ("5", "1M", 2 << 20),
        ("", "480M", 480 << 20),
    ],
)
def test_the_last_cache_is_no_larger_than_those_can_count_on_who_share_it(
    sharing: str, size: str, expected: int, tmp_path: Path
) -> None:
    """As in a virtual machine, which is told of a cache that many others share."""
    for index, (level, own) in enumerate([(1, "48K"), (2, "2M"), (3, size)]):
        directory = tmp_path / f"index{index}"
        directory.mkdir()
        (directory / "type").write_text("Unified\n")
        (directory / "level").write_text(f"{level}\n")
        (directory / "size").write_text(own + "\n")
        (directory / "shared_cpu_list").write_text((sharing if level == 3 else "0") + "\n")
    assert _host_cache_sizes(str(tmp_path)) == (48 << 10, 2 << 20, expected)


def test_late_intel_servers_are_known_by_their_instructions() -> None:
    """A virtual machine may tell of an older model."""
    old, late = (
        Target(
            **{name: getattr(target, name) for name in Target.__slots__} | {"cpu": "rocketlake", "features": features}
        )
        for target in [reference_target("avx512")]
        for features in (target.features, target.features + ",+avx512fp16")
    )
    assert not old.asks_ahead
    assert not old.reads_side_by_side
    assert late.asks_ahead
    assert late.reads_side_by_side
