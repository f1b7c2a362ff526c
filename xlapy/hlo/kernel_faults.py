"""Why a fused computation is no kernel of a matrix product, where `kernel_plan` promises that to codegen.

A fault is a sentence that names the instruction, or "".
"""

from __future__ import annotations

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import (
    PRODUCTS,
    fusion_roots,
    is_element_by_element,
    is_element_op,
    is_row_major,
    product_leaf,
)
from xlapy.hlo.matrix_products import library_product


def fault_of_product(computation: Computation) -> str:
    """Why a fused computation is no matrix product with element-wise ops behind it, or ""."""
    products = [instruction for instruction in computation if instruction.opcode in PRODUCTS]
    if len(products) != 1 or any(operand.opcode != "parameter" for operand in products[0].operands):
        return "it holds no single product of parameters"
    product, roots = products[0], fusion_roots(computation)
    call = library_product(product)
    if call is None:
        return f"{product} is no product of the library"
    if call.sizes["c_column"] != 1:
        return f"{product} is not made row by row"
    if len({root.shape.dims for root in roots}) != 1 or roots[0].shape.size != product.shape.size:
        return "its roots have not the dimensions of the product"
    if product_leaf(computation, product) is None:
        return f"no result has elements as wide as those of {product}"
    if not all(is_row_major(instruction) for instruction in (product, *roots)):
        return "its results are not row by row"
    outside = {product} | ({computation.root} if computation.root.opcode == "tuple" else set())
    made: set[Instruction] = {product}
    for instruction in computation.post_order():
        if instruction not in outside and made & {*instruction.operands}:
            if not is_element_by_element(instruction, product.shape.size):
                return f"{instruction} moves elements of the product"
            made.add(instruction)
    return fault_of_members(computation, outside)


def fault_of_members(computation: Computation, outside: set[Instruction]) -> str:
    """Why what is not `outside` of the loops of a kernel cannot be in one, or ""."""
    for instruction in computation:
        if instruction not in outside and instruction.opcode != "parameter":
            if not is_element_op(instruction):
                return f"{instruction} is no element op"
            if instruction.shape.is_scalar and instruction.opcode != "constant":
                return f"{instruction} is a scalar computed inside"
    return ""
