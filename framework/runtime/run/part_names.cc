// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/part_names.h"

#include <algorithm>
#include <string_view>

#include "framework/base/error.h"
#include "framework/runtime/run/signature.h"

namespace treenail {
namespace {

int64_t key_of(const Output& value) {
  return (static_cast<int64_t>(value.node->id()) << 32) | value.index;
}
int64_t key_of(const Node* node) { return node->id(); }

bool belongs_to(const Output& value, const Graph& graph) {
  return value.node != nullptr && &value.node->graph() == &graph;
}
bool belongs_to(const Node* node, const Graph& graph) {
  return node != nullptr && &node->graph() == &graph;
}

std::string text_of(const Output& value) { return concat("\"", value, "\""); }
std::string text_of(const Node* node) { return concat("\"", node->name(), "\""); }

// Which part of the set-up each of them is. Named twice in the set-up, it is named once in a part.
template <class Thing>
std::unordered_map<int64_t, size_t> places_of(const std::vector<Thing>& things,
                                              std::vector<bool>& named) {
  std::unordered_map<int64_t, size_t> places;
  named.resize(things.size());
  for (size_t i = 0; i < things.size(); ++i)
    named[i] = !places.emplace(key_of(things[i]), i).second;
  return places;
}

template <class Thing>
size_t place_of(const Thing& thing, const Graph& graph,
                const std::unordered_map<int64_t, size_t>& places, const std::vector<bool>& named,
                std::string_view what) {
  if (!belongs_to(thing, graph))
    throw invalid_argument("the ", what, " is not of the session's graph");
  const auto it = places.find(key_of(thing));
  if (it == places.end()) {
    throw invalid_argument("the ", what, " ", text_of(thing),
                           " was not named in partial_run_setup");
  }
  if (named[it->second]) {
    throw invalid_argument("the ", what, " ", text_of(thing),
                           " was named in an earlier part of this run: once is all there is");
  }
  return it->second;
}

[[noreturn]] void refuse(std::string_view what, const std::string& name, const Output& feed) {
  throw invalid_argument("the ", what, " ", name,
                         " cannot be computed from what has been fed so far: it needs ",
                         text_of(feed));
}

}  // namespace

PartNames::PartNames(const Graph& graph, const Session::Signature& signature)
    : graph_(graph),
      signature_(signature),
      feeds_(places_of(signature.feeds, fed_)),
      fetches_(places_of(signature.fetches, fetched_)),
      targets_(places_of(signature.targets, ran_)) {}

PartNames::Request PartNames::request_of(const Session::Part& part) const {
  Request request;
  std::vector<bool> fed = fed_, fetched = fetched_, ran = ran_;
  const auto name = [](std::vector<size_t>& list, std::vector<bool>& named, size_t place) {
    named[place] = true;
    list.push_back(place);
  };
  for (const auto& [value, tensor] : part.feeds)
    name(request.feeds, fed, place_of(value, graph_, feeds_, fed, "feed"));
  for (const Output& value : part.fetches)
    name(request.fetches, fetched, place_of(value, graph_, fetches_, fetched, "fetch"));
  for (const Node* node : part.targets)
    name(request.targets, ran, place_of(node, graph_, targets_, ran, "target"));
  for (const auto& [value, tensor] : part.feeds) check_feed(value, tensor);
  return request;
}

void PartNames::note_done(const Request& request) {
  for (const size_t i : request.fetches) fetched_[i] = true;
  for (const size_t i : request.targets) ran_[i] = true;
}

size_t PartNames::left() const {
  size_t left = 0;
  for (const auto* named : {&fed_, &fetched_, &ran_})
    left += static_cast<size_t>(std::count(named->begin(), named->end(), false));
  return left;
}

void PartNames::refuse_fetch(size_t fetch, size_t missing_feed) const {
  refuse("fetch", text_of(signature_.fetches[fetch]), signature_.feeds[missing_feed]);
}

void PartNames::refuse_target(size_t target, size_t missing_feed) const {
  refuse("target", text_of(signature_.targets[target]), signature_.feeds[missing_feed]);
}

void throw_no_partial_run(const std::string& handle) {
  throw invalid_argument("\"", handle, "\" is no partial run that goes on in this session: it ",
                         "has ended, or partial_run_setup() did not give it");
}

}  // namespace treenail
