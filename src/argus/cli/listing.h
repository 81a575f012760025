/* SPDX-License-Identifier: Apache-2.0 */
/* listing.h - the list in a reply as a table, or as it is for programs. */
#pragma once
#include "argus/cli/opts.h"
#include "argus/show/table.h"

struct cli;

struct listing_opts {
    int output;
    bool utc, watch;
};
#define LISTING_OPTS                                                                               \
    OPT_OUTPUT(struct listing_opts), OPT_UTC(struct listing_opts), OPT_WATCH(struct listing_opts)

struct listing {
    const char *key; /* the reply's member that is the list */
    const struct column *columns;
    size_t n_columns;
    const char *having;    /* items without this member are left out; NULL = none is */
    const char *none;      /* said when no row is left; NULL: nothing is */
    const char *unsettled; /* member of the reply that says that it is not whole yet; NULL = none */
    const char *yet;       /* said then in place of none */
};

/* An answer as the format says. */
void listing_print(struct cli *cli,
                   const struct listing *l,
                   const json_t *answer,
                   int output,
                   bool utc);

/* The ids of these items, one on a line (--quiet). none: said when there is no item; NULL: nothing
 * is. */
void listing_print_ids(struct cli *cli, const json_t *items, const char *none);

/* A whole command, from cli_open() on: GET path and print, again and again with --watch. */
must_check int listing_run(struct cli *cli,
                           const char *path,
                           const struct listing *l,
                           const struct listing_opts *o,
                           struct err *err);
