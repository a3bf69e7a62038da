# SPDX-License-Identifier: Apache-2.0
"""Write the table that calls one registration function per family file.

A source <stem>.cc counts as a family when its text contains the function's name followed by '(';
helpers beside the families are left alone. The output is only touched when it changes.
"""

import argparse
import os
import re
import shlex
import sys

HEADER = """// SPDX-License-Identifier: Apache-2.0
// Generated from file names by gen/tools/registration.py; do not edit.
#include "{include}"

namespace {namespace} {{
{declarations}}}  // namespace {namespace}

namespace {outer} {{
void {table}({argument}& registry) {{
{calls}}}
}}  // namespace {outer}
"""


def write_if_changed(path, text):
    try:
        with open(path, encoding="utf-8") as stream:
            if stream.read() == text:
                return
    except OSError:
        pass
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def families(paths, function):
    found = {}
    for path in paths:
        stem = os.path.basename(path).rsplit(".", 1)[0]
        name = function.replace("*", stem)
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        if re.search(r"\b%s\(" % re.escape(name), text):
            if stem in found:
                sys.exit("two families are called %s: %s and %s" % (stem, found[stem], path))
            found[stem] = path
    return sorted(found)


def main():
    parser = argparse.ArgumentParser()
    for name in ("output", "function", "namespace", "table", "argument", "include", "finish"):
        parser.add_argument("--" + name, default="")
    parser.add_argument("list")
    options = parser.parse_args()
    with open(options.list.lstrip("@"), encoding="utf-8") as stream:
        paths = shlex.split(stream.read())  # ninja quotes names as a shell needs them
    names = families(paths, options.function)
    functions = [options.function.replace("*", name) for name in names]
    calls = []
    for name, function in zip(names, functions):
        calls.append("  %s::%s(registry);\n" % (options.namespace, function))
        if options.finish:
            calls.append("  registry.%s(\"%s\");\n" % (options.finish, name))
    if not functions:
        calls.append("  (void)registry;\n")
    write_if_changed(options.output, HEADER.format(
        include=options.include, namespace=options.namespace,
        outer=options.table.rpartition("::")[0],
        table=options.table.rpartition("::")[2],
        argument=options.argument, calls="".join(calls),
        declarations="".join("void %s(%s& registry);\n" % (f, options.argument)
                             for f in functions)))


if __name__ == "__main__":
    main()
