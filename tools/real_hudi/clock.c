/* Adds an offset, read from a shared file, to the real-time clock of the process that preloads this library.
 * Monotonic clocks stay as they are, so time-outs and schedulers do not notice. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL

static const volatile int64_t none = 0;
static const volatile int64_t *offset_ns = &none;

__attribute__((constructor)) static void map_offset(void) {
    const char *path = getenv("REAL_HUDI_CLOCK");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *shared = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (shared != MAP_FAILED) offset_ns = shared;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
    int64_t ns = now->tv_nsec + *offset_ns % SECOND_NS;
    now->tv_sec += *offset_ns / SECOND_NS + (ns >= SECOND_NS) - (ns < 0);
    now->tv_nsec = (ns + SECOND_NS) % SECOND_NS;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
    if (now != NULL) *now = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (out != NULL) *out = precise.tv_sec;
    return precise.tv_sec;
}
