// SPDX-License-Identifier: Apache-2.0
// Sessions at a server, as their client has them: of each signature the part of the graph that it
// needs goes to the master once, and again when an existing node of the graph has changed.
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/distributed/client.h"
#include "framework/distributed/client_parts.h"
#include "framework/distributed/client_remote.h"
#include "framework/distributed/own_servers.h"
#include "framework/graph/import.h"
#include "framework/graph/serialize.h"
#include "framework/placement/cost_model_bytes.h"
#include "framework/runtime/plan/graph_copier.h"
#include "framework/runtime/run/remote_session.h"
#include "framework/runtime/run/signature.h"

namespace treenail {
namespace {

constexpr std::string_view kScheme = "grpc://";

std::string address_of(const std::string& target) {
  if (!target.starts_with(kScheme) || target.find(':', kScheme.size()) == std::string::npos) {
    throw invalid_argument(
        "a session's target is \"\" (this process) or \"grpc://host:port\", not "
        "\"",
        target, "\"");
  }
  return target.substr(kScheme.size());
}

// A server of this process needs to be told nothing of its own.
std::shared_ptr<const Credentials> shown_to(const std::string& target,
                                            const std::string& credentials) {
  const OwnServer own = own_server(address_of(target));
  if (credentials.empty() && own.credentials != nullptr) return own.credentials;
  return credentials_from(credentials);
}

// A graph of its own of what a run needs: cut at the feeds, each of which is a placeholder there.
protocol::Program program_of(const Graph& graph, const Session::Signature& signature) {
  Graph part(Graph::Names::kAny);
  protocol::Program program;
  std::vector<Output> stand_ins(signature.feeds.size());
  GraphCopier::Calls calls;
  const auto feed = [&](size_t i) {
    Output& known = stand_ins[i];
    if (known.node != nullptr) return known;
    const Output& fed = signature.feeds[i];
    std::string name = concat("feed_", i);
    while (graph.find(name) != nullptr) name += "_";
    const NamedAttrs attrs = {{"dtype", fed.node->op().output_type(fed.index)},
                              {"shape", fed.node->info(fed.index).shape}};
    known = {&part.add({.op = "Placeholder", .name = name, .inputs = {}, .attrs = attrs}), 0};
    return known;
  };
  GraphCopier copier(graph, signature.feeds, part, calls, feed);
  for (const Output& fetch : signature.fetches) copier.need(fetch);
  for (const Node* target : signature.targets) copier.need(*target);
  copier.copy_needed();
  for (size_t i = 0; i < stand_ins.size(); ++i) program.feeds.push_back(to_text(feed(i)));
  for (const Output& fetch : signature.fetches)
    program.fetches.push_back(to_text(copier.copy_of(fetch)));
  for (const Node* target : signature.targets)
    program.targets.push_back(copier.copy_of(*target)->name());
  copy_called_functions(graph, part);
  part.has_seed = graph.has_seed;
  part.seed = graph.seed;
  program.graph = graph_to_bytes(part);
  return program;
}

class ClientSession final : public RemoteSession {
 public:
  ClientSession(const std::string& target, std::shared_ptr<Graph> graph,
                const SessionOptions& options, const ClientOptions& client)
      : remote_(std::make_shared<Remote>(address_of(target), shown_to(target, client.credentials),
                                         client.patience)),
        graph_(std::move(graph)),
        parts_(remote_, *graph_) {
    const protocol::Settings settings{
        options.fold_constants,
        options.merge_common_subexpressions,
        options.fuse_elementwise,
        options.allow_soft_placement,
        options.log_placement,
        own_server(address_of(target)).secret,
        client.device_filters,
        static_cast<uint64_t>(client.sent_as),
        options.placement ? cost_model_to_bytes(*options.placement) : std::string()};
    const Message reply = remote_->peer.call(protocol::master::kOpenSession,
                                             protocol::write(settings), {}, {.repeatable = true});
    const auto opened = protocol::read<protocol::SessionOpened>(reply.fields());
    remote_->session = opened.session;
    devices_ = opened.devices;
    figures_ = opened.figures;
  }
  ~ClientSession() override { close(); }

  std::vector<Tensor> run(Session::Signature& signature, std::span<const Tensor> feeds,
                          const RunOptions& options, RunMetadata* metadata) override {
    const InterruptScope interrupts(options.poll);
    const std::shared_ptr<const ClientPlan> plan = plan_for(signature, signature.remote, false);
    protocol::RunRequest request;
    request.session = remote_->session;
    request.number = plan->number;
    request.timeout_ms = options.timeout_ms;
    request.trace = metadata != nullptr && options.trace;
    const Message reply =
        remote_->peer.call(protocol::master::kRun, protocol::write(request), feeds,
                           {.timeout_ms = options.timeout_ms, .token = options.token});
    if (reply.tensors.size() != signature.fetches.size())
      throw data_loss(remote_->peer.who(), " gave ", reply.tensors.size(), " values instead of ",
                      signature.fetches.size());
    if (metadata != nullptr) {
      *metadata = protocol::metadata_of(protocol::read<protocol::RunReply>(reply.fields()));
      metadata->begun_ns = 0;  // by another clock
    }
    return reply.tensors;
  }

  std::string partial_run_setup(const std::shared_ptr<Session::Signature>& signature,
                                const RunOptions& options) override {
    const InterruptScope interrupts(options.poll);
    return parts_.begin(signature, plan_for(*signature, signature->remote_in_parts, true), options);
  }

  std::vector<Tensor> partial_run(const std::string& handle, const Session::Part& part,
                                  const RunOptions& options) override {
    const InterruptScope interrupts(options.poll);
    check_open();
    return parts_.go_on(handle, part, options);
  }

  void end_partial_run(const std::string& handle) override { parts_.end(handle); }

  std::vector<std::string> devices() const override { return devices_; }
  std::string figures() const override { return figures_; }

  void close() override {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    remote_->peer.tell(protocol::master::kCloseSession,
                       protocol::write(protocol::Handle{remote_->session, 0}));
  }

 private:
  void check_open() {
    const std::lock_guard lock(mutex_);
    if (closed_) throw_session_closed();
  }

  // `kept`: of the signature.
  std::shared_ptr<const ClientPlan> plan_for(Session::Signature& signature,
                                             std::shared_ptr<const RemotePlan>& kept,
                                             bool in_parts) {
    const std::lock_guard lock(mutex_);
    if (closed_) throw_session_closed();
    const auto known = std::static_pointer_cast<const ClientPlan>(kept);
    if (known != nullptr && known->epoch == graph_->epoch()) return known;
    protocol::Program program;
    int64_t epoch = 0;
    {
      const std::shared_lock graph_lock(graph_->mutex());
      epoch = graph_->epoch();
      program = program_of(*graph_, signature);
    }
    program.session = remote_->session;
    program.in_parts = in_parts;
    const Message reply = remote_->peer.call(protocol::master::kMakePlan, protocol::write(program),
                                             {}, {.repeatable = true});
    const uint64_t number = protocol::read<protocol::Handle>(reply.fields()).number;
    const auto made = std::make_shared<const ClientPlan>(remote_, number, epoch);
    kept = made;
    return made;
  }

  const std::shared_ptr<Remote> remote_;
  const std::shared_ptr<Graph> graph_;
  ClientParts parts_;
  std::vector<std::string> devices_;
  std::string figures_;
  std::mutex mutex_;  // guards what follows, and what signatures keep
  bool closed_ = false;
};

}  // namespace

std::shared_ptr<RemoteSession> open_remote_session(const std::string& target,
                                                   const std::shared_ptr<Graph>& graph,
                                                   const SessionOptions& options,
                                                   const ClientOptions& client) {
  return std::make_shared<ClientSession>(target, graph, options, client);
}

void reset_cluster(const std::string& target, const std::vector<std::string>& containers,
                   const std::string& credentials) {
  const Remote remote(address_of(target), shown_to(target, credentials));
  const protocol::ResetRequest request{containers, ""};
  remote.peer.call(protocol::master::kReset, protocol::write(request), {}, {.repeatable = true});
}

}  // namespace treenail
