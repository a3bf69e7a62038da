# SPDX-License-Identifier: Apache-2.0
"""Packages from PyPI are fetched once, whole or not at all; whatever fails leaves its package out.
Nothing here touches an index: pip is stood in for."""

import os
import shutil
import sys

import pytest


@pytest.fixture
def pip(bench, monkeypatch):
    """Commands that were run; pip.fails holds words that make a command fail."""
    class Pip(list):
        fails = ()

    commands = Pip()

    def run_shown(command):
        commands.append(command)
        if any(word in command for word in commands.fails):
            raise bench.harness.Absent("no route to host")
        if "venv" in command:
            shutil.rmtree(command[-1], ignore_errors=True)  # --clear
            os.makedirs(os.path.join(command[-1], "bin"))
            os.symlink(sys.executable, bench.pypi.interpreter(command[-1]))

    monkeypatch.setattr(bench.pypi, "run_shown", run_shown)
    return commands


def test_versions_are_pinned(bench):
    for pins in bench.pypi.PINS.values():
        for pin in pins:
            name, equal, version = pin.partition("==")
            assert name and equal and version[0].isdigit()
    assert set(bench.pypi.PINS) == set(bench.pypi.LOADS)
    assert {v.package for v in bench.peers.VARIANTS} == set(bench.pypi.PINS)


def test_an_environment_is_used_again(bench, pip, tmp_path):
    first = bench.pypi.invite(["jax"], str(tmp_path))
    assert [command[2] for command in pip[:2]] == ["venv", "pip"]
    assert set(bench.pypi.PINS["jax"]) <= set(pip[1])
    made = len(pip)
    assert bench.pypi.invite(["jax"], str(tmp_path)) == first
    assert len(pip) == made and not first.missing
    assert first.note == "From PyPI: %s." % bench.pypi.PINS["jax"][0]


def test_other_versions_are_fetched_anew(bench, pip, tmp_path, monkeypatch):
    bench.pypi.invite(["jax"], str(tmp_path))
    made = len(pip)
    monkeypatch.setitem(bench.pypi.PINS, "jax", ("jax==99.0",))
    bench.pypi.invite(["jax"], str(tmp_path))
    assert len(pip) == 2 * made


def test_an_interrupted_environment_is_made_anew(bench, pip, tmp_path):
    bench.pypi.invite(["jax"], str(tmp_path))
    made = len(pip)
    os.remove(tmp_path / "jax" / bench.pypi.COMPLETE)
    bench.pypi.invite(["jax"], str(tmp_path))
    assert len(pip) == 2 * made


@pytest.mark.parametrize("step", ["venv", "pip", "-c"])
def test_a_package_that_cannot_be_had_is_left_out_alone(bench, pip, tmp_path, step, monkeypatch):
    def only_torch(command):
        return any("torch" in word for word in command) and step in command

    inner = bench.pypi.run_shown

    def run_shown(command):
        pip.fails = (step,) if only_torch(command) else ()
        inner(command)

    monkeypatch.setattr(bench.pypi, "run_shown", run_shown)
    guests = bench.pypi.invite(["torch", "jax"], str(tmp_path))
    assert list(guests.interpreters) == ["jax"]
    assert guests.missing == ("torch from PyPI: no route to host",)
    assert not (tmp_path / "torch").exists()


def test_a_folder_that_cannot_be_made_is_a_reason(bench, pip, tmp_path):
    (tmp_path / "file").write_text("")
    guests = bench.pypi.invite(["jax"], str(tmp_path / "file" / "below"))
    assert not guests.interpreters and "jax from PyPI: " in guests.missing[0]


def test_the_reason_is_what_the_command_complained_of(bench, capfd):
    program = "print('fetching'); print('ERROR: No matching distribution'); print('bye'); exit(4)"
    with pytest.raises(bench.harness.Absent,
                       match="exit status 4: ERROR: No matching distribution"):
        bench.pypi.run_shown([sys.executable, "-c", program])
    assert "fetching" in capfd.readouterr().out  # progress is shown
    with pytest.raises(bench.harness.Absent, match="No such file"):
        bench.pypi.run_shown(["/nowhere/python"])


@pytest.mark.parametrize("arguments, names", [
    ([], []), (["--pypi"], ["torch", "tensorflow", "jax", "onnxruntime"]),
    (["--pypi", "jax, torch,jax"], ["jax", "torch"])])
def test_guests_come_when_asked_for(bench, arguments, names):
    options = bench.run.parse(arguments)
    assert options.guests == names
    assert options.pypi_directory == os.path.join("build", "pypi-peers")


@pytest.mark.parametrize("arguments, complaint", [
    (["--pypi", "caffe"], "'caffe' is none of the packages torch, "),
    (["--pypi", ""], "no package is named"),
    (["--pypi", "--only", "size"], "measured in works, linalg, training, inference")])
def test_a_wrong_request_is_refused(bench, arguments, complaint, capsys):
    with pytest.raises(SystemExit):
        bench.run.parse(arguments)
    assert complaint in capsys.readouterr().err


def test_the_section_shows_everyone_and_names_who_is_missing(bench):
    harness = bench.harness
    row = harness.Row("MLP, 2 threads", 2.0, "ms", wanted=1.5,
                      everyone={"torch, 2 threads": 4.0, "jax, jit, 2 threads": 3.0})
    row.beside(row.everyone)
    other = harness.Row("LSTM, 2 threads", 2.0, "ms", everyone={"torch, 2 threads": 5.0})
    outcome = harness.Outcome([row, other], ["From PyPI: jax==1."])
    outcome.leave_out("", ["tensorflow from PyPI: no route to host"])
    outcome.leave_out("LSTM, 2 threads", ["jax, jit, 2 threads: too slow"])
    text = bench.run.section("Training", outcome, "level x86-64-v3", "bench/run.py")
    assert text.startswith("## Training\n")
    assert "; level x86-64-v3; load " in text
    assert ("| MLP, 2 threads | 2.000 ms | 3.000 ms (jax, jit, 2 threads) | 1.50 | ratio 1.5 | met "
            "|\n" in text)
    assert "| figure | Treenail | torch | jax, jit |\n|---|---|---|---|\n" in text
    assert "| MLP, 2 threads, ms | 2.000 | 4.000 | 3.000 |" in text
    assert "| LSTM, 2 threads, ms | 2.000 | 5.000 | - |" in text
    assert "Left out: tensorflow from PyPI: no route to host" in text
    assert "Left out: LSTM, 2 threads: jax, jit, 2 threads: too slow" in text


def test_guests_do_not_replace_what_was_measured_without_them(bench, tmp_path):
    page = tmp_path / "RESULTS.md"
    beside = "Training" + bench.run.BESIDE_GUESTS
    for heading, load in (("Training", "first"), (beside, "guests"), ("Training", "second")):
        page.write_text(bench.run.merge(str(page), {heading: "## %s\n\n%s\n" % (heading, load)}))
    with page.open("a") as stream:
        stream.write("\n## By hand\n\nkept\n")
    page.write_text(bench.run.merge(str(page), {}))
    text = page.read_text()
    assert text.index("guests") < text.index("## By hand") < text.index("kept")
    assert "first" not in text
    assert text.index("second") < text.index("## " + beside) < text.index("guests")
