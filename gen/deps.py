# SPDX-License-Identifier: Apache-2.0
"""The one table of external dependencies.

It drives configure (what is looked for, which package a message names), ci/ (what is installed on a
fresh machine) and the tests that hold packaging and README to it. `versions` gives, per release of
a distribution, the repository ("main", "crb", "epel", "non-free", "absent") and the version there;
what is absent in one of them must be optional everywhere. A package of several words is several
packages. Fedora's names of headers that are compiled in end in -static: that says so, and -devel
provides it.
"""

from dataclasses import dataclass, field
from typing import Dict, List, Sequence, Tuple

RELEASES = ("debian-12", "debian-13", "rhel-9", "fedora-42")


@dataclass(frozen=True)
class Dependency:
    """One external program or library and how it is found.

    use: 'build' (always needed), 'feature' (an optional part), 'non-free' (an optional part that
    the free archive of no distribution can have: its option is --with-<name>, --auto-features
    leaves it out, and nothing installs it), 'run' (at run time), 'test',
    'proof' (`ninja check-quick`), 'cluster' (`ci/hosts --slurm` and the checks there), 'images'
    (ci/image), 'slow-proof' (`ninja check-slow`, which takes all of the last two as well), 'site'
    (`ninja check-site` and what ci/lint needs for it), 'package' (`ninja deb`, `ninja rpm`),
    'bench', 'lint' or 'docs'.
    modules: pkg-config names, the first that exists is taken. Where there are none, `header` and
    `libs` are tried with a probe compilation, or `program` is looked up in PATH, or `python` is
    imported by the interpreter the build is for.
    """

    name: str
    use: str
    why: str
    debian: str
    fedora: str
    modules: Tuple[str, ...] = ()
    header: str = ""
    libs: Tuple[str, ...] = ()
    program: str = ""
    python: str = ""
    minimum: str = ""
    versions: Dict[str, Tuple[str, str]] = field(default_factory=dict)

    def packages(self, family: str) -> str:
        return self.fedora if family == "fedora" else self.debian


def _v(debian12: str, debian13: str, rhel9: str, fedora42: str) -> Dict[str, Tuple[str, str]]:
    """Each argument is 'version' (repository main), 'repository version' or 'absent'."""
    result = {}
    for release, text in zip(RELEASES, (debian12, debian13, rhel9, fedora42)):
        words = text.split()
        result[release] = ("absent", "") if text == "absent" else (
            (words[0], words[1]) if len(words) == 2 else ("main", words[0]))
    return result


DEPENDENCIES = (
    Dependency("c++", "build", "C++20 compiler: GCC 11 or Clang 14, or later", "g++", "gcc-c++",
               program="g++", minimum="11", versions=_v("12.2", "14.2", "11.5", "15.0")),
    Dependency("ninja", "build", "runs the build", "ninja-build", "ninja-build", program="ninja",
               minimum="1.10", versions=_v("1.11.1", "1.12.1", "crb 1.10.2", "1.12.1")),
    Dependency("pkg-config", "build", "finds libraries", "pkgconf", "pkgconf-pkg-config",
               program="pkg-config", versions=_v("1.8.1", "1.8.1", "1.7.3", "2.3.0")),
    Dependency("python-dev", "build", "headers of the Python interpreter", "python3-dev",
               "python3-devel", minimum="3.9", versions=_v("3.11", "3.13", "3.9", "3.13")),
    Dependency("pybind11", "build", "the Python module's class bindings", "pybind11-dev",
               "pybind11-static", modules=("pybind11",), minimum="2.6",
               versions=_v("2.10.3", "2.13.6", "epel 2.6.2", "2.13.6")),
    Dependency("eigen", "build", "decompositions of matrices", "libeigen3-dev", "eigen3-static",
               modules=("eigen3",), header="Eigen/Core", minimum="3.3",
               versions=_v("3.4.0", "3.4.0", "epel 3.4.0", "3.4.0")),
    Dependency("blas", "feature", "matrix products by the system's BLAS", "libopenblas-dev",
               "flexiblas-devel", modules=("blas", "flexiblas", "openblas"), header="cblas.h",
               versions=_v("0.3.21", "0.3.29", "crb 3.0.4", "3.4.5")),
    Dependency("lapack", "feature", "decompositions of large matrices by the system's LAPACK",
               "liblapack-dev", "flexiblas-devel", modules=("lapack", "flexiblas", "openblas"),
               libs=("-llapack",),
               versions=_v("3.11.0", "3.12.1", "crb 3.0.4", "3.4.5")),
    Dependency("onednn", "feature", "convolutions by oneDNN", "libdnnl-dev", "onednn-devel",
               modules=("dnnl",), header="dnnl.h", libs=("-ldnnl",), minimum="2.6",
               versions=_v("2.6.3", "3.6.2", "epel 3.3", "3.7.1")),
    Dependency("hdf5", "feature", "checkpoints in HDF5 files", "libhdf5-dev", "hdf5-devel",
               modules=("hdf5", "hdf5-serial"), header="hdf5.h", libs=("-lhdf5",),
               versions=_v("1.10.8", "1.14.5", "epel 1.12.1", "1.14.6")),
    Dependency("re2", "feature", "regular expressions by RE2", "libre2-dev", "re2-devel",
               modules=("re2",), header="re2/re2.h", libs=("-lre2",),
               versions=_v("20220601", "20240702", "epel 20211101", "20240702")),
    Dependency("jpeg", "feature", "JPEG images by libjpeg-turbo", "libjpeg-dev",
               "libjpeg-turbo-devel", modules=("libjpeg",), header="jpeglib.h", libs=("-ljpeg",),
               versions=_v("2.1.5", "2.1.5", "2.0.90", "3.1.0")),
    Dependency("png", "feature", "PNG images by libpng", "libpng-dev", "libpng-devel",
               modules=("libpng",), header="png.h", libs=("-lpng",), minimum="1.5",
               versions=_v("1.6.39", "1.6.48", "1.6.37", "1.6.47")),
    Dependency("grpc", "feature", "clusters of several processes by gRPC", "libgrpc++-dev",
               "grpc-devel", modules=("grpc++",), header="grpcpp/grpcpp.h", minimum="1.46",
               versions=_v("1.51.1", "1.51.1", "epel 1.46.7", "1.48.4")),
    Dependency("mpi-openmpi", "feature", "groups of processes over Open MPI", "libopenmpi-dev",
               "openmpi-devel", modules=("ompi-c",), header="mpi.h", minimum="4.0",
               versions=_v("4.1.4", "5.0.7", "4.1.1", "5.0.6")),
    Dependency("mpi-mpich", "feature", "groups of processes over MPICH", "libmpich-dev",
               "mpich-devel", modules=("mpich",), header="mpi.h", minimum="3.3",
               versions=_v("4.0.2", "4.2.1", "4.1.1", "4.2.2")),
    Dependency("cuda", "non-free", "devices of kind GPU, a plugin, by NVIDIA's CUDA toolkit",
               "nvidia-cuda-toolkit", "cuda-toolkit", program="nvcc", header="cuda.h",
               versions=_v("non-free 11.8.89", "non-free 12.4.131", "absent", "absent")),
    Dependency("gtest", "test", "tests of the C++ code", "libgtest-dev", "gtest-devel",
               modules=("gtest",), header="gtest/gtest.h", libs=("-lgtest", "-lpthread"),
               minimum="1.10",
               versions=_v("1.12.1", "1.16.0", "epel 1.11.0", "1.15.2")),
    Dependency("pytest", "test", "tests of Python and of the generator", "python3-pytest",
               "python3-pytest", python="pytest",
               versions=_v("7.2.1", "8.3.5", "crb 6.2.2", "8.3.4")),
    Dependency("numpy", "run", "arrays in and out; loaded on first use",
               "python3-numpy", "python3-numpy", python="numpy",
               versions=_v("1.24.2", "2.2.4", "1.20.1", "2.2.6")),
    Dependency("hypothesis", "test", "property tests", "python3-hypothesis", "python3-hypothesis",
               python="hypothesis", versions=_v("6.67.1", "6.130.5", "epel 6.10.1", "6.123.0")),
    Dependency("scipy", "test", "special functions and signals, as a second opinion",
               "python3-scipy", "python3-scipy", python="scipy",
               versions=_v("1.10.1", "1.15.3", "1.6.2", "1.15")),
    Dependency("h5py", "test", "second reader of checkpoints", "python3-h5py", "python3-h5py",
               python="h5py", versions=_v("3.7.0", "3.13.0", "epel 3.2.1", "3.13.0")),
    Dependency("venv", "test", "the wheel is tried in a virtual environment", "python3-venv",
               "python3-pip", python="ensurepip", versions=_v("3.11", "3.13", "3.9", "3.13")),
    Dependency("cmake", "test", "find_package(Treenail) is tried", "cmake", "cmake",
               program="cmake", versions=_v("3.25.1", "3.31.6", "3.26.5", "3.31.6")),
    Dependency("binutils", "test", "readelf, nm and objdump look at the product", "binutils",
               "binutils", program="objdump", versions=_v("2.40", "2.44", "2.35.2", "2.44")),
    Dependency("qemu-user", "proof", "runs the product on CPUs that are not here", "qemu-user",
               "qemu-user", program="qemu-x86_64",
               versions=_v("7.2", "10.0", "absent", "9.2")),
    Dependency("abigail-tools", "proof", "compares the C interface with that of its releases",
               "abigail-tools", "libabigail", program="abidiff",
               versions=_v("2.2", "2.6", "absent", "2.6")),
    Dependency("licensecheck", "proof", "reads the licences that files state", "licensecheck",
               "licensecheck", program="licensecheck",
               versions=_v("3.3.5", "3.3.9", "absent", "3.3.9")),
    Dependency("hipcc", "proof", "compiles the kernels for AMD's GPUs", "hipcc", "hipcc",
               program="hipcc", versions=_v("5.2.3", "5.7.1", "absent", "6.3.1")),
    Dependency("aarch64-compiler", "proof", "cross build for AArch64",
               "g++-aarch64-linux-gnu", "gcc-c++-aarch64-linux-gnu",
               program="aarch64-linux-gnu-g++",
               versions=_v("12.2", "14.2", "absent", "absent")),
    Dependency("s390x-compiler", "slow-proof", "cross build for s390x", "g++-s390x-linux-gnu",
               "gcc-c++-s390x-linux-gnu", program="s390x-linux-gnu-g++",
               versions=_v("12.2", "14.2", "absent", "absent")),
    Dependency("ppc64el-compiler", "slow-proof", "cross build for ppc64el",
               "g++-powerpc64le-linux-gnu", "gcc-c++-powerpc64le-linux-gnu",
               program="powerpc64le-linux-gnu-g++",
               versions=_v("12.2", "14.2", "absent", "absent")),
    Dependency("riscv64-compiler", "slow-proof", "cross build for riscv64",
               "g++-riscv64-linux-gnu", "gcc-c++-riscv64-linux-gnu",
               program="riscv64-linux-gnu-g++",
               versions=_v("12.2", "14.2", "absent", "absent")),
    Dependency("oldest-gcc", "slow-proof", "the oldest GCC that is supported", "g++-11",
               "gcc-c++", program="g++-11", versions=_v("11.3", "absent", "11.5", "absent")),
    Dependency("oldest-clang", "slow-proof", "the oldest Clang that is supported", "clang-14",
               "clang14", program="clang++-14", versions=_v("14.0", "absent", "absent", "absent")),
    Dependency("mmdebstrap", "images", "root directories of images and test hosts", "mmdebstrap",
               "mmdebstrap", program="mmdebstrap",
               versions=_v("1.3.5", "1.5.7", "absent", "1.5.7")),
    # As a test's it would be needed to build packages, where nobody is root.
    Dependency("mount", "proof", "file systems that tests fill", "mount", "util-linux-core",
               program="mount", versions=_v("2.38.1", "2.41", "2.37.4", "2.40.4")),
    Dependency("iproute2", "cluster", "network namespaces of test hosts", "iproute2", "iproute",
               program="ip", versions=_v("6.1.0", "6.15.0", "6.11.0", "6.12.0")),
    Dependency("openssh-client", "slow-proof", "reaches test hosts", "openssh-client",
               "openssh-clients", program="ssh-keygen",
               versions=_v("9.2", "10.0", "8.7", "9.9")),
    Dependency("iptables", "slow-proof", "a way out of their network for test hosts", "iptables",
               "iptables-nft", program="iptables",
               versions=_v("1.8.9", "1.8.11", "1.8.10", "1.8.11")),
    Dependency("arch-test", "slow-proof", "tells which architectures run here", "arch-test",
               "arch-test", program="arch-test", versions=_v("0.20", "0.22", "absent", "0.22")),
    Dependency("qemu-user-static", "slow-proof", "runs hosts of other architectures",
               "qemu-user-static", "qemu-user-static", program="qemu-aarch64-static",
               versions=_v("7.2", "10.0", "absent", "9.2")),
    Dependency("slurm", "cluster", "a test cluster", "slurm-wlm",
               "slurm slurm-slurmctld slurm-slurmd", program="slurmctld",
               versions=_v("22.05.8", "24.11.5", "epel 22.05.9", "24.11.5")),
    Dependency("munge", "cluster", "authentication within the test cluster", "munge", "munge",
               program="munged", versions=_v("0.5.15", "0.5.16", "0.5.13", "0.5.16")),
    Dependency("openmpi", "cluster", "mpirun on the test cluster", "openmpi-bin", "openmpi",
               program="mpirun", versions=_v("4.1.4", "5.0.7", "4.1.1", "5.0.6")),
    Dependency("patch", "site", "applies the patches of the stack", "patch", "patch",
               program="patch", versions=_v("2.7.6", "2.8", "2.7.6", "2.8")),
    Dependency("umoci", "images", "packs container images (ci/image)", "umoci", "umoci",
               program="umoci", versions=_v("0.4.7", "0.4.7", "absent", "absent")),
    Dependency("skopeo", "images", "archives of container images, for Docker and Podman",
               "skopeo", "skopeo", program="skopeo",
               versions=_v("1.9.3", "1.18.0", "1.18.0", "1.18.0")),
    Dependency("runc", "images", "runs programs in container images", "runc", "runc",
               program="runc", versions=_v("1.1.5", "1.1.15", "1.2.4", "1.2.5")),
    Dependency("crun", "images", "the same, with less knowledge of control groups 1", "crun",
               "crun", program="crun", versions=_v("1.8.1", "1.21", "1.20", "1.20")),
    Dependency("lmod", "site", "environment modules", "lmod", "Lmod",
               versions=_v("8.6.19", "8.7.60", "epel 8.7.32", "8.7.53")),
    Dependency("benchmark", "bench", "micro-benchmarks", "libbenchmark-dev",
               "google-benchmark-devel", modules=("benchmark",), header="benchmark/benchmark.h",
               versions=_v("1.7.1", "1.9.1", "epel 1.6.1", "1.8.3")),
    Dependency("torch", "bench", "the peer that `ninja bench` measures against", "python3-torch",
               "python3-torch", python="torch", versions=_v("1.13.1", "2.6.0", "absent", "2.5.1")),
    Dependency("clang-format", "lint", "layout of C++", "clang-format", "clang-tools-extra",
               program="clang-format", versions=_v("14.0", "19.0", "18.1", "20.1")),
    Dependency("clang-tidy", "lint", "bugs in C++", "clang-tidy", "clang-tools-extra",
               program="clang-tidy", versions=_v("14.0", "19.0", "18.1", "20.1")),
    Dependency("flake8", "lint", "style of Python", "flake8", "python3-flake8", program="flake8",
               versions=_v("5.0.4", "7.1.1", "epel 3.9.2", "7.1.1")),
    Dependency("shellcheck", "lint", "bugs in shell scripts", "shellcheck", "ShellCheck",
               program="shellcheck", versions=_v("0.9.0", "0.10.0", "epel 0.8.0", "0.10.0")),
    Dependency("yamllint", "lint", "layout of YAML", "yamllint", "yamllint", program="yamllint",
               versions=_v("1.29.0", "1.37.0", "epel 1.35.1", "1.37.0")),
    Dependency("ansible-core", "site", "runs the plays that build the stack", "ansible-core",
               "ansible-core", program="ansible-playbook",
               versions=_v("2.14.18", "2.19.11", "2.14.18", "2.18.3")),
    Dependency("ansible-packages", "site", "what Ansible's apt and dnf modules call in check mode",
               "python3-apt", "python3-dnf",
               versions=_v("2.6.0", "3.0.0", "4.14.0", "4.23.0")),
    Dependency("ansible", "slow-proof", "community.general: plays on hosts that are chroots",
               "ansible", "ansible", program="ansible-community",
               versions=_v("7.7.0", "12.0.0", "epel 7.7.0", "11.3.0")),
    Dependency("sudo", "site", "becomes the user who builds the stack", "sudo", "sudo",
               program="sudo", versions=_v("1.9.13", "1.9.16", "1.9.5", "1.9.16")),
    Dependency("ansible-lint", "site", "bugs in plays and roles", "ansible-lint",
               "python3-ansible-lint", program="ansible-lint",
               versions=_v("6.13.1", "25.4.0", "absent", "25.1.3")),
    Dependency("jenkins-job-builder", "site", "renders the jobs of ci/jobs", "jenkins-job-builder",
               "python3-jenkins-job-builder", program="jenkins-jobs",
               versions=_v("3.11.0", "6.4.2", "absent", "6.4.2")),
    Dependency("groovy", "site", "parses ci/Jenkinsfile", "groovy default-jre-headless", "groovy",
               program="groovy", versions=_v("2.4.21", "2.4.21", "absent", "absent")),
    Dependency("gnupg", "site", "signs repositories", "gnupg", "gnupg2", program="gpg",
               versions=_v("2.2.40", "2.4.7", "2.3.3", "2.4.7")),
    Dependency("apt-ftparchive", "site", "indices of Debian packages", "apt-utils", "apt-utils",
               program="apt-ftparchive", versions=_v("2.6.1", "3.0.3", "epel 2.9.8", "2.9.8")),
    Dependency("createrepo_c", "site", "indices of RPM packages", "createrepo-c", "createrepo_c",
               program="createrepo_c", versions=_v("0.17.3", "1.2.0", "0.20.1", "1.2.0")),
    Dependency("rpmsign", "site", "signs RPM packages", "rpm", "rpm-sign", program="rpmsign",
               versions=_v("4.18.0", "4.20.1", "4.16.1", "4.20.1")),
    Dependency("dnf", "site", "a client of RPM repositories", "dnf", "dnf", program="dnf",
               versions=_v("4.14.0", "4.23.0", "4.14.0", "5.2.12")),
    Dependency("debhelper", "package", "Debian packages: debhelper, dpkg-dev, lintian",
               "debhelper dh-python dpkg-dev lintian", "debhelper dpkg-dev",
               program="dh", versions=_v("13.11.4", "13.24.2", "absent", "13.24.1")),
    Dependency("rpmbuild", "package", "RPM packages: rpmbuild and rpmlint", "rpm rpmlint",
               "rpm-build rpmlint", program="rpmbuild",
               versions=_v("4.18.0", "4.20.1", "4.16.1", "4.20.1")),
    Dependency("sphinx", "docs", "HTML documentation", "python3-sphinx", "python3-sphinx",
               python="sphinx", versions=_v("5.3.0", "8.1.3", "crb 3.4.3", "8.1.3")),
    Dependency("myst", "docs", "Markdown in Sphinx", "python3-myst-parser",
               "python3-myst-parser", python="myst_parser",
               versions=_v("0.18.1", "4.0.0", "absent", "4.0.0")),
)

# The packages of each kind of BLAS, where the row above names the usual one: Debian, Fedora, and
# the repository of Enterprise Linux. Debian 12 has no FlexiBLAS: its alternatives do the same.
BLAS_PACKAGES = {
    "generic": ("libblas-dev", "blas-devel", "crb"), "flexiblas": ("", "flexiblas-devel", "crb"),
    "openblas": ("libopenblas-dev", "openblas-devel", "crb"),
    "blis": ("libblis-dev", "blis-devel", "epel"),
}

INCLUDED = {"slow-proof": ("cluster", "images")}

BY_NAME = {d.name: d for d in DEPENDENCIES}
FEATURES = tuple(d for d in DEPENDENCIES if d.use == "feature")
NON_FREE = tuple(d for d in DEPENDENCIES if d.use == "non-free")


def of_uses(uses: Sequence[str]) -> List[Dependency]:
    """The rows of these uses, and of those that they include."""
    meant = {*uses, *(one for use in uses for one in INCLUDED.get(use, ()))}
    return [dep for dep in DEPENDENCIES if dep.use in meant]


def packages(family: str, uses: Tuple[str, ...]) -> List[str]:
    """Sorted package names of one distribution family for the given uses."""
    return sorted({name for dep in of_uses(uses) for name in dep.packages(family).split()})
