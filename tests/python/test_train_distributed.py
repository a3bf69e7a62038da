# SPDX-License-Identifier: Apache-2.0
"""smoke/train_distributed.py: processes that train together end with the bits of one process that
computes the same parts, and go on from a checkpoint. On several nodes: ci/site/slurm_check.py."""

import json
import os
import subprocess
import sys

import pytest

import treenail as tn

PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(
    __file__)))), "smoke", "train_distributed.py")
LAUNCHERS = ("OMPI_", "PMI", "SLURM_", "TREENAIL_RANK", "TREENAIL_SIZE", "TREENAIL_LOCAL")


def started(folder, *words, rank=None, size=2):
    """The program, which writes its report into the folder; rank: its place in a group."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(LAUNCHERS)}
    if rank is not None:
        environment.update(TREENAIL_RANK=str(rank), TREENAIL_SIZE=str(size),
                           TREENAIL_GROUP_DIRECTORY=str(folder / "group"))
    return subprocess.Popen([sys.executable, PROGRAM, "mlp", "--quiet", "--report",
                             str(folder / "report-%d.json"), *words], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, encoding="utf-8", env=environment)


def ended(process, status=0):
    """What the process printed."""
    try:
        text = process.communicate(timeout=90)[0]
    finally:
        process.kill()
    assert process.returncode == status, text
    return text


def together(folder, *words, size=2):
    """The reports of so many processes."""
    folder.mkdir()
    running = [started(folder, *words, rank=rank, size=size) for rank in range(size)]
    try:
        for process in running:
            ended(process)
    finally:
        for process in running:
            process.kill()
    return [json.loads((folder / ("report-%d.json" % rank)).read_text()) for rank in range(size)]


@pytest.mark.parametrize("size", [2, 4])
def test_processes_train_to_the_bits_of_one(tmp_path, size):
    reports = together(tmp_path / "together", "--steps", "25", size=size)
    ended(started(tmp_path, "--steps", "25", "--alone", str(size)))
    alone = json.loads((tmp_path / "report-0.json").read_text())
    assert [report["rank"] for report in reports] == list(range(size))
    assert {report["size"] for report in reports} == {size}
    assert len(alone["losses"]) == 25 and alone["losses"][-1] < alone["losses"][0] / 2
    for report in reports:
        assert report["transport"] == "shared_memory"
        assert report["digest"] == alone["digest"] and report["losses"] == alone["losses"]


def test_a_training_goes_on_from_its_checkpoint(tmp_path):
    try:
        tn._core.hdf5_version()
    except tn.errors.UnimplementedError as reason:
        pytest.skip(str(reason))
    where = ["--checkpoint-dir", str(tmp_path / "run"), "--checkpoint-every", "10"]
    first = together(tmp_path / "first", "--steps", "10", *where)
    rest = together(tmp_path / "rest", "--steps", "25", *where)
    ended(started(tmp_path, "--steps", "25", "--alone", "2"))
    alone = json.loads((tmp_path / "report-0.json").read_text())
    assert [report["began"] for report in first + rest] == [0, 0, 10, 10]
    assert first[0]["losses"] + rest[1]["losses"] == alone["losses"]
    assert {report["digest"] for report in rest} == {alone["digest"]}


def test_another_split_is_another_training(tmp_path):
    """Else the comparison above would show nothing."""
    digests = set()
    for parts in ("1", "2"):
        ended(started(tmp_path, "--steps", "25", "--alone", parts))
        digests.add(json.loads((tmp_path / "report-0.json").read_text())["digest"])
    assert len(digests) == 2


@pytest.mark.parametrize("words, sentence", [
    (["--alone", "3"], "--batch 64: needed is a multiple of the 3 processes"),
    (["--alone", "2", "--batch", "2000"], "of at most 1198 images"),
    (["--alone", "0"], "--alone must be at least 1")])
def test_what_cannot_be_is_refused(tmp_path, words, sentence):
    assert sentence in ended(started(tmp_path, *words), status=2)
