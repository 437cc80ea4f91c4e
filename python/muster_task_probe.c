/* Runs api/muster_task.h by commands on standard input, one answer line each; test_muster_task_h.py
 * drives it. */
#include <sys/wait.h>

#include "muster_task.h"

static void* count_up(void* rank) {
    for (long long step = 0; step < 200; ++step)
        muster_progress(step, -1, "thread=%d", *(int*)rank);
    return NULL;
}

static void threads(void) {
    pthread_t all[8];
    int ranks[8];
    for (int i = 0; i < 8; ++i) {
        ranks[i] = i;
        pthread_create(&all[i], NULL, count_up, &ranks[i]);
    }
    for (int i = 0; i < 8; ++i) pthread_join(all[i], NULL);
}

static void child(long long step) {
    const pid_t pid = fork();
    if (pid == 0) {
        muster_progress(step, -1, NULL);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

int main(void) {
    char line[8192], path[PATH_MAX];
    long long step, total;
    double loss;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "progress %lld %lld %lf", &step, &total, &loss) == 3) {
            muster_progress(step, total, "loss=%g samples_per_s=%d", loss, 8123);
        } else if (sscanf(line, "checkpoint %lld %[^\n]", &step, path) == 2) {
            printf("%d ", muster_checkpoint(step, path));
        } else if (sscanf(line, "saved %lld", &step) == 1) {
            muster_saved(step);
        } else if (strcmp(line, "done\n") == 0) {
            muster_done();
        } else if (strcmp(line, "latest\n") == 0) {
            if (muster_latest_checkpoint(path, sizeof path, &step)) printf("%lld %s ", step, path);
        } else if (sscanf(line, "env %[^=]=%[^\n]", path, line) == 2) {
            setenv(path, line, 1);
        } else if (strcmp(line, "stop\n") == 0) {
            printf("%d ", muster_should_stop());
        } else if (strcmp(line, "watch\n") == 0) {
            muster_watch_signal(SIGUSR1);
            raise(SIGUSR1);
        } else if (strcmp(line, "threads\n") == 0) {
            threads();
        } else if (sscanf(line, "child %lld", &step) == 1) {
            child(step);
        } else {
            printf("unknown command: ");
        }
        printf(".\n");
        fflush(stdout);
    }
    return 0;
}
