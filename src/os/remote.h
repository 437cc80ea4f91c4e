// How a node of a gang runs a command on another one (`launch: mpi`): what both ends say, the words
// that launchers of MPI give an ssh, and the list of the gang's nodes. The contract is in
// api/task-protocol.md, "Commands between the nodes of a job".
//
// Pure but for random_bytes(): descriptors are the callers' affair.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace muster::os::remote {

// ---- what is said -----------------------------------------------------------------------------

constexpr std::string_view kGreeting = "muster-launch 1\n";
constexpr std::size_t kNonceSize = 32, kProofSize = 32;
/// Server: greeting and nonce. Client: nonce and proof. Server: proof. Then frames both ways.
constexpr std::size_t kHelloSize = kGreeting.size() + kNonceSize;
constexpr std::size_t kAnswerSize = kNonceSize + kProofSize;
std::string client_proof(std::string_view secret, std::string_view server_nonce,
                         std::string_view client_nonce);
std::string server_proof(std::string_view secret, std::string_view server_nonce,
                         std::string_view client_nonce);

/// The first byte of a frame; a length of 4 bytes (big-endian) and as many bytes follow.
enum class Kind : char {
    Command = 'C',   // The first of the client: what a shell is to run; "": the shell itself.
    Input = 'I',     // Of standard input.
    InputEnd = 'E',  // Standard input ended.
    Output = 'O',
    Error = 'o',    // Of standard error.
    Exit = 'X',     // The last of the server: the exit code in decimal.
    Refused = 'R',  // Instead of Exit: why nothing was run.
};
constexpr std::size_t kFrameMax = 128 * 1024;  // Of the bytes in it: as long as one word may be.
struct Frame {
    Kind kind = Kind::Exit;
    std::string bytes;
};
void put_frame(std::string& out, Kind kind, std::string_view bytes);
/// Takes the first frame off `buffer`; empty: not whole yet. `broken` once the other end talks
/// nonsense.
std::optional<Frame> take_frame(std::string& buffer, bool& broken);

/// From the kernel; "" if it gives none.
std::string random_bytes(std::size_t count);
std::string to_hex(std::string_view bytes);

// ---- what a launcher is called with -----------------------------------------------------------

struct Call {
    std::string user;  // "": not said.
    std::string host;
    std::string command;  // Words joined by blanks, as ssh does.
    bool no_input = false;
    bool background = false;  // -f
};
/// argv without the program's name: ssh's options, host, command. A text is an error.
std::variant<Call, std::string> parse_call(const std::vector<std::string>& words);

// ---- the gang's nodes, as a file that only the job's user reads -------------------------------

struct Peer {
    std::string name, address;
    int port = 0;
    std::string secret;
};
struct Peers {
    std::string user;
    std::uint32_t self = 0;
    std::vector<Peer> nodes;  // In rank order.
};
std::string encode(const Peers& peers);
std::optional<Peers> decode_peers(std::string_view bytes);
/// By name or address; "localhost" is the own node.
const Peer* find_peer(const Peers& peers, std::string_view host);

}  // namespace muster::os::remote
