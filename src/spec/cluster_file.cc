#include "spec/cluster_file.h"

#include <algorithm>

#include "spec/parse.h"
#include "spec/place.h"
#include "spec/queue_reader.h"
#include "spec/topology_builder.h"

namespace muster::spec {
namespace {

/// The values of `topology:` by key.
struct TopologyPart {
    const Value* levels = nullptr;
    const Value* file = nullptr;
    const Value* format = nullptr;
    const Value* tree = nullptr;
};

class ClusterReader {
public:
    ClusterReader(const std::vector<Source>& sources, ClusterParts& out)
        : source_(sources[0]), reader_(sources), out_(out) {}

    void read(const Value& root) && {
        if (root.kind != Value::Kind::Map) return;  // The controller tells it.
        for (const Entry& entry : root.entries) {
            const Reader::Within within(reader_, entry.key);
            if (entry.key == "queues") {
                reader_.read_queues(entry.value);
            } else if (entry.key == "scheduling") {
                reader_.read_rules(entry.value);
                out_.rules = reader_.rules;
            } else if (entry.key == "topology") {
                read_topology_part(entry.value);
            }
        }
        reader_.check_tree();
        out_.queues = std::move(reader_.queues);
        Problems found = std::move(reader_).problems();
        out_.problems.insert(out_.problems.begin(), std::make_move_iterator(found.begin()),
                             std::make_move_iterator(found.end()));
    }

private:
    void read_topology_part(const Value& map) {
        TopologyPart part;
        for (const Entry& entry : reader_.entries(map, "{levels: [zone, leaf]}")) {
            const Value** field = entry.key == "levels"   ? &part.levels
                                  : entry.key == "file"   ? &part.file
                                  : entry.key == "format" ? &part.format
                                  : entry.key == "tree"   ? &part.tree
                                                          : nullptr;
            if (field == nullptr)
                reader_.unknown_part(entry, {"levels", "file", "format", "tree"});
            else
                *field = &entry.value;
        }
        if (map.kind != Value::Kind::Map) return;
        std::vector<std::string> levels;
        if (part.levels != nullptr && !read_levels(*part.levels, levels)) return;
        if (part.file != nullptr && part.tree != nullptr)
            return reader_.fail(*part.file, errors::kJobFieldsConflict,
                                "file and tree cannot both be given");
        if (part.format != nullptr && part.file == nullptr)
            reader_.fail(*part.format, errors::kJobFieldsConflict,
                         "format is of a file; none is given");
        if (part.file != nullptr) return read_file(part, std::move(levels));
        if (part.tree != nullptr) return read_tree(*part.tree, std::move(levels));
        if (levels.empty())
            return reader_.fail(map, errors::kJobFieldMissing,
                                "levels, file or tree is missing, as in {levels: [zone, leaf]}");
        out_.topology.emplace().levels = std::move(levels);
    }

    bool read_levels(const Value& value, std::vector<std::string>& levels) {
        const Reader::Within within(reader_, "levels");
        for (const Value& item : reader_.items(value))
            if (const auto name = reader_.scalar(item)) levels.emplace_back(*name);
        const std::string error = level_names_error(levels);
        if (!error.empty()) reader_.fail(value, error);
        return error.empty();
    }

    void read_file(const TopologyPart& part, std::vector<std::string> levels) {
        TopologyHint hint;
        hint.levels = std::move(levels);
        if (part.format != nullptr) {
            const Reader::Within within(reader_, "format");
            const auto word = reader_.scalar(*part.format);
            const auto format = word ? parse_topology_format(*word) : std::nullopt;
            if (word && !format)
                reader_.fail(*part.format,
                             shorten(*word) + ": must be auto, yaml, slurm, ib or csv");
            if (!format) return;
            hint.format = *format;
        }
        const Reader::Within within(reader_, "file");
        const auto path = reader_.scalar(*part.file);
        if (!path) return;
        hint.file = std::string(*path);
        if (path->empty() || path->front() != '/')
            return reader_.fail(*part.file, shorten(*path) + ": must be an absolute path");
        const auto text = read_text_file(hint.file, kTopologyFileMax, "a topology file");
        if (!text) return reader_.fail(*part.file, text.error());
        take(read_topology(*text, hint));
    }

    void read_tree(const Value& tree, std::vector<std::string> levels) {
        const TopologyHint hint{.file = source_.name};
        TopologyBuilder builder(source_.text, hint);
        read_topology_tree(builder, tree, std::move(levels));
        take(std::move(builder.reading));
    }

    void take(TopologyReading reading) {
        out_.topology = std::move(reading.topology);
        for (std::string& note : reading.notes) out_.notes.push_back(std::move(note));
        for (Problem& problem : reading.problems) out_.problems.push_back(std::move(problem));
    }

    const Source& source_;
    QueueReader reader_;
    ClusterParts& out_;
};

}  // namespace

ClusterParts read_cluster_parts(std::string_view yaml, const std::string& file) {
    ClusterParts out;
    const std::vector<Source> sources = {{file, false, yaml}};
    if (auto bad = check_text(sources[0], kTopologyFileMax, "a configuration")) {
        out.problems.push_back(std::move(*bad));
        return out;
    }
    const Tree tree = read_yaml(yaml, 0);
    if (const auto* error = std::get_if<SyntaxError>(&tree)) {
        out.problems.push_back(
            problem_in(sources[0], error->at, errors::kJobSyntax, error->message));
        return out;
    }
    ClusterReader(sources, out).read(std::get<Value>(tree));
    return out;
}

}  // namespace muster::spec
