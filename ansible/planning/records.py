# SPDX-License-Identifier: Apache-2.0
"""The components' records, their sources and patches, as the files of this repository have them."""

import glob
import hashlib
import json
import os
import re
import sys

import yaml
from ansible.errors import AnsibleFilterError

MODES = ("build", "package", "module", "skip")
SOURCE_KINDS = ("cache", "deb", "deb-orig", "pypi", "dist")
STEPS = ("configure", "build", "install")
SUITES = ("short", "long")
SUITE_FIELDS = {"packages", "commands", "cases", "junit"}
FIELDS = {"summary", "license", "version", "versions", "modes", "needs", "packages",
          "build_packages", "flags", "memory", "disk", "python", "environment", "steps", "suite",
          "module", "checks", "benchmark", "parts", "since"}


def refuse(text, *words):
    """Ends the play with a sentence. Errors: AnsibleFilterError, always."""
    raise AnsibleFilterError(text % words)


def parse_source(component, entry):
    """{'deb': 'openblas 0.3.21+ds-4 <sha256>'} -> kind, name, version, sha256."""
    if not isinstance(entry, dict) or len(entry) != 1:
        refuse("%s: a source is written `kind: name version sha256`, not %r", component, entry)
    (kind, text), = entry.items()
    words = str(text).split()
    if kind not in SOURCE_KINDS:
        refuse("%s: unknown kind of source %r; there are %s", component, kind,
               ", ".join(SOURCE_KINDS))
    if len(words) != 3 or not re.fullmatch(r"[0-9a-f]{64}", words[2]):
        refuse("%s: a source is written `%s: name version sha256` with 64 hexadecimal digits, "
               "not %r", component, kind, text)
    return {"kind": kind, "name": words[0], "version": words[1], "sha256": words[2]}


def sources(component, entries):
    """Dictionaries for stack_source from a list of `kind: name version sha256`."""
    return [parse_source(component, entry) for entry in entries]


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
        refuse("roles/%s/component.yml: unknown field %r; there are %s", name, unknown[0],
               ", ".join(sorted(FIELDS)))
    for field in ("summary", "license", "version"):
        if not record.get(field):
            refuse("roles/%s/component.yml: no %r", name, field)
    for mode, suites in (record.get("suite") or {}).items():
        if mode not in ("build", "package"):
            refuse("roles/%s/component.yml: a suite of mode %r; only of build and package there "
                   "are suites", name, mode)
        if set(suites) != set(SUITES):
            refuse("roles/%s/component.yml: of mode %s it has the suites %s, and needs %s", name,
                   mode, ", ".join(sorted(suites)), ", ".join(SUITES))
        for suite, content in suites.items():
            if not content.get("commands") or set(content) - SUITE_FIELDS:
                refuse("roles/%s/component.yml: the %s suite of mode %s has %s; it needs commands, "
                       "and may have %s", name, suite, mode,
                       ", ".join(sorted(content)) or "nothing",
                       ", ".join(sorted(SUITE_FIELDS - {"commands"})))


def stack_order(records):
    """Names such that each stands behind all that it needs; alphabetical otherwise."""
    done, order = set(), []
    while len(order) < len(records):
        ready = [n for n in sorted(records) if n not in done
                 and set(records[n].get("needs", [])) <= done]
        if not ready:
            left = sorted(set(records) - done)
            refuse("components need each other in a circle, or something that has no record: %s",
                   ", ".join("%s needs %s" % (n, " ".join(records[n].get("needs", [])))
                             for n in left))
        done.add(ready[0])
        order.append(ready[0])
    return order


def short_hash(content):
    """Eight hexadecimal digits over a plain value."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def stack_records(folder):
    """{component: record} of the roles in a folder that have one."""
    records = {}
    for path in sorted(glob.glob(os.path.join(folder, "*", "component.yml"))):
        with open(path, encoding="utf-8") as stream:
            records[os.path.basename(os.path.dirname(path))] = yaml.safe_load(stream)
    if not records:
        refuse("no component.yml in %s", folder)
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
        refuse("%s", fault)
    found = {}
    for one in every:
        found.setdefault(one.component, {})[one.version] = (
            series.digest(one)[:16] if one.patches else "")
    return found
