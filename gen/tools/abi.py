# SPDX-License-Identifier: Apache-2.0
"""Hold the C interface to what tests/abi/N tracks of it: headers, and abidw's description.

  abi.py --build BUILD            compare; exit status 1 where something differs
  abi.py --build BUILD --update   write tests/abi/N anew; a commit must then say why

N is the major version, that of the SONAME. tests/abi/N/include holds the installed headers, from
which a test compiles the plugin beside them; libtreenail-MACHINE.abi what abidw (libabigail) finds
in the interface's debug information: functions, and the types that they and plugins share with us.
A build for another machine writes that machine's description.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from proving import SOURCE, Failed, NotRun, build_info, need, run  # noqa: E402

HEADERS = "framework/capi/include"
RULE = (
    "Programs and plugins that exist count on it. If it was meant, run gen/tools/abi.py --build "
    "BUILD --update, and say in the commit's message what changed, why, and why they keep working; "
    "if they do not, the major version changes and this becomes tests/abi/%d.")


def folder(major, source=SOURCE):
    return os.path.join(source, "tests/abi", str(major))


def header_names(root):
    found = []
    for inner, _, leaves in os.walk(root):
        found += [os.path.relpath(os.path.join(inner, leaf), root) for leaf in leaves]
    return sorted(found)


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def header_differences(major, source=SOURCE):
    """A sentence for each installed header that is not as tracked."""
    tracked, present = os.path.join(folder(major, source), "include"), os.path.join(source, HEADERS)
    if not os.path.isdir(tracked):
        return ["tests/abi/%d/include is not there: it must hold the headers of ABI %d, as %s has "
                "them" % (major, major, HEADERS)]
    found = []
    for name in sorted(set(header_names(tracked)) | set(header_names(present))):
        old, new = os.path.join(tracked, name), os.path.join(present, name)
        if not os.path.exists(new):
            found.append("%s/%s is gone, which ABI %d has" % (HEADERS, name, major))
        elif not os.path.exists(old):
            found.append("%s/%s is new: ABI %d, as tracked, does not have it" % (
                HEADERS, name, major))
        elif read(old) != read(new):
            lines = [i for i, (a, b) in enumerate(zip(
                read(old).splitlines() + [None], read(new).splitlines() + [None]), 1) if a != b]
            found.append("%s/%s:%d differs from tests/abi/%d/include/%s" % (
                HEADERS, name, lines[0] if lines else 1, major, name))
    return found


def described(build, target):
    """Writes abidw's description of the build's interface to `target`."""
    need("abidw", "abigail-tools")
    major = build_info("kVersion", build).split(".")[0]
    library = "abi/libtreenail.so." + major
    run(["ninja", "-C", build, library])
    run(["abidw", "--headers-dir", os.path.join(SOURCE, HEADERS), "--drop-private-types",
         "--exported-interfaces-only", "--drop-undefined-syms", "--no-show-locs",
         "--no-corpus-path", "--no-comp-dir-path", "--no-elf-needed", "--no-parameter-names",
         "--type-id-style", "hash", "--out-file", target, os.path.join(build, library)])
    # What the compiler was given and is called is none of the interface.
    text = re.sub(r" (?:comp-dir-path|producer)='[^']*'", "", read(target))
    with open(target, "w", encoding="utf-8") as stream:
        stream.write(text)
    if "<function-decl " not in text:
        raise Failed("abidw finds no functions in %s/%s; was it stripped?" % (build, library))


def baseline(build):
    major = int(build_info("kVersion", build).split(".")[0])
    return os.path.join(folder(major), "libtreenail-%s.abi" % build_info("kMachine", build))


def compare(build):
    """What is unchanged, in words; raises Failed with abidiff's report, NotRun where it cannot."""
    need("abidiff", "abigail-tools")
    tracked = baseline(build)
    if not os.path.exists(tracked):
        raise NotRun("%s is not there; a build for that machine makes it: gen/tools/abi.py --build "
                     "BUILD --update" % os.path.relpath(tracked, SOURCE))
    major = int(build_info("kVersion", build).split(".")[0])
    with tempfile.TemporaryDirectory() as scratch:
        now = os.path.join(scratch, "now.abi")
        described(build, now)
        done = subprocess.run(["abidiff", "--no-show-locs", tracked, now], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        report = done.stdout.decode(errors="replace").strip()
        if done.returncode:
            raise Failed("%s: abidiff finds (exit status %d):\n%s\n%s" % (
                os.path.relpath(tracked, SOURCE), done.returncode, report[-3000:],
                RULE % (major + 1)))
        return "%d functions as in %s" % (
            len(set(re.findall(r"elf-symbol-id='(tn_\w+)", read(now)))),
            os.path.relpath(tracked, SOURCE))


def update(build):
    major = int(build_info("kVersion", build).split(".")[0])
    include = os.path.join(folder(major), "include")
    shutil.rmtree(include, ignore_errors=True)
    shutil.copytree(os.path.join(SOURCE, HEADERS), include)
    described(build, baseline(build))
    print("wrote %s and %s; the commit must say why" % (
        os.path.relpath(include, SOURCE), os.path.relpath(baseline(build), SOURCE)))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    try:
        run(["ninja", "-C", options.build, "generated-headers"])
        if options.update:
            update(options.build)
            return 0
        major = int(build_info("kVersion", options.build).split(".")[0])
        found = header_differences(major)
        if found:
            raise Failed("\n".join(found + [RULE % (major + 1)]))
        print("abi: headers as tracked; " + compare(options.build))
    except NotRun as reason:
        print("abi: not run: %s" % reason)
    except Failed as reason:
        print("abi: %s" % reason)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
