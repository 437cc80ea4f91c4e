/* What a C or C++ training program tells Muster, and hears from it. Header only, C99 and POSIX;
 * link with -pthread. Outside Muster (no MUSTER_SOCKET) every call is a no-op. No call fails
 * because Muster is away, and none waits for it more than 50 ms; syncing a checkpoint takes as long
 * as the disk takes. Thread-safe, not for signal handlers; a forked child connects anew. Each
 * source file that includes this has its own connection: include it in one. The protocol is
 * api/task-protocol.md. Where the compiler is told -std=c99, define _POSIX_C_SOURCE 200809L. */
#ifndef MUSTER_TASK_H
#define MUSTER_TASK_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MUSTER_FN __attribute__((unused)) static
#define MUSTER_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define MUSTER_FN static
#define MUSTER_PRINTF(fmt, args)
#endif

#define MUSTER_MARKER ".muster-complete"
#define MUSTER_LINE_MAX 4096
#define MUSTER_STEP_MAX 9007199254740991LL /* 2^53-1 */
#define MUSTER_WAIT_MS 50
#define MUSTER_ASKED_MAX 1024
#ifndef MUSTER_RECONNECT_MS
#define MUSTER_RECONNECT_MS 1000
#endif

/* ---- What a program calls. Declared first, so that this page is the reference. ---- */

/* 1 if this process runs under Muster. */
MUSTER_FN int muster_active(void);
/* Where this rank is. total < 0: unknown. `metrics` is a printf format of key=number pairs parted
 * by one space, or NULL: muster_progress(120, 500, "loss=%g samples_per_s=%g", loss, rate). */
MUSTER_FN void muster_progress(long long step, long long total, const char* metrics, ...)
    MUSTER_PRINTF(3, 4);
/* Makes the checkpoint at `path` (a file, or a directory whose files are all written) complete:
 * syncs it and sets its marker; then announces it. Called by one process, after every rank has
 * written its part. 0, or -1 with errno if it cannot be synced. */
MUSTER_FN int muster_checkpoint(long long step, const char* path);
/* Writes the path of the newest complete checkpoint, verified on disk, into `out`, and its step
 * into *step (-1 if its name has none; step may be NULL). 1, or 0 if there is none. Ranks that must
 * agree take rank 0's by broadcast. */
MUSTER_FN int muster_latest_checkpoint(char* out, size_t size, long long* step);
/* 1 once Muster has asked this task to save and stop. Cheap enough for every step. */
MUSTER_FN int muster_should_stop(void);
/* Takes `signum` (a job's checkpoint.signal, by default SIGUSR1, which kills who does not handle
 * it) as the notice too. */
MUSTER_FN void muster_watch_signal(int signum);
/* After the notice: the state is safe, this task may be stopped. Once a task, when all its ranks
 * are safe. */
MUSTER_FN void muster_saved(long long step);
/* The work is finished: the exit that follows is completion, even inside a grace period. */
MUSTER_FN void muster_done(void);

/* ---- How. ---- */

enum {
    MUSTER_PROGRESS = -1,
    MUSTER_CHECKPOINT = 0,
    MUSTER_SAVED = 1,
    MUSTER_DONE = 2,
    MUSTER_KEPT = 3
};

struct muster_link {
    int connected, fd;
    long long next_try_ms, hold_until_ms;
    char keep[MUSTER_KEPT][MUSTER_LINE_MAX]; /* Lines to be repeated until answered; "" = none. */
    unsigned
        version[MUSTER_KEPT]; /* Of keep; sent is the version that went out on this connection. */
    unsigned sent[MUSTER_KEPT];
    struct {
        int verb;
        unsigned version;
    } asked[MUSTER_ASKED_MAX]; /* A ring of sent, unanswered lines. */
    unsigned asked_from, asked_to;
    char tail[MUSTER_LINE_MAX]; /* The unsent rest of a line that the socket took in part. */
    size_t tail_size;
    char answer[64]; /* The beginning of the answer being read. */
    size_t answer_size;
    volatile sig_atomic_t noticed;
    long long next_look_ms;
    void (*handlers[65])(int);
};
static struct muster_link muster_link_;
static pthread_mutex_t muster_mutex_ = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t muster_once_ = PTHREAD_ONCE_INIT;

MUSTER_FN long long muster_now_ms_(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

MUSTER_FN void muster_after_fork_(void) {
    struct muster_link* l = &muster_link_;
    pthread_mutex_init(&muster_mutex_, NULL);
    if (l->connected) close(l->fd);
    l->connected = 0;
    l->next_try_ms = 0;
    for (int verb = 0; verb < MUSTER_KEPT; ++verb) l->keep[verb][0] = '\0';
}

MUSTER_FN void muster_init_(void) {
    pthread_atfork(NULL, NULL, muster_after_fork_);
}

/* Never held while waiting for the node. */
MUSTER_FN void muster_lock_(void) {
    pthread_once(&muster_once_, muster_init_);
    pthread_mutex_lock(&muster_mutex_);
}

MUSTER_FN void muster_drop_(struct muster_link* l) {
    if (l->connected) close(l->fd);
    l->connected = 0;
}

MUSTER_FN void muster_connect_(struct muster_link* l) {
    const char* path = getenv("MUSTER_SOCKET");
    struct sockaddr_un address;
    const long long now = muster_now_ms_();
    int fd;
    if (!path || !*path || strlen(path) >= sizeof address.sun_path || now < l->next_try_ms) return;
    l->next_try_ms = now + MUSTER_RECONNECT_MS;
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0) return;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    if (connect(fd, (const struct sockaddr*)&address, sizeof address) != 0) {
        close(fd);
        return;
    }
    l->fd = fd;
    l->connected = 1;
    l->tail_size = l->answer_size = 0;
    l->asked_from = l->asked_to = 0;
    memset(l->sent, 0, sizeof l->sent);
}

/* Sends tail and line. 1: the line is on its way, whole, or its rest in tail. */
MUSTER_FN int muster_push_(struct muster_link* l, const char* line, size_t size) {
    char data[2 * MUSTER_LINE_MAX];
    const size_t all = l->tail_size + size;
    ssize_t count;
    if (l->tail_size && size) return 0;
    memcpy(data, l->tail, l->tail_size);
    memcpy(data + l->tail_size, line, size);
    count = send(l->fd, data, all, MSG_NOSIGNAL);
    if (count < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) muster_drop_(l);
        return 0;
    }
    l->tail_size = all - (size_t)count;
    memcpy(l->tail, data + count, l->tail_size);
    return 1;
}

MUSTER_FN int muster_send_(struct muster_link* l, int verb, const char* line) {
    if (!l->connected || l->tail_size || l->asked_to - l->asked_from == MUSTER_ASKED_MAX) return 0;
    if (!muster_push_(l, line, strlen(line))) return 0;
    l->asked[l->asked_to % MUSTER_ASKED_MAX].verb = verb;
    l->asked[l->asked_to % MUSTER_ASKED_MAX].version = verb < 0 ? 0 : l->version[verb];
    ++l->asked_to;
    return 1;
}

MUSTER_FN void muster_take_answer_(struct muster_link* l) {
    static const char limited[] = "error rate limit";
    unsigned at = l->asked_from % MUSTER_ASKED_MAX;
    int verb;
    if (l->asked_from == l->asked_to) return;
    ++l->asked_from;
    verb = l->asked[at].verb;
    if (verb < 0 || l->asked[at].version != l->version[verb]) return;
    if (l->answer_size >= sizeof limited - 1 &&
        memcmp(l->answer, limited, sizeof limited - 1) == 0) {
        l->sent[verb] = 0;
        l->hold_until_ms = muster_now_ms_() + 1000;
    } else {
        l->keep[verb][0] = '\0';
    }
}

MUSTER_FN void muster_read_(struct muster_link* l) {
    while (l->connected) {
        char data[4096];
        const ssize_t count = recv(l->fd, data, sizeof data, 0);
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
        if (count <= 0) {
            muster_drop_(l);
            return;
        }
        for (ssize_t i = 0; i < count; ++i) {
            if (data[i] == '\n') {
                muster_take_answer_(l);
                l->answer_size = 0;
            } else if (l->answer_size < sizeof l->answer) {
                l->answer[l->answer_size++] = data[i];
            }
        }
    }
}

/* Gets on with what is unsent and unread, without waiting. 1: kept lines are still unanswered. */
MUSTER_FN int muster_pump_(struct muster_link* l) {
    int left = 0;
    muster_read_(l);
    if (!l->connected) muster_connect_(l);
    if (l->connected && l->tail_size) muster_push_(l, "", 0);
    for (int verb = 0; verb < MUSTER_KEPT; ++verb) {
        if (!l->keep[verb][0]) continue;
        if (l->sent[verb] != l->version[verb] && muster_now_ms_() >= l->hold_until_ms &&
            muster_send_(l, verb, l->keep[verb]))
            l->sent[verb] = l->version[verb];
        left = 1;
    }
    return left;
}

MUSTER_FN void muster_keep_(int verb, const char* line) {
    struct muster_link* l = &muster_link_;
    const long long end = muster_now_ms_() + MUSTER_WAIT_MS;
    muster_lock_();
    snprintf(l->keep[verb], sizeof l->keep[verb], "%s", line);
    if (++l->version[verb] == 0) l->version[verb] = 1;
    while (muster_pump_(l)) {
        struct pollfd fd = {l->fd, (short)(POLLIN | (l->tail_size ? POLLOUT : 0)), 0};
        const long long now = muster_now_ms_();
        if (!l->connected || now >= end || now < l->hold_until_ms) break;
        pthread_mutex_unlock(&muster_mutex_);
        poll(&fd, 1, (int)(end - now));
        muster_lock_();
    }
    pthread_mutex_unlock(&muster_mutex_);
}

/* " rank=N" for a launcher's RANK, else MUSTER_NODE_RANK, else "". */
MUSTER_FN void muster_rank_(char out[24]) {
    static const char* const names[] = {"RANK", "MUSTER_NODE_RANK"};
    out[0] = '\0';
    for (int i = 0; i < 2 && !out[0]; ++i) {
        const char* value = getenv(names[i]);
        if (value && *value && strlen(value) <= 5 && strspn(value, "0123456789") == strlen(value))
            snprintf(out, 24, " rank=%s", value);
    }
}

MUSTER_FN int muster_step_ok_(long long step) {
    return step >= 0 && step <= MUSTER_STEP_MAX;
}

MUSTER_FN int muster_active(void) {
    const char* path = getenv("MUSTER_SOCKET");
    return path && *path;
}

MUSTER_FN void muster_progress(long long step, long long total, const char* metrics, ...) {
    char line[MUSTER_LINE_MAX], rank[24], all[32] = "", rest[3000] = "";
    int size;
    if (!muster_active() || !muster_step_ok_(step)) return;
    if (metrics) {
        va_list args;
        va_start(args, metrics);
        size = vsnprintf(rest, sizeof rest, metrics, args);
        va_end(args);
        if (size < 0 || (size_t)size >= sizeof rest || strpbrk(rest, "\n%")) return;
    }
    muster_rank_(rank);
    if (muster_step_ok_(total)) snprintf(all, sizeof all, " total=%lld", total);
    snprintf(line, sizeof line, "progress step=%lld%s%s%s%s\n", step, all, rank, rest[0] ? " " : "",
             rest);
    muster_lock_();
    muster_pump_(&muster_link_);
    muster_send_(&muster_link_, MUSTER_PROGRESS, line);
    pthread_mutex_unlock(&muster_mutex_);
}

MUSTER_FN void muster_saved(long long step) {
    char line[64];
    if (!muster_active() || !muster_step_ok_(step)) return;
    snprintf(line, sizeof line, "saved step=%lld\n", step);
    muster_keep_(MUSTER_SAVED, line);
}

MUSTER_FN void muster_done(void) {
    if (muster_active()) muster_keep_(MUSTER_DONE, "done\n");
}

/* ---- The notice. ---- */

MUSTER_FN void muster_on_signal_(int signum) {
    muster_link_.noticed = 1;
    if (signum > 0 && signum < 65 && muster_link_.handlers[signum])
        muster_link_.handlers[signum](signum);
}

MUSTER_FN void muster_watch_signal(int signum) {
    struct sigaction now, before;
    if (signum <= 0 || signum >= 65) return;
    memset(&now, 0, sizeof now);
    now.sa_handler = muster_on_signal_;
    now.sa_flags = SA_RESTART;
    if (sigaction(signum, NULL, &before) != 0 || before.sa_handler == muster_on_signal_) return;
    if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler != SIG_DFL &&
        before.sa_handler != SIG_IGN)
        muster_link_.handlers[signum] = before.sa_handler;
    sigaction(signum, &now, NULL);
}

MUSTER_FN int muster_should_stop(void) {
    struct muster_link* l = &muster_link_;
    const char* path;
    long long now;
    now = muster_now_ms_();
    if (now < l->next_look_ms) return l->noticed;
    l->next_look_ms = now + 50;
    path = getenv("MUSTER_PREEMPT_FILE");
    if (!l->noticed && path && access(path, F_OK) == 0) l->noticed = 1;
    if (muster_active() && pthread_mutex_trylock(&muster_mutex_) == 0) {
        if (l->keep[MUSTER_CHECKPOINT][0] || l->keep[MUSTER_SAVED][0] || l->keep[MUSTER_DONE][0])
            muster_pump_(l);
        pthread_mutex_unlock(&muster_mutex_);
    }
    return l->noticed;
}

/* ---- Completeness on disk. ---- */

MUSTER_FN int muster_join_(char out[PATH_MAX], const char* a, const char* between, const char* b) {
    const int size = snprintf(out, PATH_MAX, "%s%s%s", a, between, b);
    if (size > 0 && size < PATH_MAX) return 1;
    errno = ENAMETOOLONG;
    return 0;
}

/* Syncs one file or directory; a file system that cannot sync directories (EINVAL) is excused. 0 or
 * -1. */
MUSTER_FN int muster_sync_one_(const char* path, int flags) {
    struct stat is;
    const int fd = open(path, flags | O_CLOEXEC, 0644);
    int failed, error;
    if (fd < 0) return -1;
    failed = fsync(fd) != 0;
    error = errno;
    if (failed && error == EINVAL && fstat(fd, &is) == 0 && S_ISDIR(is.st_mode)) failed = 0;
    close(fd);
    errno = error;
    return failed ? -1 : 0;
}

MUSTER_FN int muster_sync_tree_(const char* path) {
    struct stat is;
    DIR* dir;
    struct dirent* entry;
    char below[PATH_MAX];
    int result = 0;
    if (lstat(path, &is) != 0) return -1;
    if (S_ISREG(is.st_mode)) return muster_sync_one_(path, O_RDONLY);
    if (!S_ISDIR(is.st_mode)) return 0;
    dir = opendir(path);
    if (!dir) return -1;
    while (result == 0 && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        result = muster_join_(below, path, "/", entry->d_name) ? muster_sync_tree_(below) : -1;
    }
    closedir(dir);
    return result == 0 ? muster_sync_one_(path, O_RDONLY) : -1;
}

MUSTER_FN int muster_seal_(const char* path) {
    char marker[PATH_MAX], parent[PATH_MAX];
    char* slash;
    struct stat is;
    int is_dir;
    if (stat(path, &is) != 0) return -1;
    is_dir = S_ISDIR(is.st_mode);
    if (!muster_join_(parent, path, "", "") ||
        !muster_join_(marker, path, is_dir ? "/" : "", MUSTER_MARKER))
        return -1;
    slash = strrchr(parent, '/');
    if (slash) slash[slash == parent ? 1 : 0] = '\0';
    if (!slash) strcpy(parent, ".");
    if (muster_sync_tree_(path) != 0 || muster_sync_one_(parent, O_RDONLY) != 0) return -1;
    if (muster_sync_one_(marker, O_WRONLY | O_CREAT) != 0) return -1;
    return muster_sync_one_(is_dir ? path : parent, O_RDONLY);
}

MUSTER_FN int muster_checkpoint(long long step, const char* given) {
    char line[MUSTER_LINE_MAX], rank[24], path[PATH_MAX], here[PATH_MAX];
    size_t size;
    if (!muster_active() && !getenv("MUSTER_CHECKPOINT_DIR")) return 0;
    if (!muster_step_ok_(step)) {
        errno = EINVAL;
        return -1;
    }
    if (given[0] == '/')
        here[0] = '\0';
    else if (!getcwd(here, sizeof here))
        return -1;
    if (!muster_join_(path, here, here[0] ? "/" : "", given)) return -1;
    for (size = strlen(path); size > 1 && path[size - 1] == '/'; --size) path[size - 1] = '\0';
    if (muster_seal_(path) != 0) return -1;
    if (!muster_active()) return 0;
    size = (size_t)snprintf(line, sizeof line, "checkpoint step=%lld path=", step);
    for (const char* c = path; *c; ++c) {
        const unsigned char byte = (unsigned char)*c;
        if (size + 64 > sizeof line) return 0; /* Longer than any node takes; the scan finds it. */
        if (byte <= 0x20 || byte == '%' || byte == 0x7f)
            size += (size_t)snprintf(line + size, 4, "%%%02X", byte);
        else
            line[size++] = *c;
    }
    muster_rank_(rank);
    snprintf(line + size, sizeof line - size, "%s\n", rank);
    muster_keep_(MUSTER_CHECKPOINT, line);
    return 0;
}

/* N of step-N or step-N.ext by the scan rule, or -1. */
MUSTER_FN long long muster_name_step_(const char* name) {
    size_t digits, i;
    long long step = 0;
    if (strncmp(name, "step-", 5) != 0) return -1;
    name += 5;
    digits = strspn(name, "0123456789");
    if (digits < 1 || digits > 16) return -1;
    for (i = 0; i < digits; ++i) step = step * 10 + (name[i] - '0');
    name += digits;
    if (*name == '\0') return muster_step_ok_(step) ? step : -1;
    if (*name++ != '.' || strcmp(name, "tmp") == 0 || strcmp(name, "partial") == 0) return -1;
    i = strspn(name, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    return i >= 1 && i <= 16 && name[i] == '\0' && muster_step_ok_(step) ? step : -1;
}

/* The disk's part of the announcement rule; with need_marker, of the scan rule. */
MUSTER_FN int muster_complete_(const char* path, int need_marker) {
    static const char* const never[] = {".tmp", ".partial", MUSTER_MARKER};
    char marker[PATH_MAX];
    struct stat is, mark;
    const size_t size = strlen(path);
    int marked;
    for (int i = 0; i < 3; ++i)
        if (size >= strlen(never[i]) && strcmp(path + size - strlen(never[i]), never[i]) == 0)
            return 0;
    if (lstat(path, &is) != 0) return 0;
    if (!muster_join_(marker, path, S_ISDIR(is.st_mode) ? "/" : "", MUSTER_MARKER)) return 0;
    marked = lstat(marker, &mark) == 0 && S_ISREG(mark.st_mode);
    if (S_ISDIR(is.st_mode)) return marked;
    return S_ISREG(is.st_mode) && is.st_size > 0 && (marked || !need_marker);
}

MUSTER_FN int muster_latest_checkpoint(char* out, size_t size, long long* step) {
    const char* home = getenv("MUSTER_CHECKPOINT_DIR");
    const char* told = getenv("MUSTER_LATEST_CHECKPOINT");
    char best[PATH_MAX] = "", path[PATH_MAX], best_name[NAME_MAX + 1] = "";
    long long best_step = -1;
    DIR* dir = home && *home ? opendir(home) : NULL;
    struct dirent* entry;
    while (dir && (entry = readdir(dir)) != NULL) {
        const long long n = muster_name_step_(entry->d_name);
        if (n < 0 || n < best_step || (n == best_step && strcmp(entry->d_name, best_name) < 0))
            continue;
        if (!muster_join_(path, home, home[strlen(home) - 1] == '/' ? "" : "/", entry->d_name))
            continue;
        if (!muster_complete_(path, 1)) continue;
        best_step = n;
        strcpy(best, path);
        snprintf(best_name, sizeof best_name, "%s", entry->d_name);
    }
    if (dir) closedir(dir);
    if (told && *told && muster_join_(path, told, "", "") && muster_complete_(path, 0)) {
        const char* slash = strrchr(told, '/');
        const long long n = muster_name_step_(slash ? slash + 1 : told);
        if (n < 0 || n >= best_step) {
            best_step = n;
            strcpy(best, path);
        }
    }
    if (!best[0] || strlen(best) >= size) return 0;
    strcpy(out, best);
    if (step) *step = best_step;
    return 1;
}

#ifdef __cplusplus
}
#endif
#endif
