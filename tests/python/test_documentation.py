# SPDX-License-Identifier: Apache-2.0
"""The guide: its examples run as they stand, and it names what the product reads."""

import contextlib
import io
import re
from pathlib import Path

import treenail as tn

SOURCE = Path(__file__).resolve().parents[2]


def test_the_guide_names_every_environment_variable():
    read = set()
    for folder in ("framework", "kernels", "python"):
        for path in sorted((SOURCE / folder).rglob("*")):
            if path.suffix in (".cc", ".h", ".py"):
                read.update(re.findall(r'"(TREENAIL_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    guide = (SOURCE / "docs/guide.md").read_text(encoding="utf-8")
    assert len(read) > 3
    assert sorted(name for name in read if "`%s`" % name not in guide) == []


def expected_of(code):
    """What the comments behind calls of print promise."""
    return re.findall(r"^ *print\(.*\) {2,}# (.+)$", code, re.MULTILINE)


def test_the_guide_can_be_typed_in_from_top_to_bottom(tmp_path, monkeypatch):
    text = (SOURCE / "docs/guide.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 10
    monkeypatch.chdir(tmp_path)
    if "hdf5" not in tn.build_info()["features"]:  # from Saving on, it saves
        blocks = blocks[:[i for i, code in enumerate(blocks) if "tn.train.Saver" in code][0]]
    names = {}
    shown = 0
    with tn.Graph().as_default():
        for code in blocks:
            told = io.StringIO()
            with contextlib.redirect_stdout(told):
                exec(compile(code, "guide.md", "exec"), names)  # pylint: disable=exec-used
            expected = expected_of(code) if not code.startswith("def ") else []
            assert told.getvalue().splitlines() == expected, code
            shown += len(expected)
        names["session"].close()
    assert shown >= 6


def test_the_page_on_control_flow_can_be_typed_in(tmp_path):
    text = (SOURCE / "docs/control-flow.md").read_text(encoding="utf-8")
    program = "".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    path = tmp_path / "page.py"
    path.write_text(program, encoding="utf-8")
    told = io.StringIO()
    names = {}
    with tn.Graph().as_default(), contextlib.redirect_stdout(told):
        exec(compile(program, str(path), "exec"), names)  # pylint: disable=exec-used
        assert told.getvalue().splitlines() == expected_of(program)
        of, total = tn.autograph.to_graph, tn.Variable(0.0)
        x, n = tn.placeholder(tn.float32, []), tn.placeholder(tn.int32, [])
        xs = tn.placeholder(tn.float32, [None])
        results = [of(names["clipped"])(x), of(names["first_above"])(xs, x),
                   of(names["squares"])(n), of(names["checked"])(x, total)]
        with tn.Session() as session:
            session.run(total.initializer)
            got = session.run(results, {x: 5.5, xs: [1, -9, 7], n: 5})
    assert [list(v) if getattr(v, "ndim", 0) else v for v in got] == [6.5, 2, [0, 4, 16], 0.0]


def test_the_page_on_placement_can_be_typed_in(tmp_path, monkeypatch):
    text = (SOURCE / "docs/placement.md").read_text(encoding="utf-8")
    program = "".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    monkeypatch.chdir(tmp_path)
    told = io.StringIO()
    with tn.Graph().as_default(), contextlib.redirect_stdout(told):
        exec(compile(program, "placement.md", "exec"), {})  # pylint: disable=exec-used
    assert told.getvalue().splitlines() == expected_of(program)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step.json", "step.profile"]


def test_no_line_of_the_guide_is_too_long_to_be_seen_at_once():
    for name in ("guide.md", "control-flow.md", "placement.md", "differences.md"):
        text = (SOURCE / "docs" / name).read_text(encoding="utf-8")
        for block in re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            assert max(map(len, block.splitlines())) <= 100


def test_every_public_module_has_a_page():
    """They are filled by autodoc; `ninja generate` writes them."""
    pages = {path.stem for path in (SOURCE / "docs/python").glob("treenail*.md")}
    shown = {"treenail.%s" % name for name in dir(tn)
             if not name.startswith("_") and isinstance(getattr(tn, name), type(tn.nn))}
    assert shown - {"treenail.raw_ops"} <= pages and "treenail" in pages
    index = (SOURCE / "docs/python/index.md").read_text(encoding="utf-8")
    assert all("\n%s\n" % page in index for page in pages)
