// SPDX-License-Identifier: Apache-2.0
// tn_session_*, tn_callable_*, tn_cancellation_*.
#include "framework/runtime/run/session.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/cancellation.h"
#include "framework/capi/graph_handles.h"
#include "framework/distributed/client.h"
#include "framework/runtime/state/resource_manager.h"

using treenail::Session;
using treenail::Tensor;
using treenail::capi::check_room;
using treenail::capi::clear;
using treenail::capi::guarded;
using treenail::capi::required;

struct tn_cancellation {
  treenail::CancellationToken token;
};

struct tn_session {
  std::shared_ptr<treenail::capi::GraphState> state;
  std::shared_ptr<treenail::ResourceManager> resources;
  Session session;
};

struct tn_callable {
  tn_session* session;
  std::shared_ptr<Session::Signature> signature;
  size_t num_feeds;
  size_t num_fetches;
};

namespace {

treenail::RunOptions run_options_of(const tn_run_options* given) {
  const tn_run_options options =
      treenail::capi::versioned(given, tn_run_options TN_RUN_OPTIONS_INIT, "tn_run_options");
  treenail::RunOptions out;
  out.timeout_ms = options.timeout_ms;
  if (options.cancellation != nullptr) out.token = &options.cancellation->token;
  return out;
}

std::shared_ptr<Session::Signature> signature_of(tn_session& session, const tn_output* const* feeds,
                                                 size_t num_feeds, const tn_output* const* fetches,
                                                 size_t num_fetches,
                                                 const tn_operation* const* targets,
                                                 size_t num_targets) {
  return session.session.signature(treenail::capi::outputs_of(feeds, num_feeds, "feeds"),
                                   treenail::capi::outputs_of(fetches, num_fetches, "fetches"),
                                   treenail::capi::nodes_of(targets, num_targets, "targets"));
}

void run(Session& session, const std::shared_ptr<Session::Signature>& signature,
         const tn_run_options* options, const tn_tensor* const* values, size_t num_feeds,
         tn_tensor** results, size_t num_fetches, tn_run_metadata* metadata) {
  const std::vector<Tensor> feeds = treenail::capi::tensors_of(values, num_feeds, "values");
  check_room(results, num_fetches, "results");
  struct Filled {  // after a failure too
    tn_run_metadata* metadata;
    treenail::RunMetadata did;
    ~Filled() {
      if (metadata == nullptr) return;
      treenail::capi::fill_in(
          metadata, tn_run_metadata{sizeof(tn_run_metadata), did.nodes_executed, did.arena_bytes,
                                    did.cost_ns, did.specialized, 0, did.peak_bytes});
    }
  } filled{metadata, {}};
  std::vector<Tensor> fetched = session.run(signature, feeds, run_options_of(options), &filled.did);
  treenail::capi::hand_out(std::move(fetched), results);
}

}  // namespace

tn_cancellation* tn_cancellation_new(tn_status* status) noexcept {
  return guarded(status, [] { return new tn_cancellation; });
}

void tn_cancellation_delete(tn_cancellation* cancellation) noexcept { delete cancellation; }

void tn_cancellation_cancel(tn_cancellation* cancellation, const char* reason) noexcept {
  if (cancellation == nullptr) return;
  guarded(nullptr, [&] {
    cancellation->token.cancel(treenail::Code::kCancelled,
                               reason == nullptr ? "the run was cancelled" : reason);
  });
}

tn_session* tn_session_new(tn_graph* graph, const tn_session_options* options,
                           tn_status* status) noexcept {
  return guarded(status, [&] {
    treenail::capi::state_of(graph);
    const tn_session_options given = treenail::capi::versioned(
        options, tn_session_options TN_SESSION_OPTIONS_INIT, "tn_session_options");
    treenail::SessionOptions wanted;
    wanted.fold_constants = given.fold_constants != 0;
    wanted.merge_common_subexpressions = given.merge_common_subexpressions != 0;
    wanted.allow_soft_placement = given.allow_soft_placement != 0;
    wanted.fuse_elementwise = given.fuse_elementwise != 0;
    const std::string target = given.target == nullptr ? "" : given.target;
    if (given.share_state_with != nullptr && !target.empty()) {
      throw treenail::invalid_argument(
          "share_state_with and target exclude each other: at a server all sessions share state");
    }
    wanted.resources = given.share_state_with != nullptr
                           ? given.share_state_with->resources
                           : std::make_shared<treenail::ResourceManager>();
    treenail::ClientOptions client;
    if (given.credentials != nullptr) client.credentials = given.credentials;
    if (!target.empty()) {
      wanted.remote = treenail::open_remote_session(target, graph->state->shared(), wanted, client);
    }
    return new tn_session{graph->state, wanted.resources, Session(graph->state->shared(), wanted)};
  });
}

void tn_session_close(tn_session* session, tn_status* status) noexcept {
  guarded(status, [&] { required(session, "session").session.close(); });
}

void tn_session_delete(tn_session* session) noexcept { delete session; }

void tn_session_run(tn_session* session, const tn_run_options* options,
                    const tn_output* const* feeds, const tn_tensor* const* values, size_t num_feeds,
                    const tn_output* const* fetches, tn_tensor** results, size_t num_fetches,
                    const tn_operation* const* targets, size_t num_targets,
                    tn_run_metadata* metadata, tn_status* status) noexcept {
  clear(results, num_fetches);
  guarded(status, [&] {
    const auto signature = signature_of(required(session, "session"), feeds, num_feeds, fetches,
                                        num_fetches, targets, num_targets);
    run(session->session, signature, options, values, num_feeds, results, num_fetches, metadata);
  });
}

tn_callable* tn_callable_new(tn_session* session, const tn_output* const* feeds, size_t num_feeds,
                             const tn_output* const* fetches, size_t num_fetches,
                             const tn_operation* const* targets, size_t num_targets,
                             tn_status* status) noexcept {
  return guarded(status, [&] {
    auto signature = signature_of(required(session, "session"), feeds, num_feeds, fetches,
                                  num_fetches, targets, num_targets);
    return new tn_callable{session, std::move(signature), num_feeds, num_fetches};
  });
}

void tn_callable_run(tn_callable* callable, const tn_run_options* options,
                     const tn_tensor* const* values, tn_tensor** results, tn_run_metadata* metadata,
                     tn_status* status) noexcept {
  if (callable != nullptr) clear(results, callable->num_fetches);
  guarded(status, [&] {
    const tn_callable& c = required(callable, "callable");
    run(c.session->session, c.signature, options, values, c.num_feeds, results, c.num_fetches,
        metadata);
  });
}

void tn_callable_delete(tn_callable* callable) noexcept { delete callable; }
