#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: what a host has for GPUs: NVIDIA's driver, GPUs, the libraries that the plugin
opens, and the plugin itself beside a libtreenail of its build.

It asks the driver's own library, as the plugin does, and needs no package of NVIDIA's programs.
Where there is no GPU, no driver or no Treenail, that is what it says.
"""

import ctypes
import glob
import os
import re
import subprocess

DOCUMENTATION = r"""
module: gpu_state
short_description: Tell the driver, the GPUs and the libraries that sessions on GPUs need
description:
  - Changes nothing, and works on hosts without a GPU.
options:
  libdirs:
    description: >-
      Directories that libtreenail is looked for in; the first that has one is taken. Patterns of a
      shell are allowed.
    type: list
    elements: str
    default: [/usr/local/lib, /usr/lib/*-linux-gnu*, /usr/lib64, /usr/lib]
author: [Treenail developers]
"""

EXAMPLES = r"""
- name: Ask what the host has
  gpu_state:
  register: gpu
"""

RETURN = r"""
driver:
  description: >-
    version, of the kernel's module; cuda, the newest CUDA that it serves; problem, why there are no
    GPUs. What is not known is empty.
  type: dict
  returned: always
gpus:
  description: For each its name, architecture ("90") and memory_mib.
  type: list
  returned: always
architectures: {description: Those of the GPUs., type: list, returned: always}
libraries:
  description: File of cublasLt, cufft and cudnn that the dynamic linker has; empty where none is.
  type: dict
  returned: always
libtreenail: {description: path and build; empty where none is., type: dict, returned: always}
plugin: {description: path and build; empty where none is., type: dict, returned: always}
problems:
  description: What is missing for sessions on GPUs, a sentence each.
  type: list
  returned: always
"""

DRIVER = "libcuda.so.1"
KERNEL_MODULE = "/proc/driver/nvidia/version"
LIBRARIES = {"cublasLt": "products", "cufft": "Fourier transforms", "cudnn": "fast convolutions"}
BUILD = re.compile(rb"treenail-private-abi-(\d+\.\d+\.\d+-[0-9a-f]{12})\0")
# Of cuda.h: two attributes of a device, and what cuInit says where there is none.
MAJOR, MINOR, NO_DEVICE = 75, 76, 100


def kernel_version(path=KERNEL_MODULE):
    """580.65.06; empty where the module is not loaded."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", stream.read())
    except OSError:
        return ""
    return found.group(1) if found else ""


def one_gpu(cuda, number):
    name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t()
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    cuda.cuDeviceGet(ctypes.byref(device), number)
    cuda.cuDeviceGetName(name, len(name), device)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    cuda.cuDeviceGetAttribute(ctypes.byref(major), MAJOR, device)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), MINOR, device)
    return {"name": name.value.decode(errors="replace"), "memory_mib": memory.value >> 20,
            "architecture": "%d%d" % (major.value, minor.value)}


def ask_driver():
    """(driver, gpus), as RETURN has them."""
    driver = {"version": kernel_version(), "cuda": "", "problem": ""}
    try:
        cuda = ctypes.CDLL(DRIVER)
    except OSError as error:
        return dict(driver, problem="NVIDIA's driver is not there: %s" % error), []
    number, count = ctypes.c_int(), ctypes.c_int()
    if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
        driver["cuda"] = "%d.%d" % (number.value // 1000, number.value % 1000 // 10)
    status = cuda.cuInit(0)
    if status == 0:
        status = cuda.cuDeviceGetCount(ctypes.byref(count))
    if status not in (0, NO_DEVICE):
        return dict(driver, problem="NVIDIA's driver cannot be used: its error %d" % status), []
    gpus = [one_gpu(cuda, index) for index in range(count.value)]
    if not gpus:
        driver["problem"] = "NVIDIA's driver finds no GPU"
    return driver, gpus


def known_files():
    """{soname: file} of the dynamic linker's cache, and before it LD_LIBRARY_PATH."""
    found = {}
    for program in ("ldconfig", "/sbin/ldconfig"):
        try:
            text = subprocess.run([program, "-p"], stdout=subprocess.PIPE, check=False,
                                  stderr=subprocess.DEVNULL, universal_newlines=True).stdout
        except OSError:
            continue
        for name, path in re.findall(r"^\s+(\S+) .*=> (\S+)$", text, re.MULTILINE):
            found.setdefault(name, path)
        break
    for folder in reversed(os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        for path in glob.glob(os.path.join(glob.escape(folder), "*.so.*")) if folder else ():
            found[os.path.basename(path)] = path
    return found


def libraries(files):
    """Of several versions the newest."""
    result = {}
    for name in LIBRARIES:
        versions = [(int(version.group(1)), files[soname]) for soname in files
                    for version in [re.match(r"lib%s\.so\.(\d+)\Z" % name, soname)] if version]
        result[name] = max(versions)[1] if versions else ""
    return result


def build_of(path):
    """What a library of Treenail says that it is of; empty where it says nothing or two things."""
    with open(path, "rb") as stream:
        found = set(BUILD.findall(stream.read()))
    return found.pop().decode() if len(found) == 1 else ""


def treenail(libdirs):
    """(libtreenail, plugin); the plugin is the one that this libtreenail opens."""
    for folder in [found for pattern in libdirs for found in sorted(glob.glob(pattern))]:
        for path in sorted(glob.glob(os.path.join(folder, "libtreenail.so.[0-9]*"))):
            version = re.match(r"libtreenail\.so\.(\d+)\Z", os.path.basename(path))
            if version:
                plugin = "%s/treenail-%s/devices/libtreenail-cuda.so" % (folder, version.group(1))
                there = os.path.isfile(plugin)
                return {"path": path, "build": build_of(path)}, {
                    "path": plugin, "build": build_of(plugin)} if there else {}
    return {}, {}


def problems(state):
    """What is missing, in sentences, the gravest first."""
    core, plugin, found = state["libtreenail"], state["plugin"], []
    if not core:
        found.append("libtreenail is not installed")
    elif not plugin:
        found.append("the part of Treenail for NVIDIA GPUs is not installed")
    elif plugin["build"] != core["build"]:
        found.append("%s is of build %s; %s is of build %s" % (
            plugin["path"], plugin["build"] or "unknown", core["path"], core["build"] or "unknown"))
    if state["driver"]["problem"]:
        found.append(state["driver"]["problem"])
    return found + ["lib%s, for %s on a GPU, is not there" % (name, what)
                    for name, what in LIBRARIES.items() if not state["libraries"][name]]


def gpu_state(libdirs):
    driver, gpus = ask_driver()
    core, plugin = treenail(libdirs)
    state = {"driver": driver, "gpus": gpus, "libraries": libraries(known_files()),
             "architectures": sorted({gpu["architecture"] for gpu in gpus}, key=int),
             "libtreenail": core, "plugin": plugin}
    return dict(state, problems=problems(state))


def main():
    from ansible.module_utils.basic import AnsibleModule
    module = AnsibleModule({"libdirs": {"type": "list", "elements": "str", "default": [
        "/usr/local/lib", "/usr/lib/*-linux-gnu*", "/usr/lib64", "/usr/lib"]}},
        supports_check_mode=True)
    try:
        module.exit_json(changed=False, **gpu_state(module.params["libdirs"]))
    except OSError as error:
        module.fail_json(msg="gpu_state: %s" % error)


if __name__ == "__main__":
    main()
