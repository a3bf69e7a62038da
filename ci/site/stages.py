# SPDX-License-Identifier: Apache-2.0
"""The stages of ci/stage: name, what it is for, packages, what comes before, what is run.

A stage is one function that returns the commands to run, or the names of the stages that it stands
for. `uses` are those of gen/deps.py. Where a command writes a JUnit report itself, it is
reports/<stage>.xml of the build directory; for all others ci/stage writes one.
"""

import argparse
import configparser
import glob
import json
import os
import shutil
import sys
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from stage_run import Command, Refused, Run

CONFIGURE = "to configure.py; without any, the configuration of the build directory is kept"
PLAYED = "--reports DIR; others to ansible-playbook: -i INVENTORY, -e, --tags"
NONE = "none"


@dataclass(frozen=True)
class Stage:
    """`commands` gets the run and the options that are this stage's own."""

    name: str
    help: str
    title: str
    commands: Optional[Callable[[Run, Sequence[str]], List[Command]]] = None
    uses: Tuple[str, ...] = ()
    needs: Tuple[str, ...] = ()
    parts: Tuple[str, ...] = ()
    options: str = CONFIGURE
    afterwards: str = ""

    @property
    def essential(self) -> bool:
        """Nothing makes sense when it failed."""
        return self.name in ("setup", "build")

    @property
    def own_options(self) -> bool:
        return self.options not in (CONFIGURE, NONE)


def set_up(run: Run, options: Sequence[str]) -> List[Command]:
    uses = ",".join(options) if options else ",".join(sorted(
        {use for stage in run.stages for use in stage.uses} or
        {use for stage in parts_of([BY_NAME["test"]]) for use in stage.uses}))
    script = '. "$1" && set_up "$2"'
    return [Command(["sh", "-uc", script, os.path.join(run.top, "ci", "stage"),
                     os.path.join(run.top, "ci", "setup.sh"), uses])]


def build(run: Run, options: Sequence[str]) -> List[Command]:
    """An earlier configuration is kept unless options are given."""
    configure = os.path.join(run.top, "configure.py")
    kept = not options and all(os.path.isfile(os.path.join(run.build, name))
                               for name in ("gen/configuration.json", "build.ninja"))
    first = Command([sys.executable, configure, "--regenerate"], cwd=run.build) if kept else (
        Command([sys.executable, configure, "--build-dir=" + run.build, *options], cwd=run.top))
    return [first, Command(["ninja", "-C", run.build])]


def ninja(*targets: str) -> Callable[[Run, Sequence[str]], List[Command]]:
    return lambda run, _: [Command(["ninja", "-C", run.build, *targets])]


def lint(name: str, use: str) -> Callable[[Run, Sequence[str]], List[Command]]:
    """The steps whose programs are installed for `use`; those that are named, where some are."""
    def commands(run: Run, options: Sequence[str]) -> List[Command]:
        steps = options if any(not word.startswith("-") for word in options) else [
            "--use", use, *options]
        return [Command([os.path.join(run.top, "ci/lint"), "--build-dir", run.build, "--junit",
                         run.report(name), *steps])]
    return commands


def there(run: Run, path: str, what: str) -> str:
    """The path, once it exists."""
    full = os.path.join(run.top, path)
    if not os.path.exists(full):
        raise Refused("%s is not there: this tree cannot %s yet" % (path, what))
    return full


def playbook(run: Run, name: str, options: Sequence[str], play: str = "ansible/site.yml",
             purpose: str = "build the stack") -> List[Command]:
    """ansible-playbook on a play. A callback of Ansible writes JUnit's XML."""
    there(run, play, purpose)
    if not shutil.which("ansible-playbook"):
        raise Refused("ansible-playbook is not installed; ci/stage setup site installs it")
    settings = os.path.join(run.top, "ansible", "ansible.cfg")
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(settings)
    callbacks = parser.get("defaults", "callbacks_enabled", fallback="").split(",")
    environment = {
        "ANSIBLE_CALLBACKS_ENABLED": ",".join(
            sorted({c.strip() for c in callbacks if c.strip()} | {"junit"})),
        "JUNIT_OUTPUT_DIR": run.gathered(name), "JUNIT_TASK_CLASS": "true"}
    if os.path.exists(settings):
        environment["ANSIBLE_CONFIG"] = settings
    return [Command(["ansible-playbook", play, *options], cwd=run.top,
                    environment=environment)]


def reports(run: Run, options: Sequence[str]) -> Tuple[str, str, List[str]]:
    """--reports DIR taken off the options: (where reports go, where those of the play and its
    manifest go, the other options)."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--reports")
    known, others = parser.parse_known_args(options)
    if known.reports is None:
        return run.folder, os.path.join(run.top, "build", "stack"), others
    folder = os.path.abspath(known.reports)
    return folder, os.path.join(folder, "stack"), others


def fetch(run: Run, options: Sequence[str]) -> List[Command]:
    return stack(run, ["--tags", "fetch", *options], "fetch")


def stack(run: Run, options: Sequence[str], name: str = "stack") -> List[Command]:
    _, folder, others = reports(run, options)
    return playbook(run, name, ["-e", json.dumps({"stack__reports": folder}), *others])


def publish(run: Run, options: Sequence[str]) -> List[Command]:
    """The packages of this build directory, of those formats that there are."""
    folders = {form: os.path.join(run.build, form) for form in ("deb", "rpm")}
    made = {form: folder for form, folder in folders.items()
            if glob.glob(os.path.join(glob.escape(folder), "**", "*." + form), recursive=True)}
    if not made:
        raise Refused("there is no package in %s; ci/stage deb and ci/stage rpm make them"
                      % " or ".join(folders.values()))
    what = json.dumps({"repo__formats": list(made), "repo__packages": list(made.values())})
    return playbook(run, "publish", ["--tags", "publish", "-e", what, *options],
                    "ansible/repo.yml", "publish packages")


def images(run: Run, options: Sequence[str]) -> List[Command]:
    """Of the packages of this build directory, into a layout there."""
    return [Command([there(run, "ci/image", "make container images"), "--layout",
                     os.path.join(run.build, "images"), "build", "--packages",
                     os.path.join(run.build, "deb"), *options])]


def slurm(run: Run, options: Sequence[str]) -> List[Command]:
    """Independent copies on a cluster of two nodes; the benchmark's reports are kept."""
    return on_cluster(run, "hosts-slurm", options or ["copies"])


def two_nodes(run: Run, options: Sequence[str]) -> List[Command]:
    """One training of both nodes; where a Treenail is named, on the site's own cluster."""
    if any(word.split("=")[0] == "--treenail" for word in options):
        return [Command([os.path.join(run.top, "ci/site/slurm_check.py"), "--reports", run.folder,
                         *options, "together"])]
    return on_cluster(run, "hosts-two-nodes", ["together", *options])


def on_cluster(run: Run, name: str, options: Sequence[str]) -> List[Command]:
    """A cluster of two nodes, the checks on it, and its end."""
    hosts = there(run, "ci/hosts", "make test hosts")
    place = os.path.join(run.build, name)
    return [Command([hosts, "up", "--slurm", "2", "--state", place]),
            Command([os.path.join(run.top, "ci/site/slurm_check.py"), "--hosts", place,
                     "--treenail", run.build, "--reports", run.folder, *options]),
            Command([hosts, "down", "--state", place], always=True)]


def benchmark(run: Run, options: Sequence[str]) -> List[Command]:
    """Of the stack that this machine's users have since the last play that came to its end."""
    kept, folder, own = reports(run, options)
    programs = []
    for path in glob.glob(os.path.join(glob.escape(folder), "manifest-*.json")):
        with open(path, encoding="utf-8") as stream:
            program = os.path.join(json.load(stream)["environment"], "bin", "stack-env")
        if os.path.exists(program):
            programs.append((os.path.getmtime(path), program))
    if not programs:
        raise Refused("there is no manifest of a stack of this machine in %s, which ci/stage stack "
                      "writes when all of the stack is built" % folder)
    os.makedirs(kept, exist_ok=True)
    measured = {"benchmark": own} if own else {
        "benchmark-mlp": ["--model=mlp"],
        "benchmark-resnet50": ["--model=resnet50", "--batch-size=4", "--num-warmup-batches=2",
                               "--num-batches=10"]}
    return [Command([max(programs)[1], "treenail-bench", *words, "--report",
                     os.path.join(kept, name + ".json")]) for name, words in measured.items()]


def patches(run: Run, options: Sequence[str]) -> List[Command]:
    """Each patch's test on the real sources, without the patch and with it."""
    there(run, "gen/site/patches_proof.py", "prove patches")
    os.makedirs(run.build, exist_ok=True)
    return [Command([sys.executable, "-B", os.path.join(run.top, "gen/tools/proofs.py"), "--junit",
                     run.report("patches"), "patches"], cwd=run.build)]


def manifest(run: Run, options: Sequence[str]) -> List[Command]:
    return [Command([sys.executable, "-B", os.path.join(run.top, "ci/site/manifest.py"),
                     "--build-dir", run.build, "--output",
                     os.path.join(run.build, "reports", "manifest.json"), *options])]


BUILT = ("setup", "build")
SMOKE_TEXT = """Use it with the launcher, or with the interpreter it was built for:
  {build}/python3 -c "import treenail as tn; print(tn.__version__)"
  PYTHONPATH={build}/python {python} -c "import treenail as tn; print(tn.__version__)"
"""

STAGES = (
    Stage("setup", "install the packages that the stages need, as root or by sudo",
          "Setting up", set_up, options="uses of gen/deps.py; without any, those of 'test'"),
    Stage("build", "configure and build (ninja)", "Building", build,
          ("build", "feature", "run"), ("setup",)),
    Stage("unit", "every test of C++, Python and the generator (ninja test)", "Testing",
          ninja("test"), ("test",), BUILT),
    Stage("lint", "formatters and linters of the code (ci/lint)", "Linting", lint("lint", "lint"),
          ("lint",), BUILT, options="to ci/lint: --fix, names of steps"),
    Stage("proofs", "the proofs of a minute or two (ninja check-quick)", "Quick proofs",
          ninja("check-quick"), ("test", "proof"), BUILT),
    Stage("packaging", "debian/ and rpm/ against the facts (ninja check-packaging)", "Packaging",
          ninja("check-packaging"), ("proof",), BUILT),
    Stage("site", "ansible/, ci/ and patches/ by their quick tests (ninja check-site)",
          "The site's half", ninja("check-site"), ("test", "site"), BUILT),
    Stage("lint-site", "linters of plays, jobs and pipeline (ci/lint)", "Linting the site's half",
          lint("lint-site", "site"), ("lint", "site"), BUILT,
          options="to ci/lint: --fix, names of steps"),
    Stage("smoke", "train the smoke networks on handwritten digits (ninja smoke)",
          "Training the smoke networks", ninja("smoke"), (), BUILT, afterwards=SMOKE_TEXT),
    Stage("test", "what must hold before a change goes in (ci/test)", "",
          parts=("unit", "lint", "proofs")),
    Stage("deb", "Debian packages, source and binary (ninja deb)", "Debian packages",
          ninja("deb"), ("test", "docs", "package"), BUILT),
    Stage("rpm", "RPM packages, source and binary (ninja rpm)", "RPM packages",
          ninja("rpm"), ("test", "docs", "package"), BUILT),
    Stage("fetch", "fill the cache of sources (ansible-playbook --tags fetch)", "Fetching",
          fetch, ("site",), ("setup",), options=PLAYED),
    Stage("stack", "build the stack by Ansible (ansible/site.yml)", "The stack", stack,
          ("site",), ("setup",), options=PLAYED),
    Stage("publish", "sign the packages and publish them in a channel (ansible/repo.yml)",
          "Publishing packages", publish, ("site",), ("setup",),
          options="to ansible-playbook: -i INVENTORY, -e repo__channel=nightly"),
    Stage("images", "container images of the built packages (ci/image build)",
          "Container images", images, ("images",), ("setup",), options="to ci/image build"),
    Stage("slurm", "trainings on a test cluster (ci/hosts, ci/site/slurm_check.py)", "Slurm",
          slurm, ("cluster",), BUILT, options="to ci/site/slurm_check.py"),
    Stage("two-nodes", "one training of two nodes under Slurm, and servers on both", "Two nodes",
          two_nodes, ("cluster",), BUILT, options="to ci/site/slurm_check.py; with --treenail "
          "/opt/stack the site's own cluster runs it, and nothing is built or set up with "
          "ci/stage --skip setup,build"),
    Stage("benchmark", "the acceptance benchmark of the stack (treenail-bench)", "Benchmark",
          benchmark, (), (), options="--reports DIR; others to treenail-bench, "
          "without any: mlp, and 10 batches of resnet50"),
    Stage("patches", "which patches are no longer needed", "Patches", patches,
          ("build", "test", "proof", "site"), ("setup",), options=NONE),
    Stage("manifest", "write reports/manifest.json: hashes of sources and packages, options, "
          "compiler", "Manifest", manifest, (), (), options="none but those of --help"),
    # Others install what is published: that is asked for by name.
    Stage("nightly", "everything but publish: test, smoke, packages, stack, cluster, benchmark",
          "", parts=("test", "packaging", "site", "lint-site", "smoke", "deb", "rpm", "fetch",
                     "stack", "slurm", "two-nodes", "images", "benchmark", "patches",
                     "manifest")),
)
BY_NAME: Dict[str, Stage] = {stage.name: stage for stage in STAGES}


def parts_of(stages: Sequence[Stage], skip: Sequence[str] = ()) -> List[Stage]:
    """The stages to run, each once, what they need first."""
    found: List[Stage] = []

    def visit(stage: Stage) -> None:
        if stage in found or stage.name in skip:
            return
        for name in stage.needs + stage.parts:
            visit(BY_NAME[name])
        if stage.commands:
            found.append(stage)

    for stage in stages:
        visit(stage)
    # Packages of all stages are installed before the first runs.
    return sorted(found, key=lambda stage: (stage.name != "setup", stage.name != "build"))
