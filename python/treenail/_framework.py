# SPDX-License-Identifier: Apache-2.0
"""Graphs and what surrounds them: default graphs, name scopes, devices, control dependencies,
collections.

The graph itself lives in the compiled module; Graph adds the building context that Python code
steers. This context belongs to the graph and the thread, the stack of default graphs to the thread.
"""

from __future__ import annotations

import threading

from treenail import _treenail as _core
from treenail._checks import having
from treenail._devices import (ColocationContext, DeviceContext, DeviceFunctions, device_name,
                               merged_device)
from treenail._treenail import Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

_NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                             "_.-/\\>")


class GraphKeys:
    """Names of the collections that the library itself uses."""

    GLOBAL_VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    METRIC_VARIABLES = "metric_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    REGULARIZATION_LOSSES = "regularization_losses"
    LOSSES = "losses"
    UPDATE_OPS = "update_ops"
    TRAIN_OP = "train_op"
    GLOBAL_STEP = "global_step"
    ACTIVATIONS = "activations"
    WEIGHTS = "weights"
    BIASES = "biases"
    SAVERS = "savers"
    SAVEABLE_OBJECTS = "saveable_objects"
    SUMMARIES = "summaries"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    SUMMARY_OP = "summary_op"
    TABLE_INITIALIZERS = "table_initializer"
    ASSET_FILEPATHS = "asset_filepaths"
    QUEUE_RUNNERS = "queue_runners"
    # TensorFlow 1's older name.
    VARIABLES = "variables"


class _Restore:
    """A context manager that sets one attribute of a graph and puts the old value back."""

    __slots__ = ("_graph", "_attribute", "_value", "_old", "_given")

    def __init__(self, graph: Graph, attribute: str, value: str, given: Any) -> None:
        self._graph, self._attribute, self._value, self._given = graph, attribute, value, given

    def __enter__(self):
        self._old = getattr(self._graph, self._attribute)
        setattr(self._graph, self._attribute, self._value)
        return self._given

    def __exit__(self, *unused) -> None:
        setattr(self._graph, self._attribute, self._old)


class _NameScope:
    """A context manager that sets the name scope of a graph and puts the old one back. Of a long
    one it keeps the length alone where the new one lies within it: scopes nested n deep have names
    of n² characters together."""

    __slots__ = ("_graph", "_value", "_old")
    _LONG = 256

    def __init__(self, graph: Graph, value: str) -> None:
        self._graph, self._value = graph, value

    def __enter__(self) -> str:
        old, value = self._graph._scope, self._value
        self._graph._scope = value
        self._old: Any = old
        if len(old) > self._LONG and value.startswith(old):
            self._old, self._value = len(old), None
        return value

    def __exit__(self, *unused) -> None:
        old = self._old
        self._graph._scope = self._graph._scope[:old] if isinstance(old, int) else old


class _DefaultGraph:
    __slots__ = ("_graph",)

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __enter__(self) -> Graph:
        _core.push_default_graph(self._graph)
        return self._graph

    def __exit__(self, *unused) -> None:
        _core.pop_default_graph(self._graph)


class _ControlDependencies:
    __slots__ = ("_graph", "_inputs", "_old_scope")

    def __init__(self, graph: Graph, inputs) -> None:
        self._graph, self._inputs = graph, inputs
        self._old_scope = None

    def __enter__(self) -> _ControlDependencies:
        self._graph._push_controllers(self._inputs)
        return self

    def __exit__(self, *unused) -> None:
        self._graph._pop_controllers()


class _GradientMaps(threading.local):
    """Each thread's {op type: name of a gradient}."""

    def __init__(self) -> None:
        self.current: dict = {}


class _GradientOverrideMap:
    __slots__ = ("_graph", "_map", "_old")

    def __init__(self, graph: Graph, op_type_map: dict) -> None:
        self._graph, self._map = graph, op_type_map

    def __enter__(self) -> None:
        self._old = self._graph._gradient_maps.current
        self._set({**self._old, **self._map})

    def __exit__(self, *unused) -> None:
        self._set(self._old)

    def _set(self, op_type_map: dict) -> None:
        _core.set_gradient_map(self._graph, op_type_map)
        self._graph._gradient_maps.current = op_type_map


class NullContext:
    """A context manager that does nothing."""

    __slots__ = ("_value",)

    def __init__(self, value: Any = None) -> None:
        self._value = value

    def __enter__(self) -> Any:
        return self._value

    def __exit__(self, *unused) -> None:
        pass


class Graph(_core.GraphBase):
    """A dataflow graph: operations in creation order, each taking outputs of earlier ones.

    Every operation is added to the innermost graph of `with graph.as_default()`, or to the
    process-wide default graph. A graph may be built and run by several threads. Name scopes,
    devices, control dependencies, gradient overrides and variable scopes are each thread's own: a
    thread begins outside all of them. (TensorFlow 1 does so for variable scopes, and for the rest
    after Graph.switch_to_thread_local.)
    """

    _immediate = False  # whether this stands for immediate execution (_eager.py)

    def __init__(self) -> None:
        self._collections: dict = {}
        self._gradient_maps = _GradientMaps()
        self._device_functions = DeviceFunctions()
        self._next_op_seed = 0
        self._py_functions: list = []  # that operations of this graph call

    # --- Context ----------------------------------------------------------------------------------

    def as_default(self) -> _DefaultGraph:
        """A context manager in which this graph is the default one of the thread; while the body
        of one of its functions is built, that body stays it."""
        inner = get_default_graph()
        return _DefaultGraph(inner if inner._is_within(self) else self)

    @property
    def _root(self) -> Graph:
        """The graph that variables and collections belong to."""
        return self

    @property
    def _library(self) -> Graph:
        """The graph that holds the functions which this one calls."""
        return self

    def _is_within(self, graph: Graph) -> bool:
        """Whether this is the body of a function of `graph`, or of one within one."""
        return False

    def name_scope(self, name: str | None) -> _NameScope:
        """A context manager in which names of new operations begin with `name` and '/'.

        The prefix, made unique, is what `as` gives. A name that ends with '/' is taken as it is: a
        scope entered before. None or '' is the root. Raises ValueError for a name with other
        characters than letters, digits and _ . - / \\ >.
        """
        check_scope_type(name)
        if not name:
            scope = ""
        elif name[-1] == "/":
            scope = name
        else:
            _check_scope_name(name, bool(self._scope))
            scope = self._unique_name(name) + "/"
        return _NameScope(self, scope)

    def get_name_scope(self) -> str:
        """The current name scope, '' or 'a/b'."""
        return self._scope[:-1]

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` in the current scope, with a number appended where it is taken."""
        return self._unique_name(name, mark_as_used)

    def device(self, device_name_or_function: str | Callable | None) -> DeviceContext:
        """A context manager in which new operations ask for this device ('/cpu:0'); None: no
        wish, and none of the contexts around.

        A function is given each new operation and says its device; None leaves the one that the
        operation has. Of several contexts the innermost comes first: what it leaves open is taken
        from those around it.

        Raises InvalidArgumentError (a ValueError) on entering, or from the new operation, for what
        is no device name; whether there is such a device is found out when the operations run.
        """
        device, stack = device_name_or_function, self._device_functions.stack
        if callable(device):
            return DeviceContext(self, "", stack + ((device, self._device),))
        if device is None:
            return DeviceContext(self, "", ())
        return DeviceContext(self, merged_device(self._device, device_name(device)), stack)

    def _ask_for_devices_of(self, graph: Graph) -> None:
        """New operations ask for the device that those of `graph` ask for at this point."""
        DeviceContext(self, graph._device, graph._device_functions.stack).__enter__()

    def _choose_device(self, op: Operation) -> None:
        """Called for each new operation where functions choose devices."""
        for function, around in reversed(self._device_functions.stack):
            chosen = function(op)
            chosen = op.device if chosen is None else device_name(chosen)
            op._set_device(merged_device(around, chosen))

    def control_dependencies(self, control_inputs) -> _ControlDependencies:
        """A context manager in which new operations run after all of `control_inputs`.

        control_inputs: a list of operations, tensors or variables; None forgets the dependencies of
        the contexts around.
        """
        return _ControlDependencies(self, None if control_inputs is None else [
            c for c in _flat_list(control_inputs)])

    def gradient_override_map(self, op_type_map: dict) -> _GradientOverrideMap:
        """A context manager in which new operations of the given types take the gradient registered
        under another name.

        op_type_map: {op type: name given to RegisterGradient}.
        """
        if not isinstance(op_type_map, dict):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings, not %r"
                            % (op_type_map,))
        return _GradientOverrideMap(self, op_type_map)

    def container(self, container_name: str) -> _Restore:
        """A context manager in which the state that new operations name (variables, queues,
        tables, staging areas) is that of this container; "" is the default one.

        Equal names in different containers are different state. tn.Session.reset() clears the
        containers of a cluster by name.
        """
        if not isinstance(container_name, str):
            raise TypeError("container_name must be a str, but got %r" % (container_name,))
        return _Restore(self, "_container", container_name, container_name)

    def colocate_with(self, op, ignore_existing: bool = False) -> ColocationContext:
        """A context manager in which new operations run on the device on which `op` runs.

        op: an operation, tensor or variable of this graph; of another graph (around a function's
        body) or of what runs at once the device that it asks for counts alone. Contexts within one
        another add up, unless ignore_existing. The new operations ask for the device that `op` asks
        for, whatever the contexts around ask for. One that then asks for another, or is colocated
        with operations that do, is refused when it runs, also under soft placement.
        """
        around = "" if ignore_existing else self._device
        device = getattr(op, "device", "") or ""
        owner = None if self._immediate else getattr(op, "op", op)
        if not isinstance(owner, Operation) or owner.graph is not self:
            return ColocationContext(self, device or around, self._colocated,
                                     self._device_functions.stack)
        beside = () if ignore_existing else self._colocated
        return ColocationContext(self, device, beside + (owner.name,), ())

    # --- Operations -------------------------------------------------------------------------------

    def create_op(self, op_type: str, inputs: Sequence = (), attrs: dict | None = None,
                  name: str | None = None, control_inputs: Sequence | None = None) -> Operation:
        """Adds an operation. A list argument of the op takes a list; values are converted to
        constants.

        Raises NotFoundError for an unknown op, InvalidArgumentError (a ValueError) for types,
        attributes and shapes that do not fit, TypeError for values that do not convert.
        """
        return _core.create_op(self, op_type, inputs, attrs, name, control_inputs)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name. Raises KeyError when there is none."""
        if not isinstance(name, str):
            raise TypeError("Operation names are strings (or similar), not %s."
                            % type(name).__name__)
        op = self._find_operation(name)
        if op is None:
            raise KeyError("The name %r refers to an Operation not in the graph." % name)
        return op

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor 'operation:number'. Raises KeyError when there is none, ValueError for another
        form of name.

        The name of a variable gives its value: the read that was made with it.
        """
        return self.as_graph_element(name, allow_tensor=True, allow_operation=False)

    def as_graph_element(self, obj: Any, allow_tensor: bool = True,
                         allow_operation: bool = True) -> Tensor | Operation:
        """The Tensor or Operation that `obj` (one of them, a variable, or a name) stands for in
        this graph.

        Raises TypeError (another kind of object), ValueError (another graph, a malformed name) or
        KeyError (no such name).
        """
        if isinstance(obj, str):
            return self._element_by_name(obj, allow_tensor, allow_operation)
        if hasattr(obj, "__treenail_tensor__"):
            obj = obj.__treenail_tensor__()
        if isinstance(obj, Tensor) and allow_tensor or isinstance(obj,
                                                                  Operation) and allow_operation:
            if obj.graph is not self:
                raise ValueError("%r is not an element of this graph." % (obj,))
            return obj
        kinds = ["Tensor"] * bool(allow_tensor) + ["Operation"] * bool(allow_operation)
        raise TypeError("Can not convert a %s into a %s." % (type(obj).__name__,
                                                             " or ".join(kinds)))

    def _element_by_name(self, name: str, allow_tensor: bool,
                         allow_operation: bool) -> Tensor | Operation:
        if ":" not in name:
            if not allow_operation:
                raise ValueError("The name %r looks like an (invalid) Operation name, not a "
                                 "Tensor. Tensor names must be of "
                                 "the form \"<op_name>:<output_index>\"." % name)
            return self.get_operation_by_name(name)
        if not allow_tensor:
            raise ValueError("Name %r appears to refer to a Tensor, not a Operation." % name)
        op_name, _, number = name.rpartition(":")
        if not number.isdigit():
            raise ValueError("The name %r looks a like a Tensor name, but is not a valid one. "
                             "Tensor names must be of the form \"<op_name>:<output_index>\"."
                             % name)
        op = self._find_operation(op_name)
        if op is None:
            raise KeyError("The name %r refers to a Tensor which does not exist. The operation, "
                           "%r, does not exist in the graph." % (name, op_name))
        if int(number) >= len(op.outputs):
            raise KeyError("The name %r refers to a Tensor which does not exist. The operation, "
                           "%r, exists but only has %s outputs."
                           % (name, op_name, len(op.outputs)))
        read = self._read_of(op) if op.type == "VarHandleOp" else None
        return op.outputs[int(number)] if read is None else read

    def _read_of(self, handle: Operation) -> Tensor | None:
        """The read made with a variable, in the scope of its name; None where there is none."""
        read = self._find_operation(handle.name + "/read")
        if read is None or read.type != "ReadVariableOp" or read.inputs[0].op is not handle:
            return None
        return read.outputs[0]

    def is_feedable(self, tensor: Tensor) -> bool:
        """Whether a run may be given a value for `tensor`."""
        return having(tensor, "dtype", "tensor", "a Tensor").dtype != _core.resource

    def is_fetchable(self, tensor_or_op) -> bool:
        """Whether a run may be asked for it: True."""
        return True

    def save(self, path: Any) -> None:
        """Writes the graph to a file for tn.load_graph; values of variables are in checkpoints
        (tn.train.Saver).

        The file appears under its name only when it is complete. Raises NotFoundError (no such
        directory), PermissionDeniedError, ResourceExhaustedError (disk full).
        """
        _core.save_graph(self, path)

    # --- Collections ------------------------------------------------------------------------------

    def add_to_collection(self, name: str, value: Any) -> None:
        """Appends `value` to the collection `name`."""
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: str | Sequence[str], value: Any) -> None:
        """Appends `value` to each of these collections."""
        for name in (names,) if isinstance(names, str) else dict.fromkeys(names or ()):
            self.add_to_collection(name, value)

    def get_collection(self, name: str, scope: str | None = None) -> list:
        """A copy of the collection; with `scope`, the items whose name begins with that regular
        expression."""
        items = self._collections.get(name, [])
        if scope is None:
            return list(items)
        import re
        pattern = re.compile(scope)
        return [item for item in items if hasattr(item, "name") and pattern.match(item.name)]

    def get_collection_ref(self, name: str) -> list:
        """The collection itself: changes of this list change the collection."""
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list:
        """The names of all collections."""
        return list(self._collections)

    @property
    def collections(self) -> list:
        """The names of all collections."""
        return list(self._collections)

    def clear_collection(self, name: str) -> None:
        """Empties the collection `name`."""
        self._collections.pop(name, None)

    def _set_seed(self, seed: int | None) -> None:
        self.seed = seed

    def _op_seed(self) -> int:
        """The seed of the next random operation that states none: how many operations there are, as
        in TensorFlow 1."""
        return self._num_nodes

    def __repr__(self) -> str:
        count = self._num_nodes
        return "<tn.Graph of %d operation%s>" % (count, "" if count == 1 else "s")


def _flat_list(values) -> list:
    if isinstance(values, (list, tuple, set, frozenset)):
        result: list = []
        for value in values:
            result.extend(_flat_list(value))
        return result
    return [values]


def check_scope_type(name: Any) -> None:
    """Raises TypeError for what is neither a str nor None."""
    if name is not None and not isinstance(name, str):
        raise TypeError("a scope name must be a str, not %r of type '%s'"
                        % (name, type(name).__name__))


def _check_scope_name(name: str, inside: bool) -> None:
    first = name[0]
    if not _NAME_CHARACTERS.issuperset(name) or (
            not inside and not (first.isalnum() or first in "._")):
        raise ValueError("'%s' is not a valid scope name: needed are letters, digits and _ . - / "
                         "\\ >, beginning with a letter, a digit, . or _" % name)


# --- Functions on the default graph ---------------------------------------------------------------

get_default_graph = _core.get_default_graph
reset_default_graph = _core.reset_default_graph
executing_eagerly = _core.executing_eagerly


class name_scope:  # noqa: N801 (TensorFlow's name)
    """A context manager for names of new operations: `with tn.name_scope("layer1") as scope:`.

    name: the scope; None takes `default_name`. values: tensors whose graph is meant; without any,
    the default graph.
    """

    __slots__ = ("_name", "_values", "_default", "_contexts")

    def __init__(self, name: str | None, default_name: str | None = None,
                 values: Sequence | None = None) -> None:
        self._name = default_name if name is None else name
        check_scope_type(self._name)
        self._values = values
        self._default = default_name
        if self._name is None and values is not None:
            raise ValueError("At least one of name (%s) and default_name (%s) must be provided."
                             % (name, default_name))

    def __enter__(self) -> str:
        graph = graph_of(self._values) if self._values else get_default_graph()
        self._contexts = (graph.as_default(), graph.name_scope(self._name))
        self._contexts[0].__enter__()
        try:
            return self._contexts[1].__enter__()
        except BaseException:
            self._contexts[0].__exit__(None, None, None)
            raise

    def __exit__(self, *unused) -> None:
        self._contexts[1].__exit__()
        self._contexts[0].__exit__()


class init_scope:  # noqa: N801 (TensorFlow's name)
    """A context manager outside of all function bodies, control dependencies and scopes of mixed
    precision: what is added there runs whether or not a branch or loop around does, as the initial
    values of variables."""

    __slots__ = ("_contexts",)

    def __enter__(self) -> None:
        root = get_default_graph()._root
        self._contexts = (_DefaultGraph(root), root.control_dependencies(None))
        for context in self._contexts:
            context.__enter__()
        _core.enter_precision(None)

    def __exit__(self, *unused) -> None:
        _core.leave_precision()
        for context in reversed(self._contexts):
            context.__exit__(*unused)


def graph_of(values) -> Graph:
    """The graph of the first tensor among `values` (nested lists allowed), else the default graph;
    with immediate execution that stands for one."""
    default = get_default_graph()
    if default._immediate:
        return default
    for value in _flat_list(values):
        if not isinstance(value, (int, float, str)):
            graph = getattr(value, "graph", None)
            if isinstance(graph, Graph):
                return graph
    return default


def device(device_name_or_function: str | Callable | None) -> DeviceContext:
    """`get_default_graph().device(...)`."""
    return get_default_graph().device(device_name_or_function)


def control_dependencies(control_inputs) -> _ControlDependencies:
    """`get_default_graph().control_dependencies(...)`."""
    return get_default_graph().control_dependencies(control_inputs)


def container(container_name: str) -> _Restore:
    """`get_default_graph().container(...)`."""
    return get_default_graph().container(container_name)


def colocate_with(op, ignore_existing: bool = False) -> ColocationContext:
    """`get_default_graph().colocate_with(...)`."""
    return get_default_graph().colocate_with(op, ignore_existing)


def add_to_collection(name: str, value: Any) -> None:
    """`get_default_graph().add_to_collection(...)`."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names, value: Any) -> None:
    """`get_default_graph().add_to_collections(...)`."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: str, scope: str | None = None) -> list:
    """`get_default_graph().get_collection(...)`."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: str) -> list:
    """`get_default_graph().get_collection_ref(...)`."""
    return get_default_graph().get_collection_ref(key)


def set_random_seed(seed: int | None) -> None:
    """Sets the graph-level seed of the default graph, from which operations without a seed of their
    own derive theirs.

    None takes it away again: every session then draws other numbers. In immediate execution every
    operation then begins anew, within functions traced before as well, which keep the seeds that
    they were traced with.
    """
    try:
        get_default_graph()._set_seed(seed)
    except OverflowError:
        raise ValueError("seed must fit into 64 bits, got %r" % (seed,)) from None


def get_seed(op_seed: int | None) -> tuple:
    """The two seeds a random operation gets, from the graph-level and its own one, as in TensorFlow
    1.

    (None, None) when neither is set: random numbers differ between sessions.
    """
    graph = get_default_graph()
    graph_seed = graph.seed
    default_graph_seed = 87654321
    if graph_seed is not None:
        if op_seed is None:
            op_seed = graph._op_seed()
        seeds = graph_seed, op_seed
    elif op_seed is not None:
        seeds = default_graph_seed, op_seed
    else:
        return None, None
    # (0, 0) means "no seed" to the operations.
    seeds = tuple(_as_seed(seed) for seed in seeds)
    return (0, 2**31 - 1) if seeds == (0, 0) else seeds


def _as_seed(seed: Any) -> int:
    from operator import index
    try:
        return index(seed) % (2**31 - 1)
    except TypeError:
        raise TypeError("a seed must be an int, not %r" % (seed,)) from None
