#include "model/job_spec.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace muster::model {
namespace {

std::string any_text(Prng& random) {
    std::string out;
    for (std::uint64_t n = random.below(6); n > 0; --n)
        out.push_back(static_cast<char>(random.below(256)));
    return out;
}
std::int64_t any_number(Prng& random) {
    const std::int64_t magnitude = random.between(0, INT64_MAX >> random.below(63));
    return random.chance(200) ? -magnitude : magnitude;
}
template <class T, class Make>
void fill(Prng& random, std::vector<T>& list, Make make) {
    for (std::uint64_t n = random.below(4); n > 0; --n) list.push_back(make());
}

/// Each field is at its default or anything at all: the form does not depend on validity.
JobSpec any_spec(Prng& random) {
    JobSpec s;
    const auto text = [&] { return any_text(random); };
    const auto maybe = [&](auto& field, auto make) {
        if (random.chance(400)) field = make();
    };
    const auto number = [&] { return any_number(random); };
    maybe(s.name, text), maybe(s.queue, text), maybe(s.priority, number);
    fill(random, s.labels, [&] { return std::pair(text(), text()); });
    fill(random, s.roles, [&] {
        Role role;
        maybe(role.name, text), maybe(role.nodes, number);
        role.nodes_max = role.nodes;
        maybe(role.nodes_max, number);
        fill(random, role.devices, [&] {
            DeviceAsk ask{
                .kind = text(), .count = number(), .memory_min = {number()}, .vendor = text()};
            maybe(ask.fraction, number), maybe(ask.share_memory.value, number);
            maybe(ask.profile, text);
            return ask;
        });
        maybe(role.cpus.value, number), maybe(role.memory.value, number);
        maybe(role.disk.value, number), maybe(role.shm.value, number), maybe(role.run, text);
        fill(random, role.env, [&] { return EnvVar{text(), text()}; });
        return role;
    });
    maybe(s.time.ms, number), maybe(s.expected_time.ms, number), maybe(s.begin.ms, number);
    maybe(s.deadline.ms, number), maybe(s.image, text), maybe(s.workdir, text);
    fill(random, s.env, [&] { return EnvVar{text(), text()}; });
    maybe(s.setup, text);
    fill(random, s.mounts, [&] { return Mount{text(), text(), random.chance(500)}; });
    fill(random, s.secrets, [&] { return Secret{text(), text()}; });
    s.launch = static_cast<Launch>(random.below(4));
    maybe(s.restart.max, number), maybe(s.restart.backoff.ms, number);
    s.restart.on_any = random.chance(500), s.restart.on_oom = random.chance(500);
    fill(random, s.restart.exit_codes, [&] { return static_cast<int>(random.below(256)); });
    fill(random, s.log_rules, [&] {
        return LogRule{text(), static_cast<LogRule::Action>(random.below(3))};
    });
    maybe(s.checkpoint.dir, text), maybe(s.checkpoint.signal, text);
    maybe(s.checkpoint.grace.ms, number), maybe(s.checkpoint.interval.ms, number);
    fill(random, s.depends, [&] {
        return Dependency{static_cast<Dependency::When>(random.below(3)), JobId{random.next()}};
    });
    maybe(s.array.count, number), maybe(s.array.first, number), maybe(s.array.step, number);
    maybe(s.array.parallel, number);
    fill(random, s.array.sweep, [&] { return SweepAxis{text(), {text(), text()}}; });
    s.exclusive = random.chance(500), s.hold = random.chance(500), s.pty = random.chance(500);
    s.mixed_kinds = random.chance(500), s.preemptible = random.chance(500);
    s.share_unenforced = random.chance(500);
    maybe(s.topology.required, text), maybe(s.topology.preferred, text);
    maybe(s.topology.slice, number), maybe(s.topology.slice_required, text);
    maybe(s.topology.spares, number);
    fill(random, s.constraint, [&] {
        return ConstraintTerm{text(), static_cast<ConstraintTerm::Op>(random.below(4)), {text()}};
    });
    return s;
}

TEST(JobSpec, DecodesWhatItEncodes) {
    Prng random(7);
    for (int i = 0; i < 3000; ++i) {
        const JobSpec spec = any_spec(random);
        const auto back = decode_job_spec(encode(spec));
        ASSERT_TRUE(back) << "case " << i;
        ASSERT_TRUE(*back == spec) << "case " << i;
    }
}

JobSpec two_lines() {
    JobSpec spec;
    spec.name = "train";
    Role& role = spec.roles.emplace_back();
    role.devices.emplace_back();
    role.run = "python train.py --lr 3e-4";
    return spec;
}

TEST(JobSpec, TwoLinesTakeLessThan100Bytes) {
    EXPECT_LT(encode(two_lines()).size(), 60u);
}

// Records of this version are read for ever: these bytes must not change their meaning.
TEST(JobSpec, FormOfVersion1IsFixed) {
    JobSpec spec = two_lines();
    spec.roles[0].nodes = spec.roles[0].nodes_max = 3;
    spec.hold = true;
    const std::string bytes(
        "\x01\x01\x05train\x05\x01\x02\x06\x04\x01\x00\x02\x00\x00\x09\x19python train.py --lr 3e-4"
        "\x00\x1c\x02",
        48);
    EXPECT_EQ(encode(spec), bytes);
    ASSERT_TRUE(decode_job_spec(bytes));
    EXPECT_TRUE(*decode_job_spec(bytes) == spec);
}

TEST(JobSpec, RefusesWhatIsNotASpec) {
    Prng random(9);
    EXPECT_FALSE(decode_job_spec(""));
    EXPECT_FALSE(decode_job_spec("\x02"));                    // A later version.
    EXPECT_FALSE(decode_job_spec("\x01\x7f"));                // An unknown tag.
    EXPECT_FALSE(decode_job_spec("\x01\x02\x01q\x01\x01n"));  // Tags out of order.
    EXPECT_FALSE(decode_job_spec("\x01\x10\x04"));            // No such launch.
    const std::string bytes = encode(any_spec(random));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        // Cut anywhere, it is refused or is a shorter spec in its own right; never more than that.
        const auto cut = decode_job_spec(std::string_view(bytes).substr(0, size));
        if (cut) {
            EXPECT_EQ(encode(*cut), bytes.substr(0, size));
        }
    }
    for (int i = 0; i < 20'000; ++i) {
        std::string mutated = bytes;
        for (std::uint64_t n = 1 + random.below(4); n > 0; --n)
            mutated[random.below(mutated.size())] = static_cast<char>(random.below(256));
        if (const auto spec = decode_job_spec(mutated)) {
            EXPECT_TRUE(decode_job_spec(encode(*spec)));
        }
    }
}

TEST(JobSpec, LastAxisOfASweepVariesFastest) {
    Array array;
    array.sweep = {{"lr", {"1e-4", "3e-4", "1e-3"}}, {"seed", {"0", "1"}}};
    array.count = 6;
    std::string all;
    for (std::int64_t i = 0; i < array.count; ++i)
        for (const EnvVar& var : sweep_values(array, i)) all += var.name + "=" + var.value + " ";
    EXPECT_EQ(all,
              "lr=1e-4 seed=0 lr=1e-4 seed=1 lr=3e-4 seed=0 lr=3e-4 seed=1 lr=1e-3 seed=0 "
              "lr=1e-3 seed=1 ");
    EXPECT_TRUE(sweep_values(
                    [] {
                        Array a;
                        a.count = 5;
                        return a;
                    }(),
                    3)
                    .empty());
    EXPECT_EQ(sweep_values(array, -1)[0].value, "");
}

}  // namespace
}  // namespace muster::model
