// SPDX-License-Identifier: Apache-2.0
// Ops that make summaries: the bytes of TensorFlow's Summary message, which an event file holds and
// TensorBoard shows.
#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void tagged_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  c.set_output(0, Shape());
}

void scalar_summary_shape(ShapeContext& c) {
  if (!c.input(0).compatible(c.input(1))) {
    throw invalid_argument("tags and values are not the same shape: ", c.input(0),
                           " != ", c.input(1));
  }
  c.set_output(0, Shape());
}

void tensor_summary_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  c.with_rank(2, 0);
  c.set_output(0, Shape());
}

void image_summary_shape(ShapeContext& c) {
  const PartialShape images = c.with_rank(1, 4);
  const int64_t channels = images[3];
  if (channels != kUnknown && channels != 1 && channels != 3 && channels != 4)
    throw invalid_argument("Tensor must be 4-D with last dim 1, 3, or 4, not ", images);
  const auto& bad_color = c.op().get_ints("bad_color");
  for (const int64_t value : bad_color) {
    if (value < 0 || value > 255)
      throw invalid_argument("bad_color holds ", value, ", which is not in [0, 256)");
  }
  if (channels != kUnknown && static_cast<int64_t>(bad_color.size()) < channels)
    throw invalid_argument("bad_color has ", bad_color.size(), " elements, but ", channels,
                           " are needed");
  tagged_shape(c);
}

void audio_summary_shape(ShapeContext& c) {
  const PartialShape& sound = c.input(1);
  if (sound.rank_known() && sound.rank() != 2 && sound.rank() != 3) {
    throw invalid_argument("tensor must be [batch, frames] or [batch, frames, channels], not ",
                           sound);
  }
  c.with_rank(2, 0);
  tagged_shape(c);
}

void merge_summary_shape(ShapeContext& c) { c.set_output(0, Shape()); }

void register_values(OpRegistry& r) {
  r.op("ScalarSummary", HostAccess::kNone)
      .input("tags: string")
      .input("values: T")
      .output("summary: string")
      .attr("T: realnumbertype")
      .shape(scalar_summary_shape)
      .not_differentiable()
      .doc(
          "A summary of numbers: for each element of `values` (as float32) one value with the tag "
          "at the same place of\n`tags`. The result is a scalar.");
  r.op("HistogramSummary", HostAccess::kNone)
      .input("tag: string")
      .input("values: T")
      .output("summary: string")
      .attr("T: realnumbertype = float")
      .shape(tagged_shape)
      .not_differentiable()
      .doc(
          "A summary of the distribution of `values`: least, greatest, number, sum, sum of "
          "squares, "
          "and how many lie in each\nof TensorFlow's buckets, whose limits grow by a tenth from "
          "1e-12 to 1e20 on either side of zero. Runs of empty\nbuckets are one bucket.\n\n"
          "Errors: InvalidArgument for NaN and infinities.");
  r.op("TensorSummary", HostAccess::kNone)
      .input("tag: string")
      .input("tensor: T")
      .input("serialized_summary_metadata: string")
      .output("summary: string")
      .attr("T: type")
      .shape(tensor_summary_shape)
      .not_differentiable()
      .doc(
          "A summary that holds `tensor` whole (as TensorProto) and a SummaryMetadata message, "
          "which "
          "says how it is shown.\n\nErrors: InvalidArgument where the metadata are no message, for "
          "resources and variants, and beyond 2 GiB.");
  r.op("MergeSummary", HostAccess::kNone)
      .input("inputs: N * string")
      .output("summary: string")
      .attr("N: int >= 1")
      .shape(merge_summary_shape)
      .not_differentiable()
      .doc(
          "One summary with the values of all of `inputs`, tensors of any shape whose elements are "
          "summaries.\n\nErrors: InvalidArgument where one is no summary or a tag is there twice.");
}

void register_media(OpRegistry& r) {
  r.op("ImageSummary", HostAccess::kNone)
      .input("tag: string")
      .input("tensor: T")
      .output("summary: string")
      .attr("max_images: int >= 1 = 3")
      .attr("T: {uint8, float, half, double} = float")
      .attr("bad_color: list(int) = [255, 0, 0, 255]")
      .shape(image_summary_shape)
      .not_differentiable()
      .doc(
          "A summary of the first `max_images` images of a batch: [batch, height, width, "
          "channels], "
          "1 channel grey, 3 RGB, 4 RGB and\nalpha, as PNG. Bytes are taken as they are. Real "
          "numbers are scaled, each image by itself: 0 and the greatest value become 0 and 255;\n"
          "where there are negative ones, 0 becomes 128 and the largest magnitude 1 or 255. A "
          "pixel "
          "that is not finite gets bad_color.\nTags are tag/image, or tag/image/0, tag/image/1, "
          "... "
          "when max_images is more than 1.\n\nErrors: InvalidArgument for other shapes and for "
          "images without pixels.");
  r.op("AudioSummary", HostAccess::kNone)
      .input("tag: string")
      .input("tensor: float")
      .input("sample_rate: float")
      .output("summary: string")
      .attr("max_outputs: int >= 1 = 3")
      .shape(audio_summary_shape)
      .not_differentiable()
      .doc(
          "A summary of the first `max_outputs` sounds of a batch, [batch, frames] or [batch, "
          "frames, "
          "channels], as 16-bit WAV. Samples are\nin [-1, 1]; what is louder is clipped. "
          "sample_rate: a scalar, in Hz. Tags are tag/audio, or tag/audio/0, tag/audio/1, ... "
          "when\n"
          "max_outputs is more than 1.\n\nErrors: InvalidArgument for a rate that is not positive "
          "and for sounds too long for a WAV file.");
}

}  // namespace

void register_summary_ops(OpRegistry& r) {
  register_values(r);
  register_media(r);
  r.finish("summary");
}

}  // namespace treenail
