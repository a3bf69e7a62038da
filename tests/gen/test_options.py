# SPDX-License-Identifier: Apache-2.0
"""The command line: values, defaults, no-ops, suggestions, and what must be refused."""

import pytest
from gen.errors import ConfigureError
from gen.install import directories
from gen.options import absolute_pythons, build_directory, parse


def test_value_with_equals_sign_and_as_a_word_of_its_own():
    assert parse(["--prefix=/usr"], {}).get("prefix") == "/usr"
    assert parse(["--prefix", "/usr"], {}).get("prefix") == "/usr"


def test_last_one_wins():
    assert parse(["--prefix=/a", "--prefix=/b"], {}).get("prefix") == "/b"


def test_python_may_be_repeated():
    assert parse(["--python=a", "--python", "b"], {}).pythons == ("a", "b")


def test_relative_interpreters_are_resolved():
    """ninja configures again in the build directory."""
    given = ["--python=./a", "--python", "../b", "--python=c", "--lto"]
    assert absolute_pythons(given, "/x/y") == [
        "--python=/x/y/a", "--python", "/x/b", "--python=c", "--lto"]


def test_variables_from_environment_and_arguments():
    options = parse(["CXX=ccache g++"], {"CXX": "clang++", "LDFLAGS": "-s", "OTHER": "x"})
    assert options.env("CXX") == "ccache g++"
    assert options.env("LDFLAGS") == "-s"
    assert "OTHER" not in options.environment


def test_features_are_tri_state():
    assert parse([], {}).feature("hdf5") == "auto"
    assert parse(["--with-hdf5"], {}).feature("hdf5") == "yes"
    assert parse(["--without-hdf5"], {}).feature("hdf5") == "no"
    assert parse(["--auto-features=yes"], {}).feature("hdf5") == "yes"
    assert parse(["--auto-features=yes", "--with-hdf5=no"], {}).feature("hdf5") == "no"
    assert parse(["--auto-features=no", "--with-hdf5=yes"], {}).feature("hdf5") == "yes"


def test_blas_is_a_feature_too():
    assert parse([], {}).feature("blas") == "auto"
    assert parse(["--blas=none"], {}).feature("blas") == "no"
    assert parse(["--without-blas"], {}).feature("blas") == "no"
    assert parse(["--blas=openblas"], {}).feature("blas") == "yes"
    assert parse(["--auto-features=no"], {}).feature("blas") == "no"


def test_what_debhelper_passes_is_accepted():
    options = parse([
        "--build=x86_64-linux-gnu", "--prefix=/usr", "--includedir=${prefix}/include",
        "--mandir=${prefix}/share/man", "--infodir=${prefix}/share/info", "--sysconfdir=/etc",
        "--localstatedir=/var", "--disable-option-checking", "--disable-silent-rules",
        "--libdir=${prefix}/lib/x86_64-linux-gnu", "--runstatedir=/run",
        "--disable-maintainer-mode", "--disable-dependency-tracking"], {})
    assert options.get("sysconfdir") == "/etc"


def test_what_rpm_configure_passes_is_accepted():
    parse(["--build=x86_64-redhat-linux-gnu", "--host=x86_64-redhat-linux-gnu",
           "--program-prefix=", "--disable-dependency-tracking", "--prefix=/usr",
           "--exec-prefix=/usr", "--bindir=/usr/bin", "--sbindir=/usr/sbin", "--sysconfdir=/etc",
           "--datadir=/usr/share", "--includedir=/usr/include", "--libdir=/usr/lib64",
           "--libexecdir=/usr/libexec", "--localstatedir=/var", "--runstatedir=/run",
           "--sharedstatedir=/var/lib", "--mandir=/usr/share/man", "--infodir=/usr/share/info"],
          {})


def test_disable_option_checking_lets_unknown_features_pass():
    parse(["--disable-option-checking", "--enable-foo", "--without-bar=x"], {})
    with pytest.raises(ConfigureError):
        parse(["--disable-option-checking", "--foo"], {})


def test_switches_take_yes_and_no():
    assert parse(["--lto=yes"], {}).flag("lto") and parse(["--lto"], {}).flag("lto")
    assert not parse(["--lto=no"], {}).flag("lto")


def test_directories_expand(facts):
    options = parse(["--prefix=/opt/x", "--libdir=${exec_prefix}/lib64",
                     "--includedir=${prefix}/inc"], {})
    places = directories(options, facts)
    assert places["libdir"] == "/opt/x/lib64"
    assert places["includedir"] == "/opt/x/inc"
    assert places["htmldir"] == "/opt/x/share/doc/treenail"


def test_build_directory():
    options = parse([], {})
    assert build_directory(options, "/src", "/src") == "/src/build"
    assert build_directory(options, "/src", "/elsewhere") == "/elsewhere"
    assert build_directory(parse(["--build-dir=out"], {}), "/src", "/src") == "/src/out"


@pytest.mark.parametrize("arguments, message", [
    (["--prefx=/usr"], "unknown option '--prefx'; did you mean --prefix?"),
    (["--with-hdf"], "did you mean --with-hdf5?"),
    (["--zzz"], "unknown option '--zzz'; see ./configure.py --help"),
    (["--prefix"], "--prefix needs a value: --prefix=DIR"),
    (["--prefix=usr"], "an absolute directory is needed"),
    (["--buildtype=fast"], "must be one of release, debugoptimized, debug"),
    (["--with-hdf5=maybe"], "must be one of auto, yes, no"),
    (["--blas=mkl"], "must be one of auto, generic, flexiblas, openblas, blis, none"),
    (["--sanitize=adress"], "'adress' is not one of address, undefined, thread"),
    (["--sanitize=thread,address"], "'thread' cannot be combined"),
    (["install"], "unexpected argument 'install'"),
    (["FOO=1"], "not a variable that configure reads"),
    (["-j4"], "unexpected argument '-j4'"),
    (["--lto=false"], "--lto=false: it takes no value but yes or no"),
    (["--coverage=off"], "--coverage=off: it takes no value but yes or no"),
    (["--no-cache="], "--no-cache=: it takes no value but yes or no"),
    (["--build-dir="], "names no directory"),
    (["--with-opencl=yes"], "there is no such feature; these are: --with-lapack, --with-onednn"),
    (["--with-blas=yes"], "--with-blas=yes: choose with --blas=auto|generic|"),
    (["--host=aarch64"], "a triplet such as aarch64-linux-gnu is needed"),
    (["--host-python=3.11"], "is for cross builds, with --host=TRIPLET"),
    (["--prefix=~/x"], 'the shell expands ~ only where a word begins: --prefix="$HOME/x"'),
])
def test_refused(arguments, message):
    with pytest.raises(ConfigureError, match=None) as caught:
        build_directory(parse(arguments, {}), "/src", "/src")
    assert message in str(caught.value)


def test_directories_that_refer_to_each_other_are_refused(facts):
    options = parse(["--libdir=${includedir}", "--includedir=${libdir}"], {})
    with pytest.raises(ConfigureError, match="cannot expand"):
        directories(options, facts)
