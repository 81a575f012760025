/* SPDX-License-Identifier: Apache-2.0 */
/* project_set.c - change a project's members, pool, share, ceiling or note; its quota: quota_set.c.
 */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

struct project_set_opts {
    struct strv add, remove;
    const char *pool, *share, *ceiling, *note;
};

#define ROW(type_, member) .type = (type_), .offset = offsetof(struct project_set_opts, member)

static const struct opt OPTS[] = {
    {.name = "add",
     ROW(OPT_LIST, add),
     .arg = "USER",
     .doc = "a further member; may be given again, or with commas"},
    {.name = "remove", ROW(OPT_LIST, remove), .arg = "USER", .doc = "a member who goes"},
    {.name = "pool",
     ROW(OPT_TEXT, pool),
     .arg = "POOL",
     .doc = "of jobs that name none; '' for any"},
    {.name = "share", ROW(OPT_TEXT, share), .arg = "N", .doc = "weight in fair share"},
    {.name = "priority-ceiling",
     ROW(OPT_TEXT, ceiling),
     .arg = "N",
     .doc = "the most that its jobs may ask for"},
    {.name = "note", ROW(OPT_TEXT, note), .arg = "TEXT", .doc = "what it is for"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct project_set_opts *o = opts;
    json_t *body = json_object();
    people_set_list(body, "add", &o->add);
    people_set_list(body, "remove", &o->remove);
    people_set_text(body, "pool", o->pool);
    people_set_text(body, "note", o->note);
    int r = people_set_number(body, "share", o->share, err);
    if (r >= 0)
        r = people_set_number(body, "priority_ceiling", o->ceiling, err);
    if (r >= 0 && !json_object_size(body))
        r = err_set(err, ERR_USAGE, "nothing to change: see 'argus project set --help'");
    if (r >= 0)
        r = cli_open(cli, err);
    if (r >= 0)
        return people_change(cli, "PATCH", "projects", args->v[0], body, "changed", err);
    json_decref(body);
    return r;
}

const struct command cmd_project_set = {
    .name = "project set",
    .args = "NAME",
    .least = 1,
    .most = 1,
    .summary = "change a project's members, pool, share or ceiling",
    .text = "For admins. Jobs that are there keep what they were given.",
    .example = "argus project set rlhf --add carol --remove bob\twho is in it",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct project_set_opts),
    .run = run,
};
