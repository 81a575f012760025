/* SPDX-License-Identifier: Apache-2.0 */
/* submission.h - a spec on its way to the server: read, changed by --set, posted
 * exactly once, and what the server says about it with its place in the file. */
#pragma once
#include "argus/cli/cli.h"

enum { SUBMISSION_MAX = 16 << 20 };

struct submission {
    const char *name; /* of the file, as the user wrote it; "stdin" for "-" */
    struct buf text;  /* as the user wrote it */
    struct buf sent;  /* with --set applied; empty without */
    char key[33];     /* Idempotency-Key: however often it is sent, it is one job */
};

/* What is laid over the file. */
struct submission_wish {
    const char *preset; /* NULL: none, or the file names one */
    struct strv set;    /* "key=value" */
};

/* file NULL: there is none, the preset is all. */
must_check int submission_read(struct submission *s,
                               const char *file,
                               const struct submission_wish *wish,
                               struct err *err);
/* One that the command itself wrote; name says so to people. Borrowed; text is copied. */
must_check int submission_compose(struct submission *s,
                                  const char *name,
                                  const char *text,
                                  struct err *err);
void submission_release(struct submission *s);

/* POST it. A refusal prints every problem to stderr and is the error. *ret is the answer. */
must_check int submission_post(struct submission *s,
                               struct cli *cli,
                               const char *path,
                               json_t **ret,
                               struct err *err);
/* The same with PUT, of what is no spec. */
must_check int submission_put(struct submission *s,
                              struct cli *cli,
                              const char *path,
                              json_t **ret,
                              struct err *err);
