# SPDX-License-Identifier: Apache-2.0
"""One entry of op_db: its samples run through torch and through Treenail, values and gradients
compared, per dtype.

The tolerance is a few hundred units in the last place of the largest value in the result: both
sides round, and the order of a sum is not the oracle's business.
"""

import random
import re
import traceback
import warnings
import zlib
from dataclasses import asdict, dataclass
from typing import Any, Dict, List

import numpy as np
import torch
import treenail as tn

from mapping import Declined, Said, entry_name

DTYPES = ("float32", "float64", "complex64", "complex128", "int32", "int64", "bool")
EPSILON = {"float16": 2.0**-10, "float32": 2.0**-23, "complex64": 2.0**-23, "float64": 2.0**-52,
           "complex128": 2.0**-52}
UNITS = 256.0
# What only torch's memory model knows.
IGNORED_ARGUMENTS = ("device", "layout", "pin_memory", "requires_grad", "memory_format",
                     "non_blocking")
# Treenail's way to say that an op is not declared for a dtype.
TYPE_REFUSAL = re.compile(r"has dtype \w+, needed is")


class Differs(Exception):
    """A result is not torch's; the text says how."""


@dataclass
class Outcome:
    """What one direction (forward or gradient) of one dtype gave."""

    passed: int = 0
    samples: int = 0
    declined: str = ""  # why Treenail does not claim the dtype
    problem: str = ""   # of the first sample that failed

    @property
    def ok(self) -> bool:
        return self.samples > 0 and self.passed == self.samples


class Given:
    """The tensors of a sample as Treenail's, and what is fed for them."""

    def __init__(self, sample: Any) -> None:
        self.feeds: Dict[Any, np.ndarray] = {}
        self.variables: List[Any] = []  # pairs (torch tensor, Treenail tensor), differentiable
        self.input = self.convert(sample.input)
        self.args = [self.convert(a) for a in sample.args]
        self.kwargs = {k: self.convert(v) for k, v in sample.kwargs.items()
                       if k not in IGNORED_ARGUMENTS}

    def convert(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.dtype):
            return getattr(tn, str(value).split(".")[1])
        if isinstance(value, (list, tuple)):
            items = [self.convert(v) for v in value]
            return items if isinstance(value, (list, torch.Size)) else tuple(items)
        return value

    def _tensor(self, value: torch.Tensor) -> Any:
        array = as_array(value)
        # Whole numbers beside the input mostly say where: constants, as a program has them.
        if array.dtype.kind in "iub" and hasattr(self, "input"):
            return tn.constant(array, dtype=array.dtype.name)
        tensor = tn.placeholder(array.dtype.name, shape=list(array.shape))
        self.feeds[tensor] = array
        if value.requires_grad:
            self.variables.append((value, tensor))
        return tensor


def as_array(value: Any) -> np.ndarray:
    if value._is_zerotensor():  # torch's zeros without memory: numpy() would read what lies there
        return np.zeros(tuple(value.shape), str(value.dtype).split(".")[1])
    return value.detach().resolve_conj().resolve_neg().contiguous().numpy().copy()


def flat(result: Any) -> List[Any]:
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in flat(item)]
    return [result]


def compare(found: Any, wanted: Any, mapping: Said, what: str) -> None:
    """Raises Differs unless `found` (an array) is torch's `wanted`."""
    if isinstance(wanted, torch.Tensor):
        wanted = as_array(wanted)
    wanted = np.asarray(wanted)
    if found.shape != wanted.shape:
        raise Differs("%s has shape %s, torch's %s" % (what, found.shape, wanted.shape))
    if found.dtype != wanted.dtype:
        raise Differs("%s is %s, torch's %s" % (what, found.dtype, wanted.dtype))
    if mapping.random:
        low, high = mapping.within or (-np.inf, np.inf)
        if found.dtype.kind in "fiu" and not ((found >= low) & (found <= high)).all():
            raise Differs("%s leaves [%g, %g]" % (what, low, high))
        return
    if found.dtype.kind not in "fc":
        if not np.array_equal(found, wanted):
            raise Differs("%s is %s, torch's %s" % (what, brief(found), brief(wanted)))
        return
    same_kind = np.isfinite(wanted) == np.isfinite(found)
    finite = np.where(np.isfinite(wanted), np.abs(wanted), 0)
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    near = EPSILON[found.dtype.name] * UNITS * mapping.slack.get(found.dtype.name, 1.0)
    with np.errstate(all="ignore"):
        close = np.where(np.isfinite(wanted), np.abs(found - wanted) <= near * scale,
                         same_infinity(found, wanted))
    wrong = np.flatnonzero(~(same_kind & close))
    if wrong.size:
        raise Differs("%s: %d of %d differ, element %d is %r, torch's %r" % (
            what, wrong.size, found.size, wrong[0], found.flat[wrong[0]], wanted.flat[wrong[0]]))


def same_infinity(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Infinities by sign; of complex numbers that are not finite only that they are not."""
    if found.dtype.kind == "c":
        return ~np.isfinite(found)
    return (found == wanted) | (np.isnan(found) & np.isnan(wanted))


def brief(array: np.ndarray) -> str:
    return re.sub(r"\s+", " ", np.array2string(array.ravel(), threshold=6, precision=8))[:120]


def run_torch(entry: Any, mapping: Said, sample: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if mapping.asked:
            return mapping.asked(entry.op, sample.input, *sample.args, **sample.kwargs)
        return entry.op(sample.input, *sample.args, **sample.kwargs)


def forward(entry: Any, mapping: Said, sample: Any) -> None:
    wanted = flat(run_torch(entry, mapping, sample))
    with tn.Graph().as_default() as graph:
        given = Given(sample)
        built = [tn.convert_to_tensor(t) for t in
                 flat(mapping.function(given.input, *given.args, **given.kwargs))]
        if len(built) != len(wanted):
            raise Differs("%d results, torch has %d" % (len(built), len(wanted)))
        with tn.Session(graph=graph) as session:
            found = session.run(built, given.feeds)
    for index, (mine, torch_s) in enumerate(zip(found, wanted)):
        compare(np.asarray(mine), torch_s, mapping, "result %d" % index)


def gradient(entry: Any, mapping: Said, sample: Any) -> bool:
    """Whether there was a gradient to compare."""
    results = flat(run_torch(entry, mapping, sample))
    with tn.Graph().as_default() as graph:
        given = Given(sample)
        arriving = [torch.randn_like(r) if isinstance(r, torch.Tensor) and r.requires_grad
                    else None for r in results]
        if not given.variables or all(a is None for a in arriving):
            return False
        built = flat(mapping.function(given.input, *given.args, **given.kwargs))
        if len(built) != len(results):
            raise Differs("%d results, torch has %d" % (len(built), len(results)))
        pairs = [(y, a) for y, a in zip(built, arriving) if a is not None]
        found = tn.gradients([y for y, _ in pairs], [x for _, x in given.variables],
                             grad_ys=[as_array(a) for _, a in pairs])
        found = [tn.zeros_like(x) if g is None else tn.convert_to_tensor(g)
                 for g, (_, x) in zip(found, given.variables)]
        with tn.Session(graph=graph) as session:
            arrays = session.run(found, given.feeds)
    wanted = torch.autograd.grad([r for r in results if isinstance(r, torch.Tensor)
                                  and r.requires_grad], [v for v, _ in given.variables],
                                 [a for a in arriving if a is not None], allow_unused=True)
    for index, (mine, torch_s) in enumerate(zip(arrays, wanted)):
        if torch_s is None:
            torch_s = np.zeros_like(mine)
        compare(np.asarray(mine), torch_s, mapping, "gradient %d" % index)
    return True


def samples_of(entry: Any, dtype: str, with_gradient: bool) -> List[Any]:
    seed = zlib.crc32(("%s %s" % (entry_name(entry), dtype)).encode())
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(entry.sample_inputs("cpu", getattr(torch, dtype), with_gradient))


def direction(function: Any, entry: Any, mapping: Said, dtype: str, grad: bool) -> Outcome:
    outcome = Outcome()
    for sample in samples_of(entry, dtype, grad):
        if mapping.distrust and mapping.distrust(sample.input, *sample.args, **sample.kwargs):
            continue
        try:
            if function(entry, mapping, sample) is False:
                continue
            outcome.passed += 1
        except (KeyboardInterrupt, SystemExit):
            raise
        except Declined as reason:
            outcome.problem = outcome.problem or "declined: %s" % reason
        except Exception as error:  # whatever Treenail or a mapping says is a result
            text = describe(error)
            if outcome.samples == 0 and isinstance(error, tn.OpError) and TYPE_REFUSAL.search(text):
                return Outcome(declined=text)
            outcome.problem = outcome.problem or text
        outcome.samples += 1
    return outcome


def describe(error: Exception) -> str:
    text = " ".join(str(error).split())[:200]
    if isinstance(error, Differs):
        return text
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = "" if isinstance(error, tn.OpError) else " (%s:%d)" % (
        frame.filename.rsplit("/", 1)[-1], frame.lineno)
    return "%s: %s%s" % (type(error).__name__, text, place)


def check(entry: Any, mapping: Said) -> Dict[str, Any]:
    """direction -> dtype -> Outcome (as a dictionary), over the dtypes that the entry lists."""
    listed = {str(d).split(".")[1] for d in entry.supported_dtypes("cpu")}
    differentiable = {str(d).split(".")[1] for d in entry.supported_backward_dtypes("cpu")}
    report: Dict[str, Any] = {"forward": {}, "gradient": {}, "drawn": mapping.random}
    for dtype in DTYPES:
        if dtype not in listed:
            continue
        if mapping.dtypes is not None and dtype not in mapping.dtypes:
            report["forward"][dtype] = asdict(Outcome(declined="not claimed"))
            continue
        outcome = direction(forward, entry, mapping, dtype, False)
        if not outcome.samples and mapping.distrust and not outcome.declined:
            continue
        report["forward"][dtype] = asdict(outcome)
        if not (entry.supports_autograd and dtype in differentiable and dtype in EPSILON) or (
                outcome.declined or mapping.random):
            continue
        outcome = direction(gradient, entry, mapping, dtype, True)
        if outcome.samples or outcome.declined:
            report["gradient"][dtype] = asdict(outcome)
    return report
