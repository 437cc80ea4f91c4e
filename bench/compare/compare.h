// The comparisons with published results: each is a function of the traces' folder that reports
// figures. A new one: a file beside this one, a declaration below, a row in table.cc.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::compare {

struct Options {
    std::string traces;  // The folder with openb/, muri/, …
    bool quick = false;  // A few minutes' worth: the smallest trace of each kind.
    int seeds = 10;
    int parallel = 1;
    std::string list;  // Only this list or trace of the comparison; empty: all.
};

/// One figure and what it is to be held against.
struct Figure {
    std::string key;  // fgd_default_bestfit.
    double value = 0;
    std::string unit;
    std::optional<double> published = {};  // What the others printed, or the formula's value.
    std::optional<double> sd = {};         // Over seeds.
    int seeds = 0;
    std::optional<bool> inside = {};  // Its bound; none: it has none.
    std::string bound = {};           // In words: "within 0.5 points".
    std::string note = {};
};
/// Within `most` of what was published.
Figure within(Figure figure, double most, const std::string& unit);
/// Within that share of it: 0.03 is 3 %.
Figure within_share(Figure figure, double share);

using Report = std::function<void(const Figure&)>;
struct Comparison {
    std::string name;   // As --only has it; the file's name.
    std::string title;  // Of its section in docs/results.md.
    std::string about;  // Markdown: trace, size, what is missing, tie rules, quirks.
    Status (*run)(const Options&, const Report&);
};
std::vector<Comparison> comparisons();

/// Runs job(0) … job(count - 1), `parallel` at a time, and gives back what they answered, in order.
template <class T>
std::vector<T> in_parallel(int count, int parallel, const std::function<T(int)>& job);

double mean(const std::vector<double>& values);
/// Of a sample; 0 if there is one alone.
double deviation(const std::vector<double>& values);

void run_jobs(int count, int parallel, const std::function<void(int)>& job);
template <class T>
std::vector<T> in_parallel(int count, int parallel, const std::function<T(int)>& job) {
    std::vector<T> out(static_cast<std::size_t>(count));
    run_jobs(count, parallel, [&](int i) { out[static_cast<std::size_t>(i)] = job(i); });
    return out;
}

// ---- the comparisons, one file each
// --------------------------------------------------------------

Status fgd(const Options& options, const Report& report);
Status muri(const Options& options, const Report& report);
Status testbed(const Options& options, const Report& report);
Status muri_muster(const Options& options, const Report& report);
Status philly(const Options& options, const Report& report);
Status ettr(const Options& options, const Report& report);
Status zeus(const Options& options, const Report& report);
Status pollux(const Options& options, const Report& report);
Status gavel(const Options& options, const Report& report);

}  // namespace muster::compare
