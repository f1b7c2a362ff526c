"""Writing what did not come from StableHLO: fusions, layouts, tuples, asynchronous pairs."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.stablehlo.structure import opcodes
from tests.support.values import assert_same
from xlapy import stablehlo
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.graph import HloModule
from xlapy.hlo.ops import OPS
from xlapy.hlo.text import parse
from xlapy.stablehlo.dot_algorithms import ALGORITHMS
from xlapy.stablehlo.write import EMITTERS
from xlapy.support.errors import UnsupportedError

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


def rewritten(hlo: str, *arguments: object) -> HloModule:
    """The module that is read from what is written for `hlo`; both must evaluate to the same."""
    module = parse(hlo)
    again = stablehlo.parse(stablehlo.to_text(module))
    assert_same(evaluate(module, *arguments), evaluate(again, *arguments))
    return again


def test_every_op_has_a_spelling() -> None:
    assert EMITTERS.missing() == []
    assert len(EMITTERS) == len(OPS)


def test_fusions_are_written_out() -> None:
    module = rewritten(
        """HloModule m
        inner {
          a = f32[2,3] parameter(0)
          ROOT n = f32[2,3] negate(a)
        }
        outer {
          a = f32[2,3] parameter(0)
          f = f32[2,3] fusion(a), kind=kLoop, calls=inner
          ROOT t = (f32[2,3], f32[2,3]) tuple(f, a)
        }
        ENTRY e {
          p = f32[2,3] parameter(0)
          f = (f32[2,3], f32[2,3]) fusion(p), kind=kLoop, calls=outer
          x = f32[2,3] get-tuple-element(f), index=0
          y = f32[2,3] get-tuple-element(f), index=1
          c = f32[2,3] copy(y)
          ROOT s = f32[2,3] subtract(x, c)
        }""",
        MATRIX,
    )
    assert opcodes(module) == ["parameter", "negate", "subtract"]


def test_bitcasts_become_transposes_and_reshapes() -> None:
    module = rewritten(
        """HloModule m
        ENTRY e {
          p = f32[2,3]{1,0} parameter(0)
          b = f32[3,2]{0,1} bitcast(p)
          ROOT r = f32[6]{0} bitcast(p)
        }""",
        MATRIX,
    )
    assert "reshape" in opcodes(module)
    assert "transpose" in opcodes(module)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("f32[2,3]{1,0}", "s32[6]{0}"),
        ("f32[2,3]{0,1}", "s16[2,3,2]{2,1,0}"),
        ("s16[2,6]{1,0}", "f32[3,2]{0,1}"),
        ("u8[2,8]{1,0}", "f64[2]{0}"),
    ],
)
def test_bitcasts_between_types_convert_bits(source: str, target: str) -> None:
    module = parse(f"HloModule m\nENTRY e {{\n p = {source} parameter(0)\n ROOT b = {target} bitcast(p)\n}}")
    (shape,) = module.signature.parameters
    argument = np.random.default_rng(0).integers(0, 100, shape.dims).astype(shape.type.dtype)
    again = stablehlo.parse(stablehlo.to_text(module))
    assert_same(evaluate(module, argument), evaluate(again, argument))


@pytest.mark.parametrize("narrow", ["s4", "u4", "s2", "u2", "pred", "f4e2m1fn"])
def test_bitcasts_of_numbers_below_a_byte_go_through_bytes(narrow: str) -> None:
    for source, target in ((narrow, "u32"), ("u8", narrow), (narrow, "s8"), ("s16", narrow)):
        sizes = {"u32": 2, "s16": 4}
        shape, result = f"{source}[{sizes.get(source, 8)}]", f"{target}[{sizes.get(target, 8)}]"
        module = parse(f"HloModule m\nENTRY e {{\n p = {shape} parameter(0)\n ROOT b = {result} bitcast(p)\n}}")
        (parameter,) = module.signature.parameters
        numbers = np.random.default_rng(0).integers(0, 2 if source == "pred" else 250, parameter.dims)
        argument = numbers.astype(parameter.type.dtype)
        expected = evaluate(module, argument)
        assert_same(expected, evaluate(stablehlo.parse(stablehlo.to_text(module)), argument))
        assert_same(expected, xlapy.compile(module)(argument))


@pytest.mark.parametrize("narrow", ["s4", "pred", "f4e2m1fn"])
def test_computed_numbers_below_a_byte_have_no_other_bits(narrow: str) -> None:
    opposite = "not" if narrow == "pred" else "negate"
    module = parse(
        f"HloModule m\nENTRY e {{\n p = {narrow}[4] parameter(0)\n n = {narrow}[4] {opposite}(p)\n"
        "ROOT b = u8[4] bitcast(n)\n}"
    )
    (parameter,) = module.signature.parameters
    argument = np.array([1, 0, 1, 1]).astype(parameter.type.dtype)
    assert_same(evaluate(module, argument), xlapy.compile(module)(argument))
    assert evaluate(module, argument).max() < 16


@pytest.mark.parametrize(("source", "target"), [("f6e2m3fn", "u8"), ("c64", "u64")])
def test_bitcasts_without_a_spelling_are_named(source: str, target: str) -> None:
    module = parse(f"HloModule m\nENTRY e {{\n p = {source}[2] parameter(0)\n ROOT b = {target}[2] bitcast(p)\n}}")
    for use in (stablehlo.to_text, xlapy.compile):
        with pytest.raises(UnsupportedError, match=rf"b: a bitcast .*{source}"):
            use(module)


def test_constants_of_tuples_are_several() -> None:
    module = rewritten("HloModule m\nENTRY e {\n ROOT c = (f32[2], (s32[], pred[2])) constant(({1,2}, (3, {1,0})))\n}")
    assert opcodes(module).count("constant") == 3


@pytest.mark.parametrize("largest", ["true", "false"])
def test_both_ends_of_an_order(largest: str) -> None:
    rows = np.array([[3, 1, np.nan, 1], [-np.inf, 0.0, -0.0, 2]], np.float32)
    rewritten(
        f"""HloModule m
        ENTRY e {{
          p = f32[2,4] parameter(0)
          ROOT b = (f32[2,3], s32[2,3]) topk(p), k=3, largest={largest}
        }}""",
        rows,
    )


def test_factors_with_pivots() -> None:
    """StableHLO has no name for it: a custom call stands for it."""
    matrices = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    rewritten(
        """HloModule m
        ENTRY e {
          p = f32[2,3,4] parameter(0)
          ROOT f = (f32[2,3,4], s32[2,3], s32[2,3]) lu(p)
        }""",
        matrices,
    )


def test_products_of_reflections() -> None:
    operands = [np.random.default_rng(0).normal(size=size).astype(np.float32) for size in ((2, 3, 2), (2, 1))]
    text = "p = f32[2,3,2] parameter(0)  t = f32[2,1] parameter(1)  ROOT f = f32[2,3,2] householder-product(p, t)"
    rewritten(f"HloModule m\nENTRY e {{ {text} }}", *operands)


@pytest.mark.parametrize("flag", ["true", "false"])
def test_eigenvalues_and_singular_values(flag: str) -> None:
    matrices = np.random.default_rng(0).normal(size=(2, 3, 3)).astype(np.float32)
    for op in (
        "(f32[2,3,3], f32[2,3]) qr-decomposition(p)",
        f"(f32[2,3,3], f32[2,3]) eigh(p), lower={flag}",
        f"(f32[2,3,3], f32[2,3], f32[2,3,3]) svd(p), full_matrices={flag}",
    ):
        rewritten(f"HloModule m\nENTRY e {{ p = f32[2,3,3] parameter(0)  ROOT f = {op} }}", matrices)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms_of_dots(name: str) -> None:
    module = parse(
        f"""HloModule m
        ENTRY e {{
          p = f32[2,2] parameter(0)
          ROOT d = f32[2,2] dot(p, p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, algorithm={name}
        }}"""
    )
    for pretty in (False, True):
        again = stablehlo.parse(stablehlo.to_text(module, pretty=pretty))
        assert again.entry.root.attributes["algorithm"] == name


def test_an_unknown_algorithm_is_named() -> None:
    module = parse(
        """HloModule m
        ENTRY e {
          p = f32[2,2] parameter(0)
          ROOT d = f32[2,2] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=dot_new
        }"""
    )
    with pytest.raises(UnsupportedError, match="dot_new"):
        stablehlo.to_text(module)


def test_tuples_at_the_border() -> None:
    module = rewritten(
        """HloModule m
        one {
          a = f32[2,3] parameter(0)
          ROOT t = (f32[2,3]) tuple(a)
        }
        swap {
          s = (f32[2,3], (f32[], f32[2,3])) parameter(0)
          x = f32[2,3] get-tuple-element(s), index=0
          i = (f32[], f32[2,3]) get-tuple-element(s), index=1
          z = f32[] get-tuple-element(i), index=0
          y = f32[2,3] get-tuple-element(i), index=1
          j = (f32[], f32[2,3]) tuple(z, x)
          ROOT t = (f32[2,3], (f32[], f32[2,3])) tuple(y, j)
        }
        never {
          s = (f32[2,3], (f32[], f32[2,3])) parameter(0)
          ROOT c = pred[] constant(false)
        }
        ENTRY e {
          p = (f32[2,3], (f32[], f32[2,3])) parameter(0)
          c = (f32[2,3], (f32[], f32[2,3])) call(p), to_apply=swap
          w = (f32[2,3], (f32[], f32[2,3])) while(c), condition=never, body=swap
          x = f32[2,3] get-tuple-element(w), index=0
          o = (f32[2,3]) call(x), to_apply=one
          ROOT r = ((f32[2,3], (f32[], f32[2,3])), (f32[2,3])) tuple(w, o)
        }""",
        (MATRIX, (np.float32(5), -MATRIX)),
    )
    assert str(module.signature.result) == "((f32[2,3], (f32[], f32[2,3])), (f32[2,3]))"


def test_branches_of_different_operands() -> None:
    rewritten(
        """HloModule m
        twice {
          a = f32[2,3] parameter(0)
          ROOT s = f32[2,3] add(a, a)
        }
        first {
          t = (f32[2,3], s32[]) parameter(0)
          ROOT a = f32[2,3] get-tuple-element(t), index=0
        }
        ENTRY e {
          i = s32[] parameter(0)
          p = f32[2,3] parameter(1)
          t = (f32[2,3], s32[]) tuple(p, i)
          ROOT c = f32[2,3] conditional(i, p, t), branch_computations={twice, first}
        }""",
        np.int32(0),
        MATRIX,
    )


def test_asynchronous_pairs_are_written_as_one() -> None:
    module = parse(
        """HloModule m
        sum {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT s = f32[] add(a, b)
        }
        ENTRY e {
          p = f32[2,3] parameter(0)
          s = f32[2,3] all-reduce-start(p), replica_groups={{0,1},{2}}, to_apply=sum
          ROOT d = f32[2,3] all-reduce-done(s)
        }"""
    )
    again = stablehlo.parse(stablehlo.to_text(module))
    assert opcodes(again) == ["parameter", "all-reduce"]
    assert again.entry.root.attributes["replica_groups"].groups == ((0, 1), (2,))


def test_dependencies_and_barriers() -> None:
    rewritten(
        """HloModule m
        ENTRY e {
          p = f32[2,3] parameter(0)
          t = token[] after-all()
          d = f32[2,3] add-dependency(p, t)
          b = (f32[2,3], f32[2,3]) tuple(d, p)
          o = (f32[2,3], f32[2,3]) opt-barrier(b)
          x = f32[2,3] get-tuple-element(o), index=0
          y = f32[2,3] get-tuple-element(o), index=1
          ROOT s = f32[2,3] add(x, y)
        }""",
        MATRIX,
    )


def test_odd_names_are_quoted() -> None:
    module = parse("HloModule a-b.c\nENTRY e {\n ROOT p = f32[] parameter(0)\n}")
    assert stablehlo.parse(stablehlo.to_text(module)).name == "a-b.c"
