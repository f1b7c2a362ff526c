"""Programs that are compiled and run by functions of `atexit`, when Python begins no more threads."""

from __future__ import annotations

from tests.support.fresh import printed_by


def test_programs_are_compiled_and_run_at_exit() -> None:
    script = """
    import atexit
    import numpy as np, xlapy
    from xlapy import ops

    def run(size):
        builder = xlapy.XlaBuilder("last")
        x = builder.parameter(0, xlapy.Shape.array(np.float32, (size, size)))
        product = ops.Sort(builder, [ops.Dot(ops.Max(x, 0.0), x)])
        print(xlapy.compile(builder.build(product + ops.Sin(x * 0.0) + 1.0))(np.ones((size, size), np.float32))[0, 0])

    earlier = xlapy.compile("ENTRY e { x = f32[4194304] parameter(0)  ROOT y = f32[4194304] sine(x) }")
    atexit.register(lambda: print(earlier(np.zeros(1 << 22, np.float32))[0]))
    atexit.register(run, 300)
    """
    assert printed_by(script, {"XLAPY_CACHE_DIR": "off", "XLAPY_NUM_THREADS": "2"}).split() == ["301.0", "0.0"]
