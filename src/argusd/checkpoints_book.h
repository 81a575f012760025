/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints_book.h - what checkpoints.c keeps of one job, and its row in the store. */
#pragma once
#include "base/clock.h"
#include "core/ckpt.h"

#define BOOK_KIND "checkpoints"

struct checkpoints;
struct checkpoints_ask;

struct book {
    struct book *next;
    struct checkpoints *cs;
    char *id, *project, *user;
    int64_t seq; /* of the job */
    struct ckpt_list list;
    struct ckpt_policy policy;
    char *metric; /* of keep_best; NULL: none */
    int k;        /* the attempt that writes */

    bool busy, wanted;
    bool followed; /* an attempt runs, or did when argusd ended: a last look is owed */
    bool failing, room_told, quota_told;
    usec_t seen_at, looked_at, walked_at; /* monotonic */
    int64_t step;                         /* of the training when it was looked at */
    char *stored;                         /* the row's text; NULL: there is none */
    struct checkpoints_ask *asks;
};
void book_release(struct book *b); /* what it owns but the asks */

/* The row's text; NULL where there is nothing to keep. Of very many the newest are kept. */
char *book_text(const struct book *b);
/* Back; what cannot be read is not there. */
void book_read(struct book *b, const char *text);
