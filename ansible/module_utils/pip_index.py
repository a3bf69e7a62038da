# SPDX-License-Identifier: Apache-2.0
"""A Python package index, asked as pip on this machine is told to.

pip itself is not asked: it runs the build backend of a source archive to learn its version.
Errors: OSError with a sentence, in which no password stands.
"""

import base64
import configparser
import contextlib
import http.client
import json
import netrc
import os
import re
import ssl
import urllib.parse
import urllib.request

INDEX = "https://pypi.org/simple"
PAGE = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"


def setting(name, default=""):
    """What pip is told here: its environment first, then the files of user and machine."""
    value = os.environ.get("PIP_" + name.upper().replace("-", "_"))
    if value:
        return value
    home = os.path.expanduser("~")
    for path in (os.environ.get("PIP_CONFIG_FILE", ""), home + "/.config/pip/pip.conf",
                 home + "/.pip/pip.conf", "/etc/pip.conf"):
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read(path)
        except configparser.Error:
            continue
        for section in ("download", "install", "global"):
            if parser.has_option(section, name):
                return parser.get(section, name)
    return default


def parted(address):
    """(address without user and password, its host and port, user, password)."""
    parts = urllib.parse.urlsplit(address)
    words, _, place = parts.netloc.rpartition("@")
    user, _, password = map(urllib.parse.unquote, words.partition(":"))
    return parts._replace(netloc=place).geturl(), place, user, password


def indexes():
    """Addresses of the indexes, in the order in which they are asked."""
    return [setting("index-url", INDEX), *setting("extra-index-url").split()]


def secret(place):
    """(user, password) for a host, by the address of an index there or by netrc; None without."""
    for address in indexes():
        _, where, user, password = parted(address)
        if where == place and user:
            return user, password
    with contextlib.suppress(OSError, netrc.NetrcParseError):
        found = netrc.netrc(os.environ.get("NETRC")).authenticators(place.partition(":")[0])
        return found and (found[0] or "", found[2] or "")
    return None


def trust(place):
    """Whom to believe that it is this host."""
    authorities = setting("cert") or None
    folder = authorities and os.path.isdir(authorities)
    try:
        context = ssl.create_default_context(cafile=None if folder else authorities,
                                             capath=authorities if folder else None)
    except OSError as error:
        raise OSError("pip is told cert = %s, which cannot be read: %s" % (
            authorities, error)) from None
    if {place, place.partition(":")[0]} & set(setting("trusted-host").split()):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Handler(urllib.request.HTTPSHandler):
    """Decides for each host anew: an index may lead to another one."""

    def http_request(self, request):
        found = secret(request.host)
        if found:
            words = base64.b64encode(":".join(found).encode()).decode()
            # What is not marked so goes along to wherever this host leads.
            request.add_unredirected_header("Authorization", "Basic " + words)
        return request

    def https_request(self, request):
        return super().https_request(self.http_request(request))

    def https_open(self, request):
        place = urllib.parse.urlsplit(request.full_url).netloc  # `host` may be the proxy
        return self.do_open(http.client.HTTPSConnection, request, context=trust(place))


@contextlib.contextmanager
def opened(address, accept="*/*"):
    """The answer to a request."""
    place = "an index that pip is told of"
    try:
        address, place, _, _ = parted(address)
        request = urllib.request.Request(address, headers={"Accept": accept})  # noqa: S310
        proxy = setting("proxy")  # else that of the environment
        opener = urllib.request.build_opener(Handler, urllib.request.ProxyHandler(
            {"http": proxy, "https": proxy} if proxy else None))
        with opener.open(request, timeout=float(setting("timeout", "60"))) as answer:
            yield answer
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise OSError("%s: %s" % (place, getattr(error, "reason", error))) from None


def links(page, kind, base):
    """[(file name, address, sha256)] of an index page, JSON (PEP 691) or HTML (PEP 503)."""
    if "json" in kind:
        return [(f["filename"], urllib.parse.urljoin(base, f["url"]),
                 f.get("hashes", {}).get("sha256", "")) for f in json.loads(page)["files"]]
    found = []
    for address in re.findall(r"""<a[^>]*\shref=["']([^"']+)["']""", page):
        address, _, fragment = address.replace("&amp;", "&").partition("#")
        match = re.search(r"sha256=([0-9a-f]{64})", fragment)
        found.append((urllib.parse.unquote(address.rsplit("/", 1)[-1]),
                      urllib.parse.urljoin(base, address), match.group(1) if match else ""))
    return found


def files(project):
    """(the files of a project as by links(), why an index did not tell): of all indexes, the first
    one's first."""
    name = re.sub(r"[-_.]+", "-", project).lower()
    found, reasons = [], []
    for index in indexes():
        try:
            with opened("%s/%s/" % (index.rstrip("/"), name), PAGE) as page:
                found += links(page.read().decode(errors="replace"),
                               page.headers.get_content_type(), page.geturl())
        except OSError as reason:
            reasons.append(str(reason))
    return found, reasons
