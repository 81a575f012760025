/* SPDX-License-Identifier: Apache-2.0 */
/* whoami.c - whom the server takes us for. */
#include "argus/cmd/cmd.h"

#include "argus/jobview.h"
#include "base/str.h"

struct whoami_opts {
    int output;
    bool utc;
};

static const struct opt OPTS[] = {OPT_OUTPUT(struct whoami_opts), OPT_UTC(struct whoami_opts)};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct whoami_opts *o = opts;
    _cleanup_(json_unrefp) json_t *me = NULL;
    (void)args;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = client_get(cli->client, "/v1/whoami", &me, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON) {
        cli_emit(cli, me, o->output);
        return 0;
    }
    char expiry[WHEN_TEXT_MAX];
    struct when w = cli_when(cli, o->utc);
    const json_t *token = json_get_object(me, "token");
    usec_t expires = when_get(token, "expires_at");
    (void)fprintf(cli->out, "%s (%s) at %s, token %s, expires %s\n", jobview_str(me, "user"),
                  jobview_str(me, "role"), cli->settings.server, jobview_str(token, "name"),
                  expires ? when_point(&w, expires, expiry) : "never");
    return 0;
}

const struct command cmd_whoami = {
    .name = "whoami",
    .args = "",
    .summary = "show user, role and token",
    .text = "Asks the server whom it takes us for. Exit status 3 when the token is not valid.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct whoami_opts),
    .run = run,
};
