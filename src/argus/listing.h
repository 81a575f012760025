/* SPDX-License-Identifier: Apache-2.0 */
/* listing.h - the commands that ask for one list and show it as a table: once, or again and again.
 */
#pragma once
#include "argus/cli.h"
#include "argus/msg.h"
#include "argus/table.h"

struct listing_opts {
    int output;
    bool utc, watch;
};
#define LISTING_OPTS                                                                               \
    OPT_OUTPUT(struct listing_opts), OPT_UTC(struct listing_opts), OPT_WATCH(struct listing_opts)

struct listing {
    const char *path, *key; /* GET path has the list under key */
    const struct column *columns;
    size_t n_columns;
    void (*add_row)(struct table *t, const json_t *item, const struct when *w); /* or none */
    enum msg_id none;                                                           /* no row */
};
#define LISTING_SILENT MSG_COUNT /* none: nothing is said */

/* An answer as the format says. */
void listing_print(struct cli *cli,
                   const struct listing *l,
                   const json_t *answer,
                   int output,
                   bool utc);

/* The whole command, from cli_open() on. */
must_check int listing_run(struct cli *cli,
                           const struct listing *l,
                           const struct listing_opts *o,
                           const struct strv *args,
                           struct err *err);
