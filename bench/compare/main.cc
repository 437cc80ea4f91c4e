// compare_bench: Muster's simulator and policies beside published results, from public traces.
// JSON lines on standard output: a figure each; with --sections what the comparisons are.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/json_writer.h"
#include "compare.h"

namespace muster::compare {

double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
    if (values.size() < 2) return 0;
    const double middle = mean(values);
    double sum = 0;
    for (const double value : values) sum += (value - middle) * (value - middle);
    return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

void run_jobs(int count, int parallel, const std::function<void(int)>& job) {
    std::atomic<int> next = 0;
    const auto work = [&] {
        for (int i = next++; i < count; i = next++) job(i);
    };
    std::vector<std::jthread> others;
    for (int i = 1; i < std::min(count, parallel); ++i) others.emplace_back(work);
    work();
}

namespace {

std::string short_number(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}

}  // namespace

Figure within(Figure figure, double most, const std::string& unit) {
    figure.bound = "within " + short_number(most) + " " + unit + " of published";
    if (figure.published) figure.inside = std::abs(figure.value - *figure.published) <= most;
    return figure;
}

Figure within_share(Figure figure, double share) {
    figure.bound = "within " + short_number(share * 100) + " % of published";
    if (figure.published) figure.inside = std::abs(figure.value / *figure.published - 1) <= share;
    return figure;
}

namespace {

constexpr const char* kUsage =
    "usage: compare_bench --traces DIR [--quick] [--only NAME] [--list NAME] [--seeds N] "
    "[--parallel N]\n       compare_bench --sections\n";

void print(const std::string& name, const Figure& figure) {
    JsonWriter out;
    out.begin_object();
    out.field("bench", "compare").field("section", name).field("what", figure.key);
    out.field("value", figure.value).field("unit", figure.unit);
    if (figure.sd) out.field("sd", *figure.sd);
    if (figure.seeds > 0) out.field("seeds", figure.seeds);
    if (figure.published) {
        out.field("published", *figure.published);
        out.field("difference", figure.value - *figure.published);
    }
    if (!figure.bound.empty()) out.field("bound", figure.bound);
    if (figure.inside) out.field("inside", *figure.inside);
    if (!figure.note.empty()) out.field("note", figure.note);
    out.end_object();
    std::puts(out.text().c_str());
    std::fflush(stdout);
}

bool number(const char* text, int& out) {
    const char* end = text + std::strlen(text);
    const auto [at, fault] = std::from_chars(text, end, out);
    return fault == std::errc{} && at == end && out > 0;
}

int run(int argc, char** argv) {
    Options options;
    std::string only;
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
        bool ok = true;
        if (flag == "--quick") {
            options.quick = true;
            continue;
        }
        if (flag == "--sections") {
            for (const Comparison& comparison : comparisons()) {
                JsonWriter out;
                out.begin_object();
                out.field("section", comparison.name).field("title", comparison.title);
                out.field("about", comparison.about).end_object();
                std::puts(out.text().c_str());
            }
            return 0;
        }
        if (value == nullptr)
            ok = false;
        else if (flag == "--traces")
            options.traces = value;
        else if (flag == "--only")
            only = value;
        else if (flag == "--list")
            options.list = value;
        else if (flag == "--seeds")
            ok = number(value, options.seeds);
        else if (flag == "--parallel")
            ok = number(value, options.parallel);
        else
            ok = false;
        if (!ok) {
            std::fprintf(stderr, "error: %s is no flag, or has no fitting value\n%s", flag.c_str(),
                         kUsage);
            return 2;
        }
        ++i;
    }
    if (options.traces.empty()) {
        std::fputs(kUsage, stderr);
        return 2;
    }
    int failed = 0, ran = 0;
    for (const Comparison& comparison : comparisons()) {
        if (!only.empty() && comparison.name != only) continue;
        ++ran;
        const auto report = [&](const Figure& figure) { print(comparison.name, figure); };
        const Status done = comparison.run(options, report);
        if (done) continue;
        ++failed;
        std::fprintf(stderr, "error: %s: %s\n  fix: %s\n", comparison.name.c_str(),
                     done.error().message.c_str(), done.error().fix.c_str());
    }
    if (ran == 0) {
        std::fprintf(stderr, "error: no comparison is called '%s'; there are:", only.c_str());
        for (const Comparison& comparison : comparisons())
            std::fprintf(stderr, " %s", comparison.name.c_str());
        std::fputs("\n", stderr);
        return 2;
    }
    return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::compare

int main(int argc, char** argv) {
    return muster::compare::run(argc, argv);
}
