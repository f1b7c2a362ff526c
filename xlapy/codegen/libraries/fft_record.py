"""What a caller tells the Fourier transform library: the numbers of a pass, and behind them those of its steps.

A pass transforms one dimension of an array, unit by unit. What happens to a unit is a list of steps, each of which
reads one place and writes another: the operand, the result, or the scratch memory of the task at hand. Steps come in
rounds: those of a round are taken for one part of the unit after another. Complex numbers lie there as

    pairs     real part, imaginary part, real part ...: always so in operand and result
    planes    all real parts, and all imaginary ones at a distance: only in scratch memory

Distances are in real numbers, so that a pair counts as two.
"""

from __future__ import annotations

import functools

from xlapy.codegen.target import Target

PASS_NUMBERS = (
    "units",
    "grain",  # units of a task
    "columns",  # transforms that are next to each other, in each of many groups
    "blocks",  # units into which such a group is cut
    "operand_group",  # distances from group to group, and from column to column
    "operand_column",
    "result_group",
    "result_column",
    "task_memory",  # of its own for each task
    "rounds",
    "ahead",  # units from the one at hand to the one whose operand is fetched meanwhile
    "fetched_rows",  # of that; none if caches hold the operand
    "fetched_with_step",  # rows of them
    "fetched_pitch",  # from row to row
    "fetched_bytes",  # of each row
    "past_caches",  # 1 if some step writes past the caches
)

STEP_NUMBERS = (
    "kind",  # in the order of `step_kinds`
    "source",  # one of the arrays below
    "source_offset",
    "source_plane",  # distance of the imaginary parts
    "target",
    "target_offset",
    "target_plane",
    "count",  # of the outer loop
    "inner",  # of the inner one; 0 for as many as the unit has columns
    "butterflies",  # of a stage whose vectors hold whole runs: the last vector may have fewer than the others
    "source_step",  # from iteration to iteration of the outer loop
    "source_distance",  # from input to input of a butterfly; else what the step says
    "target_step",
    "target_distance",
    "roots",  # where the step's numbers begin in the table
    "roots_plane",  # distance of their imaginary parts, if vectors of them begin anywhere
    "re_factor",  # what real and imaginary parts are multiplied by: the bits of an f64
    "im_factor",
    "past_caches",  # 1 if what is written had better not fill them
    "fetched",  # where what the step fetches of a coming operand begins in that, in bytes
    "fetched_bytes",  # from vector to vector; 0 if the pass fetches whole rows, or nothing
    "together",  # steps of the round that begins with this one
    "parts",  # of that round: all of its steps for one, then for the next
    "source_part",  # distances from part to part, in bytes for what is fetched
    "target_part",
    "roots_part",
    "fetched_part",
)

FETCHED_LINES = 4
"""What a vector of a step fetches: a quarter of what it reads, as many transforms have four stages."""

OPERAND, RESULT, SCRATCH = range(3)

END_RADICES = (1, 2, 3, 4, 5, 7, 8)
"""Of the first and of the last stage. 1 only changes from pairs to planes, or back."""

RADICES = (3, 4, 5, 7, 8, 11, 13, 17, 19, 23)
"""Of the stages between: a 2 is always the first or the last."""

PAIRED_RADICES = (4, 8)
"""Of the stages between whose runs are half a vector."""

LARGEST_RADIX = max(RADICES)


def has_short_stages(target: Target) -> bool:
    """Whether runs shorter than a vector are stored side by side: that takes stores with masks."""
    return target.is_avx512


@functools.lru_cache(maxsize=16)
def step_kinds(target: Target) -> dict[str, int]:
    """The kinds of steps by their names: the stages with their radix behind them."""
    names = [f"{stage}{radix}" for stage in ("first", "first_row", "last") for radix in END_RADICES]
    names += [f"middle{radix}" for radix in RADICES]
    names += [f"paired{radix}" for radix in PAIRED_RADICES]
    if has_short_stages(target):
        names += [f"short{radix}" for radix in RADICES]
    names += ["copy", "turn", "copy_in", "copy_out", "clear", "times", "times_rows"]
    names += ["split", "split_rows", "join", "join_rows"]
    return {name: number for number, name in enumerate(names)}
