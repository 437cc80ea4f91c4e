// Names for `top -H`, perf and core dumps.
#pragma once

#include <pthread.h>

namespace muster {

/// Of the calling thread; at most 15 letters.
inline void name_thread(const char* name) {
    (void)::pthread_setname_np(::pthread_self(), name);
}

}  // namespace muster
