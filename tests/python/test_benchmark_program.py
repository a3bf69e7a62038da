# SPDX-License-Identifier: Apache-2.0
"""treenail-bench as a program: what it prints and reports, how it refuses and how it is
interrupted; its manual page and completion."""

import io
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import treenail as tn
from treenail.benchmark import _options, main
from treenail.benchmark._measurement import Ticker
from treenail.benchmark._models import MODELS
from treenail.benchmark._report import ReportFile, Task, place_of
from treenail.benchmark._step import OPTIMIZERS

SOURCE = os.environ.get("TREENAIL_SOURCE_DIR") or os.path.dirname(os.path.dirname(
    os.path.dirname(os.path.abspath(__file__))))
COMMAND = [sys.executable, "-m", "treenail.benchmark"]
MLP = ("--model=mlp", "--batch-size=8", "--num-batches=12", "--num-warmup-batches=2")
FOREIGN = re.compile("SLURM|OMPI|TREENAIL_(CPU|NUM|MEM)")  # what the tests may be run under


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
    return dict(kept, **more)


def bench(*arguments, status=0, **more):
    """(standard output, standard error)."""
    done = subprocess.run([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, env=environment(**more))
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def reported(path, *arguments, **more):
    bench(*arguments, "--report", str(path), **more)
    return json.loads(path.read_text())


# --- What it says ---------------------------------------------------------------------------------

def test_lines_are_those_of_tf_cnn_benchmarks():
    out, err = bench(*MLP, "--display-every=5")
    assert err == ""
    rate = r"images/sec: \d+\.\d \+/- \d+\.\d \(jitter = \d+\.\d\)"
    lines = out[out.index("Done warm up"):].splitlines()
    assert lines[1] == "Step\tImg/sec\ttotal_loss"
    for line, step in zip(lines[2:5], (1, 5, 10)):
        assert re.fullmatch(r"%d\t%s\t\d+\.\d{3}" % (step, rate), line), line
    assert re.fullmatch("-+", lines[5]) and re.fullmatch(r"total images/sec: \d+\.\d\d", lines[6])
    assert re.match(r"peak memory: \d+ MiB of the process, \d+ MiB of tensors", lines[8])
    assert "669,706 trainable parameters" in out


def test_report(tmp_path):
    found = reported(tmp_path / "r.json", *MLP, "--seed=7", SLURM_JOB_ID="31", SLURM_PROCID="0",
                     SLURM_JWT="secret", TREENAIL_NUM_THREADS="1")
    seconds = np.array(found["step_seconds"])
    assert len(seconds) == len(found["losses"]) == found["batches_measured"] == 12
    rates = found["per_second"]
    assert rates["mean"] == pytest.approx(8 / seconds.mean())
    assert rates["median"] == pytest.approx(np.median(8 / seconds))
    assert 0 < rates["total"] <= rates["mean"]
    assert (found["model"], found["batch_size"], found["precision"], found["unit"], found["seed"],
            found["mode"], found["trainable_parameters"]) == (
                "mlp", 8, "float32", "images", 7, "training", 669706)
    assert found["interrupted"] is False and found["problem"] == ""
    info, told = tn.build_info(), found["environment"]
    assert told["version"] == tn.__version__ and told["host"] == os.uname().nodename
    assert told["kernel_level"] == info["kernel_level"] in info["installed_kernel_levels"]
    assert (told["num_threads"], told["threads_origin"]) == (1, "TREENAIL_NUM_THREADS")
    assert told["variables"]["TREENAIL_NUM_THREADS"] == "1"
    assert found["memory"]["peak_resident_bytes"] > found["memory"]["peak_tensor_bytes"] > 4e6
    assert found["slurm"] == {"SLURM_JOB_ID": "31", "SLURM_PROCID": "0"}
    assert set(found["stage_seconds"]) == {"graph", "initialization", "warm-up", "measured"}
    assert os.listdir(tmp_path) == ["r.json"]


def test_losses_depend_on_the_seed_alone(tmp_path):
    def losses(*arguments):
        return reported(tmp_path / "r.json", *MLP, *arguments)["losses"]
    first = losses("--threads=1")
    assert losses("--threads=2") == first and losses("--seed=5") != first


def test_words_and_inference(tmp_path):
    found = reported(tmp_path / "r.json", "--model=lstm", "--batch-size=1", "--num-batches=3",
                     "--num-warmup-batches=0", "--forward-only")
    assert (found["unit"], found["mode"], found["optimizer"]) == ("words", "forward only", None)
    assert found["per_second"]["mean"] == pytest.approx(35 / np.mean(found["step_seconds"]))
    assert len(set(found["losses"])) == 1 and abs(found["losses"][0] - np.log(10000)) < 0.2


def test_libraries_that_were_used_are_named(tmp_path):
    """At the lowest level products go to the BLAS."""
    info = tn.build_info()
    if "blas" not in info["features"]:
        pytest.skip("built without BLAS")
    found = reported(tmp_path / "r.json", "--model=mlp", "--batch-size=256", "--num-batches=1",
                     TREENAIL_CPU_ISA=info["installed_kernel_levels"][0])
    assert found["environment"]["kernel_level"] == info["installed_kernel_levels"][0]
    assert all(os.path.isabs(path) for path in found["environment"]["libraries"]["blas"])


def test_underscores_as_tf_cnn_benchmarks_has_them(tmp_path):
    found = reported(tmp_path / "a_b.json", "--model=mlp", "--batch_size=4", "--num_batches", "2",
                     "--num_warmup_batches=0")
    assert (found["batch_size"], found["num_batches"]) == (4, 2)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_line_on_a_terminal_leaves_no_trace():
    """And there is none elsewhere."""
    for stream, wanted in ((Terminal(), "\r\x1b[Kstep 1\r\x1b[K"), (io.StringIO(), "")):
        ticker = Ticker(stream)
        ticker.show("step 1")
        ticker.show("step 2")  # too soon after the other
        ticker.clear()
        ticker.clear()
        assert stream.getvalue() == wanted


def test_list_of_models():
    out, _ = bench("--list-models")
    assert {line.split()[0] for line in out.splitlines() if line[:1] != " "} == set(MODELS)


# --- Copies ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("variables, rank, count", [
    ({}, 0, 1),
    ({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4"}, 3, 4),
    ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, 0, 1),  # a batch script
    ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "OMPI_COMM_WORLD_RANK": "2",
      "OMPI_COMM_WORLD_SIZE": "5"}, 2, 5),  # mpirun in a job
    ({"SLURM_PROCID": "x", "SLURM_STEP_NUM_TASKS": "4"}, 0, 1)])
def test_rank(variables, rank, count):
    task = Task(variables)
    assert (task.rank, task.count) == (rank, count)


def test_each_task_has_a_report_of_its_own(tmp_path):
    for rank in ("0", "1"):
        out, _ = bench(*MLP, "--report", str(tmp_path / "%j-%t%%.json"), SLURM_PROCID=rank,
                       SLURM_STEP_NUM_TASKS="2", SLURM_JOB_ID="9")
        assert "rank %s of 2, job 9\n" % rank in out
    assert sorted(os.listdir(tmp_path)) == ["9-0%.json", "9-1%.json"]
    assert json.loads((tmp_path / "9-1%.json").read_text())["rank"] == 1


def test_tasks_do_not_write_one_report():
    for pattern in ("r.json", "r%%t.json"):
        _, err = bench(*MLP, "--report", pattern, status=2, SLURM_PROCID="1",
                       SLURM_STEP_NUM_TASKS="2")
        assert "2 tasks would write the one report %s; put %%t" % pattern in err
    assert place_of("a%%t%%%t", Task({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"})) == (
        "a%t%0")


# --- What is refused ------------------------------------------------------------------------------

REFUSED = [
    ("", "--model is needed; it is one of inception3, lstm, mlp, resnet50, vgg16"),
    ("--model=alexnet", "argument --model: invalid choice: 'alexnet' (choose from"),
    ("--model=mlp --batch-size=0", "--batch-size: it must be a whole number, 1 or more, not '0'"),
    ("--model=mlp --batch-size=1.5", "a whole number, 1 or more, not '1.5'"),
    ("--model=mlp --num-batches=-1", "a whole number, 1 or more, not '-1'"),
    ("--model=mlp --display-every=0", "a whole number, 1 or more, not '0'"),
    ("--model=mlp --learning-rate=nan", "it must be a number above 0, not 'nan'"),
    ("--model=mlp --weight-decay=-1", "it must be a number above 0, not '-1'"),
    ("--model=mlp --optimizer=lion", "argument --optimizer: invalid choice: 'lion'"),
    ("--model=mlp --image-size=32", "mlp has no images whose size or format could be chosen"),
    ("--model=lstm --data-format=NCHW", "lstm has no images whose size or format could be chosen"),
    ("--model=inception3 --image-size=74", "--image-size 74: inception3 needs 75 or more"),
    ("--model=resnet50 --data-format=CHWN", "argument --data-format: invalid choice: 'CHWN'"),
    ("--model=mlp --threads=0", "a whole number, 1 or more, not '0'"),
    ("--model=mlp --batch=3", "unrecognized arguments: --batch=3"),
    ("--model=mlp 5", "unrecognized arguments: 5"),
]


@pytest.mark.parametrize("arguments, sentence", REFUSED)
def test_arguments_that_make_no_sense(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    assert ended.value.code == 2 and sentence in capsys.readouterr().err


@pytest.mark.parametrize("place, sentence", [
    ("missing/r.json", "No such file or directory"), ("", "Is a directory"),
    ("file/r.json", "Not a directory"), ("missing/", "this names no file")])
def test_a_report_that_cannot_be_written_stops_before_the_work(place, sentence, tmp_path):
    (tmp_path / "file").write_text("kept")
    path = os.path.join(tmp_path, place) if place else str(tmp_path)
    out, err = bench(*MLP, "--report", path, status=2)
    assert out == "" and err == "treenail-bench: --report %s: %s\n" % (path, sentence)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_said():
    _, err = bench(*MLP, "--report", "/dev/full", status=2)
    assert err == "treenail-bench: --report /dev/full: No space left on device\n"
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*COMMAND, *MLP], stdout=full, stderr=subprocess.PIPE, text=True,
                              check=False, env=environment())
    assert done.returncode == 2
    assert done.stderr == ("treenail-bench: cannot write the results: No space left on device\n")


def test_a_report_replaces_an_old_one_as_a_whole(tmp_path):
    path, link = tmp_path / "r.json", tmp_path / "link"
    path.write_text("old")
    link.symlink_to(path)
    file = ReportFile(str(link))
    assert path.read_text() == "old"
    file.close()
    assert path.read_text() == "old" and sorted(os.listdir(tmp_path)) == ["link", "r.json"]
    file = ReportFile(str(link))
    file.write({"new": 1})
    file.close()
    assert json.loads(path.read_text()) == {"new": 1} and link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link", "r.json"]
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


# --- What fails on the way ------------------------------------------------------------------------

def test_out_of_memory(tmp_path):
    path = tmp_path / "r.json"
    out, err = bench("--model=vgg16", "--batch-size=64", "--report", str(path), status=1,
                     TREENAIL_MEMORY_LIMIT="64M")
    assert re.fullmatch("treenail-bench: out of memory with --batch-size 64: .*limit 67108864.*; a "
                        "smaller batch needs less\n", err)
    assert "failed; measured: 0 of 100 batches" in out
    found = json.loads(path.read_text())
    assert found["per_second"] is None and found["problem"].startswith("out of memory")


def test_a_training_that_diverges():
    out, err = bench("--model=mlp", "--learning-rate=1e30", status=1)
    assert re.fullmatch(r"treenail-bench: the loss is (nan|inf) at step \d+: the training "
                        r"diverged; a lower --learning-rate than 1e\+30 may help\n", err)


def test_a_device_that_is_there_and_one_that_is_not(tmp_path):
    found = reported(tmp_path / "r.json", *MLP, "--device=/cpu:0")
    assert found["device"] == "/cpu:0" and found["batches_measured"] == 12
    out, err = bench(*MLP, "--device=/gpu:7", status=1)
    assert "failed; measured: 0 of" in out
    assert re.fullmatch(r'treenail-bench: .*cannot be placed on "/gpu:7": .*\n', err), err


def test_no_kernels(tmp_path):
    path = tmp_path / "r.json"
    out, err = bench(*MLP, "--report", str(path), status=1, TREENAIL_CPU_ISA="x87")
    assert "x87" in json.loads(path.read_text())["problem"]
    assert re.fullmatch('treenail-bench: .*TREENAIL_CPU_ISA is "x87"; needed is .*\n', err)
    assert "kernels of no level" in out


# --- Interruption ---------------------------------------------------------------------------------

def interrupted(signal_number, until, path, *arguments):
    """Starts a long measurement and sends the signal at the line that begins so."""
    with subprocess.Popen([*COMMAND, "--model=lstm", "--batch-size=2", *arguments, "--report",
                           str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environment()) as process:
        out = ""
        for line in process.stdout:
            out += line
            if line.startswith(until):
                process.send_signal(signal_number)
        err = process.stderr.read()
    assert err == "", err
    return process.returncode, out, json.loads(path.read_text())


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_was_measured_is_kept(number, status, tmp_path):
    path = tmp_path / "r.json"
    path.write_text("old")
    code, out, found = interrupted(number, "2\t", path, "--num-batches=1000000",
                                   "--num-warmup-batches=0", "--display-every=2")
    assert code == status
    done = found["batches_measured"]
    assert "interrupted by %s; measured: %d of 1000000 batches" % (number.name, done) in out
    assert done >= 2 and found["interrupted"] is True and found["per_second"]["mean"] > 0
    assert sum(found["step_seconds"]) <= found["stage_seconds"]["measured"]
    assert "total words/sec: " in out and os.listdir(tmp_path) == ["r.json"]


def test_interrupted_while_warming_up(tmp_path):
    code, out, found = interrupted(signal.SIGINT, "Running warm up", tmp_path / "r.json",
                                   "--num-warmup-batches=1000000")
    assert code == 130 and "measured: 0 of 100 batches" in out and "total" not in out
    assert found["interrupted"] and found["per_second"] is None


# --- Its manual page and completion ---------------------------------------------------------------

def test_manual_page_and_completion_name_the_options():
    made = _options.parser("1", MODELS, sorted(OPTIMIZERS))
    options = {name for action in made._actions for name in action.option_strings} - {"-h"}
    with open(os.path.join(SOURCE, "docs/man/treenail-bench.1"), encoding="utf-8") as stream:
        page = stream.read()
    named = re.findall(r"^\.BI? (\\-\\-[\w\\-]+)=?(?: \w+)?$", page, re.MULTILINE)
    assert {name.replace("\\", "") for name in named} == options
    for name in MODELS:
        assert re.search(r"^\.BR? %s\b" % name, page, re.MULTILINE)
    for status in ("0", "1", "2", "130, 143"):
        assert re.search(r"^\.TP\n%s\n" % status, page, re.MULTILINE)


@pytest.mark.parametrize("words, wanted", [
    (["--b"], {"--batch-size"}), (["--model", "=", "res"], {"resnet50"}),
    (["--model", "="], set(MODELS)), (["--model", "v"], {"vgg16"}),
    (["--optimizer", "=", ""], set(OPTIMIZERS)), (["--data-format", ""], {"NHWC", "NCHW"}),
    (["--"], None)])
def test_completion(words, wanted):
    script = os.path.join(SOURCE, "python/tools/treenail-bench.bash")
    program = ('. "$0"; COMP_WORDS=(treenail-bench "$@"); COMP_CWORD=$#; _treenail_bench; '
               'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", program, script, *words], stdout=subprocess.PIPE,
                          text=True, check=True)
    if wanted is None:
        made = _options.parser("1", MODELS, sorted(OPTIMIZERS))
        wanted = {name for action in made._actions for name in action.option_strings} - {"-h"}
    assert set(done.stdout.split()) == wanted
