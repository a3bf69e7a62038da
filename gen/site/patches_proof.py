# SPDX-License-Identifier: Apache-2.0
"""Proof that each patch of the stack is needed and helps, on the real sources of its component.

Sources are those of the components' records (ansible/roles/<component>/component.yml), fetched once
by the machine's own apt and pip configuration into TREENAIL_STACK_CACHE (stack-cache of the build
directory), and unpacked as the roles unpack them. Where the sources offer a newer release, what the
tests say of that is told as well; it changes no verdict.
"""

import os
import sys
import tempfile

from proving import SOURCE, Failed, NotRun, proof, run


def _modules():
    """What lies beside the roles and the patches. Imported late: the other proofs run in trees that
    have neither."""
    sys.path.insert(0, os.path.join(SOURCE, "patches"))
    try:
        import yaml
        from patching import applying, series, trial
        from stack_fixture import module  # Ansible's packages
    except ImportError as reason:
        raise NotRun("%s cannot be imported" % reason.name) from None
    stack_source, stack_unpack = map(module, ("library/stack_source.py", "library/stack_unpack.py"))
    return stack_source, stack_unpack, yaml, applying, series, trial


def sources(one, yaml):
    """The sources of a version, as stack_source takes them."""
    path = os.path.join(SOURCE, "ansible/roles", one.component, "component.yml")
    with open(path, encoding="utf-8") as stream:
        versions = yaml.safe_load(stream)["versions"]
    if one.version not in map(str, versions):
        raise Failed("%s: %s knows no such version" % (one, os.path.relpath(path, SOURCE)))
    entries = next(record["sources"] for version, record in versions.items()
                   if str(version) == one.version)
    return [dict(zip(("kind", "name", "version", "sha256"), (kind, *text.split())))
            for entry in entries for kind, text in entry.items()]


def _proven(one, tree, applying, trial):
    """Raises Failed where the tests of a series do not say of a tree what they should."""
    verdicts = trial.needed(one, tree)
    wrong = [v for v in verdicts if v.todo]
    if wrong:
        raise Failed("\n".join("%s: %s: %s\n%s" % (one, v.patch, v.word, v.text) for v in wrong))
    first = applying.apply(one, tree)
    if first.notes or not first.changed or applying.apply(one, tree).changed:
        raise Failed("%s: it applies elsewhere than it was written for, or not once: %s" % (
            one, "; ".join(first.notes)))
    # A later patch must not undo what an earlier one does.
    wrong = [v for v in trial.tested(one, tree) if v.todo] if len(verdicts) > 1 else []
    if wrong:
        raise Failed("%s, all applied: %s: %s" % (one, wrong[0].patch, wrong[0].text))
    untested = ["%s: %s" % (v.patch, v.text) for v in verdicts if v.word == "not tested"]
    if untested:
        raise NotRun("; ".join(untested))


def _newer(one, found, folder, cache, modules):
    """A sentence on the newest release, where it is another; an empty text otherwise."""
    stack_source, stack_unpack, _, _, _, trial = modules
    try:
        newest = stack_source.newest(one.component, found, cache)
        if newest["sha256"] in [source["sha256"] for source in found]:
            return ""
        path = stack_source.fetched(one.component, [newest], cache)[0]
        tree = os.path.join(folder, "newest")
        stack_unpack.unpacked(path, tree)
        return "%s %s: %s" % (one.component, newest["version"], ", ".join(
            "%s %s" % (v.patch[:4], v.word) for v in trial.needed(one, tree)))
    except (stack_source.Missing, OSError) as reason:
        return "%s: no newest release (%s)" % (one.component, " ".join(str(reason).split())[:200])


@proof
def patches():
    """each patch of the stack applies without fuzz; its test fails without it and passes with it"""
    modules = stack_source, stack_unpack, yaml, applying, series, trial = _modules()
    run([sys.executable, "-B", os.path.join(SOURCE, "patches/patches.py"), "check"])
    cache = os.path.abspath(os.environ.get("TREENAIL_STACK_CACHE") or "stack-cache")
    done, missing, newer = [], [], []
    for component, versions in series.components().items():
        for version in versions:
            one = series.chosen(component, version, "patched")
            if not one.patches:
                continue
            found = sources(one, yaml)
            with tempfile.TemporaryDirectory() as folder:
                tree = os.path.join(folder, "tree")
                try:
                    stack_unpack.unpacked(stack_source.fetched(component, found, cache)[0], tree)
                    _proven(one, tree, applying, trial)
                except (stack_source.Missing, NotRun) as reason:
                    missing.append("%s: %s" % (one, reason))
                    continue
                done.append("%s %d" % (component, len(one.patches)))
                newer.append(_newer(one, found, folder, cache, modules))
    newer = "; ".join(filter(None, newer))
    text = "needed: %s%s" % (", ".join(done), "; of the newest, " + newer if newer else "")
    if missing:
        raise NotRun("%s; %s" % ("; ".join(missing), text))
    return text
