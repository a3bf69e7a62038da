# SPDX-License-Identifier: Apache-2.0
"""What operations, files and sessions raise: one class per canonical error code.

Where Python has a class for the same mistake, the class here is one of its kind too:
InvalidArgumentError is a ValueError, NotFoundError a LookupError, and so on. The text of an error
that names an operation ends with the place in the program where that operation was created.
"""

from __future__ import annotations

# Nothing is imported where it is needed: the first error may be raised while the process forks, and
# a child that finds a module half imported by a thread of its parent waits for it forever. And
# nothing that costs: this is a part of every import of the package.
import itertools as _itertools
import sys as _sys

from treenail._names import no_attribute as _no_attribute

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


def _line_of(file_name: str, number: int) -> str:
    getline = getattr(_sys.modules.get("linecache"), "getline", None)
    if getline is not None:  # it knows what was typed into a notebook, too
        return getline(file_name, number)
    try:
        with open(file_name, encoding="utf-8", errors="replace") as stream:
            return next(_itertools.islice(stream, max(number - 1, 0), None), "")
    except OSError:
        return ""


def _named_node(message: str) -> tuple[str, str] | None:
    """The op and the name of the first node that the text names: [MatMul node "h1/MatMul"]."""
    for part in message.split("[")[1:]:
        op, said, rest = part.partition(' node "')
        name, end, _ = rest.partition('"]')
        if said and op.isidentifier() and name and end and '"' not in name:
            return op, name
    return None


def _creation_lines(op) -> list[str]:
    lines = []
    for file_name, line_number, function in op._creation:
        lines.append('  File "%s", line %d, in %s' % (file_name, line_number, function))
        source = _line_of(file_name, line_number).strip()
        if source:
            lines.append("    " + source)
    return lines


class OpError(Exception):
    """The base of all errors of this module.

    message: what was given and what is needed. op: the Operation that failed, or None. node_def:
    its name, or None. error_code: the canonical number.
    """

    def __init__(self, node_def, op, message: str, error_code: int) -> None:
        super().__init__(message)
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = error_code

    @property
    def message(self) -> str:
        """The text, without the place of creation."""
        return self._message

    @property
    def op(self):
        """The Operation that failed, where it is known."""
        return self._op

    @property
    def node_def(self):
        """The name of the operation that failed, where it is known."""
        return self._node_def

    @property
    def error_code(self) -> int:
        """The canonical error code, such as INVALID_ARGUMENT."""
        return self._error_code

    def __str__(self) -> str:
        lines = _creation_lines(self._op) if self._op is not None else []
        if not lines:
            return self._message
        return "%s\n\nop '%s' was created at:\n%s" % (self._message, self._op.name,
                                                      "\n".join(lines))

    def __reduce__(self):
        return _rebuild, (type(self), self._node_def, self._message, self._error_code)


def _rebuild(cls, node_def, message, code):
    return OpError(node_def, None, message, code) if cls is OpError else cls(node_def, None,
                                                                             message)


def _error_class(name: str, code: int, bases: tuple, doc: str):
    def __init__(self, node_def, op, message: str) -> None:
        OpError.__init__(self, node_def, op, message, code)
    return type(name, bases, {"__init__": __init__, "__doc__": doc, "__module__": __name__})


CancelledError = _error_class("CancelledError", CANCELLED, (OpError,),
                              "The run was cancelled: the session was closed.")
UnknownError = _error_class("UnknownError", UNKNOWN, (OpError,), "An error of unknown kind.")
InvalidArgumentError = _error_class("InvalidArgumentError", INVALID_ARGUMENT, (OpError, ValueError),
                                    "A value, shape, dtype or name that makes no sense.")
DeadlineExceededError = _error_class("DeadlineExceededError", DEADLINE_EXCEEDED,
                                     (OpError, TimeoutError), "The time given for a run is over.")
NotFoundError = _error_class("NotFoundError", NOT_FOUND, (OpError, LookupError),
                             "A file, tensor, node or op that does not exist.")
AlreadyExistsError = _error_class("AlreadyExistsError", ALREADY_EXISTS, (OpError,),
                                  "What was to be made exists already.")
PermissionDeniedError = _error_class("PermissionDeniedError", PERMISSION_DENIED,
                                     (OpError, PermissionError),
                                     "The system refuses access to a file.")
ResourceExhaustedError = _error_class("ResourceExhaustedError", RESOURCE_EXHAUSTED,
                                      (OpError, MemoryError),
                                      "Out of memory, or out of disk space.")
FailedPreconditionError = _error_class(
    "FailedPreconditionError", FAILED_PRECONDITION, (OpError, RuntimeError),
    "The state does not allow it: an uninitialised variable, a finalized graph, a closed session.")
AbortedError = _error_class("AbortedError", ABORTED, (OpError,),
                            "Given up because of another's doing.")
OutOfRangeError = _error_class("OutOfRangeError", OUT_OF_RANGE, (OpError,),
                               "Beyond the valid range: the end of the input.")
UnimplementedError = _error_class(
    "UnimplementedError", UNIMPLEMENTED, (OpError, NotImplementedError),
    "No kernel, no gradient, or a library that is not installed.")
InternalError = _error_class("InternalError", INTERNAL, (OpError,), "A mistake in Treenail itself.")
UnavailableError = _error_class("UnavailableError", UNAVAILABLE, (OpError,),
                                "A service that cannot be reached now.")
DataLossError = _error_class("DataLossError", DATA_LOSS, (OpError,),
                             "A truncated, altered or foreign file.")
UnauthenticatedError = _error_class("UnauthenticatedError", UNAUTHENTICATED, (OpError,),
                                    "No valid credentials.")

_CLASS_OF_CODE = {CANCELLED: CancelledError, UNKNOWN: UnknownError,
                  INVALID_ARGUMENT: InvalidArgumentError, DEADLINE_EXCEEDED: DeadlineExceededError,
                  NOT_FOUND: NotFoundError, ALREADY_EXISTS: AlreadyExistsError,
                  PERMISSION_DENIED: PermissionDeniedError,
                  RESOURCE_EXHAUSTED: ResourceExhaustedError,
                  FAILED_PRECONDITION: FailedPreconditionError, ABORTED: AbortedError,
                  OUT_OF_RANGE: OutOfRangeError, UNIMPLEMENTED: UnimplementedError,
                  INTERNAL: InternalError, UNAVAILABLE: UnavailableError, DATA_LOSS: DataLossError,
                  UNAUTHENTICATED: UnauthenticatedError}
_CODE_OF_CLASS = {cls: code for code, cls in _CLASS_OF_CODE.items()}


def exception_type_from_error_code(error_code: int) -> type:
    """The class of a canonical error code. Raises KeyError for a number that is none."""
    try:
        return _CLASS_OF_CODE[error_code]
    except (KeyError, TypeError):
        raise KeyError("exception_type_from_error_code(): no error has the code %r; needed is one "
                       "of 1 to 16" % (error_code,)) from None


def error_code_from_exception_type(cls: type) -> int:
    """The canonical error code of a class of this module. Raises KeyError for another class."""
    try:
        return _CODE_OF_CLASS[cls]
    except (KeyError, TypeError):
        raise KeyError("error_code_from_exception_type(): %r is no class of tn.errors with a code"
                       % (cls,)) from None


def _call_around(graph, name: str):
    """The call in whose place the node "call/function/node" of a body stands, or None."""
    while "/" in name:
        name = name.rpartition("/")[0]
        op = graph._find_operation(name)
        if op is not None and op.type.endswith("PartitionedCall"):
            return op
    return None


def _make_error(code: int, message: str, graph) -> OpError:
    """Called by the compiled module; `graph` is where a node that the message names may live."""
    op_type, name = _named_node(message) or ("", None)
    op = graph._find_operation(name) if graph is not None and name else None
    # What a session adds (_Copy) bears the name of the operation that it stands beside.
    if op is not None and op.type != op_type and op_type[0] != "_":
        op = None  # the node was never added: another one has the name it asked for
    if op is None and graph is not None and name:
        op = _call_around(graph, name)
    cls = _CLASS_OF_CODE.get(code)
    if cls is None:
        return OpError(name, op, message, code)
    return cls(name, op, message)


__all__ = ["OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
           "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
           "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
           "UNAUTHENTICATED", "OpError", "exception_type_from_error_code",
           "error_code_from_exception_type"]
__all__ += [cls.__name__ for cls in _CODE_OF_CLASS]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)
