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

/* X(enumerator, code word on the wire, HTTP status, CLI exit status, default sentence) */
#define ERR_TABLE(X)                                                                               \
    X(ERR_INTERNAL, "internal", 500, 1, "internal error")                                          \
    X(ERR_USAGE, "usage", 400, 2, "wrong usage")                                                   \
    X(ERR_BAD_REQUEST, "bad_request", 400, 2, "the request cannot be read")                        \
    X(ERR_UNAUTHORISED, "unauthorised", 401, 3, "a valid token is needed")                         \
    X(ERR_FORBIDDEN, "forbidden", 403, 3, "this token may not do that")                            \
    X(ERR_NOT_FOUND, "not_found", 404, 4, "there is no such thing")                                \
    X(ERR_METHOD, "method_not_allowed", 405, 2, "this method is not allowed here")                 \
    X(ERR_CONFLICT, "conflict", 409, 5, "it is already there")                                     \
    X(ERR_TOO_LARGE, "too_large", 413, 5, "the body is too large")                                 \
    X(ERR_MEDIA, "unsupported_media_type", 415, 2, "this content type is not understood")          \
    X(ERR_BAD_SPEC, "bad_spec", 422, 5, "the spec has problems")                                   \
    X(ERR_REFUSED, "refused", 422, 5, "refused")                                                   \
    X(ERR_POOL_TOO_SMALL, "pool_too_small", 422, 5, "the pool is too small")                       \
    X(ERR_RANGE, "range_not_satisfiable", 416, 5, "the file has no such bytes")                    \
    X(ERR_BUSY, "too_many_requests", 429, 5, "too many at once, try again")                        \
    X(ERR_HEADERS, "headers_too_large", 431, 5, "the headers are too large")                       \
    X(ERR_UNAVAILABLE, "unavailable", 503, 6, "not available now, try again")                      \
    X(ERR_UNREACHABLE, "unreachable", 503, 6, "the server cannot be reached")                      \
    X(ERR_STORE, "store_failed", 503, 6, "the store cannot write now")                             \
    X(ERR_NO_SPACE, "no_space", 507, 5, "there is no space left")                                  \
    X(ERR_TIMEOUT, "timeout", 504, 7, "timed out")

enum err_code {
    ERR_FIRST = -5000, /* below every -errno */
#define X(e, w, h, x, s) e,
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

/* Puts "fmt: " in front of the sentence; the code stays. Returns err->code. */
int err_prefix(struct err *err, const char *fmt, ...) printf_like(2, 3);

/* The word, the HTTP status, the CLI's exit status and the default sentence of
 * any code; an unknown or errno code is that of the nearest ERR_*. Borrowed. */
const char *err_word(int code);
int err_http_status(int code);
int err_exit_status(int code);
const char *err_sentence(int code);

/* The ERR_* whose word this is; ERR_INTERNAL if there is none. */
int err_from_word(const char *word);
