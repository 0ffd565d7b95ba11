"""What goes wrong on the command line, and what is left behind."""

import io
import json
import os
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest

import orthonmf.cli.fit
from orthonmf import ONMF
from orthonmf.cli import main
from orthonmf.io import apart
from orthonmf.progress import listening

pytest.importorskip("typer")


def one_line(capfd):
    """The error, if it is one line and no traceback."""
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("orthonmf: ")
    assert err.count("\n") == 1
    return err


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# -- data ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "rank", "compare"])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "none.csv does not exist"),
        ("data.csv", b"", "is empty"),
        ("data.csv", b"a,b\n1,2\n3\n", "line 3 has 1 columns"),
        (
            "data.csv",
            b"a,b\n1,5,2,5\n",
            "line 2 has 4 columns, those before 2; expected the same number in each. If its numbers have decimal",
        ),
        ("data.csv", b"a;b\n1.234,5;2\n", "line 2, column 1 ('a') is '1.234,5'"),
        ("data.csv", b"a,b\n1,nan\n", "line 2, column 2 ('b') is 'nan': a missing value"),
        ("data.csv", b"a,b\n1,1e400\n", "line 2, column 2 ('b') is no finite number (inf)"),
        ("data.csv", b"a,b\n1,-2\n2,1\n", "Negative values in data passed to orthonmf: -2.0 at row 1, column 2 ('b')"),
        ("data.npy", b"\x93NUMPY\x01\x00v", "data.npy cannot be read"),
        ("data.h5", b"\x89HDF\r\n\x1a\n", "data.h5 cannot be read"),
        ("data.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n", "data.mtx cannot be read"),
        ("data.pkl", b"x", "can run code"),
        ("data.joblib", b"x", "can run code"),
        ("data.pt", b"x", "can run code"),
    ],
)
def test_bad_data_is_one_line_with_the_place_and_exit_code_2(command, name, content, message, tmp_path, capfd):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    extra = {"fit": ["--out", str(tmp_path / "parts")], "compare": ["-k", "1"]}.get(command, [])
    assert main([command, str(tmp_path / name), *extra]) == 2
    err = one_line(capfd)
    assert message in err
    assert name in err or "Negative" in err
    assert not (tmp_path / "parts").exists()


def test_an_object_array_a_truncated_hdf5_and_a_folder(tmp_path, capfd):
    np.save(tmp_path / "data.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["X"] = np.eye(9)
    whole = (tmp_path / "data.h5").read_bytes()
    (tmp_path / "data.h5").write_bytes(whole[:-1])
    for path in (tmp_path / "data.npy", tmp_path / "data.h5", tmp_path):
        assert main(["rank", str(path)]) == 2
        assert str(path) in one_line(capfd)


def test_a_file_that_may_not_be_read(matrix, monkeypatch, capfd):
    def denied(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr("pathlib.Path.read_bytes", denied)
    assert main(["rank", str(matrix)]) == 2
    assert "genes.csv cannot be read: [Errno 13] Permission denied" in one_line(capfd)


def test_a_file_that_kills_its_reader_is_one_line(tmp_path):
    (tmp_path / "data.mtx").write_text("%%MatrixMarket matrix array real general\n0 1\n")
    ended = subprocess.run(
        [sys.executable, "-m", "orthonmf.cli", "rank", "data.mtx"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert ended.stderr.startswith("orthonmf: data.mtx: holds a matrix of 0 rows")


@pytest.mark.parametrize("command", ["fit", "rank", "predict", "verify", "compare"])
def test_a_reader_that_dies_is_one_line_and_exit_code_2(command, fitted, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(apart, "PROGRAM", "import os; os.abort()")
    (tmp_path / "data.h5").write_bytes(b"x")
    words = [
        *([str(fitted)] if command in ("predict", "verify") else []),
        str(tmp_path / "data.h5"),
        *(["-k", "1"] if command == "compare" else []),
    ]
    assert main([command, *words]) == 2
    assert "data.h5 cannot be read: its reader died" in one_line(capfd)


def test_names_whose_reader_dies_are_one_line_and_exit_code_2(matrix, tmp_path, monkeypatch, capfd):
    assert main(["fit", str(matrix), "-k", "2", "--out", str(tmp_path / "parts"), "--format", "parquet", "--quiet"]) == 0
    monkeypatch.setattr(apart, "PROGRAM", "import os; os.abort()")
    assert main(["report", str(tmp_path / "parts"), "--force"]) == 2
    assert "assignments.parquet cannot be read: its reader died" in one_line(capfd)


def test_too_little_memory_is_one_line_and_exit_code_2(matrix, monkeypatch, capfd):
    def fail(*args, **options):
        raise MemoryError("Unable to allocate 4 TiB")

    monkeypatch.setattr(ONMF, "fit", fail)
    assert main(["rank", str(matrix)]) == 2
    assert one_line(capfd).startswith("orthonmf: There is not enough memory (Unable to allocate 4 TiB); take fewer rows or columns")


def test_several_matrices_need_a_key(tmp_path, capfd):
    np.savez(tmp_path / "data.npz", a=np.eye(3), b=np.ones((3, 2)))
    assert main(["rank", str(tmp_path / "data.npz")]) == 2
    assert "holds several: a, b. Name one with key (on the command line, --key)" in one_line(capfd)
    assert main(["rank", str(tmp_path / "data.npz"), "--key", "a"]) == 0


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"\xef\xbb\xbfg,a,b\nx,1,2\ny,2,1\n", ["x", "y"]),
        ("g,a,b\nä,1,2\nö,2,1\n".encode("latin-1"), ["ä", "ö"]),
        (b'g,a,b\n"x, 1",1,2\n"y ""2""",2,1\n', ['"x, 1"', '"y ""2"""']),
        (b"g;a;b\nx;1,5;2\ny;2;1,5\n", ["x", "y"]),
        (b"1,2\n2,1\n", ["0", "1"]),
    ],
    ids=["byte order mark", "latin-1", "quoted", "decimal comma", "no header"],
)
def test_what_can_be_read_is_read(content, names, tmp_path):
    (tmp_path / "data.csv").write_bytes(content)
    assert main(["fit", str(tmp_path / "data.csv"), "-k", "2", "--out", str(tmp_path / "parts"), "--quiet"]) == 0
    lines = (tmp_path / "parts" / "assignments.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert [line.rsplit(",", 4)[0] for line in lines] == names  # component, scale, margin, probability


# -- options ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-k 0", "-k 0 is not usable"),
        ("-k 2.5", "-k '2.5' is not usable; expected auto, persistence or a whole number"),
        ("-k -1", "-k '-1' is not usable"),
        (f"-k {'9' * 5000}", "-k '999"),
        ("-k 9", "-k 9 is more than the 4 rows"),
        ("-k 2 --capacity 1", "hold 2 items, 2 fewer than the 4"),
        ("-k 2 --capacity x", "--capacity 'x' is not usable; expected items (18), a fraction (0.35)"),
        ("-k 2 --capacity 1,", "--capacity '1,' is not usable"),
        ("-k 2 --capacity nan", "--capacity nan is not usable"),
        ("-k 2 --capacity 1,2,3", "capacity has 3 values; expected one value, or 2"),
        ("--capacity 1,3", "one value per component, but -k 'auto'"),
        ("-k 2 --min-size 3", "ask for 6 items, 2 more than the 4"),
        ("--orthogonal rows", "--orthogonal 'rows' is not known"),
        ("--scaling all", "--scaling 'all' is not known"),
        ("--max-components 0", "--max-components 0 is not usable"),
        ("--time-limit -1", "--time-limit -1.0 is not usable"),
        ("--loss kl", "--loss 'kl' is not known; expected one of 'frobenius', 'kullback-leibler'. Did you mean 'kullback-leibler'?"),
        ("--format xlsx", "--format 'xlsx' is not known; expected one of 'csv', 'parquet'"),
    ],
)
def test_unusable_options_are_one_line(options, message, matrix, tmp_path, capfd):
    assert main(["fit", str(matrix), *options.split(), "--out", str(tmp_path / "parts")]) == 2
    assert message in one_line(capfd)
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize("command", ["fit", "rank", "predict", "verify", "report", "compare", "reproduce", "demo"])
def test_help_shows_examples(command, capfd):
    assert main([command, "--help"]) == 0
    told = capfd.readouterr().out
    assert f"Examples:\n    orthonmf {command}" in told
    assert main([command, "-h"]) == 0
    assert capfd.readouterr().out == told


def test_version(capfd):
    assert main(["--version"]) == 0
    assert capfd.readouterr().out.startswith("orthonmf 0.")


# -- output -------------------------------------------------------------------------------------------------------------------


def test_existing_output_needs_force_and_is_refused_before_any_work(matrix, fitted, tmp_path, monkeypatch, capfd):
    before = contents(fitted)

    def work(*args, **kwargs):
        raise AssertionError("data were read")

    monkeypatch.setattr("orthonmf.cli._data.read", work)
    assert main(["fit", str(matrix), "--out", str(fitted)]) == 2
    assert "model.onmf exists; add --force to replace it, or choose another --out" in one_line(capfd)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "components.parquet").touch()  # of either form
    assert main(["fit", str(matrix), "--out", str(tmp_path / "other")]) == 2
    assert contents(fitted) == before
    (tmp_path / "labels.csv").touch()
    assert main(["predict", str(fitted), str(matrix), "--out", str(tmp_path / "labels.csv")]) == 2


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_fit_never_replaces_its_data(form, matrix, capfd):
    data = matrix.rename(matrix.parent / "components.csv")
    before = contents(data.parent)
    assert main(["fit", str(data), "-k", "2", "--out", str(data.parent), "--format", form, "--force"]) == 2
    assert "components.csv is what is read" in one_line(capfd)
    assert contents(data.parent) == before


@pytest.mark.parametrize("name", ["model.onmf", "summary.json", "assignments.csv"])
def test_a_report_never_replaces_what_it_is_made_from(name, fitted, capfd):
    before = contents(fitted)
    assert main(["report", str(fitted), "--out", str(fitted / name), "--force"]) == 2
    assert f"{name} is what is read" in one_line(capfd)
    assert contents(fitted) == before


def test_other_files_in_the_folder_stay(matrix, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["fit", str(matrix), "--out", str(tmp_path), "--quiet"]) == 0
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert len(contents(tmp_path)) == 8


@pytest.mark.parametrize("error", [RuntimeError("fault"), OSError(28, "No space left on device", "draft"), KeyboardInterrupt()])
def test_a_failure_while_writing_leaves_the_old_files(error, matrix, fitted, monkeypatch, capfd):
    before = contents(fitted)

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(orthonmf.cli.fit, "write_report", fail)
    code = main(["fit", str(matrix), "-k", "3", "--out", str(fitted), "--force"])
    assert contents(fitted) == before
    err = capfd.readouterr().err
    expected = {RuntimeError: (1, "RuntimeError: fault\n"), OSError: (2, "orthonmf: draft: No space left on device\n")}
    assert (code, err[-len(expected.get(type(error), (0, ""))[1]) :] if err else "") == expected.get(type(error), (130, ""))


def test_a_link_is_replaced_and_never_followed(matrix, tmp_path):
    folder, precious = tmp_path / "parts", tmp_path / "precious"
    folder.mkdir()
    precious.write_text("precious")
    for name in ("model.onmf", "summary.json"):
        (folder / name).symlink_to(precious)
    (folder / "report.html").symlink_to(tmp_path / "nowhere")
    assert main(["fit", str(matrix), "--out", str(folder), "--quiet"]) == 2
    assert main(["fit", str(matrix), "--out", str(folder), "--quiet", "--force"]) == 0
    assert precious.read_text() == "precious"
    assert not any(path.is_symlink() for path in folder.iterdir())
    assert not (tmp_path / "nowhere").exists()


def test_a_path_with_dots_and_names_with_slashes(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    (tmp_path / "data.csv").write_text("g,../../a,/b\n../x,1,0\n/y,0,1\n")
    before = set(tmp_path.rglob("*"))
    assert main(["fit", "../data.csv", "-k", "2", "--out", "../deep/../parts", "--quiet"]) == 0
    assert {path.parent for path in set(tmp_path.rglob("*")) - before} == {tmp_path, tmp_path / "parts"}


def test_a_folder_that_cannot_be_made(matrix, tmp_path, capfd):
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for out in (matrix, matrix / "parts", tmp_path / "dangling"):
        assert main(["fit", str(matrix), "--out", str(out), "--force"]) == 2
        assert "is not a folder; choose another name" in one_line(capfd)


def test_a_folder_in_the_place_of_a_file(matrix, tmp_path, capfd):
    (tmp_path / "parts" / "model.onmf").mkdir(parents=True)
    assert main(["fit", str(matrix), "--out", str(tmp_path / "parts"), "--force"]) == 2
    assert "model.onmf is a folder, where a file should go" in one_line(capfd)


def test_a_folder_that_may_not_be_written_to(matrix, fitted, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)  # permissions do not bind the superuser
    for command in (
        ["fit", str(matrix), "--out", str(tmp_path / "new")],
        ["predict", str(fitted), str(matrix), "--out", str(tmp_path / "l.csv")],
    ):
        assert main(command) == 2
        assert f"{tmp_path} may not be written to" in one_line(capfd)


def test_a_file_that_cannot_be_written(matrix, fitted, tmp_path, capfd):
    for out, message in (
        (tmp_path, "is a folder; expected the name of a file"),
        (tmp_path / "no" / "labels.csv", "there is no folder"),
        (tmp_path / "labels.txt", "is no name for a table"),
        (matrix, "is what is read"),
        (fitted / "model.onmf", "is what is read"),
    ):
        assert main(["predict", str(fitted / "model.onmf"), str(matrix), "--out", str(out), "--force"]) == 2
        assert message in one_line(capfd)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_terminal_without_greek_letters(options, matrix, monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stdout)
    assert main(["rank", str(matrix), *options]) == 0
    stdout.flush()
    said = stdout.buffer.getvalue().decode("ascii")
    assert "stand out" in said
    assert not options or json.loads(said)["n_components"] == 2


# -- signals and pipes --------------------------------------------------------------------------------------------------------


def test_an_interrupt_is_exit_code_130_and_writes_nothing(matrix, tmp_path, capfd):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where the tests run in the background
    try:
        with listening(lambda temperature: signal.raise_signal(signal.SIGINT)):
            assert main(["fit", str(matrix), "--out", str(tmp_path / "parts")]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capfd.readouterr() == ("", "")
    assert not (tmp_path / "parts").exists()


def test_an_interrupted_process(matrix, tmp_path):
    code = """
import signal, sys, time
from orthonmf.cli import main
from orthonmf.progress import listening

signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs in the background inherits that it is ignored

def wait(temperature):
    print("fitting", flush=True)
    time.sleep(600)

with listening(wait):
    sys.exit(main(sys.argv[1:]))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code, "fit", str(matrix), "--out", str(tmp_path / "parts")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "fitting\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == ""
    assert not (tmp_path / "parts").exists()


def test_nobody_reads_the_output(matrix):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        ended = subprocess.run(
            [sys.executable, "-m", "orthonmf.cli", "rank", str(matrix)], stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (ended.returncode, ended.stderr) == (141, "")
