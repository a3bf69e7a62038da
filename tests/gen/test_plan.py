# SPDX-License-Identifier: Apache-2.0
"""What options and facts become: flags and their order, levels, adapters, pools."""

import dataclasses
import json

import pytest
from gen import isa
from gen.configure import make_plan
from gen.model import load
from gen.options import parse
from gen.plan import version_script
from gen.facts import External, Interpreter


def context_of(tree, facts, *arguments, environment=None):
    return make_plan(load(str(tree.root)), parse(list(arguments), environment or {}), facts, "..",
                     ["configure.py"])


def flags_of(context, output):
    variables = dict(context.plan.variables)
    for edge in context.plan.edges:
        if output in edge.outputs:
            text = dict(edge.variables)["flags"]
            for name, value in variables.items():
                text = text.replace("$" + name, value)
            return text
    raise AssertionError("nothing makes " + output)


CORE = "obj/core/framework/base/base.cc.o"
RED = "obj/core/framework/tensor/red.cc.o"
V3 = "obj/x86-64-v3/kernels/cpu/level.cc.o"
TEST = "obj/tests-base/tests/base/base_test.cc.o"


def test_environment_flags_stand_after_ours_and_before_what_must_hold(small_tree, facts):
    context = context_of(small_tree, facts, environment={
        "CXXFLAGS": "-g -O1 -Wno-all -ffp-contract=fast", "CPPFLAGS": "-DX=1"})
    words = flags_of(context, CORE).split()
    assert words.index("-O2") < words.index("-O1")
    assert words.index("-Wall") < words.index("-Wno-all")
    assert words.index("-ffp-contract=fast") < words.index("-ffp-contract=off")
    assert "-DX=1" in words


def test_a_levels_flags_stand_last(small_tree, facts):
    facts.isa = isa.choose("x86_64", {"__SSE2__", "__SSE4_2__", "__SSSE3__", "__POPCNT__"},
                           ["-march=x86-64-v2"], None, "auto")
    context = context_of(small_tree, facts, environment={"CXXFLAGS": "-O2 -march=x86-64-v2"})
    words = flags_of(context, V3).split()
    assert words.index("-march=x86-64-v2") < words.index("-march=x86-64-v3")
    assert words.index("-O2") < words.index("-O3")
    assert "-march=x86-64-v3" not in flags_of(context, CORE)


def test_core_gets_no_march_of_ours_when_the_environment_names_one(small_tree, facts):
    facts.isa = isa.choose("x86_64", {"__SSE2__"}, ["-march=x86-64"], None, "auto")
    assert "-march" not in flags_of(context_of(small_tree, facts), CORE)


def test_chosen_baseline_reaches_the_core(small_tree, facts):
    facts.isa = isa.choose("x86_64", {"__SSE2__"}, [], "x86-64-v2", "auto")
    assert "-march=x86-64-v2" in flags_of(context_of(small_tree, facts), CORE)


def test_each_level_has_a_library_of_its_own_objects(small_tree, facts):
    facts.isa = isa.choose("x86_64", {"__SSE2__"}, [], None, "x86-64-v2,x86-64-v3,x86-64-v4")
    context = context_of(small_tree, facts)
    made = {edge.outputs[0]: edge for edge in context.plan.edges}
    for level in ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"):
        path = "lib/treenail-0/kernels/%s/libtreenail-kernels-cpu.so" % level
        assert all(o.startswith("obj/%s/" % level) for o in made[path].inputs)
    core = made["lib/libtreenail.so.0.1.0"].inputs
    assert all(o.startswith("obj/core/") for o in core)


@pytest.mark.parametrize("buildtype, optimisation, debug", [
    ("release", "-O2", "-g0"), ("debugoptimized", "-O2", "-g"), ("debug", "-O0", "-g")])
def test_build_types(small_tree, facts, buildtype, optimisation, debug):
    words = flags_of(context_of(small_tree, facts, "--buildtype=" + buildtype), CORE).split()
    assert words[0] == optimisation and words[1] == debug
    assert ("-D_GLIBCXX_ASSERTIONS" in words) == (buildtype != "release")
    kernel = flags_of(context_of(small_tree, facts, "--buildtype=" + buildtype), V3)
    assert ("-O3" in kernel) == (buildtype != "debug")


@pytest.mark.parametrize("output, ours", [(CORE, "-O2"), (V3, "-O3"), (TEST, "-O1")])
def test_the_last_optimisation_is_ours_or_the_environments(small_tree, facts, output, ours):
    for flags, last in (("-g", ours), ("-g -O0", "-O0")):
        words = flags_of(context_of(small_tree, facts, environment={"CXXFLAGS": flags}), output)
        assert [word for word in words.split() if word.startswith("-O")][-1] == last


def test_compact_sources_of_a_level_are_not_optimised_more(fresh_tree, facts):
    fresh_tree.edit("kernels/targets.py", 'export="treenail_kernel_library"',
                    'export="treenail_kernel_library", compact=["kernels/cpu/level.cc"]')
    context = context_of(fresh_tree, facts)
    words = flags_of(context, V3).split()
    assert [word for word in words if word.startswith("-O")] == ["-O2"]
    assert "-march=x86-64-v3" in words
    made = {edge.outputs[0]: edge for edge in context.plan.edges}
    assert V3 in made["lib/treenail-0/kernels/x86-64-v3/libtreenail-kernels-cpu.so"].inputs


@pytest.mark.parametrize("argument, flag", [
    ("--sanitize=address,undefined", "-fsanitize=address,undefined"),
    ("--sanitize=thread", "-fsanitize=thread"), ("--coverage", "--coverage"),
    ("--lto", "-flto=auto")])
def test_modes_reach_compile_and_link_edges(small_tree, facts, argument, flag):
    context = context_of(small_tree, facts, argument)
    assert flag in flags_of(context, CORE).split()
    assert flag in flags_of(context, "lib/libtreenail.so.0.1.0").split()


@pytest.mark.parametrize("check, flag", [("address-undefined", "address,undefined"),
                                         ("thread", "thread")])
def test_sanitizer_runs_are_builds_below_this_one(small_tree, facts, check, flag):
    context = context_of(small_tree, facts)
    made = {edge.outputs[0]: dict(edge.variables) for edge in context.plan.edges}
    command = made["check-" + check]["command"]
    assert "--directory sanitize-" + check in command and "--sanitize=" + flag in command
    assert "--check " + check in made["run-" + check]["command"]


def test_architecture_in_a_file_name(small_tree, facts):
    small_tree.write("framework/base/fast_x86.cc", "")
    small_tree.write("framework/base/fast_aarch64.cc", "")
    context = context_of(small_tree, facts)
    outputs = {o for edge in context.plan.edges for o in edge.outputs}
    assert "obj/core/framework/base/fast_x86.cc.o" in outputs
    assert "obj/core/framework/base/fast_aarch64.cc.o" not in outputs


def add_adapter(tree):
    tree.write("kernels/adapters/hdf5/hdf5.cc", "")
    text = (tree.root / "kernels/targets.py").read_text()
    tree.write("kernels/targets.py", text + '''
Component(name="adapter_hdf5", sources=["kernels/adapters/hdf5/*.cc"], external=["hdf5"])
Adapter(name="hdf5", component="adapter_hdf5", feature="hdf5", export="treenail_adapter")
''')


ADAPTER = "lib/treenail-0/adapters/libtreenail-hdf5.so"


def test_adapter_links_its_library_and_the_core_does_not(small_tree, facts):
    add_adapter(small_tree)
    facts.externals["hdf5"] = External(True, ("-I/h5",), ("-L/h5lib", "-lhdf5"), "1.10", "test")
    context = context_of(small_tree, facts)
    made = {edge.outputs[0]: dict(edge.variables) for edge in context.plan.edges}
    assert "-L/h5lib -lhdf5" in made[ADAPTER]["libs"]
    assert "hdf5" not in made["lib/libtreenail.so.0.1.0"]["libs"]
    assert "-isystem /h5" in flags_of(context, "obj/adapter-hdf5/kernels/adapters/hdf5/hdf5.cc.o")
    assert ADAPTER in context.products


def test_adapter_without_its_library_is_left_out(small_tree, facts):
    add_adapter(small_tree)
    facts.externals["hdf5"] = External(False, why_not="test")
    assert ADAPTER not in context_of(small_tree, facts).products


def test_program_of_layers_has_adapters_of_its_own(small_tree, facts):
    """They need no libtreenail, for the program that opens them has the layers."""
    add_adapter(small_tree)
    small_tree.edit("tests/targets.py", 'component="base_test"',
                    'component="base_test", adapters=["hdf5", "absent"]')
    facts.externals["hdf5"] = External(True, (), ("-lhdf5",), "1.10", "test")
    context = context_of(small_tree, facts)
    made = {edge.outputs[0]: dict(edge.variables) for edge in context.plan.edges}
    libs = made["tests/base_layer/adapters/libtreenail-hdf5.so"]["libs"]
    assert "-lhdf5" in libs and "libtreenail" not in libs
    assert "-Wl,--export-dynamic" in made["tests/base_layer_test"]["flags"]
    facts.externals["hdf5"] = External(False, why_not="test")
    made = {edge.outputs[0] for edge in context_of(small_tree, facts).plan.edges}
    assert "tests/base_layer_test" in made
    assert "tests/base_layer/adapters/libtreenail-hdf5.so" not in made


def test_module_per_interpreter_from_one_core(small_tree, facts):
    from small_tree import python_facts
    second = Interpreter("/usr/bin/python3.13", "test", python_facts((3, 13, 1)))
    facts.pythons += (second,)
    facts.python_flags["cpython-313-x86_64-linux-gnu"] = ()
    context = context_of(small_tree, facts)
    modules = [p for p in context.products if p.startswith("python/treenail/_treenail")]
    assert len(modules) == 2
    assert len([p for p in context.products if p == "libtreenail"]) == 1


def test_run_path_of_the_module(small_tree, facts):
    def installed(*arguments):
        return flags_of(context_of(small_tree, facts, *arguments),
                        "relinked/cpython-311-x86_64-linux-gnu/"
                        "_treenail.cpython-311-x86_64-linux-gnu.so")
    assert "-rpath" not in installed("--prefix=/usr")
    assert "'-Wl,-rpath,$$ORIGIN/../../..'" in installed("--prefix=/opt/t")
    assert "'-Wl,-rpath,$$ORIGIN/../../../../lib64'" in installed(
        "--prefix=/opt/t", "--libdir=/opt/t/lib64")


def test_links_sit_in_a_pool_sized_from_memory(small_tree, facts):
    def depth(memory):
        facts.memory_mib = memory
        return dict(context_of(small_tree, facts).plan.pools)["link"]
    assert depth(500) == 1
    assert depth(4000) == 2
    assert depth(10 ** 6) == 8


def test_default_target_is_the_product(small_tree, facts):
    context = context_of(small_tree, facts)
    assert context.plan.defaults == ["all"]
    made = {edge.outputs[0]: edge for edge in context.plan.edges}
    seen, todo = set(), ["all"]
    while todo:
        name = todo.pop()
        if name in seen or name not in made:
            continue
        seen.add(name)
        todo += made[name].inputs + made[name].implicit + made[name].order_only
    assert "lib/libtreenail.so.0.1.0" in seen
    assert not any("tests" in name for name in seen)


def test_without_googletest_the_runner_says_so(small_tree, facts):
    facts.externals["gtest"] = External(False, why_not="no package")
    context = context_of(small_tree, facts)
    assert "no package" in context.plan.files["gen/tests.json"]


def test_the_linker_marks_levels_where_the_compiler_does_not(small_tree, facts):
    """Clang has no -mneeded; the baseline of all x86-64 CPUs needs no mark."""
    facts.isa = isa.choose("x86_64", {"__SSE2__"}, [], None, "x86-64-v3,x86-64-v4")
    where = "lib/treenail-0/kernels/%s/libtreenail-kernels-cpu.so"
    assert "-z," not in flags_of(context_of(small_tree, facts), where % "x86-64-v3").replace(
        "-z,relro", "").replace("-z,now", "").replace("-z,nodelete", "").replace("-z,defs", "")
    facts.isa_note_by_linker = True
    context = context_of(small_tree, facts)
    assert "-Wl,-z,x86-64-v3" in flags_of(context, where % "x86-64-v3")
    assert "-Wl,-z,x86-64-v4" in flags_of(context, where % "x86-64-v4")
    assert "-z,x86-64" not in flags_of(context, where % "x86-64")
    assert "-z,x86-64" not in flags_of(context, "lib/libtreenail.so.0.1.0")
    facts.isa = isa.choose("x86_64", {"__SSE2__"}, [], "x86-64-v2", "x86-64-v3")
    assert "-Wl,-z,x86-64-v2" in flags_of(context_of(small_tree, facts), "lib/libtreenail.so.0.1.0")


def test_version_script():
    text = version_script((("A_1", ("a_*",)), ("B", ("b",))))
    assert text == "A_1 {\n  global:\n    a_*;\n};\nB {\n  global:\n    b;\n  local:\n    *;\n};\n"


def test_cross_build_uses_the_given_compiler(small_tree, facts):
    facts.cxx = dataclasses.replace(facts.cxx, command=("aarch64-linux-gnu-g++",))
    facts.machine, facts.cross = "aarch64", True
    facts.isa = isa.choose("aarch64", {"__ARM_NEON"}, [], None, "auto")
    context = context_of(small_tree, facts)
    rules = {rule.name: dict(rule.variables)["command"] for rule in context.plan.rules}
    assert rules["cxx"].startswith("aarch64-linux-gnu-g++ ")
    assert any("kernels/armv8.2-a/" in p for p in context.products)


def test_precompiled_headers_unless_a_cache_runs_the_compiler(small_tree, facts):
    """A source never names them, so both ways must give the same objects."""
    context = context_of(small_tree, facts)
    made = {edge.outputs[0]: edge for edge in context.plan.edges}
    assert flags_of(context, CORE).endswith("-include gen/pch/core.h")
    assert "gen/pch/core.h.gch" in made[CORE].implicit
    assert "-march=x86-64-v3" in flags_of(context, "gen/pch/x86-64-v3.h.gch")
    assert "#include <framework/base/registry.h>" in context.plan.files["gen/pch/core.h"]
    assert "registry.h" not in context.plan.files["gen/pch/x86-64-v3.h"]
    facts.cxx = dataclasses.replace(facts.cxx, cached=True)
    assert "-include" not in flags_of(context_of(small_tree, facts), CORE)
    assert "-include" in flags_of(context_of(small_tree, facts, "--pch=yes"), CORE)


def test_objects_agree_with_the_precompiled_header_about_threads(small_tree, facts):
    """Clang refuses a header that was compiled with another -pthread."""
    text = (small_tree.root / "kernels/targets.py").read_text()
    small_tree.write("kernels/targets.py", text.replace(
        'needs=["kernel_api"]', 'needs=["kernel_api"], external=["re2"]'))
    facts.externals["re2"] = External(True, ("-pthread", "-I/opt/some"), (), "9", "test")
    flags = flags_of(context_of(small_tree, facts), V3)
    assert "-isystem /opt/some" in flags and "-pthread" not in flags


def test_a_system_include_directory_is_not_moved_forward():
    from gen.plan import system_includes
    assert system_includes(["-I/usr/include", "-I/opt/x", "-DY"]) == ("-isystem", "/opt/x", "-DY")


def test_cross_build_runs_nothing_it_built(small_tree, facts):
    facts.cross = True
    facts.pythons = (Interpreter("", "cross build without --host-python: no Python module", {}),)
    context = context_of(small_tree, facts, "--host=aarch64-linux-gnu")
    made = {edge.outputs[0]: dict(edge.variables) for edge in context.plan.edges}
    assert "exit 1" in made["test"]["command"]
    for edge in context.plan.edges:
        command = dict(edge.variables).get("command", "")
        assert "./python3" not in command and "run_tests" not in command, edge.outputs
    assert not any("_treenail" in path for path in context.products)


def test_benchmarks_are_built_for_bench_alone(small_tree, facts):
    small_tree.write("bench/base/base_bench.cc", "")
    small_tree.write("bench/targets.py", '''
Component(name="base_bench", sources=["bench/base/*.cc"], needs=["base"], external=["benchmark"])
BenchProgram(name="base", component="base_bench")
''')
    programs = {edge.outputs[0]: edge for edge in context_of(small_tree, facts).plan.edges}
    assert programs["bench-programs"].inputs == ()  # the library is not there
    facts.externals["benchmark"] = External(True, (), ("-lbenchmark",), "1.7", "test")
    context = context_of(small_tree, facts)
    programs = {edge.outputs[0]: edge for edge in context.plan.edges}
    assert programs["bench-programs"].inputs == ("bench/base_bench",)
    assert not any("bench" in product for product in context.products)


def test_the_site_s_half_is_tested_apart(small_tree, facts):
    """`ninja test` knows nothing of tests/site; `ninja check-site` runs nothing else."""
    plan = context_of(small_tree, facts).plan
    made = {edge.outputs[0]: dict(edge.variables) for edge in plan.edges}
    assert "tests/site" not in plan.files["gen/tests.json"]
    site = json.loads(plan.files["gen/site.json"])
    assert [group["folder"] for group in site["pytest"]] == ["tests/site"]
    assert site["programs"] == {}
    assert "--manifest gen/site.json --junit reports/site.xml" in made["check-site"]["command"]
    assert "--manifest gen/tests.json --junit reports/unit.xml" in made["test"]["command"]
    assert "  check-site" in plan.files["gen/help.txt"]


@pytest.mark.parametrize("family, flags, wanted", [
    ("gcc", "-O2 -g", False), ("gcc", "-ggdb3 -O2", False), ("gcc", "-gdwarf-4", False),
    ("gcc", "-g -g0", True), ("gcc", "-g1", True),
    ("gcc", "-gz", True), ("gcc", "-O2", True), ("clang", "-g", True)])
def test_no_precompiled_headers_beside_debug_information_of_gcc(small_tree, facts, family, flags,
                                                                wanted):
    """They made it differ from build to build."""
    facts.cxx = dataclasses.replace(facts.cxx, family=family)
    context = context_of(small_tree, facts, "CXXFLAGS=" + flags)
    assert ("-include gen/pch/core.h" in flags_of(context, CORE)) == wanted
    assert "-include" in flags_of(context_of(small_tree, facts, "CXXFLAGS=" + flags, "--pch=yes"),
                                  CORE)


@pytest.mark.parametrize("flags, buildtype, wanted", [
    ("-g -O2", "release", True), ("-O2", "release", False), ("-g1", "release", False),
    ("-g", "debugoptimized", False)])
def test_a_distribution_s_debugger_sees_variables_where_they_tell_something(
        small_tree, facts, flags, buildtype, wanted):
    """What has none is compiled with headers precompiled by the same flags; GCC's others vary."""
    context = context_of(small_tree, facts, "CXXFLAGS=" + flags, "--buildtype=" + buildtype)
    for output, header in ((RED, "gen/pch/core-lines.h"), (V3, "gen/pch/x86-64-v3.h")):
        assert (flags_of(context, output).split()[-3:] == ["-g1", "-include", header]) == wanted
        assert not wanted or flags_of(context, header + ".gch").endswith("-g1")
    assert flags_of(context, CORE).count("-g1") == flags.count("-g1")
