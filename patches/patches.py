#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The patches of the stack's components: what there is, applied to sources, and still needed?

People, Ansible's roles and `ci/stage patches` call this one program. patches/README.md says how a
patch is written. Exit status: 0 well, or nothing to do; 1 something is wrong, or is to be done.
"""

import argparse
import os
import sys
from typing import List

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from patching import applying, diff, export, series, trial  # noqa: E402  (the path must be set)


def do_list(options) -> int:
    every = [series.load(name, version, options.root)
             for name, versions in series.components(options.root).items()
             for version in versions]
    if options.json:
        print(series.as_json(every))
        return 0
    for one in every:
        print("%s: %s" % (one, "no patches" if not one.patches else ""))
        for patch in one.patches:
            header = patch.header()
            print("  %s\n      %s" % (patch.name, header["Description"].split("\n")[0]))
            for name, value in header.items():
                if name.startswith("Bug"):
                    print("      " + value)
    return 0


def do_check(options) -> int:
    every, found = series.check(options.root)
    for line in found:
        print(line)
    print("patches: %d series, %d patches, %d faults" % (
        len(every), sum(len(one.patches) for one in every), len(found)))
    return 1 if found else 0


def do_apply(options) -> int:
    one = series.chosen(options.component, options.version, options.variant, options.root)
    outcome = applying.apply(one, options.tree, options.variant)
    for note in outcome.notes:
        print("note: " + note)
    if not outcome.changed:
        print("%s, %s: nothing to do" % (one, options.variant))
    else:
        print("%s, %s: applied %s" % (one, options.variant, ", ".join(
            patch.name for patch in one.patches) or "no patch, for there is none"))
    return 0


def do_digest(options) -> int:
    one = series.chosen(options.component, options.version, options.variant, options.root)
    print(series.digest(one))
    return 0


def _show(verdict: trial.Verdict) -> None:
    print("%-18s %6.1f s  %s" % (verdict.word, verdict.seconds, verdict.patch))
    for line in verdict.text.strip().splitlines()[-20:]:
        print("    " + line)
    sys.stdout.flush()


def _report(options, one: series.Series, against: str, verdicts: List[trial.Verdict]) -> int:
    suite = "patches.%s.%s" % (options.command, one.component)
    for path, text in ((options.json, trial.as_json(one, against, verdicts)),
                       (options.junit, trial.as_junit(suite, verdicts))):
        if path:
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
    count = sum(verdict.todo for verdict in verdicts)
    print("%s: %d patches, %s" % (one, len(verdicts),
                                  "%d to look at" % count if count else "nothing to be done"))
    return 1 if count else 0


def do_test(options) -> int:
    one = series.load(options.component, options.version, options.root)
    verdicts = trial.tested(one, options.path)
    for verdict in verdicts:
        _show(verdict)
    return _report(options, one, options.path, verdicts)


def do_needed(options) -> int:
    one = series.load(options.component, options.version, options.root)
    return _report(options, one, options.against or options.version,
                   trial.needed(one, options.tree, _show))


def do_export_deb(options) -> int:
    one = series.load(options.component, options.version, options.root)
    print("\n".join(export.to_debian(one, options.folder)) or "nothing to do")
    return 0


def do_export_rpm(options) -> int:
    one = series.load(options.component, options.version, options.root)
    print("\n".join(export.to_rpm(one, options.spec, options.sources)) or "nothing to do")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=series.ROOT, help="the folder of the series [this one]")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name, function, text, *, of_version=True):
        found = commands.add_parser(name, help=text, description=text)
        found.set_defaults(function=function)
        if of_version:
            found.add_argument("component", metavar="COMPONENT")
            found.add_argument("version", metavar="VERSION")
        return found

    def variant(found):
        found.add_argument("--variant", default="patched", choices=series.VARIANTS,
                           help="upstream: the newest release, without patches; pinned: the "
                           "pinned version without patches; patched: with its series [patched]")

    found = command("list", do_list, "what there is", of_version=False)
    found.add_argument("--json", action="store_true")
    command("check", do_check, "are all series in order: files, headers, tests", of_version=False)
    found = command("apply", do_apply, "apply a series to an unpacked source tree: without fuzz, "
                    "wholly or not at all; nothing to do where it is applied")
    found.add_argument("tree", metavar="TREE")
    variant(found)
    variant(command("digest", do_digest, "the SHA-256 of what apply would apply, for a recipe"))
    found = command("test", do_test, "run each patch's test on a tree or prefix that has them")
    found.add_argument("--with", dest="path", metavar="PREFIX|TREE", required=True)
    _reports(found)
    found = command("needed", do_needed, "which patches does an unpatched tree still need? Each "
                    "test is run without its patch, and with it")
    found.add_argument("tree", metavar="TREE", help="as it was unpacked; it is copied, not changed")
    found.add_argument("--against", metavar="VERSION", help="what TREE is, where it is another "
                       "version than the one that the patches are for")
    _reports(found)
    found = command("export-deb", do_export_deb, "write debian/patches")
    found.add_argument("folder", metavar="DEBIAN", help="the folder debian of a source package")
    found = command("export-rpm", do_export_rpm, "write the Patch: lines of a spec")
    found.add_argument("spec", metavar="SPEC")
    found.add_argument("--sources", metavar="FOLDER", help="rpmbuild's SOURCES: copy patches there")
    return parser


def _reports(found) -> None:
    found.add_argument("--json", metavar="FILE", help="write the verdicts as JSON")
    found.add_argument("--junit", metavar="FILE", help="write the verdicts as JUnit's XML")


def main() -> int:
    options = _parser().parse_args()
    try:
        return options.function(options)
    except (series.Refused, diff.Malformed) as reason:
        print("patches: %s" % reason, file=sys.stderr)
    except OSError as reason:
        print("patches: %s: %s" % (reason.filename or "system", reason.strerror), file=sys.stderr)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
