/* SPDX-License-Identifier: Apache-2.0 */
/* err.c - the table of error codes and the one way to fill a struct err.
 * See err.h for the contract and the grammar of sentences. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

struct row {
    int code;
    const char *word;
    int http;
    int exit;
};

static const struct row rows[] = {
#define X(e, w, h, x) {e, w, h, x},
    ERR_TABLE(X)
#undef X
};

static int from_errno(int code)
{
    switch (code) {
    case -ENOENT:
        return ERR_NOT_FOUND;
    case -EACCES:
    case -EPERM:
        return ERR_FORBIDDEN;
    case -EEXIST:
        return ERR_CONFLICT;
    case -EINVAL:
        return ERR_BAD_REQUEST;
    case -EMSGSIZE:
    case -EFBIG:
        return ERR_TOO_LARGE;
    case -ENOSPC:
    case -EIO:
    case -EROFS:
        return ERR_STORE;
    case -ECONNREFUSED:
    case -EHOSTUNREACH:
        return ERR_UNREACHABLE;
    case -ETIMEDOUT:
        return ERR_TIMEOUT;
    default:
        return ERR_INTERNAL;
    }
}

static const struct row *err_find(int code)
{
    if (code <= ERR_FIRST || code >= ERR_END)
        code = from_errno(code);
    return &rows[code - ERR_FIRST - 1];
}

static void cut_mark(char *text, size_t cap)
{
    memcpy(text + cap - 4, "...", 4);
}

/* Control characters would let a name forge a second log line. */
static void mask_controls(char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(err->text))
        cut_mark(err->text, sizeof(err->text));
    mask_controls(err->text);
    err->code = code;
    err->message = NULL;
    return code;
}

int err_copy(struct err *err, int code, const struct err *from)
{
    if (!err)
        return code;
    *err = *from;
    err->code = code;
    return code;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    if (!err)
        return ERR_INTERNAL;
    char head[sizeof(err->text)], old[sizeof(err->text)];
    va_list ap;
    va_start(ap, fmt);
    text_vprintf(head, fmt, ap); /* a cut head is still a head */
    va_end(ap);
    memcpy(old, err->text, sizeof(old));
    return err_set(err, err->code, "%s: %s", head, old);
}

const char *err_word(int code)
{
    return err_find(code)->word;
}

int err_http_status(int code)
{
    return err_find(code)->http;
}

int err_exit_status(int code)
{
    return err_find(code)->exit;
}

int err_from_word(const char *word)
{
    for (size_t i = 0; i < array_len(rows); i++)
        if (!strcmp(rows[i].word, word))
            return rows[i].code;
    return ERR_INTERNAL;
}
