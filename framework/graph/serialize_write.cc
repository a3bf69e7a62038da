// SPDX-License-Identifier: Apache-2.0
// Writing graph files. Nodes go out in topological order, in sections of about 1 MiB; an
// attribute's tensor has a section of its own before the first node that uses it, so that no more
// than one tensor or one batch of nodes is in memory twice.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "build_info.h"
#include "framework/base/byte_order.h"
#include "framework/base/crc32c.h"
#include "framework/base/error.h"
#include "framework/graph/function.h"
#include "framework/graph/serialize.h"
#include "framework/graph/wire.h"
#include "framework/tensor/string_element.h"

namespace treenail {
namespace {

using wire::Writer;

constexpr size_t kBatchBytes = size_t{1} << 20;
constexpr size_t kSwapBytes = size_t{1} << 16;

class GraphWriter {
 public:
  GraphWriter(ByteSink& sink, Exchanges exchanges) : sink_(sink), exchanges_(exchanges) {}
  void file(const Graph& graph);

 private:
  void section(uint32_t tag, const std::string& payload) {
    begin(tag, payload.size());
    put(payload.data(), payload.size());
    end();
  }
  // A section written piece by piece: begin(), put() ... put(), end().
  void begin(uint32_t tag, uint64_t bytes);
  void put(const void* data, size_t bytes);
  void end();

  void body(const Graph& graph);
  void function(const Function& function);
  void colocated(const std::vector<Node*>& order);
  void node(Writer& w, const Node& node, const std::unordered_map<const Node*, uint64_t>& numbers);
  void shape(Writer& w, const PartialShape& shape);
  void value(Writer& w, const AttrValue& value);
  void element(Writer& w, int64_t v) { w.number(v); }
  void element(Writer& w, double v) { w.real(v); }
  void element(Writer& w, bool v) { w.number(static_cast<uint8_t>(v)); }
  void element(Writer& w, const std::string& v) { w.text(v); }
  void element(Writer& w, DType v) { w.number(static_cast<uint8_t>(v)); }
  void element(Writer& w, const PartialShape& v) { shape(w, v); }
  void element(Writer& w, const Tensor& v) { w.number(tensor(v)); }
  void element(Writer& w, const FunctionAttr& v);
  template <class T>
  void elements(Writer& w, const AttrValue& v) {
    const auto& list = v.get<std::vector<T>>();
    w.number(static_cast<uint64_t>(list.size()));
    for (size_t i = 0; i < list.size(); ++i) element(w, static_cast<const T&>(list[i]));
  }
  // Its number in the file; writes its section at the first call.
  uint64_t tensor(const Tensor& t);
  void tensor_data(const Tensor& t);

  ByteSink& sink_;
  const Exchanges exchanges_;
  uint32_t crc_ = 0;
  // Tensors already in the file, by what makes two the same memory.
  std::map<std::tuple<const void*, DType, std::vector<int64_t>>, uint64_t> tensors_;
  std::vector<Tensor> kept_;  // their memory stays theirs while it identifies them
  uint64_t num_nodes_ = 0;
};

void GraphWriter::begin(uint32_t tag, uint64_t bytes) {
  Writer head;
  head.number(tag);
  head.number(bytes);
  crc_ = 0;
  put(head.bytes().data(), head.bytes().size());
}

void GraphWriter::put(const void* data, size_t bytes) {
  crc_ = crc32c(data, bytes, crc_);
  sink_.write(data, bytes);
}

void GraphWriter::end() {
  Writer tail;
  tail.number(crc_);
  sink_.write(tail.bytes().data(), tail.bytes().size());
}

void GraphWriter::shape(Writer& w, const PartialShape& shape) {
  w.number(shape.rank_known() ? static_cast<uint8_t>(shape.rank()) : wire::kUnknownRank);
  for (int64_t dim : shape.dims()) w.number(dim);
}

void GraphWriter::element(Writer& w, const FunctionAttr& v) {
  w.text(v.name);
  w.number(static_cast<uint64_t>(v.attrs.size()));
  for (const auto& [name, attr] : v.attrs) {
    w.text(name);
    value(w, attr);
  }
}

void GraphWriter::value(Writer& w, const AttrValue& v) {
  w.number(static_cast<uint8_t>(v.kind()));
  switch (v.kind()) {
    case AttrKind::kNone:
      throw internal_error("an attribute has no value");
    case AttrKind::kInt:
      return element(w, v.get<int64_t>());
    case AttrKind::kFloat:
      return element(w, v.get<double>());
    case AttrKind::kBool:
      return element(w, v.get<bool>());
    case AttrKind::kString:
      return element(w, v.get<std::string>());
    case AttrKind::kType:
      return element(w, v.get<DType>());
    case AttrKind::kShape:
      return element(w, v.get<PartialShape>());
    case AttrKind::kTensor:
      return element(w, v.get<Tensor>());
    case AttrKind::kFunction:
      return element(w, v.get<FunctionAttr>());
    case AttrKind::kIntList:
      return elements<int64_t>(w, v);
    case AttrKind::kFloatList:
      return elements<double>(w, v);
    case AttrKind::kBoolList:
      return elements<bool>(w, v);
    case AttrKind::kStringList:
      return elements<std::string>(w, v);
    case AttrKind::kTypeList:
      return elements<DType>(w, v);
    case AttrKind::kShapeList:
      return elements<PartialShape>(w, v);
    case AttrKind::kTensorList:
      return elements<Tensor>(w, v);
    case AttrKind::kFunctionList:
      return elements<FunctionAttr>(w, v);
  }
}

uint64_t GraphWriter::tensor(const Tensor& t) {
  std::vector<int64_t> dims(t.shape().dims().begin(), t.shape().dims().end());
  const auto [at, fresh] =
      tensors_.try_emplace({t.raw(), t.dtype(), std::move(dims)}, tensors_.size());
  if (fresh) {
    kept_.push_back(t);
    tensor_data(t);
  }
  return at->second;
}

void GraphWriter::tensor_data(const Tensor& t) {
  if (t.defined() && !is_plain(t.dtype()) && t.dtype() != DType::kString) {
    throw invalid_argument("a tensor of dtype ", t.dtype(), " cannot be stored in a file");
  }
  Writer head;
  head.number(static_cast<uint8_t>(t.dtype()));
  shape(head, t.shape());
  if (t.dtype() == DType::kString) {
    const std::span<const StringElement> strings = t.values<StringElement>();
    uint64_t bytes = head.bytes().size();
    for (const StringElement& s : strings) bytes += 8 + s.view().size();
    begin(wire::kTensor, bytes);
    put(head.bytes().data(), head.bytes().size());
    for (const StringElement& s : strings) {
      Writer text;
      text.text(s.view());
      put(text.bytes().data(), text.bytes().size());
    }
    return end();
  }
  const size_t bytes = t.defined() ? t.bytes() : 0;
  begin(wire::kTensor, head.bytes().size() + bytes);
  put(head.bytes().data(), head.bytes().size());
  if constexpr (std::endian::native == std::endian::little) {
    put(t.raw(), bytes);
  } else if (bytes > 0) {
    const size_t unit = dtype_size(t.dtype()) / (is_complex(t.dtype()) ? 2 : 1);
    unsigned char piece[kSwapBytes];
    for (size_t at = 0; at < bytes; at += kSwapBytes) {
      const size_t size = std::min(kSwapBytes, bytes - at);
      std::memcpy(piece, static_cast<const char*>(t.raw()) + at, size);
      swap_units(piece, size / unit, unit);
      put(piece, size);
    }
  }
  end();
}

void GraphWriter::node(Writer& w, const Node& node,
                       const std::unordered_map<const Node*, uint64_t>& numbers) {
  const OpInstance& op = node.op();
  w.text(op.name());
  w.number(static_cast<uint32_t>(op.def().version));
  w.text(node.name());
  w.text(node.device());
  w.number(static_cast<uint64_t>(op.def().inputs.size()));
  for (size_t arg = 0; arg < op.def().inputs.size(); ++arg) {
    const auto [begin, end] = op.input_range(static_cast<int>(arg));
    w.number(static_cast<uint32_t>(end - begin));
  }
  w.number(static_cast<uint64_t>(node.inputs().size()));
  for (const Output& input : node.inputs()) {
    w.number(numbers.at(input.node));
    w.number(static_cast<uint32_t>(input.index));
  }
  w.number(static_cast<uint64_t>(node.control_inputs().size()));
  for (const Node* before : node.control_inputs()) w.number(numbers.at(before));
  w.number(static_cast<uint64_t>(op.attrs().size()));
  for (size_t i = 0; i < op.attrs().size(); ++i) {
    w.text(op.def().attrs[i].name);
    value(w, op.attrs()[i]);
  }
  w.number(static_cast<uint64_t>(node.num_outputs()));
  for (int i = 0; i < node.num_outputs(); ++i) shape(w, node.info(i).shape);
}

void GraphWriter::body(const Graph& graph) {
  const std::vector<Node*> order = topological_order(graph);
  std::unordered_map<const Node*, uint64_t> numbers;
  Writer batch;
  uint64_t in_batch = 0;
  const auto flush = [&] {
    if (in_batch == 0) return;
    Writer head;
    head.number(in_batch);
    begin(wire::kNodes, head.bytes().size() + batch.bytes().size());
    put(head.bytes().data(), head.bytes().size());
    put(batch.bytes().data(), batch.bytes().size());
    end();
    batch.bytes().clear();
    in_batch = 0;
  };
  for (const Node* each : order) {
    if (!may_be_stored(each->type(), exchanges_)) {
      throw invalid_argument(error_prefix(each->type(), each->name()),
                             "is internal and cannot be stored in a file");
    }
    try {
      node(batch, *each, numbers);  // tensors it needs go out now, before the batch it is in
    } catch (const Error& error) {
      throw error.with_prefix(error_prefix(each->type(), each->name()));
    }
    numbers.emplace(each, numbers.size());
    ++in_batch;
    if (batch.bytes().size() >= kBatchBytes) flush();
  }
  flush();
  colocated(order);
  num_nodes_ += order.size();
}

// Where nothing must run beside another the file is one that any release reads.
void GraphWriter::colocated(const std::vector<Node*>& order) {
  Writer list;
  uint64_t count = 0;
  for (size_t number = 0; number < order.size(); ++number) {
    const std::span<const std::string> names = order[number]->colocated_with();
    if (names.empty()) continue;
    ++count;
    list.number(static_cast<uint64_t>(number));
    list.number(static_cast<uint64_t>(names.size()));
    for (const std::string& name : names) list.text(name);
  }
  if (count == 0) return;
  Writer payload;
  payload.number(count);
  section(wire::kColocated, payload.bytes() + list.bytes());
}

void GraphWriter::function(const Function& f) {
  Writer w;
  w.text(f.name);
  w.text(f.doc);
  w.text(f.gradient);
  for (const std::vector<FunctionArg>* args : {&f.inputs, &f.outputs}) {
    w.number(static_cast<uint64_t>(args->size()));
    for (const FunctionArg& arg : *args) {
      w.text(arg.name);
      w.number(static_cast<uint8_t>(arg.dtype));
      shape(w, arg.shape);
    }
  }
  for (const std::vector<std::string>* names : {&f.input_nodes, &f.output_values}) {
    w.number(static_cast<uint64_t>(names->size()));
    for (const std::string& name : *names) w.text(name);
  }
  w.number(static_cast<uint8_t>(f.body != nullptr));
  section(wire::kFunction, w.bytes());
  if (f.body != nullptr) {
    if (!f.body->functions().empty()) {
      throw invalid_argument("the body of function \"", f.name,
                             "\" defines functions of its own: define them beside it");
    }
    body(*f.body);
  }
  section(wire::kEndOfFunction, std::string());
}

void GraphWriter::file(const Graph& graph) {
  Writer head;
  head.bytes().assign(reinterpret_cast<const char*>(wire::kMagic), sizeof wire::kMagic);
  head.number(kGraphFormatVersion);
  sink_.write(head.bytes().data(), head.bytes().size());
  Writer meta;
  meta.text(build_info::kVersion);
  meta.number(static_cast<uint8_t>(graph.has_seed));
  meta.number(graph.seed);
  section(wire::kMeta, meta.bytes());
  for (const auto& [name, each] : graph.functions()) function(*each);
  body(graph);
  Writer end;
  end.number(num_nodes_);
  end.number(static_cast<uint64_t>(tensors_.size()));
  section(wire::kEnd, end.bytes());
}

}  // namespace

bool may_be_stored(std::string_view op, Exchanges exchanges) {
  if (exchanges == Exchanges::kAllowed && (op == "_Send" || op == "_Recv" || op == "_RunPiece"))
    return true;
  return !op.starts_with('_');
}

void write_graph(const Graph& graph, ByteSink& sink, Exchanges exchanges) {
  GraphWriter(sink, exchanges).file(graph);
}

}  // namespace treenail
