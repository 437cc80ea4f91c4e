#include "base/units.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace muster {
namespace {

/// The value as text, or "!" and the message.
template <class T, class Show>
std::string show(const Result<T>& result, Show value) {
    return result ? std::to_string(value(*result)) : "!" + result.error().message;
}

struct Row {
    const char* text;
    const char* expected;  // Ending in "…": a prefix.
};
void expect(const Row& row, const std::string& got) {
    std::string_view expected = row.expected;
    constexpr std::string_view kMore = "…";
    if (expected.size() >= kMore.size() &&
        expected.substr(expected.size() - kMore.size()) == kMore) {
        expected.remove_suffix(kMore.size());
        EXPECT_EQ(got.substr(0, expected.size()), expected) << row.text;
    } else {
        EXPECT_EQ(got, expected) << row.text;
    }
}

TEST(Units, DurationsF25) {
    const Row rows[] = {
        {"90m", "5400000"},
        {"2d", "172800000"},
        {"1h30m", "5400000"},
        {"45", "45000"},
        {"500ms", "500"},
        {"1-12:00:00", "129600000"},
        {"1:30:00", "5400000"},
        {"36:00:00", "129600000"},
        {"1.5h", "5400000"},
        {"0", "0"},
        {"0s", "0"},
        {"2w", "1209600000"},
        {"10 m", "600000"},
        {"1h 30 min", "5400000"},
        {"2 days", "172800000"},
        {" 5m", "! 5m: not…"},
        {"3650d", "315360000000"},
        {"3651d", "!3651d: longer than the limit of 3650d (ten years)"},
        {"9223372036854775808", "!9223372036854775808: longer…"},
        {"99999999999999999999999999999999999999999d", "!9999…"},
        {"-5m", "!-5m: a duration cannot be negative"},
        {"", "!: empty…"},
        {"m", "!m: not a duration…"},
        {"5x", "!5x: not a duration…"},
        {"5m3", "!5m3: not a duration…"},
        {"30m1h", "!30m1h: not a duration; write the larger…"},
        {"1h1h", "!1h1h: not…"},
        {"1e400", "!1e400: not…"},
        {"nan", "!nan: not…"},
        {"inf", "!inf: not…"},
        {"1:30", "!1:30: ambiguous…"},
        {"1-24:00:00", "!1-24…"},
        {"1:60:00", "!1:60:00: not a time…"},
        {"0.0001s", "!0.0001s: finer than a millisecond"},
        {"0x10", "!0x10: not…"},
        {"1_000", "!1_000: not…"},
        {"+5m", "!+5m: not…"},
        {"5m ", "!5m : ends with a space"},
        {"5.m", "!5.m: not…"},
    };
    for (const Row& row : rows)
        expect(row, show(parse_duration(row.text), [](Duration d) { return d.ms; }));
}

TEST(Units, BytesF25) {
    const Row rows[] = {
        {"64GB", "68719476736"},
        {"64GiB", "68719476736"},
        {"64g", "68719476736"},
        {"64 GB", "68719476736"},
        {"512", "512"},
        {"512B", "512"},
        {"1K", "1024"},
        {"1.5G", "1610612736"},
        {"4T", "4398046511104"},
        {"0", "0"},
        {"64.1T", "!64.1T: over the limit of 64TiB"},
        {"1P", "!1P: over the limit of 64TiB"},
        {"9223372036854775808", "!9223372036854775808: over the limit of 64TiB"},
        {"-1G", "!-1G: a size cannot be negative"},
        {"", "!: empty…"},
        {"G", "!G: not a size…"},
        {"5X", "!5X: not a size…"},
        {"5GGB", "!5GGB: not…"},
        {"1e400", "!1e400: not…"},
        {"NaN", "!NaN: not…"},
        {"0x10", "!0x10: not…"},
        {"1_000", "!1_000: not…"},
        {"64GBs", "!64GBs: not…"},
        {"1E", "!1E: not…"},
        {"5i", "!5i: not…"},
    };
    for (const Row& row : rows)
        expect(row, show(parse_bytes(row.text), [](Bytes b) { return b.value; }));
    EXPECT_EQ(parse_bytes("1P", kDiskBytesMax)->value, kDiskBytesMax);
}

TEST(Units, CpusF25) {
    const Row rows[] = {
        {"4", "4000"},
        {"0.5", "500"},
        {"250m", "250"},
        {"0", "0"},
        {"1.125", "1125"},
        {"1.1250", "1125"},
        {"0.0005", "!0.0005: finer than a thousandth of a CPU"},
        {"-1", "!-1: a number of CPUs cannot be negative"},
        {"", "!: empty…"},
        {"1073741.825", "!1073741.825: over the limit of 1073741.824 CPUs"},
        {"9223372036854775808", "!9223372036854775808: over the limit…"},
        {"4cores", "!4cores: not a number of CPUs…"},
        {"1e3", "!1e3: not…"},
        {"nan", "!nan: not…"},
        {"0.5m", "!0.5m: finer…"},
    };
    for (const Row& row : rows)
        expect(row, show(parse_cpus(row.text), [](MilliCpu c) { return c.value; }));
}

TEST(Units, Times) {
    const Row rows[] = {
        {"1970-01-01T00:00:00Z", "0"},
        {"2026-12-01T08:00:00Z", "1796112000000"},
        {"2026-12-01T08:00:00+01:00", "1796108400000"},
        {"2026-12-01 08:00Z", "1796112000000"},
        {"2026-12-01t08:00:00.25z", "1796112000250"},
        {"2026-12-01", "1796083200000"},
        {"2024-02-29", "1709164800000"},
        {"now", "1000000"},
        {"now+2h", "8200000"},
        {"2026-02-29", "!2026-02-29: not a time…"},
        {"2026-13-01", "!2026-13-01: not…"},
        {"2026-12-01T08:00:00", "!2026-12-01T08:00:00: has no time zone…"},
        {"2026-12-01T24:00:00Z", "!2026-12-01T24:00:00Z: not…"},
        {"tomorrow", "!tomorrow: not…"},
        {"1969-12-31", "!1969-12-31: not…"},
        {"1970-01-01T00:00:00+01:00", "!1970…"},
        {"now-2h", "!now-2h: not a time…"},
        {"now+", "!now+: not…"},
        {"now+9999999d", "!now+…"},
        {"2026-12-01T08:00:00Zx", "!2026-12-01T08:00:00Zx: not…"},
        {"", "!: not a time…"},
        {"2026-12-01T08:00:00.Z", "!2026-12-01T08:00:00.Z: not…"},
    };
    for (const Row& row : rows)
        expect(row, show(parse_time(row.text, Time{1'000'000}), [](Time t) { return t.ms; }));
}

TEST(Units, IntegersF25) {
    const Row rows[] = {
        {"0", "0"},
        {"-5", "-5"},
        {"100", "100"},
        {"007", "7"},
        {"101", "!101: must be a whole number in -5..100"},
        {"9223372036854775808", "!9223372036854775808: must be a whole number in -5..100"},
        {"-9223372036854775809", "!-9223372036854775809: must…"},
        {"99999999999999999999999999999999999999999999", "!9999…"},
        {"", "!: must…"},
        {"-", "!-: must…"},
        {"1x", "!1x: must…"},
        {"1.0", "!1.0: must…"},
        {"+1", "!+1: must…"},
        {" 1", "! 1: must…"},
        {"0x10", "!0x10: must…"},
        {"1e2", "!1e2: must…"},
    };
    for (const Row& row : rows)
        expect(row, show(parse_integer(row.text, -5, 100), [](std::int64_t v) { return v; }));
    EXPECT_EQ(*parse_integer("9223372036854775807", INT64_MIN, INT64_MAX), INT64_MAX);
    EXPECT_EQ(*parse_integer("-9223372036854775808", INT64_MIN, INT64_MAX), INT64_MIN);
    EXPECT_FALSE(parse_integer("9223372036854775808", INT64_MIN, INT64_MAX));
}

TEST(Units, Formats) {
    EXPECT_EQ(format_duration(Duration{172'800'000}), "2d");
    EXPECT_EQ(format_duration(Duration{5'400'000}), "1h30m");
    EXPECT_EQ(format_duration(Duration{500}), "500ms");
    EXPECT_EQ(format_duration(Duration{}), "0s");
    EXPECT_EQ(format_age(Duration{(3 * 24 + 4) * 3'600'000 + 59'000}), "3d4h");
    EXPECT_EQ(format_age(Duration{12 * 60'000}), "12m");
    EXPECT_EQ(format_age(Duration{8'900}), "8s");
    EXPECT_EQ(format_age(Duration{-8'900}), "0s");
    EXPECT_EQ(format_age(Duration{3'600'000 + 5'000}), "1h");
    EXPECT_EQ(format_bytes(Bytes{std::int64_t{64} << 30}), "64GiB");
    EXPECT_EQ(format_bytes(Bytes{std::int64_t{3} << 29}), "1.5GiB");
    EXPECT_EQ(format_bytes(Bytes{512}), "512B");
    EXPECT_EQ(format_bytes(Bytes{0}), "0B");
    EXPECT_EQ(format_bytes(Bytes{INT64_MIN}), "-8EiB");
    EXPECT_EQ(format_cpus(MilliCpu{4000}), "4");
    EXPECT_EQ(format_cpus(MilliCpu{500}), "0.5");
    EXPECT_EQ(format_cpus(MilliCpu{-1050}), "-1.05");
    EXPECT_EQ(format_time(Time{1'796'112'000'250}), "2026-12-01T08:00:00Z");
    EXPECT_EQ(format_time(Time{-1}), "1969-12-31T23:59:59Z");
}

TEST(Units, FormatsParseBackToThemselves) {
    Prng random(1);
    for (int i = 0; i < 2000; ++i) {
        const int bits = static_cast<int>(random.below(38));
        const Duration d{random.between(0, std::int64_t{1} << bits)};
        EXPECT_EQ(*parse_duration(format_duration(d)), d);
        const MilliCpu cpus{random.between(0, kMilliCpuMax)};
        EXPECT_EQ(*parse_cpus(format_cpus(cpus)), cpus);
        const Time at{random.between(0, std::int64_t{250'000'000'000}) * 1000};
        EXPECT_EQ(*parse_time(format_time(at), Time{}), at);
    }
}

}  // namespace
}  // namespace muster
