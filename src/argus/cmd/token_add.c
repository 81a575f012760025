/* SPDX-License-Identifier: Apache-2.0 */
/* token_add.c - make a token: its text alone goes to stdout, the only time it is seen. */
#include "argus/cmd/cmd.h"

#include <stdlib.h>

#include "argus/jobview.h"
#include "argus/people.h"

static const char *const ROLES[] = {"", "viewer", "user", "admin", NULL};

struct token_add_opts {
    const char *user, *name;
    int role, output;
    usec_t expires;
};

static const struct opt OPTS[] = {
    {.name = "user",
     .type = OPT_TEXT,
     .offset = offsetof(struct token_add_opts, user),
     .arg = "NAME",
     .doc = "whose (admins); your own if not given"},
    {.name = "name",
     .type = OPT_TEXT,
     .offset = offsetof(struct token_add_opts, name),
     .arg = "TEXT",
     .doc = "what it is for: laptop, ci …"},
    {.name = "role",
     .type = OPT_CHOICE,
     .offset = offsetof(struct token_add_opts, role),
     .arg = "ROLE",
     .doc = "viewer, user or admin; as much as may be if not given",
     .choices = ROLES},
    {.name = "expires",
     .type = OPT_SPAN,
     .offset = offsetof(struct token_add_opts, expires),
     .arg = "SPAN",
     .doc = "30d, 12h …; never if not given"},
    OPT_OUTPUT(struct token_add_opts),
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct token_add_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    int r = cli_open(cli, err);
    if (r < 0)
        return r;
    json_t *body = json_object();
    people_set_text(body, "user", o->user);
    people_set_text(body, "name", o->name);
    people_set_text(body, "role", o->role ? ROLES[o->role] : NULL);
    char *span =
        o->expires ? xasprintf("%llus", (unsigned long long)(o->expires / USEC_SEC)) : NULL;
    people_set_text(body, "expires", span);
    free(span);
    r = people_call(cli, "POST", "tokens", NULL, "", body, &answer, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON) {
        cli_emit(cli, answer, o->output);
        return 0;
    }
    (void)fprintf(cli->out, "%s\n", jobview_str(answer, "token"));
    cli_talk(cli, "token %s of %s (%s) is shown this once: argus login URL --token TOKEN",
             jobview_str(answer, "id"), jobview_str(answer, "user"), jobview_str(answer, "role"));
    return 0;
}

const struct command cmd_token_add = {
    .name = "token add",
    .args = "",
    .summary = "make a token, shown once",
    .text =
        "Prints the token alone to stdout. A token never may more than its user, nor than the one "
        "in your hand.",
    .example = "argus token add --name ci --role viewer --expires 90d\tone of your own\n"
               "TOKEN=$(argus token add --user alice)\tthe first one of a new user",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct token_add_opts),
    .run = run,
};
