# SPDX-License-Identifier: Apache-2.0
"""The table of dependencies and what is said about them on each distribution."""

import pytest
from gen.deps import BY_NAME, DEPENDENCIES, FEATURES, RELEASES, packages
from gen.distro import parse_os_release

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n'
UBUNTU = 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n'
FEDORA = "ID=fedora\nVERSION_ID=42\n"
ROCKY = 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.5"\n'


@pytest.mark.parametrize("text, family", [(DEBIAN, "debian"), (UBUNTU, "debian"),
                                          (FEDORA, "fedora"), (ROCKY, "fedora"),
                                          ("ID=arch\n", "other"), ("", "other")])
def test_family(text, family):
    assert parse_os_release(text).family == family


@pytest.mark.parametrize("text, codename", [
    (DEBIAN + "VERSION_CODENAME=bookworm\n", "bookworm"), ('VERSION_CODENAME="noble"\n', "noble"),
    (ROCKY, "")])
def test_codename(text, codename):
    assert parse_os_release(text).codename == codename


def test_hint_names_the_package_of_this_distribution():
    assert parse_os_release(DEBIAN).install_hint("hdf5") == (
        "install it with: apt-get install libhdf5-dev")
    assert parse_os_release(FEDORA).install_hint("hdf5") == (
        "install it with: dnf install hdf5-devel")
    assert "(repository EPEL)" in parse_os_release(ROCKY).install_hint("hdf5")
    assert "does not have" in parse_os_release(ROCKY).install_hint("torch")
    both = parse_os_release("ID=arch\n").install_hint("hdf5")
    assert "libhdf5-dev" in both and "hdf5-devel" in both


@pytest.mark.parametrize("text, kind, hint", [
    (DEBIAN, "blis", "apt-get install libblis-dev"),
    (DEBIAN, "flexiblas", "--blas=generic"), (DEBIAN, "auto", "apt-get install libopenblas-dev"),
    (FEDORA, "blis", "dnf install blis-devel"), (ROCKY, "blis", "blis-devel (repository EPEL)"),
    (FEDORA, "openblas", "dnf install openblas-devel"), ("ID=arch\n", "flexiblas", "on Fedora")])
def test_hint_names_the_blas_that_was_asked_for(text, kind, hint):
    assert parse_os_release(text).install_hint("blas", kind).endswith(hint)


def test_names_are_unique():
    assert len(BY_NAME) == len(DEPENDENCIES)


@pytest.mark.parametrize("dep", DEPENDENCIES, ids=lambda d: d.name)
def test_every_row_is_complete(dep):
    assert dep.use in ("build", "feature", "non-free", "run", "test", "proof", "cluster", "images",
                       "slow-proof", "bench", "lint", "docs", "site", "package")
    assert dep.why and dep.debian and dep.fedora
    assert set(dep.versions) == set(RELEASES)
    for repository, version in dep.versions.values():
        assert repository in ("main", "crb", "epel", "absent") or (
            repository == dep.use == "non-free")
        assert bool(version) == (repository != "absent")


@pytest.mark.parametrize("dep", DEPENDENCIES, ids=lambda d: d.name)
def test_what_is_absent_somewhere_is_optional(dep):
    if any(repository == "absent" for repository, _ in dep.versions.values()):
        assert dep.use in ("feature", "non-free", "proof", "images", "slow-proof", "bench", "docs",
                           "site", "package")


@pytest.mark.parametrize("dep", DEPENDENCIES, ids=lambda d: d.name)
def test_the_oldest_packaged_version_is_new_enough(dep):
    def numbers(text):
        return [int(part) for part in text.split(".") if part.isdigit()]
    for release, (repository, version) in dep.versions.items():
        if dep.minimum and repository != "absent":
            assert numbers(version) >= numbers(dep.minimum), release


def test_every_feature_can_be_found():
    for feature in FEATURES:
        assert feature.modules or (feature.header and feature.libs)


def test_package_lists():
    assert "g++" in packages("debian", ("build",))
    assert "gcc-c++" in packages("fedora", ("build",))
    assert packages("debian", ("build",)) == sorted(set(packages("debian", ("build",))))
    assert not set(packages("debian", ("lint",))) & set(packages("debian", ("build",)))
    slow = set(packages("debian", ("slow-proof",)))
    assert {"g++-11", "slurm-wlm", "umoci"} <= slow
    assert not {"g++-11", "slurm-wlm"} & set(packages("debian", ("images",)))


def test_cross_build_names_the_package_of_the_other_architecture():
    from gen.distro import for_triplet
    distro = for_triplet(parse_os_release(DEBIAN), "aarch64-linux-gnu")
    assert distro.install_hint("hdf5") == "install it with: apt-get install libhdf5-dev:arm64"
