// Rows of queue files: what is read, what is wrong with its place, and back to YAML.
#include "spec/queue_file.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "base/error_codes.h"
#include "base/prng.h"
#include "base/units.h"

namespace muster::spec {
namespace {

using model::Amounts;
using model::Queue;
using model::QueuePolicy;

std::string lines_of(const Problems& problems) {
    std::string out;
    for (const Problem& problem : problems) out += render_line(problem) + "\n";
    return out;
}
std::string answer(std::string_view text) {
    const auto parsed = parse_queue_file(text, "q");
    if (const auto* problems = std::get_if<Problems>(&parsed)) return lines_of(*problems);
    return to_yaml(std::get<QueueFile>(parsed));
}

constexpr const char* kWhole = R"(queues:
  research: {guarantee: {gpus: 64, h100: 32}, limit: {gpus: 128}, weight: 2, policy: fair,
    queues: {nlp: {guarantee: {gpus: 32}, max_jobs: 100, users: [wei, ana], groups: [nlp]}, vision: {}}}
  batch: {policy: fifo, preemptible: false, borrow_limit: {gpus: 16}, lend_limit: {gpus: 8},
    user_limit: {gpus: 8, jobs: 20, pending: 500}, job_limit: {gpus: 64, time: 2d},
    default: {time: 1h, priority: 40}, min_runtime: 10m, aging: {every: 1h, max: 30}, max_pending: 7}
rules: {half_life: 3d, weights: {h100: 1, A100: 0.5}, speeds: {h100: 1, a100: 0.45},
  backfill: conservative, bookings: 16, reclaim_per_minute: 256, preemptions_max: 3,
  defragment: false, resize_min_interval: 1h}
)";

TEST(QueueFile, ReadsEveryField) {
    const auto parsed = parse_queue_file(kWhole, "q");
    ASSERT_EQ(parsed.index(), 0u) << lines_of(std::get<Problems>(parsed));
    const auto& file = std::get<QueueFile>(parsed);
    ASSERT_EQ(file.queues.size(), 4u);
    EXPECT_EQ(file.queues[1].name, "research");
    EXPECT_EQ(file.queues[2].name, "research/nlp");
    EXPECT_EQ(file.queues[3].name, "research/vision");
    const model::QueueSettings& research = file.queues[1].settings;
    EXPECT_EQ(research.guarantee, (Amounts{{"gpus", 64'000}, {"h100", 32'000}}));
    EXPECT_EQ(research.weight, 200);
    EXPECT_EQ(research.policy, QueuePolicy::Fair);
    EXPECT_EQ(file.queues[2].settings.users, (std::vector<std::string>{"ana", "wei"}));
    EXPECT_EQ(file.queues[3].settings, model::QueueSettings{});
    const model::QueueSettings& batch = file.queues[0].settings;
    EXPECT_EQ(batch.policy, QueuePolicy::Fifo);
    EXPECT_FALSE(batch.preemptible);
    EXPECT_EQ(batch.borrow_limit, (Amounts{{"gpus", 16'000}}));
    EXPECT_EQ(batch.lend_limit, (Amounts{{"gpus", 8'000}}));
    EXPECT_EQ(batch.user_limit, (Amounts{{"gpus", 8'000}}));
    EXPECT_EQ(batch.user_max_jobs, 20);
    EXPECT_EQ(batch.user_max_pending, 500);
    EXPECT_EQ(batch.job_limit, (Amounts{{"gpus", 64'000}}));
    EXPECT_EQ(batch.max_time, *parse_duration("2d"));
    EXPECT_EQ(batch.default_time, *parse_duration("1h"));
    EXPECT_EQ(batch.default_priority, 40);
    EXPECT_EQ(batch.min_runtime, *parse_duration("10m"));
    EXPECT_EQ(batch.aging, *parse_duration("1h"));
    EXPECT_EQ(batch.aging_max, 30);
    EXPECT_EQ(batch.max_pending, 7);
    ASSERT_TRUE(file.rules);
    using Kinds = std::vector<std::pair<std::string, std::int64_t>>;
    EXPECT_EQ(file.rules->half_life, *parse_duration("3d"));
    EXPECT_EQ(file.rules->kind_weights, (Kinds{{"a100", 500}, {"h100", 1000}}));
    EXPECT_EQ(file.rules->kind_speeds, (Kinds{{"a100", 450}, {"h100", 1000}}));
    EXPECT_TRUE(file.rules->conservative);
    EXPECT_EQ(file.rules->bookings_max, 16);
    EXPECT_EQ(file.rules->reclaim_per_minute, 256);
    EXPECT_EQ(file.rules->preemptions_max, 3);
    EXPECT_FALSE(file.rules->defragment);
    EXPECT_EQ(file.rules->resize_min_interval, *parse_duration("1h"));
}

struct Row {
    const char* text;
    const char* expected;
};

TEST(QueueFile, IsWrittenInOneForm) {
    const Row rows[] = {
        {kWhole,
         "queues:\n"
         "  batch:\n"
         "    borrow_limit: {gpus: 16}\n"
         "    lend_limit: {gpus: 8}\n"
         "    policy: fifo\n"
         "    max_pending: 7\n"
         "    user_limit: {gpus: 8, jobs: 20, pending: 500}\n"
         "    job_limit: {gpus: 64, time: 2d}\n"
         "    preemptible: false\n"
         "    min_runtime: 10m\n"
         "    default: {time: 1h, priority: 40}\n"
         "    aging: {every: 1h, max: 30}\n"
         "  research:\n"
         "    guarantee: {gpus: 64, h100: 32}\n"
         "    limit: {gpus: 128}\n"
         "    weight: 2\n"
         "    policy: fair\n"
         "    queues:\n"
         "      nlp:\n"
         "        guarantee: {gpus: 32}\n"
         "        max_jobs: 100\n"
         "        users: [ana, wei]\n"
         "        groups: [nlp]\n"
         "      vision: {}\n"
         "rules:\n"
         "  half_life: 3d\n"
         "  weights: {a100: 0.5, h100: 1}\n"
         "  speeds: {a100: 0.45, h100: 1}\n"
         "  backfill: conservative\n"
         "  bookings: 16\n"
         "  reclaim_per_minute: 256\n"
         "  preemptions_max: 3\n"
         "  defragment: false\n"
         "  resize_min_interval: 1h\n"},
        {"queues: [b, a]", "queues:\n  a: {}\n  b: {}\n"},
        {"queues: {a: }", "queues:\n  a: {}\n"},
        {"rules: {}", "rules: {}\n"},
        {"queues: {a: {limit: {memory: 64TB, cpus: 0.5, npu: 3, gpus: none}}}",
         "queues:\n  a:\n    limit: {cpus: 0.5, memory: 64TiB, npu: 3}\n"},
        {"queues: {a: {weight: 0.25, max_jobs: none, aging: none}}",
         "queues:\n  a:\n    weight: 0.25\n"},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(answer(row.text), row.expected) << row.text;
        EXPECT_EQ(answer(row.expected), row.expected);
    }
}

TEST(QueueFile, EveryProblemIsToldAtOnce) {
    const Row rows[] = {
        {"",
         "q:1:1: error: a queue file is a map with queues, rules or both, as in \"queues: "
         "{research: {weight: 2}}\"\n"},
        {"queue: {}", "q:1:1: error: queue: unknown key; did you mean queues?\n"},
        {"queues: {a: {wieght: 2, policy: fiar}}\nrules: {half_live: 7d}",
         "q:1:14: error: queues.a.wieght: unknown key; did you mean weight?\n"
         "q:1:33: error: queues.a.policy: fiar: must be one of priority, fifo, fair, shortest, "
         "las; did you mean fair?\n"
         "q:2:9: error: rules.half_live: unknown key; did you mean half_life?\n"},
        {"queues: {a: {}, a: {}}", "q:1:17: error: queues.a: given twice\n"},
        {"queues: {a/b: {}}",
         "q:1:10: error: queues.a/b: a/b: not a queue's name; at most 63 letters, digits, . _ and "
         "- (a queue inside another stands under its `queues`)\n"},
        {"queues: {a: {limit: {gpus: -1}}}",
         "q:1:28: error: queues.a.limit.gpus: -1: must be a number in 0..1073741824 with at most "
         "three decimals\n"},
        {"queues: {a: {limit: {gpus: 1.0005}}}",
         "q:1:28: error: queues.a.limit.gpus: 1.0005: must be a number in 0..1073741824 with at "
         "most three decimals\n"},
        {"queues: {a: {limit: {gpus: 9223372036854775808}}}",
         "q:1:28: error: queues.a.limit.gpus: 9223372036854775808: must be a number in "
         "0..1073741824 with at most three decimals\n"},
        {"queues: {a: {limit: {g pu: 1}}}",
         "q:1:22: error: queues.a.limit.g pu: not a resource; write gpus, cpus, memory, or a kind "
         "or class of device (h100, npu)\n"},
        {"queues: {a: {weight: 0}}",
         "q:1:22: error: queues.a.weight: 0: must be a number in 0.01..10000 with at most three "
         "decimals\n"},
        {"queues: {a: {weight: 0.125}}",
         "q:1:22: error: queues.a.weight: 0.125: at most two decimals (0.25)\n"},
        {"queues: {a: {default: {tme: 1h}}}",
         "q:1:24: error: queues.a.default.tme: unknown key; did you mean time?\n"},
        {"queues: {a: {default: {time: 2d}, job_limit: {time: 1d}}}",
         "q:1:13: error: queues.a: default.time 2d is longer than job_limit.time 1d\n"},
        {"queues: {a: {guarantee: {gpus: 8}, limit: {gpus: 4}}}",
         "q:1:10: error: a: guarantee of 8 gpus is above its limit, 4\n"},
        {"queues: {a: {guarantee: {gpus: 8}, queues: {b: {guarantee: {gpus: 6}}, c: {guarantee: "
         "{gpus: 3, memory: 1TB}}}}}",
         "q:1:10: error: a: the queues below it are guaranteed 9 gpus, it has 8; give it a "
         "guarantee of at least 9 gpus\n"
         "q:1:10: error: a: the queues below it are guaranteed 1TiB memory, it has 0; give "
         "it a guarantee of at least 1TiB memory\n"},
        {"rules: {reclaim_per_minute: 0, speeds: {h100: 0}}",
         "q:1:29: error: rules.reclaim_per_minute: 0: must be a whole number in 1..1073741824\n"
         "q:1:47: error: rules.speeds.h100: 0: must be a number in 0.001..1000 with at most three "
         "decimals\n"},
        {"queues: [", "q:1:10: error: a list opened with '[' is not closed with ']'\n"},
    };
    for (const Row& row : rows) EXPECT_EQ(answer(row.text), row.expected) << row.text;
    std::string deep = "queues: ";
    for (int i = 0; i < 9; ++i) deep += "{a: {queues: ";
    EXPECT_NE(answer(deep + "{}" + std::string(18, '}'))
                  .find("deeper than the limit of 8 queues inside each other"),
              std::string::npos);
}

TEST(QueueFile, ItsProblemsAreOneErrorOfItsOwnKind) {
    const auto parsed = parse_queue_file("queues: {a: {weight: 0}, b: {weight: 0}}", "q");
    const Error error = to_error(std::get<Problems>(parsed), errors::kQueueTree);
    EXPECT_EQ(error.number, errors::kQueueTree);
    EXPECT_EQ(
        error.message,
        "queues.a.weight: 0: must be a number in 0.01..10000 with at most three decimals (and "
        "1 more)");
    EXPECT_NE(error.cause.find("q:1:38: error: queues.b.weight"), std::string::npos) << error.cause;
}

TEST(QueueFile, SetChangesOneThingOrNothing) {
    Queue queue;
    queue.name = "a";
    queue.settings.limit = {{"gpus", 8'000}, {"h100", 4'000}};
    std::vector<std::string> words = {"limit.gpus=64", "weight=2",    "user_limit.jobs=3",
                                      "users=ana,wei", "aging.max=7", "default.time=1h"};
    EXPECT_EQ(lines_of(set_queue(queue, words)), "");
    EXPECT_EQ(queue.settings.limit, (Amounts{{"gpus", 64'000}, {"h100", 4'000}}));
    EXPECT_EQ(queue.settings.weight, 200);
    EXPECT_EQ(queue.settings.user_max_jobs, 3);
    EXPECT_EQ(queue.settings.users, (std::vector<std::string>{"ana", "wei"}));
    EXPECT_EQ(queue.settings.aging_max, 7);
    EXPECT_EQ(queue.settings.default_time, *parse_duration("1h"));
    words = {"limit={npu: 2}", "user_limit={gpus: 1}"};
    EXPECT_EQ(lines_of(set_queue(queue, words)), "");
    EXPECT_EQ(queue.settings.limit, (Amounts{{"npu", 2'000}}));
    EXPECT_EQ(queue.settings.user_max_jobs, -1);
    words = {"limit.npu=none"};
    EXPECT_EQ(lines_of(set_queue(queue, words)), "");
    EXPECT_TRUE(queue.settings.limit.empty());

    words = {"default.time=2d", "job_limit.time=3d"};  // Judged together.
    EXPECT_EQ(lines_of(set_queue(queue, words)), "");
    words = {"job_limit.time=1d"};
    EXPECT_EQ(lines_of(set_queue(queue, words)),
              "error: default.time 2d is longer than job_limit.time 1d\n");
    words = {"queues={}"};
    EXPECT_NE(lines_of(set_queue(queue, words)).find("queues: unknown key"), std::string::npos);

    const Queue before = queue;
    words = {"weight=3", "limit.gpus=x", "wieght=1", "policy", "limit={", "max_jobs=5"};
    EXPECT_EQ(lines_of(set_queue(queue, words)),
              "policy: must be FIELD=VALUE, as in weight=2 or limit.gpus=64\n"
              "limit: a key must be text, not a list or a map; is a bracket not closed?\n"
              "limit: gpus: x: must be a number in 0..1073741824 with at most three decimals\n"
              "wieght: unknown key; did you mean weight?\n");
    EXPECT_EQ(queue, before);

    model::SchedulingRules rules;
    words = {"speeds.a100=0.45", "half_life=3d"};
    EXPECT_EQ(lines_of(set_rules(rules, words)), "");
    EXPECT_EQ(rules.kind_speeds.at(0).second, 450);
    words = {"speeds.h100=1", "bookings=0"};
    EXPECT_EQ(lines_of(set_rules(rules, words)), "bookings: 0: must be a whole number in 1..256\n");
    EXPECT_EQ(rules.kind_speeds.size(), 1u);
}

TEST(QueueFile, TheTreeIsCheckedAfterAnyChange) {
    std::vector<Queue> queues(2);
    queues[0].name = "a";
    queues[1].name = "a/b";
    EXPECT_TRUE(check_queues(queues).empty());
    queues[1].settings.guarantee = {{"gpus", 1'500}};
    EXPECT_EQ(check_queues(queues),
              std::vector<std::string>{"a: the queues below it are guaranteed 1.5 gpus, it has 0; "
                                       "give it a guarantee of at least 1.5 gpus"});
    queues[0].name = "ab";  // A name is not a prefix of text (F9).
    EXPECT_EQ(check_queues(queues), std::vector<std::string>{"a/b: there is no queue a above it"});
}

class Maker {
public:
    explicit Maker(std::uint64_t seed) : random_(seed) {}
    QueueFile file() {
        QueueFile out;
        add(out, "", 0);
        std::sort(out.queues.begin(), out.queues.end(),
                  [](const Queue& a, const Queue& b) { return a.name < b.name; });
        if (half()) out.rules = rules();
        return out;
    }

private:
    bool half() { return random_.chance(500); }
    void add(QueueFile& out, const std::string& above, int depth) {
        for (const char* name : {"null", "0", "a", "a-b", "on"}) {
            if (!random_.chance(depth == 0 ? 600 : 250)) continue;
            Queue queue;
            queue.name = above + name;
            fill(queue.settings);
            out.queues.push_back(queue);
            if (depth < 3) add(out, queue.name + "/", depth + 1);
        }
    }
    Amounts amounts() {
        Amounts out;
        for (const char* name : {"a100", "cpus", "gpus", "null"})
            if (half()) out.push_back({name, random_.between(0, 5'000'000)});
        if (half())
            out.insert(out.begin() + static_cast<std::ptrdiff_t>(std::count_if(
                                         out.begin(), out.end(),
                                         [](const auto& a) { return a.resource < "memory"; })),
                       {"memory", random_.between(1 << 20, std::int64_t{1} << 50)});
        return out;
    }
    Duration time() { return Duration{random_.between(1000, 1'000'000'000)}; }
    void fill(model::QueueSettings& s) {
        if (half()) s.limit = amounts();
        if (half()) s.borrow_limit = amounts();
        if (half()) s.lend_limit = amounts();
        if (half()) s.user_limit = amounts();
        if (half()) s.job_limit = amounts();
        if (half()) s.weight = random_.between(1, 1'000'000);
        s.policy = static_cast<QueuePolicy>(random_.below(5));
        for (std::int64_t* n : {&s.max_jobs, &s.max_pending, &s.user_max_jobs, &s.user_max_pending})
            if (half()) *n = random_.between(0, 1000);
        if (half()) s.users = {"a b", "null", "wei"};
        if (half()) s.groups = {"0"};
        s.preemptible = half();
        if (half()) s.min_runtime = time();
        if (half()) s.max_time = time();
        if (half()) s.default_time = s.max_time.ms > 0 ? Duration{1000} : time();
        if (half()) s.default_priority = random_.between(0, 100);
        if (half()) s.aging = time();
        if (half()) s.aging_max = random_.between(0, 100);
    }
    model::SchedulingRules rules() {
        model::SchedulingRules r;
        if (half()) r.half_life = Duration{random_.between(60'000, 1'000'000'000)};
        if (half()) r.kind_weights = {{"h100", random_.between(1, 1'000'000)}, {"on", 1}};
        if (half()) r.kind_speeds = {{"7", 450}};
        r.conservative = half();
        if (half()) r.bookings_max = random_.between(1, 256);
        if (half()) r.reclaim_per_minute = random_.between(1, 10'000);
        if (half()) r.preemptions_max = random_.between(0, 100);
        r.defragment = half();
        if (half()) r.resize_min_interval = time();
        return r;
    }
    Prng random_;
};

TEST(QueueFile, ReadsBackAsItself) {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        const QueueFile file = Maker(seed).file();
        const std::string text = to_yaml(file);
        const auto parsed = parse_queue_file(text, "q");
        if (file.queues.empty() && !file.rules) continue;
        ASSERT_EQ(parsed.index(), 0u) << seed << "\n"
                                      << text << lines_of(std::get<Problems>(parsed));
        ASSERT_EQ(std::get<QueueFile>(parsed), file) << seed << "\n" << text;
    }
}

TEST(QueueFile, MutantsNeverCrash) {
    Prng random(7);
    const std::string_view pieces = "{}[]:,-?&*!|>'\"%@`#\\\n\t 0a9.\xff\x80\0";
    int valid = 0;
    for (int i = 0; i < 3000; ++i) {
        std::string text = kWhole;
        for (std::uint64_t n = 1 + random.below(2); n > 0; --n) {
            const std::size_t at = random.below(text.size());
            switch (random.below(3)) {
                case 0: text[at] = pieces[random.below(pieces.size() + 1)]; break;
                case 1: text.insert(at, 1, pieces[random.below(pieces.size() + 1)]); break;
                default: text.erase(at, 1 + random.below(8));
            }
        }
        const auto parsed = parse_queue_file(text, "q");
        const auto* file = std::get_if<QueueFile>(&parsed);
        if (file == nullptr) {
            EXPECT_FALSE(std::get<Problems>(parsed).empty());
            continue;
        }
        ++valid;
        const auto again = parse_queue_file(to_yaml(*file), "q");
        ASSERT_EQ(again.index(), 0u) << text;
        EXPECT_EQ(std::get<QueueFile>(again), *file);
    }
    EXPECT_GT(valid, 100);
}

TEST(QueueFile, TheReferenceIsUpToDate) {
    const std::string path = std::string(MUSTER_SOURCE_DIR) + "/docs/queue-reference.md";
    if (std::getenv("UPDATE") != nullptr) std::ofstream(path) << queue_reference();
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    EXPECT_TRUE(text.str() == queue_reference())
        << path << " is not what the tables say; run this test with UPDATE=1";
    // Its example is one.
    const std::string page = text.str();
    const std::size_t start = page.find("```yaml\n") + 8;
    EXPECT_EQ(parse_queue_file(page.substr(start, page.find("```", start) - start), "q").index(),
              0u);
}

TEST(QueueFile, EveryRowOfTheTablesWorks) {
    const auto read = [](const std::string& text) {
        const auto parsed = parse_queue_file(text, "q");
        EXPECT_EQ(parsed.index(), 0u) << text << lines_of(std::get<Problems>(parsed));
    };
    for (const QueueField& field : queue_fields())
        read("queues: {a: {" + std::string(field.name) + ": " + std::string(field.value) + "}}");
    for (const QueueField& field : rule_fields())
        read("rules: {" + std::string(field.name) + ": " + std::string(field.value) + "}");
}

}  // namespace
}  // namespace muster::spec
