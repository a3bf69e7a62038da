// SPDX-License-Identifier: Apache-2.0
// Reading graph files that anybody may have written: every length is held to what is left of the
// file before memory is taken for it, a section's CRC is checked before its contents are believed,
// and nodes are added through Graph::add, which checks them as if a user had called it.
#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/base/byte_order.h"
#include "framework/base/crc32c.h"
#include "framework/base/error.h"
#include "framework/graph/function.h"
#include "framework/graph/serialize.h"
#include "framework/graph/wire.h"
#include "framework/op/op_registry.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/truth_values.h"

namespace treenail {
namespace {

using wire::Reader;

constexpr uint64_t kSkipBytes = uint64_t{1} << 16;
constexpr uint64_t kHeadBytes = 12;  // tag and length
constexpr uint64_t kTailBytes = 4;   // CRC

std::string tag_text(uint32_t tag) {
  std::string text;
  for (int i = 0; i < 4; ++i, tag >>= 8) {
    const char c = static_cast<char>(tag & 0xff);
    text.push_back(c >= ' ' && c <= '~' ? c : '?');
  }
  return text;
}

// One section: head read by the constructor, payload by read(), CRC by end().
class Section {
 public:
  explicit Section(ByteSource& source) : source_(source) {
    char head[kHeadBytes];
    if (source_.remaining() < kHeadBytes)
      throw data_loss("it ends without an end section: it is truncated");
    source_.read(head, sizeof head);
    crc_ = crc32c(head, sizeof head);
    Reader reader({head, sizeof head});
    tag = reader.number<uint32_t>();
    left = reader.number<uint64_t>();
    const uint64_t rest = source_.remaining();
    if (rest < kTailBytes || left > rest - kTailBytes) {
      throw data_loss("section ", tag_text(tag), " claims ", left, " bytes, ", rest,
                      " are left: it is truncated");
    }
  }

  void read(void* data, uint64_t bytes) {
    if (bytes > left) throw data_loss("section ", tag_text(tag), " ends within a value");
    source_.read(data, static_cast<size_t>(bytes));
    crc_ = crc32c(data, static_cast<size_t>(bytes), crc_);
    left -= bytes;
  }

  std::string payload() {
    std::string bytes(static_cast<size_t>(left), '\0');
    read(bytes.data(), left);
    end();
    return bytes;
  }

  void skip() {
    char piece[kSkipBytes];
    while (left > 0) read(piece, std::min(left, kSkipBytes));
    end();
  }

  void end() {
    if (left != 0)
      throw data_loss(left, " bytes are left over at the end of section ", tag_text(tag));
    char tail[kTailBytes];
    source_.read(tail, sizeof tail);
    if (Reader({tail, sizeof tail}).number<uint32_t>() != crc_) {
      throw data_loss("the checksum of section ", tag_text(tag),
                      " does not match: its bytes were changed");
    }
  }

  uint32_t tag = 0;
  uint64_t left = 0;

 private:
  ByteSource& source_;
  uint32_t crc_ = 0;
};

class GraphReader {
 public:
  GraphReader(ByteSource& source, Exchanges exchanges) : source_(source), exchanges_(exchanges) {}
  std::unique_ptr<Graph> file();

 private:
  void magic();
  void meta(Graph& graph);
  // Sections up to the one tagged `end`, whose payload it returns.
  std::string body(Graph& graph, uint32_t end);
  void function(Graph& graph, const std::string& head);
  std::vector<FunctionArg> function_args(Reader& r);
  void nodes(Graph& graph, std::vector<Node*>& numbered, const std::string& payload);
  void node(Graph& graph, std::vector<Node*>& numbered, Reader& r);
  void colocated(Graph& graph, const std::vector<Node*>& numbered, const std::string& payload);
  void tensor(Section& section);
  Tensor strings(Section& section, const Shape& shape);
  PartialShape shape(Reader& r);
  DType dtype(Reader& r);
  AttrValue value(Reader& r, int depth);
  template <class T>
  T element(Reader& r, int depth);
  template <class T>
  std::vector<T> elements(Reader& r, size_t least, int depth);
  NamedAttrs attrs(Reader& r, int depth);

  ByteSource& source_;
  const Exchanges exchanges_;
  std::vector<Tensor> tensors_;
  uint64_t num_nodes_ = 0;
};

PartialShape GraphReader::shape(Reader& r) {
  const auto rank = r.number<uint8_t>();
  if (rank == wire::kUnknownRank) return PartialShape();
  if (rank > kMaxRank)
    throw data_loss("a shape has rank ", static_cast<int>(rank), ", at most ", kMaxRank,
                    " is possible");
  int64_t dims[kMaxRank];
  for (int i = 0; i < rank; ++i) dims[i] = r.number<int64_t>();
  return PartialShape(std::span<const int64_t>(dims, rank));
}

DType GraphReader::dtype(Reader& r) {
  const auto number = r.number<uint8_t>();
  if (number != 0 && !dtype_is_valid(number))
    throw data_loss("there is no dtype number ", static_cast<int>(number));
  return static_cast<DType>(number);
}

Tensor GraphReader::strings(Section& section, const Shape& shape) {
  if (static_cast<uint64_t>(shape.num_elements()) > section.left / 8) {
    throw data_loss("a string tensor of shape ", shape, " does not fit in its section");
  }
  Tensor tensor(DType::kString, shape);
  std::string bytes;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    char size_bytes[8];
    section.read(size_bytes, sizeof size_bytes);
    const auto size = Reader({size_bytes, sizeof size_bytes}).number<uint64_t>();
    if (size > section.left) throw data_loss("a string ends beyond its section");
    bytes.resize(static_cast<size_t>(size));
    section.read(bytes.data(), size);
    tensor.data<StringElement>()[i] = StringElement(bytes);
  }
  return tensor;
}

void GraphReader::tensor(Section& section) {
  char head[2 + 8 * kMaxRank];
  section.read(head, 2);
  const auto rank = static_cast<unsigned char>(head[1]);
  if (rank > kMaxRank) throw data_loss("a tensor has rank ", static_cast<int>(rank));
  section.read(head + 2, uint64_t{8} * rank);
  Reader r({head, size_t{2} + 8 * rank});
  const DType type = dtype(r);
  const PartialShape stored = shape(r);
  if (!stored.fully_known()) throw data_loss("a tensor has the shape ", stored);
  const Shape dims = stored.shape();
  if (type == DType::kString) {
    tensors_.push_back(strings(section, dims));
    return section.end();
  }
  if (type == DType::kInvalid) {
    tensors_.emplace_back();
    return section.end();
  }
  if (!is_plain(type)) throw data_loss("a tensor of dtype ", type, " cannot stand in a file");
  const uint64_t size = dtype_size(type);
  if (section.left % size != 0 ||
      section.left / size != static_cast<uint64_t>(dims.num_elements())) {
    throw data_loss("a tensor ", type, dims, " has ", section.left, " bytes of data");
  }
  Tensor tensor(type, dims);
  section.read(tensor.raw(), section.left);
  section.end();
  const size_t unit = size / (is_complex(type) ? 2 : 1);
  swap_units(tensor.raw(), tensor.bytes() / unit, unit);
  if (type == DType::kBool && !are_truth_values(tensor.raw(), tensor.bytes())) {
    throw data_loss("a tensor of truth values holds other bytes than 0 and 1");
  }
  tensors_.push_back(std::move(tensor));
}

template <class T>
T GraphReader::element(Reader& r, int depth) {
  if constexpr (std::is_same_v<T, int64_t>) {
    return r.number<int64_t>();
  } else if constexpr (std::is_same_v<T, double>) {
    return r.real();
  } else if constexpr (std::is_same_v<T, bool>) {
    return r.boolean();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return std::string(r.text());
  } else if constexpr (std::is_same_v<T, DType>) {
    return dtype(r);
  } else if constexpr (std::is_same_v<T, PartialShape>) {
    return shape(r);
  } else if constexpr (std::is_same_v<T, Tensor>) {
    const auto number = r.number<uint64_t>();
    if (number >= tensors_.size()) throw data_loss("tensor ", number, " is named before it comes");
    return tensors_[static_cast<size_t>(number)];
  } else {
    if (depth >= wire::kMaxFunctionDepth)
      throw data_loss("function attributes are nested too deeply");
    std::string name(r.text());
    return FunctionAttr{std::move(name), attrs(r, depth + 1)};
  }
}

template <class T>
std::vector<T> GraphReader::elements(Reader& r, size_t least, int depth) {
  std::vector<T> list;
  for (size_t n = r.count(least); n > 0; --n) list.push_back(element<T>(r, depth));
  return list;
}

AttrValue GraphReader::value(Reader& r, int depth) {
  const auto number = r.number<uint8_t>();
  switch (static_cast<AttrKind>(number)) {
    case AttrKind::kNone:
      break;
    case AttrKind::kInt:
      return element<int64_t>(r, depth);
    case AttrKind::kFloat:
      return element<double>(r, depth);
    case AttrKind::kBool:
      return element<bool>(r, depth);
    case AttrKind::kString:
      return element<std::string>(r, depth);
    case AttrKind::kType:
      return element<DType>(r, depth);
    case AttrKind::kShape:
      return element<PartialShape>(r, depth);
    case AttrKind::kTensor:
      return element<Tensor>(r, depth);
    case AttrKind::kFunction:
      return element<FunctionAttr>(r, depth);
    case AttrKind::kIntList:
      return elements<int64_t>(r, 8, depth);
    case AttrKind::kFloatList:
      return elements<double>(r, 8, depth);
    case AttrKind::kBoolList:
      return elements<bool>(r, 1, depth);
    case AttrKind::kStringList:
      return elements<std::string>(r, 8, depth);
    case AttrKind::kTypeList:
      return elements<DType>(r, 1, depth);
    case AttrKind::kShapeList:
      return elements<PartialShape>(r, 1, depth);
    case AttrKind::kTensorList:
      return elements<Tensor>(r, 8, depth);
    case AttrKind::kFunctionList:
      return elements<FunctionAttr>(r, 16, depth);
  }
  throw data_loss("there is no kind of attribute number ", static_cast<int>(number));
}

NamedAttrs GraphReader::attrs(Reader& r, int depth) {
  NamedAttrs list;
  for (size_t n = r.count(9); n > 0; --n) {
    std::string name(r.text());
    AttrValue attr = value(r, depth);
    list.emplace_back(std::move(name), std::move(attr));
  }
  return list;
}

// The op's definition, with `attrs` brought to its version.
const OpDef& definition(std::string_view op, uint32_t version, NamedAttrs& attrs,
                        Exchanges exchanges) {
  if (!may_be_stored(op, exchanges))
    throw data_loss("op \"", op, "\" is internal and never stands in a file");
  const OpDef& def = OpRegistry::instance().get(op);
  const auto known = static_cast<uint32_t>(def.version);
  if (version == 0) throw data_loss("an op has version 0");
  if (version > known) {
    throw unimplemented("the file holds version ", version,
                        " of this op, this Treenail knows version ", known,
                        ": it was written by a newer one");
  }
  for (uint32_t v = version; v < known; ++v) def.upgrades[v - 1](attrs);
  return def;
}

void GraphReader::node(Graph& graph, std::vector<Node*>& numbered, Reader& r) {
  const std::string_view op = r.text();
  const auto version = r.number<uint32_t>();
  const std::string_view name = r.text();
  const std::string_view device = r.text();
  std::vector<int> arg_sizes;
  for (size_t n = r.count(4); n > 0; --n) {
    const auto size = r.number<uint32_t>();
    if (size > static_cast<uint32_t>(std::numeric_limits<int>::max()))
      throw data_loss("an argument has ", size, " inputs");
    arg_sizes.push_back(static_cast<int>(size));
  }
  const auto source = [&](uint64_t number) {
    if (number >= numbered.size())
      throw data_loss("node \"", name, "\" uses node ", number, ", which comes later or never");
    return numbered[static_cast<size_t>(number)];
  };
  std::vector<Output> inputs;
  std::vector<DType> types;
  for (size_t n = r.count(12); n > 0; --n) {
    Node* from = source(r.number<uint64_t>());
    const auto index = r.number<uint32_t>();
    if (index >= static_cast<uint32_t>(from->num_outputs())) {
      throw data_loss("node \"", name, "\" uses output ", index, " of \"", from->name(),
                      "\", which has ", from->num_outputs());
    }
    inputs.push_back({from, static_cast<int>(index)});
    types.push_back(from->op().output_type(static_cast<int>(index)));
  }
  std::vector<Node*> control_inputs;
  for (size_t n = r.count(8); n > 0; --n) control_inputs.push_back(source(r.number<uint64_t>()));
  NamedAttrs attributes = attrs(r, 0);
  std::vector<PartialShape> shapes = elements<PartialShape>(r, 1, 0);

  try {
    const OpDef& def = definition(op, version, attributes, exchanges_);
    // Before Graph::add takes memory per output: the file has bytes for each.
    const int outputs = resolve_op(def, types, attributes, arg_sizes).num_outputs();
    if (static_cast<size_t>(outputs) != shapes.size()) {
      throw data_loss("the file tells ", shapes.size(), " output shapes, the op has ", outputs,
                      " outputs");
    }
  } catch (const Error& error) {
    throw error.with_prefix(error_prefix(op, name));
  }
  Node& added = graph.add({.op = op,
                           .name = name,
                           .inputs = inputs,
                           .attrs = attributes,
                           .arg_sizes = arg_sizes,
                           .control_inputs = control_inputs,
                           .device = device});
  if (added.name() != name) throw data_loss("two nodes are called \"", name, "\"");
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Output output{&added, static_cast<int>(i)};
    if (shapes[i].rank_known() && !(shapes[i] == added.info(output.index).shape))
      graph.set_shape(output, shapes[i]);
  }
  numbered.push_back(&added);
}

void GraphReader::nodes(Graph& graph, std::vector<Node*>& numbered, const std::string& payload) {
  Reader r(payload);
  for (size_t n = r.count(1); n > 0; --n) node(graph, numbered, r);
  r.expect_end();
}

void GraphReader::colocated(Graph& graph, const std::vector<Node*>& numbered,
                            const std::string& payload) {
  Reader r(payload);
  for (size_t n = r.count(16); n > 0; --n) {
    const auto number = r.number<uint64_t>();
    if (number >= numbered.size())
      throw data_loss("node ", number, " is colocated with others and is not there");
    graph.set_colocated(*numbered[static_cast<size_t>(number)], elements<std::string>(r, 8, 0));
  }
  r.expect_end();
}

std::vector<FunctionArg> GraphReader::function_args(Reader& r) {
  std::vector<FunctionArg> args;
  for (size_t n = r.count(10); n > 0; --n) {
    FunctionArg arg;
    arg.name = r.text();
    arg.dtype = dtype(r);
    arg.shape = shape(r);
    args.push_back(std::move(arg));
  }
  return args;
}

void GraphReader::function(Graph& graph, const std::string& head) {
  auto f = std::make_shared<Function>();
  Reader r(head);
  f->name = r.text();
  f->doc = r.text();
  f->gradient = r.text();
  f->inputs = function_args(r);
  f->outputs = function_args(r);
  f->input_nodes = elements<std::string>(r, 8, 0);
  f->output_values = elements<std::string>(r, 8, 0);
  const bool has_body = r.boolean();
  r.expect_end();
  auto inner = std::make_unique<Graph>();
  const std::string end = body(*inner, wire::kEndOfFunction);
  if (!end.empty()) throw data_loss("the end of a function holds bytes");
  if (!has_body && inner->num_nodes() != 0)
    throw data_loss("function \"", f->name, "\" has nodes and no body");
  if (has_body) {
    if (f->input_nodes.size() != f->inputs.size() || f->output_values.size() != f->outputs.size()) {
      throw data_loss("function \"", f->name,
                      "\" and its body have different numbers of arguments");
    }
    for (const std::string& name : f->input_nodes) {
      if (inner->find(name.substr(0, name.find(':'))) == nullptr)
        throw data_loss("function \"", f->name, "\" has no node \"", name, "\"");
      static_cast<void>(inner->find_output(name));
    }
    for (const std::string& name : f->output_values) static_cast<void>(inner->find_output(name));
    f->body = std::move(inner);
  }
  const std::string name = f->name;
  if (!graph.functions().emplace(name, std::move(f)).second)
    throw data_loss("two functions are called \"", name, "\"");
}

std::string GraphReader::body(Graph& graph, uint32_t end) {
  std::vector<Node*> numbered;
  for (;;) {
    Section section(source_);
    if (section.tag == end) {
      num_nodes_ += numbered.size();
      return section.payload();
    }
    if (section.tag == wire::kTensor) {
      tensor(section);
    } else if (section.tag == wire::kNodes) {
      nodes(graph, numbered, section.payload());
    } else if (section.tag == wire::kColocated) {
      colocated(graph, numbered, section.payload());
    } else if (section.tag == wire::kFunction && end == wire::kEnd) {
      function(graph, section.payload());
    } else if ((section.tag & 0x20) != 0) {
      section.skip();
    } else {
      section.skip();  // a wrong checksum says more than an unknown tag
      throw unimplemented("it holds a section ", tag_text(section.tag),
                          " that this Treenail does not know here");
    }
  }
}

void GraphReader::magic() {
  unsigned char head[sizeof wire::kMagic + 4] = {};
  const bool whole = source_.remaining() >= sizeof head;
  if (whole) source_.read(head, sizeof head);
  if (!whole || !std::equal(std::begin(wire::kMagic), std::end(wire::kMagic), head)) {
    throw invalid_argument(
        "it is not a Treenail graph: it does not begin with the signature of one");
  }
  const auto version =
      Reader({reinterpret_cast<const char*>(head) + sizeof wire::kMagic, 4}).number<uint32_t>();
  if (version == 0) throw data_loss("it has format version 0");
  if (version > kGraphFormatVersion) {
    throw unimplemented("it has format version ", version, ", this Treenail reads versions up to ",
                        kGraphFormatVersion, ": it was written by a newer one");
  }
}

void GraphReader::meta(Graph& graph) {
  Section section(source_);
  if (section.tag != wire::kMeta)
    throw data_loss("its first section is ", tag_text(section.tag), ", not META");
  const std::string payload = section.payload();
  Reader r(payload);
  r.text();  // the version that wrote it: for people who look into files
  graph.has_seed = r.boolean();
  graph.seed = r.number<int64_t>();
}

std::unique_ptr<Graph> GraphReader::file() {
  auto graph = std::make_unique<Graph>();
  magic();
  meta(*graph);
  const std::string end = body(*graph, wire::kEnd);
  Reader r(end);
  if (r.number<uint64_t>() != num_nodes_ || r.number<uint64_t>() != tensors_.size()) {
    throw data_loss(
        "its end tells other numbers of nodes and tensors than it holds: sections are missing");
  }
  if (source_.remaining() != 0) throw data_loss(source_.remaining(), " bytes follow its end");
  return graph;
}

}  // namespace

std::unique_ptr<Graph> read_graph(ByteSource& source, Exchanges exchanges) {
  return GraphReader(source, exchanges).file();
}

}  // namespace treenail
