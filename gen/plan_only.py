# SPDX-License-Identifier: Apache-2.0
"""A part that is built alone, for the libtreenail that is installed. Pure, as plan.py is.

What is compiled and how it is linked is the business of plan_devices.py; here are the question
whether the library is of the same build, and the targets that are left of a whole build.
"""

from gen.facts import InstalledLibrary
from gen.install import part_manifest
from gen.plan import Context, shell
from gen.plan_devices import plan_device_libraries
from gen.plan_parts import plan_generated
from gen.plan_targets import console, plan_clean, plan_help, plan_install_targets, tool

CHECKED = "gen/private-abi.stamp"


def plan_check(context: Context, installed: InstalledLibrary) -> None:
    """The library may be replaced between configure and the build."""
    context.plan.edge("tool", [CHECKED], implicit=[
        "gen/build_info.h", installed.path, context.source("gen/private_abi.py"),
        context.source("gen/tools/same_build.py")], tool="same_build.py", arguments=shell([
            "--header", "gen/build_info.h", "--stamp", CHECKED, installed.path]),
        shown="CHECK private ABI")


def plan_part(context: Context) -> None:
    """The part, linked with the installed library."""
    installed = context.facts.installed
    assert installed is not None
    plan_generated(context)
    plan_check(context, installed)
    plan_device_libraries(context, installed.path, [CHECKED])
    plan_part_targets(context, installed)


def plan_part_targets(context: Context, installed: InstalledLibrary) -> None:
    """all, test, install and what belongs to them; there is nothing else of this tree."""
    plan = context.plan
    plan.edge("phony", ["always"])
    plan.phony("all", context.products, "the part that is built alone (default)")
    plan.defaults = ["all"]
    plan.phony("tests", ["all"], "the same: there are no tests to build")
    console(context, "test", "is what was built opened by the installed library?",
            tool(context, "same_build.py", "--header", "gen/build_info.h", "--open-with",
                 installed.path, *context.products), ["all"])
    plan.files["gen/install.json"] = part_manifest(context)
    plan_install_targets(context)
    plan_clean(context, "dist")
    plan_help(context)
