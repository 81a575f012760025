/* SPDX-License-Identifier: Apache-2.0 */
/* tailpages.h - the events of a followed log: each a row table, of which its JSON and its schema
 * are made. */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "base/field.h"

struct job;

extern const struct field_table tails_piece_table, tails_replaced_table, tails_end_table;

/* Bytes of the log, as base64. */
struct tails_piece {
    int attempt;
    uint64_t offset;
    const char *b64;
};

/* The file is another one now, or was cut: what follows is told from `offset` on. */
struct tails_replaced {
    int attempt;
    uint64_t was;    /* where the log that this client has seen ended */
    uint64_t offset; /* of the next byte */
    uint64_t lost;   /* bytes before `was` that could not be sent to this client */
};

/* The data of the event, appended. */
void tails_put_page(const struct field_table *table, const void *page, struct buf *out);
/* The end of the log and of the job. */
void tails_put_end(const struct job *job, struct buf *out);
