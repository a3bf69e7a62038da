// SPDX-License-Identifier: Apache-2.0
// oneDNN behind onednn_api.h. Versions 2 and 3 differ in how a primitive is described and nothing
// else that is used here. No exception leaves: each entry turns it into text.
#include <dnnl_version.h>
#include <dnnl.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>

#include "build_info.h"
#include "kernels/adapters/onednn/onednn_api.h"
#include "kernels/adapters/openmp/one_thread.h"

namespace treenail {
namespace {

using dnnl::memory;
using Dims = memory::dims;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

struct Convolution {
  int32_t pass;
  memory::desc images, results, packed_filter, plain_filter, workspace;
  dnnl::primitive primitive;
  dnnl::reorder pack, unpack;
};

// Descriptions common to the passes.
struct Shape {
  memory::desc images, results, any_filter;
  Dims stride, dilation, before, after;
};

Shape shape_of(const OneDnnConvolution& c) {
  const auto type = memory::data_type::f32;
  const auto last = memory::format_tag::nhwc;
  return {
      memory::desc({c.batch, c.channels, c.input[0], c.input[1]}, type, last),
      memory::desc({c.batch, c.filters, c.output[0], c.output[1]}, type, last),
      memory::desc({c.filters, c.channels, c.taps[0], c.taps[1]}, type, memory::format_tag::any),
      {c.stride[0], c.stride[1]},
      {c.dilation[0] - 1, c.dilation[1] - 1},
      {c.pad_before[0], c.pad_before[1]},
      {c.pad_after[0], c.pad_after[1]}};
}

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

dnnl::convolution_forward::primitive_desc forward(const Shape& s,
                                                  const dnnl::primitive_attr& attr) {
  const auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), kind,       kAlgorithm, s.images, s.any_filter, s.results,
          s.stride, s.dilation, s.before,   s.after,  attr};
#else
  return {{kind, kAlgorithm, s.images, s.any_filter, s.results, s.stride, s.dilation, s.before,
           s.after},
          attr,
          engine()};
#endif
}

template <class PrimitiveDesc>
void keep(const PrimitiveDesc& d, const memory::desc& filter, Convolution& to) {
  to.packed_filter = filter;
  to.workspace = d.scratchpad_desc();
}

void create_primitive(const Shape& s, Convolution& to) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto hint = forward(s, attr);
  if (to.pass == kOneDnnForward) {
    keep(hint, hint.weights_desc(), to);
    to.primitive = dnnl::convolution_forward(hint);
  } else if (to.pass == kOneDnnInput) {
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::convolution_backward_data::primitive_desc d(
        engine(), kAlgorithm, s.images, s.any_filter, s.results, s.stride, s.dilation, s.before,
        s.after, hint, attr);
#else
    const dnnl::convolution_backward_data::primitive_desc d(
        {kAlgorithm, s.images, s.any_filter, s.results, s.stride, s.dilation, s.before, s.after},
        attr, engine(), hint);
#endif
    keep(d, d.weights_desc(), to);
    to.primitive = dnnl::convolution_backward_data(d);
  } else {
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::convolution_backward_weights::primitive_desc d(
        engine(), kAlgorithm, s.images, s.any_filter, s.results, s.stride, s.dilation, s.before,
        s.after, hint, attr);
#else
    const dnnl::convolution_backward_weights::primitive_desc d(
        {kAlgorithm, s.images, s.any_filter, s.results, s.stride, s.dilation, s.before, s.after},
        attr, engine(), hint);
#endif
    keep(d, d.diff_weights_desc(), to);
    to.primitive = dnnl::convolution_backward_weights(d);
  }
}

int32_t failed(const std::exception& e, char* why, uint64_t size) {
  std::snprintf(why, size, "oneDNN: %s", e.what());
  return 1;
}

void* create(const OneDnnConvolution* c, OneDnnSizes* sizes, char* why, uint64_t size) {
  try {
    const OneThread scope;  // its threads are counted when a primitive is made and when it runs
    auto made = std::make_unique<Convolution>();
    made->pass = c->pass;
    const Shape s = shape_of(*c);
    made->images = s.images;
    made->results = s.results;
    made->plain_filter = memory::desc({c->filters, c->channels, c->taps[0], c->taps[1]},
                                      memory::data_type::f32, memory::format_tag::hwio);
    create_primitive(s, *made);
    if (c->pass == kOneDnnFilter) {
      made->unpack = dnnl::reorder({engine(), made->packed_filter, engine(), made->plain_filter});
    } else {
      made->pack = dnnl::reorder({engine(), made->plain_filter, engine(), made->packed_filter});
    }
    sizes->filter = made->packed_filter.get_size();
    sizes->workspace = made->workspace.get_size();
    return made.release();
  } catch (const std::exception& e) {
    failed(e, why, size);
    return nullptr;
  }
}

void destroy(void* prepared) { delete static_cast<Convolution*>(prepared); }

// oneDNN's memories are not const; what a primitive only reads it does not write.
memory at(const memory::desc& desc, const void* data) {
  return memory(desc, engine(), const_cast<void*>(data));
}

template <class F>
int32_t guarded(char* why, uint64_t size, F f) {
  try {
    const OneThread scope;
    dnnl::stream stream(engine());
    f(stream);
    stream.wait();
    return 0;
  } catch (const std::exception& e) {
    return failed(e, why, size);
  }
}

int32_t pack(const void* prepared, const float* filter, void* packed, char* why, uint64_t size) {
  const auto& c = *static_cast<const Convolution*>(prepared);
  return guarded(why, size, [&](dnnl::stream& stream) {
    memory from = at(c.plain_filter, filter), to = at(c.packed_filter, packed);
    c.pack.execute(stream, from, to);
  });
}

int32_t unpack(const void* prepared, const void* packed, float* filter, char* why, uint64_t size) {
  const auto& c = *static_cast<const Convolution*>(prepared);
  return guarded(why, size, [&](dnnl::stream& stream) {
    memory from = at(c.packed_filter, packed), to = at(c.plain_filter, filter);
    c.unpack.execute(stream, from, to);
  });
}

int32_t run(const void* prepared, const float* images, const float* results, const void* filter,
            void* workspace, char* why, uint64_t size) {
  const auto& c = *static_cast<const Convolution*>(prepared);
  return guarded(why, size, [&](dnnl::stream& stream) {
    const bool forward = c.pass == kOneDnnForward;
    const bool weights = c.pass == kOneDnnFilter;
    c.primitive.execute(
        stream, {{c.pass == kOneDnnInput ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, at(c.images, images)},
                 {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, at(c.results, results)},
                 {weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, at(c.packed_filter, filter)},
                 {DNNL_ARG_SCRATCHPAD, at(c.workspace, workspace)}});
  });
}

const char* version() {
  static char text[32];
  static const bool written = [] {
    const dnnl_version_t* v = dnnl_version();
    return std::snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch) > 0;
  }();
  return written ? text : "";
}

int32_t usable() {
  const unsigned runtime = dnnl_version()->cpu_runtime;
  return runtime == DNNL_RUNTIME_OMP || runtime == DNNL_RUNTIME_SEQ ? 1 : 0;
}

constexpr OneDnnApi kApi = {
    {sizeof(OneDnnApi), build_info::kVersion}, version, usable, create, destroy, pack, unpack, run};

}  // namespace
}  // namespace treenail

extern "C" const void* treenail_adapter(void) { return &treenail::kApi; }
