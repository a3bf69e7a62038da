// SPDX-License-Identifier: Apache-2.0
// Graph files: a versioned binary format, little-endian on every host, lengths of 64 bits, a CRC32C
// per section, written and read as a stream of sections (docs/formats/graph.md). Weights live in
// checkpoints (io/checkpoint.h), not here. Ops are stored with their version; an older one is
// upgraded attribute by attribute (OpDef::upgrades).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "framework/graph/graph.h"

namespace treenail {

inline constexpr uint32_t kGraphFormatVersion = 1;

class ByteSink {
 public:
  virtual ~ByteSink();
  virtual void write(const void* data, size_t bytes) = 0;
};

class ByteSource {
 public:
  virtual ~ByteSource();
  // Exactly `bytes` bytes. Errors: DataLoss when fewer are left.
  virtual void read(void* data, size_t bytes) = 0;
  // Bytes not read yet: what every length in the file is held to before memory is taken for it.
  virtual uint64_t remaining() const = 0;
};

// What passes values between tasks (ops/exchange.cc) stands in no file, but in pieces of graphs on
// their way from process to process.
enum class Exchanges : uint8_t { kRefused, kAllowed };

// Nodes, functions and seed of `graph`; creation stacks are not kept. The caller holds
// graph.mutex() at least shared. Errors: InvalidArgument for an attribute tensor that holds
// resources or variants, and what `sink` throws.
void write_graph(const Graph& graph, ByteSink& sink, Exchanges exchanges = Exchanges::kRefused);
std::string graph_to_bytes(const Graph& graph, Exchanges exchanges = Exchanges::kRefused);
// To a file that appears under `path` only when it is complete and on disk. Errors: as above and as
// throw_file_error (io/file.h).
void save_graph(const Graph& graph, const std::string& path);

// A new graph. Errors: InvalidArgument (not a graph file; a node that does not fit its op),
// DataLoss (truncated, changed bytes, contradictions), NotFound (an op nobody registered),
// Unimplemented (format, section or op version of a newer Treenail).
std::unique_ptr<Graph> read_graph(ByteSource& source, Exchanges exchanges = Exchanges::kRefused);
std::unique_ptr<Graph> graph_from_bytes(std::string_view bytes,
                                        Exchanges exchanges = Exchanges::kRefused);
// Whether a node of that op may be written and read.
bool may_be_stored(std::string_view op, Exchanges exchanges);
// The same; errors begin `graph file "path": `, and those of opening it are as throw_file_error's.
std::unique_ptr<Graph> load_graph(const std::string& path);

}  // namespace treenail
