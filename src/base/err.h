/* SPDX-License-Identifier: Apache-2.0 */
/* err.h - an error: a code and one sentence, on the caller's stack.
 *
 * A fallible function returns 0 (or a count) or a negative code and fills the
 * `struct err *err` it was given last; err may be NULL. Codes are -errno values
 * or the ERR_* below, which carry what HTTP and the CLI say. Sentence grammar:
 * lower case, no full stop, failure first, the subject in single quotes. */
#pragma once
#include <stdbool.h>

#include "base/mem.h"

/* X(enumerator, code word on the wire, HTTP status, CLI exit status) */
#define ERR_TABLE(X)                                                                               \
    X(ERR_INTERNAL, "internal", 500, 1)                                                            \
    X(ERR_USAGE, "usage", 400, 2)                                                                  \
    X(ERR_BAD_REQUEST, "bad_request", 400, 2)                                                      \
    X(ERR_UNAUTHORISED, "unauthorised", 401, 3)                                                    \
    X(ERR_FORBIDDEN, "forbidden", 403, 3)                                                          \
    X(ERR_NOT_FOUND, "not_found", 404, 4)                                                          \
    X(ERR_METHOD, "method_not_allowed", 405, 2)                                                    \
    X(ERR_CONFLICT, "conflict", 409, 5)                                                            \
    X(ERR_TOO_LARGE, "too_large", 413, 5)                                                          \
    X(ERR_MEDIA, "unsupported_media_type", 415, 2)                                                 \
    X(ERR_BAD_SPEC, "bad_spec", 422, 5)                                                            \
    X(ERR_REFUSED, "refused", 422, 5)                                                              \
    X(ERR_POOL_TOO_SMALL, "pool_too_small", 422, 5)                                                \
    X(ERR_RANGE, "range_not_satisfiable", 416, 5)                                                  \
    X(ERR_BUSY, "too_many_requests", 429, 5)                                                       \
    X(ERR_HEADERS, "headers_too_large", 431, 5)                                                    \
    X(ERR_UNAVAILABLE, "unavailable", 503, 6)                                                      \
    X(ERR_NOT_YET, "not_yet", 503, 6)                                                              \
    X(ERR_UNREACHABLE, "unreachable", 503, 6)                                                      \
    X(ERR_STORE, "store_failed", 503, 6)                                                           \
    X(ERR_NO_SPACE, "no_space", 507, 5)                                                            \
    X(ERR_TIMEOUT, "timeout", 504, 7)

enum err_code {
    ERR_FIRST = -5000, /* below every -errno */
#define X(e, w, h, x) e,
    ERR_TABLE(X)
#undef X
        ERR_END
};

struct err {
    int code;            /* 0 or negative */
    char text[512];      /* one sentence; ends in "..." when it was cut */
    const char *message; /* code of the sentence in the catalogue (base/message.h); NULL: none */
    char args[384];      /* of the message, a JSON object; unset without a message */
};

/* Sets both and returns `code`, so that `return err_set(err, -ENOENT, …);` is
 * the whole failure path. A NULL err only returns the code. */
int err_set(struct err *err, int code, const char *fmt, ...) printf_like(3, 4);

/* All that another error says, with this code. Returns `code`; NULL err only returns it. */
int err_copy(struct err *err, int code, const struct err *from);

/* Puts "fmt: " in front of the sentence; the code stays. Returns err->code. */
int err_prefix(struct err *err, const char *fmt, ...) printf_like(2, 3);

/* The word, the HTTP status and the CLI's exit status of any code; an unknown or errno code is that
 * of the nearest ERR_*. Borrowed. */
const char *err_word(int code);
int err_http_status(int code);
int err_exit_status(int code);

/* The ERR_* whose word this is; ERR_INTERNAL if there is none. */
int err_from_word(const char *word);
