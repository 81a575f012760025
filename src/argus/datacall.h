/* SPDX-License-Identifier: Apache-2.0 */
/* datacall.h - what the commands about data sets and models share: the calls, their tables, and
 * the options of an import. kind is the path's word: "datasets" or "models". */
#pragma once
#include "argus/cli.h"

struct datacall_import {
    const char *name, *revision, *endpoint, *sha256, *project, *pool, *python;
    struct strv include, secrets;
    bool is_common, in_place, follow, wait;
    int output;
};

struct datacall_preparation {
    const char *with, *as, *project, *pool, *python;
    struct strv args, secrets;
    bool is_common, follow, wait;
    int output;
};

#define DATACALL_ROW(type_, member)                                                                \
    .type = (type_), .offset = offsetof(struct datacall_import, member)
#define DATACALL_IMPORT_OPTS                                                                       \
    {.name = "name",                                                                               \
     DATACALL_ROW(OPT_TEXT, name),                                                                 \
     .arg = "NAME",                                                                                \
     .doc = "what it will be called"},                                                             \
        {.name = "revision",                                                                       \
         DATACALL_ROW(OPT_TEXT, revision),                                                         \
         .arg = "REV",                                                                             \
         .doc = "branch, tag or commit of hf://; it is pinned to its commit [main]"},              \
        {.name = "endpoint",                                                                       \
         DATACALL_ROW(OPT_TEXT, endpoint),                                                         \
         .arg = "URL",                                                                             \
         .doc = "the Hugging Face mirror, or S3"},                                                 \
        {.name = "sha256",                                                                         \
         DATACALL_ROW(OPT_TEXT, sha256),                                                           \
         .arg = "HEX",                                                                             \
         .doc = "of the one file, where the source does not tell it"},                             \
        {.name = "include",                                                                        \
         DATACALL_ROW(OPT_LIST, include),                                                          \
         .arg = "PATTERN",                                                                         \
         .doc = "only files like this, *.parquet; may be given again"},                            \
        {.name = "secret",                                                                         \
         DATACALL_ROW(OPT_LIST, secrets),                                                          \
         .arg = "NAME",                                                                            \
         .doc = "a stored secret that the source needs: HF_TOKEN, AWS_SECRET_ACCESS_KEY …"},       \
        {.name = "project",                                                                        \
         DATACALL_ROW(OPT_TEXT, project),                                                          \
         .arg = "NAME",                                                                            \
         .doc = "of the job; its members see what is imported"},                                   \
        {.name = "pool",                                                                           \
         DATACALL_ROW(OPT_TEXT, pool),                                                             \
         .arg = "POOL",                                                                            \
         .doc = "where the job runs"},                                                             \
        {.name = "python",                                                                         \
         DATACALL_ROW(OPT_TEXT, python),                                                           \
         .arg = "PATH",                                                                            \
         .doc = "Python on the shared root that has pyarrow, if the nodes' has none"},             \
        {.name = "common",                                                                         \
         DATACALL_ROW(OPT_FLAG, is_common),                                                        \
         .doc = "for everybody, below common/"},                                                   \
        {.name = "in-place",                                                                       \
         DATACALL_ROW(OPT_FLAG, in_place),                                                         \
         .doc = "leave a path where it is: only look at it"},                                      \
        {.letter = 'f',                                                                            \
         .name = "follow",                                                                         \
         DATACALL_ROW(OPT_FLAG, follow),                                                           \
         .doc = "print the job's log to its end"},                                                 \
        {.name = "wait", DATACALL_ROW(OPT_FLAG, wait), .doc = "return when the job has ended"},    \
        OPT_OUTPUT(struct datacall_import)

/* The whole command, from cli_open() on. */
must_check int datacall_import(struct cli *cli,
                               const char *kind,
                               const char *source,
                               const struct datacall_import *o,
                               struct err *err);
must_check int datacall_prepare(struct cli *cli,
                                const char *name,
                                const struct datacall_preparation *o,
                                struct err *err);
must_check int datacall_show(struct cli *cli,
                             const char *kind,
                             const char *name,
                             int output,
                             struct err *err);
must_check int datacall_remove(struct cli *cli,
                               const char *kind,
                               const char *name,
                               struct err *err);

/* Rows of a table, see listing.h. */
struct table;
struct when;
void datacall_dataset_row(struct table *t, const json_t *e, const struct when *w);
void datacall_model_row(struct table *t, const json_t *e, const struct when *w);

enum { DATACALL_SIZE_MAX = 32 };
/* "1.5 GiB". Returns text. */
const char *datacall_size(int64_t bytes, char text[static DATACALL_SIZE_MAX]);
