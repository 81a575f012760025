/* SPDX-License-Identifier: Apache-2.0 */
/* ckptcall.h - what the commands about checkpoints share: jobs of a project or a user in place of
 * one job. */
#pragma once
#include "argus/cli.h"

struct ckptcall_scope {
    const char *project, *user; /* NULL: not given */
};
#define CKPTCALL_SCOPE_OPTS(opts_struct)                                                           \
    {.name = "project",                                                                            \
     .type = OPT_TEXT,                                                                             \
     .offset = offsetof(opts_struct, scope.project),                                               \
     .arg = "NAME",                                                                                \
     .doc = "all jobs of this project, in place of ID"},                                           \
    {                                                                                              \
        .name = "user", .type = OPT_TEXT, .offset = offsetof(opts_struct, scope.user),             \
        .arg = "NAME", .doc = "all jobs of this user, in place of ID"                              \
    }

/* Either ID or one of them: ERR_USAGE. */
must_check int ckptcall_check_scope(const struct ckptcall_scope *s,
                                    const struct strv *args,
                                    struct err *err);
char *ckptcall_path(const struct ckptcall_scope *s); /* of the list of jobs; yours */
/* The jobs of a list: ID, or those of the scope that have checkpoints. */
must_check int ckptcall_find(struct cli *cli,
                             const struct ckptcall_scope *s,
                             const struct strv *args,
                             struct strv *ret,
                             struct err *err);

struct ckptcall_gone {
    size_t n;
    int64_t bytes;
    json_t *answers; /* the server's, of each job */
};
/* Of one job after the other. A dry run says the plan, and counts what would go. Of several one
 * that may only be seen is left out, which the dry run says. */
must_check int ckptcall_gc(struct cli *cli,
                           const struct strv *jobs,
                           bool dry_run,
                           struct ckptcall_gone *ret,
                           struct err *err);
