# SPDX-License-Identifier: Apache-2.0
"""Variables: tensors that keep their value between runs of a session.

In the graph a variable is a handle (VarHandleOp), an assignment of the initial value and a read.
Used as a tensor it means its value: outside of control_dependencies the one read made with the
variable, which a run does before later writes of the same run; inside, a read made there.
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._checks import having
from treenail._control import group, no_op
from treenail._convert import IndexedSlices, convert_to_tensor, scope_of
from treenail._framework import Graph, GraphKeys, get_default_graph, init_scope
from treenail._ops import ops
from treenail._replica import checked_wishes
from treenail._replica import current as _current
from treenail._shape import TensorShape
from treenail._slicing import assign_item
from treenail._treenail import DType, Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


class Variable:
    """A tensor that keeps its value between runs.

    initial_value: a value, a tensor, or a function that gives one. trainable: whether optimizers
    change it by default. collections: names of graph collections, by default GLOBAL_VARIABLES.
    validate_shape: whether later values must have the initial value's shape. name: made unique.
    dtype: the initial value is converted. constraint: a function applied by optimizers to the value
    after each update. synchronization, aggregation: of tn.VariableSynchronization and
    tn.VariableAggregation; what a strategy of tn.distribute does where replicas assign to it.
    """

    __array_priority__ = 100
    _slice_info: Any = None  # of a part: where it stands in the whole (_partitioned.py)

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A variable of the graph, or of immediate execution where that is on."""
        if cls is Variable and get_default_graph()._root._immediate:
            from treenail._immediate_variables import ImmediateVariable
            return object.__new__(ImmediateVariable)
        if cls is Variable and _current.strategy is not None:
            return _current.strategy.extended._new_variable(
                kwargs.get("name", args[5] if len(args) > 5 else None))
        return object.__new__(cls)

    def __init__(self, initial_value: Any = None, trainable: bool = True,
                 collections: Sequence | None = None, validate_shape: bool = True,
                 caching_device: Any = None, name: str | None = None, variable_def: Any = None,
                 dtype: Any = None, expected_shape: Any = None, import_scope: Any = None,
                 constraint: Callable | None = None, use_resource: bool | None = None,
                 synchronization: Any = None, aggregation: Any = None) -> None:
        checked_wishes(synchronization, aggregation)
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        graph = get_default_graph()._root
        with init_scope():
            full_name = graph.unique_name(name or "Variable", mark_as_used=False)
            with graph.name_scope(full_name + "/"):
                initial_value = self._initial_tensor(initial_value, dtype)
            shape = initial_value.shape if validate_shape else TensorShape(None)
            if validate_shape and expected_shape is not None:
                shape = shape.merge_with(expected_shape)
            self._handle = ops.VarHandleOp(dtype=initial_value.dtype, shape=shape, name=full_name
                                           + "/")
            with graph.name_scope(full_name + "/"):
                self._initializer = ops.AssignVariableOp(self._handle, initial_value, name="Assign")
                self._snapshot = ops.ReadVariableOp(self._handle, dtype=initial_value.dtype,
                                                    name="read")
        self._handle._variable = self
        self._graph, self._initial_value, self._shape = graph, initial_value, shape
        self._dtype = initial_value.dtype
        self._trainable = bool(trainable)
        self._constraint = constraint
        names = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
        if trainable and GraphKeys.TRAINABLE_VARIABLES not in names:
            names.append(GraphKeys.TRAINABLE_VARIABLES)
        graph.add_to_collections(names, self)

    @staticmethod
    def _initial_tensor(value: Any, dtype: Any) -> Tensor:
        if callable(value):
            with scope_of(None, "Initializer"):
                value = value()
        return convert_to_tensor(value, dtype, name="initial_value")

    @classmethod
    def _from_operations(cls, handle_op: Operation) -> Variable | None:
        """The variable of a handle in a loaded graph, or None when its assignment or read is not
        there."""
        graph, name = handle_op.graph, handle_op.name
        assign, read = graph._find_operation(name + "/Assign"), graph._find_operation(name
                                                                                      + "/read")
        types = [getattr(op, "type", None) for op in (assign, read)]
        if types != ["AssignVariableOp", "ReadVariableOp"]:
            return None
        self = object.__new__(cls)
        self._graph = graph
        self._handle = handle_op.outputs[0]
        self._initializer = assign
        self._snapshot = read.outputs[0]
        self._initial_value, self._dtype = assign.inputs[1], self._snapshot.dtype
        self._shape, self._trainable, self._constraint = self._snapshot.shape, False, None
        return self

    # --- What it is -------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The variable's name, 'scope/name:0'."""
        return self._handle.name

    @property
    def _shared_name(self) -> str:
        return self._handle.op.name

    @property
    def handle(self) -> Tensor:
        """The resource tensor that operations on the variable take."""
        return self._handle

    @property
    def op(self) -> Operation:
        """The operation that gives the handle."""
        return self._handle.op

    @property
    def graph(self) -> Graph:
        """The graph the variable belongs to."""
        return self._graph

    @property
    def device(self) -> str:
        """The requested device, or ''."""
        return self._handle.device

    @property
    def dtype(self) -> DType:
        """The dtype of the value."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """What is known of the value's shape."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self._shape

    @property
    def trainable(self) -> bool:
        """Whether optimizers change it by default."""
        return self._trainable

    @property
    def constraint(self) -> Callable | None:
        """The function that optimizers apply to the value after an update."""
        return self._constraint

    @property
    def initializer(self) -> Operation:
        """The operation that assigns the initial value."""
        return self._initializer

    @property
    def initial_value(self) -> Tensor:
        """The tensor whose value the initializer assigns."""
        return self._initial_value

    def initialized_value(self) -> Tensor:
        """The value, or where the variable has none yet its initial value: for use in another
        variable's initial value, whether one run initialises both or an earlier one this."""
        graph = self._graph
        with graph.as_default(), graph.control_dependencies(None), graph.name_scope(
                self._handle.op.name + "/"):
            return ops.InitializedValue(self._handle, self._initial_value)

    # --- Reading ----------------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Not in graphs: TypeError."""
        raise TypeError("Cannot convert the Variable %s of a graph to a numpy array: run it in a "
                        "Session." % self.name)

    def value(self) -> Tensor:
        """The value: one read shared by all uses, or inside control_dependencies a read made
        there."""
        if self._graph._has_controllers() or get_default_graph()._is_within(self._graph):
            return self.read_value()
        return self._snapshot

    def read_value(self) -> Tensor:
        """A new read of the value, in the current control dependencies."""
        with self._graph.as_default() as graph, graph.name_scope(None):
            return ops.ReadVariableOp(self._handle, dtype=self._dtype, name=self._shared_name
                                      + "/Read")

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """The rows of the value at `indices`; its gradient is IndexedSlices."""
        with scope_of(name, "Gather", [self._handle]) as scope:
            return ops.ResourceGather(self._handle, indices, dtype=self._dtype, name=scope)

    def __treenail_tensor__(self) -> Tensor:
        return self.value()

    def __treenail_fetch__(self) -> tuple:
        return self._snapshot, lambda value: value

    def eval(self, session: Any = None) -> Any:
        """The value in `session`, by default the one of the surrounding `with`."""
        return self._snapshot.eval(session=session)

    # --- Writing ----------------------------------------------------------------------------------

    def _written(self, op_name: str, value: Any, name: str | None, default: str,
                 read_value: bool) -> Any:
        with self._graph.as_default():
            value = convert_to_tensor(value, self._dtype)
            if not self._shape.is_compatible_with(value.shape):
                raise ValueError("Shapes %s of variable %s and %s of the value are incompatible"
                                 % (self._shape, self._shared_name, value.shape))
            op = getattr(ops, op_name)(self._handle, value, name=name or default)
            return self._read_after(op) if read_value else op

    def _read_after(self, op: Operation) -> Tensor:
        with op.graph.name_scope(None), op.graph.control_dependencies([op]):
            return ops.ReadVariableOp(self._handle, dtype=self._dtype, name=op.name + "/read")

    def _admit_all_shapes(self) -> None:
        self._handle.op._set_shape_attr("shape", None)
        self._shape = TensorShape(None)

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None,
               read_value: bool = True) -> Any:
        """Gives the variable a new value; the result is that value, read after the write (or the
        write, unless read_value)."""
        return self._written("AssignVariableOp", value, name, "Assign", read_value)

    def assign_add(self, delta: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Any:
        """Adds to the value; the result is the new value."""
        return self._written("AssignAddVariableOp", delta, name, "AssignAdd", read_value)

    def assign_sub(self, delta: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Any:
        """Subtracts from the value; the result is the new value."""
        return self._written("AssignSubVariableOp", delta, name, "AssignSub", read_value)

    def _scattered(self, op_name: str, slices: IndexedSlices, name: str | None) -> Tensor:
        if not isinstance(slices, IndexedSlices):
            raise ValueError("slices is not an IndexedSlices: %s" % (slices,))
        with self._graph.as_default():
            values = convert_to_tensor(slices.values, self._dtype)
            return self._read_after(getattr(ops, op_name)(self._handle, slices.indices, values,
                                                          name=name))

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False,
                    name: str | None = None) -> Tensor:
        """Adds to rows of the value; the result is the new value."""
        return self._scattered("ResourceScatterAdd", sparse_delta, name)

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False,
                    name: str | None = None) -> Tensor:
        """Subtracts from rows of the value; the result is the new value."""
        return self._scattered("ResourceScatterSub", sparse_delta, name)

    def count_up_to(self, limit: int) -> Tensor:
        """Adds one and gives the value before; OutOfRangeError when that is `limit`."""
        return ops.ResourceCountUpTo(self.handle, limit=limit, T=self.dtype)

    def scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False,
                       name: str | None = None) -> Tensor:
        """Replaces rows of the value; the result is the new value."""
        return self._scattered("ResourceScatterUpdate", sparse_delta, name)

    def scatter_mul(self, sparse_delta: IndexedSlices, use_locking: bool = False,
                    name: str | None = None) -> Tensor:
        """Multiplies rows of the value; the result is the new value."""
        return self._scattered("ResourceScatterMul", sparse_delta, name)

    def scatter_min(self, sparse_delta: IndexedSlices, use_locking: bool = False,
                    name: str | None = None) -> Tensor:
        """Lowers rows of the value to at most what is given; the result is the new value."""
        return self._scattered("ResourceScatterMin", sparse_delta, name)

    def scatter_max(self, sparse_delta: IndexedSlices, use_locking: bool = False,
                    name: str | None = None) -> Tensor:
        """Raises rows of the value to at least what is given; the result is the new value."""
        return self._scattered("ResourceScatterMax", sparse_delta, name)

    def _scattered_nd(self, op_name: str, indices: Any, updates: Any, name: str | None) -> Tensor:
        with self._graph.as_default():
            updates = convert_to_tensor(updates, self._dtype)
            return self._read_after(getattr(ops, op_name)(self._handle, indices, updates,
                                                          name=name))

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """Replaces what stands at `indices` [..., k], which address the first k axes, by `updates`
        [..., shape[k:]]; the result is the new value."""
        return self._scattered_nd("ResourceScatterNdUpdate", indices, updates, name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """Adds `updates` at `indices`, as scatter_nd_update; the result is the new value."""
        return self._scattered_nd("ResourceScatterNdAdd", indices, updates, name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """Subtracts `updates` at `indices`, as scatter_nd_update; the result is the new value."""
        return self._scattered_nd("ResourceScatterNdSub", indices, updates, name)

    def load(self, value: Any, session: Any = None) -> None:
        """Assigns a concrete value in `session` without adding to the graph."""
        from treenail._session import session_or_default
        session_or_default(session).run(self._initializer, {self._initializer.inputs[1]: value})

    def __getitem__(self, key: Any) -> Tensor:
        """The part of the value; its assign(value) writes to that part of the variable."""
        part = self.value()[key]

        def assign(value: Any, name: str | None = None) -> Tensor:
            """Writes `value`, which has the shape of this part, to the variable; the result is the
            variable's new value."""
            with self._graph.as_default():
                value = convert_to_tensor(value, self._dtype)
                return self._read_after(assign_item(self._handle, key, value, name))
        part.assign = assign
        return part

    def __iter__(self):
        raise TypeError("'Variable' object is not iterable.")

    def __bool__(self) -> bool:
        return bool(self._snapshot)

    def __repr__(self) -> str:
        return "<tn.Variable '%s' shape=%s dtype=%s>" % (self.name, self._shape, self._dtype.name)


def _delegate(cls: type, name: str, value: Callable) -> Callable:
    operator = getattr(Tensor, name)

    def method(self: Any, *args: Any) -> Any:
        return operator(value(self), *args)
    method.__name__ = name
    method.__qualname__ = "%s.%s" % (cls.__name__, name)
    return method


def delegated_operators(cls: type, value: Callable) -> None:
    """Gives a class the operators of tensors: they work on value(self)."""
    for name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv",
                 "rfloordiv", "mod", "rmod", "pow", "rpow", "matmul", "rmatmul", "and", "rand",
                 "or", "ror", "xor", "rxor", "lt", "le", "gt", "ge", "neg", "abs", "invert"):
        setattr(cls, "__%s__" % name, _delegate(cls, "__%s__" % name, value))


delegated_operators(Variable, Variable.value)


# --- Functions on many variables ------------------------------------------------------------------


def global_variables(scope: str | None = None) -> list:
    """The variables of the default graph that a checkpoint keeps; with `scope`, those whose name
    begins so."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


all_variables = global_variables


def local_variables(scope: str | None = None) -> list:
    """The variables of the default graph that belong to one process and are not saved."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list:
    """The variables of the collection MODEL_VARIABLES."""
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list:
    """The variables that optimizers change by default."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list:
    """The variables whose moving average is kept."""
    return get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def variables_initializer(var_list: Sequence, name: str = "init") -> Operation:
    """One operation that initialises all of `var_list`."""
    if not var_list:
        return no_op(name)
    for v in var_list:
        if not hasattr(v, "initializer"):
            raise TypeError("var_list must hold Variables, not %r" % (v,))
    return group(*[v.initializer for v in var_list], name=name)


initialize_variables = variables_initializer


def global_variables_initializer() -> Operation:
    """One operation that initialises all global variables that exist now."""
    return variables_initializer(global_variables())


initialize_all_variables = global_variables_initializer


def local_variables_initializer() -> Operation:
    """One operation that initialises all local variables that exist now."""
    return variables_initializer(local_variables())


def is_variable_initialized(variable: Variable) -> Tensor:
    """Whether the variable has a value, a bool scalar."""
    if not hasattr(variable, "handle"):
        raise TypeError("variable must be a Variable, not %r" % (variable,))
    return ops.VarIsInitializedOp(variable.handle)


def assert_variables_initialized(var_list: Sequence | None = None) -> Operation:
    """One operation that ends the run with FailedPreconditionError unless the variables (global and
    local ones) have values."""
    if var_list is None:
        var_list = global_variables() + local_variables()
    if not hasattr(var_list, "__iter__"):
        raise TypeError("var_list must be a list of Variables, not %r" % (var_list,))
    handles = [having(v, "handle", "an element of var_list", "a Variable").handle
               for v in var_list]
    return group(*[ops.VariableShape(handle) for handle in handles],
                 name="assert_variables_initialized")


def report_uninitialized_variables(var_list: Sequence | None = None,
                                   name: str = "report_uninitialized_variables") -> Tensor:
    """The names of the variables (global and local ones) without a value, a string vector."""
    if var_list is None:
        var_list = global_variables() + local_variables()
    with scope_of(name, "report_uninitialized_variables"):
        if not var_list:
            return convert_to_tensor([], _core.string)
        missing = ops.LogicalNot(ops.Pack([is_variable_initialized(v) for v in var_list]))
        names = convert_to_tensor([v._shared_name for v in var_list])
        return ops.Gather(names, ops.Squeeze(ops.Where(missing), squeeze_dims=[1]), 0)


__all__ = ["Variable", "global_variables", "all_variables", "local_variables", "model_variables",
           "trainable_variables", "moving_average_variables", "variables_initializer",
           "initialize_variables", "global_variables_initializer", "initialize_all_variables",
           "local_variables_initializer", "is_variable_initialized",
           "assert_variables_initialized", "report_uninitialized_variables"]
