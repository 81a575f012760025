/* SPDX-License-Identifier: Apache-2.0 */
/* user.c - the users: who may do what; and whom the server takes us for. */
#include "argus/noun/noun.h"
#include "argus/people/account.h"
#include "argus/show/member.h"

static const char *const NEW_ROLES[] = {"user", "viewer", "admin", NULL};
static const char *const ROLES[] = {"", "viewer", "user", "admin", NULL};

static const struct opt ADD_OPTS[] = {
    {.name = "role",
     .type = OPT_CHOICE,
     .arg = "ROLE",
     .doc = "user (default), viewer or admin: the most that a token of theirs may have",
     .choices = NEW_ROLES,
     .to = "body:role"},
    {.name = "note",
     .type = OPT_TEXT,
     .arg = "TEXT",
     .doc = "a note: who the user is",
     .to = "body:note"},
};

static const struct opt LS_OPTS[] = {
    OPT_OUTPUT(struct listing_opts),
    OPT_UTC(struct listing_opts),
};

static const struct opt SET_OPTS[] = {
    {.name = "role",
     .type = OPT_CHOICE,
     .arg = "ROLE",
     .doc = "viewer, user or admin; tokens that may do more are cut to it",
     .choices = ROLES,
     .to = "body:role"},
    {.name = "disable",
     .type = OPT_FLAG,
     .doc = "the user's tokens open nothing",
     .to = "body:disabled"},
    {.name = "enable",
     .type = OPT_FLAG,
     .doc = "let the user in again",
     .to = "body:disabled=false"},
    {.name = "note", .type = OPT_TEXT, .arg = "TEXT", .doc = "who that is", .to = "body:note"},
};

static void user_state(struct table *t, const json_t *user, const struct when *w)
{
    bool off = json_get_bool(user, "disabled", false);
    (void)w;
    table_add(t, off ? STYLE_YELLOW : STYLE_PLAIN, off ? "disabled" : "active");
}

static const struct column USERS[] = {
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 12, .key = "name"},
    {.title = "say_role", .key = "role"},
    {.title = "say_state", .draw = user_state},
    {.title = "say_projects", .flags = COLUMN_FLEX, .least = 8, .key = "projects", .as = CELL_LIST},
    {.title = "say_tokens", .flags = COLUMN_RIGHT, .key = "tokens", .as = CELL_NUMBER},
    {.title = "say_jobs", .flags = COLUMN_RIGHT, .rank = 2, .draw = account_jobs},
    {.title = "say_last_use", .rank = 1, .key = "last_use_at", .as = CELL_TIME},
    {.title = "say_note", .flags = COLUMN_FLEX, .least = 8, .rank = 3, .key = "note"},
};

static const struct command USER_COMMANDS[] = {
    {
        .name = "user add",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "make a user",
        .text = "For admins. A name is 1 to 31 of a-z 0-9 _ . - and begins with a letter or a "
                "number. A viewer sees everything and changes nothing; a user sees their own "
                "things and those of the projects that they are a member of.\n"
                "Their directories users/NAME/{datasets,models,code} are made on the shared root.",
        .example =
            "argus user add alice --note 'post-training'\tthen: argus token add --user alice",
        OPTS(ADD_OPTS),
        .ask = {.method = "POST",
                .path = "/v1/users",
                .arg_to = "body:name",
                .done = "say_done_made",
                .subject = "user {name}",
                .next = "argus token add --user {name}"},
    },
    {
        .name = "user ls",
        .args = "",
        .summary = "list the users",
        .text = "Admins and users of role viewer see all users; others see themselves and those "
                "who share a project with them.",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/users", .table = {.key = "users", COLUMNS(USERS)}},
    },
    {
        .name = "user set",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "change a user's role or note, or disable the user",
        .text = "For admins. The last admin cannot stop being one. Jobs of a disabled user go on.",
        .example = "argus user set alice --role admin\tmay do everything\n"
                   "argus user set bob --disable\tno token of bob opens anything",
        OPTS(SET_OPTS),
        .ask = {.method = "PATCH",
                .path = "/v1/users/{}",
                .nothing = "cli_no_change_user",
                .done = "say_done_changed",
                .subject = "user {name}"},
    },
    {
        .name = "user rm",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "remove a user, with all tokens",
        .text = "For admins. Jobs that ended keep the user's name; a user with a job that is not "
                "over cannot be removed. Files on the shared root stay. 'argus user set NAME "
                "--disable' keeps the user and closes the door.",
        .ask = {.method = "DELETE",
                .path = "/v1/users/{}",
                .done = "say_done_removed",
                .subject = "user {name}"},
    },
};

NOUN(user, USER_COMMANDS);

/* ---- whoami ---- */

/* whoami.c - whom the server takes us for. */

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
