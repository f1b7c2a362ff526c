"""Row blocks: a product, a chain over its rows, and a product of these rows run block of rows by block of rows.

    s = f32[8,512,512] dot(q, k)
    p.fusion = f32[8,512,512] fusion(s), kind=kOutput, calls={ softmax of each row }
    ROOT r = f32[8,512,64] dot(p.fusion, v)

becomes

    ROOT r.fusion = f32[8,512,64] fusion(q, k, v), kind=kCustom, calls={ the three of them }

What lies between the products, which in attention is by far the largest array, never exists as a whole: each thread has
room for a block of rows. The kernels stay what they are, and no bit depends on the number of threads. Attention whose
scores a cache holds anyway stays as it is, and so does a product by something so large that blocks should not read it
again and again. How blocks are cut is written in `hlo/row_blocks.py`.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.row_blocks import BlockProduct, RowBlocks, row_blocks
from xlapy.passes.base import Pass, Record, pinned, program_computations
from xlapy.passes.fusion.build import empty_box

LEAST_BYTES = 1 << 20  # of all rows: less stays in a cache from kernel to kernel
MOST_SIDE_BYTES = 8 << 20  # of a matrix that each block reads


@dataclass
class RowBlocking(Pass):
    name: ClassVar[str] = "row-blocks"
    ops: ClassVar[Set[str]] = frozenset({"dot"})

    least_bytes: int = LEAST_BYTES
    most_side_bytes: int = MOST_SIDE_BYTES

    def run(self, module: HloModule) -> bool:
        changed = False
        for computation in program_computations(module):
            fixed = pinned(computation)
            for instruction in computation.post_order():
                blocks = row_blocks(instruction)
                if blocks is not None and not fixed.intersection(blocks.members):
                    changed = self._join(computation, blocks) or changed
        return changed

    def _join(self, computation: Computation, blocks: RowBlocks) -> bool:
        fault = self._fault(blocks)
        if fault:
            self.records.append(Record.of(blocks.rows, False, fault))
            return False
        kernels = blocks.members
        root = kernels[-1]
        fused, operands = _fused_computation(kernels)
        fusion = computation.add(
            "fusion",
            operands,
            called=[fused],
            shape=root.shape,
            name=f"{root.name}.fusion",
            metadata=root.metadata,
            kind=FusionKind.CUSTOM,
        )
        room = blocks.block_rows * blocks.row_bytes
        reason = f"{blocks.rows.shape.bytes:,} bytes are made and used in blocks of {room:,}"
        self.records.append(Record.of(fusion, True, reason))
        computation.replace(root, fusion)
        computation.remove(kernels)
        return True

    def _fault(self, blocks: RowBlocks) -> str:
        """Why the kernels shall stay apart, or ""."""
        if blocks.rows.shape.bytes < self.least_bytes:
            return "a cache holds all rows between the products around it"
        if max(_side_bytes(product) for product in (blocks.first, blocks.second)) > self.most_side_bytes:
            return "each block would read too much of what its rows are multiplied by"
        return ""


def _side_bytes(product: BlockProduct) -> int:
    return product.sizes["k"] * product.sizes["n"] * product.dot.operands[1 - product.left].shape.type.bytes


def _fused_computation(kernels: Sequence[Instruction]) -> tuple[Computation, list[Instruction]]:
    """The computation of the kernels, and what its parameters stand for."""
    read = [operand for kernel in kernels for operand in kernel.operands if operand not in kernels]
    operands = list(dict.fromkeys(read))
    fused, copies = empty_box(f"blocks.{kernels[-1].name}", operands)
    for kernel in kernels:
        copies[kernel] = fused.add_copy(kernel, [copies[operand] for operand in kernel.operands])
    fused.set_root(copies[kernels[-1]])
    return fused, operands
