#include "os/remote.h"

#include <cerrno>

#include <strings.h>
#include <sys/random.h>

#include "os/sha256.h"
#include "os/task_files.h"

namespace muster::os::remote {
namespace {

std::string proof(std::string_view secret, std::string_view who, std::string_view server_nonce,
                  std::string_view client_nonce) {
    std::string text(kGreeting);
    return hmac_sha256(secret, text.append(who).append(server_nonce).append(client_nonce));
}

bool known(char kind) {
    return std::string_view("CIEOoXR").find(kind) != std::string_view::npos;
}

bool same_name(std::string_view a, std::string_view b) {
    return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::string client_proof(std::string_view secret, std::string_view server_nonce,
                         std::string_view client_nonce) {
    return proof(secret, "client", server_nonce, client_nonce);
}
std::string server_proof(std::string_view secret, std::string_view server_nonce,
                         std::string_view client_nonce) {
    return proof(secret, "server", server_nonce, client_nonce);
}

void put_frame(std::string& out, Kind kind, std::string_view bytes) {
    out.push_back(static_cast<char>(kind));
    for (int shift = 24; shift >= 0; shift -= 8)
        out.push_back(static_cast<char>(bytes.size() >> shift));
    out.append(bytes);
}

std::optional<Frame> take_frame(std::string& buffer, bool& broken) {
    if (buffer.empty()) return std::nullopt;
    broken = !known(buffer.front());
    if (broken || buffer.size() < 5) return std::nullopt;
    std::size_t size = 0;
    for (std::size_t i = 1; i < 5; ++i) size = size << 8 | static_cast<unsigned char>(buffer[i]);
    broken = size > kFrameMax;
    if (broken || buffer.size() < 5 + size) return std::nullopt;
    Frame frame{.kind = static_cast<Kind>(buffer.front()), .bytes = buffer.substr(5, size)};
    buffer.erase(0, 5 + size);
    return frame;
}

std::string random_bytes(std::size_t count) {
    std::string bytes(count, '\0');
    for (std::size_t at = 0; at < count;) {
        const ssize_t n = ::getrandom(bytes.data() + at, count - at, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return {};
        at += static_cast<std::size_t>(n);
    }
    return bytes;
}

std::string to_hex(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const char c : bytes) {
        text.push_back(digits[static_cast<unsigned char>(c) >> 4]);
        text.push_back(digits[static_cast<unsigned char>(c) & 15]);
    }
    return text;
}

namespace {

constexpr std::string_view kFlags = "1246AaCfGgKkMNnqsTtVvXxYy";
constexpr std::string_view kWithValue = "BbcDEeFIiJLlmOopQRSWw";

/// Reads the options from `at` on and leaves it at the first word that is none.
std::string take_options(const std::vector<std::string>& words, std::size_t& at, Call& call) {
    for (; at < words.size(); ++at) {
        const std::string& word = words[at];
        if (word.size() < 2 || word.front() != '-') return {};
        if (word == "--") {
            ++at;
            return {};
        }
        for (std::size_t i = 1; i < word.size(); ++i) {
            const char option = word[i];
            if (kFlags.find(option) != std::string_view::npos) {
                call.no_input |= option == 'n' || option == 'f';
                call.background |= option == 'f';
                continue;
            }
            if (kWithValue.find(option) == std::string_view::npos)
                return std::string("unknown option -") + option + "; it takes those of ssh";
            std::string value = word.substr(i + 1);
            if (value.empty()) {
                if (++at == words.size())
                    return std::string("option -") + option + " needs a value";
                value = words[at];
            }
            if (option == 'l') call.user = value;
            break;
        }
    }
    return {};
}

}  // namespace

std::variant<Call, std::string> parse_call(const std::vector<std::string>& words) {
    Call call;
    std::size_t at = 0;
    if (std::string error = take_options(words, at, call); !error.empty()) return error;
    if (at == words.size()) return "no host is given";
    std::string_view host = words[at++];
    if (const std::size_t sign = host.rfind('@'); sign != std::string_view::npos) {
        call.user = host.substr(0, sign);
        host.remove_prefix(sign + 1);
    }
    if (host.empty()) return "no host is given";
    call.host = host;
    // As ssh: options may follow the host too, up to the command's first word.
    if (std::string error = take_options(words, at, call); !error.empty()) return error;
    for (; at < words.size(); ++at) {
        if (!call.command.empty()) call.command.push_back(' ');
        call.command += words[at];
    }
    return call;
}

std::string encode(const Peers& peers) {
    std::string out;
    put_record(out, "user", peers.user);
    put_record(out, "self", peers.self);
    for (const Peer& peer : peers.nodes) {
        put_record(out, "node", peer.name);
        put_record(out, "address", peer.address);
        put_record(out, "port", peer.port);
        put_record(out, "secret", peer.secret);
    }
    put_record(out, "end", 1);
    return out;
}

std::optional<Peers> decode_peers(std::string_view bytes) {
    Peers peers;
    bool whole = false;
    each_record(bytes, [&](std::string_view key, std::string_view value) {
        if (key == "end") whole = true;
        if (key == "user") peers.user = value;
        if (key == "self") peers.self = static_cast<std::uint32_t>(to_number(value));
        if (key == "node") peers.nodes.push_back({.name = std::string(value)});
        if (peers.nodes.empty()) return;
        Peer& peer = peers.nodes.back();
        if (key == "address") peer.address = value;
        if (key == "port") peer.port = static_cast<int>(to_number(value));
        if (key == "secret") peer.secret = value;
    });
    if (!whole || peers.self >= peers.nodes.size()) return std::nullopt;
    return peers;
}

const Peer* find_peer(const Peers& peers, std::string_view host) {
    for (const Peer& peer : peers.nodes)
        if (same_name(peer.name, host)) return &peer;
    if (same_name(host, "localhost") || host == "127.0.0.1" || host == "::1")
        return &peers.nodes[peers.self];
    for (const Peer& peer : peers.nodes)
        if (peer.address == host) return &peer;
    return nullptr;
}

}  // namespace muster::os::remote
