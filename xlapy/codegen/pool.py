"""The native half of the thread pool: a fork-join loop over a range, as IR.

    parallel(kernel, args, count, grain)     calls kernel(args, begin, end) for each chunk of [0, count)

Chunks have `grain` items; if that is negative, its magnitude, and threads stay close to each other.

The whole job is published in one atomic word (`PoolState.word`), and a thread takes a claim, one or more consecutive
chunks, by exchanging the word for one with one claim more taken. What a claim stands for is read after it was won, and
a job cannot end before all its claims are done; so an exchange that succeeds against a word that has come round again
still takes a claim of the job at hand.

If there are few claims, the caller takes them from the first part of the range on, as much of it as one thread's share,
workers from the rest; who is through with a part goes on at the end of the other one. So a core finds in its near
caches what it left there of the same part of an array in the job before (two cores: to add two arrays of 128 thousand
numbers again and again takes 0.6 of the time, attention in a cache 0.75). Many claims are taken one after the other, as
threads had better read what is from afar close to each other (add in memory: 0.95 of the time; f64, 128 by 3072 by 768:
0.85; cumulative sums of columns in memory, each claim some columns: 0.6).

A worker pays for its first claim of a job with a seat: that is the cap on threads, and the job's number in the word
tells a worker whether it has paid.

A caller that is Python's main thread looks for signals between claims. If a handler raises, the claims that are left
are taken and not worked on.

Workers look at the word for a while after each job and then sleep. A sleeper announces itself and then looks at the
word once more; a publisher writes the word and then looks for sleepers; one of them sees the other.

Before it wakes them it tells them to leave its own core alone. Linux lets a thread go on where it slept or where it is
woken, and may leave it there for milliseconds beside the caller while another core is idle (two cores, 0.1 s after the
last call: half of all products of 512 by 512 took twice as long, longer than on one thread).
"""

from __future__ import annotations

from xlapy.codegen.clock import clock, ticks
from xlapy.codegen.context import CONTEXT_CANCELLED, CONTEXT_INTERRUPTED, CONTEXT_POLL, CONTEXT_POLLED
from xlapy.codegen.float_environment import settings_of_thread, use_settings
from xlapy.codegen.futex import futex_wait, futex_wake, has_futex, pause
from xlapy.codegen.ir import I32, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.libraries import Library
from xlapy.codegen.native_fields import not_zero, word
from xlapy.codegen.target import Target
from xlapy_runtime.calling import Status
from xlapy_runtime.threads import CORE_WORDS, MAX_THREADS, POOL_SYMBOLS, PoolState

_CLAIM_BITS = 20
_MAX_CLAIMS = (1 << _CLAIM_BITS) - 1
_SEATS_SHIFT = 2 * _CLAIM_BITS
_NUMBER_SHIFT = _SEATS_SHIFT + 8
_NO_JOB = -1
"""A job number that no word holds."""

_MOST_CLAIMS_IN_PARTS = 16
"""Of a job whose data near caches may still hold."""

LOOK_HUNDREDTHS = 10
"""Of a second between two looks at Python's signals in the middle of kernels and behind them."""

_CORE_BYTES = CORE_WORDS * I64.bytes
_LET_GO = -1
"""Instead of a worker's number."""

_CALLER_SPINS = 2000
"""How long a caller that ran out of claims looks for the last ones to complete before it lets others run."""


def emit_pool(target: Target) -> Module:
    module = Module(has_fma=target.has_fma)
    emitter = _PoolEmitter(module, target)
    emitter.state()
    emitter.reset()
    emitter.wake()
    emitter.place()
    emitter.look()
    emitter.look_behind()
    emitter.take_claims()
    emitter.worker()
    emitter.run_alone()
    emitter.run_shared()
    return module


def emit_entries(target: Target) -> Module:
    """One function for each cap on the number of threads, since `parallel` has no argument for it."""
    module = Module(has_fma=target.has_fma)
    for cap in range(1, MAX_THREADS + 1):
        with KernelBuilder(module, f"parallel_{cap}", _JOB, None, "internal") as k:
            job = list(k.parameters.values())
            if cap == 1:
                k.call(_RUN_ALONE, job)
            else:
                k.call(_RUN_SHARED, [*job, k.const(I64, cap - 1)])
    names = ", ".join(f"ptr @parallel_{cap}" for cap in range(1, MAX_THREADS + 1))
    module.define("parallel_entries", f"@parallel_entries = constant [{MAX_THREADS} x ptr] [{names}]")
    return module


POOL = Library("pool", POOL_SYMBOLS, emit_pool, glue=emit_entries)

_RUN_ALONE, _RUN_SHARED = "pool_run_alone", "pool_run_shared"


class _PoolEmitter:
    """Writes the functions of the pool, in the order in which they build on each other."""

    def __init__(self, module: Module, target: Target) -> None:
        self._module = module
        self._target = target
        self._has_futex = has_futex(target)

    def state(self) -> None:
        size = -(-_SIZE // 64) * 64
        self._module.define("pool_state", f"@pool_state = global [{size} x i8] zeroinitializer, align 128")

    def reset(self) -> None:
        """Forgets everything: for a new process that holds a copy of another one's pool."""
        with KernelBuilder(self._module, "pool_reset", [], None) as k:
            k.memset(k.function_pointer("pool_state"), 0, _SIZE)
            if not self._has_futex:
                k.call("pthread_mutex_init", [_field(k, "mutex"), k.const(PTR, 0)], I32)
                k.call("pthread_cond_init", [_field(k, "condition"), k.const(PTR, 0)], I32)

    def wake(self) -> None:
        """Wakes up to `count` sleeping workers."""
        with KernelBuilder(self._module, "pool_wake", [("count", I32)], None) as k:
            generation = _field(k, "generation")
            if self._has_futex:
                k.atomic_update("add", generation, k.const(I32, 1))
                futex_wake(k, self._target, generation, k.parameters["count"])
            else:
                k.call("pthread_mutex_lock", [_field(k, "mutex")], I32)
                k.atomic_update("add", generation, k.const(I32, 1))
                k.call("pthread_cond_broadcast", [_field(k, "condition")], I32)
                k.call("pthread_mutex_unlock", [_field(k, "mutex")], I32)

    def place(self) -> None:
        """Tells the workers to use other cores than this one, unless they have been told so. One whom somebody else has
        told something since is let go for good: later, what he was told could be what we told all others."""
        if not self._has_futex:
            return
        with KernelBuilder(self._module, "pool_place", [], None, "internal") as k:
            core = k.call_value("sched_getcpu", [], I32)
            shunned = _field(k, "shunned")
            is_known = k.compare("lt", core, 64 * CORE_WORDS, signed=False)
            is_new = k.compare("ne", k.load(shunned, I32), k.add(core, 1))
            with k.if_(k.not_(k.and_(is_known, is_new))):
                k.ret()
            allowed, placed = _field(k, "allowed"), _field(k, "placed")
            now, wanted = k.alloca(I64, CORE_WORDS), k.alloca(I64, CORE_WORDS)
            self._without(k, allowed, core, wanted)
            k.store(shunned, k.add(core, 1))
            with k.loop(0, k.sext(k.load(_field(k, "num_placed"), I32), I64)) as worker:
                entry = k.gep(_field(k, "numbers"), worker.index, I32.bytes)
                number = k.load(entry, I32)
                with k.if_(k.compare("eq", number, 0)):
                    k.store(shunned, k.const(I32, 0))  # it has not begun: all are told again next time
                with k.if_(k.compare("gt", number, 0)):
                    size = k.const(I64, _CORE_BYTES)
                    answered = k.compare("eq", k.call_value("sched_getaffinity", [number, size, now], I32), 0)
                    is_ours = k.and_(answered, k.or_(_are_equal(k, now, allowed), _are_equal(k, now, placed)))
                    with k.if_(is_ours):
                        k.call_value("sched_setaffinity", [number, size, wanted], I32)
                    with k.if_(k.not_(is_ours)):
                        k.store(entry, k.const(I32, _LET_GO))
            k.memcpy(placed, wanted, k.const(I64, _CORE_BYTES))

    def _without(self, k: KernelBuilder, cores: Value, core: Value, goal: Value) -> None:
        """All cores but one."""
        k.memcpy(goal, cores, k.const(I64, _CORE_BYTES))
        number = k.zext(core, I64)
        word = k.gep(goal, k.lshr(number, 6), I64.bytes)
        bit = k.shl(k.const(I64, 1), k.and_(number, 63))
        k.store(word, k.and_(k.load(word, I64), k.not_(bit)))

    def _sleep(self, k: KernelBuilder, generation: Value) -> None:
        """Sleeps while there was no wake-up since `generation` was read; may return early."""
        if self._has_futex:
            futex_wait(k, self._target, _field(k, "generation"), generation)
            return
        k.call("pthread_mutex_lock", [_field(k, "mutex")], I32)
        with k.if_(k.compare("eq", k.atomic_load(_field(k, "generation"), I32), generation)):
            k.call("pthread_cond_wait", [_field(k, "condition"), _field(k, "mutex")], I32)
        k.call("pthread_mutex_unlock", [_field(k, "mutex")], I32)

    def look(self) -> None:
        """Now and then lets Python look at its signals; non-zero if a handler raised. Only the main thread can."""
        with KernelBuilder(self._module, "pool_look", [], I32, "internal") as k:
            looked, nothing = _field(k, "looked"), k.const(I32, 0)
            now = clock(k)
            recent = ticks(self._target, LOOK_HUNDREDTHS)
            with k.if_(k.compare("le", k.sub(now, k.load(looked, I64)), recent, signed=False)):
                k.ret(nothing)
            with k.if_(k.not_(_is_main_thread(k))):
                k.ret(nothing)
            k.store(looked, now)
            stop = k.call_value(k.load(_field(k, "poll"), PTR), [], I32)
            k.ret(stop)

    def look_behind(self) -> None:
        """What programs call behind what may take long: the status to end with if the run was stopped, or 0. Lets
        Python look at its signals now and then.

        A kernel that a signal has cut short must not go unnoticed: that is what the interrupted word is for."""
        with KernelBuilder(self._module, "pool_look_behind", [("context", PTR)], I32) as k:
            context = k.parameters["context"]
            place, now = k.gep(context, CONTEXT_POLLED, I64.bytes), clock(k)
            cancelled = word(k, context, CONTEXT_CANCELLED, PTR)
            late = k.compare("gt", k.sub(now, k.load(place, I64)), ticks(self._target, LOOK_HUNDREDTHS), signed=False)
            interrupted = k.load(word(k, context, CONTEXT_INTERRUPTED, PTR), I32, volatile=True)
            with k.if_(k.or_(late, not_zero(k, interrupted))):
                k.store(place, now)
                stop = k.call_value(word(k, context, CONTEXT_POLL, PTR), [context], I32)
                with k.if_(not_zero(k, stop)):
                    k.store(cancelled, k.const(I32, 1))  # for other threads to see
            with k.if_(not_zero(k, k.load(cancelled, I32, volatile=True))):
                k.ret(k.const(I32, Status.CANCELLED))
            k.ret(k.const(I32, Status.OK))

    def take_claims(self) -> None:
        """Takes claims until there are none, or none without a seat. `seat` is the job whose seat the thread has."""
        with KernelBuilder(self._module, "pool_take_claims", [("seat", I64)], None, "internal") as k:
            word = _field(k, "word")
            is_caller = k.compare("ne", k.parameters["seat"], _NO_JOB)

            def attempt(values: list[Value]) -> list[Value]:
                seat, expected = values
                number = k.lshr(expected, _NUMBER_SHIFT)
                price = k.select(k.compare("eq", number, seat), k.const(I64, 0), 1 << _SEATS_SHIFT)
                rest = k.add(expected, k.select(is_caller, k.const(I64, 1), -(1 << _CLAIM_BITS)))
                seen, won = k.compare_exchange(word, expected, k.sub(rest, price))

                def work() -> list[Value]:
                    with k.if_(k.compare("eq", k.atomic_load(_field(k, "skip"), I64), 0)):
                        use_settings(k, self._target, k.load(_field(k, "floats"), I32))
                        self._run_claim(k, self._claim_of(k, expected, is_caller))
                        with k.if_(is_caller):
                            self._stop_if_interrupted(k)
                    k.atomic_update("add", _field(k, "completed"), k.const(I64, 1), "release")
                    return [number, k.atomic_load(word, I64)]

                return k.if_else(won, work, lambda: [seat, seen])

            k.while_loop(
                lambda values: _claimable(k, values[1], values[0]),
                attempt,
                [k.parameters["seat"], k.atomic_load(word, I64)],
            )

    def _claim_of(self, k: KernelBuilder, word: Value, is_caller: Value) -> Value:
        """Which claim a thread has taken from this word: the next one of its own part of the job or, when that is
        through, the last one that is left of the other part. Of a job that is not in parts, the next one."""
        claims, own = (k.load(_field(k, name), I64) for name in ("claims", "callers"))
        first, last = _first(k, word), k.sub(claims, _end(k, word))  # how many the caller has taken, and workers
        of_caller = k.select(k.compare("lt", first, own), first, k.sub(k.add(claims, own), k.add(first, 1)))
        is_own = k.compare("lt", last, k.sub(claims, own))
        of_worker = k.select(is_own, k.add(own, last), k.sub(claims, k.add(last, 1)))
        is_in_parts = k.compare("gt", own, 0)
        return k.select(is_in_parts, k.select(is_caller, of_caller, of_worker), k.add(first, last))

    def _stop_if_interrupted(self, k: KernelBuilder) -> None:
        """Ends the caller's job early if a signal handler raised."""
        stop = k.call_value("pool_look", [], I32)
        with k.if_(k.compare("ne", stop, 0)):
            k.atomic_store(_field(k, "skip"), k.const(I64, 1))

    def _run_claim(self, k: KernelBuilder, claim: Value) -> None:
        per_claim = k.load(_field(k, "chunks_per_claim"), I64)
        first = k.mul(claim, per_claim)
        last = k.smin(k.add(first, per_claim), k.load(_field(k, "chunks"), I64))
        kernel, args = k.load(_field(k, "kernel"), PTR), k.load(_field(k, "args"), PTR)
        count, grain = k.load(_field(k, "count"), I64), k.load(_field(k, "grain"), I64)
        _run_chunks(k, kernel, args, count, grain, first, last)

    def worker(self) -> None:
        """A worker's life. `spins` is how often it looks for a job before it sleeps."""
        with KernelBuilder(self._module, "pool_worker", [("spins", I64)], None) as k:
            stopping = _field(k, "stopping")

            def live(values: list[Value]) -> None:
                k.call("pool_take_claims", [k.const(I64, _NO_JOB)])
                self._look_around(k, k.parameters["spins"])
                with k.if_(k.not_(self._job_waits(k))):
                    self._sleep_unless_needed(k)

            k.while_loop(lambda values: k.compare("eq", k.atomic_load(stopping, I32), 0), live, [])

    def _look_around(self, k: KernelBuilder, spins: Value) -> None:
        """Returns when there is a job, or after `spins` looks."""

        def look_again(values: list[Value]) -> list[Value]:
            pause(k, self._target)
            return [k.add(values[0], 1)]

        def nothing_yet(values: list[Value]) -> Value:
            return k.and_(k.compare("lt", values[0], spins), k.not_(self._job_waits(k)))

        k.while_loop(nothing_yet, look_again, [k.const(I64, 0)])

    def _sleep_unless_needed(self, k: KernelBuilder) -> None:
        generation = k.atomic_load(_field(k, "generation"), I32, "seq_cst")
        sleepers = _field(k, "sleepers")
        k.atomic_update("add", sleepers, k.const(I32, 1))
        needed = k.or_(self._job_waits(k), k.compare("ne", k.atomic_load(_field(k, "stopping"), I32, "seq_cst"), 0))
        with k.if_(k.not_(needed)):
            self._sleep(k, generation)
        k.atomic_update("sub", sleepers, k.const(I32, 1))

    def _job_waits(self, k: KernelBuilder) -> Value:
        return _claimable(k, k.atomic_load(_field(k, "word"), I64, "seq_cst"), k.const(I64, _NO_JOB))

    def run_alone(self) -> None:
        """All chunks in order, in this thread, unless a signal handler raises."""
        with KernelBuilder(self._module, _RUN_ALONE, _JOB, None) as k:
            kernel, args, count, _ = k.parameters.values()
            grain = self._grain(k)

            def chunk(values: list[Value]) -> list[Value]:
                begin = values[0]
                end = k.smin(k.add(begin, grain), count)
                k.call(kernel, [args, begin, end])
                stop = k.call_value("pool_look", [], I32)
                return [end, stop]

            def unfinished(values: list[Value]) -> Value:
                return k.and_(k.compare("lt", values[0], count), k.compare("eq", values[1], 0))

            k.while_loop(unfinished, chunk, [k.const(I64, 0), k.zext(_is_interrupted(k), I32)])

    def run_shared(self) -> None:
        """A job for at most `workers` workers and the caller."""
        with KernelBuilder(self._module, _RUN_SHARED, [*_JOB, ("workers", I64)], None) as k:
            kernel, args, count, _, workers = k.parameters.values()
            grain = self._grain(k)
            chunks = _chunks(k, count, grain)
            with k.if_(k.compare("le", chunks, 1)):
                k.call(_RUN_ALONE, [kernel, args, count, grain])
                k.ret()
            _, owned = k.compare_exchange(_field(k, "busy"), k.const(I32, 0), k.const(I32, 1))
            with k.if_(k.not_(owned)):
                k.call(_RUN_ALONE, [kernel, args, count, grain])
                k.ret()
            self._ask_for_workers(k, workers)
            claims = self._publish(k, kernel, args, count, grain, chunks, workers)
            self._wait_for(k, claims)
            k.atomic_store(_field(k, "busy"), k.const(I32, 0))

    def _grain(self, k: KernelBuilder) -> Value:
        grain = k.parameters["grain"]
        return k.smax(grain, k.sub(0, grain))

    def _ask_for_workers(self, k: KernelBuilder, workers: Value) -> None:
        wanted = k.sext(k.atomic_load(_field(k, "wanted"), I32), I64)
        with k.if_(k.compare("lt", wanted, workers)):
            k.call(k.load(_field(k, "start"), PTR), [workers])

    def _publish(
        self, k: KernelBuilder, kernel: Value, args: Value, count: Value, grain: Value, chunks: Value, workers: Value
    ) -> Value:
        """Lets the workers begin and works along until nothing is left to take; the number of claims."""
        per_claim = k.sdiv(k.add(chunks, _MAX_CLAIMS - 1), _MAX_CLAIMS)
        claims = k.sdiv(k.sub(k.add(chunks, per_claim), 1), k.smax(per_claim, 1))
        fields = {
            "kernel": kernel,
            "args": args,
            "count": count,
            "grain": grain,
            "chunks": chunks,
            "chunks_per_claim": per_claim,
            "claims": claims,
            "callers": k.select(self._is_in_parts(k, claims), k.udiv(claims, k.add(workers, 1)), 0),
            "completed": k.const(I64, 0),
            "skip": k.zext(_is_interrupted(k), I64),
            "floats": settings_of_thread(k, self._target),
        }
        for name, value in fields.items():
            k.store(_field(k, name), value)
        word = _field(k, "word")
        number = k.add(k.lshr(k.atomic_load(word, I64), _NUMBER_SHIFT), 1)
        job = k.or_(k.shl(number, _NUMBER_SHIFT), k.or_(k.shl(workers, _SEATS_SHIFT), k.shl(claims, _CLAIM_BITS)))
        k.atomic_store(word, job, "seq_cst")
        sleepers = k.sext(k.atomic_load(_field(k, "sleepers"), I32, "seq_cst"), I64)
        with k.if_(k.compare("gt", sleepers, 0)):
            if self._has_futex:
                k.call("pool_place", [])
            k.call("pool_wake", [k.trunc(k.smin(workers, k.sub(claims, 1)), I32)])
        k.call("pool_take_claims", [k.lshr(job, _NUMBER_SHIFT)])
        return claims

    def _is_in_parts(self, k: KernelBuilder, claims: Value) -> Value:
        return k.and_(k.compare("le", claims, _MOST_CLAIMS_IN_PARTS), k.compare("gt", k.parameters["grain"], 0))

    def _wait_for(self, k: KernelBuilder, claims: Value) -> None:
        """Until all claims are complete: a short while attentively, then leaving the core to whoever has the rest.

        Those may never end: the caller goes on to look for signals; if a handler raises, kernels that listen stop."""

        def wait(values: list[Value]) -> list[Value]:
            pause(k, self._target)
            with k.if_(k.compare("ge", values[0], _CALLER_SPINS)):
                k.call("sched_yield", [], I32)
                self._stop_if_interrupted(k)
            return [k.add(values[0], 1)]

        completed = _field(k, "completed")
        k.while_loop(lambda _: k.compare("lt", k.atomic_load(completed, I64), claims), wait, [k.const(I64, 0)])


_JOB = [("kernel", PTR), ("args", PTR), ("count", I64), ("grain", I64)]
_SIZE = PoolState.condition.offset + PoolState.condition.size


def _field(k: KernelBuilder, name: str) -> Value:
    return k.gep(k.function_pointer("pool_state"), getattr(PoolState, name).offset)


def _are_equal(k: KernelBuilder, cores: Value, others: Value) -> Value:
    """Whether two sets have the same cores."""
    set_type = I64.with_lanes(CORE_WORDS)
    differing = k.xor(k.load(cores, set_type, align=I64.bytes), k.load(others, set_type, align=I64.bytes))
    return k.not_(k.any_lane(k.compare("ne", differing, 0)))


def _is_main_thread(k: KernelBuilder) -> Value:
    thread = k.call_value("pthread_self", [], I64)
    return k.compare("eq", thread, k.load(_field(k, "main_thread"), I64))


def _is_interrupted(k: KernelBuilder) -> Value:
    """Whether this thread's program has yet to notice that a signal handler raised."""
    word = k.load(k.load(_field(k, "interrupted"), PTR), I32, volatile=True)
    return k.and_(k.compare("ne", word, 0), _is_main_thread(k))


def _claimable(k: KernelBuilder, word: Value, seat: Value) -> Value:
    """Whether the word has a claim left that a thread may take whose seat is in job `seat`."""
    has_seat = k.compare("eq", k.lshr(word, _NUMBER_SHIFT), seat)
    seats_left = k.compare("ne", k.and_(k.lshr(word, _SEATS_SHIFT), 255), 0)
    return k.and_(k.compare("lt", _first(k, word), _end(k, word)), k.or_(has_seat, seats_left))


def _first(k: KernelBuilder, word: Value) -> Value:
    """The first claim that is left."""
    return k.and_(word, _MAX_CLAIMS)


def _end(k: KernelBuilder, word: Value) -> Value:
    """One more than the last claim that is left."""
    return k.and_(k.lshr(word, _CLAIM_BITS), _MAX_CLAIMS)


def _chunks(k: KernelBuilder, count: Value, grain: Value) -> Value:
    return k.sdiv(k.sub(k.add(count, grain), 1), grain)


def _run_chunks(
    k: KernelBuilder, kernel: Value, args: Value, count: Value, grain: Value, first: Value, last: Value
) -> None:
    with k.loop(first, last) as loop:
        begin = k.mul(loop.index, grain)
        k.call(kernel, [args, begin, k.smin(k.add(begin, grain), count)])
