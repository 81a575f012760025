/* SPDX-License-Identifier: Apache-2.0 */
/* token_revoke.c - a token that opens nothing any more. */
#include "argus/cmd/cmd.h"

#include "argus/jobview.h"
#include "argus/people.h"

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    (void)opts;
    int r = cli_open(cli, err);
    for (size_t i = 0; r >= 0 && i < args->n; i++) {
        _cleanup_(json_unrefp) json_t *answer = NULL;
        r = people_call(cli, "DELETE", "tokens", args->v[i], "", NULL, &answer, err);
        if (r >= 0)
            (void)fprintf(cli->out, "token %s revoked\n", jobview_str(answer, "id"));
    }
    return r;
}

const struct command cmd_token_revoke = {
    .name = "token revoke",
    .args = "ID…",
    .least = 1,
    .most = ARGS_ANY,
    .summary = "revoke tokens",
    .text = "By their ids, see 'argus token ls'. Your own ones, or as an admin anybody's; the last "
            "token of an admin stays.",
    .example = "argus token revoke 3f2a9c01b7de\tit opens nothing from now on",
    .run = run,
};
