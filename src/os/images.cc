#include "os/images.h"

#include <algorithm>
#include <atomic>

#include <fcntl.h>
#include <rapidjson/document.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "os/posix.h"
#include "os/task_files.h"

namespace muster::os {
namespace {

constexpr int kFetchesAtOnce = 3;
constexpr int kInspectTimeoutMs = 60'000;

bool is_file(const std::string& path) {
    struct stat about {};
    return ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
}

/// What a tool said last, without its time stamps and levels.
std::string last_words(const std::string& out) {
    std::string_view text = trim(out);
    text = text.substr(text.rfind('\n') + 1);
    if (const std::size_t at = text.find("msg=\""); at != std::string_view::npos) {
        text.remove_prefix(at + 5);
        if (!text.empty() && text.back() == '"') text.remove_suffix(1);
    }
    // The name is told already.
    if (text.starts_with("Error parsing image name "))
        text.remove_prefix(std::min(text.size(), text.find("\": ") + 3));
    std::string words;
    for (std::size_t i = 0; i < text.size() && words.size() < 400; ++i) {
        if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '"') continue;
        words += text[i];
    }
    return words;
}

std::int64_t bytes_below(const std::string& folder) {
    std::int64_t sum = 0;
    for (const std::string& name : list_folder(folder)) {
        struct stat about {};
        if (::lstat((folder + "/" + name).c_str(), &about) == 0) sum += about.st_size;
    }
    return sum;
}

struct Inspected {
    std::string digest;
    std::int64_t bytes = 0;
};

Result<Inspected> read_inspection(const std::string& json) {
    rapidjson::Document document;
    // Warnings may stand before it.
    document.Parse(json.c_str() + std::min(json.find('{'), json.size()));
    if (document.HasParseError() || !document.IsObject() || !document.HasMember("Digest") ||
        !document["Digest"].IsString())
        return Error{.message = "skopeo's description of the image cannot be read"};
    Inspected found{.digest = document["Digest"].GetString()};
    if (document.HasMember("LayersData") && document["LayersData"].IsArray())
        for (const auto& layer : document["LayersData"].GetArray())
            if (layer.IsObject() && layer.HasMember("Size") && layer["Size"].IsInt64())
                found.bytes += layer["Size"].GetInt64();
    const std::string_view digest = found.digest;
    const bool good = digest.size() > 7 && digest.size() < 200 &&
                      std::all_of(digest.begin(), digest.end(), [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == ':';
                      });
    if (!good) return Error{.message = "the image has no usable digest: " + found.digest};
    return found;
}

/// Environment and directory from the runtime configuration that umoci derives from the image's.
Result<Image> read_unpacked(const std::string& folder, const std::string& digest) {
    MUSTER_LET(json, read_file(folder + "/config.json"));
    rapidjson::Document document;
    document.Parse(json.c_str());
    if (document.HasParseError() || !document.IsObject() || !document.HasMember("process"))
        return Error{.code = Code::Corrupt, .message = folder + "/config.json cannot be read"};
    Image image{.digest = digest, .rootfs = folder + "/rootfs"};
    const auto& process = document["process"];
    if (process.HasMember("env") && process["env"].IsArray())
        for (const auto& variable : process["env"].GetArray())
            if (variable.IsString()) image.env.emplace_back(variable.GetString());
    if (process.HasMember("cwd") && process["cwd"].IsString())
        image.workdir = process["cwd"].GetString();
    return image;
}

/// "127.0.0.1:5055/test/bb:1" → "127.0.0.1:5055"; only registries have one.
std::string registry_of(const std::string& source) {
    constexpr std::string_view kPrefix = "docker://";
    if (!source.starts_with(kPrefix)) return {};
    return source.substr(kPrefix.size(), source.find('/', kPrefix.size()) - kPrefix.size());
}

}  // namespace

Code image_failure(std::string_view words) {
    const std::string said = lower(words);
    const auto any_of = [&](std::initializer_list<std::string_view> signs) {
        return std::any_of(signs.begin(), signs.end(),
                           [&](std::string_view sign) { return said.find(sign) != said.npos; });
    };
    if (any_of({"no space left on device", "disk quota exceeded"})) return Code::NoSpace;
    if (any_of({"toomanyrequests", "too many requests", "timeout", "timed out", "status: 5",
                "connection refused", "connection reset"}))
        return Code::Unavailable;
    if (any_of({"manifest unknown", "name unknown", "unauthorized", "authentication required",
                "access to the resource is denied", "denied: ", "status: 404", "status: 403",
                "status: 401", "invalid reference format", "no image found in manifest list",
                "no image found in image index", "unsupported manifest"}))
        return Code::NotFound;
    return Code::Unavailable;
}

std::string image_source(const std::string& name) {
    for (const char* transport : {"docker://", "oci:", "docker-archive:", "oci-archive:", "dir:"})
        if (name.starts_with(transport)) return name;
    if (name.starts_with("/") && is_file(name)) {
        // An OCI archive names its version in a file of its own.
        const Ran listed =
            run_program({.argv = {"tar", "-tf", name}, .timeout_ms = kInspectTimeoutMs});
        const bool oci = listed.out.find("oci-layout") != std::string::npos;
        return (oci ? "oci-archive:" : "docker-archive:") + name;
    }
    if (name.starts_with("/")) return "oci:" + name;
    return "docker://" + name;
}

struct Images::Fetch {
    std::string name;
    std::map<Ask, Callbacks> waiting;  // Loop's thread.
    std::atomic<bool> wanted = true;
    std::atomic<std::int64_t> done = 0, total = 0;
};

Images::Images(EventLoop& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      pool_(std::make_unique<WorkerPool>(kFetchesAtOnce)) {}

Images::~Images() {
    *alive_ = false;
    for (const auto& [name, fetch] : fetches_) fetch->wanted = false;
    pool_.reset();
}

Images::Ask Images::fetch(const std::string& name, Callbacks callbacks) {
    const Ask ask = ++last_ask_;
    if (const auto found = fetches_.find(name); found != fetches_.end() && found->second->wanted) {
        found->second->waiting.emplace(ask, std::move(callbacks));
        return ask;
    }
    auto fetch = std::make_shared<Fetch>();
    fetch->name = name;
    fetch->waiting.emplace(ask, std::move(callbacks));
    fetches_.insert_or_assign(name, fetch);
    pool_->post([this, fetch] { run(fetch); });
    return ask;
}

void Images::forget(Ask ask) {
    for (const auto& [name, fetch] : fetches_)
        if (fetch->waiting.erase(ask) > 0 && fetch->waiting.empty()) fetch->wanted = false;
}

void Images::tell_end(const std::string& name, Result<Image> result) {
    const auto found = fetches_.find(name);
    if (found == fetches_.end()) return;
    const std::shared_ptr<Fetch> fetch = found->second;
    fetches_.erase(found);
    for (auto& [ask, callbacks] : std::exchange(fetch->waiting, {})) callbacks.on_end(result);
}

namespace {

class Fetcher {
public:
    Fetcher(const Images::Options& options, std::string name,
            std::function<bool(std::int64_t, std::int64_t)> on_tick)
        : options_(options), name_(std::move(name)), on_tick_(std::move(on_tick)) {}

    Result<Image> fetch() {
        MUSTER_TRY(make_folders(options_.dir, 0711));
        source_ = image_source(name_);
        const std::string registry = registry_of(source_);
        insecure_ =
            std::find(options_.insecure_registries.begin(), options_.insecure_registries.end(),
                      registry) != options_.insecure_registries.end();
        auto inspected = inspect();
        if (!inspected) {
            // A registry that is away is no reason to stop when what it named last is here.
            const auto known = read_file(known_name());
            if (stopped_ || registry.empty() || !known || !is_file(folder_of(*known) + "/complete"))
                return std::move(inspected).error();
            return read_unpacked(folder_of(*known), *known);
        }
        const std::string folder = folder_of(inspected->digest);
        if (!is_file(folder + "/complete")) MUSTER_TRY(unpack(*inspected, folder));
        (void)write_small_file(AT_FDCWD, known_name().c_str(), inspected->digest, false);
        return read_unpacked(folder, inspected->digest);
    }

private:
    std::string folder_of(std::string digest) const {
        std::replace(digest.begin(), digest.end(), ':', '-');
        return options_.dir + "/" + digest;
    }
    /// Where the digest that this name last meant is written down.
    std::string known_name() const {
        Fnv name;
        name.add(source_);
        return options_.dir + "/name-" + std::to_string(name.hash());
    }

    Error failed(const std::string& what, const Ran& ran) const {
        if (stopped_)
            return {.code = Code::Gone,
                    .message = "nobody waits for the image " + name_ + " any more"};
        const std::string words = last_words(ran.out);
        // A path may be there on another node.
        const bool local = registry_of(source_).empty();
        const Code code = image_failure(words);
        return {
            .code = local && code == Code::NotFound ? Code::Unavailable : code,
            .message = "image " + name_ + ": " + what + ": " + words,
            .fix =
                "check the name, the registry and, for private ones, the credentials on the node"};
    }

    Ran run(std::vector<std::string> argv, std::int64_t timeout_ms, const std::string& watched,
            std::int64_t total) {
        return run_program(
            {.argv = std::move(argv), .timeout_ms = timeout_ms, .on_tick = [this, watched, total] {
                 stopped_ = !on_tick_(watched.empty() ? 0 : bytes_below(watched), total);
                 return !stopped_;
             }});
    }

    Result<Inspected> inspect() {
        std::vector<std::string> argv = {"skopeo", "inspect"};
        if (insecure_) argv.emplace_back("--tls-verify=false");
        argv.push_back(source_);
        const Ran ran = run(std::move(argv),
                            std::min<std::int64_t>(options_.timeout.ms, kInspectTimeoutMs), "", 0);
        if (ran.exit_code != 0) return failed("cannot be found", ran);
        return read_inspection(ran.out);
    }

    Status unpack(const Inspected& inspected, const std::string& folder) {
        std::string work = options_.dir + "/.fetch-XXXXXX";
        if (::mkdtemp(work.data()) == nullptr) return system_error("make folder", work);
        const Status status = unpack_in(work, inspected, folder);
        (void)remove_tree(AT_FDCWD, work.c_str());
        return status;
    }

    Status unpack_in(const std::string& work, const Inspected& inspected,
                     const std::string& folder) {
        std::vector<std::string> copy = {"skopeo", "copy", "--quiet"};
        if (insecure_) copy.emplace_back("--src-tls-verify=false");
        copy.push_back(source_);
        copy.push_back("oci:" + work + "/oci:image");
        const Ran copied =
            run(std::move(copy), options_.timeout.ms, work + "/oci/blobs/sha256", inspected.bytes);
        if (copied.exit_code != 0) return failed("cannot be fetched", copied);
        const Ran unpacked =
            run({"umoci", "unpack", "--image", work + "/oci:image", work + "/bundle"},
                options_.timeout.ms, work + "/oci/blobs/sha256", inspected.bytes);
        if (unpacked.exit_code != 0) return failed("cannot be unpacked", unpacked);
        const Fd bundle(::open((work + "/bundle").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!bundle) return system_error("open", work + "/bundle");
        // Whole on disk before it is believed after a power cut.
        ::syncfs(bundle.get());
        if (const int error = write_small_file(bundle.get(), "complete", inspected.digest, true);
            error != 0)
            return system_error("write", work + "/bundle/complete", error);
        ::chmod((work + "/bundle").c_str(), 0711);
        if (::rename((work + "/bundle").c_str(), folder.c_str()) != 0 &&
            !is_file(folder + "/complete"))
            return system_error("keep image in", folder);
        return Ok{};
    }

    const Images::Options& options_;
    std::string name_, source_;
    bool insecure_ = false, stopped_ = false;
    std::function<bool(std::int64_t, std::int64_t)> on_tick_;
};

}  // namespace

void Images::run(const std::shared_ptr<Fetch>& fetch) {
    const auto on_tick = [this, fetch](std::int64_t done, std::int64_t total) {
        if (done != fetch->done || total != fetch->total) {
            fetch->done = done;
            fetch->total = total;
            loop_.post([fetch, done, total] {
                for (const auto& [ask, callbacks] : fetch->waiting)
                    callbacks.on_progress(done, total);
            });
        }
        return fetch->wanted.load();
    };
    auto result = std::make_shared<Result<Image>>(Fetcher(options_, fetch->name, on_tick).fetch());
    loop_.post([this, fetch, result, alive = alive_] {
        if (!*alive) return;
        const auto found = fetches_.find(fetch->name);
        // Given up and asked for anew meanwhile: another fetch answers.
        if (found != fetches_.end() && found->second == fetch)
            tell_end(fetch->name, std::move(*result));
    });
}

}  // namespace muster::os
