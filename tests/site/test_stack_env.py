# SPDX-License-Identifier: Apache-2.0
"""Module files and stack-env as users meet them, under the module system that is installed."""

import os
import subprocess

import pytest
from test_stack import ANSIBLE, record, settings, stack

jinja2 = pytest.importorskip("jinja2", reason="jinja2 is not installed")
INITS = [path for path in ("/usr/share/lmod/lmod/init/bash", "/usr/share/modules/init/bash")
         if os.path.exists(path)]
BARE = {"PATH": "/usr/bin:/bin"}


def rendered(role, name, **values):
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(os.path.join(
        ANSIBLE, "roles", role, "templates")), trim_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(stack.FilterModule().filters())
    return environment.get_template(name).render(**values)


RECORDS = {
    "low": record(environment={"prepend": {"PATH": "bin", "LD_LIBRARY_PATH": ["lib", "lib/more"]},
                               "set": {"LOW_ROOT": "."}}),
    "high": record(needs=["low"], environment={"prepend": {"LD_LIBRARY_PATH": "lib"}}),
}


@pytest.fixture
def site(tmp_path):
    """A prefix with two components, of which one has two instruction sets, and stack-env."""
    if not INITS:
        pytest.skip("neither Lmod nor environment-modules is installed")
    prefix = str(tmp_path / "stack")
    plan = stack.stack_plan(RECORDS, settings(prefix=prefix, options={
        "high": {"isas": ["x86-64-v3", "x86-64"]}}))
    facts = {"stack__prefix": prefix, "stack_plan": plan, "toolchain_facts": {"id": "gcc-12.2.0"},
             "modules_facts": {"init": INITS[0], "paths": []}}
    for instance in plan:
        path = os.path.join(prefix, "modulefiles", instance["module"])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(rendered("component", "module.tcl.j2", component_instance=instance,
                                  **facts))
    os.makedirs(prefix + "/bin")
    with open(prefix + "/bin/stack-env", "w", encoding="utf-8") as stream:
        stream.write(rendered("stack", "stack-env.j2", **facts))
    os.chmod(prefix + "/bin/stack-env", 0o755)
    return prefix, {i["module"]: i["prefix"] for i in plan}


def entered(prefix, *words, environment=None, status=0):
    done = subprocess.run([prefix + "/bin/stack-env", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment or BARE, check=False)
    text = done.stdout.decode() + done.stderr.decode()
    assert done.returncode == status, text
    return text


def variables(text):
    return dict(line.partition("=")[::2] for line in text.splitlines() if "=" in line)


def test_the_stack_is_loaded_in_order(site):
    prefix, prefixes = site
    low, high = prefixes["low/1-x86-64-v3"], prefixes["high/1-x86-64-v3"]
    found = variables(entered(prefix, "env"))
    assert found["LD_LIBRARY_PATH"].split(":")[:3] == [high + "/lib", low + "/lib",
                                                       low + "/lib/more"]
    assert found["LOW_ROOT"] == low and found["PATH"].startswith(low + "/bin:")


def test_another_instruction_set_is_chosen(site):
    prefix, prefixes = site
    found = variables(entered(prefix, "--modules", "high/1-x86-64", "env"))
    assert found["LD_LIBRARY_PATH"].split(":")[0] == prefixes["high/1-x86-64"] + "/lib"
    assert found["LOW_ROOT"], "what it stands on is loaded with it"


def test_what_an_outer_one_loaded_is_not_kept(site):
    prefix, prefixes = site
    found = variables(entered(prefix, "--modules", "high/1-x86-64", prefix + "/bin/stack-env",
                              "env"))
    inner = variables(entered(prefix, "env"))
    assert found["LOADEDMODULES"] == inner["LOADEDMODULES"]
    assert found["LD_LIBRARY_PATH"].split(":")[0] == prefixes["high/1-x86-64-v3"] + "/lib"


def test_search_paths_of_the_caller_are_kept_on_request_alone(site):
    mine = dict(BARE, LD_LIBRARY_PATH="/mine")
    assert "/mine" not in variables(entered(site[0], "env", environment=mine))["LD_LIBRARY_PATH"]
    mine["STACK_KEEP"] = "1"
    kept = variables(entered(site[0], "env", environment=mine))["LD_LIBRARY_PATH"].split(":")
    assert kept[-1] == "/mine" and len(kept) > 1


def test_arguments_arrive_as_they_were_given(site):
    assert entered(site[0], "printf", "%s|", "a b", "", "$HOME", "*") == "a b||$HOME|*|"


def test_the_exit_status_is_the_commands(site):
    entered(site[0], "sh", "-c", "exit 7", status=7)


def test_an_unknown_module_is_an_error(site):
    text = entered(site[0], "--modules", "nothing/1", "true", status=1)
    assert "not all of these modules could be loaded: nothing/1" in text


def test_an_unknown_command_is_an_error(site):
    assert "there is no command nosuch in" in entered(site[0], "nosuch", status=127)


@pytest.mark.parametrize("words", [(), ("--frob",), ("--modules",), ("--modules", "x"),
                                   ("--list", "x")])
def test_words_that_mean_nothing_show_the_usage(site, words):
    assert "usage: stack-env" in entered(site[0], *words, status=2)


def test_the_list_names_every_module(site):
    assert sorted(entered(site[0], "--list").split()) == sorted(site[1])


def test_threads_follow_the_scheduler_and_then_the_user(site):
    job = dict(BARE, SLURM_CPUS_PER_TASK="3")
    assert variables(entered(site[0], "env", environment=job))["OMP_NUM_THREADS"] == "3"
    job["OMP_NUM_THREADS"] = "2"
    assert variables(entered(site[0], "env", environment=job))["OMP_NUM_THREADS"] == "2"
    assert "OMP_NUM_THREADS" not in variables(entered(site[0], "env"))


def test_two_instruction_sets_are_never_mixed(site):
    """environment-modules refuses the second, Lmod puts it in the place of the first."""
    done = subprocess.run([site[0] + "/bin/stack-env", "--modules",
                           "high/1-x86-64 high/1-x86-64-v3", "env"],
                          stdout=subprocess.PIPE, env=BARE, check=False)
    found = variables(done.stdout.decode())
    mixed = [p for p in found.get("LD_LIBRARY_PATH", "").split(":") if "/high/" in p]
    assert mixed == ([site[1]["high/1-x86-64-v3"] + "/lib"] if done.returncode == 0 else [])


def test_modules_that_are_not_installed_here(site, tmp_path):
    path = site[0] + "/bin/stack-env"
    with open(path, encoding="utf-8") as stream:
        text = stream.read().replace(INITS[0], "/nowhere/init")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    assert "/nowhere/init, which initialises modules, is not there" in entered(
        site[0], "true", status=127)
