# SPDX-License-Identifier: Apache-2.0
"""Print the packages of gen/deps.py that this distribution needs, one a line.

--missing prints only those not installed. --system prints, instead of packages, what ci/setup.sh
must know of the distribution: family, ID and the number of the release. A feature counts when the
tree has an adapter for it. Packages that a release does not have at all are left out, with a line
on standard error. TREENAIL_OS_RELEASE names another file than /etc/os-release (the tests do).
"""

import argparse
import os
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, SOURCE)
from gen.deps import DEPENDENCIES, of_uses  # noqa: E402  (the path must be set first)
from gen.distro import this_distro  # noqa: E402


USES = {dep.use for dep in DEPENDENCIES}


def wanted(uses, distro):
    names = set()
    for dep in of_uses(uses):
        adapter = os.path.join(SOURCE, "kernels", "adapters", dep.name)
        if dep.use == "feature" and not os.path.isdir(adapter):
            continue
        if distro.lacks(dep.name):
            sys.stderr.write("%s is not packaged here; left out\n" % dep.name)
            continue
        names.update(dep.packages(distro.family).split())
    return sorted(names)


def installed(names, family):
    """Those of `names` that are installed, a package that provides the name included."""
    if family == "debian":
        command = ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}, ${Provides}\n"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        have = set()
        for line in done.stdout.decode().splitlines():
            status, _, rest = line.partition(" ")
            if status == "installed":
                have.update(word.split()[0] for word in rest.split(",") if word.strip())
        return {name for name in names if name in have}
    found = set()
    for name in names:
        if subprocess.run(["rpm", "-q", "--quiet", "--whatprovides", name],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0:
            found.add(name)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--uses", default="")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--system", action="store_true")
    options = parser.parse_args()
    distro = this_distro(os.environ.get("TREENAIL_OS_RELEASE", "/etc/os-release"))
    if options.system:
        print(distro.family, distro.id, distro.release.split(".")[0] or "0")
        return
    if distro.family == "other":
        sys.exit("this is %s; the packages are known for Debian and Fedora families only"
                 % distro.name)
    uses = [use for use in options.uses.split(",") if use]
    for use in uses:
        if use not in USES:
            parser.error("unknown use '%s'; there are %s" % (use, ", ".join(sorted(USES))))
    names = wanted(uses, distro)
    if options.missing:
        have = installed(names, distro.family)
        names = [name for name in names if name not in have]
    print("\n".join(names))


if __name__ == "__main__":
    main()
