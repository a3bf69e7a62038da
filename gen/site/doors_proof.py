# SPDX-License-Identifier: Apache-2.0
"""Proof that stack-env gives the same environment by whatever door one comes in: as a task of
Ansible, by ssh, sudo, su, cron, srun and sbatch."""

import functools
import os
import shutil
import time

from hosts_proof import check_slurm, hosts, up
from proving import Failed, need, proof, run

INIT = "/usr/share/lmod/lmod/init/bash"
USER = "somebody"
NAMES = "LOADEDMODULES LD_LIBRARY_PATH LOW_ROOT _LMFILES_ MODULEPATH"


def _shown(prefix):
    """A command without quotes that prints what stack-env sets, and the first folder of PATH."""
    path = os.path.join(prefix, "bin/show")
    # Some variables hold something else before: stack-env replaces what a door lets in.
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("""#!/bin/sh
export LD_LIBRARY_PATH=/elsewhere LOADEDMODULES=other/1
exec %s/bin/stack-env sh -c '
for name in %s; do eval "echo $name=\\$$name"; done; echo "PATH=${PATH%%%%:*}"'
""" % (prefix, NAMES))
    os.chmod(path, 0o755)
    return path


def _by_cron(ssh, show):
    """From a crontab, by a cron that runs for this."""
    run([*ssh, "echo '* * * * * %s cd /tmp && %s > part && mv part shown' > /etc/cron.d/show && "
         "cron" % (USER, show)])
    for _ in range(150):  # cron looks once a minute
        time.sleep(1)
        text = run([*ssh, "cat /tmp/shown 2> /dev/null || :"])
        if text:
            return text
    raise Failed("cron ran nothing in 150 s")


def _by_sbatch(login, show, folder):
    script = os.path.join(folder, "job.sh")
    with open(script, "w", encoding="utf-8") as stream:
        stream.write("#!/bin/sh\n%s\n" % show)
    login("sbatch", "--wait", "--output=%s/job.out" % folder, script)
    with open(os.path.join(folder, "job.out"), encoding="utf-8") as stream:
        return stream.read()


@proof
def stack_doors():
    """stack-env gives the same by a task, ssh, sudo, su, cron, srun and sbatch"""
    check_slurm()
    need("ssh", "openssh-client")
    need("ansible", "ansible-core")
    from stack_fixture import PAIR, made_stack  # Ansible's packages
    folder = os.path.abspath("stack-doors")
    shutil.rmtree(folder, ignore_errors=True)
    prefix = os.path.join(folder, "stack")
    plan = made_stack(prefix, PAIR, INIT, {})
    show = _shown(prefix)
    os.chmod(folder, 0o777)
    with up("doors", "--ssh", "1", "--slurm", "1", "--share", folder, "--include", "lmod",
            "--include", "cron") as (state, _):
        ssh = ["ssh", "-F", os.path.join(state, "ssh_config"), "ssh1"]
        login = functools.partial(hosts, "run", "--state", state, "login", "--")
        # The host has files of its own: the stack goes to the same place there.
        run(["sh", "-c", 'tar -C / -c "$0" | ssh -F "$1" ssh1 tar -C / -x', prefix.lstrip("/"),
             os.path.join(state, "ssh_config")])
        run([*ssh, "useradd -m " + USER])
        found = {
            "task": run(["ansible", "ssh1", "-i", os.path.join(state, "inventory.yml"), "-m",
                         "command", "-a", show], environment={"ANSIBLE_NOCOLOR": "1"}).partition(
                             ">>\n")[2],
            "ssh": run([*ssh, show]), "sudo": run([*ssh, "sudo -n -u %s %s" % (USER, show)]),
            "su": run([*ssh, "su %s -c %s" % (USER, show)]), "cron": _by_cron(ssh, show),
            "srun": login("srun", "-n1", show), "sbatch": _by_sbatch(login, show, folder)}
    wanted = found["ssh"]
    low = next(i["prefix"] for i in plan if i["name"] == "low")
    if "PATH=%s/bin\n" % low not in wanted or "/elsewhere" in wanted or "high/1" not in wanted:
        raise Failed("by ssh: " + wanted)
    other = {door: text for door, text in found.items() if text.strip() != wanted.strip()}
    if other:
        raise Failed("by ssh:\n%s\n%s" % (wanted, "\n".join(
            "by %s:\n%s" % item for item in other.items())))
    return "%s: the same %d lines" % (", ".join(found), len(wanted.splitlines()))
