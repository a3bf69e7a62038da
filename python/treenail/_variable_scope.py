# SPDX-License-Identifier: Apache-2.0
"""Sharing variables by name: variable_scope and get_variable. Each graph keeps one store of
variables by full name; which scope is open is each thread's own, as in TensorFlow 1."""

from __future__ import annotations

import threading

from treenail import _treenail as _core
from treenail._convert import convert_to_tensor
from treenail._framework import (Graph, GraphKeys, check_scope_type, get_default_graph,
                                 init_scope)
from treenail._named import initializer as named_initializer
from treenail._named import regularizer as named_regularizer
from treenail._partitioned import make_parts
from treenail._precision import master_dtype
from treenail._shape import TensorShape
from treenail._variables import Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


class _AutoReuse:
    def __repr__(self) -> str:
        return "AUTO_REUSE"


AUTO_REUSE = _AutoReuse()


class _Opened:
    """How often a scope name was opened, and the same of the names within it."""

    __slots__ = ("times", "inner", "numbers")

    def __init__(self) -> None:
        self.times = 0
        self.inner: dict = {}    # by one part of a name
        self.numbers: dict = {}  # by default name: all smaller ones are taken

    def at(self, name: str) -> _Opened:
        """Of the name in this scope: 'a', 'a/b', '' for this scope itself."""
        found = self
        for part in name.split("/") if name else ():
            found = found.inner.setdefault(part, _Opened())
        return found

    def forget_inner(self) -> None:
        """Unnamed inner scopes are numbered anew."""
        self.inner, self.numbers = {}, {}

    def unique(self, name: str) -> str:
        """`name`, or the first of name_1, name_2, ... that is not open and was not opened."""
        number = self.numbers.get(name, 0)
        found = "%s_%d" % (name, number) if number else name
        while self.at(found).times > 0:
            number += 1
            found = "%s_%d" % (name, number)
        self.numbers[name] = number
        return found


class _Store(threading.local):
    """The current scope of a thread and how often it opened each scope name; with these, common to
    all threads, the variables of the graph by full name, and the lock under which one is made."""

    def __init__(self, variables: dict, partitioned: dict, lock: Any) -> None:
        self.variables, self.lock = variables, lock
        self.partitioned = partitioned
        self.opened = _Opened()
        self.current = VariableScope(False)


def _store(graph: Graph | None = None) -> _Store:
    graph = (graph or get_default_graph())._root
    store = graph.__dict__.get("_variable_store")
    if store is None:  # of several threads that find none, one wins
        store = graph.__dict__.setdefault("_variable_store", _Store({}, {}, threading.RLock()))
    return store


class VariableScope:
    """What get_variable takes from its surroundings: a name prefix, reuse, defaults."""

    def __init__(self, reuse: Any, name: str = "", initializer: Any = None, regularizer: Any = None,
                 name_scope: str = "", dtype: Any = _core.float32,
                 custom_getter: Callable | None = None, constraint: Callable | None = None,
                 partitioner: Callable | None = None) -> None:
        self._name = name
        self._reuse = reuse
        self._initializer = initializer
        self._regularizer = regularizer
        self._name_scope, self._dtype = name_scope, _core.as_dtype(dtype)
        self._custom_getter, self._constraint = custom_getter, constraint
        self._partitioner = partitioner

    @property
    def name(self) -> str:
        """The prefix of variable names, without the final '/'."""
        return self._name

    @property
    def original_name_scope(self) -> str:
        """The name scope that was opened with this scope first, with the final '/'."""
        return self._name_scope

    @property
    def reuse(self) -> Any:
        """False, True or AUTO_REUSE."""
        return self._reuse

    @property
    def initializer(self) -> Any:
        """The default initializer."""
        return self._initializer

    @property
    def regularizer(self) -> Any:
        """The default regularizer."""
        return self._regularizer

    @property
    def dtype(self) -> Any:
        """The default dtype."""
        return self._dtype

    @property
    def custom_getter(self) -> Callable | None:
        """The function that get_variable calls in place of itself."""
        return self._custom_getter

    @property
    def constraint(self) -> Callable | None:
        """The default constraint."""
        return self._constraint

    @property
    def partitioner(self) -> Callable | None:
        """The function that says into how many parts a variable goes."""
        return self._partitioner

    def reuse_variables(self) -> None:
        """From now on get_variable gives existing variables only."""
        self._reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Sets the default initializer."""
        self._initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """Sets the default regularizer."""
        self._regularizer = regularizer

    def set_dtype(self, dtype: Any) -> None:
        """Sets the default dtype."""
        self._dtype = _core.as_dtype(dtype)

    def set_custom_getter(self, custom_getter: Callable | None) -> None:
        """Sets the function that get_variable calls in place of itself."""
        self._custom_getter = custom_getter

    def set_partitioner(self, partitioner: Callable | None) -> None:
        """Sets the function that says into how many parts a variable goes."""
        self._partitioner = partitioner

    def get_collection(self, name: str) -> list:
        """The items of a collection whose names lie in this scope."""
        return get_default_graph().get_collection(name, self._name + "/" if self._name else None)

    def global_variables(self) -> list:
        """The global variables in this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list:
        """The local variables in this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def trainable_variables(self) -> list:
        """The trainable variables in this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def __repr__(self) -> str:
        return "<tn.VariableScope %r reuse=%s>" % (self._name, self._reuse)

    def _copy(self, **changes: Any) -> VariableScope:
        copy = VariableScope.__new__(VariableScope)
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(changes)
        return copy

    def _full_name(self, name: str) -> str:
        return self._name + "/" + name if self._name else name


def get_variable_scope() -> VariableScope:
    """The current variable scope of the default graph."""
    return _store().current


class variable_scope:  # noqa: N801 (TensorFlow's name)
    """A context manager for names, sharing and defaults of variables: `with
    tn.variable_scope("layer1") as scope:`.

    name_or_scope: a name, or a VariableScope entered again; None takes default_name, made unique.
    reuse: True, existing variables only; AUTO_REUSE, make what is missing; None or False, as
    around. initializer, regularizer, dtype, constraint, partitioner: defaults for get_variable.
    custom_getter: called in place of get_variable, with the true getter first. A name scope of the
    same name is opened, too, unless auxiliary_name_scope is False.
    """

    def __init__(self, name_or_scope: Any, default_name: str | None = None,
                 values: Sequence | None = None, initializer: Any = None, regularizer: Any = None,
                 caching_device: Any = None, partitioner: Any = None,
                 custom_getter: Callable | None = None, reuse: Any = None, dtype: Any = None,
                 use_resource: bool | None = None, constraint: Callable | None = None,
                 auxiliary_name_scope: bool = True) -> None:
        if name_or_scope is None and default_name is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if not isinstance(name_or_scope, VariableScope):
            check_scope_type(default_name if name_or_scope is None else name_or_scope)
        if reuse is False:
            reuse = None
        if reuse not in (None, True) and reuse is not AUTO_REUSE:
            raise ValueError("The reuse parameter must be True or False or None.")
        if reuse is True and name_or_scope is None:
            raise ValueError("reuse=True cannot be used without a name_or_scope")
        self._given, self._default_name, self._reuse = name_or_scope, default_name, reuse
        self._values = values
        self._defaults = {"_initializer": initializer, "_regularizer": regularizer,
                          "_custom_getter": custom_getter, "_constraint": constraint, "_dtype": None
                          if dtype is None else _core.as_dtype(dtype), "_partitioner": partitioner}
        self._auxiliary = auxiliary_name_scope

    def __enter__(self) -> VariableScope:
        from treenail._framework import graph_of
        self._graph = graph_of(self._values) if self._values else get_default_graph()
        self._store = _store(self._graph)
        self._old, self._saved = self._store.current, None
        again = isinstance(self._given, VariableScope)
        base = self._given if again else self._old
        if again:
            full_name, opened = base.name, base.name.split("/")[-1]
            entering = self._store.opened.at(full_name)
            self._saved = (entering.times, entering.inner, entering.numbers)
            entering.forget_inner()
        else:
            opened = self._given
            if opened is None:
                opened = self._store.opened.at(self._old.name).unique(self._default_name)
            full_name = base._full_name(opened)
        self._contexts = [self._graph.as_default()]
        if self._auxiliary:
            self._contexts.append(self._graph.name_scope(opened or None))
        entered = [context.__enter__() for context in self._contexts]
        name_scope = entered[1] if self._auxiliary else self._graph._scope
        changes = {key: value for key, value in self._defaults.items() if value is not None}
        getter, outer_getter = self._defaults["_custom_getter"], self._old._custom_getter
        if getter is not None and outer_getter is not None and not again:
            changes["_custom_getter"] = _nested_getter(getter, outer_getter)
        reuse = self._reuse or (base.reuse if again else self._old.reuse)
        if self._old.reuse is True:
            reuse = True
        if not again or not base._name_scope:
            changes["_name_scope"] = name_scope
        scope = base._copy(_name=full_name, _reuse=reuse, **changes)
        self._opened = self._store.opened.at(full_name)
        self._opened.times += 1
        self._store.current = scope
        return scope

    def __exit__(self, *unused) -> None:
        self._opened.forget_inner()
        if self._saved is not None:
            self._opened.times, self._opened.inner, self._opened.numbers = self._saved
        self._store.current = self._old
        for context in reversed(self._contexts):
            context.__exit__(None, None, None)


def _nested_getter(inner: Callable, outer: Callable) -> Callable:
    def getter(true_getter: Callable, *args: Any, **kwargs: Any) -> Variable:
        def next_getter(*args: Any, **kwargs: Any) -> Variable:
            return outer(true_getter, *args, **kwargs)
        return inner(next_getter, *args, **kwargs)
    return getter


def get_variable(name: str, shape: Any = None, dtype: Any = None, initializer: Any = None,
                 regularizer: Any = None, trainable: bool | None = None,
                 collections: Sequence | None = None, caching_device: Any = None,
                 partitioner: Any = None, validate_shape: bool = True,
                 use_resource: bool | None = None, custom_getter: Callable | None = None,
                 constraint: Callable | None = None, synchronization: Any = None,
                 aggregation: Any = None) -> Variable:
    """The variable of that name in the current variable scope, made where the scope's reuse allows.

    shape: needed for a new variable unless the initializer is a value. initializer: a function of
    shape and dtype (tn.initializers) or its name ("he_normal"), a value or a tensor; by default the
    scope's, else glorot_uniform (zeros for integers). regularizer: a function, or its name ("l2"),
    whose result joins REGULARIZATION_LOSSES. partitioner: a function of shape and dtype that says
    into how many parts each axis goes, at most one axis into more than one
    (tn.fixed_size_partitioner); the result is then a PartitionedVariable, unless it is a scalar.
    synchronization, aggregation: as of tn.Variable.

    Raises ValueError when the variable exists but must not, or must but does not, or has another
    shape or dtype.
    """
    scope = get_variable_scope()
    getter = custom_getter or scope.custom_getter
    chosen = scope.initializer if initializer is None else initializer
    if isinstance(chosen, str) and shape is not None and dtype != _core.string:
        chosen = initializer = named_initializer(chosen)
    wanted = scope.dtype if dtype is None else _core.as_dtype(dtype)
    if chosen is None or callable(chosen):
        wanted = master_dtype(wanted)
    arguments = {"shape": shape, "dtype": wanted, "initializer": chosen,
                 "regularizer": named_regularizer(
                     scope.regularizer if regularizer is None else regularizer),
                 "trainable": trainable is not False, "collections": collections,
                 "validate_shape": validate_shape, "constraint": scope.constraint
                 if constraint is None else constraint, "partitioner": scope.partitioner
                 if partitioner is None else partitioner}
    wishes = {"synchronization": synchronization, "aggregation": aggregation}
    arguments.update((key, wish) for key, wish in wishes.items() if wish is not None)
    if dtype is None and initializer is not None and not callable(initializer):
        value = initializer if hasattr(initializer, "dtype") else convert_to_tensor(initializer)
        arguments["dtype"] = _core.as_dtype(value.dtype)
    full_name = scope._full_name(name)
    if getter is not None:
        return getter(_true_getter, full_name, reuse=scope.reuse, **arguments)
    return _true_getter(full_name, reuse=scope.reuse, **arguments)


def get_local_variable(name: str, *args: Any, **kwargs: Any) -> Variable:
    """As get_variable, for the collection LOCAL_VARIABLES, not trainable."""
    collections = list(kwargs.pop("collections", None) or ()) + [GraphKeys.LOCAL_VARIABLES]
    return get_variable(name, *args, trainable=False, collections=collections, **kwargs)


def _true_getter(name: str, shape: Any = None, dtype: Any = _core.float32, initializer: Any = None,
                 regularizer: Any = None, reuse: Any = None, trainable: bool = True,
                 collections: Sequence | None = None, validate_shape: bool = True,
                 constraint: Callable | None = None, partitioner: Any = None,
                 synchronization: Any = None, aggregation: Any = None, **unused: Any) -> Any:
    store = _store()
    dtype = _core.as_dtype(dtype)
    shape, shape_given = _shape_of_variable(name, shape), shape is not None
    if get_default_graph()._root._immediate:  # nothing shares by name there
        return _new(name, shape, shape_given, dtype, initializer, trainable, collections,
                    validate_shape, constraint, synchronization, aggregation)
    with store.lock:
        making = (dtype, initializer, regularizer, reuse, trainable, collections, validate_shape,
                  constraint, synchronization, aggregation)
        if partitioner is None or shape_given and shape.ndims == 0:
            if name not in store.variables and name + "/part_0" in store.variables:
                raise ValueError("No partitioner was provided, but a partitioned version of the "
                                 "variable was found: %s/part_0. Perhaps a variable of the same "
                                 "name was already created with partitioning?" % name)
            return _found_or_made(store, name, shape, shape_given, *making)
        return _in_parts(store, name, shape, shape_given, partitioner, *making)


def _in_parts(store: _Store, name: str, shape: TensorShape, shape_given: bool, partitioner: Any,
              dtype: Any, initializer: Any, regularizer: Any, reuse: Any, *others: Any) -> Any:
    """The PartitionedVariable of that name, found or made."""
    if name in store.variables:
        raise ValueError("A partitioner was provided, but an unpartitioned version of the variable "
                         "was found: %s. Perhaps a variable of the same name was already created "
                         "without partitioning?" % name)
    found = store.partitioned.get(name)
    if found is not None:
        first = store.variables[name + "/part_0"]
        return _shared(found, first, name, shape if shape_given else None, dtype, reuse)
    if not callable(initializer) and initializer is not None and not shape_given:
        shape = convert_to_tensor(initializer, dtype).shape
    initializer = _default_initializer(name, dtype) if initializer is None else initializer
    if isinstance(initializer, type):
        initializer = initializer()

    def make(part_name: str, part_shape: TensorShape, part_initializer: Callable) -> Variable:
        return _found_or_made(store, part_name, part_shape, True, dtype, part_initializer,
                              regularizer, reuse, *others)
    store.partitioned[name] = made = make_parts(name, shape, dtype, initializer, partitioner, make)
    return made


def _shape_of_variable(name: str, shape: Any) -> TensorShape:
    try:
        return TensorShape(shape)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind("variable %s of shape %r: %s" % (name, shape, error)) from None


def _found_or_made(store: _Store, name: str, shape: TensorShape, shape_given: bool, dtype: Any,
                   initializer: Any, regularizer: Any, reuse: Any, trainable: bool,
                   collections: Sequence | None, validate_shape: bool, constraint: Any,
                   *wishes: Any) -> Variable:
    found = store.variables.get(name)
    if found is not None:
        return _shared(found, found, name, shape if shape_given else None, dtype, reuse)
    if reuse is True:
        raise ValueError("Variable %s does not exist, or was not created with tn.get_variable(). "
                         "Did you mean to set reuse=tn.AUTO_REUSE in VarScope?" % name)
    variable = _new(name, shape, shape_given, dtype, initializer, trainable,
                    collections, validate_shape, constraint, *wishes)
    store.variables[name] = variable
    if regularizer is not None:
        _regularize(variable, name, regularizer)
    return variable


def _shared(variable: Any, made: Variable, name: str, shape: Any, dtype: Any, reuse: Any) -> Any:
    """`variable`, or why it cannot be had; `made` tells where it was made."""
    if not reuse:
        where = ""
        for place in made.op._creation[-1:]:
            where = " Originally defined at:\n\n  File \"%s\", line %d, in %s" % tuple(place)
        raise ValueError("Variable %s already exists, disallowed. Did you mean to set reuse=True "
                         "or reuse=tn.AUTO_REUSE in VarScope?%s" % (name, where))
    if shape is not None and not TensorShape(shape).is_compatible_with(variable.shape):
        raise ValueError("Trying to share variable %s, but specified shape %s and found shape %s."
                         % (name, TensorShape(shape), variable.shape))
    if dtype != variable.dtype:
        raise ValueError("Trying to share variable %s, but specified dtype %s and found dtype %s."
                         % (name, dtype.name, variable.dtype.name))
    return variable


def _default_initializer(name: str, dtype: Any) -> Callable:
    from treenail import initializers
    if dtype.is_floating or dtype.is_complex:
        return initializers.glorot_uniform()
    if dtype.is_integer or dtype.is_bool:
        return initializers.zeros()
    raise ValueError("An initializer for variable %s of %s is required" % (name, dtype.name))


def _new(name: str, shape: TensorShape, shape_given: bool, dtype: Any, initializer: Any,
         trainable: bool, collections: Any, validate_shape: bool, constraint: Any,
         synchronization: Any, aggregation: Any) -> Variable:
    if initializer is None:
        initializer = _default_initializer(name, dtype)
    if not callable(initializer):
        if shape_given:
            value = initializer if hasattr(initializer, "shape") else convert_to_tensor(initializer)
            given = TensorShape(value.shape)
            if not given.is_compatible_with(shape):
                raise ValueError("If initializer is a constant, it must have the shape %s of the "
                                 "variable, not %s" % (shape, given))
        value = initializer
    else:
        if isinstance(initializer, type):
            initializer = initializer()
        if not shape.is_fully_defined():
            raise ValueError("Shape of a new variable (%s) must be fully defined, but instead was "
                             "%s." % (name, shape))
        extents = shape.as_list()

        def value() -> Any:
            return initializer(extents, dtype=dtype)
    with get_default_graph()._root.name_scope(None):
        return Variable(value, trainable=trainable, collections=collections,
                        validate_shape=validate_shape, name=name, dtype=dtype,
                        constraint=constraint, expected_shape=shape if shape_given else None,
                        synchronization=synchronization, aggregation=aggregation)


def _regularize(variable: Variable, name: str, regularizer: Callable) -> None:
    graph = get_default_graph()._root
    with init_scope(), graph.name_scope(name + "/Regularizer/"):
        loss = regularizer(variable.value())
    if loss is not None:
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


class variable_op_scope(variable_scope):  # noqa: N801 (TensorFlow's name)
    """The older form of variable_scope: variable_op_scope(values, name, default_name)."""

    def __init__(self, values: Sequence, name_or_scope: Any, default_name: str | None = None,
                 **kwargs: Any) -> None:
        super().__init__(name_or_scope, default_name, values, **kwargs)


def no_regularizer(_: Any) -> None:
    """A regularizer that adds nothing, in place of the scope's."""
    return None


def make_template(name_: str, func_: Callable, create_scope_now_: bool = False,
                  unique_name_: str | None = None, custom_getter_: Callable | None = None,
                  **kwargs: Any) -> Callable:
    """`func_` as a function that makes its variables at the first call and shares them at every
    later one."""
    state: dict = {}

    def scope() -> VariableScope:
        if "scope" not in state:
            with variable_scope(unique_name_, default_name=name_,
                                custom_getter=custom_getter_) as opened:
                state["scope"] = opened
        return state["scope"]

    def template(*args: Any, **more: Any) -> Any:
        with variable_scope(scope(), reuse=True if state.get("called") else None):
            result = func_(*args, **{**kwargs, **more})
        state["called"] = True
        return result
    template.__name__ = name_
    if create_scope_now_:
        scope()
    return template


__all__ = ["AUTO_REUSE", "VariableScope", "get_variable_scope", "variable_scope", "get_variable",
           "get_local_variable", "variable_op_scope", "no_regularizer", "make_template"]
