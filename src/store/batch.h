/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h - changes in the order they were made, packed into one block of bytes.
 *
 * A change is the number of a statement (writer.h) and its values in the order of
 * the statement's parameters. The loop thread appends, the store thread replays. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct batch {
    char *data;
    size_t len, cap;
    uint64_t number; /* of the newest turn in it */
};

void batch_release(struct batch *b);
/* Empty again; a block that grew large in a burst goes back to the system. */
void batch_reset(struct batch *b);
/* Put all of src behind dst and empty src. */
void batch_append(struct batch *dst, struct batch *src);
void batch_swap(struct batch *a, struct batch *b);

/* A change starts with batch_begin; then come its values. */
void batch_begin(struct batch *b, unsigned statement);
void batch_int(struct batch *b, int64_t v);
void batch_real(struct batch *b, double v);
void batch_text(struct batch *b, const char *s); /* NULL is SQL's NULL */
void batch_blob(struct batch *b, const void *p, size_t n);
void batch_null(struct batch *b);

enum batch_kind { BATCH_BEGIN, BATCH_INT, BATCH_REAL, BATCH_TEXT, BATCH_BLOB, BATCH_NULL };

struct batch_item {
    enum batch_kind kind;
    int64_t i; /* BATCH_BEGIN: the statement */
    double r;
    const char *p; /* borrowed from the batch */
    size_t n;
};

/* The item at *pos, which moves on; 0 at the end, else 1. */
int batch_next(const struct batch *b, size_t *pos, struct batch_item *ret);
