# SPDX-License-Identifier: Apache-2.0
"""The network of test hosts: a bridge with an address range that nothing else on this machine has,
and a network namespace with one leg on it for each host. There is no way out but by --internet."""

import contextlib
import fcntl
import ipaddress
import os
import subprocess

from host_machine import HostsError, call, end, need, start_time, table

CANDIDATES = tuple("10.77.%d.0/24" % number for number in range(256))
NAMESPACES = "/run/netns"
RUN = "/run/treenail-hosts"  # what the states of this machine share, and their sockets


@contextlib.contextmanager
def machine_lock():
    """One state at a time changes what all of them share."""
    folder = os.open("/run", os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def ranges_in_use() -> dict:
    """Networks that an interface or a route of this machine has, and which."""
    found = {}
    for link in table("-4", "address"):
        for row in link.get("addr_info", []):
            network = ipaddress.ip_network("%s/%d" % (row["local"], row["prefixlen"]), strict=False)
            found[network] = "interface " + link["ifname"]
    for row in table("-4", "route"):
        if row["dst"] != "default":
            found.setdefault(ipaddress.ip_network(row["dst"]), "a route by " + row.get("dev", "?"))
    return found


def free_range(asked: str, used: dict, hosts: int) -> ipaddress.IPv4Network:
    """The range that was asked for, or the first candidate that overlaps nothing in `used`."""
    def taken_by(network):
        return next((owner for other, owner in used.items() if network.overlaps(other)), "")
    if not asked:
        for text in CANDIDATES:
            if not taken_by(ipaddress.ip_network(text)):
                return ipaddress.ip_network(text)
        raise HostsError("no address range from %s to %s is free; name another by --network"
                         % (CANDIDATES[0], CANDIDATES[-1]))
    try:
        network = ipaddress.IPv4Network(asked)
    except ValueError as error:
        raise HostsError("--network %s: %s" % (asked, error)) from None
    if network.num_addresses < hosts + 3:
        raise HostsError("--network %s has too few addresses for %d hosts" % (asked, hosts))
    if taken_by(network):
        raise HostsError("--network %s is in use by %s; leave the option out for a free range"
                         % (asked, taken_by(network)))
    return network


class Network:
    """The bridge of one state; `address` of the machine on it is the range's first."""

    def __init__(self, state, asked: str, hosts: int) -> None:
        need("ip", "iproute2")
        self._state = state
        self.bridge = state.id
        with machine_lock():  # else two could choose the same range
            self.range = free_range(asked, ranges_in_use(), hosts)
            self._free = self.range.hosts()
            self.address = str(next(self._free))
            state.record("link", name=self.bridge)
            call("ip", "link", "add", self.bridge, "type", "bridge")
            call("ip", "address", "add", "%s/%d" % (self.address, self.range.prefixlen), "dev",
                 self.bridge)
        call("ip", "link", "set", self.bridge, "up")

    def addresses(self, names: list) -> dict:
        return {name: str(next(self._free)) for name in names}

    def join(self, number: int, name: str, address: str, internet: bool) -> dict:
        """A namespace with this address; the facts that name it."""
        space, link = "%s-%s" % (self._state.id, name), "%s-%d" % (self._state.id, number)
        self._state.record("namespace", name=space)
        call("ip", "netns", "add", space)
        self._state.record("link", name=link)
        call("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
        call("ip", "link", "set", link, "master", self.bridge, "up")
        call("ip", "-n", space, "address", "add", "%s/%d" % (address, self.range.prefixlen), "dev",
             "eth0")
        for interface in ("lo", "eth0"):
            call("ip", "-n", space, "link", "set", interface, "up")
        if internet:
            call("ip", "-n", space, "route", "add", "default", "via", self.address)
        return {"namespace": space, "link": link, "address": address}

    def allow_internet(self) -> None:
        """Packets of the range leave by this machine's default route, under its own address."""
        need("iptables", "iptables")
        routes = table("-4", "route", "show", "default")
        if not routes:
            raise HostsError("--internet: this machine has no default route itself")
        out = routes[0]["dev"]
        rule = ["POSTROUTING", "-s", str(self.range), "!", "-o", self.bridge, "-j", "MASQUERADE"]
        with machine_lock():
            self._state.record("internet", rule=rule, out=out, user=self._state.id)
            share_forwarding(out, self._state.id)
            set_forwarding(self.bridge, "1")
        try:
            call("iptables", "-w", "-t", "nat", "-A", *rule)
        except HostsError as error:
            raise HostsError("--internet: this kernel translates no addresses: %s"
                             % error) from None


def _forwarding_file(interface: str) -> str:
    return "/proc/sys/net/ipv4/conf/%s/forwarding" % interface


def set_forwarding(interface: str, value: str) -> None:
    with open(_forwarding_file(interface), "w", encoding="utf-8") as stream:
        stream.write(value)


def _sharers_file(interface: str) -> str:
    return os.path.join(RUN, "forwarding-" + interface)


def share_forwarding(interface: str, user: str) -> None:
    """Forwarding is on as long as one state needs it. The file holds the value that was there
    before the first, then the states."""
    path = _sharers_file(interface)
    if not os.path.exists(path):
        with open(_forwarding_file(interface), encoding="utf-8") as stream:
            before = stream.read()
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(before)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write(user + "\n")
    set_forwarding(interface, "1")


def remove_internet(entry: dict) -> None:
    """The address translation; and forwarding, when no other state needs it."""
    while subprocess.run(["iptables", "-w", "-t", "nat", "-D", *entry["rule"]], check=False,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        pass
    path = _sharers_file(entry["out"])
    with machine_lock(), contextlib.suppress(FileNotFoundError):
        with open(path, encoding="utf-8") as stream:
            before, *users = stream.read().split()
        left = [user for user in users if user != entry["user"]]
        if left:
            with open(path, "w", encoding="utf-8") as stream:
                stream.writelines(word + "\n" for word in [before, *left])
            return
        os.remove(path)
        set_forwarding(entry["out"], before)


def remove_namespace(name: str) -> None:
    """With whatever runs in it."""
    if not os.path.exists(os.path.join(NAMESPACES, name)):
        return
    for pid in call("ip", "netns", "pids", name, check=False).split():
        if pid.isdigit():
            end({"pid": int(pid), "start": start_time(int(pid))})
    call("ip", "netns", "delete", name)


def remove_link(name: str) -> None:
    if os.path.exists("/sys/class/net/" + name):
        call("ip", "link", "delete", name, check=False)  # a namespace that ends takes it along
        if os.path.exists("/sys/class/net/" + name):
            raise HostsError("the interface %s cannot be deleted" % name)
