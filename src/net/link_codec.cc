// The only file that knows the generated protobuf classes.
#include "net/link_codec.h"

#include <google/protobuf/arena.h>

#include "base/bytes.h"
#include "net/agent.pb.h"

namespace muster::net {
namespace {

namespace pb = muster::agent::v1;
using google::protobuf::Arena;
using namespace protocol;  // NOLINT: its names against pb's.

/// What a message says that the contract does not allow: decoding goes on, the result is dropped.
struct Doubt {
    bool bad = false;

    template <class Enum>
    Enum checked(int value, Enum last) {
        bad = bad || value < 0 || value > static_cast<int>(last);
        return static_cast<Enum>(value);
    }
    std::uint16_t small(std::uint32_t value) {
        bad = bad || value > 0xffff;
        return static_cast<std::uint16_t>(value);
    }
};

// ---- shared parts ----

void put(const TaskKey& key, pb::TaskKey* out) {
    out->set_job(key.job.value);
    out->set_epoch(key.epoch);
    out->set_rank(key.rank);
}
TaskKey get(const pb::TaskKey& in) {
    return {.job = JobId{in.job()}, .epoch = in.epoch(), .rank = in.rank()};
}

void put(const Gang& gang, pb::Gang* out) {
    for (const GangMember& member : gang) {
        pb::GangMember* m = out->add_members();
        m->set_name(member.name);
        m->set_address(member.address);
        m->set_role(member.role);
        m->set_slots(member.slots);
        for (const std::string& domain : member.path) m->add_path(domain);
    }
}
Gang get(const pb::Gang& in) {
    Gang gang;
    for (const pb::GangMember& m : in.members()) {
        gang.push_back({m.name(), m.address(), m.role(), m.slots(), {}});
        gang.back().path.assign(m.path().begin(), m.path().end());
    }
    return gang;
}

void put(const model::Device& device, pb::Device* out) {
    out->set_id(device.id);
    out->set_kind(device.kind);
    out->set_device_class(device.device_class);
    out->set_vendor(device.vendor);
    out->set_memory(device.memory.value);
    out->set_numa(device.numa);
    out->set_link_group(device.link_group);
    for (const std::string& file : device.files) out->add_files(file);
    out->set_healthy(device.healthy);
    out->set_profile(device.profile);
    out->set_parent(device.parent);
    out->set_share_enforced(device.share_enforced);
    for (const std::string& nic : device.nics) out->add_nics(nic);
}
model::Device get(const pb::Device& in) {
    return {.id = in.id(),
            .kind = in.kind(),
            .device_class = in.device_class(),
            .vendor = in.vendor(),
            .memory = Bytes{in.memory()},
            .numa = in.numa(),
            .link_group = in.link_group(),
            .files = {in.files().begin(), in.files().end()},
            .healthy = in.healthy(),
            .profile = in.profile(),
            .parent = in.parent(),
            .share_enforced = in.share_enforced(),
            .nics = {in.nics().begin(), in.nics().end()}};
}

void put(const model::NodeFacts& facts, pb::NodeFacts* out) {
    out->set_name(facts.name);
    for (const std::string& address : facts.addresses) out->add_addresses(address);
    out->set_peer_port(facts.peer_port);
    out->set_boot_id(facts.boot_id);
    out->set_version(facts.version);
    out->set_milli_cpus(facts.cpus.value);
    out->set_memory(facts.memory.value);
    out->set_disk(facts.disk.value);
    for (const model::Device& device : facts.devices) put(device, out->add_devices());
    for (const auto& [key, value] : facts.labels) {
        pb::Label* label = out->add_labels();
        label->set_key(key);
        label->set_value(value);
    }
    out->set_runtime(facts.runtime);
    out->set_limits_enforced(facts.limits_enforced);
    out->set_disk_enforced(facts.disk_enforced);
    out->set_unenforced_why(facts.unenforced_why);
    for (const model::NumaNode& numa : facts.numa) {
        pb::NumaNode* node = out->add_numa();
        node->set_id(numa.id);
        node->set_cpus(numa.cpus);
    }
}
model::NodeFacts get(const pb::NodeFacts& in) {
    model::NodeFacts facts{.name = in.name(),
                           .addresses = {in.addresses().begin(), in.addresses().end()},
                           .peer_port = in.peer_port(),
                           .boot_id = in.boot_id(),
                           .version = in.version(),
                           .cpus = MilliCpu{in.milli_cpus()},
                           .memory = Bytes{in.memory()},
                           .disk = Bytes{in.disk()},
                           .devices = {},
                           .labels = {},
                           .numa = {},
                           .runtime = in.runtime(),
                           .limits_enforced = in.limits_enforced(),
                           .disk_enforced = in.disk_enforced(),
                           .unenforced_why = in.unenforced_why()};
    for (const pb::Device& device : in.devices()) facts.devices.push_back(get(device));
    for (const pb::Label& label : in.labels())
        facts.labels.emplace_back(label.key(), label.value());
    for (const pb::NumaNode& numa : in.numa()) facts.numa.push_back({numa.id(), numa.cpus()});
    return facts;
}

model::Cause cause_of(int value, Doubt& doubt) {
    return doubt.checked(value, model::Cause::Resized);
}
pb::Cause cause_to(model::Cause cause) {
    return static_cast<pb::Cause>(cause);
}

// ---- agent to controller ----

void put(const LaunchPoint& point, pb::LaunchPoint* out) {
    out->set_port(point.port);
    out->set_secret(point.secret);
}
LaunchPoint get(const pb::LaunchPoint& in) {
    return {.port = in.port(), .secret = in.secret()};
}

void put(const TaskStatus& status, pb::TaskStatus* out) {
    put(status.key, out->mutable_key());
    out->set_term(status.term);
    out->set_state(static_cast<pb::TaskState>(status.state));
    out->set_done(status.done);
    out->set_total(status.total);
    out->set_port(status.port);
    if (status.launch != LaunchPoint{}) put(status.launch, out->mutable_launch());
    if (status.end == model::TaskEnd{}) return;
    pb::TaskEnd* end = out->mutable_end();
    end->set_cause(cause_to(status.end.cause));
    end->set_exit_code(status.end.exit_code);
    end->set_signal(status.end.signal);
    end->set_local_rank(status.end.local_rank);
    end->set_peak_memory(status.end.peak_memory.value);
    end->set_cpu_ms(status.end.cpu_ms);
    end->set_message(status.end.message);
    end->set_permanent(status.end.permanent);
}
TaskStatus get(const pb::TaskStatus& in, Doubt& doubt) {
    TaskStatus status{.key = get(in.key()),
                      .term = in.term(),
                      .state = doubt.checked(in.state(), TaskState::Ended),
                      .done = in.done(),
                      .total = in.total(),
                      .port = in.port(),
                      .end = {},
                      .launch = get(in.launch())};
    if (in.has_end()) {
        const pb::TaskEnd& end = in.end();
        status.end = {.cause = cause_of(end.cause(), doubt),
                      .exit_code = end.exit_code(),
                      .signal = end.signal(),
                      .local_rank = end.local_rank(),
                      .peak_memory = Bytes{end.peak_memory()},
                      .cpu_ms = end.cpu_ms(),
                      .message = end.message(),
                      .permanent = end.permanent()};
    }
    return status;
}

struct AgentPutter {
    pb::AgentMessage* out;

    void operator()(const Hello& m) const {
        pb::Hello* o = out->mutable_hello();
        o->set_last_term(m.last_term);
        put(m.facts, o->mutable_facts());
        for (const TaskStatus& task : m.tasks) put(task, o->add_tasks());
    }
    void operator()(const Heartbeat& m) const {
        out->mutable_heartbeat()->set_sequence(m.sequence);
    }
    void operator()(const FactsChanged& m) const {
        put(m.facts, out->mutable_facts_changed()->mutable_facts());
    }
    void operator()(const TaskStatus& m) const { put(m, out->mutable_task_status()); }
    void operator()(const Progress& m) const {
        pb::Progress* o = out->mutable_progress();
        put(m.key, o->mutable_key());
        o->set_local_rank(m.local_rank);
        o->set_step(m.step);
        o->set_total(m.total);
        for (const auto& [name, value] : m.metrics) {
            pb::Metric* metric = o->add_metrics();
            metric->set_name(name);
            metric->set_value(value);
        }
    }
    void operator()(const CheckpointDone& m) const {
        pb::CheckpointDone* o = out->mutable_checkpoint_done();
        put(m.key, o->mutable_key());
        o->set_step(m.step);
        o->set_path(m.path);
    }
    void operator()(const LogTail& m) const {
        pb::LogTail* o = out->mutable_log_tail();
        put(m.key, o->mutable_key());
        o->set_offset(m.offset);
        o->set_data(m.bytes);
    }
    void operator()(const LogMatch& m) const {
        pb::LogMatch* o = out->mutable_log_match();
        put(m.key, o->mutable_key());
        o->set_rule(m.rule);
        o->set_line(m.line);
    }
    void operator()(const LogChunk& m) const {
        pb::LogChunk* o = out->mutable_log_chunk();
        o->set_request(m.request);
        o->set_offset(m.offset);
        o->set_data(m.bytes);
        o->set_end(m.end);
        o->set_error(m.error);
    }
    void operator()(const TunnelOutput& m) const {
        pb::TunnelOutput* o = out->mutable_tunnel_output();
        o->set_request(m.request);
        o->set_data(m.bytes);
        o->set_is_stderr(m.is_stderr);
        o->set_end(m.end);
        o->set_exit_code(m.exit_code);
        o->set_error(m.error);
        o->set_taken(m.taken);
    }
};

AgentMessage get(const pb::AgentMessage& in, Doubt& doubt) {
    switch (in.kind_case()) {
        case pb::AgentMessage::kHello: {
            const pb::Hello& i = in.hello();
            Hello hello{.last_term = i.last_term(), .facts = get(i.facts()), .tasks = {}};
            for (const pb::TaskStatus& task : i.tasks()) hello.tasks.push_back(get(task, doubt));
            return hello;
        }
        case pb::AgentMessage::kHeartbeat: return Heartbeat{.sequence = in.heartbeat().sequence()};
        case pb::AgentMessage::kFactsChanged:
            return FactsChanged{.facts = get(in.facts_changed().facts())};
        case pb::AgentMessage::kTaskStatus: return get(in.task_status(), doubt);
        case pb::AgentMessage::kProgress: {
            const pb::Progress& i = in.progress();
            Progress progress{.key = get(i.key()),
                              .local_rank = i.local_rank(),
                              .step = i.step(),
                              .total = i.total(),
                              .metrics = {}};
            for (const pb::Metric& m : i.metrics())
                progress.metrics.emplace_back(m.name(), m.value());
            return progress;
        }
        case pb::AgentMessage::kCheckpointDone: {
            const pb::CheckpointDone& i = in.checkpoint_done();
            return CheckpointDone{.key = get(i.key()), .step = i.step(), .path = i.path()};
        }
        case pb::AgentMessage::kLogTail: {
            const pb::LogTail& i = in.log_tail();
            return LogTail{.key = get(i.key()), .offset = i.offset(), .bytes = i.data()};
        }
        case pb::AgentMessage::kLogMatch: {
            const pb::LogMatch& i = in.log_match();
            return LogMatch{.key = get(i.key()), .rule = i.rule(), .line = i.line()};
        }
        case pb::AgentMessage::kLogChunk: {
            const pb::LogChunk& i = in.log_chunk();
            return LogChunk{.request = i.request(),
                            .offset = i.offset(),
                            .bytes = i.data(),
                            .end = i.end(),
                            .error = i.error()};
        }
        case pb::AgentMessage::kTunnelOutput: {
            const pb::TunnelOutput& i = in.tunnel_output();
            return TunnelOutput{.request = i.request(),
                                .bytes = i.data(),
                                .is_stderr = i.is_stderr(),
                                .end = i.end(),
                                .exit_code = i.exit_code(),
                                .error = i.error(),
                                .taken = i.taken()};
        }
        case pb::AgentMessage::KIND_NOT_SET: break;
    }
    doubt.bad = true;
    return Heartbeat{};
}

// ---- controller to agent ----

struct ControllerPutter {
    pb::ControllerMessage* out;

    void operator()(const Welcome& m) const {
        pb::Welcome* o = out->mutable_welcome();
        o->set_term(m.term);
        o->set_node(m.node.value);
        pb::LeaseRules* rules = o->mutable_rules();
        rules->set_heartbeat_ms(m.rules.heartbeat.ms);
        rules->set_suspect_ms(m.rules.suspect.ms);
        rules->set_lost_ms(m.rules.lost.ms);
        rules->set_fence_ms(m.rules.fence.ms);
        for (const TaskKey& key : m.wanted) put(key, o->add_wanted());
        o->set_adopt_all(m.adopt_all);
    }
    void operator()(const LeaseGrant& m) const {
        pb::LeaseGrant* o = out->mutable_lease_grant();
        o->set_term(m.term);
        o->set_sequence(m.sequence);
        for (const PeerAddress& peer : m.peers) {
            pb::PeerAddress* p = o->add_peers();
            p->set_name(peer.name);
            p->set_address(peer.address);
            p->set_port(peer.port);
        }
    }
    void operator()(const StartTask& m) const {
        pb::StartTask* o = out->mutable_start_task();
        put_all_but_gang(m, o);
        if (m.gang) put(*m.gang, o->mutable_gang());
    }
    static void put_all_but_gang(const StartTask& m, pb::StartTask* o) {
        o->set_term(m.term);
        put(m.key, o->mutable_key());
        o->set_user(m.user);
        o->set_job_name(m.job_name);
        o->set_queue(m.queue);
        if (m.spec) o->set_spec(*m.spec);
        o->set_role(m.role);
        o->set_role_index(m.role_index);
        o->set_array_job(m.array_job);
        o->set_array_element(m.array_element);
        for (const std::string& device : m.devices) o->add_devices(device);
        o->set_milli_cpus(m.cpus.value);
        o->set_memory(m.memory.value);
        o->set_restart_count(m.restart_count);
        o->set_latest_checkpoint(m.latest_checkpoint);
        o->set_checkpoint_step(m.checkpoint_step);
        o->set_deadline_ms(m.deadline.ms);
        o->set_barrier(m.barrier);
        o->set_device_share(m.device_share);
        o->set_device_memory(m.device_memory.value);
        for (const std::string& level : m.levels) o->add_levels(level);
    }
    void operator()(const Go& m) const {
        pb::Go* o = out->mutable_go();
        o->set_term(m.term);
        put(m.key, o->mutable_key());
        o->set_master_address(m.master_address);
        o->set_master_port(m.master_port);
        for (const LaunchPoint& point : m.launch) put(point, o->add_launch());
    }
    void operator()(const NoticeTask& m) const {
        pb::NoticeTask* o = out->mutable_notice_task();
        o->set_term(m.term);
        put(m.key, o->mutable_key());
        o->set_cause(cause_to(m.cause));
        o->set_grace_ms(m.grace.ms);
        o->set_reason(m.reason);
    }
    void operator()(const StopTask& m) const {
        pb::StopTask* o = out->mutable_stop_task();
        o->set_term(m.term);
        put(m.key, o->mutable_key());
        o->set_cause(cause_to(m.cause));
        o->set_grace_ms(m.grace.ms);
    }
    void operator()(const ForgetTask& m) const {
        pb::ForgetTask* o = out->mutable_forget_task();
        o->set_term(m.term);
        put(m.key, o->mutable_key());
    }
    void operator()(const ReadLog& m) const {
        pb::ReadLog* o = out->mutable_read_log();
        o->set_request(m.request);
        put(m.key, o->mutable_key());
        o->set_local_rank(m.local_rank);
        o->set_offset(m.offset);
        o->set_limit(m.limit);
        o->set_follow(m.follow);
        o->set_since_ms(m.since.ms);
    }
    void operator()(const OpenTunnel& m) const {
        pb::OpenTunnel* o = out->mutable_open_tunnel();
        o->set_request(m.request);
        put(m.key, o->mutable_key());
        o->set_exec(m.kind == OpenTunnel::Kind::Exec);
        for (const std::string& word : m.argv) o->add_argv(word);
        o->set_tty(m.tty);
        o->set_columns(m.columns);
        o->set_rows(m.rows);
        o->set_window(m.window);
    }
    void operator()(const TunnelInput& m) const {
        pb::TunnelInput* o = out->mutable_tunnel_input();
        o->set_request(m.request);
        o->set_data(m.bytes);
        o->set_end(m.end);
        o->set_columns(m.columns);
        o->set_rows(m.rows);
        o->set_taken(m.taken);
    }
    void operator()(const CancelRequest& m) const {
        out->mutable_cancel_request()->set_request(m.request);
    }
};

StartTask get(const pb::StartTask& i) {
    StartTask m;
    m.term = i.term();
    m.key = get(i.key());
    m.user = i.user();
    m.job_name = i.job_name();
    m.queue = i.queue();
    m.spec = std::make_shared<const std::string>(i.spec());
    m.gang = std::make_shared<const Gang>(get(i.gang()));
    m.role = i.role();
    m.role_index = i.role_index();
    m.array_job = i.array_job();
    m.array_element = i.array_element();
    m.devices.assign(i.devices().begin(), i.devices().end());
    m.cpus = MilliCpu{i.milli_cpus()};
    m.memory = Bytes{i.memory()};
    m.restart_count = i.restart_count();
    m.latest_checkpoint = i.latest_checkpoint();
    m.checkpoint_step = i.checkpoint_step();
    m.deadline = Time{i.deadline_ms()};
    m.barrier = i.barrier();
    m.device_share = i.device_share();
    m.device_memory = Bytes{i.device_memory()};
    m.levels.assign(i.levels().begin(), i.levels().end());
    return m;
}

Welcome get(const pb::Welcome& i) {
    Welcome m{.term = i.term(),
              .node = NodeId{i.node()},
              .rules = {.heartbeat = {i.rules().heartbeat_ms()},
                        .suspect = {i.rules().suspect_ms()},
                        .lost = {i.rules().lost_ms()},
                        .fence = {i.rules().fence_ms()}},
              .wanted = {},
              .adopt_all = i.adopt_all()};
    for (const pb::TaskKey& key : i.wanted()) m.wanted.push_back(get(key));
    return m;
}

ControllerMessage get(const pb::ControllerMessage& in, Doubt& doubt) {
    switch (in.kind_case()) {
        case pb::ControllerMessage::kWelcome: return get(in.welcome());
        case pb::ControllerMessage::kLeaseGrant: {
            const pb::LeaseGrant& i = in.lease_grant();
            LeaseGrant m{.term = i.term(), .sequence = i.sequence(), .peers = {}};
            for (const pb::PeerAddress& p : i.peers())
                m.peers.push_back({p.name(), p.address(), p.port()});
            return m;
        }
        case pb::ControllerMessage::kStartTask: return get(in.start_task());
        case pb::ControllerMessage::kGo: {
            const pb::Go& i = in.go();
            Go go{i.term(), get(i.key()), i.master_address(), i.master_port(), {}};
            for (const pb::LaunchPoint& point : i.launch()) go.launch.push_back(get(point));
            return go;
        }
        case pb::ControllerMessage::kNoticeTask: {
            const pb::NoticeTask& i = in.notice_task();
            return NoticeTask{.term = i.term(),
                              .key = get(i.key()),
                              .cause = cause_of(i.cause(), doubt),
                              .grace = {i.grace_ms()},
                              .reason = i.reason()};
        }
        case pb::ControllerMessage::kStopTask: {
            const pb::StopTask& i = in.stop_task();
            return StopTask{.term = i.term(),
                            .key = get(i.key()),
                            .cause = cause_of(i.cause(), doubt),
                            .grace = {i.grace_ms()}};
        }
        case pb::ControllerMessage::kForgetTask: {
            const pb::ForgetTask& i = in.forget_task();
            return ForgetTask{.term = i.term(), .key = get(i.key())};
        }
        case pb::ControllerMessage::kReadLog: {
            const pb::ReadLog& i = in.read_log();
            return ReadLog{.request = i.request(),
                           .key = get(i.key()),
                           .local_rank = i.local_rank(),
                           .offset = i.offset(),
                           .limit = i.limit(),
                           .follow = i.follow(),
                           .since = Time{i.since_ms()}};
        }
        case pb::ControllerMessage::kOpenTunnel: {
            const pb::OpenTunnel& i = in.open_tunnel();
            return OpenTunnel{.request = i.request(),
                              .key = get(i.key()),
                              .kind = i.exec() ? OpenTunnel::Kind::Exec : OpenTunnel::Kind::Attach,
                              .argv = {i.argv().begin(), i.argv().end()},
                              .tty = i.tty(),
                              .columns = doubt.small(i.columns()),
                              .rows = doubt.small(i.rows()),
                              .window = i.window()};
        }
        case pb::ControllerMessage::kTunnelInput: {
            const pb::TunnelInput& i = in.tunnel_input();
            return TunnelInput{.request = i.request(),
                               .bytes = i.data(),
                               .end = i.end(),
                               .columns = doubt.small(i.columns()),
                               .rows = doubt.small(i.rows()),
                               .taken = i.taken()};
        }
        case pb::ControllerMessage::kCancelRequest:
            return CancelRequest{.request = in.cancel_request().request()};
        case pb::ControllerMessage::KIND_NOT_SET: break;
    }
    doubt.bad = true;
    return CancelRequest{};
}

Error malformed(std::string_view what) {
    return Error{.code = Code::Corrupt,
                 .message = "a message of the agent link is malformed",
                 .cause = std::string(what),
                 .fix = "run the same version of Muster on both ends"};
}

template <class Message>
bool parse(std::string_view bytes, Message& message) {
    return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

template <class Value, class Batch>
Result<std::vector<Value>> decode_batch(std::string_view bytes) {
    Arena arena;
    auto* batch = Arena::CreateMessage<Batch>(&arena);
    if (!parse(bytes, *batch)) return malformed("it is no batch");
    std::vector<Value> values;
    values.reserve(static_cast<std::size_t>(batch->items_size()));
    Doubt doubt;
    for (const auto& item : batch->items()) values.push_back(get(item, doubt));
    if (doubt.bad) return malformed("it has a kind or a value that is unknown here");
    return values;
}

}  // namespace

void encode_item(const AgentMessage& message, std::string& out) {
    Arena arena;
    auto* batch = Arena::CreateMessage<pb::AgentBatch>(&arena);
    std::visit(AgentPutter{batch->add_items()}, message);
    batch->AppendToString(&out);
}

void encode_item(const ControllerMessage& message, std::string& out) {
    Arena arena;
    auto* batch = Arena::CreateMessage<pb::ControllerBatch>(&arena);
    std::visit(ControllerPutter{batch->add_items()}, message);
    batch->AppendToString(&out);
}

std::string OrderEncoder::gang_field(const std::shared_ptr<const Gang>& gang) {
    const std::lock_guard lock(mutex_);
    const auto last = gang_.lock();
    if (last && last == gang) return field_;
    Arena arena;
    auto* message = Arena::CreateMessage<pb::StartTask>(&arena);
    put(*gang, message->mutable_gang());
    field_ = message->SerializeAsString();
    gang_ = gang;
    return field_;
}

void OrderEncoder::encode(const ControllerMessage& message, std::string& out) {
    const auto* start = std::get_if<StartTask>(&message);
    if (start == nullptr || !start->gang) return encode_item(message, out);
    Arena arena;
    auto* order = Arena::CreateMessage<pb::StartTask>(&arena);
    ControllerPutter::put_all_but_gang(*start, order);
    // Fields may come in any order, so the parts of a message are its encoding when joined.
    std::string task = order->SerializeAsString();
    task += gang_field(start->gang);
    Writer item;
    item.number(pb::ControllerMessage::kStartTaskFieldNumber << 3 | 2);
    item.text(task);
    Writer batch;
    batch.number(pb::ControllerBatch::kItemsFieldNumber << 3 | 2);
    batch.text(item.bytes());
    out += batch.bytes();
}

Result<std::vector<AgentMessage>> decode_agent_batch(std::string_view bytes) {
    return decode_batch<AgentMessage, pb::AgentBatch>(bytes);
}

Result<std::vector<ControllerMessage>> decode_controller_batch(std::string_view bytes) {
    return decode_batch<ControllerMessage, pb::ControllerBatch>(bytes);
}

std::string encode_join(const JoinAsk& ask) {
    pb::JoinRequest out;
    out.set_token_id(ask.token_id);
    out.set_token_secret(ask.token_secret);
    out.set_node_name(ask.node_name);
    out.set_request_pem(ask.request_pem);
    return out.SerializeAsString();
}
Result<JoinAsk> decode_join(std::string_view bytes) {
    pb::JoinRequest in;
    if (!parse(bytes, in)) return malformed("it is no join request");
    JoinAsk ask;
    ask.token_id = in.token_id();
    ask.token_secret = in.token_secret();
    ask.node_name = in.node_name();
    ask.request_pem = in.request_pem();
    return ask;
}

std::string encode_renewal(std::string_view request_pem) {
    pb::RenewRequest out;
    out.set_request_pem(std::string(request_pem));
    return out.SerializeAsString();
}
Result<std::string> decode_renewal(std::string_view bytes) {
    pb::RenewRequest in;
    if (!parse(bytes, in)) return malformed("it is no renewal request");
    return in.request_pem();
}

std::string encode_join_answer(const JoinAnswer& answer) {
    pb::JoinReply out;
    out.set_certificate_pem(answer.certificate_pem);
    out.set_ca_pem(answer.ca_pem);
    return out.SerializeAsString();
}
Result<JoinAnswer> decode_join_answer(std::string_view bytes) {
    pb::JoinReply in;
    if (!parse(bytes, in)) return malformed("it is no join reply");
    return JoinAnswer{.certificate_pem = in.certificate_pem(), .ca_pem = in.ca_pem()};
}

std::string encode_peer_ask(const PeerAsk& ask) {
    pb::PeerAsk out;
    out.set_asker(ask.asker);
    return out.SerializeAsString();
}
Result<PeerAsk> decode_peer_ask(std::string_view bytes) {
    pb::PeerAsk in;
    if (!parse(bytes, in)) return malformed("it is no peer's question");
    return PeerAsk{.asker = in.asker()};
}

std::string encode_peer_word(const PeerWord& word) {
    pb::PeerWord out;
    out.set_has_controller(word.has_controller);
    return out.SerializeAsString();
}
Result<PeerWord> decode_peer_word(std::string_view bytes) {
    pb::PeerWord in;
    if (!parse(bytes, in)) return malformed("it is no peer's word");
    return PeerWord{.has_controller = in.has_controller()};
}

}  // namespace muster::net
