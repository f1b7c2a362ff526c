"""What people look for under other names, those of other compilers and of old interfaces, and what to write here.

Of arrays and operations: `xlapy.builder.other_names`."""

from __future__ import annotations

from collections.abc import Mapping

_THREADS = "num_threads=n"
_NANS = "docs/report.md shows how to find what makes a NaN"
_FLUSHES = "flush_subnormals=True"
_NO_LEVELS = "there are no levels; disabled_passes and disabled_laws leave parts out"

OPTIONS: Mapping[str, str] = {
    "backend_optimization_level": _NO_LEVELS,
    "cache_dir": "the variable XLAPY_CACHE_DIR moves the cache",
    "check": _NANS,
    "check_nan": _NANS,
    "debug_nans": _NANS,
    "debug": "verify=True checks the module after every pass",
    "donate_argnums": "builder.setup_alias(output, parameter) donates, or xlapy.jax.jit(f, donate_argnums=...)",
    "denormals": _FLUSHES,
    "dump_to": "the variable XLAPY_DUMP_TO names a folder for the module after every pass",
    "flush_denormals": _FLUSHES,
    "fma": "contract=True",
    "ftz": _FLUSHES,
    "intra_op_parallelism_threads": _THREADS,
    "nthreads": _THREADS,
    "opt_level": _NO_LEVELS,
    "optimization_level": _NO_LEVELS,
    "pipeline": "passes=[after(name, YourPass())] puts passes of your own at their places (xlapy.passes.user)",
    "profile": "exe.profile(*arrays) runs a compiled program with a clock around each kernel",
    "threads": _THREADS,
    "workers": _THREADS,
    "xla_allow_excess_precision": "excess_precision=True",
    "xla_backend_optimization_level": _NO_LEVELS,
    "xla_cpu_enable_fast_math": "fast_math=True",
    "xla_disable_hlo_passes": "disabled_passes={name, ...}",
    "xla_dump_to": "the variable XLAPY_DUMP_TO names a folder for the module after every pass",
}

_CALL = "exe(*arrays) calls it"
_HLO = "exe.hlo_text()"
_SAVE = "exe.save(path) writes it, and xlapy_runtime.load(path) reads it"
_SIGNATURE = "print(exe) shows its types, and xlapy.load(program).signature has them"
_TIMES = "exe.profile(*arrays) times its kernels"
_REPORT = "exe.html_report() is a page, and exe.explain() a text"

EXECUTABLE: Mapping[str, str] = {
    "as_hlo_text": _HLO,
    "as_text": _HLO,
    "asm": "exe.assembly()",
    "benchmark": _TIMES,
    "call": _CALL,
    "compile": "it is compiled",
    "evaluate": "xlapy.evaluate(program, *arrays) runs a program by the reference evaluator",
    "execute": _CALL,
    "execute_sharded": "exe.run_parallel([arrays of each process]) runs all processes",
    "export": _SAVE,
    "get_hlo_text": _HLO,
    "hlo": _HLO,
    "hlo_modules": _HLO,
    "inputs": _SIGNATURE,
    "kernels": "exe.compile_stats().kernels counts them, and exe.explain() lists them",
    "llvm": "exe.llvm_ir()",
    "outputs": _SIGNATURE,
    "parameters": _SIGNATURE,
    "report": _REPORT,
    "serialize": _SAVE,
    "shape": _SIGNATURE,
    "signature": _SIGNATURE,
    "specialize": "only programs with `?` dimensions are specialized",
    "stats": "exe.compile_stats()",
    "time": _TIMES,
    "timeit": _TIMES,
    "to_html": _REPORT,
    "to_stablehlo": "xlapy.stablehlo.to_text(module) writes the module that was compiled",
    "to_text": _HLO,
}

COMPUTATION: Mapping[str, str] = {
    "as_serialized_hlo_module_proto": "computations of xlapy.xla_client are serialized",
    "as_text": "as_hlo_text()",
    "compile": "xlapy.compile(computation)",
    "evaluate": "xlapy.evaluate(computation, *arrays)",
    "execute": "xlapy.compile(computation)(*arrays)",
    "get_hlo_module": "as_hlo_module()",
    "get_hlo_text": "as_hlo_text()",
    "get_program_shape": "program_shape, which is no method",
    "parameters": "program_shape.parameters",
    "save": "xlapy.compile(computation).save(path)",
    "serialize": "as_hlo_text(print_large_constants=True) is text that xlapy.load reads",
    "shape": "program_shape",
    "signature": "program_shape",
    "to_stablehlo": "xlapy.stablehlo.to_text(computation.module)",
    "to_text": "as_hlo_text()",
}

_LOADED = "after `from xlapy import xla_client`"

_MODULE_TEXT = "module.to_text()"

MODULE: Mapping[str, str] = {
    "as_hlo_text": _MODULE_TEXT,
    "as_serialized_hlo_module_proto": "xlapy.hlo.proto.module_to_bytes(module)",
    "as_text": _MODULE_TEXT,
    "compile": "xlapy.compile(module)",
    "evaluate": "xlapy.evaluate(module, *arrays)",
    "execute": "xlapy.compile(module)(*arrays)",
    "explain": "xlapy.compile(module).explain()",
    "hlo_text": _MODULE_TEXT,
    "parameters": "module.signature.parameters",
    "program_shape": "module.signature",
    "root": "module.entry.root",
    "to_dot": "xlapy.hlo.to_dot(module)",
    "to_mlir": "xlapy.stablehlo.to_text(module)",
    "to_stablehlo": "xlapy.stablehlo.to_text(module)",
    "to_string": _MODULE_TEXT,
}

SHAPE: Mapping[str, str] = {
    "dimensions": "shape.dims",
    "dtype": "shape.type.dtype",
    "element_count": "shape.size",
    "is_dynamic": "not shape.is_static",
    "itemsize": "shape.type.dtype.itemsize",
    "nbytes": "shape.bytes",
    "ndim": "shape.rank",
    "numpy_dtype": "shape.type.dtype",
    "shape": "shape.dims",
    "sizes": "shape.dims",
    "tuple_shapes": "shape.parts",
    "with_major_to_minor_layout_if_absent": "shape.with_default_layout()",
}

_OF_CALL = "jitted.executable(*arguments)"

JITTED: Mapping[str, str] = {
    "as_text": "jitted.lower(*arguments).text",
    "assembly": f"{_OF_CALL}.assembly()",
    "compile": f"{_OF_CALL} is what a call runs",
    "compile_stats": f"{_OF_CALL}.compile_stats()",
    "cost_analysis": f"{_OF_CALL}.cost_analysis()",
    "eval_shape": "jax.eval_shape(f, *arguments)",
    "explain": f"{_OF_CALL}.explain()",
    "hlo_text": f"{_OF_CALL}.hlo_text()",
    "html_report": f"{_OF_CALL}.html_report()",
    "llvm_ir": f"{_OF_CALL}.llvm_ir()",
    "memory_analysis": f"{_OF_CALL}.memory_analysis()",
    "profile": f"{_OF_CALL}.profile(*arrays)",
    "save": f"{_OF_CALL}.save(path)",
    "stablehlo": "jitted.lower(*arguments).text",
    "trace": "jitted.lower(*arguments)",
}

_LIKE_JAX = "all arguments are kept, and programs run on this processor"

JIT: Mapping[str, str] = {
    "abstracted_axes": "a function is compiled for each set of sizes; jax.export leaves sizes open",
    "backend": _LIKE_JAX,
    "compiler_options": "options=xlapy.CompileOptions(...) takes the place of them",
    "device": _LIKE_JAX,
    "donate": "donate_argnums=(0, ...) names the arguments in whose memory results may be",
    "in_shardings": "run_parallel of an executable runs a program for several devices",
    "inline": "functions that are jitted within others are inlined",
    "keep_unused": _LIKE_JAX,
    "out_shardings": "run_parallel of an executable runs a program for several devices",
}
"""Arguments of `jax.jit`."""

PACKAGE: Mapping[str, str] = {
    "Literal": "numpy arrays are what programs take and give",
    "PrimitiveType": f"xlapy.xla_client.PrimitiveType is meant ({_LOADED})",
    "XlaRuntimeError": "xlapy.XlaError is meant",
    "array": "numpy arrays are what programs take and give",
    "device_put": "numpy arrays are what programs take and give",
    "execute": "xlapy.compile(program)(*arrays) compiles and runs one",
    "explain": "xlapy.compile(program).explain() is meant",
    "export": "xlapy.compile(program).save(path) is meant",
    "get_local_backend": f"xlapy.xla_client.get_local_backend is meant ({_LOADED})",
    "grad": "xlapy.jax.jit(jax.grad(f)) is meant (after `import xlapy.jax`)",
    "jit": "xlapy.jax.jit is meant (after `import xlapy.jax`)",
    "local_devices": "xlapy.devices is meant",
    "make_cpu_client": f"xlapy.xla_client.make_cpu_client is meant ({_LOADED})",
    "num_threads": "xlapy.CompileOptions(num_threads=n) or XLAPY_NUM_THREADS is meant",
    "parse": "xlapy.hlo.parse or xlapy.stablehlo.parse is meant",
    "profile": "xlapy.compile(program).profile(*arrays) is meant",
    "run": "xlapy.compile(program)(*arrays) compiles and runs one",
    "save": "xlapy.compile(program).save(path) is meant",
    "set_num_threads": "xlapy.CompileOptions(num_threads=n) or XLAPY_NUM_THREADS is meant",
    **{
        name: f"xlapy.ops.{name} is meant"
        for name in ("ChannelHandle", "FftType", "GatherDimensionNumbers", "RandomAlgorithm", "ScatterDimensionNumbers")
    },
}


def hint_for(names: Mapping[str, str], name: str) -> str:
    """`: exe(*arrays) calls it` for a name that stands in a table, in either spelling; or the empty string."""
    found = names.get(name) or names.get(_with_underscores(name))
    return f": {found}" if found else ""


def _with_underscores(name: str) -> str:
    """`GetHloText` as Python spells it."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
