# SPDX-License-Identifier: Apache-2.0
"""ci/jobs by jenkins-job-builder: as expected, with sound shell, with the pipeline's parameters."""

import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "ci/jenkins"), str(TOP / "gen/tools")]
import jobs  # noqa: E402  (the path must be set first)
import model  # noqa: E402
import syntax  # noqa: E402

pytestmark = pytest.mark.skipif(
    shutil.which("jenkins-jobs") is None or shutil.which("shellcheck") is None,
    reason="jenkins-job-builder or shellcheck is not installed")


@pytest.fixture(scope="module")
def ours():
    return jobs.rendered(str(TOP / "ci/jobs"))


def test_the_jobs_there_are(ours):
    assert sorted(ours) == ["treenail", "treenail.bisect", "treenail.nightly-patched",
                            "treenail.nightly-upstream", "treenail.pipeline",
                            "treenail.two-nodes"]
    assert ElementTree.fromstring(ours["treenail"]).tag == (
        "com.cloudbees.hudson.plugins.folder.Folder")


def test_they_are_the_expected_ones(ours):
    made_with = (TOP / "ci/expected/jobs/version").read_text().strip()
    if made_with != jobs.version():
        pytest.skip("the expectation is of jenkins-job-builder " + made_with)
    assert jobs.differences(ours, str(TOP / "ci/expected/jobs")) == [], "ci/lint --fix jobs"


def test_the_pipeline_asks_for_the_parameters_of_the_jenkinsfile(ours):
    path = str(TOP / "ci/Jenkinsfile")
    try:
        declared = model.read(syntax.tree(syntax.trees([path])[0], path), path).parameters
    except syntax.Missing as reason:
        pytest.skip(str(reason))
    root = ElementTree.fromstring(ours["treenail.pipeline"])
    found = {}
    for kind, short in (("StringParameterDefinition", "string"),
                        ("ChoiceParameterDefinition", "choice")):
        for node in root.iter("hudson.model." + kind):
            choices = [text.text for text in node.iter("string")]
            found[node.findtext("name")] = (short, node.findtext("description"), (
                choices[0] if choices else node.findtext("defaultValue")), choices)
    assert found == {name: (row["kind"], row["description"], row["default"],
                            row.get("choices", [])) for name, row in declared.items()}


def test_the_pipeline_reads_our_jenkinsfile_at_ref(ours):
    root = ElementTree.fromstring(ours["treenail.pipeline"])
    definition = root.find("definition")
    assert definition.findtext("scriptPath") == "ci/Jenkinsfile"
    assert definition.findtext("lightweight") == "false"
    assert [node.text for node in definition.iter("name") if node.text.startswith("$")] == [
        "${REF}"]


def test_the_documented_command_renders_them(ours, tmp_path):
    page = (TOP / "docs/site/jenkins.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if line.startswith("jenkins-jobs test"))
    shutil.copytree(TOP / "ci/jobs", tmp_path / "ci/jobs")
    shutil.copy(TOP / "ci/jobs/site.yaml", tmp_path / "my-site.yaml")
    for _ in range(2):  # to look again after a change
        done = subprocess.run(["sh", "-c", line], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, done.stdout
    made = {path.parent.relative_to(tmp_path / "rendered").as_posix().replace("/", ".")
            for path in (tmp_path / "rendered").rglob("config.xml")}
    assert made == set(ours)


def handed_over(job):
    """The parameters that a nightly job gives the pipeline."""
    text = "".join(node.text or "" for node in ElementTree.fromstring(job).iter("properties"))
    return dict(line.split("=") for line in text.split())


def test_a_site_says_which_nightly_publishes(tmp_path, ours):
    """None, unless it does; here the one of one variant."""
    names = ["treenail.nightly-patched", "treenail.nightly-upstream"]
    assert [handed_over(ours[name])["CHANNEL"] for name in names] == ["none", "none"]
    text = (TOP / "ci/jobs/site.yaml").read_text()
    (tmp_path / "site.yaml").write_text(text.replace("- patched\n",
                                                     "- patched: {channel: nightly}\n"))
    made = jobs.rendered("%s:%s" % (TOP / "ci/jobs/jobs.yaml", tmp_path / "site.yaml"))
    assert [handed_over(made[name])["CHANNEL"] for name in names] == ["nightly", "none"]


def test_what_the_nightly_runs_hand_over_is_allowed(ours):
    """Of both, against the choices of the pipeline."""
    root = ElementTree.fromstring(ours["treenail.pipeline"])
    choices = {node.findtext("name"): [text.text for text in node.iter("string")]
               for node in root.iter("hudson.model.ChoiceParameterDefinition")}
    for name in ("treenail.nightly-patched", "treenail.nightly-upstream"):
        nightly = ElementTree.fromstring(ours[name])
        pairs = handed_over(ours[name])
        assert sorted(pairs) == ["ARCH", "CHANNEL", "FORMAT", "SUITE", "VARIANT"]
        assert pairs["SUITE"] == "long"
        assert all(value in choices[key] for key, value in pairs.items())
        assert next(nightly.iter("projects")).text == "treenail/pipeline"
        assert next(nightly.iter("spec")).text == "H 1 * * *"


@pytest.mark.parametrize("unbuildable, named", [(0, [3]), (2, [2, 3])])
def test_bisect_finds_the_commit(tmp_path, ours, unbuildable, named):
    """Its own shell, on a repository where the third of five commits broke the stage; one that does
    not build cannot be told from it."""
    script = ElementTree.fromstring(ours["treenail.bisect"]).find(
        ".//hudson.tasks.Shell").findtext("command")

    def git(*words):
        return subprocess.run(["git", "-C", str(tmp_path), "-c", "user.name=x", "-c",
                               "user.email=x@x.invalid", *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=True,
                              universal_newlines=True).stdout.strip()

    git("init", "-q")
    (tmp_path / "ci").mkdir()
    commits = {}
    for number in range(1, 6):
        (tmp_path / "ci/stage").write_text(
            "#!/bin/sh\n# %d\n[ $1 = build ] && exit %d\n[ $1 = unit ] || exit 9\nexit %d\n" % (
                number, number == unbuildable, number >= 3))
        (tmp_path / "ci/stage").chmod(0o755)
        git("add", "-A")
        git("commit", "-q", "-m", "commit %d" % number)
        commits[git("rev-parse", "HEAD")] = number
    (tmp_path / "step.sh").write_text(script)
    first, *_, last = commits
    done = subprocess.run(["sh", "step.sh"], cwd=tmp_path, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, check=False,
                          env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "STAGE": "unit",
                               "GOOD": first, "BAD": last})
    verdict = done.stdout[done.stdout.rindex("running "):]
    assert [n for commit, n in commits.items() if commit in verdict] == named, done.stdout
    assert done.returncode == (0 if len(named) == 1 else 2)
    assert "git bisect start" in (tmp_path / "bisect.log").read_text()
    assert git("rev-parse", "HEAD") == last


@pytest.mark.parametrize("status", [0, 1])
def test_two_nodes_runs_the_stage_on_the_sites_stack(tmp_path, ours, status):
    """Its own shell, on a tree whose ci/stage notes how it was called."""
    root = ElementTree.fromstring(ours["treenail.two-nodes"])
    assert root.findtext("assignedNode") == "linux && slurm"
    assert root.findtext(".//hudson.model.StringParameterDefinition/defaultValue") == "/opt/stack"
    (tmp_path / "build/reports").mkdir(parents=True)
    (tmp_path / "build/reports/old.xml").write_text("of the build before")
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci/stage").write_text('#!/bin/sh\necho "$*" > called\nexit %d\n' % status)
    (tmp_path / "ci/stage").chmod(0o755)
    (tmp_path / "step.sh").write_text(root.find(".//hudson.tasks.Shell").findtext("command"))
    done = subprocess.run(["sh", "step.sh"], cwd=tmp_path, check=False,
                          env={"PATH": "/usr/bin:/bin", "STACK": "/sw/my stack"})
    assert done.returncode == status and not (tmp_path / "build/reports/old.xml").exists()
    assert (tmp_path / "called").read_text() == (
        "--skip setup,build two-nodes --treenail /sw/my stack\n")


def write(folder, text):
    (folder / "jobs.yaml").write_text(text)
    return str(folder / "jobs.yaml")


SHELL = "- job:\n    name: j\n    builders:\n      - shell: |\n          %s\n"


@pytest.mark.parametrize("script, code", [
    ("rm -rf $DIR/*", "SC2086"), ("cd x; make", "SC2164"), ("[[ -f x ]] && true", "SC3010"),
    ("echo `id`", "SC2006")])
def test_bad_shell_is_found(tmp_path, script, code):
    found = jobs.shell_findings(jobs.rendered(write(tmp_path, SHELL % script)))
    assert any("job j, shell:1:" in line and code in line for line in found), found


def test_shell_of_another_kind_is_taken_for_it(tmp_path):
    text = SHELL % "#!/bin/bash\n          [[ -f x ]] && true"
    assert jobs.shell_findings(jobs.rendered(write(tmp_path, text))) == []


@pytest.mark.parametrize("text, message", [
    ("- job:\n    name: j\n    builders:\n      - no-such-builder: x\n", "no-such-builder"),
    ("- project:\n    name: p\n    jobs:\n      - missing\n", "missing"), ("- job: [\n", "line"),
    ("[]\n", "has no job")])
def test_jobs_that_cannot_be_rendered(tmp_path, text, message):
    with pytest.raises(jobs.Unusable) as caught:
        jobs.rendered(write(tmp_path, text))
    assert message in str(caught.value)


def test_differences_are_shown_and_written(tmp_path):
    folder = str(tmp_path / "expected")
    assert jobs.differences({"a.b": "<x/>\n"}, folder) == [
        "job a.b is new: %s is missing" % "ci/expected/jobs/a.b.xml"]
    jobs.write({"a.b": "<x/>\n", "c": "<c/>\n"}, folder)
    assert jobs.differences({"a.b": "<x/>\n", "c": "<c/>\n"}, folder) == []
    found = jobs.differences({"a.b": "<y/>\n"}, folder)
    assert "-<x/>" in found and "+<y/>" in found
    assert found[-1] == "ci/expected/jobs/c.xml: there is no such job any more"
