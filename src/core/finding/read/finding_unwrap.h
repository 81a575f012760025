/* SPDX-License-Identifier: Apache-2.0 */
/* finding_unwrap.h - a log out of what carries whole lines of it: containers and journals write
 * each line into an object of JSON, and Windows writes UTF-16.
 *
 * It is taken off before any rule looks, so that a rule says the same of a line in whatever it
 * came. Which form a log has is decided once, by its first bytes. What stands before a line is
 * finding_carrier.h's. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
    UNWRAP_HEAD = 4096,        /* bytes that decide */
    UNWRAP_LINE_MAX = 1 << 20, /* a longer line is passed on as it is */
};

enum unwrap_form {
    UNWRAP_UNSEEN, /* not decided yet */
    UNWRAP_PLAIN,
    UNWRAP_JSON,
    UNWRAP_UTF16LE,
    UNWRAP_UTF16BE,
};

/* Text of whole lines, and what of the source it stands in: these bytes and ends of line. */
struct unwrapped {
    const char *text;
    size_t n;
    uint64_t bytes, lines;
};
typedef void unwrap_f(const struct unwrapped *u, void *arg);

struct unwrap {
    enum unwrap_form form;
    struct buf head;       /* while UNWRAP_UNSEEN */
    struct buf line;       /* what came of a line that has no end yet */
    struct buf text;       /* of lines that go on in the next object */
    uint64_t bytes, lines; /* of the source, which these hold */
    unsigned half, high;   /* UTF-16: a byte (and 0x100), the first of two units; 0: none */
};

void unwrap_init(struct unwrap *u);
void unwrap_release(struct unwrap *u);

/* The form of a log that begins so; never UNWRAP_UNSEEN. */
enum unwrap_form unwrap_form_of(const char *p, size_t n);
/* These first bytes are of a text, in whatever encoding, and of no other kind of file. */
bool unwrap_is_text(const char *p, size_t n);

/* The next bytes of a log that is not plain; each line that is whole is told. */
void unwrap_feed(struct unwrap *u, const char *p, size_t n, unwrap_f *told, void *arg);
/* What is left at the end, or before another place of the log follows. */
void unwrap_end(struct unwrap *u, unwrap_f *told, void *arg);
