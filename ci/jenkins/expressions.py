# SPDX-License-Identifier: Apache-2.0
"""The expressions that a Jenkinsfile may use here: checked when it is read, computed when it runs.

Constants, "text with ${...}", lists, params.NAME, env.NAME, currentBuild.currentResult, plain names
of the environment, and == != in && || ! +. Whatever else Groovy has is refused by name, as is a
parameter that nobody declares; so a Jenkinsfile that was read cannot stop in its middle over a slip
of the pen.
"""

import json
from typing import Any, Callable, Container, Dict

from syntax import Node, Refused, refuse

RESULT = "currentBuild.currentResult"
_BINARY: Dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "in": lambda a, b: a in b if isinstance(b, list) else a == b,
    "&&": lambda a, b: truth(a) and truth(b), "||": lambda a, b: truth(a) or truth(b),
    "+": lambda a, b: text_of(a) + text_of(b)}


def truth(value: Any) -> bool:
    """Groovy's: nothing, zero and what is empty are false."""
    return bool(value)


def text_of(value: Any) -> str:
    """As Groovy turns a value into text."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[%s]" % ", ".join(map(text_of, value))
    return str(value)


def check(node: Node, path: str, parameters: Container[str]) -> Node:
    """The node itself; raises Refused where it holds what `value` would not know."""
    def bad(text: str) -> Refused:
        return refuse(path, node["line"], text)

    kind = node["kind"]
    if kind == "gstring":
        for part in node["parts"]:
            if not isinstance(part, str):
                check(part, path, parameters)
    elif kind == "list":
        for item in node["items"]:
            check(item, path, parameters)
    elif kind == "not":
        check(node["of"], path, parameters)
    elif kind == "binary":
        if node["op"] not in _BINARY:
            raise bad("the operator '%s' is not one of %s" % (node["op"], " ".join(_BINARY)))
        check(node["left"], path, parameters)
        check(node["right"], path, parameters)
    elif kind == "property":
        of = node["of"]
        if source(node) != RESULT and (of["kind"] != "variable" or of["name"] not in (
                "params", "env")):
            raise bad("'%s': only params.NAME, env.NAME and %s are known" % (source(node), RESULT))
        if of["name"] == "params" and node["name"] not in parameters:
            raise bad("params.%s: no such parameter is declared" % node["name"])
    elif kind == "call":
        raise bad("'%s' is called: an expression here calls nothing" % node["name"])
    elif kind not in ("constant", "variable"):
        raise bad("%s is no expression that ci/run-jenkinsfile knows" % (
            node.get("what") or "a " + kind))
    return node


def value(node: Node, path: str, parameters: Dict[str, Any], environment: Dict[str, str],
          result: str) -> Any:
    """The value of a checked node; `result`: of the build so far. A name that the environment lacks
    is an error, as in Jenkins."""
    def inner(other: Node) -> Any:
        return value(other, path, parameters, environment, result)

    kind = node["kind"]
    if kind == "constant":
        return node["value"]
    if kind == "gstring":
        return "".join(part if isinstance(part, str) else text_of(inner(part))
                       for part in node["parts"])
    if kind == "list":
        return [inner(item) for item in node["items"]]
    if kind == "not":
        return not truth(inner(node["of"]))
    if kind == "binary":
        if node["op"] in ("&&", "||") and truth(inner(node["left"])) == (node["op"] == "||"):
            return node["op"] == "||"
        return _BINARY[node["op"]](inner(node["left"]), inner(node["right"]))
    if kind == "property":
        if node["of"]["name"] == "params":
            return parameters[node["name"]]
        if node["of"]["name"] == "currentBuild":
            return result
        return environment.get(node["name"])  # env.NAME of nothing is null
    if node["name"] not in environment:
        raise refuse(path, node["line"], "no such property: %s" % node["name"])
    return environment[node["name"]]


def source(node: Node) -> str:
    """The expression as one would write it."""
    kind = node["kind"]
    if kind == "constant":
        value = node["value"]
        return "'%s'" % value if isinstance(value, str) else json.dumps(value)
    if kind == "gstring":
        return '"%s"' % "".join(part if isinstance(part, str) else "${%s}" % source(part)
                                for part in node["parts"])
    if kind == "list":
        return "[%s]" % ", ".join(map(source, node["items"]))
    if kind == "not":
        return "!(%s)" % source(node["of"])
    if kind == "binary":
        return "%s %s %s" % (_operand(node["left"]), node["op"], _operand(node["right"]))
    if kind == "property":
        return "%s.%s" % (source(node["of"]), node["name"])
    return node.get("name") or node.get("what") or kind


def _operand(node: Node) -> str:
    nested = node["kind"] == "binary" and node["op"] in ("&&", "||")
    return "(%s)" % source(node) if nested else source(node)
