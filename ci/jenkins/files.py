# SPDX-License-Identifier: Apache-2.0
"""Files as Jenkins's steps see them: Ant's patterns, and a workspace with a checkout."""

import os
import re
import subprocess
from typing import List, Pattern

# What Ant leaves out by default, as far as a source tree of ours can hold it.
_DEFAULT_EXCLUDES = "**/*~,**/#*#,**/.#*,**/%*%,**/.git,**/.git/**,**/.gitignore,**/.DS_Store"


class Unusable(Exception):
    """The workspace cannot be made; the text says why."""


def _compiled(patterns: str) -> List[Pattern[str]]:
    """Ant's: ** for any folders, * and ? within a name, a final / for all below; by commas."""
    found = []
    for pattern in filter(None, (p.strip() for p in patterns.split(","))):
        if pattern.endswith("/"):
            pattern += "**"
        text = ""
        for token in re.findall(r"\*\*/|/\*\*$|\*\*|\*|\?|[^*?/]+|/", pattern):
            text += {"**/": "(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*",
                     "?": "[^/]"}.get(token) or re.escape(token)
        found.append(re.compile(text + r"\Z"))
    return found


def matching(folder: str, includes: str, excludes: str = "", defaults: bool = True) -> List[str]:
    """Paths, relative to the folder and sorted, of the files that these patterns choose."""
    wanted = _compiled(includes or "**")
    unwanted = _compiled(excludes) + (_compiled(_DEFAULT_EXCLUDES) if defaults else [])
    found = []
    for place, _, leaves in os.walk(folder):
        for leaf in leaves:
            path = os.path.relpath(os.path.join(place, leaf), folder).replace(os.sep, "/")
            if any(p.match(path) for p in wanted) and not any(p.match(path) for p in unwanted):
                found.append(path)
    return sorted(found)


def git(place: str, *words: str) -> str:
    # `git stash create` makes a commit, which needs a name even where nobody is configured.
    names = {"GIT_%s_%s" % (who, what): value for who in ("AUTHOR", "COMMITTER")
             for what, value in (("NAME", "run-jenkinsfile"), ("EMAIL", "nobody@treenail.invalid"))}
    done = subprocess.run(["git", "-C", place, *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=dict(os.environ, **names), check=False)
    if done.returncode:
        raise Unusable("git %s: %s" % (words[0], done.stderr.decode(errors="replace").strip()))
    return done.stdout.decode().strip()


def commit_of(source: str, ref: str) -> str:
    """The commit to build: of the name `ref`, or what is in the working tree.

    Changes of tracked files, and files that were added, become a commit that no branch shows.
    """
    if ref:
        return git(source, "rev-parse", "--verify", ref + "^{commit}")
    head = git(source, "rev-parse", "HEAD")
    return git(source, "stash", "create") or head


def check_out(source: str, commit: str, workspace: str) -> None:
    """The commit in a workspace, as Jenkins does it: what git does not know there stays."""
    if not os.path.isdir(os.path.join(workspace, ".git")):
        os.makedirs(os.path.dirname(workspace), exist_ok=True)
        git(source, "clone", "-q", "--shared", "--no-checkout", ".", workspace)
    git(workspace, "checkout", "-q", "--force", "--detach", commit)
