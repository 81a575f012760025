/* SPDX-License-Identifier: Apache-2.0 */
/* multipart.h - a multipart/form-data body, taken apart as it comes.
 *
 * Strict: what RFC 7578 allows and no client sends (text before the first boundary or after the
 * last, encodings, spaces after a boundary) is refused, so that two readers of the same bytes find
 * the same parts. Memory is one head of a part, whatever is sent. The server's library has such a
 * reader too; it does not tell where a part begins, and cannot be fuzzed by itself. Pure. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum {
    MULTIPART_BOUNDARY_MAX = 70,
    MULTIPART_HEAD_MAX = 4096, /* bytes of the headers of a part */
    MULTIPART_NAME_MAX = 63,
    MULTIPART_FILE_MAX = 255,
};

/* The receivers of parts; a negative code ends the reading with that code. */
struct multipart_to {
    /* A part begins. file: the name it had as a file, NULL if none. Borrowed. */
    int (*part)(const char *name, const char *file, void *arg, struct err *err);
    /* Bytes of the last part that began. */
    int (*data)(const char *p, size_t n, void *arg, struct err *err);
    void *arg;
};

struct multipart;

/* content_type: the whole header. ERR_BAD_REQUEST: it has no boundary, or no good one. */
must_check int multipart_new(const char *content_type,
                             const struct multipart_to *to,
                             struct multipart **ret,
                             struct err *err);
void multipart_free(struct multipart *m); /* NULL is fine */
/* ERR_BAD_REQUEST, or what a callback said; then no more may be added. */
must_check int multipart_add(struct multipart *m, const char *p, size_t n, struct err *err);
/* Was that all? ERR_BAD_REQUEST: the last boundary has not come. */
must_check int multipart_end(const struct multipart *m, struct err *err);
