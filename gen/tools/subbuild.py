# SPDX-License-Identifier: Apache-2.0
"""Configure and build another build below this one: same options, other mode.

Used for the sanitizer runs. The options after '--' replace those of the same name; directories of
installation do not matter there.
"""

import argparse
import json
import os
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def arguments(stored, extra, directory):
    replaced = {word.split("=")[0] for word in extra} | {"--build-dir"}
    kept, skip = [], False
    for word in stored:
        if skip:
            skip = False
        elif word == "--build-dir":
            skip = True
        elif word.split("=")[0] not in replaced:
            kept.append(word)
    return kept + list(extra) + ["--build-dir=" + os.path.abspath(directory)]


def run(command, environment):
    status = subprocess.run(command, env=environment, check=False).returncode
    if status:
        sys.exit(status if status > 0 else 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--ninja", default="ninja")
    parser.add_argument("extra", nargs="*")
    options = parser.parse_args()
    with open("gen/configuration.json", encoding="utf-8") as stream:
        stored = json.load(stream)
    environment = dict(os.environ)
    for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"):
        environment.pop(name, None)
    environment.update(stored["environment"])
    wanted = arguments(stored["arguments"], options.extra, options.directory)
    marker = os.path.join(options.directory, "gen", "subbuild.json")
    known = ""
    if os.path.exists(os.path.join(options.directory, "build.ninja")) and os.path.exists(marker):
        with open(marker, encoding="utf-8") as stream:
            known = stream.read()
    text = json.dumps([wanted, stored["environment"]])
    if known != text:
        run([sys.executable, "-B", os.path.join(SOURCE, "configure.py")] + wanted, environment)
        with open(marker, "w", encoding="utf-8") as stream:
            stream.write(text)
    run([options.ninja, "-C", options.directory, options.target], environment)


if __name__ == "__main__":
    main()
