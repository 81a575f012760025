/* SPDX-License-Identifier: Apache-2.0 */
/* jobchange.h - one change of a job on the server: stop, hold, release, priority. */
#pragma once
#include "argus/cli/cli.h"

/* POST /v1/jobs/<id><verb> (":hold") with a JSON body (NULL = none); id may be a name or a unique
 * beginning. Prints "id STATE", with its flags, to cli->out. */
must_check int jobchange_one(struct cli *cli,
                             const char *id,
                             const char *verb,
                             const char *body,
                             struct err *err);
/* Each of them, even when one is refused: the first refusal is the result, the others are told.
 * word: "hold". */
must_check int jobchange_all(struct cli *cli,
                             const struct strv *ids,
                             const char *word,
                             const char *verb,
                             const char *body,
                             struct err *err);
