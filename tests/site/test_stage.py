# SPDX-License-Identifier: Apache-2.0
"""ci/stage: which stages run, what they get, what is reported; on a tree whose programs only note
how they were called."""

import importlib.machinery
import importlib.util
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "ci/site"), str(TOP / "gen/tools"), str(TOP)]
import host_network  # noqa: E402  (the path must be set first)
import host_slurm  # noqa: E402
import junit  # noqa: E402
import slurm_check  # noqa: E402
import stages  # noqa: E402
from gen.deps import BY_NAME, of_uses  # noqa: E402

NINJA = """#!/bin/sh
echo "ninja $*" >> "$CALLS"
shift 2
mkdir -p reports
case ${1:-all} in
  test) printf '<testsuite><testcase name="a"/><testcase name="b"><failure/></testcase>%s' \\
    '</testsuite>' > "$BUILD/reports/unit.xml" ;;
  check-quick) echo '<testsuite><testcase name="a"/></testsuite>' > "$BUILD/reports/proofs.xml" ;;
  smoke) echo "trained"; [ -z "${SLOW:-}" ] || { echo $$ > "$SLOW"; exec sleep 600; }
    [ -z "${TIDY:-}" ] || { trap 'sleep 1; echo tidied >> "$CALLS"; exit 9' INT TERM
      echo $$ > "$TIDY"; while :; do sleep 0.1; done; } ;;
esac
case " $FAILING " in *" ${1:-all} "*) echo "the words of ${1:-all}"; exit 3 ;; esac
"""


@pytest.fixture
def tree(tmp_path):
    """stage(words, failing) -> (exit status, output, calls) on such a tree."""
    top = tmp_path / "tree"
    for name in ("ci/stage", "ci/test", "ci/smoke", "ci/setup.sh", "ci/site/stages.py",
                 "ci/site/stage_run.py", "gen/tools/junit.py", "gen/tools/process_group.py"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / name, top / name)
    calls = tmp_path / "calls"
    (top / "configure.py").write_text(
        "import os, sys\nopen(os.environ['CALLS'], 'a').write('configure %s\\n' % sys.argv[1:])\n"
        "os.makedirs(os.environ['BUILD'] + '/gen', exist_ok=True)\n"
        "for n in ('gen/configuration.json', 'build.ninja'):\n"
        "    open(os.environ['BUILD'] + '/' + n, 'w')\n"
        "sys.exit(' configure ' in os.environ['FAILING'])\n")
    (top / "gen/tools/packages.py").write_text(
        "import os, sys\nopen(os.environ['CALLS'], 'a').write('packages %s\\n' % sys.argv[1:])\n"
        "sys.exit(' packages ' in os.environ['FAILING'])\n")
    (top / "ci/lint").write_text("#!/bin/sh\necho \"lint $*\" >> \"$CALLS\"\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ninja").write_text(NINJA)
    (programs / "ansible-playbook").write_text(
        "#!/bin/sh\necho \"ansible $* $ANSIBLE_CALLBACKS_ENABLED\" >> \"$CALLS\"\n"
        "mkdir -p \"$JUNIT_OUTPUT_DIR\"\n"
        "echo '<testsuites><testsuite><testcase name=\"t\"/></testsuite></testsuites>' "
        "> \"$JUNIT_OUTPUT_DIR/site-1.xml\"\n")
    for path in (top / "ci/lint", programs / "ninja", programs / "ansible-playbook"):
        path.chmod(0o755)

    def environment(failing=""):
        return dict(os.environ, CALLS=str(calls), BUILD=str(top / "build"),
                    FAILING=" %s " % failing, PATH="%s:%s" % (programs, os.environ["PATH"]))

    def run(*words, failing="", program="stage"):
        calls.write_text("")
        done = subprocess.run([str(top / "ci" / program), *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True, check=False,
                              env=environment(failing), cwd=tmp_path)
        return done.returncode, done.stdout, calls.read_text().splitlines()

    run.top, run.build, run.environment = top, top / "build", environment
    return run


def ninja_targets(calls):
    return [call.split()[3] if len(call.split()) > 3 else "all" for call in calls
            if call.startswith("ninja")]


def test_test_is_what_must_hold(tree):
    """All of it in order, packages of all stages first; ci/test is the same."""
    status, output, calls = tree("test")
    assert status == 0 and output.rstrip().endswith("== All passed")
    assert ninja_targets(calls) == ["all", "test", "check-quick"]
    assert "packages ['--uses', 'build,feature,lint,proof,run,test', '--missing']" in calls
    assert calls[1] == "configure ['--build-dir=%s']" % tree.build
    assert [call for call in calls if call.startswith("lint")] == [
        "lint --build-dir %s --junit %s/reports/lint.xml --use lint" % (tree.build, tree.build)]
    again = tree(program="test")
    assert again[0] == 0 and ninja_targets(again[2]) == ninja_targets(calls)


def test_smoke_installs_little_and_says_where_the_module_is(tree):
    status, output, calls = tree(program="smoke")
    assert status == 0 and ninja_targets(calls) == ["all", "smoke"]
    assert calls[0] == "packages ['--uses', 'build,feature,run', '--missing']"
    assert "PYTHONPATH=%s/python" % tree.build in output


def test_commands_that_are_printed_can_be_copied(tree, tmp_path):
    build = tmp_path / "my build"
    output = tree("--build-dir", str(build), "smoke")[1]
    assert "\n  '%s'/python3 -c " % build in output and "PYTHONPATH='%s'/python " % build in output


def test_options_configure_and_are_kept(tree):
    _, _, calls = tree("--isa-baseline=x86-64-v2", program="test")
    assert calls[1] == "configure ['--build-dir=%s', '--isa-baseline=x86-64-v2']" % tree.build
    _, _, calls = tree("unit")
    assert calls[1] == "configure ['--regenerate']"
    _, _, calls = tree("unit", "--", "--werror")
    assert calls[1] == "configure ['--build-dir=%s', '--werror']" % tree.build


def test_options_of_a_stage_of_its_own(tree):
    _, _, calls = tree("lint", "flake8", "shell")
    assert calls[1].startswith("configure ['--build-dir")
    assert calls[-1].endswith("lint.xml flake8 shell")


def test_what_sites_alone_need_is_installed_by_their_stages(tree):
    _, _, calls = tree("packaging")
    assert calls[0] == "packages ['--uses', 'build,feature,proof,run', '--missing']"
    assert ninja_targets(calls) == ["all", "check-packaging"]
    _, _, calls = tree("site")
    assert calls[0] == "packages ['--uses', 'build,feature,run,site,test', '--missing']"
    assert ninja_targets(calls) == ["all", "check-site"]
    _, _, calls = tree("lint-site")
    assert calls[0] == "packages ['--uses', 'build,feature,lint,run,site', '--missing']"
    assert calls[-1].endswith("lint-site.xml --use site")


def test_every_stage_runs_though_one_failed(tree):
    status, output, calls = tree("test", failing="test check-quick")
    assert status == 1 and "\n== Failed: unit proofs\n" in output
    assert [call for call in calls if call.startswith("lint")]
    assert re.search(r"^unit +FAILED +[\d.]+ s  1 passed, 1 failed, 0 skipped; exit status 3$",
                     output, re.MULTILINE)
    assert re.search(r"^lint +ok", output, re.MULTILINE)


@pytest.mark.parametrize("failing, stage, ran", [
    ("packages", "setup", []), ("configure", "build", []), ("all", "build", ["all"])])
def test_nothing_else_runs_without_a_build(tree, failing, stage, ran):
    status, output, calls = tree("test", failing=failing)
    assert status == 1 and "== Failed: %s\n" % stage in output
    assert ninja_targets(calls) == ran
    assert re.search(r"^unit +not run$", output, re.MULTILINE)


def test_skip(tree):
    status, _, calls = tree("--skip", "setup,lint", "test")
    assert status == 0 and not any(call.startswith(("packages", "lint")) for call in calls)


def test_reports(tree):
    """A program's own report is kept; one is written where there is none, with the words of it."""
    tree("test", failing="test")
    tree("packaging", failing="check-packaging")
    reports = tree.build / "reports"
    assert junit.counts(str(reports / "unit.xml")) == (1, 1, 0)
    assert junit.counts(str(reports / "proofs.xml")) == (1, 0, 0)
    assert junit.counts(str(reports / "setup.xml")) == (1, 0, 0)
    case = ElementTree.parse(reports / "packaging.xml").getroot().find(".//testcase")
    assert (case.get("classname"), case.get("name")) == ("ci.stage", "packaging")
    assert case.find("failure").get("message") == "exit status 3"
    assert "the words of check-packaging" in case.find("failure").text
    assert "the words of check-packaging" in (reports / "packaging.log").read_text()


def test_a_failure_beside_a_clean_report_is_in_the_report(tree):
    tree("proofs", failing="check-quick")
    path = tree.build / "reports/proofs.xml"
    assert junit.counts(str(path)) == (1, 1, 0)
    assert "exit status 3" in path.read_text()


def test_a_report_of_an_earlier_run_is_not_believed(tree):
    tree("unit")
    (tree.build / "reports/site.xml").write_text("<testsuite/>")
    tree("site")
    assert junit.counts(str(tree.build / "reports/site.xml")) == (1, 0, 0)


def test_the_last_time_is_told(tree):
    tree("smoke")
    path = tree.build / "reports/times.json"
    known = json.loads(path.read_text())
    assert set(known) == {"setup", "build", "smoke"}
    path.write_text(json.dumps(dict(known, smoke=754.2)))
    assert "== Training the smoke networks (12 min 34 s the last time)" in tree("smoke")[1]


def test_a_list_of_all(tree):
    status, output, _ = tree("--list")
    assert status == 0
    assert [line.split()[0] for line in output.splitlines()] == [s.name for s in stages.STAGES]
    assert all(len(line.split()) > 3 for line in output.splitlines())


@pytest.mark.parametrize("stage", stages.STAGES, ids=lambda stage: stage.name)
def test_every_stage_explains_itself(tree, stage):
    status, output, calls = tree(stage.name, "--help")
    assert status == 0 and calls == []
    assert stage.help in output and "options:" in output


def test_unknown_stage(tree):
    status, output, calls = tree("tset")
    assert status == 2 and calls == []
    assert "unknown stage 'tset'; there are setup, build, unit, lint" in output


@pytest.mark.parametrize("stage, missing", [
    ("stack", "ansible/site.yml is not there: this tree cannot build the stack yet"),
    ("fetch", "ansible/site.yml is not there"), ("images", "ci/image is not there"),
    ("slurm", "ci/hosts is not there"),
    ("benchmark", "there is no manifest of a stack of this machine in "),
    ("patches", "gen/site/patches_proof.py is not there"),
    ("publish", "there is no package in ")])
def test_what_the_tree_lacks_is_said(tree, stage, missing):
    status, output, _ = tree(stage)
    assert status == 2 and "ci/stage %s: %s" % (stage, missing) in output
    assert re.search(r"^%s +refused" % stage, output, re.MULTILINE)


def test_the_stack_is_ansible_with_a_report(tree):
    (tree.top / "ansible").mkdir()
    (tree.top / "ansible/site.yml").write_text("[]\n")
    (tree.top / "ansible/ansible.cfg").write_text(
        "[defaults]\ncallbacks_enabled = ansible.posix.profile_tasks\n")
    status, output, calls = tree("stack", "-i", "hosts.yml", "--tags", "fftw")
    assert status == 0, output
    place = 'ansible ansible/site.yml -e {"stack__reports": "%s"} '
    assert calls[-1] == (place % (tree.top / "build/stack") +
                         "-i hosts.yml --tags fftw ansible.posix.profile_tasks,junit")
    assert junit.counts(str(tree.build / "reports/stack.xml")) == (1, 0, 0)
    assert not (tree.build / "reports/stack.parts").exists()
    assert tree("fetch", "-v", "--reports", str(tree.top / "a cell"))[2][-1].startswith(
        place % (tree.top / "a cell/stack") + "--tags fetch -v ")


@pytest.mark.parametrize("folder, place", [("build/stack", ""), ("cell/stack", "cell")])
def test_the_stack_is_what_the_benchmark_measures(tree, tmp_path, folder, place):
    """The one that the last play gave to users of this machine; not what lies in the build."""
    for number, name in enumerate(("before", "now", "elsewhere")):
        environment = tmp_path / "stack/environments" / name
        path = tree.top / folder / ("manifest-%s.json" % name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"environment": str(environment)}))
        os.utime(path, (number, number))
        if name != "elsewhere":
            (environment / "bin").mkdir(parents=True)
            (environment / "bin/stack-env").write_text(
                "#!/bin/sh\necho \"%s $*\" >> \"$CALLS\"\n" % name)
            (environment / "bin/stack-env").chmod(0o755)
    where = ("--reports", str(tree.top / place)) if place else ()
    status, output, calls = tree("benchmark", *where)
    assert status == 0, output
    reports = tree.top / place if place else tree.build / "reports"
    assert calls == [
        "now treenail-bench --model=mlp --report %s/benchmark-mlp.json" % reports,
        "now treenail-bench --model=resnet50 --batch-size=4 --num-warmup-batches=2 "
        "--num-batches=10 --report %s/benchmark-resnet50.json" % reports]
    calls = tree("benchmark", *where, "--model=lstm")[2]
    assert calls == ["now treenail-bench --model=lstm --report %s/benchmark.json" % reports]


def test_what_is_published_are_the_packages_that_there_are(tree):
    """Formats without any are left out; options are handed on, and may say otherwise."""
    for name in ("deb/tiny_1_all.deb", "rpm/SPECS/tiny.spec"):
        (tree.build / name).parent.mkdir(parents=True)
        (tree.build / name).write_text("")
    status, output, _ = tree("publish")
    assert status == 2 and "ansible/repo.yml is not there: this tree cannot publish" in output
    (tree.top / "ansible").mkdir()
    (tree.top / "ansible/repo.yml").write_text("[]\n")

    def published(*words):
        status, output, calls = tree("publish", *words)
        assert status == 0, output
        first, given, rest = re.match(r"(.* -e )(\{.*?\}) ?(.*)", calls[-1]).groups()
        assert first == "ansible ansible/repo.yml --tags publish -e "
        return json.loads(given), rest

    given, rest = published("-i", "hosts.yml", "-e", "repo__channel=nightly")
    assert given == {"repo__formats": ["deb"], "repo__packages": [str(tree.build / "deb")]}
    assert rest == "-i hosts.yml -e repo__channel=nightly junit"
    (tree.build / "rpm/RPMS/noarch").mkdir(parents=True)
    (tree.build / "rpm/RPMS/noarch/tiny-1-1.noarch.rpm").write_text("")
    assert published()[0] == {"repo__formats": ["deb", "rpm"], "repo__packages": [
        str(tree.build / "deb"), str(tree.build / "rpm")]}


def test_ctrl_c_ends_the_stage_and_says_how_far_it_came(tree, tmp_path):
    noted = tmp_path / "pid"
    process = subprocess.Popen([str(tree.top / "ci/stage"), "smoke"], stdout=subprocess.PIPE,
                               universal_newlines=True,
                               env=dict(tree.environment(), SLOW=str(noted)))
    while process.poll() is None and not (noted.exists() and noted.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output = process.communicate()[0]
    assert process.returncode == 130, output
    assert re.search(r"^smoke +interrupted", output, re.MULTILINE)
    assert "== Interrupted; the same command continues" in output
    assert not os.path.exists("/proc/%s" % noted.read_text().strip())
    assert junit.counts(str(tree.build / "reports/smoke.xml")) == (0, 1, 0)


@pytest.mark.parametrize("by_terminal", [True, False])
def test_on_a_terminal_programs_may_tidy_up(tree, tmp_path, by_terminal):
    """Ctrl-C of the terminal reaches the program by itself, SIGTERM is handed on; it has time."""
    noted = tmp_path / "pid"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(str(tree.top / "ci/stage"), ["ci/stage", "smoke"],
                  dict(tree.environment(), TIDY=str(noted)))
    while not (noted.exists() and noted.read_text()):
        time.sleep(0.05)
    if by_terminal:
        os.write(terminal, b"\x03")
    else:
        os.kill(pid, signal.SIGTERM)
    output = b""
    try:
        for chunk in iter(lambda: os.read(terminal, 4096), b""):
            output += chunk
    except OSError:  # Linux says EIO when the other side is closed
        pass
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    assert status == 130, output
    assert b"== Interrupted; the same command continues" in output
    assert (tmp_path / "calls").read_text().splitlines()[-1] == "tidied"


def test_options_that_nobody_takes(tree):
    for words in (["fetch", "--help"], ["patches", "--all"], ["--skip", "build", "unit", "--x"]):
        status, output, calls = tree(*words)
        assert calls == [] and status == (0 if words[0] == "fetch" else 2)
    assert "ci/stage unit takes no options; it was given: --x" in output


def test_clean_up_runs_after_a_failure(tree):
    """ci/hosts down, though the checks on the cluster failed."""
    for name, status in (("ci/hosts", 0), ("ci/site/slurm_check.py", 5)):
        (tree.top / name).write_text("#!/bin/sh\necho \"%s $*\" >> \"$CALLS\"\nexit %d\n" % (
            name, status))
        (tree.top / name).chmod(0o755)
    status, output, calls = tree("slurm")
    assert status == 1 and "exit status 5" in output
    state = "%s/hosts-slurm" % tree.build
    assert calls[-3:] == [
        "ci/hosts up --slurm 2 --state " + state,
        "ci/site/slurm_check.py --hosts %s --treenail %s --reports %s/reports copies" % (
            state, tree.build, tree.build), "ci/hosts down --state " + state]


def test_two_nodes_takes_a_test_cluster_or_the_sites_own(tree):
    for name in ("ci/hosts", "ci/site/slurm_check.py"):
        (tree.top / name).write_text("#!/bin/sh\necho \"%s $*\" >> \"$CALLS\"\n" % name)
        (tree.top / name).chmod(0o755)
    state = "%s/hosts-two-nodes" % tree.build
    status, output, calls = tree("two-nodes")
    assert status == 0 and calls[-3:] == [
        "ci/hosts up --slurm 2 --state " + state,
        "ci/site/slurm_check.py --hosts %s --treenail %s --reports %s/reports together" % (
            state, tree.build, tree.build), "ci/hosts down --state " + state], output
    status, output, calls = tree("--skip", "setup,build", "two-nodes", "--treenail", "/opt/stack")
    assert status == 0 and calls == [
        "ci/site/slurm_check.py --reports %s/reports --treenail /opt/stack together" % tree.build]


def test_needs_and_parts_are_stages():
    for stage in stages.STAGES:
        assert set(stage.needs + stage.parts) <= set(stages.BY_NAME), stage.name
        assert bool(stage.commands) != bool(stage.parts), stage.name
    names = [stage.name for stage in stages.parts_of([stages.BY_NAME["nightly"]])]
    assert len(names) == len(set(names)) and names[:2] == ["setup", "build"]
    assert set(names) == {stage.name for stage in stages.STAGES if stage.commands} - {"publish"}


class Asked(Exception):
    """A program was asked for: that is all the tests below want of its caller."""


def installed_by(name):
    """The rows of gen/deps.py whose packages are there when the stage runs."""
    found = stages.parts_of([stages.BY_NAME[name]])
    return {row.name for row in of_uses([use for stage in found for use in stage.uses])}


def test_the_stage_slurm_installs_its_programs(monkeypatch):
    asked = set()

    def which(program, path=None):
        asked.add(program)
        raise Asked

    monkeypatch.setattr(host_slurm, "need", lambda _, dependency: asked.add(dependency))
    monkeypatch.setattr(host_network, "need", lambda _, dependency: which(dependency))
    monkeypatch.setattr(slurm_check.shutil, "which", which)
    host_slurm.check_programs()
    for caller in (lambda: host_network.Network(None, "", 3),
                   lambda: slurm_check.by_mpirun(None)):
        with pytest.raises(Asked):
            caller()
    rows = {"openmpi" if name == BY_NAME["openmpi"].program else name for name in asked}
    assert len(rows) == 4 and rows <= installed_by("slurm")


def test_the_stage_images_installs_its_programs(monkeypatch):
    path = importlib.machinery.SourceFileLoader("image_program", str(TOP / "ci/image"))
    loaded = importlib.util.module_from_spec(importlib.util.spec_from_loader(path.name, path))
    path.exec_module(loaded)
    asked = set()

    def need(root, *programs):
        asked.update(programs)
        raise Asked

    monkeypatch.setattr(loaded, "need", need)
    # What the stage calls, and what is done with the image that it leaves.
    for command in (loaded.build, loaded.verify, loaded.export):
        with pytest.raises(Asked):
            command(None, None)
    assert asked == {"mmdebstrap", "umoci", "skopeo"} and asked <= installed_by("images")
    assert set(loaded.image_run.RUNTIMES) <= installed_by("images")


@pytest.mark.parametrize("name", ["fetch", "stack", "publish"])
def test_a_play_finds_on_a_bare_machine_what_it_is_run_with(name):
    """Root becomes the builder by sudo, unless a site says otherwise."""
    with open(TOP / "ansible/roles/python/tasks/bootstrap.yml", encoding="utf-8") as stream:
        method, = re.findall(r"ansible_become_method \| default\('(\w+)'\) }}", stream.read())
    assert {method, "ansible-core"} <= installed_by(name)


def test_the_stage_patches_installs_its_programs():
    assert {"c++", "cmake", "binutils", "aarch64-compiler", "patch"} <= installed_by("patches")
