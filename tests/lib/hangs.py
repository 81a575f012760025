# SPDX-License-Identifier: Apache-2.0
"""A file system that hangs, for one program: what lies below a directory called hung answers late."""

from preload import preload

# Whatever lies below a directory called hung answers when a file called free appears beside it.
HANGS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static void wait_for(int dir, const char *path)
{
    char proc[64], whole[8192] = "", free[8192];
    snprintf(proc, sizeof(proc), "/proc/self/fd/%d", dir);
    ssize_t n = *path == '/' ? 0 : readlink(proc, whole, 4000);
    if (n < 0) return;
    snprintf(whole + n, sizeof(whole) - n, "/%s/", path);
    const char *at = strstr(whole, "/hung/");
    if (!at) return;
    snprintf(free, sizeof(free), "%.*s/free", (int)(at - whole), whole);
    while (access(free, F_OK) != 0) usleep(20000);
}
long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long a[6];
    va_list ap;
    va_start(ap, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(ap, long);
    va_end(ap);
    if (!next) next = dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_openat2) wait_for((int)a[0], (const char *)a[1]);
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
"""


def hanging(tmp_path):
    """The environment of a program for which such files hang."""
    return preload(tmp_path, "hangs", HANGS)
