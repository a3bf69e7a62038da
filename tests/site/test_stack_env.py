# SPDX-License-Identifier: Apache-2.0
"""Module files and stack-env as users meet them, under each module system that is installed."""

import os
import shutil
import subprocess

import pytest

pytest.importorskip("ansible.errors", reason="ansible is not installed")
pytest.importorskip("jinja2", reason="jinja2 is not installed")
from stack_fixture import PAIR, made_stack, module  # noqa: E402  (Ansible first)

publish = module("library/stack_publish.py")

INITS = [path for path in ("/usr/share/lmod/lmod/init/bash", "/usr/share/modules/init/bash")
         if os.path.exists(path)]
BARE = {"PATH": "/usr/bin:/bin"}


@pytest.fixture(params=INITS or [""], ids=lambda path: path.split("/")[3] if path else "none")
def init(request):
    """What each module system that is here is initialised by."""
    # stack-env consists of loading modules: without a module system nothing of it can run, and a
    # build of Treenail needs none. Where CI sets the machine up, Lmod is there.
    if not request.param:
        pytest.skip("neither Lmod nor environment-modules is installed")
    return request.param


@pytest.fixture
def site(tmp_path, init):
    """A prefix with two components, of which one has two instruction sets, and stack-env."""
    prefix = str(tmp_path / "stack")
    plan = made_stack(prefix, PAIR, init, {"high": {"isas": ["x86-64-v3", "x86-64"]}})
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


def test_libraries_of_the_toolchain_stand_behind_the_stacks(site, tmp_path):
    """What a compiler of its own prefix made needs that compiler's libraries at run time."""
    prefix, libraries = str(tmp_path / "other"), str(tmp_path / "gcc/lib64")
    low = made_stack(prefix, {"low": PAIR["low"]}, INITS[0], {}, libraries)[0]
    wanted = [low["prefix"] + "/lib", low["prefix"] + "/lib/more", libraries]
    assert variables(entered(prefix, "env"))["LD_LIBRARY_PATH"].split(":")[:3] == wanted
    script = ". %s; module use %s/modulefiles; module load low; env" % (INITS[0], prefix)
    by_hand = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, env=BARE,
                             check=True).stdout.decode()
    assert variables(by_hand)["LD_LIBRARY_PATH"].split(":")[:3] == wanted


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


def test_a_module_systems_own_notes_of_the_caller_are_not_kept(site):
    """environment-modules believes them: what they call loaded it would not load."""
    plain = variables(entered(site[0], "env"))
    notes = {"__MODULES_LMINIT": "load&nothing/1", "__MODULES_SHARE_LOW_ROOT": "x:9",
             "__MODULES_LMCONFLICT": "nothing/1&high", "_LMFILES_": "/nowhere/nothing/1",
             "LOADEDMODULES": "nothing/1"}
    found = variables(entered(site[0], "env", environment=dict(BARE, **notes)))
    assert found == plain


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


def test_nothing_of_the_callers_is_searched_where_nothing_was_built(tmp_path, init):
    """The site's modules, which no record describes, may be all there is."""
    prefix = str(tmp_path / "stack")
    made_stack(prefix, PAIR, init, {name: {"mode": "skip"} for name in PAIR})
    mine = dict(BARE, LIBRARY_PATH="/mine", CPATH="/mine", PYTHONPATH="/mine")
    assert "/mine" not in entered(prefix, "env", environment=mine)


def test_another_version_is_loaded_with_what_it_was_built_on(tmp_path, init):
    """Two runs: the second has another low and a newer high; high/1 goes on standing on its own."""
    plans = []
    for name, options in (("1", {}), ("2", {"low": {"flags": ["-DX"]}})):
        records = dict(PAIR, high=dict(PAIR["high"], version=name, versions={
            name: PAIR["high"]["versions"]["1"]}))
        environment = str(tmp_path / "environments" / name)
        plans.append({i["name"]: i["prefix"] for i in made_stack(
            environment, records, init, options)})
        (tmp_path / "bin").mkdir(exist_ok=True)
        publish.publish(str(tmp_path), environment, True)
    prefix = str(tmp_path)
    for words, plan in (((), plans[1]), (("--modules", "high/1-x86-64-v3"), plans[0])):
        paths = variables(entered(prefix, *words, "env"))["LD_LIBRARY_PATH"].split(":")
        assert paths[:2] == [plan["high"] + "/lib", plan["low"] + "/lib"]
    assert sorted(entered(prefix, "--list").split()) == [
        "high/1-x86-64-v3", "high/2-x86-64-v3", "low/1-x86-64-v3"]


def test_modules_that_are_not_installed_here(site, init):
    path = site[0] + "/bin/stack-env"
    with open(path, encoding="utf-8") as stream:
        text = stream.read().replace(init, "/nowhere/init")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    assert "/nowhere/init, which initialises modules, is not there" in entered(
        site[0], "true", status=127)


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_stack_env_is_clean_for_shellcheck(tmp_path):
    made_stack(str(tmp_path), PAIR, "/init", {})
    done = subprocess.run(["shellcheck", str(tmp_path / "bin/stack-env")], stdout=subprocess.PIPE,
                          check=False)
    assert done.returncode == 0, done.stdout.decode()
