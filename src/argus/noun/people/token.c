/* SPDX-License-Identifier: Apache-2.0 */
/* token.c - tokens: what opens the server to a program or person. The text of one is printed once,
 * alone, when it is made. And sessions, which a browser begins with one. */
#include "argus/noun/noun.h"
#include "argus/show/member.h"

static const char *const ROLES[] = {"", "viewer", "user", "admin", NULL};

static const struct opt ADD_OPTS[] = {
    {.name = "user",
     .type = OPT_TEXT,
     .arg = "NAME",
     .doc = "user that the token is for (admins); you if not given",
     .to = "body:user"},
    {.name = "name",
     .type = OPT_TEXT,
     .arg = "TEXT",
     .doc = "what the token is for: laptop, ci …",
     .to = "body:name"},
    {.name = "role",
     .type = OPT_CHOICE,
     .arg = "ROLE",
     .doc = "viewer, user or admin; as much as may be if not given",
     .choices = ROLES,
     .to = "body:role"},
    {.name = "expires",
     .type = OPT_SPAN,
     .arg = "SPAN",
     .doc = "30d, 12h …; never if not given",
     .to = "body:expires"},
    OPT_OUTPUT(struct listing_opts),
};

static const struct opt LS_OPTS[] = {
    {.letter = 'a',
     .name = "all",
     .type = OPT_FLAG,
     .doc = "list everybody's (admins)",
     .to = "query:all"},
    {.name = "user",
     .type = OPT_TEXT,
     .arg = "NAME",
     .doc = "list those of this user (admins)",
     .to = "query:user"},
    {.name = "ended",
     .type = OPT_FLAG,
     .doc = "list also tokens that expired or were revoked in the last 30 days",
     .to = "query:ended"},
    OPT_OUTPUT(struct listing_opts),
    OPT_UTC(struct listing_opts),
};

static void token_state(struct table *t, const json_t *token, const struct when *w)
{
    const char *state = member_str(token, "state");
    (void)w;
    table_add(t, str_eq(state, "works") ? STYLE_PLAIN : STYLE_YELLOW, state);
}

static const struct column TOKENS[] = {
    {.title = "say_id", .key = "id"},
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 6, .key = "name"},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 6, .key = "user"},
    {.title = "say_role", .key = "role"},
    {.title = "say_state", .draw = token_state},
    {.title = "say_expires", .key = "expires_at", .as = CELL_TIME},
    {.title = "say_last_use", .rank = 1, .key = "last_use_at", .as = CELL_TIME},
    {.title = "say_made", .rank = 2, .key = "created_at", .as = CELL_TIME},
};

static void token_print_new(struct cli *cli, const json_t *token, const struct seen *seen)
{
    (void)seen;
    (void)fprintf(cli->out, "%s\n", member_str(token, "token"));
    cli_talk(cli, "token %s of %s (%s) is shown this once: argus login URL --token TOKEN",
             member_str(token, "id"), member_str(token, "user"), member_str(token, "role"));
}

static const struct opt SESSION_LS_OPTS[] = {
    {.letter = 'a',
     .name = "all",
     .type = OPT_FLAG,
     .doc = "everybody's (admins)",
     .to = "query:all"},
    {.name = "user",
     .type = OPT_TEXT,
     .arg = "NAME",
     .doc = "those of this user (admins)",
     .to = "query:user"},
    OPT_OUTPUT(struct listing_opts),
    OPT_UTC(struct listing_opts),
};

static const struct column SESSIONS[] = {
    {.title = "say_id", .key = "id"},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 6, .key = "user"},
    {.title = "say_made", .key = "created_at", .as = CELL_TIME},
    {.title = "say_last_use", .key = "last_use_at", .as = CELL_TIME},
    {.title = "say_expires", .rank = 1, .key = "expires_at", .as = CELL_TIME},
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 6, .rank = 2, .key = "agent"},
};

static const struct command TOKEN_COMMANDS[] = {
    {
        .name = "token add",
        .args = "",
        .summary = "make a token, shown once",
        .text = "Prints the token alone to stdout. A token may never do more than its user, nor "
                "more than the token with which you make it.",
        .example = "argus token add --name ci --role viewer --expires 90d\tone of your own\n"
                   "TOKEN=$(argus token add --user alice)\tthe first one of a new user",
        OPTS(ADD_OPTS),
        .ask = {.method = "POST", .path = "/v1/tokens", .print = token_print_new},
    },
    {
        .name = "token ls",
        .args = "",
        .summary = "list tokens, with their last use",
        .text = "Lists your own tokens, or with --all everybody's. The text of a token is never "
                "shown again. The last use is noted every five minutes.",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/tokens", .table = {.key = "tokens", COLUMNS(TOKENS)}},
    },
    {
        .name = "token revoke",
        .args = "ID…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "revoke tokens",
        .text = "Name tokens by the ids of 'argus token ls'. You may revoke your own, an admin "
                "anybody's; the last token of an admin stays.",
        .example = "argus token revoke 3f2a9c01b7de\tit opens nothing from now on",
        .ask = {.method = "DELETE",
                .path = "/v1/tokens/{}",
                .done = "say_done_revoked",
                .subject = "token {id}"},
    },
    {
        .name = "session ls",
        .args = "",
        .summary = "list the logins of browsers that have not ended",
        .text = "Lists your own logins, or with --all everybody's, with what each browser says of "
                "itself. A session ends with its token, after session.idle without use, and after "
                "session.longest.",
        OPTS(SESSION_LS_OPTS),
        .ask = {.path = "/v1/sessions", .table = {.key = "sessions", COLUMNS(SESSIONS)}},
    },
    {
        .name = "session end",
        .args = "ID…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "log browsers out",
        .text = "Name logins by the ids of 'argus session ls'. You may end your own, an admin "
                "anybody's.",
        .example = "argus session end 3f2a9c01b7de\tthat browser is logged out",
        .ask = {.method = "DELETE",
                .path = "/v1/sessions/{}",
                .done = "say_done_revoked",
                .subject = "session {id}"},
    },
};

NOUN(token, TOKEN_COMMANDS);
