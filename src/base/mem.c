/* SPDX-License-Identifier: Apache-2.0 */
/* mem.c - allocations that cannot fail; see mem.h. Owns nothing; aborts with one line when
 * memory is gone. */
#define _GNU_SOURCE
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *mem_check(void *p)
{
    if (!p) {
        static const char msg[] = "fatal: out of memory\n";
        (void)!write(STDERR_FILENO, msg, sizeof(msg) - 1); /* nothing left to do with a failure */
        abort();
    }
    return p;
}

void *xmalloc(size_t n)
{
    return mem_check(malloc(n ? n : 1));
}

void *xcalloc(size_t n, size_t size)
{
    return mem_check(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        mem_check(NULL);
    size_t bytes = n * size;
    return mem_check(realloc(p, bytes ? bytes : 1));
}

char *xstrdup(const char *s)
{
    return s ? mem_check(strdup(s)) : NULL;
}

char *xstrndup(const char *s, size_t n)
{
    return s ? mem_check(strndup(s, n)) : NULL;
}

char *xasprintf(const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;
    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    return mem_check(n < 0 ? NULL : s);
}

void freep(void *p)
{
    void **pp = p;
    free(*pp);
    *pp = NULL;
}

void closep(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing can be done about it in a clean-up */
    *fd = -1;
}

void set_str(char **dst, const char *src)
{
    char *copy = xstrdup(src);
    free(*dst);
    *dst = copy;
}

void xsort(void *v, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    if (n > 1)
        qsort(v, n, size, compare);
}
