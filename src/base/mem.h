/* SPDX-License-Identifier: Apache-2.0 */
/* mem.h - allocation that cannot fail, and the attributes every header uses.
 *
 * Small allocations abort the process when memory is gone: the truth is in the
 * store and a restart is a replay. Whatever a peer or a file can size goes
 * through struct buf with a ceiling instead. */
#pragma once
#include <stddef.h>

#define must_check __attribute__((warn_unused_result))
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))
#define _cleanup_(f) __attribute__((cleanup(f)))
#define array_len(a) (sizeof(a) / sizeof((a)[0]))

/* The owner of `member` at address `ptr`; ptr is never NULL. */
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Never NULL, never uninitialised (xcalloc), never overflowing (n * size). */
void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n, size_t size);
/* NULL in, NULL out; the result is yours to free(). */
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) printf_like(1, 2);

/* qsort() that takes NULL for no elements. */
void xsort(void *v, size_t n, size_t size, int (*compare)(const void *, const void *));

/* free(*p) and *p = NULL, for `_cleanup_(freep) char *p = NULL;` */
void freep(void *p);
/* close(*fd) unless negative, for `_cleanup_(closep) int fd = -1;` */
void closep(int *fd);

/* Replace *dst by a copy of src (NULL clears). */
void set_str(char **dst, const char *src);
