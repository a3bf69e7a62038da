# SPDX-License-Identifier: Apache-2.0
"""Syntax trees of Jenkinsfiles, made by Groovy's own parser (parse.groovy) in one start of Java."""

import glob
import json
import os
import shutil
import subprocess
from typing import Any, Dict, List, Sequence

Node = Dict[str, Any]
HERE = os.path.dirname(os.path.abspath(__file__))
# Groovy 2.4, which Debian has, knows the class files of Java up to 17 or so: newer ones come last.
_HOMES = ("/usr/lib/jvm/default-java", "/usr/lib/jvm/jre", "/usr/lib/jvm/java-17-openjdk-*",
          "/usr/lib/jvm/jre-17-openjdk*", "/usr/lib/jvm/java-11-openjdk-*",
          "/usr/lib/jvm/java-21-openjdk-*", "/usr/lib/jvm/*")


class Refused(Exception):
    """What is wrong, where: 'FILE:LINE: sentence'."""


class Missing(Exception):
    """Groovy or Java is not installed."""


def refuse(path: str, line: int, text: str) -> Refused:
    return Refused("%s:%d: %s" % (path, line, text) if line > 0 else "%s: %s" % (path, text))


def java_home() -> str:
    """Java's home: TREENAIL_JAVA_HOME, the distribution's default, another one, JAVA_HOME."""
    homes = [os.environ.get("TREENAIL_JAVA_HOME", "")]
    for pattern in _HOMES:
        homes += sorted(glob.glob(pattern))
    homes.append(os.environ.get("JAVA_HOME", ""))
    for home in homes:
        if home and os.access(os.path.join(home, "bin/java"), os.X_OK):
            return home
    raise Missing("there is no Java below /usr/lib/jvm, and Groovy needs one; apt-get install "
                  "default-jre-headless, or name one in TREENAIL_JAVA_HOME")


def trees(paths: Sequence[str]) -> List[Node]:
    """parse.groovy's answer for these files, in their order."""
    groovy = shutil.which("groovy")
    if not groovy:
        raise Missing("groovy is not installed; apt-get install groovy")
    for path in paths:
        if not os.path.isfile(path):
            raise Refused("%s: there is no such file" % path)
    # The file is short-lived: the quickest compiler is the best, and no JIT statistics are shared.
    environment = dict(os.environ, JAVA_HOME=java_home(), LC_ALL="C.UTF-8",
                       JAVA_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dfile.encoding=UTF-8")
    words = [groovy, os.path.join(HERE, "parse.groovy"), *map(os.path.abspath, paths)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                          check=False)
    if done.returncode:
        raise Missing("groovy ended with exit status %d:\n%s" % (
            done.returncode, done.stderr.decode(errors="replace")[-2000:]))
    return json.loads(done.stdout)


def tree(parsed: Node, path: str) -> List[Node]:
    """The statements of one file of `trees`; a syntax error is raised under the name `path`."""
    for error in parsed.get("errors", ()):
        raise refuse(path, error["line"], error["text"].split(" @ line")[0])
    for name in parsed["methods"]:
        raise refuse(path, 0, "it defines the method '%s': a declarative pipeline is one block "
                     "pipeline { }" % name)
    return parsed["tree"]
