// Container images on this node: fetched once, kept by the digest of their content, shared by all.
//
// A name is a registry's ("docker.io/library/debian:12"), an OCI layout ("oci:/path[:tag]" or a
// folder with an index.json), or a tarball ("docker-archive:/x.tar", "oci-archive:/x.tar", or
// /x.tar).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "os/event_loop.h"

namespace muster::os {

struct Image {
    std::string digest;            // "sha256:…"
    std::string rootfs;            // Read-only for us: a task puts a layer of its own on it.
    std::vector<std::string> env;  // Of the image's configuration.
    std::string workdir;
};

/// What a tool's last words on an image mean: NotFound (the registry knows no such image, or not
/// for us: asking again is in vain), NoSpace (this node's fault), Unavailable (may pass).
Code image_failure(std::string_view words);
/// The name as skopeo takes it.
std::string image_source(const std::string& name);

class Images {
public:
    struct Options {
        std::string dir;
        Duration timeout;
        std::vector<std::string> insecure_registries;
    };
    /// Fetches run on threads of their own. Callbacks come on the loop's thread.
    Images(EventLoop& loop, Options options);
    ~Images();  // Gives up what is being fetched.

    struct Callbacks {
        std::function<void(std::int64_t done, std::int64_t total)> on_progress;
        std::function<void(Result<Image>)> on_end;  // Once, unless forgotten.
    };
    using Ask = std::uint64_t;
    /// Equal names that are asked for at the same time are fetched once.
    Ask fetch(const std::string& name, Callbacks callbacks);
    /// No callback comes any more. The fetch goes on if somebody else waits for it.
    void forget(Ask ask);

private:
    struct Fetch;
    void run(const std::shared_ptr<Fetch>& fetch);
    void tell_end(const std::string& name, Result<Image> result);

    EventLoop& loop_;
    Options options_;
    std::unique_ptr<WorkerPool> pool_;
    std::map<std::string, std::shared_ptr<Fetch>> fetches_;
    Ask last_ask_ = 0;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::os
