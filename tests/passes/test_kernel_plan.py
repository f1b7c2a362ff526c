"""What a kernel may contain, and that everything else is refused by name."""

import pytest

from tests.support.kernel_faults import check_fusion
from xlapy.hlo.kernel_plan import is_blocked_transpose, is_element_op
from xlapy.hlo.leaves import is_renaming
from xlapy.hlo.text import parse
from xlapy.support.errors import InternalError

SUM = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"


def fused(body: str, kind: str, operands: str, result: str) -> str:
    return f"{SUM}f {{ {body} }}\nENTRY e {{ {operands} ROOT r = {result} fusion(x, y), kind={kind}, calls=f }}"


XY = "x = f32[4,4] parameter(0)  y = f32[4,4] parameter(1) "

PRODUCT = "d = f32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} "
WIDE = "x = f32[16,16] parameter(0)  z = f32[16,16] parameter(1)  y = f32[16] parameter(2) "


def product_of(operands: str, behind: str, result: str = "f32[16,16]") -> str:
    """A fusion of a product of `x` and `z` with something behind it."""
    product = "d = f32[16,16] dot(x, z), lhs_contracting_dims={1}, rhs_contracting_dims={0} "
    call = f"ROOT r = {result} fusion(x, z, y), kind=kCustom, calls=f"
    return f"f {{ {operands} {product} {behind} }}\nENTRY e {{ {operands} {call} }}"


def kernels_of(root: str) -> str:
    """A fusion of kernels: a product of `x` and `z`, one called `r` of what that makes, and `root`."""
    product = "d = f32[16,16] dot(x, z), lhs_contracting_dims={1}, rhs_contracting_dims={0} "
    inner = "g { d = f32[16,16] parameter(0)  ROOT n = f32[16,16] negate(d) }"
    kernels = f"{WIDE} {product} r = f32[16,16] fusion(d), kind=kLoop, calls=g {root}"
    call = "ROOT r = f32[16,16] fusion(x, z, y), kind=kCustom, calls=f"
    return f"{inner}\nf {{ {kernels} }}\nENTRY e {{ {WIDE} {call} }}"


REFUSED = {
    "no element op": fused(
        XY + "d = f32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}  ROOT n = f32[4,4] negate(d)",
        "kLoop",
        XY,
        "f32[4,4]",
    ),
    "it has 0 folds": fused(XY + "ROOT a = f32[4,4] add(x, y)", "kInput", XY, "f32[4,4]"),
    "different dimensions": fused(
        XY + "a = f32[4,4] add(x, y)  b = f32[16] reshape(y)  ROOT t = (f32[4,4], f32[16]) tuple(a, b)",
        "kLoop",
        XY,
        "(f32[4,4], f32[16])",
    ),
    "updates what is not a parameter": fused(
        XY + "n = f32[4,4] negate(x)  z = s32[] constant(0)  ROOT d = f32[4,4] dynamic-update-slice(n, y, z, z)",
        "kLoop",
        XY,
        "f32[4,4]",
    ),
    "is computed inside": fused(
        "x = f32[4] parameter(0)  y = f32[] parameter(1)  i = f32[] negate(y) "
        "ROOT r = f32[] reduce(x, i), dimensions={0}, to_apply=sum",
        "kInput",
        "x = f32[4] parameter(0)  y = f32[] parameter(1) ",
        "f32[]",
    ),
    "is not made from each result of": fused(
        XY.replace("y = f32[4,4]", "y = f32[]") + "r = f32[4] reduce(x, y), dimensions={0}, to_apply=sum "
        "ROOT v = f32[4] reverse(r), dimensions={0}",
        "kInput",
        XY.replace("y = f32[4,4]", "y = f32[]"),
        "f32[4]",
    ),
    "more or less than its fold": fused(
        XY.replace("y = f32[4,4]", "y = f32[]") + "r = f32[4] reduce(x, y), dimensions={0}, to_apply=sum "
        "n = f32[4] negate(r)  m = f32[4,4] negate(x)  ROOT t = (f32[4], f32[4,4]) tuple(n, m)",
        "kInput",
        XY.replace("y = f32[4,4]", "y = f32[]"),
        "(f32[4], f32[4,4])",
    ),
    "nothing in it reduces rows": fused(XY + "ROOT a = f32[4,4] add(x, y)", "kOutput", XY, "f32[4,4]"),
    "mixes rows": fused(
        "x = f32[16,16] parameter(0)  y = f32[] parameter(1)  r = f32[16] reduce(x, y), dimensions={1}, to_apply=sum "
        "b = f32[16,16] broadcast(r), dimensions={1}  ROOT s = f32[16,16] subtract(x, b)",
        "kOutput",
        "x = f32[16,16] parameter(0)  y = f32[] parameter(1) ",
        "f32[16,16]",
    ),
    "has no rows": fused(
        "x = f32[16,16] parameter(0)  y = f32[] parameter(1)  r = f32[16] reduce(x, y), dimensions={1}, to_apply=sum "
        "b = f32[2,2] broadcast(y), dimensions={}  ROOT t = (f32[16], f32[2,2]) tuple(r, b)",
        "kOutput",
        "x = f32[16,16] parameter(0)  y = f32[] parameter(1) ",
        "(f32[16], f32[2,2])",
    ),
    "no single product": fused(XY + "ROOT a = f32[4,4] add(x, y)", "kCustom", XY, "f32[4,4]"),
    "no product of the library": fused(XY + PRODUCT + "ROOT n = f32[4,4] negate(d)", "kCustom", XY, "f32[4,4]"),
    "not the dimensions of the product": product_of(WIDE, "ROOT n = f32[16] negate(y)", "f32[16]"),
    "as wide as those of": product_of(WIDE, "ROOT c = f64[16,16] convert(d)", "f64[16,16]"),
    "not row by row": product_of(WIDE, "ROOT n = f32[16,16]{0,1} negate(d)", "f32[16,16]{0,1}"),
    "moves elements": product_of(WIDE, "t = f32[16,16] transpose(d), dimensions={1,0}  ROOT a = f32[16,16] add(d, t)"),
    "no chain of": kernels_of("ROOT p = f32[16,16] add(r, z)"),
    "not for the next one alone": kernels_of(
        "ROOT p = f32[16,16] dot(r, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    ),
    "a scalar computed inside": fused(
        "x = f32[4] parameter(0)  y = f32[] parameter(1)  i = f32[] negate(y) "
        "b = f32[4] broadcast(i), dimensions={}  ROOT r = f32[4] add(x, b)",
        "kLoop",
        "x = f32[4] parameter(0)  y = f32[] parameter(1) ",
        "f32[4]",
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_is_no_kernel_is_refused(fault: str) -> None:
    with pytest.raises(InternalError, match=fault):
        check_fusion(parse(REFUSED[fault]).entry.root)


TWO_STEPS = (
    "x = f32[4,32] parameter(0)  y = f32[] parameter(1)  t = f32[4] reduce(x, y), dimensions={1}, to_apply=sum "
    "n = f32[] negate(y)  ROOT r = f32[] reduce(t, %s), dimensions={0}, to_apply=sum"
)


@pytest.mark.parametrize("kind", ["kInput", "kOutput"])
def test_a_fold_of_what_is_folded_is_a_second_step(kind: str) -> None:
    operands = "x = f32[4,32] parameter(0)  y = f32[] parameter(1) "
    check_fusion(parse(fused(TWO_STEPS % "y", kind, operands, "f32[]")).entry.root)
    with pytest.raises(InternalError, match="is computed inside"):
        check_fusion(parse(fused(TWO_STEPS % "n", kind, operands, "f32[]")).entry.root)


def test_an_update_in_place_is_a_kernel() -> None:
    body = XY + "n = f32[4,4] negate(y)  z = s32[] constant(0)  ROOT d = f32[4,4] dynamic-update-slice(x, n, z, z)"
    check_fusion(parse(fused(body, "kLoop", XY, "f32[4,4]")).entry.root)


def test_facts_about_instructions() -> None:
    module = parse(
        """ENTRY e {
          x = f32[128,128]{1,0} parameter(0)
          t = f32[128,128]{1,0} transpose(x), dimensions={1,0}
          r = f32[16384]{0} reshape(x)
          c = f32[128,128]{0,1} copy(x)
          s = f32[1,1]{1,0} slice(x), slice={[0:1], [0:1]}
          k = f32[2] constant({1, 2})
          v = f32[1,1]{1,0} transpose(s), dimensions={1,0}
          ROOT q = (f32[128,128], f32[16384], f32[128,128], f32[1,1], f32[2]) tuple(t, r, c, v, k)
        }"""
    )
    by_name = {instruction.name: instruction for instruction in module.entry}
    assert is_blocked_transpose(by_name["t"])
    assert not is_blocked_transpose(by_name["v"])
    assert is_renaming(by_name["r"])
    assert not is_element_op(by_name["c"]), "a copy that changes the layout is no element op"
    assert not is_element_op(by_name["k"]), "a table is read from memory"


@pytest.mark.parametrize(
    ("shape", "permutation", "is_blocked"),
    [
        ("u8[64,32]", (1, 0), True),
        ("bf16[64,32]", (1, 0), True),
        ("f32[64,32]", (1, 0), False),
        ("bf16[32,32]", (1, 0), False),
        ("u8[4096,4]", (1, 0), False),
        ("u8[4,4096]", (1, 0), True),
        ("u8[8,16,32]", (1, 0, 2), False),
        ("u8[8,16,32]", (0, 2, 1), True),
    ],
)
def test_narrow_elements_are_turned_in_blocks_where_there_are_some(
    shape: str, permutation: tuple[int, ...], is_blocked: bool
) -> None:
    kind, _, dims = shape.rstrip("]").partition("[")
    sizes = dims.split(",")
    turned = ",".join(sizes[dim] for dim in permutation)
    order = ",".join(map(str, permutation))
    module = parse(
        f"ENTRY e {{ x = {shape} parameter(0)  ROOT t = {kind}[{turned}] transpose(x), dimensions={{{order}}} }}"
    )
    assert is_blocked_transpose(module.entry.root) == is_blocked
