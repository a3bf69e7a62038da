# SPDX-License-Identifier: Apache-2.0
"""Small stacks to try the plan, the module files and stack-env with: their records, and what the
roles' own templates make of them."""

import importlib.util
import os

import ansible.module_utils
import jinja2
from plays import ANSIBLE

SUM = "a" * 64
# What modules have in common, as Ansible finds it.
ansible.module_utils.__path__.append(os.path.join(ANSIBLE, "module_utils"))


def module(path):
    name = os.path.basename(path)[:-3]
    spec = importlib.util.spec_from_file_location("under_test_" + name, os.path.join(ANSIBLE, path))
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


stack = module("filter_plugins/stack.py")


def settings(**more):
    found = {"prefix": "/opt/stack", "build_root": "/opt/stack/build", "toolchain": "gcc-12.2.0",
             "cc": "gcc", "cxx": "g++", "fc": "gfortran", "machine": "x86_64", "isa": "x86-64-v3",
             "runs": ["x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64", "armv8.2-a", "armv8-a"],
             "family": "Debian", "python": "/usr/bin/python3", "python_version": "3.11",
             "variant": "patched", "suite": "short", "processors": 2, "memory_mib": 8000,
             "patches": {}, "options": {}, "dist": {"version": "1.0.0", "sha256": "b" * 64}}
    found.update(more)
    return found


def record(**more):
    found = {"summary": "something", "license": "any", "version": "1",
             "versions": {"1": {"sources": [{"pypi": "x 1 " + SUM}]}},
             "steps": {"build": ["make -j@jobs@ @flags@"], "install": ["make install"]}}
    found.update(more)
    return found


# Two components, of which one stands on the other.
PAIR = {
    "low": record(environment={"prepend": {"PATH": "bin", "LD_LIBRARY_PATH": ["lib", "lib/more"]},
                               "set": {"LOW_ROOT": "."}}),
    "high": record(needs=["low"], environment={"prepend": {"LD_LIBRARY_PATH": "lib"}}),
}


def rendered(role, name, **values):
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(os.path.join(
        ANSIBLE, "roles", role, "templates")), trim_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(stack.FilterModule().filters())
    return environment.get_template(name).render(**values)


def made_stack(prefix, records, init, options, libraries=""):
    """The plan of a stack with module files and stack-env below `prefix`, and nothing built;
    libraries: the search path of a toolchain that is not the distribution's."""
    plan = stack.stack_plan(records, settings(prefix=prefix, options=options))
    facts = {"stack_environment": prefix, "stack_plan": plan,
             "toolchain_facts": {"id": "gcc-12.2.0", "library_path": libraries},
             "modules_facts": {"init": init, "paths": []}}
    files = {"modulefiles/" + i["module"]: rendered("stack", "module.tcl.j2",
                                                    component_instance=i, **facts) for i in plan
             if i["mode"] == "build"}
    files["bin/stack-env"] = rendered("stack", "stack-env.j2", **facts)
    for name, text in files.items():
        path = os.path.join(prefix, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    os.chmod(prefix + "/bin/stack-env", 0o755)
    return plan
