# SPDX-License-Identifier: Apache-2.0
"""Options of sessions and runs, and what a run tells about itself."""

from __future__ import annotations

from collections import namedtuple
from operator import index

from treenail import _treenail as _core
from treenail._messages import run_metadata_message
from treenail._placement import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Options:
    """Fields are given by name, as in protocol buffers; types (_TYPES) are checked as they are
    set."""

    _TYPES: dict = {}
    _OPTIONAL: tuple = ()  # these may be None

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._TYPES.get(name)
        if kind is not None and not (value is None and name in self._OPTIONAL):
            value = self._converted(kind, name, value)
        object.__setattr__(self, name, value)

    def _converted(self, kind: type, name: str, value: Any) -> Any:
        if kind is int and not isinstance(value, bool) and hasattr(value, "__index__"):
            return index(value)
        if kind is float and isinstance(value, int) or kind is bool and (
                getattr(value, "ndim", 0) == 0 and value in (0, 1)):
            try:
                return kind(value)
            except OverflowError:
                raise ValueError("%s.%s must fit into a %s" % (
                    type(self).__name__, name, kind.__name__)) from None
        if isinstance(value, kind) and kind is not int:
            return value
        raise TypeError("%s.%s must be of type %s, not %r of type '%s'"
                        % (type(self).__name__, name, kind.__name__, value, type(value).__name__))

    def __repr__(self) -> str:
        usual = {name: repr(value) for name, value in vars(type(self)()).items()}
        given = ["%s=%r" % item for item in vars(self).items()
                 if repr(item[1]) != usual.get(item[0])]
        return "%s(%s)" % (type(self).__name__, ", ".join(given))


class OptimizerOptions(_Options):
    """How a session changes its copy of the graph; results have the same bits whichever it does.

    do_common_subexpression_elimination: what is computed twice is computed once.
    do_constant_folding: what depends on constants alone is computed when the plan is made.
    do_elementwise_fusion: connected element-wise operations run as one kernel, in one sweep through
    memory. opt_level: L0 (or OFF) does none of these.
    """

    DEFAULT = L1 = 0
    L0 = -1
    OFF = -1
    ON_1 = 1
    _TYPES = {"opt_level": int, "do_common_subexpression_elimination": bool,
              "do_constant_folding": bool, "global_jit_level": int}

    def __init__(self, *, opt_level: int = 0, do_common_subexpression_elimination: bool = True,
                 do_constant_folding: bool = True, global_jit_level: int = 0,
                 do_elementwise_fusion: bool = True) -> None:
        self.opt_level = opt_level
        self.do_common_subexpression_elimination = do_common_subexpression_elimination
        self.do_constant_folding = do_constant_folding
        self.global_jit_level = global_jit_level
        self.do_elementwise_fusion = do_elementwise_fusion


class GraphOptions(_Options):
    """Options of a session that concern its graph.

    placement: a tn.placement.Options; on which of several devices operations run that ask for none
    is then predicted. By default they run on the first.
    enable_bfloat16_sendrecv: float32 values that go from one task of a cluster to another are
    rounded to bfloat16 on the way, to the nearest, ties to even: half the bytes, and other bits
    than one process has. sendrecv_dtype: the same, to tn.bfloat16 or tn.float16, in which values
    beyond 65504 become infinite. Within a process nothing is rounded, nor what is fed or fetched.
    Raises ValueError for another dtype when the session is made.
    """

    _TYPES = {"optimizer_options": OptimizerOptions, "placement": Options,
              "enable_bfloat16_sendrecv": bool}
    _OPTIONAL = ("placement",)

    def __init__(self, *, optimizer_options: OptimizerOptions | None = None,
                 placement: Options | None = None, enable_bfloat16_sendrecv: bool = False,
                 sendrecv_dtype: Any = None) -> None:
        self.optimizer_options = optimizer_options or OptimizerOptions()
        self.placement = placement
        self.enable_bfloat16_sendrecv = enable_bfloat16_sendrecv
        self.sendrecv_dtype = sendrecv_dtype

    def _sent_as(self) -> str:
        """The name of the dtype, or ''."""
        if self.sendrecv_dtype is None:
            return "bfloat16" if self.enable_bfloat16_sendrecv else ""
        name = _core.as_dtype(self.sendrecv_dtype).name
        if name not in ("bfloat16", "float16"):
            raise ValueError("GraphOptions.sendrecv_dtype must be tn.bfloat16, tn.float16 or None, "
                             "not tn.%s" % name)
        return name


class GPUOptions(_Options):
    """Accepted for programs that set them; a build without GPU has no use for them."""

    _TYPES = {"per_process_gpu_memory_fraction": float, "allow_growth": bool,
              "visible_device_list": str}

    def __init__(self, *, per_process_gpu_memory_fraction: float = 0.0, allow_growth: bool = False,
                 visible_device_list: str = "") -> None:
        self.per_process_gpu_memory_fraction = per_process_gpu_memory_fraction
        self.allow_growth = allow_growth
        self.visible_device_list = visible_device_list


_MOST_DEVICES = 1024  # of one kind


class ConfigProto(_Options):
    """Options of a session.

    intra_op_parallelism_threads: threads that work on one operation, for the whole process; 0
    leaves it as it is. allow_soft_placement: an operation whose device is not here runs on the CPU
    instead of raising InvalidArgumentError. log_device_placement: a table on standard error says
    where operations run, each once, before the first run that has it. device_count: {"CPU": n}
    gives the session the devices /cpu:0 to /cpu:n-1, which share threads and memory: a value goes
    from one to another without a copy; 1 by default. device_filters: a session at a server knows of
    the cluster's tasks the server's own and those that one of these names covers, such as
    "/job:ps", and waits for no other; [] is all. keepalive_in_ms: a connection between sessions and
    servers, or servers, that is silent for so long is lost; 0 is 10,000. credentials: of a session
    at a server, a file that says what is shown to it and asked of it (lines such as "authority =
    ca.pem", see docs/security.md); "": the one that the variable TREENAIL_CREDENTIALS names, or
    none. operation_timeout_in_ms: of runs whose RunOptions have none. inter_op_... and gpu_options
    are accepted and change nothing on CPUs. Raises TypeError, naming the field, for a value of
    another type, here and where a field is set.
    """

    _TYPES = {"intra_op_parallelism_threads": int, "inter_op_parallelism_threads": int,
              "allow_soft_placement": bool, "log_device_placement": bool, "device_count": dict,
              "graph_options": GraphOptions, "gpu_options": GPUOptions,
              "operation_timeout_in_ms": int, "device_filters": list, "keepalive_in_ms": int,
              "credentials": str}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "device_filters" and not all(isinstance(each, str) for each in value):
            raise TypeError("ConfigProto.device_filters must be a list of str such as '/job:ps', "
                            "not %r" % (value,))
        if name == "keepalive_in_ms" and not 0 <= value <= 86_400_000:
            raise ValueError("ConfigProto.keepalive_in_ms must be in [0, 86400000], got %r"
                             % (value,))

    def __init__(self, *, intra_op_parallelism_threads: int = 0,
                 inter_op_parallelism_threads: int = 0, allow_soft_placement: bool = False,
                 log_device_placement: bool = False, device_count: dict | None = None,
                 graph_options: GraphOptions | None = None, gpu_options: GPUOptions | None = None,
                 operation_timeout_in_ms: int = 0, device_filters: list | None = None,
                 keepalive_in_ms: int = 0, credentials: str = "") -> None:
        self.intra_op_parallelism_threads = intra_op_parallelism_threads
        self.inter_op_parallelism_threads = inter_op_parallelism_threads
        self.allow_soft_placement = allow_soft_placement
        self.log_device_placement = log_device_placement
        self.device_count = device_count or {}
        self.graph_options = graph_options or GraphOptions()
        self.gpu_options = gpu_options or GPUOptions()
        self.operation_timeout_in_ms = operation_timeout_in_ms
        self.device_filters = device_filters or []
        self.keepalive_in_ms = keepalive_in_ms
        self.credentials = credentials


def device_limits(device_count: dict) -> dict[str, int]:
    """ConfigProto.device_count, {kind of device: most of them}. Raises TypeError and ValueError for
    what are no numbers of devices."""
    for kind, count in device_count.items():
        if not isinstance(kind, str) or isinstance(count, bool) or not hasattr(count, "__index__"):
            raise TypeError("ConfigProto.device_count must be a dict from kinds of devices to "
                            "numbers, such as {'CPU': 2}, not %r" % (device_count,))
        if index(count) < 0 or index(count) > _MOST_DEVICES:
            raise ValueError("ConfigProto.device_count[%r] must be in [0, %d], got %d"
                             % (kind, _MOST_DEVICES, index(count)))
    return {kind.upper(): index(count) for kind, count in device_count.items()}


class RunOptions(_Options):
    """Options of one run.

    timeout_in_ms: beyond it the run raises DeadlineExceededError; 0: no limit. trace_level: above
    NO_TRACE, RunMetadata.nodes tells what each operation did; tn.profiler shows it.
    """

    _TYPES = {"trace_level": int, "timeout_in_ms": int}

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = 0, 1, 2, 3

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "trace_level" and not self.NO_TRACE <= self.trace_level <= self.FULL_TRACE:
            raise ValueError("RunOptions.trace_level must be RunOptions.NO_TRACE, SOFTWARE_TRACE, "
                             "HARDWARE_TRACE or FULL_TRACE (0 to 3), got %d" % self.trace_level)

    def __init__(self, *, trace_level: int = 0, timeout_in_ms: int = 0) -> None:
        self.trace_level = trace_level
        self.timeout_in_ms = timeout_in_ms


NodeStats = namedtuple("NodeStats", "name op device fused start_ns end_ns thread bytes_allocated "
                                    "bytes_in_use flops")
NodeStats.__doc__ = """What one kernel of a run did: an operation, or several that were fused.

name, op: the operation's, of a fused kernel the last one's; fused: (name, op) of each of the
others. device. start_ns, end_ns: since the run began; on a device with a queue, when the operation
was handed to it. thread: the system's number. bytes_allocated: for the outputs, those apart that
were written over an input, and for scratch memory. bytes_in_use: of the device's memory, by the
whole process, when it had ended. flops: floating-point operations, a multiply-add being two, as the
operations' definitions count them; 0: unknown.
"""


DeviceMemory = namedtuple("DeviceMemory", "device arena_bytes peak_bytes")
DeviceMemory.__doc__ = """What a run needs of a device's own memory, in bytes.

As RunMetadata.arena_bytes and peak_bytes say it of the host's.
"""


class RunMetadata:
    """What a run needs and did: pass one to Session.run and read it afterwards.

    nodes_executed: kernels run. arena_bytes: planned host memory, in bytes: intermediate values and
    the kernels' scratch. peak_bytes: the most that the run holds at once: the arena and the values
    fetched; without feeds and variables, and without what depends on shapes that only the run
    tells. cost_ns: estimated time on one thread. specialized: whether the plan was made for these
    very shapes. All but nodes_executed is known before the run, and filled in although it fails.
    devices: a DeviceMemory for each device with memory of its own.
    nodes: a NodeStats for each kernel of a run that did not fail, in the order in which they began,
    where RunOptions.trace_level asks for it; of a session at a server, of all tasks.
    clock_error_ns: the times of nodes of different tasks may be off against each other by as much;
    0 in one process.
    """

    def __init__(self) -> None:
        self.nodes_executed = 0
        self.arena_bytes = 0
        self.peak_bytes = 0
        self.cost_ns = 0.0
        self.specialized = False
        self.clock_error_ns = 0
        self._nodes: list[tuple] = []
        self._devices: list[tuple] = []

    @property
    def devices(self) -> list[DeviceMemory]:
        """What the run needs of devices with memory of their own."""
        return [DeviceMemory(*fields) for fields in self._devices]

    @property
    def nodes(self) -> list[NodeStats]:
        """What each kernel did."""
        return [NodeStats(*fields) for fields in self._nodes]

    def SerializeToString(self) -> bytes:  # noqa: N802 (the name protocol buffers give it)
        """TensorFlow's message RunMetadata: step_stats of its operations, or with
        one entry for the run as a whole."""
        return run_metadata_message(self)

    def __repr__(self) -> str:
        return ("RunMetadata(nodes_executed=%d, arena_bytes=%d, peak_bytes=%d, cost_ns=%.0f, "
                "specialized=%s)" % (self.nodes_executed, self.arena_bytes, self.peak_bytes,
                                     self.cost_ns, self.specialized))
