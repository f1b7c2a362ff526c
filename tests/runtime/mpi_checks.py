"""What `test_mpi` runs in several processes of the system: `mpiexec -n 4 python -m tests.runtime.mpi_checks`."""

from __future__ import annotations

import gc
import time
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from mpi4py import MPI

import xlapy
from xlapy.support.errors import ArgumentError, UnsupportedError
from xlapy_runtime.errors import DeadlineError, ExecutionError

RANK, SIZE = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
SECONDS = 60.0  # a wait that does not come to its end
LARGE = 100_003  # elements: an all-reduce in shares, of unequal lengths

REGIONS = """
add_f32 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
max_s4 {
  a = s4[] parameter(0)
  b = s4[] parameter(1)
  ROOT s = s4[] maximum(a, b)
}
mul_bf16 {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT s = bf16[] multiply(a, b)
}
"""


def compiled(body: str, *, partitions: int = 1, **options: Any) -> xlapy.Executable:
    grid = {"num_replicas": SIZE // partitions, "num_partitions": partitions}
    text = f"HloModule m\n{REGIONS}\nENTRY main {{\n{body}\n}}\n"
    return xlapy.compile(text, xlapy.CompileOptions(**grid, **({"timeout": SECONDS} | options)))


def bits(value: Any) -> Any:
    if isinstance(value, tuple):
        return [bits(part) for part in value]
    return value.dtype.name, value.shape, value.tobytes()


def same(body: str, *shapes: tuple[Any, tuple[int, ...]], partitions: int = 1, runs: int = 2) -> None:
    """Runs a program over MPI, and in threads of this process: the bits must be the same."""
    run = compiled(body, partitions=partitions)
    rng = np.random.default_rng(5)
    rows = [[(rng.normal(size=dims) * 3).astype(dtype) for dtype, dims in shapes] for _ in range(SIZE)]
    expected = run.run_parallel(rows)
    for _ in range(runs):
        assert bits(run.run_distributed(*rows[RANK])) == bits(expected[RANK])


F32 = np.float32


def one_after_the_other() -> str:
    return "{" + ",".join(map(str, reversed(range(SIZE)))) + "}"


def check_small_all_reduce() -> None:
    same(
        f"""p = f32[37] parameter(0)
        ROOT r = f32[37] all-reduce(p), replica_groups={{{one_after_the_other()}}}, to_apply=add_f32""",
        (F32, (37,)),
    )


def check_large_all_reduce() -> None:
    same(
        f"""p = f32[{LARGE}] parameter(0)
        ROOT r = f32[{LARGE}] all-reduce(p), replica_groups={{{one_after_the_other()}}}, to_apply=add_f32""",
        (F32, (LARGE,)),
    )


def check_tuples_of_narrow_and_empty_arrays() -> None:
    same(
        """p = s4[9] parameter(0)
        q = s4[0,3] parameter(1)
        m = (s4[9], s4[0,3]) all-reduce(p, q), replica_groups={}, to_apply=max_s4
        b = bf16[5] parameter(2)
        n = bf16[5] all-reduce(b), replica_groups={}, to_apply=mul_bf16
        ROOT r = ((s4[9], s4[0,3]), bf16[5]) tuple(m, n)""",
        (ml_dtypes.int4, (9,)),
        (ml_dtypes.int4, (0, 3)),
        (ml_dtypes.bfloat16, (5,)),
    )


def check_reduce_scatter() -> None:
    same(
        f"""p = f32[3,{5 * SIZE}] parameter(0)
        ROOT r = f32[3,5] reduce-scatter(p), replica_groups={{}}, dimensions={{1}}, to_apply=add_f32""",
        (F32, (3, 5 * SIZE)),
    )


def check_all_gather() -> None:
    same(
        f"""p = f32[3,5] parameter(0)
        ROOT r = f32[3,{5 * SIZE}] all-gather(p), replica_groups={{}}, dimensions={{1}}""",
        (F32, (3, 5)),
    )


def check_all_to_all() -> None:
    same(
        f"""p = f32[3,{2 * SIZE}] parameter(0)
        ROOT r = f32[3,{2 * SIZE}] all-to-all(p), replica_groups={{}}, dimensions={{1}}""",
        (F32, (3, 2 * SIZE)),
    )


def check_all_to_all_of_a_tuple() -> None:
    names = [f"p{number}" for number in range(SIZE)]
    parameters = "\n".join(f"{name} = f32[4] parameter({number})" for number, name in enumerate(names))
    types = ", ".join(["f32[4]"] * SIZE)
    same(
        f"{parameters}\nROOT r = ({types}) all-to-all({', '.join(names)}), replica_groups={{}}",
        *[(F32, (4,))] * SIZE,
    )


def check_broadcast_and_permute_within_groups() -> None:
    same(
        """p = f32[2,2] parameter(0)
        b = f32[2,2] collective-broadcast(p), replica_groups={{2,1}}
        c = f32[2,2] collective-permute(p), source_target_pairs={{0,1},{1,2}}
        ROOT r = (f32[2,2], f32[2,2]) tuple(b, c)""",
        (F32, (2, 2)),
    )


def check_pairs_of_start_and_done_that_some_stay_out_of() -> None:
    same(
        """p = f32[2,2] parameter(0)
        c = (f32[2,2], f32[2,2]) collective-permute-start(p), source_target_pairs={{0,1}}
        n = f32[2,2] negate(p)
        d = f32[2,2] collective-permute-done(c)
        ROOT r = f32[2,2] add(d, n)""",
        (F32, (2, 2)),
    )


def check_loops_and_pairs_of_start_and_done() -> None:
    run = f"""HloModule m
    {REGIONS}
    condition {{
      s = (s32[], f32[{LARGE}]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      n = s32[] constant(3)
      ROOT c = pred[] compare(i, n), direction=LT
    }}
    body {{
      s = (s32[], f32[{LARGE}]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      v = f32[{LARGE}] get-tuple-element(s), index=1
      one = s32[] constant(1)
      j = s32[] add(i, one)
      a = f32[{LARGE}] all-reduce-start(v), replica_groups={{}}, to_apply=add_f32
      h = f32[{LARGE}] multiply(v, v)
      d = f32[{LARGE}] all-reduce-done(a)
      w = f32[{LARGE}] subtract(d, h)
      ROOT t = (s32[], f32[{LARGE}]) tuple(j, w)
    }}
    ENTRY main {{
      p = f32[{LARGE}] parameter(0)
      zero = s32[] constant(0)
      s = (s32[], f32[{LARGE}]) tuple(zero, p)
      l = (s32[], f32[{LARGE}]) while(s), condition=condition, body=body
      ROOT r = f32[{LARGE}] get-tuple-element(l), index=1
    }}
    """
    executable = xlapy.compile(run, xlapy.CompileOptions(num_replicas=SIZE, timeout=SECONDS))
    rows = [[np.sin(np.arange(LARGE, dtype=F32) + replica)] for replica in range(SIZE)]
    expected = executable.run_parallel(rows)[RANK]
    assert bits(executable.run_distributed(*rows[RANK])) == bits(expected)


def check_replica_and_partition_ids() -> None:
    partitions = 2 if SIZE % 2 == 0 else SIZE
    globally = (f"{{{one_after_the_other()}}}", ", channel_id=1, use_global_device_ids=true")
    for groups, ids in (("{}", ""), ("{}", ", channel_id=1"), globally):
        same(
            f"""r = u32[] replica-id()
            p = u32[] partition-id()
            f = f32[] convert(r)
            g = f32[] convert(p)
            v = f32[] parameter(0)
            x = f32[] add(f, v)
            y = f32[] multiply(g, x)
            s = f32[] all-reduce(y), replica_groups={groups}{ids}, to_apply=add_f32
            ROOT t = (u32[], u32[], f32[]) tuple(r, p, s)""",
            (F32, ()),
            partitions=partitions,
        )


EXCHANGE = "p = f32[4] parameter(0)\nROOT r = f32[4] all-reduce(p), replica_groups={}, to_apply=add_f32"


def sum_of_positive(size: int) -> Any:
    """All processes' arrays added up, after a custom call that fails where the first number is negative."""

    def moody(value: np.ndarray) -> np.ndarray:
        if value[0] < 0:
            raise ValueError("no negative numbers, please")
        return value

    return compiled(
        f"""p = f32[{size}] parameter(0)
        c = f32[{size}] custom-call(p), custom_call_target="moody"
        ROOT r = f32[{size}] all-reduce(c), replica_groups={{}}, to_apply=add_f32""",
        custom_calls={"moody": moody},
    )


def check_an_error_in_one_process_is_one_in_all() -> None:
    run = sum_of_positive(4)
    ones = np.ones(4, F32)
    for _ in range(2):
        if RANK == 1:
            with pytest.raises(ValueError, match="no negative numbers"):
                run.run_distributed(-ones)
        else:
            with pytest.raises(ExecutionError, match="process 1 failed: ValueError: no negative numbers"):
                run.run_distributed(ones)
        assert run.run_distributed(ones).tolist() == [SIZE] * 4


def check_what_failed_runs_sent_is_forgotten() -> None:
    """One process fails before it receives what the others have sent, which is too much to be sent without its help."""
    run = sum_of_positive(LARGE)
    ones = np.ones(LARGE, F32)
    run.run_distributed(ones)
    tracemalloc.start()
    for _ in range(20):
        with pytest.raises(ValueError if RANK == 1 else ExecutionError, match="no negative numbers"):
            run.run_distributed(-ones if RANK == 1 else ones)
    assert bits(run.run_distributed(ones)) == bits(ones * SIZE)
    gc.collect()  # errors and the frames that they passed through know each other
    assert tracemalloc.get_traced_memory()[0] < ones.nbytes
    tracemalloc.stop()


def check_wrong_arguments_of_one_process() -> None:
    run = compiled(EXCHANGE)
    with pytest.raises(ArgumentError if RANK == 0 else ExecutionError, match=r"expected f32\[4\], got f32\[3\]"):
        run.run_distributed(np.ones(3 if RANK == 0 else 4, F32))
    assert run.run_distributed(np.ones(4, F32)).tolist() == [SIZE] * 4


def check_different_programs() -> None:
    run = compiled(EXCHANGE if RANK else EXCHANGE.replace("r =", "other ="))
    with pytest.raises(ArgumentError, match=r"all processes must run the same program: 1, 2.* and 0 do not"):
        run.run_distributed(np.ones(4, F32))


def check_communicators() -> None:
    run = compiled(EXCHANGE)
    alone = MPI.COMM_SELF
    with pytest.raises(ArgumentError, match=f"m runs as {SIZE} processes, and the communicator has 1"):
        run.run_distributed(np.ones(4, F32), communicator=alone)
    with pytest.raises(ArgumentError, match="communicator is one of mpi4py"):
        run.run_distributed(np.ones(4, F32), communicator=5)
    backwards = MPI.COMM_WORLD.Split(0, -RANK)
    values = [[np.full(4, 10.0**replica, F32)] for replica in range(SIZE)]
    ranked = run.run_distributed(*values[backwards.Get_rank()], communicator=backwards)
    assert bits(ranked) == bits(run.run_parallel(values)[0])


def check_send_and_recv_between_devices() -> None:
    run = compiled(
        """p = f32[4] parameter(0)
        t = token[] after-all()
        s = (f32[4], u32[], token[]) send(p, t), channel_id=7
        d = token[] send-done(s), channel_id=7
        v = (f32[4], u32[], token[]) recv(t), channel_id=7
        w = (f32[4], token[]) recv-done(v), channel_id=7
        ROOT r = f32[4] get-tuple-element(w), index=0"""
    )
    with pytest.raises(UnsupportedError, match="do not go over MPI"):
        run.run_distributed(np.ones(4, F32))


def check_a_process_that_does_not_come_in_time() -> None:
    own = MPI.COMM_WORLD.Dup()

    def slow(value: np.ndarray) -> np.ndarray:
        time.sleep(2.5 * float(value[0]))
        return value

    run = compiled(
        """p = f32[4] parameter(0)
        c = f32[4] custom-call(p), custom_call_target="slow"
        ROOT r = f32[4] all-reduce(c), replica_groups={}, to_apply=add_f32""",
        custom_calls={"slow": slow},
    )
    value = np.full(4, RANK == 0, F32)
    if RANK == 0:
        with pytest.raises(ExecutionError, match=r"process [1-9] failed: DeadlineError: r on device [1-9]: "):
            run.run_distributed(value, communicator=own, timeout=10.0)
    else:
        with pytest.raises(ExecutionError, match=r"process [1-9].* waited 1 s for process 0"):
            run.run_distributed(value, communicator=own, timeout=1.0)


ONE_WAY = f"""HloModule m
yes {{
  p = f32[{LARGE}] parameter(0)
  ROOT c = f32[{LARGE}] collective-permute(p), source_target_pairs={{{{0,1}}}}
}}
no {{
  ROOT p = f32[{LARGE}] parameter(0)
}}
ENTRY main {{
  takes_part = pred[] parameter(0)
  v = f32[{LARGE}] parameter(1)
  ROOT r = f32[{LARGE}] conditional(takes_part, v, v), true_computation=yes, false_computation=no
}}
"""


def check_a_process_that_finishes_without_taking_part() -> None:
    """It is noticed, whoever waits; what was sent to it in vain is not what it receives in a later run."""
    for size in (3, LARGE):
        text = ONE_WAY.replace(f"[{LARGE}]", f"[{size}]")
        run = xlapy.compile(text, xlapy.CompileOptions(num_replicas=SIZE, timeout=SECONDS))
        start = time.monotonic()
        for absent in (1, 0):
            with pytest.raises(ExecutionError, match=rf"process {absent} finished without taking part, process "):
                run.run_distributed(np.bool_(absent != RANK), np.full(size, RANK, F32))
            received = run.run_distributed(np.bool_(True), np.full(size, 5 + RANK, F32))
            assert bits(received) == bits(np.full(size, 5 if RANK == 1 else 0, F32))
        assert time.monotonic() - start < SECONDS / 2


def check_late_processes() -> None:
    """The last check: processes whose words do not come in time leave a communicator that cannot be used again."""
    own = MPI.COMM_WORLD.Dup()
    run = compiled(EXCHANGE)
    run.run_distributed(np.ones(4, F32), communicator=own)
    if RANK == 0:
        with pytest.raises(DeadlineError, match=r"process 0 waited 0.1 s for the others to begin a run"):
            run.run_distributed(np.ones(4, F32), communicator=own, timeout=0.1)
        with pytest.raises(ExecutionError, match="has not ended in all processes"):
            run.run_distributed(np.ones(4, F32), communicator=own)


CHECKS = [check for name, check in globals().items() if name.startswith("check_")]

if __name__ == "__main__":
    for check in CHECKS:
        if RANK == 0:
            print(check.__name__, flush=True)
        check()
        MPI.COMM_WORLD.Barrier()
    if RANK == 0:
        print("all checks passed", flush=True)
