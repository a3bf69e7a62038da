// SPDX-License-Identifier: Apache-2.0
#include "kernels/adapters/grpc/tls.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <unistd.h>

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "kernels/adapters/grpc/revocations.h"

namespace treenail::grpc_adapter {
namespace {

using Provider = grpc::experimental::FileWatcherCertificateProvider;

constexpr unsigned kRefreshSeconds = 2;
constexpr const char* kCallerProperty = "treenail_caller";

// One for all connections with the same files, since each has a thread. Of a process: in the child
// of a fork the thread is not there.
std::shared_ptr<Provider> provider_of(const RpcTls& tls) {
  using Key = std::tuple<pid_t, std::string, std::string, std::string>;
  static std::mutex mutex;
  static auto* const known = new std::map<Key, std::weak_ptr<Provider>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Provider>& place = (*known)[{::getpid(), tls.key, tls.certificate, tls.authority}];
  std::shared_ptr<Provider> provider = place.lock();
  if (provider == nullptr) {
    provider = std::make_shared<Provider>(tls.key, tls.certificate, tls.authority, kRefreshSeconds);
    place = provider;
  }
  return provider;
}

template <class Options>
void configure(Options& options, const RpcTls& tls) {
  options.set_certificate_provider(provider_of(tls));
  if (*tls.certificate != '\0') options.watch_identity_key_cert_pairs();
  if (*tls.authority != '\0') options.watch_root_certs();
  if (*tls.revoked != '\0') options.set_crl_directory(tls.revoked);
}

RpcView view_of(const grpc::string_ref& text) { return {text.data(), text.size()}; }

// Asks the service about each caller before his message is read.
class Admission final : public grpc::AuthMetadataProcessor {
 public:
  Admission(const RpcService& service, const char* revoked)
      : service_(service), revocations_(revoked) {}
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata*) override {
    const std::vector<grpc::string_ref> found =
        context->FindPropertyValues(GRPC_X509_SAN_PROPERTY_NAME);
    for (const grpc::string_ref& shown :
         context->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME))
      if (revocations_.has({shown.data(), shown.size()}))
        return {grpc::StatusCode::UNAUTHENTICATED, "the certificate was revoked"};
    std::vector<RpcView> names;
    for (const grpc::string_ref& name : found) names.push_back(view_of(name));
    RpcCaller caller{names.data(), names.size(), {}};
    if (const auto token = metadata.find(kTokenKey); token != metadata.end()) {
      caller.token = view_of(token->second);
      consumed->insert({kTokenKey, std::string(token->second.data(), token->second.size())});
    }
    RpcStatus status;
    service_.admit(service_.self, &caller, &status);
    if (status.code != 0) return {static_cast<grpc::StatusCode>(status.code), status.text};
    context->AddProperty(kCallerProperty, status.text);
    return grpc::Status::OK;
  }

 private:
  const RpcService service_;
  Revocations revocations_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> server_credentials(const RpcServerOptions& options,
                                                            const RpcService& service) {
  if (options.tls == nullptr) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions wanted(provider_of(*options.tls));
  configure(wanted, *options.tls);
  if (*options.tls->authority != '\0') {
    wanted.set_cert_request_type(options.certificate_needed
                                     ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                     : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  std::shared_ptr<grpc::ServerCredentials> made = grpc::experimental::TlsServerCredentials(wanted);
  made->SetAuthMetadataProcessor(std::make_shared<Admission>(service, options.tls->revoked));
  return made;
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const RpcTls* tls) {
  if (tls == nullptr) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions wanted;
  configure(wanted, *tls);
  return grpc::experimental::TlsCredentials(wanted);
}

std::string caller_of(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> found = context.FindPropertyValues(kCallerProperty);
  return found.empty() ? std::string() : std::string(found[0].data(), found[0].size());
}

}  // namespace treenail::grpc_adapter
