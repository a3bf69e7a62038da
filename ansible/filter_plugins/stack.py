# SPDX-License-Identifier: Apache-2.0
"""From the components' records to a plan: what is built in which order, into which prefix, how.

A record is roles/<component>/component.yml; the settings are role variables. The plan is a list of
plain dictionaries, one per prefix, that the mechanics (role `component`), module files, stack-env
and the manifest read. Nothing here looks at a host, so everything is tested without one.

A prefix is <prefix>/<toolchain>/<component>/<version>-<recipe>, where the recipe is a hash over all
that shapes the result: version, checksums of the sources, patches, commands, flags, compiler,
instruction set and the recipes of what it needs. Another flag is another prefix, for the component
and for all that stand on it, and for nothing else.
"""

import datetime
import difflib
import glob
import hashlib
import json
import os
import re
import sys

import yaml
from ansible.errors import AnsibleFilterError

MODES = ("build", "package", "module", "skip")
VARIANTS = ("patched", "pinned", "upstream")
SOURCE_KINDS = ("cache", "deb", "deb-orig", "pypi", "dist")
FIELDS = {"summary", "license", "version", "versions", "modes", "needs", "packages",
          "build_packages", "flags", "memory", "disk", "python", "environment", "steps", "suite",
          "module", "checks", "benchmark", "parts", "since"}
STEPS = ("configure", "build", "install")


def _bad(text, *words):
    raise AnsibleFilterError(text % words)


def parse_source(component, entry):
    """{'deb': 'openblas 0.3.21+ds-4 <sha256>'} -> kind, name, version, sha256."""
    if not isinstance(entry, dict) or len(entry) != 1:
        _bad("%s: a source is written `kind: name version sha256`, not %r", component, entry)
    (kind, text), = entry.items()
    words = str(text).split()
    if kind not in SOURCE_KINDS:
        _bad("%s: unknown kind of source %r; there are %s", component, kind,
             ", ".join(SOURCE_KINDS))
    if len(words) != 3 or not re.fullmatch(r"[0-9a-f]{64}", words[2]):
        _bad("%s: a source is written `%s: name version sha256` with 64 hexadecimal digits, not %r",
             component, kind, text)
    return {"kind": kind, "name": words[0], "version": words[1], "sha256": words[2]}


def numbers(version):
    """1.26.4 or, with Debian's epoch, 1:1.26.4-1 -> (1, 26, 4), to compare versions by; what is no
    number ends it."""
    upstream = re.match(r"(?:\d+:)?([\d.]*)", str(version)).group(1)
    return tuple(int(word) for word in upstream.split(".") if word)


def of_version(record, version):
    """The record with what `since` changes for this version and those after it."""
    found = dict(record)
    for first, changes in sorted((record.get("since") or {}).items(), key=lambda i: numbers(i[0])):
        if numbers(version) >= numbers(first):
            found.update(changes)
    return found


def check_record(name, record):
    unknown = sorted(set(record) - FIELDS)
    if unknown:
        _bad("roles/%s/component.yml: unknown field %r; there are %s", name, unknown[0],
             ", ".join(sorted(FIELDS)))
    for field in ("summary", "license", "version"):
        if not record.get(field):
            _bad("roles/%s/component.yml: no %r", name, field)


def stack_order(records):
    """Names such that each stands behind all that it needs; alphabetical otherwise."""
    done, order = set(), []
    while len(order) < len(records):
        ready = [n for n in sorted(records) if n not in done
                 and set(records[n].get("needs", [])) <= done]
        if not ready:
            left = sorted(set(records) - done)
            _bad("components need each other in a circle, or something that has no record: %s",
                 ", ".join("%s needs %s" % (n, " ".join(records[n].get("needs", [])))
                           for n in left))
        done.add(ready[0])
        order.append(ready[0])
    return order


def _mode(name, record, option):
    mode = option.get("mode") or record.get("modes", MODES)[0]
    if mode not in MODES:
        _bad("%s__mode is %r; it must be one of %s", name, mode, ", ".join(MODES))
    allowed = list(record.get("modes", MODES))
    if mode not in allowed and mode != "skip":
        _bad("%s__mode is %r, which this component does not offer; it offers %s", name, mode,
             ", ".join(allowed + ["skip"]))
    if mode == "module" and not option.get("module"):
        _bad("%s__mode is 'module', so %s__module must name the site's module, as hdf5/1.14.5",
             name, name)
    return mode


def _isas(name, option, settings):
    """The instruction sets asked for, each of which this processor must run."""
    variable = name + "__isas" if option.get("isas") else "stack__isa"
    isas = option.get("isas") or [settings["isa"]]
    isas = [settings["runs"][0] if isa == "auto" else isa for isa in isas]
    for isa in isas:
        if isa not in settings["runs"]:
            _bad("%s asks for '%s', and this processor does not run it; it runs %s. Choose one of "
                 "these, or auto", variable, isa, ", ".join(settings["runs"]))
    return isas


def _flags(name, record, option, machine, isa):
    """The record's flags for this architecture and instruction set, then the site's own."""
    by_machine = record.get("flags", {}).get(machine, {})
    if by_machine and "all" not in by_machine and isa not in by_machine:
        _bad("%s has no flags for %s of %s; it has them for %s. Add them to its component.yml",
             name, isa, machine, ", ".join(sorted(by_machine)))
    words = list(by_machine.get("all", [])) + list(by_machine.get(isa, []))
    return words + list(option.get("flags") or [])


def _sources(name, record, version, option, settings):
    versions = record.get("versions", {})
    if option.get("sources"):
        entries = option["sources"]
    elif record["version"] == "dist" and version == settings["dist"]["version"]:
        entries = [{"dist": "%s %s %s" % (name, version, settings["dist"]["sha256"])}]
    elif version in versions:
        entries = versions[version].get("sources", [])
    else:
        _bad("%s__version is %r, whose sources are not known; known are %s. Name them in "
             "%s__sources, as `deb: name version sha256`", name, version,
             ", ".join(sorted(versions)) or "none", name)
    if not entries:
        _bad("%s %s: mode 'build' needs sources, and component.yml names none", name, version)
    return [parse_source(name, entry) for entry in entries]


def _patches(name, version, known):
    """The digest of the patches for this version. A component without a folder in patches/ has
    none; one that has them for another version needs a series for this one too, if only an empty
    one, or a new version would lose its patches unnoticed."""
    if known and version not in known:
        _bad("%s %s has no series of patches, only %s: write patches/%s/%s/series, which may be "
             "empty, or set stack__variant=pinned", name, version, ", ".join(sorted(known)), name,
             version)
    return (known or {}).get(version, "")


def recipe(content):
    """Eight hexadecimal digits over a plain value."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def expand(value, words):
    """`@name@` becomes words[name], everywhere inside a plain value."""
    if isinstance(value, str):
        def one(match):
            if match.group(1) not in words:
                _bad("@%s@ is not known in %r; known are %s", match.group(1), value,
                     ", ".join(sorted(words)))
            return str(words[match.group(1)])
        return re.sub(r"@([a-z0-9_]+)@", one, value)
    if isinstance(value, dict):
        return {key: expand(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [expand(item, words) for item in value]
    return value


def jobs(record, settings):
    """As many as processors, as memory allows."""
    by_memory = int(settings["memory_mib"]) // max(int(record.get("memory", 256)), 1)
    return max(1, min(int(settings["processors"]), by_memory))


def _root_of(need, settings):
    """Where another component's files are found: its prefix, its module's, or the
    distribution's."""
    return need["prefix"] or need["module_root"] or "/usr"


def of_isa(instances, isa):
    """Of a component's instances the one for that instruction set; what is not built has one for
    all."""
    return next((i for i in instances if i["isa"] == isa), instances[0])


class _Planner:
    def __init__(self, records, settings):
        self.records, self.settings = records, settings
        self.made = {}
        self.isas = {name: self.asked(name) for name in records}
        # What runs on a lesser processor must not stand on what does not: each is built for every
        # instruction set of all that is built on it.
        for name in reversed(stack_order(records)):
            if self.mode(name) == "build":
                for need in records[name].get("needs", []):
                    self.isas[need] += [i for i in self.isas[name] if i not in self.isas[need]]

    def option(self, name):
        return self.settings.get("options", {}).get(name, {})

    def mode(self, name):
        return _mode(name, self.records[name], self.option(name))

    def asked(self, name):
        check_record(name, self.records[name])
        return _isas(name, self.option(name), self.settings)

    def component(self, name):
        record, option, mode = self.records[name], self.option(name), self.mode(name)
        isas = self.isas[name] if mode == "build" else self.isas[name][:1]
        for need in record.get("needs", []):
            if mode == "build" and self.made[need][0]["mode"] == "skip" and need not in (
                    record.get("parts") or {}):
                _bad("%s needs %s, and %s__mode is 'skip'; choose build, package or module for it, "
                     "or skip %s too", name, need, need, name)
            if mode == "build" and self.made[need][0]["mode"] == "module" and not (
                    self.made[need][0]["module_root"]):
                _bad("%s is built on the module %s, whose files it must find: set "
                     "%s__module_root to the directory with its include and lib", name,
                     self.made[need][0]["module"], need)
        self.made[name] = [self.instance(name, record, option, mode, isa) for isa in isas]
        return self.made[name]

    def instance(self, name, record, option, mode, isa):
        settings = self.settings
        version = str(option.get("version") or record["version"])
        if version == "dist":
            version = settings["dist"]["version"]
        if mode == "module":
            # hdf5/1.14.5-gcc-13: the site's word for it; what the library says is checked.
            version = str(option.get("version") or "".join(
                re.findall(r"/v?(\d[\d.]*\d|\d)", option["module"])[-1:]))
        record = of_version(record, version)
        result = {
            "name": name, "mode": mode, "version": version, "summary": record["summary"],
            "license": record["license"], "isa": isa, "variant": settings["variant"],
            "packages": record.get("packages", {}).get(settings["family"], []),
            "build_packages": record.get("build_packages", {}).get(settings["family"], []),
            "needs": [n for n in record.get("needs", []) if self.made[n][0]["mode"] != "skip"],
            "prefix": "", "recipe": "", "sources": [], "patches": "", "flags": [], "steps": {},
            "suite": {}, "module": "", "module_root": "", "environment": {}, "checks": [],
            "jobs": jobs(record, settings),
            "disk": int(record.get("disk", 100)), "benchmark": "",
        }
        if mode == "module":
            result["module"] = option["module"]
            result["module_root"] = option.get("module_root", "")
        words = self.words(result, record)
        if mode == "build":
            self.built(result, record, option, words)
        elif mode != "skip":
            result["recipe"] = recipe([name, mode, version, result["module"],
                                       result["module_root"], settings["suite"], {
                n: of_isa(self.made[n], isa)["recipe"] for n in result["needs"]}])
            result["build_directory"] = "%s/%s-%s-%s" % (settings["build_root"], name, mode,
                                                         result["recipe"])
            words["build"] = result["build_directory"]
        if mode == "build" or mode == "package" and "build" not in record.get("modes", MODES):
            result["suite"] = expand(record.get("suite", {}).get(settings["suite"], {}), words)
        result["checks"] = expand(record.get("checks", []), words)
        result["benchmark"] = expand(record.get("benchmark", ""), words)
        return result

    def words(self, instance, record):
        settings = self.settings
        words = {key: settings[key] for key in ("cc", "cxx", "fc", "machine", "python", "family")}
        words.update(version=instance["version"], isa=instance["isa"], jobs=instance["jobs"],
                     pyversion=settings["python_version"])
        for need in self.records[instance["name"]].get("needs", []):
            words[need] = _root_of(of_isa(self.made[need], instance["isa"]), settings)
        for need, texts in (record.get("parts") or {}).items():
            words["part_" + need] = texts[self.made[need][0]["mode"] != "skip"]
        return words

    def built(self, result, record, option, words):
        settings, name, version = self.settings, result["name"], result["version"]
        result["sources"] = _sources(name, record, version, option, settings)
        result["flags"] = _flags(name, record, option, settings["machine"], result["isa"])
        if settings["variant"] == "patched":
            result["patches"] = _patches(name, version, settings.get("patches", {}).get(name))
        words["flags"] = " ".join(result["flags"])
        steps = record.get("steps", {})
        for step in steps:
            if step not in STEPS:
                _bad("roles/%s/component.yml: unknown step %r; there are %s", name, step,
                     ", ".join(STEPS))
        # jobs changes no result; the prefix follows from this hash.
        neutral = dict(words, jobs="", prefix="", stage="", source="", build="")
        result["recipe"] = recipe({
            "component": name, "version": version, "sources": result["sources"],
            "patches": result["patches"], "variant": settings["variant"] if (
                settings["variant"] == "upstream") else "",
            "steps": expand(steps, neutral), "toolchain": settings["toolchain"],
            "machine": settings["machine"], "isa": result["isa"],
            "needs": {n: [i["mode"], i["version"] if i["mode"] == "module" else "", i["recipe"]]
                      for n in result["needs"]
                      for i in [of_isa(self.made[n], result["isa"])]}})
        place = "%s-%s" % (version, result["recipe"])
        result["prefix"] = "/".join([settings["prefix"], settings["toolchain"], name, place])
        result["build_directory"] = "/".join([settings["build_root"], "%s-%s" % (name, place)])
        words.update(prefix=result["prefix"], build=result["build_directory"] + "/build",
                     source=result["build_directory"] + "/source",
                     stage=result["build_directory"] + "/stage")
        result["steps"] = expand({step: steps[step] for step in STEPS if step in steps}, words)
        result["module"] = "%s/%s-%s" % (name, version, result["isa"])
        result["environment"] = self.environment(record.get("environment", {}), words)

    @staticmethod
    def environment(record, words):
        """Variables of the module file, with paths in the prefix: {variable: {how, values}}."""
        result = {}
        for how in ("prepend", "set"):
            for variable, value in record.get(how, {}).items():
                values = expand(value if isinstance(value, list) else [value], words)
                result[variable] = {"how": how, "values": [
                    os.path.normpath(os.path.join(words["prefix"], v)) for v in values]}
        return result


def stack_plan(records, settings):
    """The plan, in an order that builds each component behind all that it needs."""
    if settings.get("variant") not in VARIANTS:
        _bad("stack__variant is %r; it must be one of %s", settings.get("variant"),
             ", ".join(VARIANTS))
    for name in settings.get("options", {}):
        if name not in records:
            _bad("options for %r, but there is no such component; there are %s", name,
                 ", ".join(sorted(records)))
    planner = _Planner(records, settings)
    plan = [instance for name in stack_order(records) for instance in planner.component(name)]
    pinned(plan)
    return plan


def needed_packages(plan):
    """Distribution packages of everything that is taken from there or built with it."""
    names = set()
    for instance in plan:
        if instance["mode"] == "package":
            names.update(instance["packages"])
        if instance["mode"] == "build":
            names.update(instance["build_packages"])
    return sorted(names)


def sources(component, entries):
    """Dictionaries for stack_source from a list of `kind: name version sha256`."""
    return [parse_source(component, entry) for entry in entries]


def package_versions(names, installed):
    """{package: version} of what package_facts found."""
    return {name: " ".join(sorted({one["version"] for one in installed.get(name, [])})) or
            "not installed" for name in names}


def pinned(plan):
    """The modules that make up the stack: of what nothing stands on the first of its instruction
    sets, and what that stands on. No two of one component: they cannot be loaded together. What is
    not built itself takes what there is."""
    found, wanted_by = {}, {}
    for instance in sorted(reversed(plan), key=lambda i: i["mode"] != "build"):
        if instance["name"] in found or instance["mode"] == "skip":
            continue
        first = next(i for i in plan if i["name"] == instance["name"])
        for one in [*bottom_up(first, plan), first]:
            other = found.setdefault(one["name"], one)
            if other["isa"] != one["isa"] and {one["mode"], first["mode"]} == {"build"}:
                _bad("%s for %s is needed by %s, and for %s by %s: they cannot be loaded together. "
                     "Let the isas of both begin with the same", one["name"], other["isa"],
                     wanted_by[one["name"]], one["isa"], first["name"])
            wanted_by.setdefault(one["name"], first["name"])
    return [found[name]["module"] for name in dict.fromkeys(i["name"] for i in plan)
            if name in found and found[name]["module"]]


def environment_id(plan, *more):
    """Names an environment by what it consists of: the modules of a plan, and how its files are
    written. While these stay, its files do."""
    kept = ("name", "mode", "version", "isa", "summary", "module", "needs", "prefix", "recipe",
            "environment")
    return recipe([[{key: instance[key] for key in kept} for instance in plan], more])


# What compilers, the loader and Python search: a site's module may put directories there.
SEARCHED = {"CPATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "PKG_CONFIG_PATH", "PYTHONPATH"}


def path_variables(plan):
    """The variables, beside PATH, that module files of the plan or of the site put directories
    into."""
    return sorted(SEARCHED.union(*(
        {name for name, words in instance["environment"].items() if words["how"] == "prepend"}
        for instance in plan)) - {"PATH"})


def bottom_up(instance, plan):
    """What an instance stands on in the same plan, each behind all that it needs itself."""
    by_name, found = {}, {}
    for other in plan:
        by_name.setdefault(other["name"], []).append(other)

    def visit(one):
        for need in one["needs"]:
            other = of_isa(by_name[need], instance["isa"])
            visit(other)
            found.setdefault(need, other)
    visit(instance)
    return list(found.values())


def stack_records(folder):
    """{component: record} of the roles in a folder that have one."""
    records = {}
    for path in sorted(glob.glob(os.path.join(folder, "*", "component.yml"))):
        with open(path, encoding="utf-8") as stream:
            records[os.path.basename(os.path.dirname(path))] = yaml.safe_load(stream)
    if not records:
        _bad("no component.yml in %s", folder)
    return records


def stack_patches(folder):
    """{component: {version: digest of its patches, '' where the series is empty}}."""
    if folder not in sys.path:
        sys.path.insert(0, folder)  # beside patches.py, whose rules these are
    from patching import series  # pylint: disable=import-outside-toplevel
    try:
        every = [series.in_order(series.load(name, version, folder))
                 for name, versions in series.components(folder).items() for version in versions]
    except series.Refused as fault:
        _bad("%s", fault)
    found = {}
    for one in every:
        found.setdefault(one.component, {})[one.version] = (
            series.digest(one)[:16] if one.patches else "")
    return found


QUARANTINE = {"component", "test", "reason", "link", "expires"}
OPTIONS = ("mode", "version", "sources", "flags", "isas", "module", "module_root")


def option_names(variables, records):
    """The role variables <component>__<option> among all variables."""
    found = []
    for key in sorted(variables):
        name, mark, option = key.partition("__")
        if not mark or name.startswith("_") or option not in OPTIONS:
            continue
        if name not in records:
            near = difflib.get_close_matches(name, records, 1)
            if near:
                _bad("%s is set, but there is no component %r; did you mean %s__%s?", key, name,
                     near[0], option)
            continue  # another role's
        found.append(key)
    return found


def stack_options(variables, records):
    """{component: {mode, version, ...}} from those variables."""
    options = {name: {} for name in records}
    for key in option_names(variables, records):
        name, _, option = key.partition("__")
        if variables[key] not in ("", None, []):
            options[name][option] = variables[key]
    return {name: found for name, found in options.items() if found}


def stack_quarantine(content, records):
    """The known failures, as quarantine.yml has them, each with all that is asked of it."""
    found = []
    for number, entry in enumerate(content["failures"] or [], 1):
        entry = {key: str(value) for key, value in dict(entry).items()}
        where = "quarantine.yml, entry %d (%s)" % (number, entry.get("test", "no test"))
        if set(entry) != QUARANTINE:
            _bad("%s: it has %s, and needs %s", where, ", ".join(sorted(entry)),
                 ", ".join(sorted(QUARANTINE)))
        if entry["component"] not in records:
            _bad("%s: there is no component %r; there are %s", where, entry["component"],
                 ", ".join(sorted(records)))
        if not re.match(r"https?://\S+$", entry["link"]):
            _bad("%s: link is %r; it must lead to where the failure is dealt with", where,
                 entry["link"])
        try:
            datetime.date.fromisoformat(entry["expires"])
        except ValueError:
            _bad("%s: expires is %r; it must be a day, as 2027-01-31", where, entry["expires"])
        found.append(entry)
    return found


def stack_newest(results):
    """Options that choose the newest versions, from the results of stack_source."""
    options = {}
    for result in results:
        if result.get("skipped"):
            continue
        found = result["source"]
        version = ".".join(map(str, numbers(found["version"])))
        options[result["item"]["name"]] = {"version": version, "sources": [
            {found["kind"]: "%s %s %s" % (found["name"], found["version"], found["sha256"])}]}
    return options


class FilterModule:
    def filters(self):
        return {"stack_plan": stack_plan, "stack_order": stack_order,
                "stack_records": stack_records, "stack_patches": stack_patches,
                "stack_option_names": option_names, "stack_options": stack_options,
                "stack_newest": stack_newest, "stack_pinned": pinned,
                "stack_quarantine": stack_quarantine,
                "stack_environment_id": environment_id,
                "stack_path_variables": path_variables, "stack_versions": package_versions,
                "stack_sources": sources, "stack_packages": needed_packages,
                "stack_needs": bottom_up}
