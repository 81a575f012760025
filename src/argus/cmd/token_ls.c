/* SPDX-License-Identifier: Apache-2.0 */
/* token_ls.c - the tokens there are, without their texts. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

struct token_ls_opts {
    int output;
    bool utc, all, ended;
    const char *user;
};

static const struct opt OPTS[] = {
    {.letter = 'a',
     .name = "all",
     .type = OPT_FLAG,
     .offset = offsetof(struct token_ls_opts, all),
     .doc = "everybody's (admins)"},
    {.name = "user",
     .type = OPT_TEXT,
     .offset = offsetof(struct token_ls_opts, user),
     .arg = "NAME",
     .doc = "this user's (admins)"},
    {.name = "ended",
     .type = OPT_FLAG,
     .offset = offsetof(struct token_ls_opts, ended),
     .doc = "also those that expired or were revoked in the last 30 days"},
    OPT_OUTPUT(struct token_ls_opts),
    OPT_UTC(struct token_ls_opts),
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct token_ls_opts *o = opts;
    _cleanup_(buf_release) struct buf path = BUF_INIT(4096);
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    (void)buf_adds(&path, "/v1/tokens"); /* too long a name is refused by the server */
    url_query(&path, "user", o->user);
    url_query(&path, "all", o->all ? "1" : NULL);
    url_query(&path, "ended", o->ended ? "1" : NULL);
    int r = cli_open(cli, err);
    if (r >= 0)
        r = client_get(cli->client, buf_str(&path), &answer, err);
    if (r >= 0)
        people_print_tokens(cli, answer, o->output, o->utc);
    return r;
}

const struct command cmd_token_ls = {
    .name = "token ls",
    .args = "",
    .summary = "list tokens, with their last use",
    .text =
        "Your own ones, or with --all everybody's. The text of a token is never shown again. The "
        "last use is noted every five minutes.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct token_ls_opts),
    .run = run,
};
