/* SPDX-License-Identifier: Apache-2.0 */
/* whoami.c - whom the server takes us for. */
#include "argus/noun/noun.h"
#include "argus/show/member.h"

static const struct opt WHOAMI_OPTS[] = {
    OPT_OUTPUT(struct listing_opts),
    OPT_UTC(struct listing_opts),
};

static void whoami_print(struct cli *cli, const json_t *me, const struct seen *seen)
{
    char expiry[WHEN_TEXT_MAX];
    const json_t *token = json_get_object(me, "token");
    usec_t expires = when_get(token, "expires_at");
    (void)fprintf(cli->out, "%s (%s) at %s, token %s, expires %s\n", member_str(me, "user"),
                  member_str(me, "role"), cli->settings.server, member_str(token, "name"),
                  expires ? when_point(&seen->when, expires, expiry) : "never");
}

static const struct command WHOAMI_COMMANDS[] = {
    {
        .name = "whoami",
        .args = "",
        .summary = "show user, role and token",
        .text = "Asks the server whose token this is. Exit status 3 when the token is not valid.",
        OPTS(WHOAMI_OPTS),
        .ask = {.path = "/v1/whoami", .print = whoami_print},
    },
};

NOUN(whoami, WHOAMI_COMMANDS);
