/* Submits batch jobs through libslurm, without a process a job.
 *   slurm_submit COUNT THREADS GPUS [IDS_FILE [WORK]]
 * Each is /bin/true on one node with GPUS GPUs (0: one CPU only). Prints "RATE_PER_S P50_MS
 * P99_MS"; the ids that were acknowledged go to IDS_FILE ("-": nowhere), one a line. WORK is a or b
 * of bench/run.sh scheduler: limits from 30 minutes to a day and one CPU a GPU; b: gangs of 1 to 64
 * nodes, the same from run to run. Link with -lslurm -lpthread.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int count, gpus, next_index, failures;
static char work_of;
static int ids_fd = -1;
static double* latency_s;
static char* environment[] = {"PATH=/usr/bin:/bin", NULL};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Of the job, whichever thread submits it. */
static unsigned dice(int index, unsigned sides) {
    unsigned long long x = 0x9e3779b97f4a7c15ULL * (unsigned)(index + 1);
    x ^= x >> 31;
    x *= 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 29;
    return (unsigned)(x % sides);
}

static int nodes_of(int index) {
    static const int weights[] = {40, 20, 15, 10, 8, 5, 2};
    int left = (int)dice(index, 100);
    for (int i = 0; i < 7; left -= weights[i++])
        if (left < weights[i]) return 1 << i;
    return 1;
}

static int submit(job_desc_msg_t* job, submit_response_msg_t** answer) {
    /* EAGAIN: the controller has no thread free. Its own client waits and asks again. */
    for (;;) {
        const int error = slurm_submit_batch_job(job, answer);
        if (!error || (errno != EAGAIN && errno != ESLURM_ERROR_ON_DESC_TO_RECORD_COPY))
            return error;
        usleep(1000);
    }
}

static void* work(void* unused) {
    (void)unused;
    for (;;) {
        const int index = __sync_fetch_and_add(&next_index, 1);
        submit_response_msg_t* answer = NULL;
        job_desc_msg_t job;
        char tres[32], line[32];
        double begin;
        if (index >= count) return NULL;
        slurm_init_job_desc_msg(&job);
        job.name = "bench";
        job.script = "#!/bin/sh\nexec /bin/true\n";
        job.work_dir = "/tmp";
        job.std_out = job.std_err = job.std_in = "/dev/null";
        job.user_id = getuid();
        job.group_id = getgid();
        job.environment = environment;
        job.env_size = 1;
        job.num_tasks = job.min_nodes = job.max_nodes = 1;
        job.cpus_per_task = gpus ? (uint16_t)(4 * gpus) : 1;
        job.time_limit = 60;
        if (work_of) {
            job.time_limit = 30 + dice(index + count, 1411);
            job.cpus_per_task = (uint16_t)gpus;
        }
        if (work_of == 'b') job.num_tasks = job.min_nodes = job.max_nodes = (uint32_t)nodes_of(index);
        if (gpus) {
            snprintf(tres, sizeof tres, "gres:gpu:%d", gpus);
            job.tres_per_node = tres;
        }
        begin = now_s();
        if (submit(&job, &answer)) {
            if (__sync_fetch_and_add(&failures, 1) == 0) slurm_perror("submit");
            continue;
        }
        latency_s[index] = now_s() - begin;
        if (ids_fd >= 0) {
            const int size = snprintf(line, sizeof line, "%u\n", answer->job_id);
            if (write(ids_fd, line, (size_t)size) != size) perror("ids file");
        }
        slurm_free_submit_response_response_msg(answer);
    }
}

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

int main(int argc, char** argv) {
    pthread_t threads[256];
    double begin, elapsed;
    const int thread_count = argc > 2 ? atoi(argv[2]) : 0;
    if (argc < 4 || thread_count < 1 || thread_count > 256 || (count = atoi(argv[1])) < 1) {
        fprintf(stderr, "usage: slurm_submit COUNT THREADS(1..256) GPUS [IDS_FILE [a|b]]\n");
        return 2;
    }
    gpus = atoi(argv[3]);
    if (argc > 5) work_of = argv[5][0];
    if (argc > 4 && strcmp(argv[4], "-") != 0 &&
        (ids_fd = open(argv[4], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644)) < 0) {
        perror(argv[4]);
        return 2;
    }
    latency_s = calloc((size_t)count, sizeof *latency_s);
    slurm_init(NULL);
    begin = now_s();
    for (int i = 0; i < thread_count; ++i) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < thread_count; ++i) pthread_join(threads[i], NULL);
    elapsed = now_s() - begin;
    qsort(latency_s, (size_t)count, sizeof *latency_s, compare);
    printf("%.1f %.2f %.2f\n", (count - failures) / elapsed, latency_s[count / 2] * 1e3,
           latency_s[(int)(count * 0.99)] * 1e3);
    return failures ? 1 : 0;
}
