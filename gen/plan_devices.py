# SPDX-License-Identifier: Apache-2.0
"""Device libraries to edges: device code by nvcc, embedded beside host code; and stand-ins for the
libraries that they open, for tests. Pure, as plan.py is.
"""

import json
import os
from typing import Dict, List, Sequence, Tuple

from gen import records
from gen.cuda import CODE_FLAGS, code_flags
from gen.errors import ConfigureError
from gen.libraries import version_tuple
from gen.ninja import Rule, escape_value
from gen.plan import (Context, Installed, compile_sources, external_flags, object_path, shell,
                      version_script)
from gen.plan_parts import link, precompile_core
from gen.probe import HIDDEN_FLAGS

DEVICE_CODE = ".cu"

IMAGE = """
  .balign 64
.Lbegin%(n)d:
  .incbin "%(path)s"
.Lend%(n)d:
"""
ROW = "  .8byte .Lname%(n)d, .Lbegin%(n)d, .Lend%(n)d - .Lbegin%(n)d\n"
ASSEMBLER = """// Written by configure.py: device code, and the table of it (driver/images.h).
  .section .rodata
%(names)s%(images)s
  .section .data.rel.ro, "aw", %%progbits
  .balign 8
  .globl %(table)s
  .hidden %(table)s
  .type %(table)s, %%object
%(table)s:
%(rows)s  .8byte 0, 0, 0
  .size %(table)s, . - %(table)s
  .section .note.GNU-stack, "", %%progbits
"""


def images_text(table: str, images: Sequence[Tuple[str, str]]) -> str:
    """An assembler source: `images` are (name, path from the build directory). The code lies in
    read-only memory, the table of name, begin and size behind relocations."""
    rows = [{"n": n, "name": name, "path": path} for n, (name, path) in enumerate(images)]
    return ASSEMBLER % {
        "table": table, "rows": "".join(ROW % row for row in rows),
        "images": "".join(IMAGE % row for row in rows),
        "names": "".join('.Lname%(n)d:\n  .asciz "%(name)s"\n' % row for row in rows)}


def is_device_code(path: str) -> bool:
    return path.endswith(DEVICE_CODE)


def add_nvcc_rule(context: Context) -> None:
    toolkit = context.facts.cuda
    assert toolkit is not None
    # A tenth of the size; older toolkits do not know the option.
    compressed = version_tuple(toolkit.version) >= (13,)
    flags = (*CODE_FLAGS, *code_flags(toolkit.architectures),
             *(["-compress-mode=size"] if compressed else []), "-Wno-deprecated-gpu-targets",
             "-ccbin", toolkit.host_compiler, "-I" + context.up)
    context.plan.variables.append(("nvccflags", shell(flags)))
    program = shell(["env", *("-u" + name for name in HIDDEN_FLAGS), toolkit.nvcc])
    context.plan.rules.append(Rule("nvcc", (
        ("command", program + " $nvccflags -MD -MF $out.d $in -o $out"),
        ("description", "NVCC $shown"), ("deps", "gcc"), ("depfile", "$out.d"))))


def plan_images(context: Context, library: records.DeviceLibrary) -> str:
    """A fat binary for each source of device code; returns the object that embeds them all."""
    images: Dict[str, str] = {}
    for path in context.model.sources[library.device_code]:
        stem = path[:-len(DEVICE_CODE)]
        name, output = os.path.basename(stem), stem.partition("/")[2] + ".fatbin"
        if name in images:
            raise ConfigureError("%s: there is a %s%s already, and images have the names of files"
                                 % (path, name, DEVICE_CODE))
        images[name] = output
        context.plan.edge("nvcc", [output], [context.source(path)], shown=escape_value(path))
    source = "gen/%s.S" % library.images
    context.plan.files[source] = images_text(library.images, sorted(images.items()))
    made = object_path("device-" + library.name, source)
    # Nothing to debug here, and debug information would name the build directory. Who looks for the
    # environment's flags in a log finds them here, too.
    context.plan.edge("cc", [made], [source], implicit=sorted(images.values()),
                      flags=shell(context.env("CPPFLAGS") + ("-g0",)), shown=source)
    return made


def plan_device_library(context: Context, library: records.DeviceLibrary, core: str,
                        checked: Sequence[str] = ()) -> None:
    """Linked with libtreenail and nothing of the device's: that is opened when it is there.
    checked: what must have been seen to first."""
    add_nvcc_rule(context)
    toolkit = context.facts.cuda
    assert toolkit is not None
    context.plan.files["gen/cuda.json"] = json.dumps(  # what packages recommend follows from it
        {"version": toolkit.version, "architectures": toolkit.architectures,
         "majors": dict(toolkit.majors)}, indent=1, sort_keys=True) + "\n"
    exported = "gen/device-library.map"
    context.plan.files[exported] = version_script((("", (library.export,)),))
    objects = compile_sources(context, "device-" + library.name,
                              context.model.sources[library.component],
                              external_flags(context, library.component),
                              generated=["gen/" + name for name in library.generated],
                              pch=precompile_core(context))
    objects.append(plan_images(context, library))
    output = "lib/%s/devices/libtreenail-%s.so" % (context.private, library.name)
    link(context, output, objects, (core, "-ldl", "-lm"),
         ("-Wl,--version-script=" + exported, "-Wl,-soname," + os.path.basename(output)),
         implicit=[exported, core, *checked])
    context.products.append(output)
    context.install.append(Installed("module", output, "libdir/%s/devices" % context.private,
                                     library.part))


def host_objects(context: Context, library: records.SimulatedLibrary, component: str) -> List[str]:
    """The component compiled for the host, once for all that are made of it: libtreenail's layers
    have been."""
    if component not in context.objects:
        sources = context.model.sources[component]
        flags = external_flags(context, component)
        made = compile_sources(context, library.folder,
                               [p for p in sources if not is_device_code(p)], flags)
        made += compile_sources(context, library.folder, [p for p in sources if is_device_code(p)],
                                flags + ("-x", "c++"))
        context.objects[component] = made
    return context.objects[component]


def plan_simulated_library(context: Context, library: records.SimulatedLibrary) -> None:
    toolkit = context.facts.cuda
    assert toolkit is not None

    def path(soname: str) -> str:
        return "tests/%s/%s" % (library.folder, soname.format_map(toolkit.majors))

    objects = [o for name in library.components for o in host_objects(context, library, name)]
    output = path(library.soname)
    exported = "gen/%s.map" % os.path.basename(output)
    context.plan.files[exported] = version_script((("", library.exports),))
    others = [path(soname) for soname in library.libraries]
    link(context, output, objects, (*others, "-pthread", "-ldl", "-lm"),
         ("-Wl,--version-script=" + exported, "-Wl,-soname," + os.path.basename(output),
          "-Wl,-rpath,$ORIGIN"), implicit=[exported, *others])
    context.test_files.append(output)


def plan_device_libraries(context: Context, core: str, checked: Sequence[str] = ()) -> None:
    """All of them whose feature is there, for the libtreenail `core`."""
    for library in context.model.of(records.DeviceLibrary):
        if context.model.present(library.component) and context.enabled((library.feature,)):
            plan_device_library(context, library, core, checked)


def plan_devices(context: Context) -> None:
    """For the library of this build; and what tests use in place of the vendor's libraries."""
    model = context.model
    plan_device_libraries(context, "".join(
        "lib/lib%s.so.%s" % (library.name, model.version)
        for library in model.of(records.SharedLibrary)))
    for simulated in model.of(records.SimulatedLibrary):
        if context.enabled((simulated.feature,)) and model.present(simulated.components[0]) and \
                simulated.header_of in (None, *context.facts.cuda.majors):
            plan_simulated_library(context, simulated)
