# SPDX-License-Identifier: Apache-2.0
"""Ports for servers of tests, several of which run at a time on one machine."""

import itertools
import random
import socket

_kept = []  # what keeps a port to this process, in the eyes of other tests


def _outside_the_ephemeral_range():
    """Ports that the kernel gives to no connection of its own accord; all where there are none."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as stream:
        first, last = map(int, stream.read().split())
    every = range(10000, 65536)
    return [port for port in every if not first <= port <= last] or list(every)


def _keep(port):
    """Whether nobody listens at the port, and no other test was given it.

    The mark is an abstract name, which goes with its process and its network namespace."""
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind("\0treenail-tests-port-%d" % port)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
    except OSError:
        mark.close()
        return False
    _kept.append(mark)
    return True


def free_ports(count):
    """Ports of this machine at which nobody listens, and that nobody takes before who asked does:
    neither another test nor, as a port that bind() chooses can be, an outgoing connection."""
    candidates = _outside_the_ephemeral_range()
    random.SystemRandom().shuffle(candidates)
    ports = list(itertools.islice(filter(_keep, candidates), count))
    if len(ports) < count:
        raise OSError("%d free ports were asked for, and %d found" % (count, len(ports)))
    return ports
