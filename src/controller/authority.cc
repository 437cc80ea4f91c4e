#include "controller/authority.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::controller {
namespace {

constexpr Duration kCaLife{std::int64_t{20} * 365 * 24 * 3600 * 1000};
constexpr Duration kLeafLife{std::int64_t{397} * 24 * 3600 * 1000};
constexpr Duration kBackdate{3600 * 1000};  // Clocks of nodes may be behind ours.

Error failed(const std::string& doing, const std::string& path) {
    const int code = errno;
    const Code kind = code == ENOENT   ? Code::NotFound
                      : code == ENOSPC ? Code::NoSpace
                                       : Code::Denied;
    return {kind, "cannot " + doing + " " + path, std::strerror(code),
            "check the owner, mode and free space of the state folder"};
}

Result<net::KeyedCertificate> load_pair(const std::string& stem) {
    MUSTER_LET(certificate, read_file(stem + ".crt"));
    MUSTER_LET(key, read_file(stem + ".key"));
    net::KeyedCertificate pair{std::move(certificate), std::move(key)};
    MUSTER_TRY(net::verify_key(pair));
    return pair;
}

Status save_pair(const std::string& stem, const net::KeyedCertificate& pair) {
    MUSTER_TRY(write_file(stem + ".key", pair.key_pem, 0600));
    return write_file(stem + ".crt", pair.certificate_pem, 0644);
}

bool still_good(const net::KeyedCertificate& own, const net::KeyedCertificate& ca,
                const std::vector<std::string>& hosts, Time now) {
    const auto facts = net::certificate_facts(own.certificate_pem);
    if (!facts || net::renewal_due(*facts, now)) return false;
    if (!net::verify_certificate(own.certificate_pem, ca.certificate_pem, now)) return false;
    return std::ranges::all_of(hosts, [&](const std::string& host) {
        return std::ranges::find(facts->hosts, host) != facts->hosts.end();
    });
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return failed("read", path);
    std::string bytes;
    char buffer[16 * 1024];
    ssize_t got = 0;
    while ((got = ::read(fd, buffer, sizeof buffer)) > 0)
        bytes.append(buffer, static_cast<std::size_t>(got));
    ::close(fd);
    if (got < 0) return failed("read", path);
    return bytes;
}

Status write_file(const std::string& path, const std::string& bytes, unsigned mode) {
    const std::string temporary = path + ".new";
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0) return failed("write", temporary);
    const bool written =
        ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
        ::fchmod(fd, mode) == 0 && ::fsync(fd) == 0;
    if (!written) {
        const Error error = failed("write", temporary);
        ::close(fd);
        return error;
    }
    ::close(fd);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return failed("rename to", path);
    const int folder =
        ::open(path.substr(0, path.find_last_of('/')).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        (void)::fsync(folder);
        ::close(folder);
    }
    return Ok{};
}

Result<Authority> Authority::load_or_make(const std::string& folder,
                                          const std::vector<std::string>& hosts, Time now) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return failed("make", folder);
    Authority authority;
    auto ca = load_pair(folder + "/ca");
    if (!ca && ca.error().code == Code::NotFound) {
        ca = net::make_ca("Muster", now - kBackdate, now + kCaLife);
        if (ca) MUSTER_TRY(save_pair(folder + "/ca", *ca));
    }
    if (!ca) return std::move(ca).error();
    authority.ca = *std::move(ca);
    auto own = load_pair(folder + "/controller");
    if (!own || !still_good(*own, authority.ca, hosts, now)) {
        auto ask = net::controller_certificate_ask(hosts, now - kBackdate, kLeafLife);
        own = net::issue_certificate(authority.ca, ask);
        if (!own) return std::move(own).error();
        MUSTER_TRY(save_pair(folder + "/controller", *own));
    }
    authority.own = {own->certificate_pem, own->key_pem, authority.ca.certificate_pem};
    MUSTER_LET(facts, net::certificate_facts(authority.ca.certificate_pem));
    authority.ca_sha256 = facts.sha256;
    return authority;
}

Result<net::LinkTls> Authority::issue_node(const std::string& name, Time now) const {
    MUSTER_LET(pair, net::issue_certificate(
                         ca, net::agent_certificate_ask(name, now - kBackdate, kLeafLife)));
    return net::LinkTls{pair.certificate_pem, pair.key_pem, ca.certificate_pem};
}

}  // namespace muster::controller
