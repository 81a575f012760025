/* SPDX-License-Identifier: Apache-2.0 */
/* opts.h - options of one command as a table of rows; --help, man pages and
 * completion are made from the same rows that parse the command line.
 *
 * A row says where in the command's own struct the value lands, or where in its request it goes.
 * Zeroed memory is "nothing given". Texts are borrowed from argv. "--" ends the options; "-" alone
 * is an argument. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strv.h"

enum opt_type {
    OPT_FLAG,   /* bool */
    OPT_TEXT,   /* const char *, the last one counts */
    OPT_NUMBER, /* int64_t >= 0 */
    OPT_COUNT,  /* int64_t >= 1: things are counted from 1 */
    OPT_SPAN,   /* usec_t: 90s 30m 12h 2d */
    OPT_LIST,   /* struct strv, may be given again and again */
    OPT_CHOICE, /* int: index into choices */
    OPT_NAMES,  /* struct strv as OPT_LIST; in a request commas part its names */
    OPT_LIMIT,  /* const char *; in a request a number >= 0, "none" and "-" are left out */
};

struct opt {
    char letter; /* 0 = none */
    const char *name;
    enum opt_type type;
    size_t offset;
    const char *arg; /* what --help calls the value; NULL for a flag */
    const char *doc;
    const char *const *choices; /* NULL-terminated; "" first stands for not given */
    const char *to;             /* where the value goes in the command's request, see ask.h */
    const char *need;           /* what is said when it is not given; NULL = it may be left out */
};

/* Parse argv[0..argc) into *out and args. ERR_USAGE with a sentence and, for an unknown
 * option, the nearest one. *ret_help is set when -h or --help is among them. */
must_check int opts_parse(const struct opt *opts,
                          size_t n,
                          int argc,
                          char **argv,
                          void *out,
                          struct strv *args,
                          bool *ret_help,
                          struct err *err);

/* Something was given for it. */
bool opt_is_given(const struct opt *o, const void *values);
/* Where its value lies. */
const void *opt_at(const struct opt *o, const void *values);

/* For commands without a struct of their own: a copy of the rows with places that fit each, yours
 * to free(); *ret_size is how much memory they need. */
struct opt *opts_lay_out(const struct opt *opts, size_t n, size_t *ret_size);

/* Free the lists in *out. */
void opts_release(const struct opt *opts, size_t n, void *out);
