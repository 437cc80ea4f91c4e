#include "log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace muster::apps {
namespace {

spdlog::logger& logger() {
    static const auto kLogger = [] {
        auto made = spdlog::stderr_color_mt("muster");
        made->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
        made->flush_on(spdlog::level::info);
        return made;
    }();
    return *kLogger;
}

}  // namespace

void log_line(const std::string& line) {
    logger().info("{}", line);
}
void log_error(const std::string& line) {
    logger().error("{}", line);
}

}  // namespace muster::apps
