# SPDX-License-Identifier: Apache-2.0
"""The tasks of a cluster, from the inventory: `worker__jobs` says which groups are which jobs; the
list of addresses that all tasks are given follows from that and from the hosts."""

import re

JOB = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
ADDRESS = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])\Z")
KEYS = {"name", "group", "port", "tasks", "options"}
# What the role writes itself.
OWN = {"cluster", "job", "task", "certificate", "key", "authority", "plain-text"}


class Refused(ValueError):
    """What the inventory says wrong."""


def _need(held, text, *given):
    if not held:
        raise Refused(text % given)


def checked_job(job):
    """The job with its defaults."""
    _need(isinstance(job, dict) and set(job) <= KEYS and {"name", "group", "port"} <= set(job),
          "worker__jobs has %s: give name, group and port, and if need be tasks and options", job)
    found = dict({"tasks": 1, "options": {}}, **job)
    _need(JOB.match(str(found["name"])),
          "worker__jobs has the name '%s': give letters, digits and _, a letter first",
          found["name"])
    _need(isinstance(found["tasks"], int) and 1 <= found["tasks"] <= 1000,
          "job %s has tasks: %s: give how many each host runs, 1 to 1000", found["name"],
          found["tasks"])
    _need(isinstance(found["port"], int) and 1 <= found["port"] <= 65536 - found["tasks"],
          "job %s has port: %s: give the port of a host's first task; further ones follow, up to "
          "65535", found["name"], found["port"])
    _need(isinstance(found["options"], dict), "job %s has options: %s: give a mapping",
          found["name"], found["options"])
    return found


def _checked_options(job):
    for name, value in job["options"].items():
        _need(name not in OWN, "job %s has the option %s, which the role writes itself",
              job["name"], name)
        _need(re.match(r"[a-z][a-z-]*\Z", str(name)) and "\n" not in str(value),
              "job %s has the option '%s: %s': give those of treenail-worker(1) without --, a line "
              "each", job["name"], name, value)


def _address(host, hostvars):
    address = str(hostvars[host].get("worker__address", host))
    _need(ADDRESS.match(address), "worker__address of %s is '%s': give a name or an address, an "
          "IPv6 address in brackets", host, address)
    return address


def tasks(jobs, groups, hostvars, cluster):
    """[{name, job, task, host, address, port, options}] of all tasks, job after job; `name` is that
    of the service's instance. groups, hostvars: Ansible's."""
    _need(jobs, "worker__jobs is empty: say which groups of the inventory are which jobs")
    found, names, places = [], set(), {}
    for job in map(checked_job, jobs):
        _checked_options(job)
        _need(job["name"] not in names, "worker__jobs has the name %s twice", job["name"])
        names.add(job["name"])
        hosts = groups.get(job["group"], [])
        _need(hosts, "job %s is of the group %s, and the inventory has no host in it", job["name"],
              job["group"])
        for number in range(len(hosts) * job["tasks"]):
            host, port = hosts[number // job["tasks"]], job["port"] + number % job["tasks"]
            address = _address(host, hostvars)
            task = {"name": "%s-%s-%d" % (cluster, job["name"], number), "job": job["name"],
                    "task": number, "host": host, "address": address, "port": port,
                    "options": job["options"]}
            other = places.setdefault((address, port), task)
            _need(other is task, "%s and %s are both to listen at %s:%d: give their jobs other "
                  "ports, or the hosts other addresses", other["name"], task["name"], address, port)
            found.append(task)
    return found


def cluster_text(found):
    """As treenail-worker's --cluster has it: job=host:port,host:port;job=..."""
    jobs = {}
    for task in found:
        jobs.setdefault(task["job"], []).append("%s:%d" % (task["address"], task["port"]))
    return ";".join("%s=%s" % (job, ",".join(places)) for job, places in jobs.items())


def tried(jobs, *more):
    """{value: the tasks, refused: ""}, or the sentence: Ansible 2.14 wraps what a filter raises in
    the text of every template around it."""
    try:
        return {"value": tasks(jobs, *more), "refused": ""}
    except Refused as refusal:
        return {"value": [], "refused": str(refusal)}


class FilterModule:
    def filters(self):
        return {"worker_tasks": tried, "worker_cluster": cluster_text}
