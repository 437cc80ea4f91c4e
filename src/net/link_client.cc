// The dialling end of the agent link: one stream at a time, made anew with jittered back-off.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/random.h>

#include "base/prng.h"
#include "net/agent_link.h"
#include "net/link_codec.h"
#include "net/link_grpc.h"
#include "net/listener.h"
#include "net/outbox.h"

namespace muster::net {
namespace {

using Bytes = std::string;

/// One try: from the dial to the end of its stream.
class Stream final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
public:
    Stream(const AgentLinkClientCallbacks& callbacks, std::size_t queue_bytes_max)
        : callbacks_(callbacks), queue_bytes_max_(queue_bytes_max) {}

    void begin(const std::shared_ptr<grpc::Channel>& channel) {
        stub_ = std::make_unique<grpc::GenericStub>(channel);
        stub_->PrepareBidiStreamingCall(&context_, kConnectMethod, grpc::StubOptions(), this);
        AddHold();  // Until the first read that fails: send() may start writes till then.
        StartCall();
    }
    bool send(Bytes bytes) {
        const std::lock_guard lock(mutex_);
        if (!open_ || ended_) return false;
        if (outbox_.bytes() + bytes.size() > queue_bytes_max_) {
            why_ = Error{.code = Code::Exhausted,
                         .message = "the controller does not take this agent's messages: " +
                                    std::to_string(outbox_.bytes()) + " bytes are waiting"};
            ended_ = true;
            context_.TryCancel();
            return false;
        }
        outbox_.push(std::move(bytes));
        if (!writing_) write_locked();
        return true;
    }
    void cancel() { context_.TryCancel(); }

    /// False when it did not get that far within `timeout` of its beginning.
    bool wait_for_open_or_end(Duration timeout) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::milliseconds(timeout.ms),
                                 [this] { return open_ || done_; });
    }
    void wait_for_end() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return done_; });
    }
    bool was_open() {
        const std::lock_guard lock(mutex_);
        return open_;
    }
    Error error() {
        const std::lock_guard lock(mutex_);
        return why_.message.empty() ? error_of(status_) : why_;
    }

    void OnReadInitialMetadataDone(bool ok) override {
        // A refusal has metadata too, but not ours.
        if (!ok || context_.GetServerInitialMetadata().count(kAcceptedKey) == 0) {
            return RemoveHold();
        }
        {
            const std::lock_guard lock(mutex_);
            open_ = true;
            changed_.notify_all();
        }
        callbacks_.on_open();
        StartRead(&in_);  // Only now: callbacks do not overlap.
    }
    void OnReadDone(bool ok) override {
        if (ok) {
            auto messages = decode_controller_batch(from_buffer(in_));
            in_.Clear();
            if (messages) {
                if (!messages->empty()) callbacks_.on_messages(*std::move(messages));
                StartRead(&in_);
                return;
            }
            const std::lock_guard lock(mutex_);
            why_ = messages.error();
            context_.TryCancel();
        }
        {
            const std::lock_guard lock(mutex_);
            ended_ = true;
        }
        RemoveHold();
    }
    void OnWriteDone(bool ok) override {
        const std::lock_guard lock(mutex_);
        writing_ = false;
        if (!ok) ended_ = true;
        if (!ended_ && !outbox_.empty()) write_locked();
    }
    void OnDone(const grpc::Status& status) override {
        const std::lock_guard lock(mutex_);
        status_ = status;
        done_ = true;
        changed_.notify_all();
    }

private:
    // gRPC never calls back from inside StartWrite: it is safe under the lock.
    void write_locked() {
        writing_ = true;
        out_ = to_buffer(outbox_.take());
        StartWrite(&out_);
    }

    const AgentLinkClientCallbacks& callbacks_;
    const std::size_t queue_bytes_max_;
    std::unique_ptr<grpc::GenericStub> stub_;
    grpc::ClientContext context_;
    grpc::ByteBuffer in_;
    grpc::ByteBuffer out_;
    std::mutex mutex_;
    std::condition_variable changed_;
    Outbox outbox_;
    grpc::Status status_;
    Error why_;
    bool open_ = false;
    bool writing_ = false;
    bool ended_ = false;  // Nothing more may be started.
    bool done_ = false;
};

Prng seeded_by_system() {
    std::uint64_t seed = 0;
    (void)!::getrandom(&seed, sizeof seed, 0);
    return Prng(seed);
}

Status check_target(const std::string& address, const LinkTls& tls) {
    MUSTER_LET(where, split_host_port(address));
    if (where.port == 0) {
        return Error{.code = Code::Invalid, .message = "port 0 cannot be connected to"};
    }
    return verify_key({tls.certificate_pem, tls.key_pem});
}

class Client final : public AgentLinkClient {
public:
    Client(AgentLinkClientOptions options, AgentLinkClientCallbacks callbacks)
        : options_(std::move(options)), callbacks_(std::move(callbacks)) {}
    ~Client() override { stop(); }

    void begin() {
        thread_ = std::thread([this] { run(); });
    }
    bool send(protocol::AgentMessage message) override {
        const auto stream = current();
        if (!stream) return false;
        Bytes bytes;
        encode_item(message, bytes);
        return bytes.size() <= kLinkMessageMax && stream->send(std::move(bytes));
    }
    bool send(std::vector<protocol::AgentMessage> messages) override {
        const auto stream = current();
        if (!stream) return false;
        Bytes bytes;
        for (const protocol::AgentMessage& message : messages) {
            encode_item(message, bytes);
            if (bytes.size() < kWriteSize) continue;
            if (bytes.size() > kLinkMessageMax + kWriteSize) return false;
            if (!stream->send(std::exchange(bytes, {}))) return false;
        }
        return bytes.empty() || stream->send(std::move(bytes));
    }
    Status set_target(std::string address, LinkTls tls) override {
        MUSTER_TRY(check_target(address, tls));
        const std::lock_guard lock(mutex_);
        options_.address = std::move(address);
        options_.tls = std::move(tls);
        return Ok{};
    }
    void redial() override {
        const std::lock_guard lock(mutex_);
        hurry_ = true;
        if (stream_) stream_->cancel();
        wake_.notify_all();
    }
    void set_backoff_max(Duration most) override {
        const std::lock_guard lock(mutex_);
        options_.backoff_max = most;
        wake_.notify_all();
    }
    void stop() override {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
            if (stream_) stream_->cancel();
            wake_.notify_all();
        }
        if (thread_.joinable()) thread_.join();
    }

private:
    static constexpr std::size_t kWriteSize = 256 * 1024;

    std::shared_ptr<Stream> current() {
        const std::lock_guard lock(mutex_);
        return stream_;
    }

    void run() {
        Prng chance = seeded_by_system();
        Duration backoff = options_.backoff_min;
        for (;;) {
            auto stream = std::make_shared<Stream>(callbacks_, options_.queue_bytes_max);
            std::string address;
            LinkTls tls;
            {
                const std::lock_guard lock(mutex_);
                if (stopping_) return;
                hurry_ = false;
                stream_ = stream;
                address = options_.address;
                tls = options_.tls;
            }
            const bool was_open = dial(*stream, address, tls);
            std::unique_lock lock(mutex_);
            stream_ = nullptr;
            backoff = was_open ? options_.backoff_min
                               : std::min(Duration{backoff.ms * 2}, options_.backoff_max);
            // Half of it for certain, the rest by chance: ten thousand agents do not come at once.
            pause(lock, backoff, chance.between(500, 1000));
        }
    }
    /// `share` thousandths of `backoff`, or of the maximum should that become less meanwhile.
    void pause(std::unique_lock<std::mutex>& lock, Duration backoff, std::int64_t share) {
        const auto began = std::chrono::steady_clock::now();
        while (!stopping_ && !hurry_) {
            const std::int64_t wait = std::min(backoff, options_.backoff_max).ms * share / 1000;
            const auto until = began + std::chrono::milliseconds(wait);
            if (wake_.wait_until(lock, until) == std::cv_status::timeout) return;
        }
    }

    /// One stream from beginning to end; true when it was open.
    bool dial(Stream& stream, const std::string& address, const LinkTls& tls) {
        stream.begin(make_channel(address, tls, kControllerTlsName, options_.connect_timeout));
        const bool decided = stream.wait_for_open_or_end(options_.connect_timeout);
        if (!decided) stream.cancel();
        stream.wait_for_end();
        Error error = stream.error();
        if (stream.was_open()) {
            if (callbacks_.on_close) callbacks_.on_close(std::move(error));
            return true;
        }
        {
            const std::lock_guard lock(mutex_);
            if (stopping_) return false;
        }
        if (!decided) {
            error = Error{.code = Code::Unavailable,
                          .message = "no answer from the controller at " + address,
                          .cause = "it did not answer within " +
                                   std::to_string(options_.connect_timeout.ms) + " ms",
                          .fix = "check the network and whether the controller runs"};
        } else if (error.code == Code::Unavailable) {
            error = explain_dial(address, tls, kControllerTlsName, std::move(error));
        }
        if (callbacks_.on_failed) callbacks_.on_failed(std::move(error));
        return false;
    }

    AgentLinkClientOptions options_;
    const AgentLinkClientCallbacks callbacks_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::shared_ptr<Stream> stream_;
    bool stopping_ = false;
    bool hurry_ = false;
    std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<AgentLinkClient>> AgentLinkClient::start(
    AgentLinkClientOptions options, AgentLinkClientCallbacks callbacks) {
    start_grpc();
    MUSTER_TRY(check_target(options.address, options.tls));
    auto client = std::make_unique<Client>(std::move(options), std::move(callbacks));
    client->begin();
    return std::unique_ptr<AgentLinkClient>(std::move(client));
}

}  // namespace muster::net
