# SPDX-License-Identifier: Apache-2.0
"""The commands of ci/: lint finds what it is for, set-up installs what is missing and no more."""

import os
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from small_tree import SOURCE
from gen.deps import packages
from gen.distro import this_distro

LINT = SOURCE / "ci" / "lint"


def have(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=program + " is not installed")


@pytest.fixture
def repository(small_tree):
    """The small tree as a git repository with ci/, clean but for what a test adds."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    for name in ("ci", ".clang-format", ".clang-tidy", ".flake8"):
        if (SOURCE / name).is_dir():
            shutil.copytree(SOURCE / name, small_tree.root / name)
        else:
            shutil.copy(SOURCE / name, small_tree.root)
    subprocess.run(["git", "init", "-q", str(small_tree.root)], check=True)
    return small_tree


def lint(tree, *arguments):
    done = subprocess.run([str(tree.root / "ci/lint"), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, check=False)
    return done.returncode, done.stdout


@have("clang-format")
def test_format_finds_and_fixes(repository):
    path = repository.write("framework/base/ugly.cc", "int   f( ){return 1;}\n")
    status, out = lint(repository, "format")
    assert status == 1 and "framework/base/ugly.cc: not as clang-format lays it out" in out
    lint(repository, "--fix", "format")
    assert path.read_text() == "int f() { return 1; }\n"


@have("clang-tidy")
def test_tidy_finds_and_remembers(repository):
    repository.write("framework/base/bug.cc", """#include <string>
#include <utility>
std::string f(std::string s) {
  std::string t = std::move(s);
  return s + t;
}
""")
    repository.configure()
    status, out = lint(repository, "tidy")
    assert status == 1 and "framework/base/bug.cc:5" in out and "use-after-move" in out
    assert os.listdir(repository.root / "build/lint")  # the clean files are remembered
    (repository.root / "framework/base/bug.cc").unlink()
    repository.configure()
    assert lint(repository, "tidy") == (0, "tidy     ok\n")


def test_tidy_without_a_build_says_so(repository):
    status, out = lint(repository, "tidy")
    assert status == 1 and "needs a configured build" in out


@have("flake8")
def test_flake8(repository):
    repository.write("python/treenail/extra.py", "import os\n")
    status, out = lint(repository, "flake8")
    assert status == 1 and "python/treenail/extra.py:1:1: F401" in out


@have("shellcheck")
def test_shellcheck(repository):
    repository.write("ci/bad", "#!/bin/sh\nrm $1\n")
    status, out = lint(repository, "shell")
    assert status == 1 and "ci/bad:2" in out


@have("yamllint")
def test_yamllint(repository):
    repository.write("ansible/x.yml", "a: 1\na: 2\n")
    status, out = lint(repository, "yaml")
    assert status == 1 and "ansible/x.yml:2" in out


@pytest.mark.parametrize("text, message", [
    ("int x;\n", "no SPDX-License-Identifier line"),
    ("// SPDX-License-Identifier: Apache-2.0\nint x; \n", ":2: blanks at the end"),
    ("// SPDX-License-Identifier: Apache-2.0\n\tint x;\n", ":2: a tab"),
    ("// SPDX-License-Identifier: Apache-2.0\nint x;", "no line break at the end"),
    ("// SPDX-License-Identifier: Apache-2.0\n// see /%s/me/x\n" % "home", "path of one machine")])
def test_files(repository, text, message):
    repository.write("framework/base/y.cc", text)
    status, out = lint(repository, "files")
    assert status == 1
    assert any("framework/base/y.cc" in line and message in line for line in out.splitlines())


@have("ansible-lint")
def test_ansible_lint(repository):
    repository.write("ansible/site.yml", "---\n- hosts: all\n  tasks:\n    - shell: id\n")
    status, out = lint(repository, "ansible")
    assert status == 1 and "    ansible/site.yml:" in out and "fqcn" in out, out
    repository.write("ansible/site.yml", "---\n- name: Look\n  hosts: all\n  tasks: []\n")
    assert lint(repository, "ansible") == (0, "ansible  ok\n")


@have("jenkins-jobs")
def test_jobs(repository):
    assert lint(repository, "jobs") == (0, "jobs     ok\n")
    repository.edit("ci/jobs/jobs.yaml", 'git bisect start "$BAD"', "git bisect start $BAD")
    status, out = lint(repository, "jobs")
    assert status == 1 and "job treenail.bisect, shell:3:18: note: " in out and "SC2086" in out
    assert '+git bisect start $BAD &quot;$GOOD&quot;' in out
    lint(repository, "--fix", "jobs")
    assert "+git bisect" not in lint(repository, "jobs")[1]


@have("groovy")
def test_pipeline(repository):
    repository.edit("ci/Jenkinsfile", "echo 'The result", "mail 'The result")
    status, out = lint(repository, "pipeline")
    assert status == 1 and "ci/Jenkinsfile:%d: 'mail' is not known in 'changed'" % (
        (SOURCE / "ci/Jenkinsfile").read_text().splitlines().index(
            "            echo 'The result differs from that of the build before.'") + 1) in out
    repository.edit("ci/Jenkinsfile", "mail 'The result", "echo 'the result")
    status, out = lint(repository, "pipeline")
    assert status == 1 and "ci/lint --fix pipeline" in out
    assert lint(repository, "--fix", "pipeline")[0] == 0


def test_report_of_the_linters(repository):
    repository.write("framework/base/y.cc", "int x;\n")
    lint(repository, "--junit", str(repository.root / "lint.xml"), "files", "laws")
    root = ElementTree.parse(repository.root / "lint.xml").getroot()
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert sorted(cases) == ["files", "laws"]
    assert "framework/base/y.cc:1: no SPDX" in cases["files"].find("failure").text
    assert cases["laws"].find("failure") is None


def test_laws(repository):
    repository.write("framework/base/y.cc", '#include "framework/tensor/z.h"\n')
    status, out = lint(repository, "laws")
    assert status == 1 and "framework/base/y.cc includes" in out


def test_unknown_step(repository):
    status, out = lint(repository, "spelling")
    assert status == 2 and "unknown step 'spelling'" in out


def fake_programs(folder, installed, user="0"):
    """apt-get, dpkg, sudo and id that only write down how they were called."""
    folder.mkdir()
    log = folder / "calls"
    texts = {
        "dpkg-query": "cat <<'END'\n%s\nEND" % "\n".join(
            "installed %s, " % name for name in installed),
        "apt-get": 'echo "apt-get $*" >> "%s"' % log,
        "dpkg": 'echo "dpkg $*" >> "%s"' % log,
        "dnf": 'echo "dnf $*" >> "%s"' % log,
        "subscription-manager": 'echo "subscription-manager $*" >> "%s"' % log,
        "rpm": "exit 1",  # nothing is installed
        "sudo": 'echo "sudo $1" >> "%s"; exec "$@"' % log,
        "id": "echo " + user,
    }
    for name, text in texts.items():
        (folder / name).write_text("#!/bin/sh\n%s\n" % text)
        (folder / name).chmod(0o755)
    return log


debian_only = pytest.mark.skipif(this_distro().family != "debian",
                                 reason="the fakes are those of a Debian system")


def set_up(folder, uses, os_release="/etc/os-release"):
    """ci/setup.sh's set_up, as a script of ci/ calls it."""
    script = SOURCE / "ci" / "test"
    program = '. "%s"; set_up %s; echo done' % (SOURCE / "ci/setup.sh", uses)
    return subprocess.run(["sh", "-uc", program, str(script)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, check=False,
                          env=dict(os.environ, TREENAIL_OS_RELEASE=str(os_release),
                                   PATH="%s:%s" % (folder, os.environ["PATH"])))


@debian_only
def test_no_package_manager_when_all_is_there(tmp_path):
    log = fake_programs(tmp_path / "bin", packages("debian", ("build", "lint")))
    done = set_up(tmp_path / "bin", "build,lint")
    assert done.returncode == 0 and done.stdout == "done\n"
    assert not log.exists()


def test_a_use_that_there_is_not(tmp_path):
    fake_programs(tmp_path / "bin", [])
    done = set_up(tmp_path / "bin", "build,sight")
    assert done.returncode != 0 and "unknown use 'sight'; there are bench, build" in done.stdout


@debian_only
def test_what_is_missing_is_installed(tmp_path):
    there = packages("debian", ("build",))
    there.remove("pybind11-dev")
    log = fake_programs(tmp_path / "bin", there)
    assert set_up(tmp_path / "bin", "build").returncode == 0
    calls = log.read_text()
    assert "dpkg --configure -a" in calls and " update" in calls and "sudo" not in calls
    install = [line for line in calls.splitlines() if " install " in line]
    assert len(install) == 1 and install[0].endswith("--no-install-recommends pybind11-dev")


@debian_only
def test_sudo_when_not_root(tmp_path):
    log = fake_programs(tmp_path / "bin", [], user="1000")
    assert set_up(tmp_path / "bin", "build").returncode == 0
    calls = log.read_text()
    assert "sudo env\ndpkg --configure -a" in calls and "sudo apt-get" in calls


HELD = "dpkg: error: dpkg frontend lock was locked by another process with pid 4242"


@debian_only
@pytest.mark.parametrize("says, tries, wanted", [(HELD, 2, 0), (HELD, 1000, 1),
                                                 ("dpkg: error: disk full", 1, 1)])
def test_dpkgs_lock_is_waited_for(tmp_path, says, tries, wanted):
    """For ten minutes; what else dpkg fails for is told at once."""
    log = fake_programs(tmp_path / "bin", [])
    failing = ('echo "dpkg $*" >> "%s"\n[ "$(grep -c ^dpkg "%s")" -gt %d ] && exit 0\n'
               'echo "%s" >&2\nexit 2')
    for name, text in [("dpkg", failing % (log, log, tries, says)),
                       ("sleep", 'echo "sleep $*" >> "%s"' % log)]:
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n%s\n" % text)
        (tmp_path / "bin" / name).chmod(0o755)
    done = set_up(tmp_path / "bin", "build")
    assert done.returncode == wanted, done.stdout
    assert (says in done.stdout) == bool(wanted)
    assert done.stdout.count("waiting for at most ten minutes") == (says == HELD)
    waited = log.read_text().count("sleep 5")
    assert waited == (0 if says != HELD else min(tries, 120))
    assert ("apt-get" in log.read_text()) == (wanted == 0)


@debian_only
def test_a_failing_package_manager_stops_everything(tmp_path):
    fake_programs(tmp_path / "bin", [])
    (tmp_path / "bin/apt-get").write_text("#!/bin/sh\nexit 100\n")
    done = set_up(tmp_path / "bin", "build")
    assert done.returncode != 0 and "done" not in done.stdout.splitlines()


ENTERPRISE = 'ID_LIKE="rhel centos fedora"\n'


@pytest.mark.parametrize("text, before", [
    ("ID=fedora\nVERSION_ID=42\n", []),
    ('ID="rocky"\n' + ENTERPRISE + 'VERSION_ID="9.5"\n',
     ["dnf -q -y install dnf-plugins-core epel-release", "config-manager --set-enabled crb"]),
    ('ID="ol"\nID_LIKE="fedora"\nVERSION_ID="9.4"\n',
     ["oracle-epel-release-el9", "--set-enabled ol9_codeready_builder"])])
def test_the_family_decides_who_installs(tmp_path, text, before):
    """apt-get is there as well, and must not be asked."""
    log = fake_programs(tmp_path / "bin", [])
    (tmp_path / "os-release").write_text(text)
    done = set_up(tmp_path / "bin", "build", tmp_path / "os-release")
    assert done.returncode == 0, done.stdout
    calls = log.read_text().splitlines()
    assert len(calls) == len(before) + 1 and all(c.startswith("dnf ") for c in calls)
    assert all(part in call for part, call in zip(before, calls))
    assert "install_weak_deps=False" in calls[-1] and "pybind11-static" in calls[-1]


@pytest.mark.parametrize("text", ["ID=fedora\nVERSION_ID=42\n",
                                  'ID="rocky"\n' + ENTERPRISE + 'VERSION_ID="9.5"\n'])
def test_what_a_distribution_lacks_does_not_keep_the_rest_from_it(tmp_path, text):
    log = fake_programs(tmp_path / "bin", [])
    (tmp_path / "os-release").write_text(text)
    done = set_up(tmp_path / "bin", "images", tmp_path / "os-release")
    assert done.returncode == 0 and "umoci is not packaged here; left out" in done.stdout
    asked = log.read_text().splitlines()[-1].split()
    assert "skopeo" in asked and "umoci" not in asked


RHEL = 'ID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.5"\n'


def test_rhel_itself_is_told_where_epel_comes_from(tmp_path):
    log = fake_programs(tmp_path / "bin", [])
    (tmp_path / "os-release").write_text(RHEL)
    done = set_up(tmp_path / "bin", "build", tmp_path / "os-release")
    assert done.returncode == 1
    assert "dl.fedoraproject.org/pub/epel/epel-release-latest-9.noarch.rpm" in done.stdout
    assert log.read_text() == ("subscription-manager repos --enable codeready-builder-for-rhel-9-"
                               "%s-rpms\n" % os.uname().machine)


def test_rhel_without_a_subscription_is_told_what_to_enable(tmp_path):
    fake_programs(tmp_path / "bin", [])
    (tmp_path / "os-release").write_text(RHEL)
    (tmp_path / "bin/subscription-manager").write_text("#!/bin/sh\nexit 1\n")
    done = set_up(tmp_path / "bin", "build", tmp_path / "os-release")
    assert done.returncode == 1
    assert "could not be enabled; is this system subscribed?" in done.stdout


def test_the_workplace_runs_ci_test_and_then_the_other_stages(tmp_path):
    """All of them, though one fails; the exit status tells of it."""
    for name in ("ci", ".ci"):
        (tmp_path / name).mkdir()
    shutil.copy(SOURCE / ".ci/run", tmp_path / ".ci/run")
    for name in ("test", "stage"):
        path = tmp_path / "ci" / name
        path.write_text('#!/bin/sh\necho "%s $*"\n[ "$*" != "$FAILING" ] || exit 3\n' % name)
        path.chmod(0o755)
    options = "--cuda-arch=90 --werror"
    for failing, status in (("none", 0), (options, 3), ("site", 3)):
        done = subprocess.run([str(tmp_path / ".ci/run"), "--werror"], stdout=subprocess.PIPE,
                              env=dict(os.environ, FAILING=failing), check=False)
        assert done.returncode == status
        assert done.stdout.decode().splitlines() == [
            "test " + options, "stage packaging", "stage site", "stage lint-site"]


def test_programs_may_be_run():
    for name in (".ci/run", "ci/test", "ci/smoke", "ci/lint", "ci/stage", "ci/run-jenkinsfile",
                 "configure.py"):
        assert os.access(SOURCE / name, os.X_OK), name
