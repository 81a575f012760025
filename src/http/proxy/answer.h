/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - the head of an HTTP/1 answer, and the chunks of its body, read strictly.
 *
 * What two readers could understand differently is refused and never repaired: two lengths, a
 * length beside chunks, folded or unnamed lines, control bytes. Pure; nothing here allocates. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    ANSWER_HEAD_MAX = 32 << 10, /* bytes with the empty line */
    ANSWER_FIELDS_MAX = 128,
};

enum answer_body { ANSWER_NONE, ANSWER_LENGTH, ANSWER_CHUNKED, ANSWER_UNTIL_CLOSE };

struct answer_field {
    const char *name, *value; /* the value without space around it */
};

struct answer {
    int status; /* 100 to 599 */
    enum answer_body body;
    int64_t length; /* of ANSWER_LENGTH; of ANSWER_NONE what the field says, -1 if absent */
    size_t n;
    struct answer_field fields[ANSWER_FIELDS_MAX];
};

/* The bytes of the head in text, with its empty line; 0: it is not whole. `seen` bytes were looked
 * at before. */
size_t answer_head_length(const char *text, size_t n, size_t seen);

/* Cuts a whole head of n bytes in place; fields point into it. to_head: the request was a HEAD, so
 * no body follows. -EBADMSG with a few words: it is not a strict HTTP/1 answer. */
must_check int answer_parse(char *text,
                            size_t n,
                            bool to_head,
                            struct answer *ret,
                            struct err *err);

/* Borrowed; NULL: there is no such field. Of two the first. */
const char *answer_find(const struct answer *a, const char *name);
/* Is the word in a list of words, as in "Connection: close, upgrade"? Without case. */
bool answer_list_has(const char *list, const char *word);

/* ---- chunks ---- */

struct dechunk {
    int state;
    uint64_t left;  /* of a chunk, or read of its size */
    unsigned line;  /* bytes of the line so far */
    size_t trailer; /* bytes behind the last chunk */
    bool is_over;   /* the last byte of the body was read; what follows it is none of ours */
};
/* Zeroed memory is the beginning. Leaves the content of p[0..n) at p and returns its bytes;
 * -EBADMSG: these are no chunks. */
must_check int64_t dechunk_step(struct dechunk *d, char *p, size_t n);
