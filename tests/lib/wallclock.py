# SPDX-License-Identifier: Apache-2.0
"""A wall clock that a test can set, for one process: LD_PRELOAD adds an offset from a file to CLOCK_REALTIME.

CLOCK_MONOTONIC and CLOCK_BOOTTIME stay as they are, as they do when somebody sets the clock of a machine."""

import pathlib

from preload import preload

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void)
{
    char text[32];
    const char *path = getenv("WALLCLOCK_OFFSET");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    long n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return atol(text);
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int r = real(id, ts);
    if (r == 0 && id == CLOCK_REALTIME)
        ts->tv_sec += offset();
    return r;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec ts;
    (void)tz;
    int r = clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return r;
}

time_t time(time_t *ret)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    if (ret)
        *ret = ts.tv_sec;
    return ts.tv_sec;
}
"""


class WallClock:
    """env() is what the process needs; jump(seconds) sets its clock."""

    def __init__(self, home):
        self.home = pathlib.Path(home)
        self.offset = 0
        self.environment = preload(self.home, "wallclock", SOURCE, WALLCLOCK_OFFSET=str(self.home / "offset"))
        self.jump(0)

    def jump(self, seconds):
        self.offset += seconds
        fresh = self.home / "offset.new"
        fresh.write_text(str(self.offset))
        fresh.replace(self.home / "offset")

    def env(self):
        return dict(self.environment)
