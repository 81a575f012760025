/* SPDX-License-Identifier: Apache-2.0 */
/* unit_look.h - for unit tests: a look at one name fails as a sick file server makes it fail.
 *
 * The calls that look at names or open them are defined here, in the test's own program, and so
 * come before those of libc. Until look_broken.name is set they do what they always do. */
#pragma once
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* error: an errno. n: how often it was said. */
static struct look_broken {
    const char *name; /* NULL: nothing fails */
    int error, n;
    bool only_text; /* only reading the text of a link fails */
} look_broken;

/* What must never be read as "nothing is there". */
static const int look_errors[] = {ESTALE, EIO, EMFILE, EACCES};

static inline int look_fails(const char *path, bool is_text)
{
    const char *slash = strrchr(path, '/');
    if (!look_broken.name || strcmp(slash ? slash + 1 : path, look_broken.name) != 0 ||
        (look_broken.only_text && !is_text))
        return 0;
    look_broken.n++;
    errno = look_broken.error;
    return -1;
}

/* The call of libc with this name. */
#define LOOK_REAL(call)                                                                            \
    __typeof__(&call) real = NULL;                                                                 \
    *(void **)&real = dlsym(RTLD_NEXT, #call)

int fstatat(int dir, const char *path, struct stat *ret, int flags)
{
    LOOK_REAL(fstatat);
    return look_fails(path, false) ? -1 : real(dir, path, ret, flags);
}

int lstat(const char *path, struct stat *ret)
{
    LOOK_REAL(lstat);
    return look_fails(path, false) ? -1 : real(path, ret);
}

int faccessat(int dir, const char *path, int mode, int flags)
{
    LOOK_REAL(faccessat);
    return look_fails(path, false) ? -1 : real(dir, path, mode, flags);
}

ssize_t readlinkat(int dir, const char *path, char *ret, size_t n)
{
    LOOK_REAL(readlinkat);
    return look_fails(path, true) ? -1 : real(dir, path, ret, n);
}

int openat(int dir, const char *path, int flags, ...)
{
    LOOK_REAL(openat);
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return look_fails(path, false) ? -1 : real(dir, path, flags, mode);
}

/* openat2() has no function in libc. */
long syscall(long number, ...)
{
    LOOK_REAL(syscall);
    va_list args;
    va_start(args, number);
    long a[6];
    for (size_t i = 0; i < sizeof(a) / sizeof(a[0]); i++)
        a[i] = va_arg(args, long);
    va_end(args);
    const char *path = NULL;
    if (number == SYS_openat2)
        memcpy(&path, &a[1], sizeof(path));
    return path && look_fails(path, false) ? -1 : real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
