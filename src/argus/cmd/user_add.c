/* SPDX-License-Identifier: Apache-2.0 */
/* user_add.c - make a user; the token to come in with is made by token_add.c. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

static const char *const ROLES[] = {"user", "viewer", "admin", NULL};

struct user_add_opts {
    int role;
    const char *note;
};

static const struct opt OPTS[] = {
    {.name = "role",
     .type = OPT_CHOICE,
     .offset = offsetof(struct user_add_opts, role),
     .arg = "ROLE",
     .doc = "user (default), viewer or admin: the most that a token of theirs may have",
     .choices = ROLES},
    {.name = "note",
     .type = OPT_TEXT,
     .offset = offsetof(struct user_add_opts, note),
     .arg = "TEXT",
     .doc = "who that is"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct user_add_opts *o = opts;
    int r = cli_open(cli, err);
    if (r < 0)
        return r;
    json_t *body = json_pack("{s:s, s:s}", "name", args->v[0], "role", ROLES[o->role]);
    people_set_text(body, "note", o->note);
    r = people_change(cli, "POST", "users", args->v[0], body, "made", err);
    if (r >= 0)
        cli_talk(cli, "next: argus token add --user %s", args->v[0]);
    return r;
}

const struct command cmd_user_add = {
    .name = "user add",
    .args = "NAME",
    .least = 1,
    .most = 1,
    .summary = "make a user",
    .text =
        "For admins. A name is 1 to 31 of a-z 0-9 _ . - and begins with a letter or a number. A "
        "viewer sees everything and changes nothing; a user sees what is their own and what "
        "the projects do that they are members of.\n"
        "Their directories users/NAME/{datasets,models,code} are made on the shared root.",
    .example = "argus user add alice --note 'post-training'\tthen: argus token add --user alice",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct user_add_opts),
    .run = run,
};
