"""The stages of a transform, one function for each radix and each way in which the numbers lie.

A stage of radix r has m positions p and runs of s numbers u; the product of the three is the length:

    target[u + s (r p + j)] = w^(p j) * sum over n of v^(n j) * source[u + s (p + m n)]

where w = exp(-2 pi i / (r m)) and v = exp(-2 pi i / r). After stages for all factors of the length, with runs of 1,
r1, r1 r2 ..., the results are in order. In the last stage there is one position, and all roots w are 1.

If transforms are computed side by side, a number above is a row of them, so that runs are as long again.

    first_row   pairs to planes, the first stage of a single transform: lanes are positions
    first       pairs to planes, the first stage of several: lanes are transforms
    short       planes to planes, with runs of less than a vector: lanes are as many whole runs as fit
    paired      the same, with runs of half a vector
    middle      planes to planes: lanes are numbers of a run
    last        planes to pairs, without roots

A vector at the end of a run overlaps the one before. Where a run has less than a vector, more is read and written than
belongs to it; in order of positions, what is wrong is overwritten by the next, and scratch memory has room at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlapy.codegen.ir import I32, Value
from xlapy.codegen.libraries.fft_butterflies import butterfly, multiply
from xlapy.codegen.libraries.fft_step import StepEmitter
from xlapy.codegen.registers import Pair


def emit_first(e: StepEmitter, radix: int) -> None:
    """Pairs to planes, inner positions next to each other in both."""
    _emit_runs(e, radix, _pair_reader(e, radix), _plane_writer(e), reads_pairs=True)


def emit_middle(e: StepEmitter, radix: int) -> None:
    _emit_runs(e, radix, _plane_reader(e, radix), _plane_writer(e))


def emit_last(e: StepEmitter, radix: int) -> None:
    """Planes to pairs, each multiplied by the factors."""
    k, distance = e.k, e["target_distance"]
    past_caches = k.compare("ne", e["past_caches"], 0)

    def write(place: Value, values: Sequence[Pair]) -> None:
        scaled = [e.scaled(value) for value in values]

        def write_all(**how: bool) -> None:
            at = place
            for value in scaled:
                e.store_pairs(at, value, **how)
                at = e.moved(at, distance)

        streams = k.and_(past_caches, e.begin_lines(place, distance))
        k.if_else(streams, lambda: write_all(past_caches=True), write_all)

    with k.loop(0, e["count"]) as positions:
        source = e.moved(e.source, k.mul(positions.index, e["source_step"]))
        target = e.moved(e.target, k.mul(positions.index, e["target_step"]))
        with k.loop(0, e.inner, e.lanes) as run:
            at = e.clamped(run.index, e.inner)
            e.fetch(k.add(k.mul(positions.index, e.vectors_in(e.inner)), k.udiv(run.index, e.lanes)))
            values = _plane_reader(e, radix)(e.moved(source, at))
            write(e.moved(target, k.mul(at, 2)), butterfly(k, values))


Reader = Callable[[Value], list[Pair]]
Writer = Callable[[Value, Sequence[Pair]], None]


def _emit_runs(e: StepEmitter, radix: int, read: Reader, write: Writer, *, reads_pairs: bool = False) -> None:
    """Positions, each with the same roots for all of its run."""
    k = e.k
    with k.loop(0, e["count"]) as positions:
        source = e.moved(e.source, k.mul(positions.index, e["source_step"]))
        target = e.moved(e.target, k.mul(positions.index, e["target_step"]))
        first = e.moved(e.roots, k.mul(positions.index, 2 * (radix - 1)))
        roots = [e.load_root(first, number) for number in range(radix - 1)]
        with k.loop(0, e.inner, e.lanes) as run:
            at = e.clamped(run.index, e.inner)
            e.fetch(k.add(k.mul(positions.index, e.vectors_in(e.inner)), k.udiv(run.index, e.lanes)))
            values = read(e.moved(source, k.mul(at, 2) if reads_pairs else at))
            write(e.moved(target, at), _turned(e, values, roots))


def emit_first_row(e: StepEmitter, radix: int) -> None:
    """Runs of one: results are put in order in registers."""
    k, read, plane = e.k, _pair_reader(e, radix), e["target_plane"]
    with k.loop(0, e["count"], e.lanes) as positions:
        at = e.clamped(positions.index, e["count"])
        e.fetch(k.udiv(positions.index, e.lanes))
        first = e.moved(e.roots, k.mul(positions.index, 2 * (radix - 1)))
        roots = [e.load_roots(first, number) for number in range(radix - 1)]
        results = _turned(e, read(e.moved(e.source, k.mul(at, 2))), roots)
        target = e.moved(e.target, k.mul(at, radix))
        reals = _interleaved(e, [value.re for value in results])
        imags = _interleaved(e, [value.im for value in results])
        for number, (re, im) in enumerate(zip(reals, imags, strict=True)):
            e.store_planes(e.moved(target, number * e.lanes), plane, Pair(re, im))


def emit_short(e: StepEmitter, radix: int) -> None:
    """A vector holds whole runs, `source_step` numbers in all; each of them is stored by itself, with a mask. Other
    lanes are zero: what lies behind the numbers of a row may be subnormal, which takes long."""
    k, read, plane = e.k, _plane_reader(e, radix), e["target_plane"]
    run, step = e["inner"], e["source_step"]
    lanes = k.lane_numbers(I32.with_lanes(e.lanes))
    with k.loop(0, e["count"]) as vectors:
        first = e.moved(e.roots, k.mul(vectors.index, 2 * (radix - 1) * e.lanes))
        roots = [e.load_roots(first, number) for number in range(radix - 1)]
        begin = k.mul(vectors.index, step)
        used = k.smin(k.sub(e["butterflies"], begin), step)
        target = e.moved(e.target, k.mul(vectors.index, e["target_step"]))
        in_use = k.compare("lt", lanes, k.trunc(used, I32), signed=False)
        results = _turned(e, read(e.moved(e.source, begin), in_use), roots)
        with k.loop(0, used, run) as runs:
            mask = k.compare("lt", k.sub(lanes, k.trunc(runs.index, I32)), k.trunc(run, I32), signed=False)
            place = e.moved(target, k.mul(runs.index, radix - 1))
            for value in results:
                k.masked_store(place, value.re, mask)
                k.masked_store(e.moved(place, plane), value.im, mask)
                place = e.moved(place, run)


def emit_paired(e: StepEmitter, radix: int) -> None:
    """A vector holds two runs, and two outputs of butterflies make a vector again. Radix and positions are even."""
    k, read, plane = e.k, _plane_reader(e, radix), e["target_plane"]
    half = e.lanes // 2
    with k.loop(0, e["count"]) as vectors:
        at = k.mul(vectors.index, e.lanes)
        e.fetch(vectors.index)
        first = e.moved(e.roots, k.mul(vectors.index, 2 * (radix - 1) * e.lanes))
        roots = [e.load_roots(first, number) for number in range(radix - 1)]
        results = _turned(e, read(e.moved(e.source, at)), roots)
        target = e.moved(e.target, k.mul(at, radix))
        for run in range(2):
            order = [run * half + lane + part * e.lanes for part in range(2) for lane in range(half)]
            for output in range(0, radix, 2):
                (a, b), (c, d) = results[output : output + 2]
                place = e.moved(target, run * half * radix + output * half)
                e.store_planes(place, plane, Pair(k.shuffle(a, c, order), k.shuffle(b, d, order)))


def _turned(e: StepEmitter, values: Sequence[Pair], roots: Sequence[Pair]) -> list[Pair]:
    """The butterflies of the values, multiplied by the roots of all outputs but the first."""
    first, *others = butterfly(e.k, values)
    return [first, *(multiply(e.k, value, root) for value, root in zip(others, roots, strict=True))]


def _pair_reader(e: StepEmitter, radix: int) -> Reader:
    distance = e["source_distance"]

    def read(place: Value) -> list[Pair]:
        """The inputs of butterflies, their imaginary parts multiplied by a factor."""
        values = []
        for _ in range(radix):
            value = e.load_pairs(place)
            values.append(Pair(value.re, e.k.mul(value.im, e.factor("im_factor", e.lanes))))
            place = e.moved(place, distance)
        return values

    return read


def _plane_reader(e: StepEmitter, radix: int) -> Callable[..., list[Pair]]:
    plane, distance = e["source_plane"], e["source_distance"]

    def read(place: Value, in_use: Value | None = None) -> list[Pair]:
        values = []
        for _ in range(radix):
            values.append(e.load_planes(place, plane, in_use))
            place = e.moved(place, distance)
        return values

    return read


def _plane_writer(e: StepEmitter) -> Writer:
    plane, distance = e["target_plane"], e["target_distance"]

    def write(place: Value, values: Sequence[Pair]) -> None:
        for value in values:
            e.store_planes(place, plane, value)
            place = e.moved(place, distance)

    return write


def _interleaved(e: StepEmitter, vectors: Sequence[Value]) -> list[Value]:
    """The first lanes of all vectors, then the second ones ..., in as many vectors."""
    count, lanes = len(vectors), e.lanes
    if count == 1 or lanes == 1:
        return [*vectors]
    if count % 2 == 0:
        even, odd = (_interleaved(e, vectors[start::2]) for start in (0, 1))
        order = [lane + part * lanes for lane in range(lanes) for part in (0, 1)]
        pairs = zip(even, odd, strict=True)
        return [e.k.shuffle(a, b, order[half : half + lanes]) for a, b in pairs for half in (0, lanes)]
    return [_gathered(e, vectors, range(begin, begin + lanes)) for begin in range(0, count * lanes, lanes)]


def _gathered(e: StepEmitter, vectors: Sequence[Value], numbers: Sequence[int]) -> Value:
    """The numbers that an odd count of vectors has at some positions, if counted across them: two vectors at a time."""
    count, lanes = len(vectors), e.lanes
    result = vectors[0]
    for source in range(1, count):
        order = []
        for place, number in enumerate(numbers):
            lane, vector = divmod(number, count)
            order.append(lanes + lane if vector == source else lane if source == 1 and vector == 0 else place)
        result = e.k.shuffle(result, vectors[source], order)
    return result
