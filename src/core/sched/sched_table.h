/* SPDX-License-Identifier: Apache-2.0 */
/* sched_table.h - rows by number, and numbers by key: the parts of the scheduler's state.
 *
 * Rows refer to one another by number, 0 refers to none: so that a copy of the whole state is a
 * few memcpy(). A pointer to a row is good until the next rows_take(). Included by the
 * scheduler's own files only. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

#define ROW_USED UINT32_MAX

/* Each row begins with a uint32_t, which is the table's. */
struct rows {
    char *v;
    size_t size;
    uint32_t n, cap, freed; /* n: one beyond the highest number ever used */
};
void rows_init(struct rows *r, size_t size);
void rows_release(struct rows *r);
uint32_t rows_take(struct rows *r); /* zeroed */
void rows_give(struct rows *r, uint32_t i);
void rows_copy(struct rows *dst, const struct rows *src);
static inline void *rows_at(const struct rows *r, uint32_t i)
{
    return r->v + (size_t)i * r->size;
}
static inline bool row_is_used(const struct rows *r, uint32_t i)
{
    return i && *(const uint32_t *)rows_at(r, i) == ROW_USED;
}

struct sched;
/* Whether row i has this key. */
typedef bool (*index_is_f)(const struct sched *s, uint32_t i, const void *key);

struct index_cell {
    uint32_t i, hash; /* i = 0: empty */
};
/* Open addressing, at most 3/4 full; a chain of probes has no hole. */
struct index {
    struct index_cell *cells;
    uint32_t cap, n;
};
void index_release(struct index *ix);
void index_copy(struct index *dst, const struct index *src);
/* 0 if there is none. */
uint32_t index_find(const struct index *ix,
                    const struct sched *s,
                    uint64_t hash,
                    index_is_f is,
                    const void *key);
void index_add(struct index *ix, uint64_t hash, uint32_t i);
void index_remove(struct index *ix, uint64_t hash, uint32_t i);

/* Numbers mixed into one hash, for keys that are numbers. */
static inline uint64_t mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9;
    x ^= x >> 27;
    x *= 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* A list of numbers. */
struct numbers {
    uint32_t *v;
    size_t n, cap;
};
void numbers_add(struct numbers *l, uint32_t i);
void numbers_copy(struct numbers *dst, const struct numbers *src); /* dst is overwritten */
void numbers_release(struct numbers *l);
