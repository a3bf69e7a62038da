# SPDX-License-Identifier: Apache-2.0
"""The Ansible module stack_step, used as functions: steps that run once, suites, what is known to
fail."""

import datetime
import os
import xml.etree.ElementTree as ElementTree

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
from ansible.errors import AnsibleFilterError  # noqa: E402
from plays import ANSIBLE  # noqa: E402
from stack_fixture import module, stack  # noqa: E402  (Ansible first)

step = module("library/stack_step.py")


def given(tmp_path, *commands, **more):
    found = {"component": "thing", "step": "build", "commands": list(commands),
             "chdir": str(tmp_path), "state": str(tmp_path / "state"),
             "environment": {"PATH": "/usr/bin:/bin"}, "junit": None, "quarantine": []}
    found.update(more)
    return found


def test_a_step_runs_once(tmp_path):
    words = given(tmp_path, "echo x >> ran")
    assert step.perform(words)["changed"] is True
    assert step.perform(words)["changed"] is False
    assert (tmp_path / "ran").read_text() == "x\n"


def test_other_commands_run_again(tmp_path):
    step.perform(given(tmp_path, "true"))
    assert step.perform(given(tmp_path, "true", "true"))["changed"] is True


def test_a_step_that_failed_runs_again_and_shows_its_end(tmp_path):
    result = step.perform(given(tmp_path, "echo the reason >&2", "false", "touch after"))
    assert result["failed"] and "thing: build failed with exit status 1" in result["msg"]
    assert "the reason" in result["msg"] and not (tmp_path / "after").exists()
    assert step.perform(given(tmp_path, "true"))["changed"] is True


@pytest.mark.parametrize("words, sentence", [
    ("ld: final link failed: No space left on device", "the disk is full"),
    ("g++: fatal error: Killed signal terminated program cc1plus", "want of memory")])
def test_well_known_reasons(tmp_path, words, sentence):
    assert sentence in step.perform(given(tmp_path, "echo '%s'; exit 1" % words))["msg"]


def test_a_command_does_not_follow_the_one_before(tmp_path):
    (tmp_path / "below").mkdir()
    step.perform(given(tmp_path, "cd below && touch a", "touch b"))
    assert (tmp_path / "below" / "a").exists() and (tmp_path / "b").exists()


def test_a_step_is_not_tried_when_the_one_before_failed(tmp_path):
    step.perform(given(tmp_path, "false", step="configure"))
    result = step.perform(given(tmp_path, "touch ran", after="configure"))
    assert "build was not tried, for configure failed" in result["msg"]
    assert not (tmp_path / "ran").exists()


def test_nothing_of_the_callers_environment_is_passed(tmp_path, monkeypatch):
    monkeypatch.setenv("CFLAGS", "-march=native")
    step.perform(given(tmp_path, "env > seen"))
    assert "CFLAGS" not in (tmp_path / "seen").read_text()


REPORT = """<testsuite><testcase classname="a" name="good"/>
<testcase classname="a" name="bad"><failure/></testcase></testsuite>"""
KNOWN = {"test": "a::b*", "reason": "x", "link": "https://bugs.example/1", "expires": "2999-01-01"}


def suite(tmp_path, quarantine, status=1):
    (tmp_path / "in.xml").write_text(REPORT)
    return step.perform(given(tmp_path, "cp in.xml out.xml; exit %d" % status, step="suite",
                              tests=True, junit=str(tmp_path / "out.xml"), quarantine=quarantine))


def test_a_failing_test_fails_the_step(tmp_path):
    assert "of 2 tests 1 failed that no quarantine knows: a::bad" in suite(tmp_path, [])["msg"]


def test_a_quarantined_failure_does_not(tmp_path):
    result = suite(tmp_path, [KNOWN])
    assert result["changed"] and result["tests"] == 2 and result["quarantined"] == ["a::bad"]


def test_a_quarantine_ends(tmp_path):
    text = suite(tmp_path, [dict(KNOWN, expires="2001-01-01")])["msg"]
    assert "its quarantine ended on 2001-01-01 (https://bugs.example/1)" in text


def test_a_suite_without_a_report_fails(tmp_path):
    result = step.perform(given(tmp_path, "exit 3", tests=True, junit=str(tmp_path / "none.xml")))
    assert result["failed"] and "exit status 3 and left no report" in result["msg"]


def test_a_suite_that_ended_badly_for_another_reason_fails(tmp_path):
    (tmp_path / "in.xml").write_text("<testsuite><testcase classname='a' name='good'/></testsuite>")
    result = step.perform(given(tmp_path, "cp in.xml out.xml; exit 3", tests=True,
                                junit=str(tmp_path / "out.xml")))
    assert result["failed"] and "exit status 3" in result["msg"]


UTEST = stack.stack_records(os.path.join(ANSIBLE, "roles"))["openblas"][
    "suite"]["build"]["short"]["cases"]


def tried(tmp_path, *commands, known=(), **more):
    return step.perform(given(tmp_path, *commands, step="suite", tests=True, quarantine=[
        dict(KNOWN, test=name) for name in known], **more))


def test_a_suite_without_a_report_is_as_many_tests_as_it_has_commands(tmp_path):
    """Each runs, whatever became of those before."""
    result = tried(tmp_path, "exit 3", "touch second", "touch  third")
    assert "of 3 tests 1 failed that no quarantine knows: exit 3" in result["msg"]
    assert (tmp_path / "third").exists()
    result = tried(tmp_path, "exit 3", "true", known=["exit *"])
    assert (result["tests"], result["quarantined"]) == (2, ["exit 3"])
    assert "no quarantine knows: false" in tried(tmp_path, "exit 3", "false",
                                                 known=["exit *"])["msg"]


def test_what_a_suite_says_of_its_tests(tmp_path):
    """As OpenBLAS's utest does; a program that ends badly for another reason is a failure, too."""
    says = "echo 'TEST 1/3 amax:samax [OK]'; echo 'TEST 2/3 rot:drot [FAIL]'; " \
        "echo 'TEST 3/3 a:b [SKIPPED]'; exit 1"
    assert "of 3 tests 1 failed that no quarantine knows: rot:drot" in tried(
        tmp_path, says, cases=UTEST)["msg"]
    result = tried(tmp_path, says, "true", cases=UTEST, known=["rot:*"])
    assert (result["tests"], result["quarantined"]) == (4, ["rot:drot"])
    well = "echo 'TEST 1/3 amax:samax [OK]'; exit 2"
    assert "of 2 tests 1 failed that no quarantine knows: echo" in tried(
        tmp_path, well, cases=UTEST)["msg"]


def cases(result):
    """{class::name: passed, or what failed or is skipped and why} of the report of a step."""
    root = ElementTree.parse(result["report"]).getroot()
    found, counts = {}, {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for suite_ in root.iter("testsuite"):
        counts = {key: counts[key] + int(suite_.get(key)) for key in counts}
    for case in root.iter("testcase"):
        other = [(node.tag, node.get("message")) for node in case if node.tag in (
            "failure", "error", "skipped")]
        found["%s::%s" % (case.get("classname"), case.get("name"))] = other[0] if other else "ok"
    said = [value[0] for value in found.values() if value != "ok"]
    assert list(counts.values()) == [len(found)] + [
        said.count(tag) for tag in ("failure", "error", "skipped")]
    return found


def test_the_report_of_a_suite_is_its_own(tmp_path):
    """What is known to fail is skipped there, so that it does not spoil what reads it."""
    for quarantine in ([], [dict(KNOWN, expires="2001-01-01")]):
        assert cases(suite(tmp_path, quarantine)) == {"a::good": "ok", "a::bad": ("failure", None)}
    assert cases(suite(tmp_path, [KNOWN])) == {"a::good": "ok", "a::bad": (
        "skipped", "failed, as known until 2999-01-01: x (https://bugs.example/1)")}


def test_a_suite_that_writes_none_gets_a_report(tmp_path):
    says = "echo 'TEST 1/2 amax:samax [OK]'; printf 'TEST 2/2 r\\001:d [FAIL]\\n'; exit 1"
    assert cases(tried(tmp_path, says, "touch a", "exit 4", cases=UTEST, known=["exit *"])) == {
        "thing::amax:samax": "ok", "thing::r?:d": ("failure", "the log says how"),
        "thing::touch a": "ok", "thing::exit 4": (
            "skipped", "failed, as known until 2999-01-01: x (https://bugs.example/1)")}


@pytest.mark.parametrize("command, words", [
    ("exit 3", "exit status 3 and left no report: "),
    ("echo '<testsuite/>' > out.xml", "of 0 tests 0 failed"),
    ("echo '<testsuite><testcase name=\"a\"/></testsuite>' > out.xml; exit 3",
     "thing: suite failed with exit status 3: of 1 tests 0 failed")])
def test_what_failed_beside_the_tests_is_in_the_report(tmp_path, command, words):
    found = cases(tried(tmp_path, command, junit=str(tmp_path / "out.xml")))
    tag, message = found.pop("thing::suite")
    assert tag == "failure" and words in message
    assert set(found.values()) <= {"ok"}


def test_only_tests_that_ran_now_have_a_report(tmp_path):
    assert "report" in tried(tmp_path, "true") and "report" not in tried(tmp_path, "true")
    assert "report" not in step.perform(given(tmp_path, "true"))
    assert "report" not in step.perform(given(tmp_path, "false"))


def test_a_suite_may_be_entered_through_a_program(tmp_path):
    result = tried(tmp_path, "test $VALUE = 7", through=["env", "VALUE=7"])
    assert result["tests"] == 1 and result["changed"]
    again = tried(tmp_path, "test $VALUE = 7", through=["env", "VALUE=8"])
    assert again["changed"] is False, "the way into it makes no other suite of it"


ENTRY = dict(KNOWN, component="low")


@pytest.mark.parametrize("change, words", [
    ({"expires": None}, "it has component, link, reason, test, and needs component, expires"),
    ({"note": "x"}, "it has component, expires, link, note"),
    ({"component": "lwo"}, "there is no component 'lwo'; there are low"),
    ({"link": "see mail"}, "link is 'see mail'; it must lead to"),
    ({"expires": "soon"}, "expires is 'soon'; it must be a day, as 2027-01-31")])
def test_a_quarantine_that_means_nothing_is_refused(change, words):
    entry = {key: value for key, value in dict(ENTRY, **change).items() if value is not None}
    with pytest.raises(AnsibleFilterError) as caught:
        stack.stack_quarantine({"failures": [ENTRY, entry]}, {"low": {}})
    assert words in str(caught.value) and "entry 2 (a::b*)" in str(caught.value)
    day = dict(ENTRY, expires=datetime.date(2999, 1, 1))  # as YAML reads it
    assert stack.stack_quarantine({"failures": [day]}, {"low": {}}) == [ENTRY]
