/* A wall clock that jumps on demand, for processes that load this first (LD_PRELOAD; see clock.py).
 *
 * Only the wall clock is another: CLOCK_REALTIME, CLOCK_REALTIME_COARSE, gettimeofday and time get an offset, read at
 * every call from the file that CHAOS_CLOCK names (8 bytes, microseconds). The monotonic clock, sleeps and timeouts are
 * the kernel's: a machine whose clock is set behaves so.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_us;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("CHAOS_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *seen = mmap(NULL, sizeof *offset_us, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (seen != MAP_FAILED)
        offset_us = seen;
}

static int64_t now_us(int64_t *rest_ns)
{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    *rest_ns = now.tv_nsec % 1000;
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000 + (offset_us ? *offset_us : 0);
}

int clock_gettime(clockid_t clock, struct timespec *told)
{
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return (int)syscall(SYS_clock_gettime, clock, told);
    int64_t rest_ns, us = now_us(&rest_ns);
    told->tv_sec = us / 1000000;
    told->tv_nsec = us % 1000000 * 1000 + rest_ns;
    return 0;
}

int gettimeofday(struct timeval *restrict told, void *restrict zone)
{
    (void)zone;
    int64_t rest_ns, us = now_us(&rest_ns);
    told->tv_sec = us / 1000000;
    told->tv_usec = us % 1000000;
    return 0;
}

time_t time(time_t *told)
{
    int64_t rest_ns;
    time_t now = now_us(&rest_ns) / 1000000;
    if (told)
        *told = now;
    return now;
}
