"""The command line, as a user types it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import xlapy
from tests.passes.test_folds_in_parts import softmax_of_columns
from tests.support.machine import LIMITS
from xlapy.hlo.proto import module_to_bytes
from xlapy.tools import console
from xlapy.tools.main import main
from xlapy.tools.run import difference

PROGRAM = """HloModule twice
ENTRY main {
  x = f32[4] parameter(0)
  ROOT y = f32[4] add(x, x)
}
"""

STABLEHLO = """func.func @main(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %z = stablehlo.add %x, %y : tensor<?x2xf32>
  return %z : tensor<?x2xf32>
}
"""

WRONG = """func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {
  %z = stablehlo.add %x, %y : tensor<2xf32>
  return %z : tensor<2xf32>
}
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "twice.hlo"
    path.write_text(PROGRAM)
    return str(path)


@pytest.fixture
def dynamic(tmp_path: Path) -> str:
    path = tmp_path / "sum.mlir"
    path.write_text(STABLEHLO)
    return str(path)


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    path = tmp_path / "wrong.mlir"
    path.write_text(WRONG)
    return str(path)


# -- run and eval ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["run", "eval"])
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_run_and_eval_compute_the_same(
    program: str, command: str, suffix: str, tmp_path: Path, capsys: Capture
) -> None:
    inputs = tmp_path / f"inputs.{suffix}"
    array = np.arange(4, dtype=np.float32)
    np.save(inputs, array) if suffix == "npy" else np.savez(inputs, array)
    assert main([command, program, "--input", str(inputs), "--compare", "--repeat", "3"]) == 0
    printed = capsys.readouterr().out
    assert "[0. 2. 4. 6.]" in printed and "same as" in printed and "largest difference 0" in printed
    assert ("us per call" in printed) == (command == "run")


def test_compiled_programs_run(dynamic: str, tmp_path: Path, capsys: Capture) -> None:
    saved = str(tmp_path / "sum.xlapy")
    assert main(["compile", dynamic, "--size", "3", "--threads", "1", "-o", saved]) == 0
    assert f"{saved}: " in capsys.readouterr().out
    files = []
    for name, value in (("x", 1.0), ("y", 2.0)):
        np.save(tmp_path / f"{name}.npy", np.full((3, 2), value, np.float32))
        files.append(str(tmp_path / f"{name}.npy"))
    assert main(["run", saved, "--input", *files, "--repeat", "3"]) == 0
    printed = capsys.readouterr().out
    assert "3. 3." in printed and "us per call" in printed and "<SavedProgram module (f32[3,2], f32[3,2])" in printed
    assert main(["run", saved]) == 0
    for wrong in (["eval", saved], ["run", saved, "--compare"], ["opt", saved]):
        capsys.readouterr()
        assert main(wrong) == 1
        assert "compiled already" in capsys.readouterr().err


def test_programs_come_through_pipes(program: str, capsys: Capture) -> None:
    """As `xlapy run <(command)` gives them: what was read of one cannot be read again."""
    reading, writing = os.pipe()
    os.write(writing, Path(program).read_bytes())
    os.close(writing)
    try:
        assert main(["run", f"/dev/fd/{reading}", "--seed", "1"]) == 0
    finally:
        os.close(reading)
    assert "result 0: f32[4]" in capsys.readouterr().out


def test_compiled_programs_are_named_after_themselves(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["compile", program]) == 0
    (tmp_path / "twice.xlapy").rename(tmp_path / "half.xlapy")
    assert main(["run", "half.xlapy"]) == 0
    (tmp_path / "half.xlapy").write_bytes((tmp_path / "half.xlapy").read_bytes()[:99])
    assert main(["run", "half.xlapy"]) == 1


def test_inputs_are_arguments_in_order(dynamic: str, tmp_path: Path, capsys: Capture) -> None:
    files = []
    for name, value in (("x", 1.0), ("y", 2.0)):
        np.save(tmp_path / f"{name}.npy", np.full((4, 2), value, np.float32))
        files.append(str(tmp_path / f"{name}.npy"))
    assert main(["run", dynamic, "--input", files[0], "--input", files[1]]) == 0
    assert "3. 3." in capsys.readouterr().out


def test_random_inputs_follow_the_seed(program: str, capsys: Capture) -> None:
    printed = []
    for seed in ("3", "3", "4"):
        assert main(["run", program, "--random", seed]) == 0
        printed.append(capsys.readouterr().out.split("result 0")[1])
    assert printed[0] == printed[1] != printed[2]
    assert "f32[4]" in printed[0]


def test_comparison_with_xla(program: str, capsys: Capture) -> None:
    pytest.importorskip("jax")
    assert main(["run", program, "--compare", "xla"]) == 0
    assert "same as XLA" in capsys.readouterr().out
    assert main(["eval", program, "--compare", "xla"]) == 0


def test_a_program_that_writes_over_its_arguments_is_compared_on_what_they_were(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "donated.hlo"
    path.write_text(
        "HloModule m, input_output_alias={ {}: (0, {}) }\n"
        "ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] add(x, x) }"
    )
    for command in ("run", "eval"):
        assert main([command, str(path), "--compare", "--repeat", "3"]) == 0
        assert "same as" in capsys.readouterr().out


def test_a_difference_has_a_status_of_its_own(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "sine.hlo"
    path.write_text("ENTRY e { x = f32[64] parameter(0)  ROOT y = f32[64] sine(x) }")
    status = main(["run", str(path), "--compare", "--tolerance", "0"])
    printed = capsys.readouterr().out
    assert (status, "DIFFERENT from the evaluator" in printed) in ((3, True), (0, False))
    path.write_text("ENTRY e { ROOT y = f32[4096] rng(z, o), distribution=rng_uniform  z = f32[] constant(0) }")
    assert main(["run", str(path), "--compare"]) == 1  # z stands behind its use


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.5], (0.5, 0.2)),
        ([np.nan, np.inf], [np.nan, np.inf], (0.0, 0.0)),
        ([np.nan], [1.0], (np.inf, np.inf)),
    ],
)
def test_differences(one: list[float], other: list[float], expected: tuple[float, float]) -> None:
    assert difference(np.array(one), np.array(other)) == expected


def test_open_sizes_are_chosen(dynamic: str, capsys: Capture) -> None:
    assert main(["run", dynamic, "--size", "3", "--compare"]) == 0
    assert "f32[3,2]" in capsys.readouterr().out


# -- opt ---------------------------------------------------------------------------------------------------------------


def test_opt_prints_what_the_passes_leave(program: str, capsys: Capture) -> None:
    assert main(["opt", program]) == 0
    assert "add(x, x)" in capsys.readouterr().out


def test_opt_does_as_the_compiler_for_this_machine(tmp_path: Path, capsys: Capture) -> None:
    """Whether a softmax over long columns is cut into parts depends on how quick functions are."""
    path = tmp_path / "softmax.hlo"
    path.write_text(softmax_of_columns(2048, 4096))
    assert main(["opt", str(path)]) == 0
    compiled = xlapy.compile(path.read_text()).hlo_text()
    assert ("f32[32,64,4096]" in capsys.readouterr().out) == ("f32[32,64,4096]" in compiled)


def test_opt_lists_passes(capsys: Capture) -> None:
    assert main(["opt", "--list"]) == 0
    printed = capsys.readouterr().out
    assert "forget-layouts" in printed and "simplify: until nothing changes" in printed
    assert "Dead code elimination" in printed


def test_opt_runs_the_chosen_passes_only(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "dead.hlo"
    path.write_text("ENTRY e { x = f32[4] parameter(0)  d = f32[4] negate(x)  ROOT r = f32[4]{0} add(x, x) }")
    assert main(["opt", str(path), "--passes", "dce"]) == 0
    printed = capsys.readouterr().out
    assert "negate" not in printed and "{0}" in printed
    assert main(["opt", str(path), "--until", "forget-layouts", "--timings"]) == 0
    printed = capsys.readouterr().out
    assert "negate" in printed and "add(x, x)" in printed and "ms  forget-layouts" in printed


def test_opt_names_an_unknown_pass(program: str, capsys: Capture) -> None:
    assert main(["opt", program, "--passes", "dcee"]) == 1
    assert "did you mean 'dce'" in capsys.readouterr().err


def test_opt_needs_a_file(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["opt"])
    assert caught.value.code == 2


# -- translate, check, show --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("stablehlo", "stablehlo.add %0, %0 : tensor<4xf32>"),
        ("stablehlo-generic", '"stablehlo.add"(%0, %0)'),
        ("hlo", "add(x, x)"),
        ("hlo-long", "add(%x, %x)"),
        ("dot", "digraph"),
    ],
)
def test_translate(program: str, form: str, expected: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["translate", program, "--to", form]) == 0
    printed = capsys.readouterr().out
    assert expected in printed
    assert main(["translate", program, "--to", form, "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text().strip() == printed.strip()


def test_translate_there_and_back(dynamic: str, tmp_path: Path, capsys: Capture) -> None:
    hlo = tmp_path / "sum.hlo"
    assert main(["translate", dynamic, "--to", "hlo", "-o", str(hlo)]) == 0
    assert "f32[?,2]" in hlo.read_text()
    assert main(["translate", str(hlo), "--to", "stablehlo"]) == 0
    assert "tensor<?x2xf32>" in capsys.readouterr().out


def test_check(program: str, dynamic: str, wrong: str, capsys: Capture) -> None:
    assert main(["check", program, dynamic]) == 0
    printed = capsys.readouterr().out
    assert "right, 2 instructions" in printed and "when a call gives them" in printed
    assert main(["check", program, wrong]) == 1
    printed = capsys.readouterr().err
    assert "line 2, column 26" in printed and "no value %y" in printed
    assert printed.rstrip().endswith("^")


def test_check_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PROGRAM.encode())))
    assert main(["check", "-"]) == 0
    assert capsys.readouterr().out.startswith("-: right")


def test_show(program: str, capsys: Capture) -> None:
    for flags, expected in (
        ([], "instructions in"),
        (["--kernels"], "add(f32[4]"),
        (["--hlo"], "HloModule"),
        (["--llvm"], "fadd"),
        (["--asm"], "xlapy.entry"),
    ):
        assert main(["show", program, *flags]) == 0
        assert expected in capsys.readouterr().out


# -- explain, report, laws ---------------------------------------------------------------------------------------------


@pytest.fixture
def known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saves the seconds that measuring the machine takes."""
    monkeypatch.setattr("xlapy.inspection.machine_limits", lambda threads=None: LIMITS)


@pytest.mark.usefixtures("known_machine")
def test_explain(program: str, dynamic: str, capsys: Capture) -> None:
    assert main(["explain", program]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("twice: 2 instructions, 1 kernel") and "fastest of" not in printed
    assert main(["explain", dynamic, "--size", "5", "--threads", "1", "--profile"]) == 0
    printed = capsys.readouterr().out
    assert "one core" in printed and "fastest of" in printed


@pytest.mark.usefixtures("known_machine")
def test_report(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", program]) == 0
    assert capsys.readouterr().out.startswith("twice.html: ")
    np.save("x.npy", np.ones(4, np.float32))
    assert main(["report", program, "-o", "page.html", "--input", "x.npy", "--trace", "x.json"]) == 0
    assert "traceEvents" in Path("x.json").read_text()
    assert "Measured" in Path("page.html").read_text() and "Measured" not in Path("twice.html").read_text()


def test_laws(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "twice.hlo"
    path.write_text("ENTRY e { x = f32[4] parameter(0)  n = f32[4] negate(x)  ROOT m = f32[4] negate(n) }")
    assert main(["laws", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "     1  negate-twice  " in printed and "1 law fired 1 time, " in printed
    assert main(["laws", str(path), "--all"]) == 0
    assert "     0  " in capsys.readouterr().out
    assert main(["laws"]) == 0
    printed = capsys.readouterr().out
    assert "arithmetic\n" in printed and "(fast_math only)" in printed and "->" in printed


def test_passes_are_timed_on_request(program: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert main(["run", program]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("XLAPY_TIME_PASSES", "1")
    assert main(["run", program]) == 0
    printed = capsys.readouterr().err
    assert printed.startswith("twice:\n")
    for part in ("algebra", "layout-assignment", "assign-buffers", "emit", "llvm", "total"):
        assert f"  {part}\n" in printed


# -- errors, help, terminals -------------------------------------------------------------------------------------------


def test_an_error_is_one_message(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "wrong.hlo"
    path.write_text("ENTRY main { ROOT x = f32[4] frobnicate() }")
    assert main(["opt", str(path)]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("xlapy: ") and "frobnicate" in printed and "Traceback" not in printed
    assert "\x1b" not in printed
    assert f"\n  {path}, line 1, column " in printed


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"\x00"])
def test_what_is_no_program(content: bytes, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "noise"
    path.write_bytes(content)
    for command in (["check"], ["run"], ["opt"], ["show"], ["translate", "--to", "hlo"]):
        assert main([command[0], str(path), *command[1:]]) == 1
        assert capsys.readouterr().err.startswith("xlapy: ")


def test_a_missing_file(capsys: Capture) -> None:
    assert main(["run", "/no/such/file"]) == 1
    assert capsys.readouterr().err == "xlapy: /no/such/file: No such file or directory\n"


def test_check_looks_at_all_files(program: str, wrong: str, capsys: Capture) -> None:
    assert main(["check", wrong, "/no/such/file", program]) == 1
    printed = capsys.readouterr()
    assert printed.err.count("xlapy: ") == 2 and printed.out.startswith(f"{program}: right")


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("chek FILE", "there is no command 'chek'; did you mean 'check'?"),
        ("rum FILE", "there is no command 'rum'; did you mean 'run'?"),
        ("run FILE --sead 3", "unrecognized arguments: --sead 3; did you mean '--seed'?"),
        ("opt FILE --unitl=dce", "unrecognized arguments: --unitl=dce; did you mean '--until'?"),
        ("cache --info FILE", "unrecognized arguments: FILE\n"),
        ("run FILE x.npy y.npy", "unrecognized arguments: x.npy y.npy; arrays are given by --input x.npy y.npy"),
        ("check FILE --inputs x.npy", "unrecognized arguments: --inputs"),
    ],
)
def test_a_misspelt_word_on_the_command_line(line: str, meant: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(line.split())
    assert caught.value.code == 2
    assert meant in capsys.readouterr().err


@pytest.mark.parametrize(
    ("beginning", "told"),
    [
        (b"\x93NUMPY\x01\0", "an array that numpy has saved"),
        (b"PK\x03\x04\x14\0", "a zip archive"),
        (b"\x1f\x8b\x08\0", "compressed by gzip"),
        (b"\x7fELF\x02\x01", "machine code"),
        ("HloModule m".encode("utf-16"), "text in UTF-16"),
    ],
)
def test_files_of_other_kinds_are_called_by_their_names(
    beginning: bytes, told: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "file"
    path.write_bytes(beginning + bytes(100))
    assert main(["check", str(path)]) == 1
    assert f"this is no program: it is {told}" in capsys.readouterr().err


def test_an_input_that_holds_no_arrays(program: str, capsys: Capture) -> None:
    assert main(["run", program, "--input", program]) == 1
    assert "holds no arrays" in capsys.readouterr().err


COMMANDS = "run eval opt translate check show explain report laws ops cache"


@pytest.mark.parametrize("command", ["", *COMMANDS.split()])
def test_help(command: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command.split(), "--help"])
    assert caught.value.code == 0
    assert "usage: xlapy" in capsys.readouterr().out


def test_help_of_a_command_says_what_it_does(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["laws", "--help"])
    assert "\n\nList the algebraic laws, or how often each fires in a program.\n\n" in capsys.readouterr().out


def test_no_command_is_a_question(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 0
    assert "tell what the compiler did" in capsys.readouterr().out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_and_progress_are_for_terminals(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(console, "PATIENCE", 0.0)
    assert main(["check", wrong]) == 1
    assert f"{console.RED}^{console.PLAIN}" in terminal.getvalue()
    with console.progress("thinking"):
        while "thinking ..." not in terminal.getvalue():  # a thread says so, when it gets to it
            time.sleep(0.001)
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_reader_that_stops_early_is_no_error(program: str) -> None:
    command = [sys.executable, "-c", "import sys; from xlapy.tools.main import main; sys.exit(main(sys.argv[1:]))"]
    process = subprocess.Popen(
        [*command, "show", program, "--asm"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert "Traceback" not in process.stderr.read()
    assert process.wait() == 0
    process.stderr.close()


def test_without_standard_output_nothing_is_printed(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)  # as Python has it where the shell has closed it
    assert main(["run", program]) == 0


def test_ops_lists_the_table(capsys: Capture) -> None:
    assert main(["ops"]) == 0
    printed = capsys.readouterr().out
    assert "concatenate" in printed and "operations are complete" in printed


@pytest.mark.parametrize(
    "name", ["select-and-scatter", "select_and_scatter", "SelectAndScatter", "stablehlo.select_and_scatter"]
)
def test_ops_tells_all_of_an_operation_by_any_of_its_names(name: str, capsys: Capture) -> None:
    assert main(["ops", name]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("### select-and-scatter\n") and "- Builder: `SelectAndScatter`" in printed


def test_ops_tells_what_a_function_made_of_others_says(capsys: Capture) -> None:
    for name in ("Collapse", "collapse"):
        assert main(["ops", name]) == 0
        assert "Consecutive dimensions made into one." in capsys.readouterr().out


def test_ops_knows_methods_by_their_names(capsys: Capture) -> None:
    assert main(["ops", "dot_general"]) == 0
    assert capsys.readouterr().out.startswith("### dot\n")


def test_ops_names_what_may_have_been_meant(capsys: Capture) -> None:
    assert main(["ops", "Gahter"]) == 1
    assert "there is no operation 'Gahter'; did you mean 'Gather'" in capsys.readouterr().err


def test_cache_shows_and_clears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, capsys: Capture) -> None:
    monkeypatch.setenv("XLAPY_CACHE_DIR", str(tmp_path / "cache"))
    main(["run", program])
    assert main(["cache", "--info"]) == 0
    shown = capsys.readouterr().out
    assert f"{tmp_path / 'cache'}: " in shown and " 0 entries" not in shown
    assert main(["cache"]) == 0
    assert capsys.readouterr().out == shown.splitlines(keepends=True)[-1]
    assert main(["cache", "--clear"]) == 0
    assert "cache: 0 entries, 0 B of at most" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "told"), [("off", "the cache is off"), ("absent", "nothing there yet"), ("file", "not used, because")]
)
def test_cache_says_why_there_is_none(
    place: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XLAPY_CACHE_DIR", place if place == "off" else str(tmp_path / place))
    assert main(["cache", "--info"]) == 0
    assert told in capsys.readouterr().out


def test_serialized_programs(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "twice.pb"
    path.write_bytes(module_to_bytes(xlapy.load(PROGRAM)))
    assert main(["check", str(path)]) == 0
    path.write_bytes(b"\xff\xfe, text in UTF-16")
    assert main(["check", str(path)]) == 1
    assert "neither text in UTF-8 nor a serialized module" in capsys.readouterr().err


def test_the_package_is_the_command() -> None:
    for name in ("xlapy", "xlapy.tools"):
        told = subprocess.run([sys.executable, "-m", name, "--version"], capture_output=True, text=True, check=True)
        assert told.stdout == f"xlapy {xlapy.__version__}\n"


def test_version(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"xlapy {xlapy.__version__}\n"


@pytest.mark.parametrize(("name", "value"), [("XLAPY_PASS_LIMIT", "ten"), ("XLAPY_DUMP_FILTER", "(")])
def test_variables_that_say_nothing(
    name: str, value: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("XLAPY_DUMP_TO", str(tmp_path))
    monkeypatch.setenv(name, value)
    assert main(["run", program]) == 1
    assert repr(value) in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "eval", "explain", "report", "show", "compile"])
def test_the_usage_of_a_command_is_in_an_order_that_works(command: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: xlapy {command} FILE [-h]")


def test_a_file_behind_an_option_that_takes_it(program: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as status:
        main(["run", "--compare", program])
    assert status.value.code == 2 and "FILE stands in front of the options" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "usage"), [(["help"], "xlapy [-h]"), (["help", "run"], "xlapy run FILE")])
def test_help_is_a_command(arguments: list[str], usage: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as status:
        main(arguments)
    assert status.value.code == 0 and usage in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (["--repeat", "-3"], "'-3' is no number, 0 or more"),
        (["--threads", "0"], "'0' is no number, 1 or more"),
        (["--size", "x"], "'x' is no number, 0 or more"),
    ],
)
def test_numbers_on_the_command_line(option: list[str], told: str, program: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as status:
        main(["run", program, *option])
    assert status.value.code == 2 and told in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "show", "compile"])
def test_options_of_the_compilation(
    command: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[xlapy.CompileOptions] = []
    usual = xlapy.compile

    def compile(source: xlapy.HloModule, options: xlapy.CompileOptions) -> xlapy.Executable:
        seen.append(options)
        return usual(source, options)

    monkeypatch.setattr(xlapy, "compile", compile)
    assert main([command, program, "--num-threads", "2", "--fast-math"]) == 0
    assert seen == [xlapy.CompileOptions(num_threads=2, fast_math=True)]
    assert "kernel" in capsys.readouterr().out


def test_what_is_compiled_takes_no_options_of_a_compilation(program: str, tmp_path: Path, capsys: Capture) -> None:
    saved = str(tmp_path / "twice.xlapy")
    assert main(["compile", program, "-o", saved]) == 0
    assert main(["run", saved, "--threads", "2"]) == 1
    assert "`xlapy compile` takes --fast-math and --threads" in capsys.readouterr().err
