/* SPDX-License-Identifier: Apache-2.0 */
/* reported.h - reports that the server writes, in Markdown or HTML and in either language, and the
 * options that choose. */
#pragma once
#include "argus/cli/cli.h"

/* Members of a command's own options, zeroed: nothing was given. */
struct reported_opts {
    int form;     /* 1 md, 2 html */
    int language; /* 1 en, 2 zh */
};
extern const char *const reported_forms[], *const reported_languages[];
#define OPT_REPORTED(type_, member_)                                                               \
    {.name = "format",                                                                             \
     .type = OPT_CHOICE,                                                                           \
     .offset = offsetof(type_, member_.form),                                                      \
     .arg = "FORMAT",                                                                              \
     .doc = "md (Markdown) or html: the report that the server writes",                            \
     .choices = reported_forms},                                                                   \
    {                                                                                              \
        .name = "language", .type = OPT_CHOICE, .offset = offsetof(type_, member_.language),       \
        .arg = "LANGUAGE", .doc = "en or zh: that of the terminal if not given",                   \
        .choices = reported_languages                                                              \
    }

/* Prints the report at `path` ("/v1/incidents/{}/report") of `name`; Markdown where no form was
 * given. Sentences of jobs and drivers stand in it: no byte of theirs moves a cursor. */
must_check int reported_print(struct cli *cli,
                              const char *path,
                              const char *name,
                              const struct reported_opts *o,
                              struct err *err);
