// Names in the certificates of the agent link.
#include "net/agent_link.h"

namespace muster::net {

std::string agent_tls_name(std::string_view node_name) {
    return std::string(node_name) + ".node.muster";
}

CertificateAsk controller_certificate_ask(std::vector<std::string> hosts, Time now, Duration life) {
    hosts.emplace_back(kControllerTlsName);
    return {.name = std::string(kControllerTlsName),
            .hosts = std::move(hosts),
            .use = {.server = true, .client = true},
            .not_before = now - seconds(3600),  // Clocks of a cluster differ.
            .not_after = now + life};
}

CertificateAsk agent_certificate_ask(std::string_view node_name, Time now, Duration life) {
    return {.name = std::string(node_name),
            .hosts = {agent_tls_name(node_name)},
            .use = {.server = true, .client = true},
            .not_before = now - seconds(3600),
            .not_after = now + life};
}

}  // namespace muster::net
