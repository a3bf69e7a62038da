// SPDX-License-Identifier: Apache-2.0
// Who may use a server, what he may have it run, and how much of it he may take.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/error.h"
#include "framework/distributed/access.h"
#include "framework/distributed/callers.h"
#include "framework/distributed/client.h"
#include "framework/distributed/credentials.h"
#include "framework/distributed/limits.h"
#include "framework/distributed/protocol.h"
#include "framework/distributed/rpc.h"
#include "framework/distributed/server.h"
#include "framework/graph/function.h"
#include "framework/graph/serialize.h"
#include "framework/op/op_registry.h"
#include "framework/tensor/string_element.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_builder.h"
#include "tests/support/temporary_directory.h"

namespace treenail {
namespace {

using test::floats;
using test::GraphBuilder;
using test::TemporaryDirectory;
using testing::error_of;

void write_file(const std::string& path, const std::string& text, mode_t mode = 0600) {
  std::ofstream(path) << text;
  ::chmod(path.c_str(), mode);
}

constexpr const char* kPem = "-----BEGIN SOMETHING-----\n";

class CredentialFilesTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder.path() + "/" + name; }
  const TemporaryDirectory folder;
};

TEST_F(CredentialFilesTest, NamesAreTakenFromTheDirectoryOfTheFile) {
  write_file(path("c"), "# ours\ncertificate = own.pem\n\nkey=/etc/own.key\n token-file = t \n");
  const CredentialFiles files = CredentialFiles::read(path("c"));
  EXPECT_EQ(files.certificate, path("own.pem"));
  EXPECT_EQ(files.key, "/etc/own.key");
  EXPECT_EQ(files.token_file, path("t"));
  EXPECT_EQ(files.authority, "");
  write_file(path("c"), "certificat = x\n");
  EXPECT_EQ(error_of([&] { CredentialFiles::read(path("c")); }),
            concat("InvalidArgument: \"certificat\" in line 1 of ", path("c"),
                   " is not understood; did you mean \"certificate\"?"));
  write_file(path("c"), "\ncertificate\n");
  EXPECT_EQ(error_of([&] { CredentialFiles::read(path("c")); }),
            concat("InvalidArgument: in line 2 of ", path("c"), " stands no \"=\": certificate"));
  EXPECT_EQ(error_of([&] { CredentialFiles::read(path("none")); }),
            concat("NotFound: cannot read the file \"", path("none"), "\""));
}

TEST_F(CredentialFilesTest, SecretsAreTheOwnersAlone) {
  write_file(path("own.pem"), kPem, 0644);
  write_file(path("own.key"), kPem, 0640);
  const auto credentials = [&] {
    CredentialFiles files;
    files.certificate = path("own.pem");
    files.key = path("own.key");
    return error_of([&] { const Credentials made(files); });
  };
  EXPECT_EQ(credentials(),
            concat("PermissionDenied: ", path("own.key"),
                   " can be read or written by others than its owner: chmod 600 it"));
  ::chmod(path("own.key").c_str(), 0400);
  EXPECT_EQ(credentials(), "no error");
  write_file(path("own.pem"), "nothing");
  EXPECT_EQ(credentials(), concat("InvalidArgument: ", path("own.pem"),
                                  " is to be a certificate, but holds nothing in PEM"));
  // A service's own, whose access list shows as the group's rights.
  write_file(path("own.pem"), kPem, 0644);
  ::chmod(path("own.key").c_str(), 0440);
  ::setenv("CREDENTIALS_DIRECTORY", folder.path().c_str(), 1);
  EXPECT_EQ(credentials(), "no error");
  ::chmod(path("own.key").c_str(), 0444);
  EXPECT_TRUE(credentials().starts_with("PermissionDenied: "));
  ::unsetenv("CREDENTIALS_DIRECTORY");
}

TEST_F(CredentialFilesTest, SaysWhatDoesNotGoTogether) {
  const auto made = [](const CredentialFiles& files) {
    return error_of([&] { const Credentials credentials(files); });
  };
  EXPECT_EQ(made({.certificate = "/x"}),
            "InvalidArgument: a certificate and its key go together: the key is missing");
  EXPECT_EQ(made({.key = "/x"}),
            "InvalidArgument: a certificate and its key go together: the certificate is missing");
  EXPECT_EQ(made({}),
            "InvalidArgument: credentials need a certificate and a key, or the authority that "
            "signs those of servers");
  EXPECT_EQ(made({.authority = path("none")}),
            concat("NotFound: cannot open ", path("none"), ": No such file or directory"));
}

TEST_F(CredentialFilesTest, TokensAreReadAgainWhenTheyChange) {
  constexpr std::string_view kFirst = "0123456789abcdef", kSecond = "fedcba9876543210";
  write_file(path("t"), concat("# who\nworker ", kFirst, "\n\n  alice\t", kSecond, "\r\n"));
  Tokens tokens(path("t"));
  EXPECT_EQ(tokens.own_name(), "worker");
  EXPECT_EQ(tokens.own(), kFirst);
  EXPECT_EQ(tokens.name_of(kSecond), "alice");
  EXPECT_EQ(tokens.name_of("fedcba987654321"), "");
  EXPECT_EQ(tokens.name_of("fedcba98765432100"), "");
  EXPECT_EQ(tokens.name_of(""), "");
  write_file(path("t"), concat("worker ", kFirst, "\nbob ", kSecond, "\n"));
  EXPECT_EQ(tokens.name_of(kSecond), "bob");
  // What cannot be used is as it was.
  write_file(path("t"), "worker short\n");
  EXPECT_EQ(tokens.name_of(kSecond), "bob");
  ::chmod(path("t").c_str(), 0644);
  EXPECT_EQ(tokens.name_of(kSecond), "bob");
  std::filesystem::remove(path("t"));
  EXPECT_EQ(tokens.name_of(kSecond), "bob");
}

TEST_F(CredentialFilesTest, TokenFilesThatAreNone) {
  const auto reading = [&](const std::string& text, mode_t mode) {
    write_file(path("t"), text, mode);
    return error_of([&] { const Tokens tokens(path("t")); });
  };
  EXPECT_TRUE(reading("a 0123456789abcdef\n", 0644).starts_with("PermissionDenied: "));
  EXPECT_EQ(reading("a 0123456789abcde\n", 0600),
            concat("InvalidArgument: line 1 of ", path("t"),
                   " is not \"NAME TOKEN\" with a token of 16 characters or more"));
  EXPECT_TRUE(reading("0123456789abcdef\n", 0600).starts_with("InvalidArgument: line 1"));
  EXPECT_TRUE(reading("a 0123456789abcdef b\n", 0600).starts_with("InvalidArgument: line 1"));
  EXPECT_EQ(reading("\n#\n", 0600),
            concat("InvalidArgument: ", path("t"), " has no line \"NAME TOKEN\""));
  // No text of an error has a token in it.
  EXPECT_EQ(reading("a 0123456789abcdef b\n", 0600).find("0123456789"), std::string::npos);
}

// --- Callers -------------------------------------------------------------------------------------

TEST_F(CredentialFilesTest, CallersAreKnownByNamesOrTokens) {
  write_file(path("ca.pem"), kPem);
  write_file(path("t"), "cluster 0123456789abcdef\nalice aaaaaaaaaaaaaaaa\n");
  const auto known = std::make_shared<const Credentials>(
      CredentialFiles{.authority = path("ca.pem"), .token_file = path("t")});
  const ClusterSpec cluster = ClusterSpec::parse("ps=node1:1;worker=[::1]:2,node2.site:3");
  const Admission all(cluster, known, {});
  const auto who = [](const Admission& admission, std::vector<std::string_view> names,
                      std::string_view token = "") {
    try {
      return Admission::to_text(admission.admit(names, token));
    } catch (const Error& error) {
      return concat(code_name(error.code()), ": ", error.message());
    }
  };
  EXPECT_EQ(who(all, {"user:bob", "bob@site"}), "user user:bob");
  EXPECT_EQ(who(all, {"spiffe://site/worker", "node2.site"}), "task spiffe://site/worker");
  EXPECT_EQ(who(all, {"::1"}), "task ::1");
  EXPECT_EQ(who(all, {}, "aaaaaaaaaaaaaaaa"), "user alice");
  EXPECT_EQ(who(all, {}, "0123456789abcdef"), "task cluster");
  EXPECT_EQ(who(all, {}, "aaaaaaaaaaaaaaab"),
            "Unauthenticated: this server knows its callers by a certificate or a token; the token "
            "that was shown is not one of them");
  EXPECT_EQ(who(all, {}),
            "Unauthenticated: this server knows its callers by a certificate or a token, and none "
            "was shown that has a name");
  const Admission some(cluster, known, {"alice"});
  EXPECT_EQ(who(some, {}, "aaaaaaaaaaaaaaaa"), "user alice");
  EXPECT_EQ(who(some, {"node1"}), "task node1");
  EXPECT_EQ(who(some, {"bob"}), "PermissionDenied: this server is not open to \"bob\"");
  const Admission nobody(cluster, nullptr, {});
  EXPECT_EQ(who(nobody, {}), "task ");
  EXPECT_EQ(Admission::from_text("user a b").identity, "a b");
  EXPECT_FALSE(Admission::from_text("user a b").is_task);
  EXPECT_TRUE(Admission::from_text("task x").is_task);
  EXPECT_TRUE(Admission::from_text("").is_task);
}

// --- Operations ----------------------------------------------------------------------------------

TEST(HostAccess, EveryOperationThatReachesFurtherSaysSo) {
  std::vector<std::string> found;
  for (const OpDef* op : OpRegistry::instance().all())
    if (op->host_access != HostAccess::kNone && op->family != "plugin")
      found.push_back(concat(op->name, " ", to_text(op->host_access)));
  const std::vector<std::string> wanted = {"CollectiveAllGather network",
                                           "CollectiveAllReduce network",
                                           "CollectiveAllToAll network",
                                           "CollectiveBarrier network",
                                           "CollectiveBroadcast network",
                                           "CollectiveRank network",
                                           "CollectiveReduceScatter network",
                                           "FixedUnigramCandidateSampler files",
                                           "InitializeTableFromTextFileV2 files",
                                           "MergeCheckpoints files",
                                           "Print process",
                                           "PyFunc python",
                                           "PyFuncStateless python",
                                           "Restore files",
                                           "Save files",
                                           "_Recv network",
                                           "_RunPiece network",
                                           "_Send network"};
  EXPECT_EQ(found, wanted);
}

TEST(AccessCheck, LooksIntoEveryFunction) {
  const TemporaryDirectory folder;
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2}, "x");
  b.op("Neg", {x}, {}, "fine");
  const AccessCheck none({});
  none.check(*b.graph);
  b.node("Print", {x, x}, {{"message", std::string("hello")}}, "says");
  EXPECT_EQ(error_of([&] { none.check(*b.graph); }),
            "PermissionDenied: the server does not run operation \"Print\", of node \"says\", for "
            "its clients: it reaches the server's process. Needed is that the server is started "
            "with --allow-ops=Print (Python: allow_ops)");
  AccessCheck({{"Print"}, {}}).check(*b.graph);
  EXPECT_TRUE(error_of([] {
                AccessCheck({{"Prin"}, {}});
              }).starts_with("NotFound: no op \"Prin\""));
  const AccessCheck files(AccessRules{{}, {folder.path()}});
  GraphBuilder inner;
  inner.node(
      "Print",
      {inner.placeholder(DType::kFloat32, {2}, "y"), inner.placeholder(DType::kFloat32, {2}, "z")},
      {}, "within");
  Function function;
  function.name = "speaks";
  function.body = inner.graph;
  GraphBuilder outer;
  outer.graph->functions()["speaks"] = std::make_shared<const Function>(function);
  EXPECT_EQ(error_of([&] { files.check(*outer.graph); }),
            "PermissionDenied: the server does not run operation \"Print\", of node \"within\" in "
            "function \"speaks\", for its clients: it reaches the server's process. Needed is that "
            "the server is started with --allow-ops=Print (Python: allow_ops)");
}

TEST(Limits, AreSetByName) {
  Limits limits;
  limits.set("idle_seconds", 5);
  limits.set("memory-bytes", 0);
  EXPECT_EQ(limits.idle_seconds, 5);
  EXPECT_EQ(error_of([&] { limits.set("sessions", 0); }),
            "InvalidArgument: the limit of sessions is a number in [1, 9223372036854775], not 0");
  limits.set("message-bytes", int64_t{1} << 31);
  EXPECT_EQ(limits.message_bytes, int64_t{1} << 31);
  EXPECT_EQ(error_of([&] { limits.set("session", 1); }),
            "InvalidArgument: there is no limit of \"session\"; did you mean \"sessions\"?");
}

// --- At a server ---------------------------------------------------------------------------------

Tensor text(const std::string& value) {
  Tensor tensor(DType::kString, Shape({1}));
  *tensor.data<StringElement>() = StringElement(value);
  return tensor;
}

class OneServer : public ::testing::Test {
 protected:
  void begin(const ServerOptions& given) {
    ServerOptions options = given;
    options.cluster.add({"w", 0}, "localhost:0");
    options.task = {"w", 0};
    try {
      server = std::make_unique<Server>(options);
    } catch (const Error& error) {
      if (error.code() != Code::kUnimplemented) throw;
      GTEST_SKIP() << error.message();
    }
    const std::string address = server->target().substr(std::string("grpc://").size());
    peer = std::make_unique<RpcPeer>("the server", address);
  }
  // As another process would: without the server's secret.
  std::string open() const {
    const Message reply =
        peer->call(protocol::master::kOpenSession, protocol::write(protocol::Settings{}), {}, {});
    return protocol::read<protocol::SessionOpened>(reply.fields()).session;
  }
  uint64_t plan(const std::string& session, const Graph& graph, const std::string& target) const {
    const protocol::Program program{session, graph_to_bytes(graph), {}, {}, {target}, {}, ""};
    const Message reply = peer->call(protocol::master::kMakePlan, protocol::write(program), {}, {});
    return protocol::read<protocol::Handle>(reply.fields()).number;
  }

  std::unique_ptr<Server> server;
  std::unique_ptr<RpcPeer> peer;
};

// A server with a certificate of its own making, which knows a task and alice by their tokens.
class TokenServer : public CredentialFilesTest {
 protected:
  void begin() {
    const std::string made = concat(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
        "/CN=own -addext subjectAltName=DNS:localhost -keyout ",
        path("key"), " -out ", path("pem"), " 2>/dev/null");
    if (std::system(made.c_str()) != 0) GTEST_SKIP() << "needs the openssl program";
    write_file(path("tokens"), "cluster clustercluster00\nalice alicealicealice00\n");
    write_file(path("cluster"), "cluster clustercluster00\n");
    write_file(path("alice"), "alice alicealicealice00\n");
    ServerOptions options;
    options.cluster.add({"w", 0}, "localhost:0");
    options.task = {"w", 0};
    options.credentials = std::make_shared<const Credentials>(CredentialFiles{
        .certificate = path("pem"), .key = path("key"), .token_file = path("tokens")});
    try {
      server = std::make_unique<Server>(options);
    } catch (const Error& error) {
      if (error.code() != Code::kUnimplemented) throw;
      GTEST_SKIP() << error.message();
    }
  }
  std::unique_ptr<RpcPeer> peer(const std::string& who) const {
    return std::make_unique<RpcPeer>("the server", concat("localhost:", server->port()),
                                     RpcPatience{},
                                     std::make_shared<const Credentials>(CredentialFiles{
                                         .authority = path("pem"), .token_file = path(who)}));
  }
  std::unique_ptr<Server> server;
};

TEST_F(TokenServer, WorkersMethodsAreForTasks) {
  begin();
  if (server == nullptr) return;
  for (const char* const method :
       {protocol::worker::kGetStatus, protocol::worker::kRegisterPiece, protocol::worker::kRunPiece,
        protocol::worker::kForgetPiece, protocol::worker::kReceive, protocol::worker::kGiveUpStep,
        protocol::worker::kCloseSession, protocol::worker::kReset}) {
    EXPECT_EQ(error_of([&] { peer("alice")->call(method, {}, {}, {}); }),
              concat("PermissionDenied: ", method,
                     " is for the tasks of the cluster alone, and \"alice\" is none"));
  }
  const Message reply = peer("cluster")->call(protocol::worker::kGetStatus, {}, {}, {});
  EXPECT_EQ(protocol::read<protocol::TaskStatus>(reply.fields()).name, "/job:w/replica:0/task:0");
}

TEST_F(TokenServer, AnothersSessionIsNotThere) {
  begin();
  if (server == nullptr) return;
  const auto alice = peer("alice"), task = peer("cluster");
  const Message reply =
      alice->call(protocol::master::kOpenSession, protocol::write(protocol::Settings{}), {}, {});
  const std::string session = protocol::read<protocol::SessionOpened>(reply.fields()).session;
  GraphBuilder b;
  b.constant(floats({1}), "one");
  // A client's word about the owner counts for nothing.
  const protocol::Program program{session, graph_to_bytes(*b.graph), {}, {}, {"one"}, {}, "root"};
  const std::string wanted = "Aborted: this server has no such session";
  EXPECT_TRUE(error_of([&] {
                task->call(protocol::master::kMakePlan, protocol::write(program), {}, {});
              }).starts_with(wanted));
  alice->call(protocol::master::kMakePlan, protocol::write(program), {}, {});
  const protocol::RunRequest run{session, 1, 0, 0, 0};
  EXPECT_TRUE(error_of([&] {
                task->call(protocol::master::kRun, protocol::write(run), {}, {});
              }).starts_with(wanted));
  task->call(protocol::master::kCloseSession, protocol::write(protocol::Handle{session, 0}), {},
             {});
  task->call(protocol::master::kReset, protocol::write(protocol::ResetRequest{}), {}, {});
  alice->call(protocol::master::kRun, protocol::write(run), {}, {});
}

TEST_F(OneServer, TenThousandSessionsLeaveItServing) {
  begin({});
  if (server == nullptr) return;
  int opened = 0, refused = 0;
  std::string first;
  for (int i = 0; i < 10'000; ++i) {
    try {
      const std::string session = open();
      if (opened++ == 0) first = session;
    } catch (const Error& error) {
      ASSERT_EQ(error.message(),
                "there are 1000 open sessions at this server, and it takes no more "
                "(--max-sessions): close those that are not needed");
      ASSERT_EQ(error.code(), Code::kResourceExhausted);
      ++refused;
    }
  }
  EXPECT_EQ(opened, 1000);
  EXPECT_EQ(refused, 9000);
  GraphBuilder b;
  b.constant(floats({1}), "one");
  EXPECT_EQ(plan(first, *b.graph, "one"), 1U);
  peer->call(protocol::master::kCloseSession, protocol::write(protocol::Handle{first, 0}), {}, {});
  EXPECT_NE(open(), "");
}

TEST_F(OneServer, UnusedSessionsMakeRoom) {
  ServerOptions options;
  options.limits.sessions = 1;
  options.limits.idle_seconds = 1;
  begin(options);
  if (server == nullptr) return;
  const std::string first = open();
  EXPECT_TRUE(error_of([&] { open(); }).starts_with("ResourceExhausted: there are 1 open"));
  ::usleep(1'200'000);
  EXPECT_NE(open(), first);
  GraphBuilder b;
  b.constant(floats({1}), "one");
  EXPECT_TRUE(error_of([&] {
                plan(first, *b.graph, "one");
              }).starts_with("Aborted: this server has no such session"));
}

TEST_F(OneServer, WhatAMasterHasLeftHereMakesRoom) {
  ServerOptions options;
  options.limits.idle_seconds = 1;
  begin(options);
  if (server == nullptr) return;
  GraphBuilder b;
  b.constant(floats({1}), "one");
  const auto give = [&](const std::string& session) {
    const protocol::Program program{session, graph_to_bytes(*b.graph), {}, {}, {"one"}, {}, "", ""};
    const Message reply =
        peer->call(protocol::worker::kRegisterPiece, protocol::write(program), {}, {});
    return protocol::read<protocol::Handle>(reply.fields()).number;
  };
  const auto run = [&](const std::string& session, uint64_t piece) {
    const protocol::RunRequest request{session, piece, 0, piece, 0};
    return error_of(
        [&] { peer->call(protocol::worker::kRunPiece, protocol::write(request), {}, {}); });
  };
  const uint64_t old = give("a"), used = give("b");
  for (int i = 0; i < 3; ++i) {
    ::usleep(500'000);
    EXPECT_EQ(run("b", used), "no error");
  }
  const uint64_t young = give("c");
  EXPECT_TRUE(run("a", old).starts_with("Aborted: /job:w/replica:0/task:0 has no piece"));
  EXPECT_EQ(run("b", used), "no error");
  EXPECT_EQ(run("c", young), "no error");
}

TEST_F(OneServer, PlansNodesAndMemoryHaveLimits) {
  ServerOptions options;
  options.limits.plans = 2;
  options.limits.nodes = 3;
  options.limits.memory_bytes = 1 << 20;
  begin(options);
  if (server == nullptr) return;
  const std::string session = open();
  GraphBuilder b;
  const Output shape = b.constant(Tensor::vector<int32_t>({1000, 1000}), "shape");
  const Output zero = b.constant(floats({0}), "zero");
  b.node("BroadcastTo", {zero, shape}, {}, "large");
  const uint64_t large = plan(session, *b.graph, "large");
  const protocol::RunRequest run{session, large, 0, 0, 0};
  const std::string said =
      error_of([&] { peer->call(protocol::master::kRun, protocol::write(run), {}, {}); });
  EXPECT_TRUE(said.starts_with("ResourceExhausted: the run needs 4") &&
              said.ends_with(" bytes at once, and may hold 1048576"))
      << said;
  plan(session, *b.graph, "zero");
  EXPECT_EQ(error_of([&] { plan(session, *b.graph, "shape"); }),
            "ResourceExhausted: the session has plans for 2 sets of feeds, fetches and targets, "
            "and may have no more (--max-plans)");
  b.node("Neg", {zero}, {}, "fourth");
  EXPECT_EQ(error_of([&] { plan(open(), *b.graph, "fourth"); }),
            "ResourceExhausted: the run needs 4 nodes, with those of functions; this server takes "
            "3 (--max-nodes)");
}

TEST_F(OneServer, AStepHasALimit) {
  ServerOptions options;
  options.limits.step_seconds = 1;
  begin(options);
  if (server == nullptr) return;
  const std::string session = open();
  GraphBuilder b;
  const std::vector<DType> types = {DType::kFloat32};
  const Output queue = b.op("FIFOQueueV2", {}, {{"component_types", types}}, "queue");
  b.node("QueueDequeueV2", {queue}, {{"component_types", types}}, "waits");
  const protocol::RunRequest run{session, plan(session, *b.graph, "waits"), 0, 0, 0};
  const std::string said =
      error_of([&] { peer->call(protocol::master::kRun, protocol::write(run), {}, {}); });
  EXPECT_TRUE(said.starts_with("DeadlineExceeded: ")) << said;
}

TEST_F(OneServer, FilesAreForItsOwnProcess) {
  begin({});
  if (server == nullptr) return;
  const TemporaryDirectory folder;
  GraphBuilder b;
  Tensor path(DType::kString, Shape());
  *path.data<StringElement>() = StringElement(folder.path() + "/model");
  const Output prefix = b.constant(path, "prefix");
  const Output name = b.constant(text("x"), "name");
  const Output slice = b.constant(text(""), "slice");
  const Output x = b.constant(floats({1, 2}), "x");
  b.node("Save", {prefix, name, slice, x}, {}, "save");
  const std::string session = open();
  EXPECT_TRUE(
      error_of([&] {
        plan(session, *b.graph, "save");
      }).starts_with("PermissionDenied: /job:w/replica:0/task:0 does not run operation \"Save\""));
  SessionOptions options;
  options.remote = open_remote_session(server->target(), b.graph, options);
  Session own(b.graph, options);
  own.run(own.signature({}, {}, std::vector<Node*>{b.graph->find("save")}), {}, {}, nullptr);
  EXPECT_FALSE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace treenail
