#include "agent/identity.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "os/posix.h"
#include "os/task_files.h"

namespace muster::agent {
namespace {

constexpr Duration kJoinTimeout{15'000};
constexpr const char* kCertificate = "node.crt";
constexpr const char* kKey = "node.key";
constexpr const char* kCa = "ca.crt";
constexpr const char* kController = "controller";

}  // namespace

Status save_identity(const std::string& state_dir, const Identity& identity) {
    const std::string folder = state_dir + "/identity";
    MUSTER_TRY(os::make_folders(state_dir, 0711));
    MUSTER_TRY(os::make_folders(folder, 0700));
    const os::Fd dir(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir) return os::system_error("open", folder);
    // The certificate is last: with it the others are there.
    const std::pair<const char*, const std::string*> parts[] = {
        {kCa, &identity.tls.ca_pem},
        {kController, &identity.controller},
        {kKey, &identity.tls.key_pem},
        {kCertificate, &identity.tls.certificate_pem}};
    for (const auto& [name, text] : parts)
        if (const int failed = os::write_small_file(dir.get(), name, *text, true); failed != 0)
            return os::system_error("write", folder + "/" + name, failed);
    return Ok{};
}

Result<Identity> load_identity(const std::string& state_dir) {
    const std::string folder = state_dir + "/identity/";
    Identity identity;
    MUSTER_LET(certificate, os::read_file(folder + kCertificate));
    MUSTER_LET(key, os::read_file(folder + kKey));
    MUSTER_LET(ca, os::read_file(folder + kCa));
    MUSTER_LET(controller, os::read_file(folder + kController));
    MUSTER_TRY(net::verify_key({.certificate_pem = certificate, .key_pem = key}));
    MUSTER_LET(facts, net::certificate_facts(certificate));
    identity.name = facts.name;
    if (const std::size_t end = identity.name.rfind(net::agent_tls_name("").substr(0));
        end != std::string::npos && end > 0)
        identity.name.resize(end);
    identity.controller = std::string(trim(controller));
    identity.tls = {.certificate_pem = std::move(certificate),
                    .key_pem = std::move(key),
                    .ca_pem = std::move(ca)};
    return identity;
}

Result<Identity> join(const std::string& state_dir, const std::string& node_name,
                      const std::string& token_text) {
    MUSTER_LET(token, net::parse_join_token(token_text));
    MUSTER_LET(request, net::make_signing_request(node_name));
    MUSTER_LET(answer, net::join_cluster(token, node_name, request.request_pem, kJoinTimeout));
    Identity identity{.name = node_name,
                      .controller = token.address,
                      .tls = {.certificate_pem = answer.certificate_pem,
                              .key_pem = request.key_pem,
                              .ca_pem = answer.ca_pem}};
    MUSTER_TRY(save_identity(state_dir, identity));
    return identity;
}

Result<Identity> renew(const std::string& state_dir, const Identity& identity) {
    MUSTER_LET(request, net::make_signing_request(identity.name));
    MUSTER_LET(answer, net::renew_certificate(identity.controller, identity.tls,
                                              request.request_pem, kJoinTimeout));
    Identity fresh = identity;
    fresh.tls = {.certificate_pem = answer.certificate_pem,
                 .key_pem = request.key_pem,
                 .ca_pem = answer.ca_pem};
    MUSTER_TRY(save_identity(state_dir, fresh));
    return fresh;
}

bool renewal_due(const Identity& identity, Time now) {
    const auto facts = net::certificate_facts(identity.tls.certificate_pem);
    return facts && net::renewal_due(*facts, now);
}

std::string host_name() {
    char name[256] = {};
    if (::gethostname(name, sizeof name - 1) != 0) return "node";
    const std::string_view whole = name;
    return std::string(whole.substr(0, whole.find('.')));
}

std::string address_towards(const std::string& controller) {
    const std::size_t colon = controller.rfind(':');
    if (colon == std::string::npos) return {};
    std::string host = controller.substr(0, colon);
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    addrinfo hints{};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), controller.c_str() + colon + 1, &hints, &found) != 0) return {};
    std::string address;
    for (const addrinfo* each = found; each != nullptr && address.empty(); each = each->ai_next) {
        const os::Fd socket(::socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_storage own{};
        socklen_t size = sizeof own;
        char text[NI_MAXHOST];
        if (socket && ::connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0 &&
            ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
            ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0,
                          NI_NUMERICHOST) == 0)
            address = text;
    }
    ::freeaddrinfo(found);
    return address;
}

}  // namespace muster::agent
