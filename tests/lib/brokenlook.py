# SPDX-License-Identifier: Apache-2.0
"""Looks at names that fail, as on a file server that is ill, for one process: LD_PRELOAD answers with errors.

    looks = BrokenLooks(home)               argusd.env.update(looks.env())
    with looks.fail(".shared-root", errno.ESTALE): ...      every look at a thing of this name
    with looks.hold("common"): ...                          no directory of this name is made until the end of it

Looks are what answers "is it there": fstatat, lstat, access, faccessat, openat, openat2 and readlinkat, by the last
name of their path. EMFILE and EIO, which no test can otherwise have at a moment of its choice, are as good as
ESTALE."""

import contextlib
import pathlib

from preload import preload

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(call) __typeof__(&call) real = (__typeof__(&call))dlsym(RTLD_NEXT, #call)

/* The text of the order; "" where there is none. By calls that nobody intercepts. */
static void ordered(char *text, size_t size)
{
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    const char *path = getenv("BROKEN_LOOKS");
    int fd = path ? (int)real(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0) : -1;
    long n = fd < 0 ? 0 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
}

static int is_meant(const char *kind, const char *path, int *error)
{
    char text[300], what[16] = "", name[256] = "";
    int kept = errno;
    const char *slash = strrchr(path, '/');
    ordered(text, sizeof(text));
    errno = kept;
    return sscanf(text, "%15s %d %255s", what, error, name) == 3 && !strcmp(what, kind) &&
           !strcmp(slash ? slash + 1 : path, name);
}

static int fails(const char *path)
{
    int error;
    if (!is_meant("fail", path, &error))
        return 0;
    errno = error;
    return 1;
}

int fstatat(int dir, const char *path, struct stat *ret, int flags)
{
    REAL(fstatat);
    return fails(path) ? -1 : real(dir, path, ret, flags);
}

int lstat(const char *path, struct stat *ret)
{
    REAL(lstat);
    return fails(path) ? -1 : real(path, ret);
}

int access(const char *path, int mode)
{
    REAL(access);
    return fails(path) ? -1 : real(path, mode);
}

int faccessat(int dir, const char *path, int mode, int flags)
{
    REAL(faccessat);
    return fails(path) ? -1 : real(dir, path, mode, flags);
}

ssize_t readlinkat(int dir, const char *path, char *ret, size_t n)
{
    REAL(readlinkat);
    return fails(path) ? -1 : real(dir, path, ret, n);
}

int openat(int dir, const char *path, int flags, ...)
{
    REAL(openat);
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return fails(path) ? -1 : real(dir, path, flags, mode);
}

long syscall(long number, ...)
{
    REAL(syscall);
    va_list args;
    long a[6];
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    return number == SYS_openat2 && fails((const char *)a[1]) ? -1 : real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    REAL(mkdirat);
    int error;
    while (is_meant("hold", path, &error))
        poll(NULL, 0, 10);
    return real(dir, path, mode);
}
"""


class BrokenLooks:
    def __init__(self, home):
        self.home = pathlib.Path(home)
        told = {"BROKEN_LOOKS": str(self.home / "looks")}
        self.environment = preload(self.home, "brokenlook", SOURCE, "-D_FILE_OFFSET_BITS=64", **told)
        self.order("")

    def order(self, text):
        fresh = self.home / "looks.new"
        fresh.write_text(text)
        fresh.replace(self.home / "looks")

    @contextlib.contextmanager
    def ordered(self, text):
        self.order(text)
        try:
            yield
        finally:
            self.order("")

    def fail(self, name, error):
        return self.ordered(f"fail {error} {name}")

    def hold(self, name):
        return self.ordered(f"hold 0 {name}")

    def env(self):
        return dict(self.environment)
