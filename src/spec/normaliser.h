// Walks a document by the field table and fills in a JobSpec; collects what is wrong on the way.
// Internal to the room. Each read_… function takes one value and either stores it or says why not.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error_codes.h"
#include "base/text.h"
#include "base/units.h"
#include "model/job_spec.h"
#include "spec/fields.h"
#include "spec/parse.h"
#include "spec/tree.h"

namespace muster::spec {

/// What a Value's offset is in.
struct Source {
    std::string name;  // The file's, or a flag's with its dashes.
    bool is_flag = false;
    std::string_view text;
};

/// The parts of a Problem that only the reader of the value knows.
struct Detail {
    std::string value = {};
    std::string limit = {};
    std::string suggestion = {};
    int number =
        0;  // Of base/error_codes.h; 0: out of range if there is a limit, else a bad value.
};

class Normaliser {
public:
    /// `sources[0]` is the document.
    Normaliser(std::span<const Source> sources, const ParseOptions& parse_options)
        : options(parse_options), sources_(sources) {}

    /// The whole document; `root` must outlive the Normaliser.
    void read(const Value& root);
    /// The problems in the order of the document. Empty: `spec` is valid.
    Problems problems() &&;

    // --- For the readers ---------------------------------------------------------------------
    model::JobSpec spec;
    model::Role job_role;           // What the job says of every role.
    model::Role* role = &job_role;  // Whose fields are being read: these, or one role's.
    model::DeviceAsk* ask = nullptr;
    model::LogRule* rule = nullptr;
    const ParseOptions& options;
    bool in_role() const { return role != &job_role; }

    /// Adds a problem at `value`, under the name of the field being read.
    void fail(const Value& value, std::string message, Detail detail = {});
    void fail(const Value& value, const Error& error) { fail(value, error.message, Detail{}); }
    /// The same, as a problem of that number.
    void fail(const Value& value, int number, std::string message);

    /// The text of a single value; NUL is refused.
    std::optional<std::string_view> scalar(const Value& value);
    /// A text of 1..max bytes without control characters, other than line breaks if `lines`.
    std::optional<std::string> text(const Value& value, std::size_t max, bool lines = false);
    std::optional<std::int64_t> integer(const Value& value, std::int64_t low, std::int64_t high);
    std::optional<Duration> duration(const Value& value, Duration low, Duration high);
    std::optional<Bytes> bytes(const Value& value, std::int64_t max);
    std::optional<bool> flag(const Value& value);
    /// An absolute path without "..", in its shortest form.
    std::optional<std::string> path(const Value& value, std::string_view written);

    enum class Scope { All, Role };
    /// A map by a table of its keys: unknown and repeated ones are problems.
    void read_parts(const Value& map, std::span<const Field> parts, Scope scope = Scope::All);
    /// The entries of a map of free keys; repeated keys are problems. Empty if it is no map.
    std::span<const Entry> entries(const Value& map, std::string_view form);
    /// The items of a list, or the value itself as its only item. A Null has none and is a problem.
    std::span<const Value> items(const Value& value);
    /// The job's field as it was written; nullptr if it was not.
    const Value* given(std::string_view field) const;

    /// While it lives, problems are named after this key or index below the current one.
    class Within {
    public:
        Within(Normaliser& owner, std::string_view key) : owner_(owner) {
            owner_.path_.push_back({key, 0});
        }
        Within(Normaliser& owner, std::size_t index) : owner_(owner) {
            owner_.path_.push_back({{}, index + 1});
        }
        Within(const Within&) = delete;
        Within& operator=(const Within&) = delete;
        ~Within() { owner_.path_.pop_back(); }

    private:
        Normaliser& owner_;
    };

private:
    struct Segment {
        std::string_view key;
        std::size_t index = 0;  // 1-based; 0: a key.
    };
    struct Found {
        std::uint16_t source;
        std::uint32_t at;
        Problem problem;
    };
    void fail_at(std::uint16_t source, std::uint32_t at, std::string message, Detail detail);
    void fail_unknown(const Entry& entry, std::span<const Field> parts, Scope scope);
    void fail_repeated(std::span<const Entry> entries);
    void fail_whole(int number, std::string message);
    void finish();
    void finish_roles();
    void finish_launch();
    void check_elastic();
    const Value* written_nodes(std::string_view role_name) const;
    void check_topology();
    void check_times();
    void check_names();
    void check_array();
    void check_image();
    void check_name(std::string_view name, std::string_view field, std::string_view other);
    std::string dotted(std::size_t from) const;
    std::string pointer() const;

    std::span<const Source> sources_;
    const Value* root_ = nullptr;
    std::vector<Segment> path_;
    std::vector<Found> found_;
    std::size_t more_ = 0;  // Problems past kProblemsMax.
};

// The readers, by the file they stand in.
// read_text.cc
void read_name(Normaliser& n, const Value& v);
void read_queue(Normaliser& n, const Value& v);
void read_priority(Normaliser& n, const Value& v);
void read_labels(Normaliser& n, const Value& v);
void read_time(Normaliser& n, const Value& v);
void read_expected_time(Normaliser& n, const Value& v);
void read_begin(Normaliser& n, const Value& v);
void read_deadline(Normaliser& n, const Value& v);
void read_image(Normaliser& n, const Value& v);
void read_workdir(Normaliser& n, const Value& v);
void read_env(Normaliser& n, const Value& v);
void read_setup(Normaliser& n, const Value& v);
void read_run(Normaliser& n, const Value& v);
void read_mounts(Normaliser& n, const Value& v);
void read_secrets(Normaliser& n, const Value& v);
void read_exclusive(Normaliser& n, const Value& v);
void read_hold(Normaliser& n, const Value& v);
void read_preemptible(Normaliser& n, const Value& v);
void read_pty(Normaliser& n, const Value& v);
// read_resources.cc
void read_nodes(Normaliser& n, const Value& v);
void read_gpus(Normaliser& n, const Value& v);
void read_gpu_kind(Normaliser& n, const Value& v);
void read_gpu_count(Normaliser& n, const Value& v);
void read_gpu_memory(Normaliser& n, const Value& v);
void read_gpu_vendor(Normaliser& n, const Value& v);
void read_gpu_fraction(Normaliser& n, const Value& v);
void read_gpu_share(Normaliser& n, const Value& v);
void read_gpu_profile(Normaliser& n, const Value& v);
void read_kinds(Normaliser& n, const Value& v);
void read_share_unenforced(Normaliser& n, const Value& v);
void read_cpus(Normaliser& n, const Value& v);
void read_memory(Normaliser& n, const Value& v);
void read_disk(Normaliser& n, const Value& v);
void read_shm(Normaliser& n, const Value& v);
void read_roles(Normaliser& n, const Value& v);  // After every other field.
// read_constraint.cc
void read_constraint(Normaliser& n, const Value& v);
// read_topology.cc
void read_topology(Normaliser& n, const Value& v);
void read_topology_required(Normaliser& n, const Value& v);
void read_topology_preferred(Normaliser& n, const Value& v);
void read_topology_slice(Normaliser& n, const Value& v);
void read_topology_spares(Normaliser& n, const Value& v);
void read_slice_size(Normaliser& n, const Value& v);
void read_slice_required(Normaliser& n, const Value& v);
// read_rules.cc
void read_launch(Normaliser& n, const Value& v);
void read_restart(Normaliser& n, const Value& v);
void read_restart_max(Normaliser& n, const Value& v);
void read_restart_on(Normaliser& n, const Value& v);
void read_restart_backoff(Normaliser& n, const Value& v);
void read_log_rules(Normaliser& n, const Value& v);
void read_log_match(Normaliser& n, const Value& v);
void read_log_do(Normaliser& n, const Value& v);
void read_checkpoint(Normaliser& n, const Value& v);
void read_checkpoint_dir(Normaliser& n, const Value& v);
void read_checkpoint_signal(Normaliser& n, const Value& v);
void read_checkpoint_grace(Normaliser& n, const Value& v);
void read_checkpoint_interval(Normaliser& n, const Value& v);
// read_series.cc
void read_depends(Normaliser& n, const Value& v);
void read_array(Normaliser& n, const Value& v);
void read_sweep(Normaliser& n, const Value& v);
void read_parallel(Normaliser& n, const Value& v);

/// "train" of "python3 train.py --lr 3e-4"; "job" if the command names nothing.
std::string name_of_command(std::string_view run);
bool is_variable_name(std::string_view name);
/// Why `pattern` is not an ECMAScript regular expression of a bearable size; "" if it is one.
std::string pattern_error(const std::string& pattern);
/// At most 60 bytes of it, cut between characters.
std::string shorten(std::string_view text);

}  // namespace muster::spec
