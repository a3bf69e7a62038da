# SPDX-License-Identifier: Apache-2.0
"""The build of the CUDA plugin: how a toolkit is found, what becomes of .cu files.

Most of it is asked of a fake nvcc, which says what a real one would and writes what it was asked
for into the fat binary; the last tests want the real one.
"""

import filecmp
import json
import os
import shutil
import subprocess
from dataclasses import replace

import pytest
from gen import check, cuda
from gen.configure import make_plan
from gen.distro import parse_os_release
from gen.errors import ConfigureError
from gen.facts import Compiler, CudaToolkit, External
from gen.leftovers import dead
from gen.model import load
from gen.options import parse
from gen.plan_devices import images_text

NVCC = """#!/usr/bin/python3
import os, sys
here = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
if words == ["--version"]:
    print("Cuda compilation tools, release %(version)s, V%(version)s.1")
elif words == ["--list-gpu-arch"]:
    print("%(known)s")
else:
    host = words[words.index("-ccbin") + 1]
    if host not in "%(hosts)s".split():
        sys.exit("#error -- unsupported GNU version! " + host)
    assert not [name for name in os.environ if name.startswith("NVCC_")]
    out = words[words.index("-o") + 1]
    if out != "/dev/null":
        source = next(word for word in words if word.endswith(".cu"))
        with open(source) as stream:
            text = stream.read()
        root = words[[word[:2] for word in words].index("-I")][2:]
        headers = [os.path.join(root, line.split('"')[1]) for line in text.splitlines()
                   if line.startswith("#include")]
        read = "".join(open(name).read() for name in headers)
        codes = [word for word in words if word.startswith("-gencode")]
        with open(out, "w") as stream:
            stream.write("IMAGE %%s%%s %%s\\n" %% (text, read, " ".join(codes)))
        with open(words[words.index("-MF") + 1], "w") as stream:
            stream.write("%%s : %%s\\n" %% (out, " ".join([source] + headers)))
"""
KNOWN = "compute_75 compute_80 compute_90 compute_103 compute_120"
HEADER = "/* */\n#define CUDA_VERSION %d\n"
TREE = {
    "kernels/cuda/language/gpu.h": "#pragma once\nstruct Gpu;\n",
    "kernels/cuda/data/fill.cu": '#include "kernels/cuda/language/gpu.h"\n// fills\n',
    "kernels/cuda/math/add.cu": "// adds\n",
    "kernels/cuda/driver/images.h": '''#pragma once
struct treenail_cuda_image { const char* name; const unsigned char* begin; unsigned long bytes; };
extern "C" const treenail_cuda_image treenail_cuda_images[];
''',
    "kernels/cuda/driver/library.cc": '''#include <cuda.h>
#include <cstdio>
#include "kernels/cuda/driver/images.h"
extern "C" int treenail_device_library() {
  int bytes = 0;
  for (const auto* image = treenail_cuda_images; image->name != nullptr; ++image) {
    std::printf("%s: %.5s\\n", image->name, reinterpret_cast<const char*>(image->begin));
    bytes += image->bytes;
  }
  std::fflush(stdout);
  return bytes;
}
extern "C" int hidden() { return CUDA_VERSION; }
''',
    "tests/cuda_sim/driver/driver.cc": '''extern "C" int cuInit(unsigned) { return 0; }
extern "C" int inner() { return 1; }
''',
    "tests/cuda_sim/sim_test.cc": "int number;\n",
    "tests/cuda_sim/blas/blas.cc": '''extern "C" int cuInit(unsigned);
extern "C" int cublasLtCreate(void*) { return cuInit(0); }
''',
}
TARGETS = {
    "kernels/targets.py": '''
Component(name="cuda_language", headers=["kernels/cuda/language/*.h"])
Component(name="cuda_kernels", sources=["kernels/cuda/**/*.cu"], needs=["cuda_language"])
Component(name="cuda_plugin", sources=["kernels/cuda/**/*.cc"], headers=["kernels/cuda/**/*.h"],
          external=["cuda"])
DeviceLibrary(name="cuda", component="cuda_plugin", device_code="cuda_kernels", feature="cuda",
              images="treenail_cuda_images", part="cuda")
''',
    "tests/targets.py": '''
Component(name="cuda_sim_driver", sources=["tests/cuda_sim/driver/*.cc"])
Component(name="cuda_sim_blas", sources=["tests/cuda_sim/blas/*.cc"])
SimulatedLibrary(folder="cuda_sim", soname="libcuda.so.1", feature="cuda", exports=["cu*"],
                 components=["cuda_sim_driver", "cuda_kernels"])
SimulatedLibrary(folder="cuda_sim", soname="libcublasLt.so.{cublasLt}", feature="cuda",
                 exports=["cublas*"], components=["cuda_sim_blas", "tensor"],
                 libraries=["libcuda.so.1"], header_of="cublasLt")
SimulatedLibrary(folder="cuda_sim", soname="libcudnn.so.{cudnn}", feature="cuda",
                 exports=["cudnn*"], components=["cuda_sim_blas"], header_of="cudnn")
Component(name="cuda_sim_test", sources=["tests/cuda_sim/*.cc"], external=["gtest"],
          features=["cuda"])
TestProgram(name="cuda_sim", component="cuda_sim_test")
'''}
PLUGIN = "build/lib/treenail-0/devices/libtreenail-cuda.so"


@pytest.fixture
def gpu_tree(small_tree):
    """The small tree with a plugin of two images, and stand-ins for two libraries."""
    for path, text in TREE.items():
        small_tree.write(path, text)
    for path, text in TARGETS.items():
        small_tree.write(path, (small_tree.root / path).read_text() + text)
    return small_tree


def make_toolkit(root, version="12.4", header=12040, known=KNOWN, hosts="g++"):
    (root / "bin").mkdir(parents=True)
    (root / "include").mkdir()
    (root / "include/cuda.h").write_text(HEADER % header)
    (root / "include/cublasLt.h").write_text("")
    (root / "include/cublas_api.h").write_text("#define CUBLAS_VER_MAJOR 12\n")
    write_program(root / "bin/nvcc", NVCC % {"version": version, "hosts": hosts,
                                             "known": known.replace(" ", "\\n")})
    return root


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def toolkit(tmp_path):
    return make_toolkit(tmp_path / "toolkit")


def configure(tree, toolkit, *arguments, **more):
    environment = {"CUDA_HOME": str(toolkit), "NVCC_APPEND_FLAGS": "-use_fast_math",
                   **more.pop("environment", {})}
    return tree.configure(*arguments, environment=environment, **more)


# ---- what is asked for ---------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, state", [
    ([], "auto"), (["--with-cuda=yes"], "yes"), (["--without-cuda"], "no"),
    (["--auto-features=yes"], "no"), (["--auto-features=no"], "no"),
    (["--auto-features=yes", "--with-cuda"], "yes"),
    (["--auto-features=no", "--with-cuda=yes"], "yes")])
def test_packages_take_what_is_not_free_only_by_its_name(arguments, state):
    """They are built with --auto-features=yes, and must not depend on what the builder has."""
    assert parse(arguments, {}).feature("cuda") == state


def test_options_are_listed_where_the_tree_has_the_plugin(small_tree, gpu_tree):
    page = gpu_tree.configure("--help").stdout
    assert "--with-cuda=auto|yes|no" in page and "--cuda-arch=LIST" in page
    shutil.rmtree(gpu_tree.root / "kernels/cuda")
    page = gpu_tree.configure("--help").stdout
    assert "--with-cuda" not in page and "--cuda-arch" not in page


def test_a_tree_without_the_plugin_says_so(small_tree, toolkit):
    done = configure(small_tree, toolkit, "--with-cuda=yes", check=False)
    assert done.returncode == 1 and "no part that uses cuda" in done.stderr


@pytest.mark.parametrize("asked, known, chosen", [
    ("auto", "75 80 86 87 88 89 90 100 103 110 120 121", "75 80 86 89 90 100 120"),
    ("auto", "50 52 53 60 61 62 70 72 75 80 86 87 89 90", "70 75 80 86 89 90"),
    ("auto", "130 140", "140"),
    ("80,90", "75 80 90", "80 90"), ("90;80", "75 80 90", "80 90"),
    ("sm_90 compute_80", "75 80 90", "80 90"), ("9.0", "75 80 90", "90"),
    ("90a,90", "80 90 90a 100", "90 90a"), ("100,90", "90 100", "90 100")])
def test_architectures(asked, known, chosen):
    assert cuda.choose_architectures(asked, known.split()) == tuple(chosen.split())


@pytest.mark.parametrize("asked, message", [
    ("80,99", "--cuda-arch=80,99: '99' is no architecture; nvcc knows 75, 80, 90; give some of "
     "these, as in --cuda-arch=80,90"),
    ("native", "'native' is no architecture"), (",", "--cuda-arch=,: nvcc knows 75, 80, 90"),
    ("", "--cuda-arch=: nvcc knows 75")])
def test_architectures_that_nvcc_does_not_know(asked, message):
    with pytest.raises(ConfigureError, match="arch") as error:
        cuda.choose_architectures(asked, ("75", "80", "90"))
    assert message in str(error.value)


def test_code_for_each_and_what_later_gpus_compile():
    assert cuda.code_flags(("80", "90")) == (
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=[sm_90,compute_90]")


# ---- what is found -------------------------------------------------------------------------------


def test_summary_says_what_was_found(gpu_tree, toolkit):
    line = "CUDA 12.4 (%s/bin/nvcc) with %s, for 75 80 90 120, with host compiler g++\n"
    assert line % (toolkit, "no cuDNN (no cudnn.h)") in configure(gpu_tree, toolkit).stdout
    (toolkit / "include/cudnn_version.h").write_text("#define CUDNN_MAJOR 9\n")
    assert line % (toolkit, "cuDNN 9") in configure(gpu_tree, toolkit).stdout


def test_the_toolkit_is_the_one_that_is_named(gpu_tree, toolkit, tmp_path):
    other = make_toolkit(tmp_path / "other", "12.5", 12050)
    found = configure(gpu_tree, toolkit, environment={"CUDA_PATH": str(other)}).stdout
    assert "CUDA 12.4" in found
    found = gpu_tree.configure(environment={"CUDA_HOME": "", "CUDA_PATH": str(other)}).stdout
    assert "CUDA 12.5" in found
    path = "%s/bin:%s" % (toolkit, os.environ["PATH"])
    found = gpu_tree.configure(environment={"CUDA_HOME": "", "CUDA_PATH": "", "PATH": path}).stdout
    assert "CUDA 12.4" in found
    found = gpu_tree.configure("CUDA_HOME=%s" % other, environment={"PATH": path}).stdout
    assert "CUDA 12.5" in found


def test_regeneration_finds_it_again(gpu_tree, toolkit):
    configure(gpu_tree, toolkit)
    gpu_tree.configure("--regenerate", cwd=gpu_tree.root / "build",
                       environment={"CUDA_HOME": "/nowhere"})
    assert str(toolkit) in (gpu_tree.root / "build/build.ninja").read_text()


def test_a_link_to_nvcc_leads_to_its_toolkit(toolkit, tmp_path):
    (tmp_path / "links").mkdir()
    link = tmp_path / "links/nvcc"
    link.symlink_to(toolkit / "bin/nvcc")
    assert cuda._include(str(link), "x86_64") == str(toolkit / "include")


def test_headers_below_targets(toolkit):
    (toolkit / "targets/aarch64-linux").mkdir(parents=True)
    (toolkit / "include").rename(toolkit / "targets/aarch64-linux/include")
    assert cuda._include(str(toolkit / "bin/nvcc"), "aarch64") == str(
        toolkit / "targets/aarch64-linux/include")


@pytest.mark.parametrize("nvcc", ["/usr/bin/nvcc", "/usr/lib/nvidia-cuda-toolkit/bin/nvcc"])
def test_headers_of_debians_toolkit(nvcc, monkeypatch):
    monkeypatch.setattr(os.path, "exists", lambda path: path in (
        "/usr/include/cuda.h", "/usr/include/cublasLt.h"))
    assert cuda._include(nvcc, "x86_64") == "/usr/include"


def broken(toolkit, how):
    if how == "no nvcc":
        (toolkit / "bin/nvcc").unlink()
    elif how == "no cublasLt.h":
        (toolkit / "include/cublasLt.h").unlink()
    elif how == "headers of another version":
        (toolkit / "include/cuda.h").write_text(HEADER % 11080)
    elif how == "too old":
        text = (toolkit / "bin/nvcc").read_text()
        write_program(toolkit / "bin/nvcc", text.replace("12.4", "11.8"))
    elif how == "no release":
        write_program(toolkit / "bin/nvcc", "#!/bin/sh\necho error: broken >&2; exit 1\n")
    elif how == "no host compiler":
        text = (toolkit / "bin/nvcc").read_text()
        write_program(toolkit / "bin/nvcc", text.replace('"g++".split', '"g++-5".split'))


BROKEN = [
    ("no nvcc", "CUDA_HOME=%(toolkit)s has no bin/nvcc"),
    ("no cublasLt.h", "%(toolkit)s/bin/nvcc is there, but not <cublasLt.h> in %(toolkit)s/include"),
    ("headers of another version",
     "nvcc is of CUDA 12.4, but %(toolkit)s/include/cuda.h of 11.8"),
    ("too old", "is of CUDA 11.8; 12.0 or later is needed"),
    ("no release", "--version says no release: error: broken"),
    ("no host compiler", "nvcc takes none of the host compilers that are here (g++"),
    ("no host compiler", "): #error -- unsupported GNU version! g++"),
]


@pytest.mark.parametrize("how, message", BROKEN)
def test_a_toolkit_that_is_none(gpu_tree, toolkit, how, message):
    """Left out with one sentence, which is the error where CUDA must be there."""
    broken(toolkit, how)
    said = message % {"toolkit": toolkit}
    out = configure(gpu_tree, toolkit).stdout.split("Left out\n")[1]
    assert "cuda" in out and said in out
    done = configure(gpu_tree, toolkit, "--with-cuda=yes", check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("configure.py: --with-cuda=yes, but cuda: ")
    assert said in done.stderr and "CUDA_HOME=DIR names one; " in done.stderr
    assert "nvcc, cuda.h and cublasLt.h" in done.stderr


def test_relative_directory_is_refused(gpu_tree):
    done = gpu_tree.configure("CUDA_HOME=cuda", "--with-cuda", check=False)
    assert "CUDA_HOME=cuda is no absolute directory" in done.stderr


def test_a_cross_build_has_none(facts):
    answer = cuda.find_cuda(None, parse([], {}), facts.cxx, "aarch64", facts.distro, True)
    assert answer == (External(False, why_not="a cross build has no code for GPUs"), None)
    with pytest.raises(ConfigureError, match="--with-cuda=yes, but cuda: a cross build has no"):
        cuda.find_cuda(None, parse(["--with-cuda"], {}), facts.cxx, "aarch64", facts.distro, True)


def test_nothing_names_a_toolkit(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda, "USUAL", str(tmp_path / "usual"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(cuda._NotThere, match="no nvcc in PATH or .*/usual/bin, and neither"):
        cuda._nvcc(parse([], {}))
    make_toolkit(tmp_path / "usual")
    assert cuda._nvcc(parse([], {})) == str(tmp_path / "usual/bin/nvcc")


def test_unknown_architecture_is_an_error_even_with_auto(gpu_tree, toolkit):
    """It was asked for; leaving CUDA out would hide the slip."""
    done = configure(gpu_tree, toolkit, "--cuda-arch=80,86", check=False)
    assert done.returncode == 1
    assert "'86' is no architecture; %s/bin/nvcc knows 75, 80, 90, 103, 120; " % toolkit in (
        done.stderr)


def test_not_wanted(gpu_tree, toolkit):
    for argument, shown in (("--with-cuda=no", "not wanted (--with-cuda=no)"),
                            ("--auto-features=yes", "--auto-features=yes; --with-cuda=yes takes")):
        assert shown in configure(gpu_tree, toolkit, argument).stdout
        text = (gpu_tree.root / "build/build.ninja").read_text()
        assert "nvcc" not in text and "tests/cuda_sim/lib" not in text


def test_the_newest_host_compiler_that_it_takes(gpu_tree, tmp_path):
    """The configured one when it does; else g++-N, the newest first."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("g++-9", "g++-10", "g++-13"):
        (folder / name).symlink_to(shutil.which("g++"))
    environment = {"PATH": "%s:%s" % (folder, os.environ["PATH"])}
    for hosts, taken in (("g++ g++-13", "g++"), ("g++-9 g++-10", "g++-10")):
        toolkit = make_toolkit(tmp_path / taken, hosts=hosts)
        out = configure(gpu_tree, toolkit, "CXX=g++ -m64", environment=environment).stdout
        assert "with host compiler %s\n" % taken in out
        assert "-ccbin %s " % taken in (gpu_tree.root / "build/build.ninja").read_text()


@pytest.mark.parametrize("cxx, first", [
    ("ccache g++", "g++"), ("/usr/bin/g++-12 -m64", "/usr/bin/g++-12")])
def test_the_configured_compiler_is_tried_without_its_cache(cxx, first, monkeypatch):
    """nvcc takes one word."""
    monkeypatch.setenv("PATH", "/nowhere")
    compiler = Compiler(tuple(cxx.split()), "gcc", "12.2", "x86_64-linux-gnu")
    assert cuda._host_compilers(compiler) == [first]


def test_debians_package_is_not_of_main():
    debian = parse_os_release('ID=debian\nVERSION_ID="12"\n')
    assert debian.install_hint("cuda") == (
        "install it with: apt-get install nvidia-cuda-toolkit (non-free)")
    assert "does not have" in parse_os_release("ID=fedora\nVERSION_ID=42\n").install_hint("cuda")


# ---- what is planned -----------------------------------------------------------------------------


@pytest.fixture
def gpu_facts(facts):
    facts.cuda = CudaToolkit("/opt/cuda/bin/nvcc", "/opt/cuda/include", "13.0", ("80", "90"), "g++",
                             {"cublasLt": "13"})
    facts.externals["cuda"] = External(True, ("-I/opt/cuda/include",), (), "", "test")
    return facts


def plan_of(tree, facts, *arguments):
    return make_plan(load(str(tree.root)), parse(list(arguments), {}), facts, "..",
                     ["configure.py"]).plan


def test_edges(gpu_tree, gpu_facts):
    plan = plan_of(gpu_tree, gpu_facts)
    made = {edge.outputs[0]: edge for edge in plan.edges}
    assert made["cuda/data/fill.fatbin"].inputs == ("../kernels/cuda/data/fill.cu",)
    images = made["obj/device-cuda/gen/treenail_cuda_images.S.o"]
    assert images.implicit == ("cuda/data/fill.fatbin", "cuda/math/add.fatbin")
    library = made["lib/treenail-0/devices/libtreenail-cuda.so"]
    assert images.outputs[0] in library.inputs
    libs = dict(library.variables)["libs"].split()
    assert libs == ["lib/libtreenail.so.0.1.0", "-ldl", "-lm"]
    host = dict(made["obj/device-cuda/kernels/cuda/driver/library.cc.o"].variables)["flags"]
    assert "-isystem /opt/cuda/include" in host
    flags = dict(plan.variables)["nvccflags"].split()
    for word in ("-fatbin", "-std=c++20", "-fmad=false", "-I..", "-ccbin"):
        assert word in flags
    assert check.check_plan(plan) == []


def test_stand_ins_compile_device_code_for_the_host(gpu_tree, gpu_facts):
    made = {edge.outputs[0]: edge for edge in plan_of(gpu_tree, gpu_facts).edges}
    driver, blas = "tests/cuda_sim/libcuda.so.1", "tests/cuda_sim/libcublasLt.so.13"
    kernel = "obj/cuda_sim/kernels/cuda/data/fill.cu.o"
    assert dict(made[kernel].variables)["flags"] == "$cxxflags -x c++"
    assert kernel in made[driver].inputs and kernel not in made[blas].inputs
    assert driver in made[blas].implicit and "-soname,libcublasLt.so.13" in str(
        made[blas].variables)
    assert driver in made["tests"].inputs and driver not in made["all"].inputs
    layer = "obj/core/framework/tensor/red.cc.o"  # as libtreenail has it
    assert layer in made[blas].inputs and layer not in made[driver].inputs


def test_a_stand_in_of_a_library_without_headers_is_left_out(gpu_tree, gpu_facts):
    def sonames():
        return {edge.outputs[0] for edge in plan_of(gpu_tree, gpu_facts).edges
                if "/libcudnn" in edge.outputs[0]}

    assert sonames() == set()
    gpu_facts.cuda = replace(gpu_facts.cuda, majors={"cublasLt": "13", "cudnn": "9"})
    assert sonames() == {"tests/cuda_sim/libcudnn.so.9"}


def test_tests_of_a_feature_are_left_out_with_it(gpu_tree, gpu_facts):
    assert "tests/cuda_sim_test" in outputs(plan_of(gpu_tree, gpu_facts))
    gpu_facts.externals["cuda"] = External(False, why_not="test")
    assert "tests/cuda_sim_test" not in outputs(plan_of(gpu_tree, gpu_facts))


def outputs(plan):
    return {output for edge in plan.edges for output in edge.outputs}


def test_stand_ins_that_nobody_wrote_are_left_out(gpu_tree, gpu_facts):
    shutil.rmtree(gpu_tree.root / "tests/cuda_sim")
    plan = plan_of(gpu_tree, gpu_facts)
    assert not [e for e in plan.edges if e.outputs[0].startswith("tests/cuda_sim")]
    assert [e for e in plan.edges if e.outputs[0].endswith("libtreenail-cuda.so")]


def test_clang_tidy_sees_host_sources_only(gpu_tree, gpu_facts):
    paths = [path for path, _, _ in plan_of(gpu_tree, gpu_facts).compile_commands]
    assert "../kernels/cuda/driver/library.cc" in paths
    assert not [path for path in paths if path.endswith(".cu")]


def test_the_plugin_is_a_part_of_its_own(gpu_tree, gpu_facts):
    entries = json.loads(plan_of(gpu_tree, gpu_facts, "--prefix=/usr").files["gen/install.json"])
    parts = {e["to"]: e["package"] for e in entries["entries"]}
    assert {path for path, part in parts.items() if part == "cuda"} == {
        "/usr/lib/x86_64-linux-gnu/treenail-0/devices/libtreenail-cuda.so"}


def test_the_build_names_it_among_its_features(gpu_tree, gpu_facts):
    made = {e.outputs[0]: dict(e.variables) for e in plan_of(gpu_tree, gpu_facts).edges}
    assert "--features cuda" in made["gen/build_info.h"]["arguments"]


def test_two_images_of_one_name(gpu_tree, gpu_facts):
    gpu_tree.write("kernels/cuda/math/fill.cu", "")
    with pytest.raises(ConfigureError, match="math/fill.cu: there is a fill.cu already"):
        plan_of(gpu_tree, gpu_facts)


def test_a_source_of_device_code_belongs_to_a_component(gpu_tree):
    gpu_tree.write("kernels/eigen/stray.cu", "")
    with pytest.raises(ConfigureError, match="stray.cu belongs to no target"):
        load(str(gpu_tree.root))


def test_code_that_is_no_longer_planned_is_gone(gpu_tree, gpu_facts):
    log = "# ninja log v5\n1\t2\t3\tcuda/data/fill.fatbin\tx\n1\t2\t3\tcuda/gone.fatbin\tx\n"
    assert dead(log, plan_of(gpu_tree, gpu_facts)) == ["cuda/gone.fatbin"]


def test_a_table_without_images(tmp_path):
    (tmp_path / "empty.S").write_text(images_text("table", []))
    subprocess.run(["gcc", "-c", "empty.S", "-o", "empty.o"], cwd=tmp_path, check=True)


# ---- what is built -------------------------------------------------------------------------------


def run_plugin(tree):
    """The names and beginnings of the images, and how many bytes they have in all."""
    program = "import ctypes; print(ctypes.CDLL('%s').treenail_device_library())" % (
        tree.root / PLUGIN)
    done = subprocess.run(["/usr/bin/python3", "-c", program], stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().splitlines()


def test_the_plugin_holds_what_nvcc_made(gpu_tree, toolkit):
    configure(gpu_tree, toolkit)
    gpu_tree.ninja(PLUGIN[len("build/"):], "tests/cuda_sim/libcublasLt.so.12", environment={
        "NVCC_APPEND_FLAGS": "-use_fast_math", "NVCC_PREPEND_FLAGS": "-G"})
    build = gpu_tree.root / "build"
    images = [build / "cuda/math/add.fatbin", build / "cuda/data/fill.fatbin"]
    assert run_plugin(gpu_tree) == ["add: IMAGE", "fill: IMAGE",
                                    str(sum(path.stat().st_size for path in images))]
    exported = subprocess.run(["nm", "-D", "--defined-only", gpu_tree.root / PLUGIN],
                              stdout=subprocess.PIPE, check=True).stdout.decode()
    assert [line.split()[-1] for line in exported.splitlines()] == ["treenail_device_library"]
    wanted = subprocess.run(["readelf", "-dlW", gpu_tree.root / PLUGIN],
                            stdout=subprocess.PIPE, check=True).stdout.decode()
    assert "cuda.so." not in wanted and "cublas" not in wanted
    assert [line for line in wanted.splitlines() if "GNU_STACK" in line and " RW " in line]
    done = subprocess.run(["readelf", "-dW", build / "tests/cuda_sim/libcublasLt.so.12"],
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    assert "soname: [libcublasLt.so.12]" in done and "[libcuda.so.1]" in done
    exported = subprocess.run(["nm", "-D", "--defined-only", build / "tests/cuda_sim/libcuda.so.1"],
                              stdout=subprocess.PIPE, check=True).stdout.decode()
    assert [line.split()[-1] for line in exported.splitlines()] == ["cuInit"]


def test_what_changes_is_built_again(gpu_tree, toolkit):
    configure(gpu_tree, toolkit)
    target = PLUGIN[len("build/"):]
    gpu_tree.ninja(target)
    assert "no work to do" in gpu_tree.ninja(target).stdout
    gpu_tree.write("kernels/cuda/language/gpu.h", "#pragma once\nstruct Gpu;\nstruct Other;\n")
    out = gpu_tree.ninja(target).stdout
    assert "NVCC kernels/cuda/data/fill.cu" in out and "add.cu" not in out and "LINK" in out
    gpu_tree.write("kernels/cuda/math/sub.cu", "// subtracts\n")
    assert "NVCC kernels/cuda/math/sub.cu" in gpu_tree.ninja(target).stdout
    assert "sub: IMAGE" in run_plugin(gpu_tree)
    (gpu_tree.root / "kernels/cuda/math/sub.cu").unlink()
    gpu_tree.ninja(target)
    assert not (gpu_tree.root / "build/cuda/math/sub.fatbin").exists()
    assert "sub: IMAGE" not in run_plugin(gpu_tree)


def test_a_build_without_the_plugin_has_none_left(gpu_tree, toolkit):
    configure(gpu_tree, toolkit)
    gpu_tree.ninja(PLUGIN[len("build/"):])
    configure(gpu_tree, toolkit, "--with-cuda=no")
    assert not (gpu_tree.root / PLUGIN).exists()
    assert not (gpu_tree.root / "build/cuda").exists()


REAL = shutil.which("nvcc") or os.path.join(cuda.USUAL, "bin/nvcc")
KERNEL = """#include <cstdint>
#include "kernels/cuda/language/gpu.h"
extern "C" __global__ void fill(int64_t n, const float* value, float* y) {
  int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) y[i] = y[i] * *value + 1.0f;
}
"""


def why_not_real(folder):
    """Why the real nvcc cannot be used, empty where it can."""
    if not os.path.exists(REAL):
        return "there is no nvcc: the fake one must do"
    done = subprocess.run([REAL, *cuda.CODE_FLAGS, "-x", "cu", "/dev/null", "-o",
                           str(folder / "probe.fatbin")], stderr=subprocess.PIPE, check=False)
    return done.stderr.decode().strip() if done.returncode else ""


def test_real_code_is_the_same_wherever_it_is_built(gpu_tree, tmp_path):
    """Twice in one place, and in another: no path, time or process stands in it."""
    lacking = why_not_real(tmp_path)
    if lacking:
        pytest.skip(lacking)
    gpu_tree.write("kernels/cuda/data/fill.cu", KERNEL)
    other = tmp_path / "a longer name" / "second"
    shutil.copytree(gpu_tree.root, other)
    found = []
    for root in (gpu_tree.root, other):
        gpu_tree.root = root
        gpu_tree.configure("--with-cuda=yes")
        gpu_tree.ninja(PLUGIN[len("build/"):])
        found.append(root / "build/cuda/data/fill.fatbin")
        assert found[-1].read_bytes() in (root / PLUGIN).read_bytes()
    assert filecmp.cmp(*found, shallow=False)
    first = found[-1].read_bytes()
    found[-1].unlink()
    gpu_tree.ninja("cuda/data/fill.fatbin")
    assert found[-1].read_bytes() == first
