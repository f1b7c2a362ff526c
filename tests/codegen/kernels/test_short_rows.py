"""Element-wise programs whose rows have two to four elements, and are not rows of fewer dimensions."""

from __future__ import annotations

import pytest

import xlapy
from tests.support.emitted import emitted_kernels
from tests.support.native import check_text
from xlapy.codegen.kernels.loop import STREAMED_BYTES
from xlapy.codegen.kernels.short_rows import LEAST_CHOOSING, plan_short_rows
from xlapy.codegen.target import REFERENCE_MACHINES, host_target, reference_target
from xlapy.hlo.text import parse


def scaled(element_type: str, dims: tuple[int, ...]) -> str:
    """Each row multiplied by a number of its own, and each column reduced by one."""
    whole, rows = (f"{element_type}[{','.join(map(str, sizes))}]" for sizes in (dims, dims[:-1]))
    leading = ",".join(map(str, range(len(dims) - 1)))
    return f"""HloModule m
      ENTRY main {{
        x = {whole} parameter(0)
        v = {rows} parameter(1)
        c = {element_type}[{dims[-1]}] parameter(2)
        w = {whole} broadcast(v), dimensions={{{leading}}}
        d = {whole} broadcast(c), dimensions={{{len(dims) - 1}}}
        p = {whole} multiply(x, w)
        ROOT r = {whole} subtract(p, d)
      }}"""


def is_planned(text: str) -> bool:
    root = parse(text).entry.root
    return plan_short_rows([root], lambda i: i.opcode == "parameter", root.shape.bytes, host_target()) is not None


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("element_type", ["u8", "s16", "bf16", "f16", "s32", "f32", "f64"])
def test_element_types(element_type: str, count: int) -> None:
    check_text(scaled(element_type, (1501, count)))


@pytest.mark.parametrize("dims", [(7, 151, 3), (3, 5, 64, 3), (40, 33, 1, 3), (9, 1, 130, 3), (1, 900, 3)], ids=str)
def test_dimensions(dims: tuple[int, ...]) -> None:
    assert is_planned(scaled("f32", dims))
    check_text(scaled("f32", dims))


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("element_type", ["s32", "f32", "f64"])
def test_heavy_programs(element_type: str, count: int) -> None:
    steps = [f"p{n} = {element_type}[1501,{count}] add(p{n - 1}, {'xw'[n % 2]})" for n in range(1, 30)]
    text = scaled(element_type, (1501, count)).replace("p = ", "p0 = ").replace("subtract(p, ", "subtract(p29, ")
    text = text.replace("ROOT r", "\n".join([*steps, "ROOT r"]))
    assert is_planned(text) == (element_type != "f64" or count < host_target().lanes(64))
    check_text(text)


@pytest.mark.parametrize(
    "dims", [(1024, 2, 3), (1501, 3, 3), (9, 131, 3, 3), (700, 2, 1, 3), (31, 3, 2, 3), (301, 5, 3)], ids=str
)
@pytest.mark.parametrize("element_type", ["f32", "f64", "s32"])
def test_matrices(element_type: str, dims: tuple[int, ...]) -> None:
    """Of so few rows that no vector goes along these, but one may along what is in front of them."""
    assert is_planned(scaled(element_type, dims)) == (dims != (31, 3, 2, 3))
    check_text(scaled(element_type, dims))


@pytest.mark.parametrize(
    "dims", [(2048, 5), (100, 3), (1024, 3, 2), (1501, 2)], ids=["longer", "fewer", "three by two", "light"]
)
def test_others_are_as_they_were(dims: tuple[int, ...]) -> None:
    assert not is_planned(scaled("f32", dims))
    check_text(scaled("f32", dims))


@pytest.mark.parametrize(
    "dims",
    [(STREAMED_BYTES // 12 // 64 * 64 + 64, 3), (683, 2048, 3), (STREAMED_BYTES // 36 // 64 * 64 + 64, 3, 3)],
    ids=str,
)
def test_results_past_the_caches(dims: tuple[int, ...]) -> None:
    check_text(scaled("f32", dims))


def test_what_several_results_are_made_of() -> None:
    check_text("""HloModule m
      ENTRY main {
        x = f32[33,70,3] parameter(0)
        v = f32[33,70] parameter(1)
        w = f32[33,70,3] broadcast(v), dimensions={0,1}
        p = f32[33,70,3] multiply(x, w)
        q = f32[33,70,3] add(x, w)
        ROOT t = (f32[33,70,3], f32[33,70,3]) tuple(p, q)
      }""")


def test_padded_joined_and_turned_rows() -> None:
    text = """HloModule m
      ENTRY main {
        x = f32[3,40,65] parameter(0)
        y = f32[40,65,1] parameter(1)
        zero = f32[] constant(7)
        t = f32[40,65,3] transpose(x), dimensions={1,2,0}
        s = f32[40,65,2] slice(t), slice={[0:40], [0:65], [1:3]}
        c = f32[40,65,3] concatenate(s, y), dimensions={2}
        a = f32[40,65,3] multiply(c, t)
        ROOT p = f32[42,70,3] pad(a, zero), padding=1_1x2_3x0_0
      }"""
    assert is_planned(text)
    check_text(text)


@pytest.mark.parametrize("rows", [31, 43, 129])
def test_columns_of_few_rows_that_are_made_apart(rows: int) -> None:
    """A loop over elements would choose among all columns for each, so vectors of rows pay where there are few."""
    text = f"""HloModule m
      ENTRY main {{
        x = f32[{rows},3] parameter(0)
        a = f32[{rows},1] slice(x), slice={{[0:{rows}], [0:1]}}
        b = f32[{rows},1] slice(x), slice={{[0:{rows}], [1:2]}}
        d = f32[{rows},1] slice(x), slice={{[0:{rows}], [2:3]}}
        p = f32[{rows},1] multiply(a, b)
        q = f32[{rows},1] subtract(b, d)
        s = f32[{rows},1] divide(d, a)
        c = f32[{rows},3] concatenate(p, q, s), dimensions={{1}}
        ROOT r = f32[{rows},3] add(x, c)
      }}"""
    assert is_planned(text) == (rows * 3 >= LEAST_CHOOSING)
    check_text(text)


@pytest.mark.parametrize("padding", ["0_1", "1_0", "0_1_1", "-1_1"])
def test_columns_behind_joined_ones(padding: str) -> None:
    """A column of padding is none of the columns that are joined."""
    text = f"""HloModule m
      ENTRY main {{
        x = f32[900] parameter(0)
        y = f32[900] parameter(1)
        zero = f32[] constant(7)
        a = f32[900,1] reshape(x)
        b = f32[900,1] reshape(y)
        c = f32[900,2] concatenate(a, b), dimensions={{1}}
        ROOT p = f32[900,{dict.get({"0_1_1": 4, "-1_1": 2}, padding, 3)}] pad(c, zero), padding=0_0x{padding}
      }}"""
    check_text(text)


@pytest.mark.parametrize("element_type", ["f32", "f64", "u8", "bf16"])
def test_matrices_of_joined_columns(element_type: str) -> None:
    """As inverses of matrices of three rows are."""
    text = """HloModule m
      ENTRY main {
        x = T[900,3] parameter(0)
        y = T[900,3] parameter(1)
        z = T[900,3] parameter(2)
        v = T[900] parameter(3)
        a = T[900,3,1] reshape(x)
        b = T[900,3,1] reshape(y)
        c = T[900,3,1] reshape(z)
        j = T[900,3,3] concatenate(a, b, c), dimensions={2}
        w = T[900,3,3] broadcast(v), dimensions={0}
        ROOT r = T[900,3,3] subtract(j, w)
      }""".replace("T[", element_type + "[")
    assert is_planned(text)
    check_text(text)


@pytest.mark.parametrize("element_type", ["u8", "bf16"])
def test_matrices_of_narrow_numbers_are_as_they_were(element_type: str) -> None:
    assert not is_planned(scaled(element_type, (1501, 3, 3)))
    check_text(scaled(element_type, (1501, 3, 3)))


def test_picked_rows() -> None:
    check_text("""HloModule m
      ENTRY main {
        x = f32[500,3] parameter(0)
        i = s32[1200] parameter(1)
        v = f32[1200] parameter(2)
        k = s32[1200,1] reshape(i)
        g = f32[1200,3] gather(x, k), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
          index_vector_dim=1, slice_sizes={1,3}
        w = f32[1200,3] broadcast(v), dimensions={0}
        ROOT p = f32[1200,3] multiply(g, w)
      }""")


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("element_type", ["u8", "s16", "f32", "f64"])
def test_mirrored_rows_are_picked_from_vectors(element_type: str, count: int) -> None:
    """Elements that lie a known distance in front of one another are loaded with what is between them."""
    text = """HloModule m
      ENTRY main {
        x = T[5,301,N] parameter(0)
        v = T[5,301] parameter(1)
        m = T[5,301,N] reverse(x), dimensions={1}
        w = T[5,301,N] broadcast(v), dimensions={0,1}
        s = T[5,301,1] slice(m), slice={[0:5], [0:301], [1:2]}
        r = T[5,301] reshape(s)
        b = T[5,301,N] broadcast(r), dimensions={0,1}
        p = T[5,301,N] multiply(m, w)
        ROOT q = T[5,301,N] add(p, b)
      }""".replace("T[", element_type + "[").replace("N]", f"{count}]")
    if is_planned(text):
        assert "gather" not in xlapy.compile(text).llvm_ir()
    check_text(text)


@pytest.mark.parametrize(
    ("element_type", "count"), [("u8", 2), ("u8", 4), ("s16", 2), ("s16", 4), ("bf16", 2), ("f16", 4)]
)
def test_columns_of_narrow_elements_are_parts_of_words(element_type: str, count: int) -> None:
    """As a pixel of four bytes is: its row is loaded as one integer, whichever of its elements are needed."""
    rows = 1501
    text = (
        """HloModule m
      ENTRY main {
        x = T[R,N] parameter(0)
        y = T[R,3] parameter(1)
        s = T[R,1] slice(x), slice={[0:R], [1:2]}
        r = T[R] reshape(s)
        t = T[R,1] slice(x), slice={[0:R], [L:N]}
        u = T[R] reshape(t)
        v = T[R] add(r, u)
        c = f32[R] convert(v)
        b = f32[R,3] broadcast(c), dimensions={0}
        d = f32[R,3] convert(y)
        ROOT p = f32[R,3] multiply(d, b)
      }""".replace("T[", element_type + "[")
        .replace("[R", f"[{rows}")
        .replace("N]", f"{count}]")
    )
    text = text.replace(":R]", f":{rows}]").replace("[L:", f"[{count - 1}:")
    assert is_planned(text)
    for target in (host_target(), *map(reference_target, REFERENCE_MACHINES)):
        assert f"= lshr <{target.lanes(32)} x " in emitted_kernels(text, target)
    check_text(text)


def test_every_second_element_backwards() -> None:
    text = """ENTRY main {
        x = f32[40,1001] parameter(0)
        m = f32[40,1001] reverse(x), dimensions={1}
        s = f32[40,501] slice(m), slice={[0:40], [0:1001:2]}
        ROOT n = f32[40,501] negate(s)
      }"""
    assert "gather" not in xlapy.compile(text).llvm_ir()
    check_text(text)


def test_in_place_of_an_operand() -> None:
    """Rows of a loop's state, of which the last vector has less than others."""
    check_text("""HloModule m
      below { s = (s32[], f32[1501,3], f32[1501]) parameter(0)
        i = s32[] get-tuple-element(s), index=0
        n = s32[] constant(3)
        ROOT c = pred[] compare(i, n), direction=LT }
      scaled { s = (s32[], f32[1501,3], f32[1501]) parameter(0)
        i = s32[] get-tuple-element(s), index=0
        one = s32[] constant(1)
        j = s32[] add(i, one)
        x = f32[1501,3] get-tuple-element(s), index=1
        v = f32[1501] get-tuple-element(s), index=2
        w = f32[1501,3] broadcast(v), dimensions={0}
        p = f32[1501,3] add(x, w)
        ROOT t = (s32[], f32[1501,3], f32[1501]) tuple(j, p, v) }
      ENTRY main {
        x = f32[1501,3] parameter(0)
        v = f32[1501] parameter(1)
        zero = s32[] constant(0)
        s = (s32[], f32[1501,3], f32[1501]) tuple(zero, x, v)
        l = (s32[], f32[1501,3], f32[1501]) while(s), condition=below, body=scaled
        ROOT r = f32[1501,3] get-tuple-element(l), index=1
      }""")


def bordered(
    element_type: str, images: int, sides: tuple[int, int], border: int, *, mirrored: bool, changed: bool
) -> str:
    """Images in which borders of rows and columns are repeated, or mirrored."""
    lines, dims = [f"x0 = {element_type}[{images},{sides[0]},{sides[1]},3] parameter(0)"], [images, *sides, 3]
    for step, dim in enumerate((1, 2)):
        whole = [f"[0:{size}]" for size in dims]

        def piece(name: str, start: int, end: int, dim: int = dim, step: int = step, whole: list[str] = whole) -> str:
            sizes = [*dims[:dim], end - start, *dims[dim + 1 :]]
            shape = f"{element_type}[{','.join(map(str, sizes))}]"
            cut = ", ".join([*whole[:dim], f"[{start}:{end}]", *whole[dim + 1 :]])
            lines.append(f"{name} = {shape} slice(x{step}), slice={{{cut}}}")
            if mirrored:
                lines.append(f"{name}r = {shape} reverse({name}), dimensions={{{dim}}}")
            return f"{name}r" if mirrored else name

        size = dims[dim]
        if mirrored:
            low, high = [piece(f"a{step}", 1, border + 1)], [piece(f"b{step}", size - border - 1, size - 1)]
        else:
            low, high = [piece(f"a{step}", 0, 1)] * border, [piece(f"b{step}", size - 1, size)] * border
        dims[dim] += 2 * border
        shape = f"{element_type}[{','.join(map(str, dims))}]"
        joined = ", ".join([*low, f"x{step}", *high])
        lines.append(f"x{step + 1} = {shape} concatenate({joined}), dimensions={{{dim}}}")
    last = f"{element_type}[{','.join(map(str, dims))}]"
    lines.append(f"ROOT r = {last} {'add(x2, x2)' if changed else 'copy(x2)'}")
    return "HloModule m ENTRY main {\n" + "\n".join(lines) + "\n}"


@pytest.mark.parametrize("element_type", ["f32", "u8", "bf16", "f64"])
@pytest.mark.parametrize("mirrored", [False, True], ids=["repeated", "mirrored"])
@pytest.mark.parametrize("border", [1, 3, 9])
def test_borders_of_images(element_type: str, border: int, *, mirrored: bool) -> None:
    check_text(bordered(element_type, 10, (20, 121), border, mirrored=mirrored, changed=False))
    check_text(bordered(element_type, 20, (11, 140), border, mirrored=mirrored, changed=True))
