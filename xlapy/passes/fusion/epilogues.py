"""Product epilogues: the kernel behind a matrix product becomes part of it.

    d = f32[64,256] dot(x, w), ...
    a.fusion = f32[64,256] fusion(d, b), kind=kLoop, calls={ maximum(d + broadcast(b), 0) }

becomes

    d.fusion = f32[64,256] fusion(x, w, b), kind=kCustom, calls={ maximum(dot(x, w) + broadcast(b), 0) }

The library then computes what is behind the product block by block, while it is in a cache, instead of a kernel that
reads and writes the whole array once more. Nothing is computed twice, and no bit changes.

A small product stays alone: it is still in the nearest cache when the kernel behind it runs.

A kernel that reads another array as large as the product stays alone. It reads whole rows of it one after the other,
while blocks are narrow, and in memory that is slower than what would be saved.

The pass takes kernels as loop fusion has made them, so that it never takes a chain over rows, or a reduce with what it
folds, apart. A kernel that overwrites the state of a loop or a parameter that the caller gives away stays alone: a
product needs its operands until it is done, so the state would be copied instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.kernel_faults import fault_of_product
from xlapy.hlo.kernel_plan import KernelLimits, is_element_op, is_kernel_constant
from xlapy.hlo.leaves import leaf_count, origin_of_leaf
from xlapy.hlo.matrix_products import library_product
from xlapy.passes.analysis.in_place import overwritable_operands
from xlapy.passes.base import Pass, Record, pinned, program_computations, replace_all
from xlapy.passes.fusion.build import empty_box
from xlapy.passes.fusion.cost import memory_bytes

SMALL_BYTES = 32 * 1024  # the nearest cache of most machines


@dataclass
class ProductEpilogues(Pass):
    """Products below `least_bytes` stay alone."""

    name: ClassVar[str] = "product-epilogues"

    limits: KernelLimits = field(default_factory=KernelLimits)
    least_bytes: int = SMALL_BYTES

    def run(self, module: HloModule) -> bool:
        gives_away = bool(module.config.aliases or module.config.donors)
        changed = False
        for computation in program_computations(module):
            keeps_state = computation is not module.entry or gives_away
            products = _Products(computation, self, keeps_state=keeps_state)
            changed = products.fuse() or changed
        return changed


@dataclass(frozen=True, slots=True)
class _Pair:
    """A product, the reshapes that give it other names, and the kernel that reads the last of these."""

    product: Instruction
    renamings: tuple[Instruction, ...]
    kernel: Instruction

    @property
    def value(self) -> Instruction:
        """What the kernel reads."""
        return self.renamings[-1] if self.renamings else self.product

    @property
    def members(self) -> tuple[Instruction, ...]:
        return (self.product, *self.renamings, self.kernel)


class _Products:
    """The products of one computation, each with the kernel that alone reads it."""

    def __init__(self, computation: Computation, options: ProductEpilogues, *, keeps_state: bool) -> None:
        self.computation = computation
        self.limits = options.limits
        self.least_bytes = options.least_bytes
        self.records = options.records
        self.keeps_state = keeps_state
        self.fixed = pinned(computation)

    def fuse(self) -> bool:
        replacements: dict[Instruction, Instruction] = {}
        gone: list[Instruction] = []
        pairs = [pair for instruction in self.computation.post_order() if (pair := self._pair(instruction)) is not None]
        for pair in pairs:
            fused, operands = _fused_computation(pair)
            fault = self._fault(pair, fused, operands, replacements)
            if fault:
                self.records.append(Record.of(pair.product, False, fault))
                continue
            fusion = self._add(pair, fused, operands)
            replacements[pair.kernel] = fusion
            gone += pair.members
            reason = f"{memory_bytes(pair.product):,} bytes are finished while they are in a cache"
            self.records.append(Record.of(fusion, True, reason))
        replace_all(self.computation, replacements)
        self.computation.remove(gone)
        return bool(gone)

    def _pair(self, product: Instruction) -> _Pair | None:
        """A product of the library with the kernel that alone reads it, if it is one of elements."""
        if product in self.fixed or library_product(product) is None:
            return None
        renamings: list[Instruction] = []
        user = _only_user(product)
        while user is not None and user.opcode == "reshape" and user not in self.fixed:
            renamings.append(user)
            user = _only_user(user)
        if user is None or user in self.fixed or not _is_kernel_of_elements(user):
            return None
        return _Pair(product, tuple(renamings), user)

    def _fault(
        self,
        pair: _Pair,
        fused: Computation,
        operands: Sequence[Instruction],
        replacements: dict[Instruction, Instruction],
    ) -> str:
        """Why the two shall not be one, or ""."""
        if pair.kernel in replacements:
            return f"{pair.kernel.name} follows another product already"
        if memory_bytes(pair.product) < self.least_bytes:
            return f"it is in the nearest cache when {pair.kernel.name} reads it"
        if len(operands) > self.limits.operands:
            return "their kernel would be too large"
        if _reads_strips(pair):
            return f"{pair.kernel.name} reads whole rows of arrays as large as the product, which is made in blocks"
        if self.keeps_state and self._overwrites_state(pair):
            return f"{pair.kernel.name} could not update its operand in place"
        return fault_of_product(fused)

    def _overwrites_state(self, pair: _Pair) -> bool:
        """The kernel makes a result of the computation that may lie where a parameter does."""
        root = self.computation.root
        kept = {origin_of_leaf(root, leaf) for leaf in range(leaf_count(root.shape))}
        return any(
            (pair.kernel, leaf) in kept
            and pair.kernel.operands[operand] is not pair.value
            and origin_of_leaf(pair.kernel.operands[operand], 0)[0].opcode == "parameter"
            for operand, leaf in overwritable_operands(pair.kernel)
        )

    def _add(self, pair: _Pair, fused: Computation, operands: Sequence[Instruction]) -> Instruction:
        return self.computation.add(
            "fusion",
            operands,
            called=[fused],
            shape=pair.kernel.shape,
            name=f"{pair.product.name}.fusion",
            metadata=pair.product.metadata,
            kind=FusionKind.CUSTOM,
        )


def _reads_strips(pair: _Pair) -> bool:
    """Blocks of a matrix would be taken out of another operand of the kernel as well; a vector has no blocks."""
    call = library_product(pair.product)
    is_vector = call is not None and 1 in (call.sizes["m"], call.sizes["n"])
    others = [operand for operand in pair.kernel.operands if operand is not pair.value]
    return not is_vector and any(memory_bytes(operand) >= memory_bytes(pair.product) for operand in others)


def _only_user(value: Instruction) -> Instruction | None:
    """The instruction that alone reads `value`, which is no result."""
    return None if value.is_root or len(value.users) != 1 else next(iter(value.users))


def _is_kernel_of_elements(instruction: Instruction) -> bool:
    if instruction.opcode == "fusion":
        return instruction.attributes["kind"] is FusionKind.LOOP
    return is_element_op(instruction) and not instruction.shape.is_scalar


def _fused_computation(pair: _Pair) -> tuple[Computation, list[Instruction]]:
    """The computation of the product and of what is behind it, and what its parameters stand for."""
    read = [operand for operand in pair.kernel.operands if operand is not pair.value]
    inside = pair.kernel.opcode != "fusion"
    constants = {operand for operand in read if inside and is_kernel_constant(operand)}
    operands = [operand for operand in dict.fromkeys((*pair.product.operands, *read)) if operand not in constants]
    fused, copies = empty_box(f"fused.{pair.product.name}", operands)
    for constant in dict.fromkeys(operand for operand in read if operand in constants):
        copies[constant] = fused.add_copy(constant, ())
    for member in (pair.product, *pair.renamings):
        copies[member] = fused.add_copy(member, [copies[operand] for operand in member.operands])
    arguments = [copies[operand] for operand in pair.kernel.operands]
    fused.set_root(fused.add_copy(pair.kernel, arguments) if inside else fused.insert(pair.kernel.called[0], arguments))
    return fused, operands
