// Any value goes through its encoding unchanged; any bytes are decoded or refused, never a crash.
#include "net/link_codec.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace muster::net {
namespace {

using namespace protocol;  // NOLINT: a test of its values.

/// Random values that use every field, odd bytes included.
class Maker {
public:
    explicit Maker(std::uint64_t seed) : prng_(seed) {}

    std::uint64_t any() { return prng_.next() >> prng_.below(64); }
    std::uint32_t any32() { return static_cast<std::uint32_t>(any()); }
    std::uint16_t any16() { return static_cast<std::uint16_t>(any()); }
    std::int64_t number() { return static_cast<std::int64_t>(any()) * (flag() ? 1 : -1); }
    int small() { return static_cast<int>(prng_.between(-70'000, 70'000)); }
    bool flag() { return prng_.chance(500); }
    std::string text() {
        std::string out;
        for (std::uint64_t i = prng_.below(12); i > 0; --i) {
            out.push_back(static_cast<char>(prng_.below(256)));
        }
        return out;
    }
    std::vector<std::string> texts() {
        return many<std::string>([this] { return text(); });
    }
    template <class T, class Make>
    std::vector<T> many(Make make) {
        std::vector<T> out;
        for (std::uint64_t i = prng_.below(4); i > 0; --i) out.push_back(make());
        return out;
    }
    Duration duration() { return {number()}; }
    TaskKey key() { return {JobId{any()}, any32(), any32()}; }
    model::Cause cause() { return static_cast<model::Cause>(prng_.below(18)); }
    model::TaskEnd end() {
        return {cause(), small(), small(), small(), Bytes{number()}, number(), text(), flag()};
    }
    TaskStatus status() {
        return {key(),    any(),   static_cast<TaskState>(prng_.below(7)), number(),
                number(), small(), flag() ? end() : model::TaskEnd{},      point()};
    }
    LaunchPoint point() { return flag() ? LaunchPoint{small(), text()} : LaunchPoint{}; }
    model::Device device() {
        return {text(),  text(), text(), text(), Bytes{number()}, small(), text(),
                texts(), flag(), text(), text(), flag(),          texts()};
    }
    model::NodeFacts facts() {
        return {
            text(),
            texts(),
            small(),
            text(),
            text(),
            MilliCpu{number()},
            Bytes{number()},
            Bytes{number()},
            many<model::Device>([this] { return device(); }),
            many<std::pair<std::string, std::string>>([this] { return std::pair(text(), text()); }),
            many<model::NumaNode>([this] {
                return model::NumaNode{small(), text()};
            }),
            text(),
            flag(),
            flag(),
            text()};
    }
    StartTask start() {
        StartTask m;
        m.term = any();
        m.key = key();
        m.user = text();
        m.job_name = text();
        m.queue = text();
        m.spec = std::make_shared<const std::string>(text());
        m.gang = std::make_shared<const Gang>(many<GangMember>([this] {
            return GangMember{text(), text(), any32(), any32(), texts()};
        }));
        m.role = any32();
        m.role_index = any32();
        m.array_job = number();
        m.array_element = number();
        m.devices = texts();
        m.cpus = MilliCpu{number()};
        m.memory = Bytes{number()};
        m.restart_count = any32();
        m.latest_checkpoint = text();
        m.checkpoint_step = number();
        m.deadline = Time{number()};
        m.barrier = flag();
        m.device_share = number();
        m.device_memory = Bytes{number()};
        m.levels = texts();
        return m;
    }
    AgentMessage agent_message() {
        switch (prng_.below(std::variant_size_v<AgentMessage>)) {
            case 0: return Hello{any(), facts(), many<TaskStatus>([this] { return status(); })};
            case 1: return Heartbeat{any()};
            case 2: return FactsChanged{facts()};
            case 3: return status();
            case 4:
                return Progress{key(), small(), number(), number(),
                                many<std::pair<std::string, double>>([this] {
                                    return std::pair(text(), static_cast<double>(number()) / 7);
                                })};
            case 5: return CheckpointDone{key(), number(), text()};
            case 6: return LogTail{key(), number(), text()};
            case 7: return LogMatch{key(), any32(), text()};
            case 8: return LogChunk{any(), number(), text(), flag(), text()};
            default: return TunnelOutput{any(), text(), flag(), flag(), small(), text(), number()};
        }
    }
    ControllerMessage controller_message() {
        switch (prng_.below(std::variant_size_v<ControllerMessage>)) {
            case 0:
                return Welcome{any(), NodeId{any()},
                               LeaseRules{duration(), duration(), duration(), duration()},
                               many<TaskKey>([this] { return key(); }), flag()};
            case 1:
                return LeaseGrant{any(), any(), many<PeerAddress>([this] {
                                      return PeerAddress{text(), text(), small()};
                                  })};
            case 2: return start();
            case 3:
                return Go{any(), key(), text(), small(),
                          many<LaunchPoint>([this] { return point(); })};
            case 4: return NoticeTask{any(), key(), cause(), duration(), text()};
            case 5: return StopTask{any(), key(), cause(), duration()};
            case 6: return ForgetTask{any(), key()};
            case 7:
                return ReadLog{any(), key(), small(), number(), number(), flag(), Time{number()}};
            case 8:
                return OpenTunnel{
                    any(),   key(),   flag() ? OpenTunnel::Kind::Attach : OpenTunnel::Kind::Exec,
                    texts(), flag(),  any16(),
                    any16(), number()};
            case 9: return TunnelInput{any(), text(), flag(), any16(), any16(), number()};
            default: return CancelRequest{any()};
        }
    }
    Prng& prng() { return prng_; }

private:
    Prng prng_;
};

/// StartTask shares its spec and gang by pointer: equal when what they hold is.
bool same(const ControllerMessage& a, const ControllerMessage& b) {
    if (a.index() != b.index()) return false;
    const auto* x = std::get_if<StartTask>(&a);
    if (x == nullptr) {
        return std::visit(
            [&](const auto& value) {
                using T = std::decay_t<decltype(value)>;
                if constexpr (std::is_same_v<T, StartTask>) {
                    return false;
                } else {
                    return value == std::get<T>(b);
                }
            },
            a);
    }
    const auto& y = std::get<StartTask>(b);
    return x->term == y.term && x->key == y.key && x->user == y.user && x->job_name == y.job_name &&
           x->queue == y.queue && *x->spec == *y.spec && *x->gang == *y.gang && x->role == y.role &&
           x->role_index == y.role_index && x->array_job == y.array_job &&
           x->array_element == y.array_element && x->devices == y.devices && x->cpus == y.cpus &&
           x->memory == y.memory && x->restart_count == y.restart_count &&
           x->latest_checkpoint == y.latest_checkpoint && x->checkpoint_step == y.checkpoint_step &&
           x->deadline == y.deadline && x->barrier == y.barrier &&
           x->device_share == y.device_share && x->device_memory == y.device_memory &&
           x->levels == y.levels;
}

/// How many members an aggregate has: one added to the protocol must be added to agent.proto.
struct Anything {
    template <class T>
    operator T() const;  // NOLINT: converts to whatever a member is.
};
template <class T, class... Members>
constexpr std::size_t member_count() {
    if constexpr (requires { T{Members{}..., Anything{}}; }) {
        return member_count<T, Members..., Anything>();
    } else {
        return sizeof...(Members);
    }
}

TEST(LinkCodec, EveryFieldOfTheProtocolIsInTheContract) {
    const char* what =
        "a field was added: give it a number in api/agent.proto, convert it in "
        "net/link_codec.cc, fill it in this test's Maker, then change this count";
    EXPECT_EQ(member_count<TaskKey>(), 3U) << what;
    EXPECT_EQ(member_count<GangMember>(), 5U) << what;
    EXPECT_EQ(member_count<LaunchPoint>(), 2U) << what;
    EXPECT_EQ(member_count<LeaseRules>(), 4U) << what;
    EXPECT_EQ(member_count<PeerAddress>(), 3U) << what;
    EXPECT_EQ(member_count<Welcome>(), 5U) << what;
    EXPECT_EQ(member_count<LeaseGrant>(), 3U) << what;
    EXPECT_EQ(member_count<StartTask>(), 22U) << what;
    EXPECT_EQ(member_count<Go>(), 5U) << what;
    EXPECT_EQ(member_count<NoticeTask>(), 5U) << what;
    EXPECT_EQ(member_count<StopTask>(), 4U) << what;
    EXPECT_EQ(member_count<ForgetTask>(), 2U) << what;
    EXPECT_EQ(member_count<ReadLog>(), 7U) << what;
    EXPECT_EQ(member_count<OpenTunnel>(), 8U) << what;
    EXPECT_EQ(member_count<TunnelInput>(), 6U) << what;
    EXPECT_EQ(member_count<CancelRequest>(), 1U) << what;
    EXPECT_EQ(member_count<TaskStatus>(), 8U) << what;
    EXPECT_EQ(member_count<Hello>(), 3U) << what;
    EXPECT_EQ(member_count<Heartbeat>(), 1U) << what;
    EXPECT_EQ(member_count<FactsChanged>(), 1U) << what;
    EXPECT_EQ(member_count<Progress>(), 5U) << what;
    EXPECT_EQ(member_count<CheckpointDone>(), 3U) << what;
    EXPECT_EQ(member_count<LogTail>(), 3U) << what;
    EXPECT_EQ(member_count<LogMatch>(), 3U) << what;
    EXPECT_EQ(member_count<LogChunk>(), 5U) << what;
    EXPECT_EQ(member_count<TunnelOutput>(), 7U) << what;
    EXPECT_EQ(member_count<PeerAsk>(), 1U) << what;
    EXPECT_EQ(member_count<PeerWord>(), 1U) << what;
    EXPECT_EQ(member_count<model::TaskEnd>(), 8U) << what;
    EXPECT_EQ(member_count<model::Device>(), 13U) << what;
    EXPECT_EQ(member_count<model::NodeFacts>(), 15U) << what;
    EXPECT_EQ(std::variant_size_v<AgentMessage>, 10U) << what;
    EXPECT_EQ(std::variant_size_v<ControllerMessage>, 11U) << what;
}

TEST(LinkCodec, AnyValueComesBackAndBatchesJoinByConcatenation) {
    Maker make(42);
    for (int round = 0; round < 400; ++round) {
        std::vector<AgentMessage> sent;
        std::string bytes;
        for (std::uint64_t i = make.prng().below(6); i > 0; --i) {
            sent.push_back(make.agent_message());
            encode_item(sent.back(), bytes);
        }
        const auto got = decode_agent_batch(bytes);
        ASSERT_TRUE(got);
        ASSERT_EQ(*got, sent);
    }
    for (int round = 0; round < 400; ++round) {
        std::vector<ControllerMessage> sent;
        std::string bytes;
        for (std::uint64_t i = make.prng().below(6); i > 0; --i) {
            sent.push_back(make.controller_message());
            encode_item(sent.back(), bytes);
        }
        const auto got = decode_controller_batch(bytes);
        ASSERT_TRUE(got);
        ASSERT_EQ(got->size(), sent.size());
        for (std::size_t i = 0; i < sent.size(); ++i) ASSERT_TRUE(same((*got)[i], sent[i])) << i;
    }
}

TEST(LinkCodec, OrdersOfOneGangAreTheSameWithItsEncodingShared) {
    Maker make(5);
    OrderEncoder encoder;
    std::shared_ptr<const Gang> gang;
    for (int round = 0; round < 300; ++round) {
        StartTask order = make.start();
        if (!gang || make.flag()) gang = order.gang;
        order.gang = make.prng().chance(100) ? nullptr : gang;
        std::string bytes;
        encoder.encode(make.controller_message(), bytes);
        encoder.encode(order, bytes);
        const auto got = decode_controller_batch(bytes);
        ASSERT_TRUE(got);
        if (!order.gang) order.gang = std::make_shared<const Gang>();
        ASSERT_TRUE(same(got->back(), order));
    }
}

TEST(LinkCodec, DefaultsComeBackToo) {
    std::string bytes;
    encode_item(AgentMessage(TaskStatus{}), bytes);
    encode_item(AgentMessage(Hello{}), bytes);
    encode_item(AgentMessage(Heartbeat{}), bytes);
    EXPECT_EQ(*decode_agent_batch(bytes),
              (std::vector<AgentMessage>{TaskStatus{}, Hello{}, Heartbeat{}}));
    std::string orders;
    encode_item(ControllerMessage(StartTask{}), orders);
    const auto got = decode_controller_batch(orders);
    ASSERT_TRUE(got);
    const auto& start = std::get<StartTask>(got->front());
    EXPECT_EQ(start.checkpoint_step, -1);
    EXPECT_TRUE(start.spec->empty());
    EXPECT_TRUE(start.gang->empty());
}

TEST(LinkCodec, GarbageIsRefusedAndNeverCrashes) {
    Maker make(7);
    Prng& prng = make.prng();
    int refused = 0;
    for (int round = 0; round < 20'000; ++round) {
        std::string bytes;
        encode_item(make.agent_message(), bytes);
        encode_item(make.agent_message(), bytes);
        for (std::uint64_t i = 1 + prng.below(5); i > 0; --i) {
            bytes[prng.below(bytes.size())] = static_cast<char>(prng.below(256));
        }
        if (prng.chance(200)) bytes.resize(prng.below(bytes.size()));
        if (!decode_agent_batch(bytes)) ++refused;
        if (!decode_controller_batch(bytes)) ++refused;
        (void)decode_join(bytes);
        (void)decode_renewal(bytes);
        (void)decode_join_answer(bytes);
        (void)decode_peer_ask(bytes);
        (void)decode_peer_word(bytes);
    }
    EXPECT_GT(refused, 1000);
    EXPECT_FALSE(decode_agent_batch("\x0a\x02\x7a"));              // Cut off.
    EXPECT_FALSE(decode_agent_batch(std::string("\x0a\x00", 2)));  // An item of no kind.
    EXPECT_FALSE(decode_agent_batch("\x0a\x04\x22\x02\x18\x09"));  // A task state that is none.
}

TEST(LinkCodec, JoiningAndPeersComeBack) {
    JoinAsk ask;
    ask.token_id = "id";
    ask.token_secret = "secret\xff";
    ask.node_name = "节点";
    ask.request_pem = "pem";
    const auto got = decode_join(encode_join(ask));
    ASSERT_TRUE(got);
    EXPECT_EQ(got->token_secret, ask.token_secret);
    EXPECT_EQ(got->node_name, ask.node_name);
    EXPECT_FALSE(got->renewal);
    const JoinAnswer answer{"cert", "ca"};
    EXPECT_EQ(*decode_join_answer(encode_join_answer(answer)), answer);
    EXPECT_EQ(*decode_renewal(encode_renewal("r")), "r");
    EXPECT_EQ(*decode_peer_ask(encode_peer_ask({"a"})), PeerAsk{"a"});
    EXPECT_EQ(*decode_peer_word(encode_peer_word({true})), PeerWord{true});
}

}  // namespace
}  // namespace muster::net
