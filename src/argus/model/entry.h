/* SPDX-License-Identifier: Apache-2.0 */
/* entry.h - what data sets and models have in common: how they are imported, and their cells and
 * lines. */
#pragma once
#include "argus/cli/ask.h"
#include "argus/cli/cli.h"

/* What an import is asked for. */
struct entry_import {
    const char *name, *revision, *endpoint, *sha256, *project, *pool, *python;
    struct strv include, secrets;
    bool is_common, in_place, follow, wait;
    int output;
};
/* Its options, for the rows of commands. */
enum { ENTRY_IMPORT_OPT_COUNT = 14 };
enum { ENTRY_SHARE_OPT_COUNT = 3 };
extern const struct opt ENTRY_SHARE_OPTS[ENTRY_SHARE_OPT_COUNT];
extern const struct opt ENTRY_IMPORT_OPTS[ENTRY_IMPORT_OPT_COUNT];

/* What sharing does, for the manual: of a data set as of a model. */
#define ENTRY_SHARE_TEXT                                                                           \
    "Users, and the members of projects, see the entry in their lists and name it in "             \
    "JobSpecs, as OWNER:NAME where they have one of that name; they cannot change it. "            \
    "A name may be given before there is such a user or project. --off ends the sharing "          \
    "with those named, or with everybody. Only the owner and admins may do this."

/* The whole command, from cli_open() on; path is that of the collection, o what was given. */
must_check int entry_import(struct cli *cli,
                            const char *path,
                            const char *source,
                            const struct entry_import *o,
                            struct err *err);
/* Show what POST answered, then follow or wait for its job. */
must_check int entry_follow(struct cli *cli,
                            const json_t *answer,
                            int output,
                            bool follow,
                            bool wait,
                            struct err *err);

/* The option of a removal that lists what uses the thing, and what is shown then. */
#define ENTRY_DRY_RUN                                                                              \
    {                                                                                              \
        .name = "dry-run", .type = OPT_FLAG, .doc = "list what uses it, and remove nothing",       \
        .to = "query:dry_run"                                                                      \
    }
void entry_print_users(struct cli *cli, const json_t *plan, const struct seen *seen);

/* Cells. */
void entry_state(struct table *t, const json_t *e, const struct when *w);
void entry_owner(struct table *t, const json_t *e, const struct when *w);
void entry_size(struct table *t, const json_t *e, const struct when *w);
/* One of them, line by line. */
void entry_print(struct cli *cli, const json_t *e, const struct seen *seen);
