# SPDX-License-Identifier: Apache-2.0
"""What users have of a stack changes at the end of a play in which all went well, and at no other
time."""

import json
import os
import re
import shutil

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
import yaml  # noqa: E402  (Ansible brings it)
from plays import ANSIBLE, play  # noqa: E402
from stack_fixture import PAIR, settings, stack  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("ansible-playbook"),
                                reason="ansible-playbook is not installed")


def component(root, name, recipe="aa"):
    return {"name": name, "version": "1", "mode": "build", "isa": "x86-64", "recipe": recipe,
            "prefix": "%s/gcc-12/%s/1-%s" % (root, name, recipe), "packages": [],
            "build_packages": [], "suite": {}, "module": name + "/1"}


def built(instance):
    os.makedirs(instance["prefix"])
    with open(instance["prefix"] + "/.stack.json", "w", encoding="utf-8") as stream:
        stream.write("{}")


def published(folder, environment, plan):
    """The play's report and what users then have."""
    root = folder / "stack"
    made = root / "environments" / environment
    for path in ("bin/stack-env", *("modulefiles/" + i["module"] for i in plan)):
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_text(environment)
    (root / "bin").mkdir(exist_ok=True)
    report = play(folder, "stack", {"h": {
        "ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_become": False, "stack__prefix": str(root), "stack_environment": str(made),
        "stack_plan": plan, "toolchain_facts": {}, "python_facts": {}, "modules_facts": {},
        "stack__reports": str(folder / "reports")}}, tasks_from="publish", environment={
            "ANSIBLE_FILTER_PLUGINS": os.path.join(ANSIBLE, "filter_plugins")})
    seen = root / "bin/stack-env"
    return report, seen.read_text() if seen.exists() else ""


def manifest(folder):
    with open(folder / "stack/manifest.json", encoding="utf-8") as stream:
        return json.load(stream)


def test_nothing_changes_before_every_component_is_there(tmp_path):
    plan = [component(tmp_path / "stack", name) for name in ("low", "high")]
    for instance in plan:
        built(instance)
    report, seen = published(tmp_path, "1", plan)
    assert (report.failure("h"), seen) == ("", "1")
    report, seen = published(tmp_path, "1", plan)
    assert (report.failure("h"), report.changed("h"), seen) == ("", [], "1")
    before = manifest(tmp_path)
    assert before["environment"] == str(tmp_path / "stack/environments/1")
    plan = [component(tmp_path / "stack", name, "bb") for name in ("low", "high")]
    built(plan[0])
    report, seen = published(tmp_path, "2", plan)
    assert report.failure("h") == (
        "high: not built, so stack-env and module files stay what they were. Run the play for all "
        "components, or set the mode of what is not wanted to skip")
    assert seen == "1" and manifest(tmp_path) == before


def compared(folder, plan, status):
    """(what failed, prefixes that were compared) with a stack-env that only notes what is timed."""
    made = folder / "timed"
    (made / "bin").mkdir(parents=True, exist_ok=True)
    (made / "bin/stack-env").write_text(
        "#!/bin/sh\nshift 3; echo $2 $3 >> %s/calls\nexit %d\n" % (made, status))
    (made / "bin/stack-env").chmod(0o755)
    (made / "calls").write_text("")
    report = play(folder, "smoke", {"h": {
        "ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_become": False, "stack__prefix": str(folder / "stack"),
        "stack_environment": str(made), "stack_plan": plan, "stack__builder": "builder",
        "_stack_state": {"complete": [i["prefix"] for i in plan]},
        "python_facts": {"interpreter": "python3"}}}, tasks_from="benchmark",
        facts={"os_family": "Debian"})
    return report.failure("h"), (made / "calls").read_text().split()


def test_a_slower_stack_is_refused_whenever_it_is_tried(tmp_path):
    """Its prefixes are complete the second time; users still have the stack before."""
    root = tmp_path / "stack"
    old, new = ([dict(component(root, "low", recipe), benchmark="blas", isa=isa)
                 for isa in ("x86-64", "x86-64-v3")] for recipe in ("aa", "bb"))
    for instance in old:
        instance["prefix"] += instance["isa"]
    new[1] = old[1]
    root.mkdir()
    (root / "manifest.json").write_text(json.dumps({"components": old}))
    for _ in range(2):
        failure, calls = compared(tmp_path, new, 1)
        assert failure and calls == [old[0]["prefix"], new[0]["prefix"]]
    (root / "manifest.json").write_text(json.dumps({"components": new}))
    assert compared(tmp_path, new, 1) == ("", [])


def test_a_full_disk_is_refused_before_anything_is_written(tmp_path):
    """The compilers are not known then; of the plan it is known what each build needs."""
    root = tmp_path / "stack"
    plan = [dict(component(root, name), disk=10 ** 9) for name in ("low", "high")]
    report = play(tmp_path, "stack", {"h": {
        "ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3",
        "stack__prefix": str(root), "stack_plan": plan}}, tasks_from="preflight",
        facts={"os_family": "Debian"})
    assert re.fullmatch(
        r"2000000000 MiB are needed below %s to build low, high, and \d+ MiB are free there\. Free "
        r"some, or choose another stack__prefix; what is installed stays as it is" % root,
        report.failure("h"))
    with open(os.path.join(ANSIBLE, "roles/stack/tasks/options.yml"), encoding="utf-8") as stream:
        parts = [task.get("ansible.builtin.import_tasks") for task in yaml.safe_load(stream)]
    assert "preflight.yml" in parts
    with open(os.path.join(ANSIBLE, "site.yml"), encoding="utf-8") as stream:
        first = yaml.safe_load(stream)[-1]["tasks"][0]["ansible.builtin.import_role"]
    assert first == {"name": "stack", "tasks_from": "options"}


def test_it_is_the_end_of_the_play():
    with open(os.path.join(ANSIBLE, "site.yml"), encoding="utf-8") as stream:
        tasks = [t["ansible.builtin.import_role"] for t in yaml.safe_load(stream)[-1]["tasks"]]
    place = tasks.index({"name": "stack", "tasks_from": "publish"})
    behind = {"python"}  # a virtual environment on top of what users have
    assert {task["name"] for task in tasks[place + 1:]} <= behind
    assert tasks[place - 1]["name"] == "smoke"


def test_a_run_of_one_part_has_the_module_files_of_all(tmp_path):
    """What is tried there loads the modules that it needs, of whatever environment they were."""
    for name in ("smoke", "patches", "play"):
        (tmp_path / name).mkdir()
    root = str(tmp_path / "stack")
    plan = stack.stack_plan(PAIR, settings(prefix=root, options={}))
    environment = root + "/environments/new"
    report = play(tmp_path / "play", "stack", {"h": {
        "ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_become": False, "stack__prefix": root, "stack__cache": str(tmp_path / "cache"),
        "stack__builder": "root", "stack_environment": environment, "stack_plan": plan,
        "toolchain_facts": {"id": "gcc-12.2.0", "library_path": ""},
        "modules_facts": {"init": "/init", "paths": []}}}, tasks_from="environment")
    assert not report.failure("h")
    assert len(plan) == 2
    for one in plan:
        with open("%s/modulefiles/%s" % (environment, one["module"]), encoding="utf-8") as text:
            assert one["prefix"] in text.read()


def test_no_task_writes_to_where_users_look():
    for folder, _, names in os.walk(os.path.join(ANSIBLE, "roles")):
        for name in names:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as stream:
                found = re.findall(r"dest: .*stack__prefix \}\}/(?:bin|modulefiles).*",
                                   stream.read())
            assert not found, (folder, name)
