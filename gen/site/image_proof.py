# SPDX-License-Identifier: Apache-2.0
"""Proofs about container images (ci/image): the same bytes from two builds, versions that share a
base, labels that cannot lie; and programs that run in them under limits, without a daemon."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import chroots
from proving import SOURCE, Failed, NotRun, need, proof, run

PROGRAM = os.path.join(SOURCE, "ci/image")
FOLDER = "image-proof"
TAG = "proof"
_LIMITED = """
import json, os, time, treenail as tn
info, said = tn.build_info(), ""
try:
    tn.Session().run(tn.ones([1 << 10, 1 << 20]))
except tn.errors.ResourceExhaustedError as error:
    said = str(error).splitlines()[0]
def written(path):
    try:
        open(path, "w").close()
    except OSError as error:
        return error.strerror
    return ""
capabilities = [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")]
print(json.dumps({"threads": info["num_threads"], "limit": info["memory_limit"], "said": said,
                  "uid": os.getuid(), "capabilities": sorted(set(capabilities)),
                  "network": os.listdir("/sys/class/net"),
                  "written": [written(p) for p in ("/usr/x", "/data/x", "/sys/x", "/tmp/x")]}))
"""
# Two busy processes for two seconds: the share of a CPU that they got, and how often the kernel
# held them back; on a busy machine the share alone would say nothing.
_BUSY = """
import glob, os, time
begin, children = time.monotonic(), []
for _ in range(2):
    child = os.fork()
    if not child:
        while time.monotonic() < begin + 2:
            pass
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
used = os.times()
share = (used.children_user + used.children_system) / (time.monotonic() - begin)
stat = "".join(open(path).read() for path in glob.glob("/sys/fs/cgroup/cpu.stat")
               + glob.glob("/sys/fs/cgroup/cpu*/cpu.stat"))
print(share, stat.split("nr_throttled")[1].split()[0])
"""
_FORKS = """
import os, time
count = 0
try:
    while count < 500:
        if not os.fork():
            time.sleep(60)
        count += 1
except BlockingIOError:
    pass
print(count, flush=True)
os._exit(0)
"""


def image(layout, *words, status=0, **more):
    """ci/image upon that layout; its output."""
    return run([sys.executable, PROGRAM, "--layout", layout, *words], status=status, **more)


def _packages():
    """What `ninja deb` made in this build directory, and the programs that images need."""
    chroots.needs()
    for program in ("umoci", "skopeo"):
        need(program, program)
    if not chroots.packages("deb"):
        raise NotRun("deb/ holds no packages: ninja deb makes them")
    return os.path.abspath("deb")


def _built(place, **more):
    """A layout with the image; what `list` tells of it."""
    layout = os.path.join(os.path.abspath(FOLDER), place)
    os.makedirs(os.path.dirname(layout), exist_ok=True)
    text = image(layout, "build", "--packages", _packages(), "--tag", TAG, **more)
    return layout, {row["tag"]: row for row in json.loads(image(layout, "list", "--json"))}, text


def _same_bytes():
    """Two builds from nothing, in other surroundings; the first one's layout."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    layout, one, _ = _built("one/images", umask=0o022, environment={"TZ": "UTC"})
    begun = int(time.time())
    while int(time.time()) == begun:
        time.sleep(0.1)
    _, two, _ = _built("another place, longer/images", umask=0o077, environment={
        "TZ": "Asia/Tokyo", "LC_ALL": "C", "LANGUAGE": "tr"})
    if one != two:
        raise Failed("two builds differ:\n%s\n%s" % (one, two))
    return layout, one


def _next_revision(into):
    """The packages repacked with the next Debian revision: other bytes, the same needs."""
    shutil.rmtree(into, ignore_errors=True)
    os.makedirs(into)
    for path in chroots.packages("deb"):
        tree = os.path.join(into, "tree")
        run(["dpkg-deb", "-R", path, tree])
        control = os.path.join(tree, "DEBIAN/control")
        with open(control, encoding="utf-8") as stream:
            text = stream.read()
        version = os.path.basename(path).split("_")[1]
        with open(control, "w", encoding="utf-8") as stream:
            stream.write(text.replace(version, version + "0"))
        run(["dpkg-deb", "--root-owner-group", "-b", tree, into])
        shutil.rmtree(tree)
    return into


def _side_by_side(layout):
    """Another version upon the same base; the same tag for it is refused."""
    others = ["build", "--packages", _next_revision(os.path.join(FOLDER, "next"))]
    if "give --revision" not in image(layout, *others, "--tag", "next", status=1):
        raise Failed("packages that do not say where they come from were taken without --revision")
    others += ["--revision", "0" * 40]
    text = image(layout, *others, "--tag", TAG, status=1)
    if "exists with other content" not in text:
        raise Failed(text)
    image(layout, *others, "--tag", "next")
    rows = {row["tag"]: row for row in json.loads(image(layout, "list", "--json"))}
    if rows[TAG]["base"] != rows["next"]["base"] or rows[TAG]["digest"] == rows["next"]["digest"]:
        raise Failed("two versions do not share the base alone: %s" % rows)
    return rows["next"]["own_bytes"]


def _verified(layout):
    """verify agrees, and finds a label that lies."""
    image(layout, "verify")
    run(["umoci", "config", "--image", layout + ":" + TAG, "--tag", "lying",
         "--config.label", "treenail.levels=x86-64-v9"])
    text = image(layout, "verify", "lying", status=1)
    if "the label treenail.levels is 'x86-64-v9'" not in text:
        raise Failed(text)
    image(layout, "gc", "lying")
    if "nothing to do" not in _built(os.path.relpath(layout, FOLDER))[2]:
        raise Failed("a second build does not see that there is nothing to do")


def _interrupted(layout):
    """A build that is ended leaves neither a directory nor a tag, and the next one goes on."""
    before = sorted(os.listdir(os.path.dirname(layout)))
    with subprocess.Popen([sys.executable, PROGRAM, "--layout", layout, "build", "--rebuild",
                           "--packages", "deb", "--tag", TAG], stdout=subprocess.PIPE) as going:
        if b" upon " not in going.stdout.readline():
            raise Failed("the build does not say what it does")
        going.send_signal(signal.SIGTERM)
        status = going.wait()
    after = sorted(os.listdir(os.path.dirname(layout)))
    if status != 130 or after != before:
        raise Failed("exit status %d; left: %s" % (status, sorted(set(after) - set(before))))
    tags = {row["tag"] for row in json.loads(image(layout, "list", "--json"))}
    if not any(tag.startswith("base-") for tag in tags) or TAG not in tags:
        raise Failed("an interrupted build leaves the tags %s" % sorted(tags))
    if "the same as before" not in image(layout, "build", "--rebuild", "--packages", "deb",
                                         "--tag", TAG):
        raise Failed("the image comes out differently after an interrupted build")


def _exported(layout):
    """The archive that Docker loads has the image's layers and labels, by another reader."""
    path = os.path.join(FOLDER, "exported.tar")
    image(layout, "export", "--force", TAG, path)
    seen = json.loads(run(["skopeo", "--insecure-policy", "inspect", "docker-archive:" + path]))
    own = json.loads(run(["skopeo", "--insecure-policy", "inspect",
                          "oci:%s:%s" % (layout, TAG)]))
    if seen["Labels"] != own["Labels"] or "treenail.levels" not in seen["Labels"]:
        raise Failed("the archive has the labels %s" % seen["Labels"])
    with tarfile.open(path) as archive:
        manifest = json.load(archive.extractfile("manifest.json"))[0]
        for name in manifest["Layers"]:
            found = hashlib.sha256(archive.extractfile(name).read()).hexdigest()
            if name != found + ".tar":
                raise Failed("%s in the archive has the digest %s" % (name, found))
    os.unlink(path)
    return seen["Labels"]


@proof
def images():
    """two builds of the image of deb/ are the same bytes; versions share a base; labels hold"""
    layout, rows = _same_bytes()
    _verified(layout)
    own = _side_by_side(layout)
    _interrupted(layout)
    labels = _exported(layout)
    return "%s, %.1f MB, of these %.1f MB beside the base; levels %s, Python %s, revision %s" % (
        rows[TAG]["digest"][:19], rows[TAG]["bytes"] / 1e6, own / 1e6, labels["treenail.levels"],
        labels["treenail.python"], labels["org.opencontainers.image.revision"][:12])


# ---- limits -----------------------------------------------------------------------------------


def _python(layout, memory, cpus, text, *words, status=0):
    return image(layout, "run", "--quiet", "--memory", memory, "--cpus", str(cpus), *words, TAG,
                 "--", "python3", "-c", text, status=status)


def _sees_limits(layout, folder):
    """Treenail's own account of its limits, for a whole and a fractional number of CPUs."""
    cpus = len(os.sched_getaffinity(0))
    for asked, expected in ((0.5, 1), (1, 1), (cpus - 0.5, cpus)):
        told = json.loads(_python(layout, "512M", asked, _LIMITED, "--bind", folder + ":ro"))
        if told["threads"] != expected:
            raise Failed("%d threads at %g CPUs, not %d" % (told["threads"], asked, expected))
    if not 0.9 * 2 ** 29 < told["limit"] < 2 ** 29:
        raise Failed("the limit is %d bytes at 512M" % told["limit"])
    if "out of memory: 4294967296 bytes asked" not in told["said"]:
        raise Failed("a tensor beyond the limit is refused by: '%s'" % told["said"])
    if told["network"] != ["lo"] or told["uid"] != 1000 or told["capabilities"] != ["0" * 16]:
        raise Failed("the container is wider than it should be: %s" % told)
    if told["written"][3] != "" or not all(told["written"][:3]):
        raise Failed("what can be written: %s" % told["written"])
    return told["said"]


def _enforces_limits(layout):
    """The kernel holds programs to the limits that know nothing of them."""
    text = image(layout, "run", "--memory", "128M", TAG, "python3", "-c",
                 "x = bytearray(1 << 30)", status=137)
    if "was killed (SIGKILL)" not in text:
        raise Failed(text)
    share, throttled = _python(layout, "256M", 0.1, _BUSY).split()
    if float(share) > 0.15 or int(throttled) == 0:
        raise Failed("at 0.1 CPUs two busy processes got %s, held back %s times" % (
            share, throttled))
    forks = int(_python(layout, "512M", 1, _FORKS, "--pids", "40"))
    if forks >= 40:
        raise Failed("%d processes were begun at --pids 40" % forks)
    return float(share), int(throttled)


def _groups():
    """Control groups of containers that are there."""
    return [os.path.join(folder, name) for folder, names, _ in os.walk("/sys/fs/cgroup")
            for name in names if name.startswith("treenail-")]


def _ends_with_its_caller(layout):
    """A container does not outlive ci/image, and leaves no control group."""
    with subprocess.Popen([sys.executable, PROGRAM, "--layout", layout, "run", TAG, "sh", "-c",
                           "trap '' TERM INT; echo begun; while :; do sleep 1; done"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as going:
        if going.stdout.readline() != b"begun\n":
            raise Failed("the program did not begin")
        if not _groups():
            raise Failed("a running container has no control group")
        going.send_signal(signal.SIGTERM)
        status = going.wait()
    if status != 130 or _groups():
        raise Failed("exit status %d, control groups left: %s" % (status, _groups()))


@proof
def image_limits():
    """in the image, without a daemon, CPU and memory limits hold, Treenail sees them, and trains"""
    layout, _, _ = _built("one/images")
    said = image(layout, "run", TAG, "true", status=None)
    if "no container runtime holds the limits" in said:
        raise NotRun(said.strip())
    if "in force: 1024 MiB, 1 CPUs" not in said:
        raise Failed(said)
    smoke = os.path.join(os.path.abspath(FOLDER), "smoke")
    shutil.rmtree(smoke, ignore_errors=True)
    shutil.copytree(os.path.join(SOURCE, "smoke"), smoke)
    os.chmod(smoke, 0o755)
    _sees_limits(layout, smoke)
    share, throttled = _enforces_limits(layout)
    _ends_with_its_caller(layout)
    trained = image(layout, "run", "--quiet", "--memory", "512M", "--cpus", "1", "--bind",
                    smoke + ":ro", TAG, "python3", "train.py", "mlp", "--quiet")
    return "%s; at 0.1 CPUs two busy processes got %.2f, held back %d times; %s" % (
        said.splitlines()[-1].partition(": ")[2], share, throttled,
        trained.strip().splitlines()[-1])
