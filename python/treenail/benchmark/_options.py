# SPDX-License-Identifier: Apache-2.0
"""The command line of treenail-bench."""

from __future__ import annotations

import argparse
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from treenail.benchmark._models import Model

EPILOG = """\
Data are synthetic: random numbers that lie in variables, so that neither disk nor preprocessing is
measured. Under srun and mpirun each task measures a copy of its own; reports then need %t (the
rank) in their name. Options may be spelt with _ for -, as tf_cnn_benchmarks has them.

exit status: 0, measured; 1, it could not be (out of memory, the loss diverged, no kernels); 2, bad
arguments, or a report that cannot be written; 130 and 143, interrupted by Ctrl-C or SIGTERM:
what was measured until then is shown and kept.
"""
ADAM_RATE = 0.001


def whole(least: int):  # the type of argparse's arguments has no name
    """A converter of whole numbers, `least` or more."""
    def convert(text: str) -> int:
        if not re.fullmatch(r"\d{1,18}", text) or int(text) < least:
            raise argparse.ArgumentTypeError("it must be a whole number, %d or more, not %r"
                                             % (least, text))
        return int(text)
    return convert


def positive(text: str) -> float:
    """A finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("it must be a number above 0, not %r" % text)
    return value


def decay(text: str) -> float:
    """A finite number, 0 or more."""
    return 0.0 if re.fullmatch(r"0+(\.0*)?", text) else positive(text)


def parser(version: str, models: dict[str, Model], optimizers: Sequence[str]
           ) -> argparse.ArgumentParser:
    """All options; those whose default depends on the model have None."""
    made = argparse.ArgumentParser(
        prog="treenail-bench", epilog=EPILOG, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter, description=(
            "Train a known network on synthetic data and say how many images per second that is."))
    add = made.add_argument
    add("--model", choices=sorted(models), help="the network")
    add("--list-models", action="store_true", help="say what the networks are, and end")
    add("--batch-size", type=whole(1), metavar="N", help="examples per step [%s]" % _defaults(
        models, "batch_size"))
    add("--num-batches", type=whole(1), metavar="N", default=100, help="steps to measure [100]")
    add("--num-warmup-batches", type=whole(0), metavar="N", default=10,
        help="steps before, which do not count [10]")
    add("--display-every", type=whole(1), metavar="N", default=10,
        help="steps between lines of results [10]")
    add("--forward-only", action="store_true",
        help="inference: no gradients, no updates, no dropout, moving averages as statistics")
    add("--optimizer", choices=optimizers, default="sgd", help="[sgd]; momentum is 0.9")
    add("--learning-rate", type=positive, metavar="X",
        help="[%s, with smaller batches in proportion less; with adam %g]" % (
            _defaults(models, "learning_rate"), ADAM_RATE))
    add("--weight-decay", type=decay, metavar="X", default=4e-5,
        help="factor of the weights' L2 loss in the total loss [4e-05]")
    add("--image-size", type=whole(1), metavar="N", help="height and width of images [%s]"
        % _defaults({name: model for name, model in models.items() if model.image_size},
                    "image_size"))
    add("--data-format", choices=("NHWC", "NCHW"), help="order of the images' axes [NHWC]")
    add("--device", default="", metavar="NAME",
        help="what runs the network, such as /gpu:0; what it does not compute the CPU does [the "
             "CPU]")
    add("--threads", type=whole(1), metavar="N",
        help="threads that work on one operation [as TREENAIL_NUM_THREADS, Slurm, the affinity "
             "mask and the cgroup say]")
    add("--seed", type=whole(0), metavar="N", default=1234,
        help="of data, first weights and dropout [1234]")
    add("--report", metavar="FILE",
        help="write all that was measured as JSON; in its name %%t is the rank, %%j Slurm's job")
    add("--version", action="version", version=version)
    return made


def _defaults(models: dict[str, Model], field: str) -> str:
    return ", ".join("%s %g" % (name, getattr(model, field))
                     for name, model in sorted(models.items()))


def parse(made: argparse.ArgumentParser, models: dict[str, Model],
          arguments: Sequence[str]) -> argparse.Namespace:
    """The options with the model's defaults put in; image_size is 0 and data_format "" where there
    are no images. Ends the process with a sentence where they make no sense."""
    options = made.parse_args([
        re.sub("_", "-", word.split("=")[0]) + word[len(word.split("=")[0]):]
        if word.startswith("--") else word for word in arguments])
    if options.list_models:
        return options
    if options.model is None:
        made.error("--model is needed; it is one of %s" % ", ".join(sorted(models)))
    model = models[options.model]
    if not model.image_size and (options.image_size or options.data_format):
        made.error("%s has no images whose size or format could be chosen" % model.name)
    if options.image_size and options.image_size < model.smallest:
        made.error("--image-size %d: %s needs %d or more" % (options.image_size, model.name,
                                                             model.smallest))
    options.batch_size = options.batch_size or model.batch_size
    options.image_size = options.image_size or model.image_size
    options.data_format = (options.data_format or "NHWC") if model.image_size else ""
    if options.learning_rate is None:
        small = min(1.0, options.batch_size / model.batch_size)
        options.learning_rate = ADAM_RATE if options.optimizer == "adam" else (
            small * model.learning_rate)
    return options
