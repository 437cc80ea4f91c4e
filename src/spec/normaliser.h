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
#include "spec/reader.h"
#include "spec/tree.h"

namespace muster::spec {

class Normaliser : public Reader {
public:
    /// `sources[0]` is the document.
    Normaliser(std::span<const Source> sources, const ParseOptions& parse_options)
        : Reader(sources), options(parse_options) {}

    /// The whole document; `root` must outlive the Normaliser. No problems: `spec` is valid.
    void read(const Value& root);

    // --- For the readers ---------------------------------------------------------------------
    model::JobSpec spec;
    model::Role job_role;           // What the job says of every role.
    model::Role* role = &job_role;  // Whose fields are being read: these, or one role's.
    model::DeviceAsk* ask = nullptr;
    model::LogRule* rule = nullptr;
    const ParseOptions& options;
    bool in_role() const { return role != &job_role; }

    /// An absolute path without "..", in its shortest form.
    std::optional<std::string> path(const Value& value, std::string_view written);

    enum class Scope { All, Role };
    /// A map by a table of its keys: unknown and repeated ones are problems.
    void read_parts(const Value& map, std::span<const Field> parts, Scope scope = Scope::All);
    /// The job's field as it was written; nullptr if it was not.
    const Value* given(std::string_view field) const;

private:
    void fail_unknown(const Entry& entry, std::span<const Field> parts, Scope scope);
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

    const Value* root_ = nullptr;
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

}  // namespace muster::spec
