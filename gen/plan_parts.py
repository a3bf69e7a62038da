# SPDX-License-Identifier: Apache-2.0
"""Each kind of record to its edges: libraries, kernel levels, adapters, Python, programs."""

import os
from typing import Dict, List, Sequence

from gen import records
from gen.install import module_runpath, program_runpath
from gen.plan import (Context, Installed, compile_sources, debug_flags, external_flags,
                      isa_note, kernel_flags, precompile, shell, system_includes, unoptimised,
                      version_script)
from gen.private_abi import shared_headers

PRIVATE_PATTERNS = ("_ZN8treenail*", "_ZNK8treenail*", "_ZT[ISV]N8treenail*",
                    "_ZTHN8treenail*", "_ZTWN8treenail*", "_ZGVN8treenail*")


def _script(context: Context, name: str, text: str) -> str:
    path = "gen/%s.map" % name
    context.plan.files[path] = text
    return path


def link(context: Context, output: str, objects: Sequence[str], libs: Sequence[str],
         flags: Sequence[str], implicit: Sequence[str] = (), order_only: Sequence[str] = (),
         shared: bool = True) -> None:
    text = "$linkflags"
    if shared:
        text += " $sharedflags"
    if flags:
        text += " " + shell(flags)
    context.plan.edge("link", [output], objects, implicit=implicit, order_only=order_only,
                      flags=text, libs=shell(libs))


def plan_generated(context: Context) -> None:
    """Registration tables and build_info.h."""
    plan, model = context.plan, context.model
    for table in model.of(records.Registration):
        arguments = ["--output", "gen/" + table.output, "--function", table.function, "--namespace",
                     table.namespace, "--table", table.table, "--argument", table.argument,
                     "--include", table.include]
        if table.finish:
            arguments += ["--finish", table.finish]
        plan.edge("generate", ["gen/" + table.output],
                  [context.source(p) for p in model.glob((table.sources,))],
                  implicit=[context.source("gen/tools/registration.py")],
                  tool="registration.py", arguments=shell(arguments))
    levels = [level.name for level in context.facts.isa.all]
    features = sorted(part.feature for kind in (records.Adapter, records.DeviceLibrary)
                      for part in model.of(kind)
                      if model.present(part.component) and context.enabled((part.feature,)))
    plan.edge("generate", ["gen/build_info.h"], [context.source(p) for p in shared_headers(model)],
              implicit=[context.source("gen/" + n) for n in (
                  "private_abi.py", "tools/build_info.py", "tools/registration.py")],
              tool="build_info.py", arguments=shell([
                  "--output", "gen/build_info.h", "--version", model.version, "--machine",
                  context.facts.machine, "--baseline", context.facts.isa.baseline.name,
                  "--levels", " ".join(levels), "--features", " ".join(features),
                  "--buildtype", context.buildtype]))
    plan.edge("phony", ["generated-headers"], ["gen/build_info.h"])


def precompile_core(context: Context, more: Sequence[str] = (), flags: Sequence[str] = ()) -> str:
    """The precompiled header of the library and of what is linked with it, by debug_flags."""
    return precompile(context, "core-lines" if flags else "core", flags, more)


def plan_library(context: Context, library: records.SharedLibrary) -> str:
    """The versioned library with its two symbol nodes and links; returns its real path."""
    model, plan = context.model, context.plan
    objects: List[str] = []
    pch = precompile_core(context, library.precompiled)
    for component in library.components:
        flags = debug_flags(context, component)
        context.objects[component] = compile_sources(
            context, "core", model.sources.get(component, ()),
            external_flags(context, component) + flags,
            pch=precompile_core(context, library.precompiled, flags))
        objects += context.objects[component]
    owners = {table.output: model.owner[path] for table in model.of(records.Registration)
              for path in model.glob((table.sources,))[:1]}
    for table in library.generated:
        made = compile_sources(context, "core", (), pch=pch, generated=["gen/" + table])
        objects += made
        context.objects[owners[table]] += made
    version = model.version
    script = _script(context, library.name, version_script((
        ("TREENAIL_1", ("tn_*",)), ("TREENAIL_PRIVATE_" + version, PRIVATE_PATTERNS))))
    soname = "lib%s.so.%s" % (library.name, context.soversion)
    real = "lib/lib%s.so.%s" % (library.name, version)
    link(context, real, objects, ("-lm", "-ldl", "-pthread"),
         ("-Wl,-soname," + soname, "-Wl,--version-script=" + script) + isa_note(
             context, context.facts.isa.baseline), implicit=[script])
    for kind, name in (("soname", soname), ("link", "lib%s.so" % library.name)):
        plan.edge("symlink", ["lib/" + name], implicit=[real], target=os.path.basename(real))
        context.install.append(Installed(kind, "lib/" + name, "libdir"))
    context.install.append(Installed("library", real, "libdir"))
    plan.phony("lib" + library.name, ["lib/" + soname, "lib/lib%s.so" % library.name, real])
    context.products += ["lib" + library.name]
    return real


def plan_abi_library(context: Context) -> None:
    """abi/lib*.so: what defines the installed C interface, with the debug information that abidw
    reads, for gen/tools/abi.py. A plugin's entry leads to the types that plugins share with us."""
    model = context.model
    headers = [h for record in model.of(records.Headers) for h in model.glob(record.files)]
    component = next((name for name, owned in sorted(model.headers.items())
                      if set(owned) & set(headers)), "")
    if not component:
        return
    flags = ("-g", "-O1", "-w")
    objects = compile_sources(context, "abi", model.sources[component], flags)
    if any(h.endswith("treenail/plugin.h") for h in headers):
        context.plan.files["gen/plugin_entry.c"] = (
            "#include <treenail/plugin.h>\n"
            "void tn_plugin_init(const tn_host* host, tn_plugin* plugin) {}\n")
        objects += compile_sources(context, "abi", (), flags, generated=["gen/plugin_entry.c"])
    script = _script(context, "abi", version_script((("TREENAIL_1", ("tn_*",)),)))
    link(context, "abi/libtreenail.so." + context.soversion, objects, (),
         ("-shared", "-Wl,--version-script=" + script), implicit=[script], shared=False)


def plan_kernels(context: Context, library: records.KernelLibrary, core: str) -> None:
    """The same sources once per level; the tools see to it that nothing else leaks out."""
    model = context.model
    script = _script(context, library.name, version_script((("", (library.export,)),)))
    component = library.component
    of_compact = model.glob(library.compact)
    others = [path for path in model.sources[component] if path not in of_compact]
    for level in context.facts.isa.all:
        objects = []
        for compact, sources in ((False, others), (True, of_compact)):
            if compact and not sources:
                continue
            flags = external_flags(context, component) + kernel_flags(
                context, level, compact) + debug_flags(context, component)
            name = level.name + ("-compact" if compact else "")
            objects += compile_sources(context, level.name, sources, flags,
                                       pch=precompile(context, name, flags, library.precompiled),
                                       generated=["gen/" + g for g in library.generated
                                                  if not compact])
        output = "lib/%s/kernels/%s/lib%s-%s.so" % (context.private, level.name, "treenail",
                                                    library.name)
        link(context, output, objects, (core, "-lm"),
             ("-Wl,--version-script=" + script, "-Wl,-soname," + os.path.basename(output))
             + isa_note(context, level), implicit=[script, core])
        context.products.append(output)
        where = "libdir/%s/kernels/%s" % (context.private, level.name)
        context.install.append(Installed("module", output, where))


def plan_adapter(context: Context, adapter: records.Adapter, core: str) -> None:
    model = context.model
    script = _script(context, "adapter", version_script((("", (adapter.export,)),)))
    external = context.facts.externals[adapter.feature]
    objects = compile_sources(context, "adapter-" + adapter.name, model.sources[adapter.component],
                              external_flags(context, adapter.component),
                              pch=precompile_core(context))
    output = "lib/%s/adapters/libtreenail-%s.so" % (context.private, adapter.name)
    link(context, output, objects, (core,) + external.libs + ("-lm",),
         ("-Wl,--version-script=" + script, "-Wl,-soname," + os.path.basename(output)),
         implicit=[script, core])
    context.products.append(output)
    context.objects[adapter.component] = objects
    context.install.append(Installed("module", output, "libdir/%s/adapters" % context.private,
                                     adapter.part))


def plan_plugin(context: Context, plugin: records.Plugin, core: str) -> None:
    """A plugin not our own links nothing of ours: it talks through the table that it is given."""
    script = _script(context, "plugin-" + plugin.export,
                     version_script((("", (plugin.export,)),))) if plugin.export else ""
    objects = [made for component in (plugin.component, *plugin.components)
               for made in compile_sources(context, "plugin-" + plugin.name,
                                           context.model.sources[component],
                                           external_flags(context, component))]
    output = "lib/%s/plugins/libtreenail-%s.so" % (context.private, plugin.name)
    if not plugin.install:
        output = "tests/plugins/libtreenail-%s.so" % plugin.name
    own = (core,) if plugin.own else ()
    link(context, output, objects, own + ("-lm",),
         ("-Wl,--version-script=" + script,) if script else (),
         implicit=([script] if script else []) + list(own))
    if plugin.install:
        context.products.append(output)
        context.install.append(Installed("module", output, "libdir/%s/plugins" % context.private))
    else:
        context.test_files.append(output)


def plan_extension(context: Context, extension: records.PythonExtension, core: str,
                   package: records.PythonPackage) -> None:
    """One module per interpreter, linked once per place it runs from (the run path differs)."""
    pybind = context.facts.externals["pybind11"]
    script = _script(context, extension.name, version_script((("", ("PyInit_*",)),)))
    # Python's own headers are those of the interpreter, not what pkg-config guesses.
    pybind_flags = system_includes([f for f in pybind.cflags
                                    if not os.path.basename(f).startswith("python")])
    for python in context.facts.pythons:
        if not python.facts:
            continue
        tag = python.facts["soabi"]
        flags = tuple(context.facts.python_flags.get(
            tag, ("-isystem", python.facts["include"], "-isystem", python.facts["platinclude"])))
        debug = debug_flags(context, extension.component)
        objects = compile_sources(context, "python-" + tag,
                                  context.model.sources[extension.component],
                                  flags + pybind_flags + debug,
                                  pch=precompile_core(context, flags=debug))
        file = extension.name + python.facts["ext_suffix"]
        for place, runpath in (("python/" + package.name, "$ORIGIN/../../lib"),
                               ("relinked/" + tag, module_runpath(context, python)),
                               ("wheel-module/" + tag, "$ORIGIN/lib")):
            output = "%s/%s" % (place, file)
            # The interpreter that loads the module has Python's symbols; distributions link no
            # libpython, so what is undefined here is no error.
            flags = ("-shared", "-Wl,--version-script=" + script)
            flags += ("-Wl,-rpath," + runpath,) if runpath else ()
            link(context, output, objects, (core,), flags, implicit=[core, script], shared=False)
            if place.startswith("wheel-module"):
                context.wheel_files.append(output)
            else:
                context.products.append(output)
        context.install.append(Installed("extension", "relinked/%s/%s" % (tag, file), file))


def plan_program(context: Context, program: records.Program, core: str) -> None:
    """Linked once to run in the build directory and once for where it is installed."""
    objects = compile_sources(context, "programs", context.model.sources[program.component],
                              external_flags(context, program.component))
    for place, runpath in (("bin", "$ORIGIN/../lib"), ("relinked/bin", program_runpath(context))):
        output = "%s/%s" % (place, program.name)
        flags = ("-Wl,-rpath," + runpath,) if runpath else ()
        link(context, output, objects, (core,), flags, implicit=[core], shared=False)
        context.products.append(output)
    context.install += [
        Installed("program", "relinked/bin/" + program.name, program.name, program.part),
        Installed("manual", program.manual, os.path.basename(program.manual), program.part),
        Installed("completion", program.completion, program.name, program.part)]
    if program.unit:
        context.install.append(
            Installed("unit", program.unit, os.path.basename(program.unit), program.part))


def plan_python_program(context: Context, program: records.PythonProgram) -> None:
    """A launcher in the build directory; what is installed is a text of gen/install.py's."""
    python = context.facts.pythons[0]
    if not python.facts:
        return
    if python.path:
        output = "bin/" + program.name
        context.plan.edge("tool", [output], order_only=["python3"],
                          implicit=[context.source("gen/tools/launcher.py")], tool="launcher.py",
                          arguments=shell(["--output", output, "--module", program.module]),
                          shown="GEN " + output)
        context.products.append(output)
    context.install += [
        Installed("script", "gen/install/" + program.name, program.name, "python"),
        Installed("manual", program.manual, os.path.basename(program.manual), "python"),
        Installed("completion", program.completion, program.name, "python")]


def plan_python_package(context: Context, package: records.PythonPackage) -> None:
    """Links to the package's files in build/python; one edge, so that removed sources vanish."""
    files = context.model.glob(package.files)
    listing = "gen/python-%s.list" % package.name
    context.plan.files[listing] = "".join("%s\n" % f for f in files)
    stamp = "gen/python-%s.stamp" % package.name
    context.plan.edge("tool", [stamp], implicit=[listing,
                                                 context.source("gen/tools/link_tree.py")],
                      tool="link_tree.py", arguments=shell([
                          "--list", listing, "--source", context.source(package.root), "--root",
                          package.root, "--into", "python/" + package.name, "--stamp", stamp]),
                      shown="LINKS python/" + package.name)
    context.products.append(stamp)
    for path in files:
        relative = os.path.relpath(path, package.root)
        context.install.append(Installed("python", path, relative))


def plan_test_program(context: Context, program: records.TestProgram, core: str) -> str:
    model = context.model
    gtest = context.facts.externals["gtest"]
    # Half the time of -O2 with debug information, which GoogleTest's macros make large.
    quick = ("-O1", "-g0") if context.buildtype == "release" and not unoptimised(context) else ()
    flags = system_includes(gtest.cflags) + quick
    objects = compile_sources(context, "tests-" + program.name, model.sources[program.component],
                              external_flags(context, program.component) + quick,
                              pch=precompile(context, "tests", flags, ("gtest/gtest.h",)))
    main = tuple(lib for lib in gtest.libs if lib != "-lgtest_main")
    libs = ("-lgtest_main",) + main + ("-pthread", "-ldl", "-lm")
    output = "tests/%s_test" % program.name
    link(context, output, objects, (core,) + libs, ("-Wl,-rpath,$ORIGIN/../lib",),
         implicit=[core], shared=False)
    plan_layer_program(context, program, objects, libs)
    return output


def plan_layer_program(context: Context, program: records.TestProgram, objects: Sequence[str],
                       libs: Sequence[str]) -> None:
    """The same with its layers alone. Adapters find these in the program, not in the library."""
    output = "tests/%s_layer_test" % program.name
    layers = closure(context, program.component)
    below = [o for name in layers for o in context.objects.get(name, [])]
    built = [output]
    for adapter in context.model.of(records.Adapter):
        if adapter.name not in program.adapters or adapter.component not in context.objects:
            continue
        module = "tests/%s_layer/adapters/libtreenail-%s.so" % (program.name, adapter.name)
        link(context, module, context.objects[adapter.component],
             context.facts.externals[adapter.feature].libs + ("-lm",),
             ("-shared", "-Wl,--version-script=gen/adapter.map"), implicit=["gen/adapter.map"],
             shared=False)
        built.append(module)
    link(context, output, [*objects, *below], libs,
         ("-Wl,--export-dynamic",) if program.adapters else (), shared=False)
    context.plan.edge("phony", ["layer-" + program.name], built)


def plan_bench_programs(context: Context, core: str) -> None:
    """The programs of Google Benchmark; none where it was not found."""
    benchmark = context.facts.externals["benchmark"]
    built = []
    for program in context.model.of(records.BenchProgram):
        if not benchmark.found or not context.model.present(program.component):
            continue
        objects = compile_sources(
            context, "bench-" + program.name, context.model.sources[program.component],
            external_flags(context, program.component))
        output = "bench/%s_bench" % program.name
        link(context, output, objects, (core,) + benchmark.libs + ("-pthread",),
             ("-Wl,-rpath,$ORIGIN/../lib",), implicit=[core], shared=False)
        built.append(output)
    if context.model.of(records.BenchProgram):
        context.plan.phony("bench-programs", built)


def closure(context: Context, component: str) -> List[str]:
    """The component's needs, and theirs: the layers that it must be able to do with."""
    found: List[str] = []
    todo = list(context.model.components[component].needs)
    while todo:
        name = todo.pop()
        if name not in found:
            found.append(name)
            todo += context.model.components[name].needs
    return sorted(found)


def plan_records(context: Context) -> Dict[str, str]:
    """All records; returns test program name -> path."""
    model = context.model
    plan_generated(context)
    core = ""
    for library in model.of(records.SharedLibrary):
        core = plan_library(context, library)
    plan_abi_library(context)
    for kernels in model.of(records.KernelLibrary):
        if model.present(kernels.component):
            plan_kernels(context, kernels, core)
    for adapter in model.of(records.Adapter):
        if model.present(adapter.component) and context.enabled((adapter.feature,)):
            plan_adapter(context, adapter, core)
    for plugin in model.of(records.Plugin):
        if model.present(plugin.component):
            plan_plugin(context, plugin, core)
    for program in model.of(records.Program):
        needs = (program.feature,) if program.feature else ()
        if model.present(program.component) and context.enabled(needs):
            plan_program(context, program, core)
    packages = {p.name: p for p in model.of(records.PythonPackage)}
    for extension in model.of(records.PythonExtension):
        if model.present(extension.component):
            plan_extension(context, extension, core, next(iter(packages.values())))
    for package in packages.values():
        if model.glob(package.files):
            plan_python_package(context, package)
            for script in model.of(records.PythonProgram):
                plan_python_program(context, script)
    plan_bench_programs(context, core)
    programs = {}
    if context.facts.externals["gtest"].found:
        for program in model.of(records.TestProgram):
            features = model.components[program.component].features
            if model.present(program.component) and context.enabled(features):
                programs[program.name] = plan_test_program(context, program, core)
    return programs
