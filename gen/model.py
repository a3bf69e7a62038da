# SPDX-License-Identifier: Apache-2.0
"""The targets.py files, read as data and resolved against the files that are there.

A targets.py is never executed: its syntax tree may contain a docstring and constructor calls with
literal keyword arguments, nothing else. The model is what plan and check work on.
"""

import ast
import os
import re
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Tuple, Type

from gen import records
from gen.errors import ConfigureError

TOP_FOLDERS = ("framework", "kernels", "python", "tests", "smoke", "bench", "docs")
SOURCE_ENDINGS = (".cc", ".c", ".cu")
_NAME = re.compile(r"[A-Za-z0-9._+/ -]+\Z")
_CONSTRUCTORS = {kind.__name__: kind for kind in records.KINDS}


def read_targets(text: str, path: str) -> List[Any]:
    """The records of one targets.py; anything but constructor calls with literals is refused."""
    try:
        module = ast.parse(text, path)
    except SyntaxError as error:
        raise ConfigureError("%s:%s: %s" % (path, error.lineno, error.msg))
    found = []
    for index, node in enumerate(module.body):
        if (index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)):
            continue
        call = node.value if isinstance(node, ast.Expr) else None
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
                and call.func.id in _CONSTRUCTORS and not call.args):
            raise ConfigureError(
                "%s:%d: a targets.py holds constructor calls with keyword arguments only; the "
                "constructors are %s" % (path, node.lineno, ", ".join(sorted(_CONSTRUCTORS))))
        arguments = {}
        for keyword in call.keywords:
            try:
                value = ast.literal_eval(keyword.value)
            except ValueError:
                raise ConfigureError("%s:%d: the value of %s must be a literal"
                                     % (path, keyword.value.lineno, keyword.arg))
            arguments[keyword.arg] = tuple(value) if isinstance(value, list) else value
        try:
            found.append(_CONSTRUCTORS[call.func.id](**arguments))
        except TypeError as error:
            raise ConfigureError("%s:%d: %s" % (path, node.lineno, error))
    return found


def pattern_to_regex(pattern: str) -> "re.Pattern[str]":
    out, i = "", 0
    while i < len(pattern):
        if pattern.startswith("**/", i):
            out, i = out + r"(?:[^/]+/)*", i + 3
        elif pattern[i] == "*":
            out, i = out + r"[^/]*", i + 1
        else:
            out, i = out + re.escape(pattern[i]), i + 1
    return re.compile(out + r"\Z")


@dataclass
class Model:
    """Every file of the top folders, the records, and which component owns which file."""

    source: str
    version: str
    files: Tuple[str, ...]
    directories: Tuple[str, ...]
    records: Tuple[Any, ...]
    targets_files: Tuple[str, ...]
    owner: Dict[str, str] = field(default_factory=dict)
    sources: Dict[str, Tuple[str, ...]] = field(default_factory=dict)
    headers: Dict[str, Tuple[str, ...]] = field(default_factory=dict)
    components: Dict[str, records.Component] = field(default_factory=dict)

    def of(self, kind: Type[Any]) -> List[Any]:
        return [record for record in self.records if isinstance(record, kind)]

    def glob(self, patterns: Iterable[str]) -> List[str]:
        found = set()
        for pattern in patterns:
            regex = pattern_to_regex(pattern)
            found.update(path for path in self.files if regex.match(path))
        return sorted(found)

    def globbed_folders(self) -> List[str]:
        """Folders in which a new file may change the build, if only by belonging to no target."""
        return list(self.directories)

    def present(self, component: str) -> bool:
        return bool(self.sources.get(component))


def walk(source: str) -> Tuple[List[str], List[str]]:
    """All files and directories below the top folders, sorted, relative to the top."""
    files: List[str] = []
    directories: List[str] = []
    for top in TOP_FOLDERS:
        for folder, names, leaves in os.walk(os.path.join(source, top)):
            names[:] = sorted(n for n in names if n != "__pycache__" and not n.startswith("."))
            relative = os.path.relpath(folder, source)
            directories.append(relative)
            files.extend(os.path.join(relative, leaf) for leaf in leaves
                         if not leaf.startswith(".") and not leaf.endswith(("~", ".pyc")))
    return sorted(files), sorted(directories)


def _resolve_components(model: Model) -> None:
    for component in model.of(records.Component):
        if component.name in model.components:
            raise ConfigureError("component '%s' is described twice" % component.name)
        model.components[component.name] = component
    explicit: Dict[str, str] = {}
    for name, component in sorted(model.components.items()):
        for need in component.needs:
            if need not in model.components:
                raise ConfigureError("component '%s' needs '%s', which no targets.py describes"
                                     % (name, need))
        sources = [p for p in model.glob(component.sources) if p.endswith(SOURCE_ENDINGS)]
        headers = model.glob(component.headers)
        for path in sources + [h for h in headers if component.headers and not component.sources]:
            if path in explicit:
                raise ConfigureError("%s belongs to two targets, %s and %s: every source belongs "
                                     "to exactly one" % (path, explicit[path], name))
            explicit[path] = name
        model.sources[name] = tuple(sources)
    for name, component in sorted(model.components.items()):
        owned = [p for p in model.glob(component.headers) if explicit.get(p, name) == name]
        for path in owned:
            if explicit.setdefault(path, name) != name or model.owner.get(path, name) != name:
                raise ConfigureError("%s belongs to two targets, %s and %s" %
                                     (path, model.owner.get(path, explicit[path]), name))
        model.headers[name] = tuple(owned)
    model.owner.update(explicit)


def _check_ownership(model: Model) -> None:
    excluded = set(model.glob(p for record in model.of(records.Excluded) for p in record.files))
    for path in model.files:
        if path.endswith(SOURCE_ENDINGS + (".h",)) and not _NAME.match(path):
            raise ConfigureError(
                "%r: names of sources consist of letters, digits, blanks and ._+-; compilers and "
                "ninja disagree about how others are written in dependency files" % path)
        if path.endswith(SOURCE_ENDINGS) and path not in model.owner and path not in excluded:
            raise ConfigureError(
                "%s belongs to no target: name it in a component of %s/targets.py, or list it "
                "there as Excluded with a reason" % (path, path.split("/")[0]))


def _check_precompiled(model: Model) -> None:
    for library in model.of(records.SharedLibrary) + model.of(records.KernelLibrary):
        for path in library.precompiled:
            if not any(path in headers for headers in model.headers.values()):
                raise ConfigureError("library '%s' precompiles %s, which is no component's header"
                                     % (library.name, path))


def load(source: str) -> Model:
    """Read the tree at `source`."""
    try:
        with open(os.path.join(source, "VERSION"), encoding="utf-8") as stream:
            version = stream.read().strip()
    except OSError:
        raise ConfigureError("%s: no VERSION file; is this a Treenail source tree?" % source)
    if not re.match(r"\d+\.\d+\.\d+\Z", version):
        raise ConfigureError("VERSION holds '%s'; MAJOR.MINOR.PATCH is needed" % version)
    files, directories = walk(source)
    found: List[Any] = []
    targets_files = []
    for top in TOP_FOLDERS:
        path = top + "/targets.py"
        if path in files:
            targets_files.append(path)
            with open(os.path.join(source, path), encoding="utf-8") as stream:
                found.extend(read_targets(stream.read(), path))
    model = Model(source, version, tuple(files), tuple(directories), tuple(found),
                  tuple(targets_files))
    _resolve_components(model)
    _check_ownership(model)
    _check_precompiled(model)
    return model
