/* SPDX-License-Identifier: Apache-2.0 */
/* user_set.c - change what a user may do, or keep the user out without removing anything. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

static const char *const ROLES[] = {"", "viewer", "user", "admin", NULL};

struct user_set_opts {
    int role;
    bool disable, enable;
    const char *note;
};

static const struct opt OPTS[] = {
    {.name = "role",
     .type = OPT_CHOICE,
     .offset = offsetof(struct user_set_opts, role),
     .arg = "ROLE",
     .doc = "viewer, user or admin; tokens that may do more are cut to it",
     .choices = ROLES},
    {.name = "disable",
     .type = OPT_FLAG,
     .offset = offsetof(struct user_set_opts, disable),
     .doc = "the user's tokens open nothing"},
    {.name = "enable",
     .type = OPT_FLAG,
     .offset = offsetof(struct user_set_opts, enable),
     .doc = "they open again"},
    {.name = "note",
     .type = OPT_TEXT,
     .offset = offsetof(struct user_set_opts, note),
     .arg = "TEXT",
     .doc = "who that is"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct user_set_opts *o = opts;
    if (o->disable && o->enable)
        return err_set(err, ERR_USAGE, "--disable and --enable do not go together");
    if (!o->role && !o->disable && !o->enable && !o->note)
        return err_set(err, ERR_USAGE,
                       "nothing to change: give --role, --disable, --enable or --note");
    int r = cli_open(cli, err);
    if (r < 0)
        return r;
    json_t *body = json_object();
    people_set_text(body, "role", o->role ? ROLES[o->role] : NULL);
    people_set_text(body, "note", o->note);
    if (o->disable || o->enable)
        (void)json_object_set_new(body, "disabled", json_boolean(o->disable)); /* out of memory */
    return people_change(cli, "PATCH", "users", args->v[0], body, "changed", err);
}

const struct command cmd_user_set = {
    .name = "user set",
    .args = "NAME",
    .least = 1,
    .most = 1,
    .summary = "change a user's role or note, or disable the user",
    .text = "For admins. The last admin stays one. Jobs of a disabled user go on.",
    .example = "argus user set alice --role admin\tmay do everything\n"
               "argus user set bob --disable\tno token of bob opens anything",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct user_set_opts),
    .run = run,
};
