# SPDX-License-Identifier: Apache-2.0
"""ci/run-jenkinsfile: what it refuses, what it runs and in which order, and our own Jenkinsfile.

jenkinsfiles/bad holds files with the sentence that refuses each; jenkinsfiles/good holds files with
what running them must say and give, after Jenkins's Pipeline Syntax reference. Groovy starts once.
"""

import importlib.machinery
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "ci/jenkins"), str(TOP / "gen/tools")]
import files  # noqa: E402  (the path must be set first)
import model  # noqa: E402
import syntax  # noqa: E402
from plan import plan  # noqa: E402
from runner import Build, Choice, due  # noqa: E402

BAD = sorted((TOP / "tests/site/jenkinsfiles/bad").glob("*.Jenkinsfile"))
GOOD = sorted((TOP / "tests/site/jenkinsfiles/good").glob("*.Jenkinsfile"))
OURS = TOP / "ci/Jenkinsfile"
PROGRAM = TOP / "ci/run-jenkinsfile"


@pytest.fixture(scope="session")
def trees():
    """The syntax trees of all these files, from one start of Groovy."""
    paths = [str(path) for path in BAD + GOOD + [OURS]]
    try:
        return dict(zip(paths, syntax.trees(paths)))
    except syntax.Missing as reason:
        pytest.skip(str(reason))


def headers(path):
    """The lines `// key: value` at the head of a file."""
    return dict(re.findall(r"^// (\w+): (.*)$", path.read_text(), re.MULTILINE))


def read(trees, path):
    return model.read(syntax.tree(trees[str(path)], path.name), path.name)


def commit(folder):
    """Makes the folder a repository with one commit."""
    for words in (["init", "-q"], ["add", "-A"],
                  ["-c", "user.name=x", "-c", "user.email=x@x.invalid", "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)


@pytest.fixture
def run(tmp_path, trees):
    """run(path) -> (build, lines of its log, the calls of the steps) in a repository of its own."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "tracked.txt").write_text("tracked\n")

    def go(path, parameters=None, previous=None, choice=None, labels=("linux", "here")):
        if not (source / ".git").exists():
            commit(source)
        pipeline = read(trees, path)
        values = {name: record["default"] for name, record in pipeline.parameters.items()}
        values.update(parameters or {})
        workspace = str(tmp_path / "workspace")

        def checkout():
            files.check_out(str(source), files.commit_of(str(source), ""), workspace)
            return workspace

        folder = tmp_path / "build"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        log = io.StringIO()
        build = Build(pipeline, values, str(folder), 1, previous, checkout, labels, log)
        texts = {name: str(value).lower() if isinstance(value, bool) else value
                 for name, value in values.items()}
        build.run(texts, choice or Choice())
        return build, log.getvalue().splitlines()

    go.source = source
    go.folder = tmp_path / "build"
    return go


def verdicts(record, prefix=""):
    """Path of each stage -> its result, or 'skipped'."""
    found = {}
    for child in record.children:
        path = prefix + child.name
        found[path] = "skipped" if child.skipped else child.result
        found.update(verdicts(child, path + "/"))
    return found


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_refused(trees, path):
    with pytest.raises(syntax.Refused) as caught:
        read(trees, path)
    assert headers(path)["refused"] in str(caught.value)
    assert str(caught.value).startswith(path.name + ":")


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_run(run, path):
    wanted = headers(path)
    parameters = {}
    for word in wanted.get("parameters", "").split():
        name, _, value = word.partition("=")
        parameters[name] = {"true": True, "false": False}.get(value, value)
    build, lines = run(path, parameters, wanted.get("previous"))
    # Not the shell's echo of its own commands.
    said = [line[4:] for line in lines if line.startswith("say ")]
    assert ", ".join(said) == wanted.get("says", "")
    assert build.result == wanted["result"]
    found = verdicts(build.record)
    for pair in filter(None, wanted.get("stages", "").split(", ")):
        name, _, result = pair.rpartition("=")
        assert found[name] == result, name
    assert wanted.get("holds", "") in "\n".join(lines)


def test_cells_that_are_left(run):
    path = [p for p in GOOD if p.stem == "matrix"][0]
    build, lines = run(path, choice=Choice(axes={"OS": "hurd"}))
    assert build.result == "SUCCESS"
    assert [line for line in lines if line.startswith("say ")] == [
        "say hurd-deb", "say test of hurd-deb"]
    build, lines = run(path, choice=Choice(["Test"], {"FORMAT": "rpm"}))
    assert [line for line in lines if line.startswith("say ")] == ["say test of linux-rpm"]


def test_what_is_archived(run):
    build, _ = run([p for p in GOOD if p.stem == "files"][0])
    kept = [str(path.relative_to(run.folder / "archive"))
            for path in sorted((run.folder / "archive").rglob("*.deb"))]
    assert kept == ["out/a.deb", "out/deep/b.deb"]
    prints = json.loads((run.folder / "fingerprints.json").read_text())
    # sha256sum of "1\n"
    assert prints["out/a.deb"] == (
        "4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865")


@pytest.mark.parametrize("name, result, previous, expected", [
    ("always", "FAILURE", None, True), ("cleanup", "ABORTED", "SUCCESS", True),
    ("changed", "SUCCESS", None, True), ("changed", "SUCCESS", "SUCCESS", False),
    ("changed", "UNSTABLE", "FAILURE", True),
    ("fixed", "SUCCESS", "UNSTABLE", True), ("fixed", "SUCCESS", "ABORTED", False),
    ("fixed", "UNSTABLE", "FAILURE", False), ("fixed", "SUCCESS", None, False),
    ("regression", "UNSTABLE", "SUCCESS", True), ("regression", "FAILURE", "UNSTABLE", True),
    ("regression", "FAILURE", "FAILURE", False), ("regression", "FAILURE", None, False),
    ("regression", "SUCCESS", "FAILURE", False),
    ("aborted", "ABORTED", None, True), ("aborted", "FAILURE", None, False),
    ("failure", "FAILURE", None, True), ("failure", "UNSTABLE", None, False),
    ("unstable", "UNSTABLE", None, True), ("unstable", "SUCCESS", None, False),
    ("success", "SUCCESS", None, True), ("unsuccessful", "ABORTED", None, True),
    ("unsuccessful", "SUCCESS", None, False)])
def test_conditions_of_post(name, result, previous, expected):
    assert due(name, result, previous) is expected


@pytest.mark.parametrize("pattern, names", [
    ("*.xml", ["a.xml"]), ("**/*.xml", ["a.xml", "x/b.xml", "x/y/c.xml"]),
    ("x/", ["x/b.xml", "x/d.txt", "x/y/c.xml"]), ("x/**", ["x/b.xml", "x/d.txt", "x/y/c.xml"]),
    ("*/?.xml", ["x/b.xml"]), ("x/**/c.xml, a.*", ["a.xml", "x/y/c.xml"]), ("y/*", []),
    ("", ["a.xml", "x/b.xml", "x/d.txt", "x/y/c.xml"]), ("a+xml", [])])
def test_ant_patterns(tmp_path, pattern, names):
    for name in ("a.xml", "x/b.xml", "x/d.txt", "x/y/c.xml", ".git/z.xml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert files.matching(str(tmp_path), pattern) == names


# ---- our own -------------------------------------------------------------------------------------

STAGE = """#!/bin/sh
# Stands for ci/stage: notes what it was asked for, leaves what the real one leaves, and fails where
# told to.
echo "$*" >> "$CALLS"
mkdir -p build/reports build/deb build/rpm/RPMS
echo '<testsuite><testcase name="a"/></testsuite>' > "build/reports/$1.xml"
case $1 in
  deb) rm build/deb/*
    for one in deb dsc orig.tar.gz debian.tar.xz buildinfo; do echo > build/deb/a.$one; done
    echo > "build/deb/a_$CELL_ARCH.deb" ;;
  images) echo images of build/deb/* >> "$CALLS" ;;
  rpm) rm -f build/rpm/RPMS/* && echo > "build/rpm/RPMS/a.$CELL_ARCH.rpm" ;;
  # What is in the workspace beside them is published by nobody.
  manifest) mkdir -p "$(dirname "$3")" && echo '{}' > "$3"
    touch build/deb/stale.deb build/rpm/RPMS/stale.rpm ;;
  publish) find build/deb build/rpm -name '*.deb' -o -name '*.rpm' | sort >> "$CALLS" ;;
  benchmark) mkdir -p "$3" && echo '{}' > "$3/benchmark-mlp.json" ;;
  slurm) for rank in 0 1; do echo '{}' > build/reports/benchmark-slurm-$rank.json; done ;;
  # Suites of a build before, then of this one, where a known failure is no failure.
  smoke) mkdir -p build/reports/stack/stack/suites
    echo '<testsuite/>' > build/reports/stack/stack/suites/h-stale.xml ;;
  stack) mkdir -p "$3/stack/suites" && echo '{}' > "$3/stack/manifest-h.json"
    echo '<testsuite><testcase name="b"/><testcase name="c"><skipped/></testcase></testsuite>' \
      > "$3/stack/suites/h-low.xml"
    echo well > "$3/stack/suites/h-low.log" ;;
esac
[ "$1" != "${FAILING:-}" ]
"""


@pytest.fixture
def pipeline(run, tmp_path, monkeypatch):
    """Our Jenkinsfile on such a stage: (build, what was called)."""
    (run.source / "ci").mkdir()
    (run.source / "ci/stage").write_text(STAGE)
    (run.source / "ci/stage").chmod(0o755)
    calls = tmp_path / "calls"

    def go(failing="", labels="deb x86_64 root publish", **parameters):
        monkeypatch.setenv("CALLS", str(calls))
        monkeypatch.setenv("FAILING", failing)
        calls.write_text("")
        build, _ = run(OURS, parameters, labels=("linux", *labels.split()))
        return build, calls.read_text().splitlines()

    return go


CHECK = ["setup", "build", "unit", "lint", "proofs", "packaging", "site",
         "lint-site"]
CHOICE = "-e stack__variant=%s stack__suite=%s"
REPORTS = "--reports build/reports/stack-x86_64-deb "


def test_ours_in_short(pipeline):
    build, calls = pipeline(ISA="baseline")
    assert build.result == "SUCCESS"
    choice = CHOICE % ("patched", "short")
    assert calls == CHECK + [
        "build --isa-baseline=x86-64", "smoke", "deb",
        "manifest --output build/reports/x86_64-deb-x86-64/manifest.json",
        "fetch " + REPORTS + choice, "stack " + REPORTS + "--tags all " + choice,
        "manifest --output build/reports/stack-x86_64-deb/manifest.json"]
    found = verdicts(build.record)
    assert found["Packages/Matrix - CELL_ARCH = 'aarch64', CELL_FORMAT = 'deb', "
                 "CELL_ISA = 'armv8-a'"] == "skipped"
    assert found["Long"] == found["Publish"] == "skipped"


def test_ours_in_long(pipeline, run):
    build, calls = pipeline(SUITE="long", VARIANT="upstream")
    assert build.result == "SUCCESS"
    assert calls[len(CHECK):] == [
        "build --isa-baseline=x86-64", "smoke", "deb",
        "manifest --output build/reports/x86_64-deb-x86-64/manifest.json",
        "build --isa-baseline=x86-64-v2", "smoke",
        "manifest --output build/reports/x86_64-deb-x86-64-v2/manifest.json",
        "fetch " + REPORTS + CHOICE % ("upstream", "long"),
        "stack " + REPORTS + "--tags all " + CHOICE % ("upstream", "long"),
        "benchmark --reports build/reports/stack-x86_64-deb",
        "manifest --output build/reports/stack-x86_64-deb/manifest.json",
        "slurm", "two-nodes", "images",
        "images of " + " ".join("build/deb/a" + suffix for suffix in (
            ".buildinfo", ".deb", ".debian.tar.xz", ".dsc", ".orig.tar.gz", "_x86_64.deb")),
        "patches"]
    kept = {str(path.relative_to(run.folder / "archive"))
            for path in (run.folder / "archive").rglob("*") if path.is_file()}
    assert {"build/deb/a.deb", "build/reports/stack-x86_64-deb/benchmark-mlp.json",
            "build/reports/benchmark-slurm-0.json", "build/reports/benchmark-slurm-1.json",
            "build/reports/stack-x86_64-deb/stack/manifest-h.json",
            "build/reports/stack-x86_64-deb/stack/suites/h-low.log",
            "build/reports/stack-x86_64-deb/manifest.json",
            "build/reports/x86_64-deb-x86-64/manifest.json"} <= kept


def test_ours_measures_no_part_of_a_stack(pipeline):
    build, calls = pipeline(SUITE="long", ISA="baseline", COMPONENTS="fftw,hdf5")
    assert build.result == "SUCCESS"
    assert "stack " + REPORTS + "--tags fftw,hdf5 " + CHOICE % ("patched", "long") in calls
    assert not [call for call in calls if call.startswith("benchmark")]


def test_ours_reads_the_suites_of_components_that_ran(pipeline, run):
    build, _ = pipeline(ISA="baseline")
    read_ = [path.name for path in (run.folder / "junit").rglob("suites/*")]
    assert read_ == ["h-low.xml"] and build.tests[2] == 1


def test_ours_reads_the_suites_though_one_failed(pipeline, run):
    build, _ = pipeline("stack", ISA="baseline")
    assert build.result == "FAILURE"
    assert [path.name for path in (run.folder / "junit").rglob("suites/*")] == ["h-low.xml"]
    assert (run.folder / "archive/build/reports/stack-x86_64-deb/stack/suites/h-low.log").exists()


def test_ours_keeps_the_stack_of_each_cell(pipeline, run):
    build, _ = pipeline(ISA="baseline", labels="deb rpm x86_64 aarch64")
    assert build.result == "SUCCESS"
    kept = (run.folder / "archive/build/reports").glob("stack-*/stack/manifest-h.json")
    assert sorted(path.parent.parent.name for path in kept) == [
        "stack-aarch64-deb", "stack-aarch64-rpm", "stack-x86_64-deb", "stack-x86_64-rpm"]


@pytest.mark.parametrize("chosen, names", [
    ({}, ["deb/a.deb", "deb/a_aarch64.deb", "deb/a_x86_64.deb", "rpm/RPMS/a.aarch64.rpm",
          "rpm/RPMS/a.x86_64.rpm"]),
    ({"ARCH": "aarch64"}, ["deb/a.deb", "deb/a_aarch64.deb", "rpm/RPMS/a.aarch64.rpm"]),
    ({"ARCH": "x86_64", "FORMAT": "rpm", "ISA": "baseline"}, ["rpm/RPMS/a.x86_64.rpm"])],
    ids=["all", "aarch64", "one"])
def test_ours_publishes_what_was_built_and_nothing_else(pipeline, chosen, names):
    build, calls = pipeline(labels="deb rpm x86_64 aarch64 publish", CHANNEL="nightly", **chosen)
    assert build.result == "SUCCESS"
    place = calls.index("publish -e repo__channel=nightly") + 1
    assert calls[place:place + len(names)] == ["build/" + name for name in names]
    assert calls[place + len(names)].startswith("fetch ")


@pytest.mark.parametrize("failing, parameters", [
    ("lint", {"CHANNEL": "nightly"}), ("smoke", {"CHANNEL": "nightly"}),
    ("", {"CHANNEL": "release", "ISA": "newer"}), ("", {"CHANNEL": "none"})],
    ids=["check", "package", "newer", "none"])
def test_ours_publishes_neither_what_failed_nor_unasked(pipeline, failing, parameters):
    build, calls = pipeline(failing, **dict({"ISA": "baseline"}, **parameters))
    assert verdicts(build.record)["Publish"] == "skipped"
    assert not [call for call in calls if call.startswith("publish")]


def test_ours_goes_on_when_nothing_could_be_published(pipeline):
    build, calls = pipeline("publish", ISA="baseline", ARCH="x86_64", FORMAT="deb",
                            CHANNEL="release")
    assert build.result == "FAILURE" and "publish -e repo__channel=release" in calls
    assert verdicts(build.record)["Publish/Sign and publish"] == "FAILURE"
    assert "stack " + REPORTS + "--tags all " + CHOICE % ("patched", "short") in calls


def test_ours_tells_all_when_a_check_fails(pipeline):
    """The checks after a failed one run, and so do the packages."""
    build, calls = pipeline("unit", ISA="baseline")
    assert build.result == "FAILURE" and calls[:len(CHECK)] == CHECK
    assert "stack " + REPORTS + "--tags all " + CHOICE % ("patched", "short") in calls
    found = verdicts(build.record)
    assert found["Check/Unit tests"] == "FAILURE" and found["Check/Lint"] == "SUCCESS"


@pytest.mark.parametrize("failing", ["fetch", "stack", "benchmark"])
def test_ours_tries_cluster_images_and_patches_though_a_stack_failed(pipeline, failing):
    build, calls = pipeline(failing, SUITE="long", ISA="baseline")
    assert build.result == "FAILURE"
    assert {"slurm", "two-nodes", "images", "patches"} <= set(calls)
    found = verdicts(build.record)
    cell = "Stack/Matrix - CELL_ARCH = 'x86_64', CELL_FORMAT = 'deb'"
    stage = {"fetch": "Fetch", "stack": "Build the stack", "benchmark": "Benchmark"}[failing]
    assert found[cell + "/" + stage] == found[cell] == found["Stack"] == "FAILURE"
    assert found["Long/Slurm"] == found["Long/Patches"] == "SUCCESS"


def test_ours_stops_where_nothing_was_built(pipeline):
    build, calls = pipeline("build", ISA="baseline")
    assert build.result == "FAILURE" and calls == ["setup", "build"]
    assert verdicts(build.record)["Packages"] == "skipped"


def test_ours_keeps_the_manifest_of_a_failed_cell(pipeline, run):
    build, calls = pipeline("smoke", ISA="baseline")
    assert build.result == "FAILURE" and "deb" not in calls
    assert (run.folder / "archive/build/reports/x86_64-deb-x86-64/manifest.json").exists()


def steps_of(stages):
    for stage in stages:
        todo = list(stage.steps or [])
        todo += [step for steps in stage.post.values() for step in steps]
        if stage.matrix:
            todo += [step for steps in stage.matrix.post.values() for step in steps]
            yield from steps_of(stage.matrix.stages)
        while todo:
            step = todo.pop()
            todo += step.block
            yield step
        yield from steps_of(stage.stages + stage.parallel)


def test_every_shell_step_of_ours_is_a_stage(trees):
    listed = subprocess.run([str(TOP / "ci/stage"), "--list"], stdout=subprocess.PIPE, check=True,
                            universal_newlines=True).stdout
    names = {line.split()[0] for line in listed.splitlines()} | {'"$CELL_FORMAT"'}
    scripts = [step.arguments["script"]["value"]
               for step in steps_of(read(trees, OURS).stages) if step.name == "sh"]
    assert len(scripts) > 15
    for script in scripts:
        words = script.split()
        assert words[0] == "ci/stage" and words[1] in names, script


# ---- the program ---------------------------------------------------------------------------------


def program(*words, **more):
    if shutil.which("groovy") is None:
        pytest.skip("groovy is not installed")
    return subprocess.run([str(PROGRAM), *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, check=False, **more)


def test_the_plan_is_the_expected_one(trees):
    expected = (TOP / "ci/expected/pipeline.txt").read_text()
    assert plan(read(trees, OURS)) == expected, "ci/lint --fix pipeline"


def test_wrong_use(trees):
    """Before anything runs: a parameter, a choice, a stage, a cell that there is not."""
    path = importlib.machinery.SourceFileLoader("run_jenkinsfile", str(PROGRAM))
    loaded = importlib.util.module_from_spec(importlib.util.spec_from_loader(path.name, path))
    path.exec_module(loaded)
    ours = read(trees, OURS)
    assert loaded.parameters(ours, {"SUITE": "long"})["SUITE"] == "long"
    for given, text in (({"STATE": "1"}, "there is no parameter 'STATE'; there are ARCH, FORMAT"),
                        ({"SUITE": "huge"}, "SUITE is 'huge'; it may be short, long")):
        with pytest.raises(syntax.Refused, match=text):
            loaded.parameters(ours, given)
    for words, text in (
            (["--only", "Bild"], "there is no stage 'Bild'; there are Check, Set up, Unit tests"),
            (["--axis", "CELL_ARCH=s390x"], "there is no cell with CELL_ARCH=s390x; there are "
             "CELL_ARCH: x86_64, aarch64")):
        with pytest.raises(syntax.Refused, match=text):
            loaded.known_names(ours, loaded.parsed(words))


def test_builds_are_kept_and_a_second_knows_the_first(tmp_path):
    """The program itself: checkout with uncommitted changes, exit status, result.json."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "word").write_text("committed\n")
    commit(source)
    (source / "word").write_text("changed\n")
    path = tmp_path / "Jenkinsfile"
    path.write_text("pipeline {\n  agent any\n  parameters { string(name: 'STATUS') }\n"
                    "  stages { stage('A') { steps { sh 'cat word; exit $STATUS' } } }\n"
                    "  post { fixed { echo 'it is fixed' } }\n}\n")
    where = (path, "--source", source, "--work-dir", tmp_path / "work")
    done = program(*where, "-p", "STATUS=4")
    assert done.returncode == 1 and "\nchanged\n" in done.stdout
    assert "script returned exit code 4" in done.stdout and "Finished: FAILURE" in done.stdout
    done = program(*where, "-p", "STATUS=0", "--ref", "HEAD")
    assert done.returncode == 0 and "\ncommitted\n" in done.stdout
    assert "it is fixed" in done.stdout
    kept = json.loads((tmp_path / "work/builds/2/result.json").read_text())
    assert (kept["result"], kept["previous"], kept["stages"][0]["name"]) == (
        "SUCCESS", "FAILURE", "A")


def test_ctrl_c_aborts_and_cleans_up(tmp_path):
    """The step's processes end, post runs, the result is ABORTED."""
    if shutil.which("groovy") is None:
        pytest.skip("groovy is not installed")
    source = tmp_path / "source"
    source.mkdir()
    (source / "x").write_text("")
    commit(source)
    path = tmp_path / "Jenkinsfile"
    path.write_text("pipeline {\n  agent any\n"
                    "  stages { stage('A') { steps { sh 'echo $$ > ../pid; exec sleep 600' } } }\n"
                    "  post { aborted { sh 'echo cleaned up' } }\n}\n")
    process = subprocess.Popen([str(PROGRAM), str(path), "--source", str(source), "--work-dir",
                                str(tmp_path / "work")], stdout=subprocess.PIPE,
                               universal_newlines=True)
    noted = tmp_path / "work/pid"
    while process.poll() is None and not (noted.exists() and noted.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output = process.communicate()[0]
    assert process.returncode == 1, output
    assert "\ncleaned up\n" in output and "Finished: ABORTED" in output
    assert not os.path.exists("/proc/%s" % noted.read_text().strip())
