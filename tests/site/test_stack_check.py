# SPDX-License-Identifier: Apache-2.0
"""smoke/stack_check.py on this machine's own libraries: what it accepts and what it refuses."""

import ctypes.util
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
PROGRAM = os.path.join(TOP, "smoke/stack_check.py")
PACKAGE = {"mode": "package", "version": "9", "prefix": "", "module": "", "module_root": "",
           "flags": []}
BUILT = dict(PACKAGE, mode="build", prefix="/opt/stack/x")
CHECKS = [("openblas", "blas"), ("fftw", "fft"), ("hdf5", "hdf5")]


def there(check):
    if check == "hdf5":
        return all(map(shutil.which, ("cc", "h5dump", "pkg-config"))) and not subprocess.run(
            ["sh", "-c", "pkg-config --exists hdf5 || pkg-config --exists hdf5-serial"],
            check=False).returncode
    names = {"blas": ["openblas"], "fft": ["fftw3", "fftw3f"]}[check]
    return all(map(ctypes.util.find_library, names))


def checked(name, check, status=0, needs=(), **component):
    if not there(check):
        pytest.skip("the library for the check %s is not installed" % check)
    done = subprocess.run(
        [sys.executable, "-B", PROGRAM, check], input=json.dumps({
            "instance": dict(PACKAGE, name=name, **component), "needs": list(needs)}),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False,
        env={key: value for key, value in os.environ.items()
             if key not in ("HDF5_DIR", "LD_LIBRARY_PATH")})
    assert done.returncode == status, done.stdout
    return done.stdout


def version_of(name, check):
    """What the library says, by a refusal that names it."""
    text = checked(name, check, 1, mode="module", module=name + "/99", version="99",
                   module_root="/usr")
    return text.partition("it is version ")[2].partition(",")[0]


@pytest.mark.parametrize("name, check", CHECKS)
def test_the_distributions_library_is_taken_as_the_plan_says(name, check):
    assert "/lib" in checked(name, check)


@pytest.mark.parametrize("name, check", CHECKS)
def test_a_version_may_be_as_exact_as_the_modules_name(name, check):
    version = version_of(name, check)
    assert version.count(".") == 2 and version.replace(".", "").isdigit()
    for wanted in (version, version.rpartition(".")[0], version.split(".")[0], ""):
        checked(name, check, mode="module", module=name, version=wanted, module_root="/usr")


@pytest.mark.parametrize("name, check", CHECKS)
def test_another_version_than_the_modules_is_refused(name, check):
    text = checked(name, check, 1, mode="module", module=name + "/99.1", version="99.1",
                   module_root="/usr")
    assert text.startswith("%s: it is version " % name)
    assert text.endswith("but the plan has %s/99.1\n" % name)


@pytest.mark.parametrize("name, check", CHECKS)
def test_a_module_that_brings_nothing_of_its_own_is_refused(name, check):
    text = checked(name, check, 1, mode="module", module=name + "/1", version="")
    assert "is the distribution's /" in text and "but the plan takes the module %s/1" % name in text


@pytest.mark.parametrize("name, check", CHECKS)
def test_a_library_from_elsewhere_than_the_prefix_is_refused(name, check):
    version = version_of(name, check)
    text = checked(name, check, 1, mode="build", version=version, prefix="/opt/stack/x")
    assert "but the plan built it in /opt/stack/x" in text


def test_a_library_that_lacks_functions_is_refused(tmp_path):
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    (tmp_path / "blas.c").write_text("int cblas_dgemm(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-o", str(tmp_path / "libopenblas.so.0"),
                    str(tmp_path / "blas.c")], check=True)
    done = subprocess.run(
        [sys.executable, "-B", PROGRAM, "blas"], env={"LD_LIBRARY_PATH": str(tmp_path)},
        input=json.dumps({"instance": dict(PACKAGE, name="openblas"), "needs": []}),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    assert done.returncode == 1
    assert done.stdout == "openblas: libopenblas.so.0 has no sgemm_, dgesv_, zheevd_\n"


def test_an_fftw_that_programs_in_fortran_cannot_use_is_refused(tmp_path, monkeypatch):
    """Debian's has these functions, and a built one takes its place in LD_LIBRARY_PATH."""
    version = version_of("fftw", "fft")
    checked("fftw", "fft", mode="build", version=version, prefix="/usr")
    spec = importlib.util.spec_from_file_location("under_test_fortran", PROGRAM)
    check = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec.loader.exec_module(check)
    asked = check.exported
    monkeypatch.setattr(check, "exported", lambda lib, *names: asked(
        lib, *(name + "no" if name.endswith("_") else name for name in names)))
    built = {"fftw": dict(PACKAGE, name="fftw", mode="build", version=version, prefix="/usr")}
    with pytest.raises(check.Wrong, match="libfftw3.so.3 has no dfftw_plan_dft_1d_no"):
        check.fft(built)
    check.fft({"fftw": dict(built["fftw"], mode="package", prefix="")})


@pytest.fixture()
def maps(tmp_path, monkeypatch):
    """stack_check as a module, in a process that seems to have the libraries it is told of."""
    spec = importlib.util.spec_from_file_location("under_test_stack_check", PROGRAM)
    check = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec.loader.exec_module(check)
    loaded = check.libraries.loaded

    def told(*paths):
        (tmp_path / "maps").write_text("".join("0-1 r-xp 0 0:0 1   %s\n" % p for p in paths))
        monkeypatch.setattr(check.libraries, "loaded", lambda: loaded(str(tmp_path / "maps")))
        return check
    return told


OWN = ["/usr/lib/libtreenail.so.1.0.0", "/usr/lib/treenail-1/kernels/v3/libtreenail-kernels-cpu.so",
       "/usr/lib/libhdf5_serial.so.103.3.0"]
STACK = ["/opt/stack/x/lib/libopenblas.so.0"]
BENEATH = {name: dict(BUILT, name=name) for name in ("openblas", "hdf5")}


def test_the_distributions_treenail_has_its_hdf5_and_the_stacks_blas(maps):
    """libhdf5_serial is no name of the stack's; libblas is found there first."""
    packaged = dict(BENEATH, treenail=dict(PACKAGE, name="treenail"))
    assert "libhdf5_serial" in maps(*OWN, *STACK).opened(packaged, [])
    for wrong, words in (
            (OWN, "no BLAS library is loaded"), (OWN[:2] + STACK, "no HDF5 library"),
            (OWN + ["/usr/lib/libblas.so.3"], "BLAS is /usr/lib/libblas.so.3, but"),
            (STACK + OWN[:2] + ["/opt/stack/x/lib/libhdf5.so.310"], "takes the distribution's")):
        check = maps(*wrong)
        with pytest.raises(check.Wrong, match=words):
            check.opened(packaged, [])


def test_a_treenail_that_was_built_has_the_hdf5_it_was_built_on(maps):
    built = dict(BENEATH, treenail=dict(BUILT, name="treenail"))
    mine = [path.replace("/usr/lib", "/opt/stack/x/lib").replace("hdf5_serial", "hdf5")
            for path in OWN]
    maps(*mine, *STACK).opened(built, [])
    check = maps(*mine[:2], OWN[2], *STACK)
    with pytest.raises(check.Wrong, match="HDF5 is .*, but the plan built it in /opt/stack/x"):
        check.opened(built, [])


FLEXIBLAS = ["/usr/lib64/libflexiblas.so.3.4", "/usr/lib64/flexiblas/libflexiblas_netlib.so"]


@pytest.mark.parametrize("paths, change, words", [
    (FLEXIBLAS + STACK, {}, None),
    (FLEXIBLAS, {"mode": "package", "prefix": ""}, None),
    (FLEXIBLAS, {"mode": "skip", "prefix": ""}, None),
    (FLEXIBLAS + ["/site/lib/libopenblas.so.0"], {"mode": "module", "prefix": ""}, None),
    (FLEXIBLAS, {"mode": "module", "prefix": ""}, "distribution's /usr/lib64/libflexiblas.so.3.4"),
    (FLEXIBLAS, {}, "BLAS is /usr/lib64/libflexiblas.so.3.4, but the plan built it in /opt/stack"),
    (FLEXIBLAS + ["/usr/lib64/libopenblaso.so.0"], {}, "BLAS is /usr/lib64/libopenblaso.so.0, but"),
    (FLEXIBLAS + STACK + ["/usr/lib64/libopenblaso.so.0"], {}, "BLAS is /usr/lib64/libopenblaso")])
def test_flexiblas_counts_as_what_is_behind_it(maps, paths, change, words):
    check, components = maps(*paths), {"openblas": dict(BENEATH["openblas"], **change)}
    if words is None:
        assert paths[0] in check.provenance(components, ("BLAS",))
        return
    with pytest.raises(check.Wrong, match=words):
        check.provenance(components, ("BLAS",))


def test_the_packages_of_treenail_are_those_that_are_made():
    yaml = pytest.importorskip("yaml")
    texts = []
    for name in ("ansible/roles/treenail/component.yml", "debian/control", "rpm/treenail.spec"):
        with open(os.path.join(TOP, name), encoding="utf-8") as stream:
            texts.append(stream.read())
    packages, (_, control, spec) = yaml.safe_load(texts[0])["packages"], texts
    made = {"Debian": set(re.findall(r"^Package: (\S+)", control, re.MULTILINE)),
            "RedHat": {own or "treenail-" + part for own, part in re.findall(
                r"^%package +(?:-n (\S+)|(\S+))", spec, re.MULTILINE)}}
    for family, names in packages.items():
        assert names and set(names) <= made[family], family


def test_onednn_is_demanded_of_a_treenail_that_was_built_with_it(maps):
    alone = {"treenail": dict(PACKAGE, name="treenail")}
    maps(*OWN).opened(alone, ["blas"])
    assert "oneDNN /usr/lib/libdnnl.so.2.6" in maps(*OWN, "/usr/lib/libdnnl.so.2.6").opened(
        alone, ["onednn"])
    for paths, words in (((), "no oneDNN library is loaded"),
                         (("/opt/x/libdnnl.so.2.6",), "but the plan takes the distribution's")):
        check = maps(*OWN, *paths)
        with pytest.raises(check.Wrong, match=words):
            check.opened(alone, ["onednn"])


def tried(*words, **environment):
    """What the check `treenail` says of the module of this build, where the plan has no more."""
    treenail = pytest.importorskip("treenail")
    build = os.path.abspath(os.environ.get("TREENAIL_BUILD_DIR", "build"))
    if not treenail.__file__.startswith(build + "/"):
        pytest.skip("the module treenail is not that of TREENAIL_BUILD_DIR")
    done = subprocess.run(
        [sys.executable, "-B", *words], encoding="utf-8", check=False,
        input=json.dumps({"needs": [], "instance": dict(
            PACKAGE, name="treenail", mode="module", version=treenail.__version__,
            module="treenail/1", module_root=build)}),
        env=dict(os.environ, **environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("level", ["isa_baseline", "best_level"])
def test_treenail_opens_what_it_was_built_with(level):
    info = pytest.importorskip("treenail").build_info()
    said = tried(PROGRAM, "treenail", TREENAIL_CPU_ISA=info[level])
    assert ("oneDNN /" in said) == ("onednn" in info["features"])


def test_a_treenail_without_hdf5_is_not_asked_for_a_checkpoint():
    said = tried("-c", "import runpy, sys, treenail as tn\ntn.train.Saver.save = None\n"
                 "sys.path.insert(0, %r)\nsys.argv[1:] = ['treenail']\n"
                 "runpy.run_path(%r, run_name='__main__')" % (os.path.dirname(PROGRAM), PROGRAM))
    assert "HDF5 is left out" in said
