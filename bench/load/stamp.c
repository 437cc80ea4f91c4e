/* Writes the time at which it began, in ns since the epoch, to the file named by its argument. */
#include <stdio.h>
#include <time.h>

int main(int argc, char** argv) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    char temporary[4096];
    if (argc != 2) return 2;
    snprintf(temporary, sizeof temporary, "%s.new", argv[1]);
    FILE* file = fopen(temporary, "w");
    if (file == NULL) return 1;
    fprintf(file, "%lld\n", (long long)now.tv_sec * 1000000000LL + now.tv_nsec);
    return fclose(file) == 0 && rename(temporary, argv[1]) == 0 ? 0 : 1;
}
