// A table: a column of hosts, then one column a level from the top down.
#include <algorithm>

#include "spec/topology_builder.h"

namespace muster::spec {
namespace {

constexpr std::string_view kHostColumns[] = {"host", "hostname", "node", "name", "ip"};

std::vector<std::string> fields_of(std::string_view line) {
    std::vector<std::string> fields;
    for (const std::string_view part : split(line, ',')) fields.emplace_back(trim(part));
    return fields;
}

}  // namespace

void read_topology_csv(TopologyBuilder& out) {
    std::size_t columns = 0;
    Line line;
    for (std::size_t at = 0; next_line(out.text(), at, line);) {
        const std::string_view words = trim(line.text);
        if (words.empty() || words.front() == '#') continue;
        if (words.find('"') != words.npos) {
            out.fail(line.begin, "quotes; write plain names, which hold no comma");
            continue;
        }
        std::vector<std::string> fields = fields_of(words);
        if (columns == 0) {
            columns = fields.size();
            for (std::string& field : fields) field = lower(field);
            if (std::find(std::begin(kHostColumns), std::end(kHostColumns), fields[0]) ==
                    std::end(kHostColumns) ||
                columns < 2) {
                out.fail(line.begin,
                         "the first line must name the columns: host (or ip, node), then the "
                         "levels from the top down, as in host,zone,leaf");
                return;
            }
            fields.erase(fields.begin());
            out.use_levels(std::move(fields), line.begin);
            continue;
        }
        if (fields.size() != columns) {
            out.fail(line.begin, std::to_string(fields.size()) + " fields, not " +
                                     std::to_string(columns) + " as in the first line");
            continue;
        }
        const std::string host = fields[0];
        fields.erase(fields.begin());
        const auto bad = std::find_if(fields.begin(), fields.end(), [](const std::string& name) {
            return !name.empty() && !is_domain_name(name);
        });
        if (bad != fields.end())
            out.fail(line.begin, shorten(*bad) + ": not a domain's name; at most 128 bytes");
        else
            out.add_host(line.begin, host, std::move(fields));
    }
}

}  // namespace muster::spec
