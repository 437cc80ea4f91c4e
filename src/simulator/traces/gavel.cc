#include "simulator/traces/gavel.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

namespace muster::simulator::traces {
namespace {

/// "('LM (batch size 5)', 2)".
std::optional<std::pair<std::string, int>> type_of(std::string_view key) {
    constexpr std::string_view kBegin = "('", kMiddle = "', ";
    const std::size_t middle = key.rfind(kMiddle);
    if (!key.starts_with(kBegin) || !key.ends_with(')') || middle == std::string_view::npos ||
        middle < kBegin.size())
        return std::nullopt;
    const std::string_view count =
        key.substr(middle + kMiddle.size(), key.size() - middle - kMiddle.size() - 1);
    int devices = 0;
    const auto read = std::from_chars(count.data(), count.data() + count.size(), devices);
    if (read.ptr != count.data() + count.size() || devices <= 0) return std::nullopt;
    return std::pair{std::string(key.substr(kBegin.size(), middle - kBegin.size())), devices};
}

}  // namespace

Result<models::Throughputs> read_throughputs_text(const std::string& name,
                                                  const std::string& text) {
    rapidjson::Document document;
    document.Parse(text.data(), text.size());
    const auto fault = [&](const std::string& what) {
        return Error{Code::Invalid, name + ": " + what};
    };
    if (document.HasParseError())
        return fault(std::string("not JSON at byte ") + std::to_string(document.GetErrorOffset()) +
                     ": " + rapidjson::GetParseError_En(document.GetParseError()));
    if (!document.IsObject()) return fault("not an object of kinds");
    models::Throughputs table;
    for (const auto& kind : document.GetObject()) {
        const std::string kind_name = kind.name.GetString();
        if (kind_name.ends_with("_unconsolidated")) continue;
        if (!kind.value.IsObject()) return fault("'" + kind_name + "' is not an object of types");
        for (const auto& entry : kind.value.GetObject()) {
            const std::string where = "'" + kind_name + "', \"" + entry.name.GetString() + "\"";
            const auto type = type_of(entry.name.GetString());
            if (!type) return fault(where + " is not of the form \"('type', devices)\"");
            const bool object = entry.value.IsObject();
            const auto alone =
                object ? entry.value.FindMember("null") : decltype(entry.value.MemberBegin()){};
            if (!object || alone == entry.value.MemberEnd() || !alone->value.IsNumber() ||
                alone->value.GetDouble() < 0)
                return fault(where + " has no \"null\" with its steps a second alone");
            table.set(kind_name, type->first, type->second, alone->value.GetDouble());
        }
    }
    return table;
}

Result<models::Throughputs> read_throughputs(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return Error{Code::NotFound, path + " cannot be read"};
    return read_throughputs_text(path, {std::istreambuf_iterator<char>(file), {}});
}

std::vector<double> GavelStream::arrivals(double jobs_per_hour) const {
    std::vector<double> times;
    double at = 0;
    for (const GavelJob& job : jobs) {
        if (!times.empty()) at += job.gap * 3600 / jobs_per_hour;
        times.push_back(at);
    }
    return times;
}

Result<GavelStream> read_gavel_stream(const std::string& path, const CsvOptions& options) {
    MUSTER_LET(csv, CsvFile::open(path, options));
    MUSTER_LET(type, csv.column("job_type"));
    MUSTER_LET(devices, csv.column("scale_factor"));
    MUSTER_LET(steps, csv.column("total_steps"));
    MUSTER_LET(gap, csv.column("unit_exp_interarrival"));
    GavelStream stream;
    double since = 0;  // A row's draw is the time to the next one, good or bad.
    MUSTER_TRY(csv.each([&](CsvRow& row) {
        GavelJob job{.type = std::string(row.text(type)),
                     .devices = static_cast<int>(row.integer(devices, 1, 1024)),
                     .steps = row.decimal(steps),
                     .gap = since};
        const double to_next = row.decimal(gap);
        if (row.ok()) {
            stream.jobs.push_back(std::move(job));
            since = 0;
        }
        since += to_next;
    }));
    stream.bad = csv.bad();
    return stream;
}

}  // namespace muster::simulator::traces
