"""XLA's own reader and writer of protocol buffers, against ours."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.e2e.corpus import corpus
from tests.hlo.text.samples import EVERYTHING
from tests.support.xla_flags import usual_fusions
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.graph import HloModule
from xlapy.hlo.proto import module_from_bytes, module_to_bytes, shape_from_proto, shape_to_proto
from xlapy.hlo.proto.messages import ShapeProto
from xlapy.hlo.text import parse, to_text
from xlapy.support.protobuf import decode, encode

hlo = pytest.importorskip("jaxlib._hlo", reason="this release of jaxlib keeps its HLO elsewhere")

UNWRITABLE = ("f6e2m3fn", "f6e3m2fn")
"""Types of which XLA's writer aborts the process."""

TILES = ":T(8,128)(2,1)S(1)"
"""Layouts of accelerators, which messages of ours do not have."""

OWN_SYNTAX = ("feed_loop", "movement", "collective")
"""Modules with names of instructions that XLA takes for types, or pairs of ops for which it has a wrapper."""


def through_text(module: HloModule) -> Any:
    """The module as XLA reads its text."""
    return hlo.hlo_module_from_text(to_text(module))


def canonical(module: Any) -> list[str]:
    """XLA's text of its module: every attribute, names that do not depend on ours, computations in no order.

    The heading is left out; it holds the grid, which messages do not."""
    text: str = module.to_string(hlo.HloPrintOptions.canonical())
    return sorted(block.strip() for block in text.partition("\n")[2].split("\n\n"))


@cache
def known_to_xla() -> list[HloModule]:
    """Programs of the tests all of whose ops XLA has, too."""
    found = []
    for module in [*corpus(), parse(EVERYTHING.replace(TILES, ""))]:
        if module.name in OWN_SYNTAX or any(name in to_text(module) for name in UNWRITABLE):
            continue
        try:
            through_text(module)
            found.append(module)
        except RuntimeError as error:
            assert "Unknown opcode" in str(error) or "expects opcode" in str(error), str(error)
    return found


def test_xla_reads_what_we_write() -> None:
    """Text and message of a module are the same to XLA."""
    count = 0
    for module in known_to_xla():
        if has_complex_nan(module):
            continue
        read = hlo.HloModule.from_serialized_hlo_module_proto(module_to_bytes(module))
        assert canonical(read) == canonical(through_text(module)), module.name
        count += 1
    assert count > 150


def has_complex_nan(module: HloModule) -> bool:
    """XLA's parser spreads the NaN of one part of a number to the other."""
    literals = (i.attributes["literal"].array for i in module.instructions() if i.opcode == "constant")
    return any(array.dtype.kind == "c" and np.isnan(array).any() for array in literals)


def test_we_read_what_xla_writes() -> None:
    for module in known_to_xla():
        written = through_text(module)
        read = module_from_bytes(written.as_serialized_hlo_module_proto())
        assert canonical(through_text(read)) == canonical(written), module.name


def program(x: Any, y: Any) -> Any:
    """Loops, branches, sorting, indexing, windows, transforms and random numbers."""
    _, a = jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1]) @ c[1]), (0, x))
    windows = jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 2), (1, 1), "SAME")
    chosen = jax.lax.cond(y.sum() > 0, lambda z: z * 2, lambda z: z - 1, a)
    bits = jax.random.bits(jax.random.key(0), (4,))
    return jnp.sort(a, axis=0) + y, chosen, jnp.argmax(a), a[jnp.array([0, 2])], windows, bits, jnp.fft.rfft(x)


def test_programs_of_jax_before_and_after_xlas_passes() -> None:
    x = np.arange(9, dtype=np.float32).reshape(3, 3) / 10
    lowered = jax.jit(program).lower(x, x)
    computation = lowered.compiler_ir(dialect="hlo")
    assert computation is not None
    module = module_from_bytes(computation.as_serialized_hlo_module_proto())  # type: ignore[attr-defined]
    for mine, theirs in zip(evaluate(module, x, x), program(x, x), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    again = hlo.XlaComputation(module_to_bytes(module))
    assert canonical(again.get_hlo_module()) == canonical(computation.get_hlo_module())  # type: ignore[attr-defined]
    assert any(instruction.metadata.source_line for instruction in module.entry)

    (optimized,) = lowered.compile(usual_fusions()).runtime_executable().hlo_modules()
    read = module_from_bytes(optimized.as_serialized_hlo_module_proto())
    assert read.config.is_scheduled
    assert any(instruction.opcode == "fusion" for instruction in read.entry)
    written = hlo.HloModule.from_serialized_hlo_module_proto(module_to_bytes(read))
    assert set(canonical(written)) <= set(canonical(optimized))  # which lists computations that nothing calls, too


@pytest.mark.parametrize("text", ["f32[2,3]{0,1}", "(s32[], token[])", "f32[<=8,2]{1,0}", "pred[]"])
def test_shapes_are_xlas(text: str) -> None:
    shape = shape_from_proto(decode(ShapeProto, hlo.Shape(text).to_serialized_proto()))
    assert str(shape.with_default_layout()) == text
    assert decode(ShapeProto, encode(shape_to_proto(shape))) == shape_to_proto(shape)
