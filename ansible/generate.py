#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write what follows from the roles' data: run after changing a component.yml or an
argument_specs.yml.

  generate.py           write the files that differ
  generate.py --check   name them instead; exit status 1 if there are any

Of a component (a role with component.yml) everything but that record is written here: tasks,
interface, meta data, README. Of other roles the README, from meta/argument_specs.yml.
"""

import argparse
import os
import sys
import textwrap

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROLES = os.path.join(HERE, "roles")
SPDX = "# SPDX-License-Identifier: Apache-2.0\n"
WRITTEN = "# Written by generate.py from component.yml.\n"
MODES = {"build": "build it from source into a prefix of its own",
         "package": "take the distribution's", "module": "load a module that the site has",
         "skip": "leave it out"}


def load(path):
    with open(path, encoding="utf-8") as stream:
        return yaml.safe_load(stream)


class Dumper(yaml.SafeDumper):
    """Lists stand deeper than what they belong to, as ansible-lint wants it."""

    def increase_indent(self, flow=False, indentless=False):
        return super().increase_indent(flow, False)


def dump(value):
    return "---\n" + yaml.dump(value, Dumper=Dumper, sort_keys=False, width=100,
                               default_flow_style=False, allow_unicode=True)


def options(name, record):
    """The interface of a component's role, as argument_specs have it."""
    modes = record.get("modes", list(MODES)[:3])
    found = {"mode": {"type": "str", "choices": [*modes, "skip"], "default": modes[0],
                      "description": "; ".join("%s: %s" % (m, MODES[m]) for m in [*modes, "skip"])}}
    if "module" in modes:
        found["module"] = {
            "type": "str",
            "description": "The site's module, as %s/1.2; needed by mode module." % name}
        found["module_root"] = {
            "type": "path",
            "description": "Where that module's files lie, for what is built on them."}
    if "build" in modes:
        known = record.get("versions", {}) or ["that of this tree"]
        found["version"] = {
            "type": "str",
            "description": "Version to build; known: %s." % ", ".join(map(str, known))}
        found["sources"] = {
            "type": "list", "elements": "dict",
            "description": "Sources of a version that is not known, tried in order, each "
                           "`kind: name version sha256`."}
        found["flags"] = {
            "type": "list", "elements": "str",
            "description": "Flags added to those of the architecture and instruction set."}
        found["isas"] = {
            "type": "list", "elements": "str",
            "description": "Instruction set levels to build for, side by side; the first is the "
                           "stack's. Default: stack__isa."}
    return {"%s__%s" % (name, key): value for key, value in found.items()}


def description(name, record):
    lines = ["%s." % (record["summary"][0].upper() + record["summary"][1:]),
             "Terms: %s." % record["license"]]
    if record.get("needs"):
        lines.append("Stands on %s." % ", ".join(record["needs"]))
    return lines


def component_files(name, record):
    specs = {"argument_specs": {"main": {
        "short_description": record["summary"], "description": description(name, record),
        "options": options(name, record)}}}
    mode = "%s__mode" % name
    files = {
        "meta/argument_specs.yml": SPDX + WRITTEN + dump(specs),
        "meta/main.yml": meta(record["summary"]).replace(SPDX, SPDX + WRITTEN),
        "defaults/main.yml": SPDX + WRITTEN + dump({
            mode: options(name, record)[mode]["default"]}),
        "tasks/main.yml": SPDX + WRITTEN + textwrap.dedent("""\
            ---
            - name: Take {0} as its mode says
              ansible.builtin.import_role:
                name: component
              vars:
                component__name: {0}
            """).format(name)}
    files["README.md"] = readme(name, specs["argument_specs"])
    return files


def meta(summary):
    return SPDX + dump({"galaxy_info": {
        "author": "Treenail developers", "description": summary[0].upper() + summary[1:],
        "license": "Apache-2.0", "min_ansible_version": "2.14",
        "platforms": [{"name": "Debian", "versions": ["bookworm"]},
                      {"name": "EL", "versions": ["9"]}]}, "dependencies": []})


def paragraph(text):
    return " ".join(text) if isinstance(text, list) else str(text)


def readme(name, specs):
    text = "<!-- Written by generate.py. -->\n# %s\n" % name
    for entry, spec in specs.items():
        if entry != "main":
            text += "\n## tasks_from: %s\n" % entry
        text += "\n" + textwrap.fill(paragraph(spec.get("description") or spec.get(
            "short_description", "")), 110, break_long_words=False, break_on_hyphens=False) + "\n"
        found = spec.get("options") or {}
        if not found:
            continue
        text += "\n| variable | type | default | |\n|---|---|---|---|\n"
        for key, option in found.items():
            default = option.get("default")
            words = paragraph(option.get("description", "")).replace("|", "\\|")
            if option.get("choices"):
                words += " One of: %s." % ", ".join("`%s`" % c for c in option["choices"])
            text += "| `%s` | %s | %s | %s%s |\n" % (
                key, option.get("type", "str"),
                "" if default in (None, "") else "`%s`" % yaml_inline(default),
                "**required** " if option.get("required") else "", words)
    return text


def yaml_inline(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def wanted():
    """{path below roles/: text}."""
    files = {}
    for name in sorted(os.listdir(ROLES)):
        folder = os.path.join(ROLES, name)
        record = os.path.join(folder, "component.yml")
        specs = os.path.join(folder, "meta", "argument_specs.yml")
        if os.path.exists(record):
            made = component_files(name, load(record))
        elif os.path.exists(specs):
            made = {"README.md": readme(name, load(specs)["argument_specs"])}
        else:
            continue
        files.update({os.path.join(name, path): text for path, text in made.items()})
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = []
    for path, text in wanted().items():
        whole = os.path.join(ROLES, path)
        if os.path.exists(whole):
            with open(whole, encoding="utf-8") as stream:
                if stream.read() == text:
                    continue
        stale.append(path)
        if not check:
            os.makedirs(os.path.dirname(whole), exist_ok=True)
            with open(whole, "w", encoding="utf-8") as stream:
                stream.write(text)
    for path in stale:
        print(("stale: " if check else "wrote ") + path)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
