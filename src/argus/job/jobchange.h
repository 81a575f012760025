/* SPDX-License-Identifier: Apache-2.0 */
/* jobchange.h - one change of a job on the server, or of several: stop, hold, retry, archive. */
#pragma once
#include "argus/cli/cli.h"

/* POST /v1/jobs/<id><verb> (":hold") with a JSON body (NULL = none). */
struct jobchange {
    const char *word; /* "hold" */
    const char *verb, *body;
    const char *done; /* the code of what is said then: {1} the id, {2} its priority; NULL */
};
/* id may be a name or a unique beginning. Prints "id STATE", with its flags, to cli->out. */
must_check int jobchange_one(struct cli *cli,
                             const char *id,
                             const struct jobchange *what,
                             struct err *err);
/* One of several; ctx is the caller's. */
typedef int (*jobchange_fn)(struct cli *cli, const char *id, const void *ctx, struct err *err);
/* fn of each, even when one is refused: the first refusal is the result, the others are told. Ends
 * with the first that is interrupted.
 * word: "retry". */
must_check int jobchange_each(struct cli *cli,
                              const struct strv *ids,
                              const char *word,
                              jobchange_fn fn,
                              const void *ctx,
                              struct err *err);
/* Each of them, even when one is refused: the first refusal is the result, the others are told. */
must_check int jobchange_all(struct cli *cli,
                             const struct strv *ids,
                             const struct jobchange *what,
                             struct err *err);
