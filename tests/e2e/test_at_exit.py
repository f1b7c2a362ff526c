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


def test_programs_are_first_called_when_nothing_is_imported_any_more() -> None:
    """By a `__del__` that runs last of all, where a shape that is new needs the compiler and ends with an error."""
    script = """
    import builtins
    import numpy as np, xlapy

    class Last:
        def __init__(self, text):
            self.program = xlapy.compile(text)

        def __del__(self, x=np.ones(4, np.float32), print=print, errors=(xlapy.XlaError, ImportError)):
            try:
                print(self.program(x).tolist())
            except errors as error:
                print(type(error).__name__, error)

    builtins.first = Last("ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] add(x, x) }")
    builtins.second = Last("ENTRY e { x = f32[?] parameter(0)  ROOT y = f32[?] add(x, x) }")
    """
    first, second = printed_by(script, {"XLAPY_CACHE_DIR": "off"}).splitlines()
    assert first == "[2.0, 2.0, 2.0, 2.0]"
    assert second.startswith("ExecutionError Python is shutting down and imports nothing")
