/* SPDX-License-Identifier: Apache-2.0 */
/* project_add.c - make a project: its members, the pool and share of its jobs, their ceiling. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

struct project_add_opts {
    struct strv members;
    const char *pool, *share, *ceiling, *note;
};

#define ROW(type_, member) .type = (type_), .offset = offsetof(struct project_add_opts, member)

static const struct opt OPTS[] = {
    {.name = "member",
     ROW(OPT_LIST, members),
     .arg = "USER",
     .doc = "a user of it; may be given again, or with commas"},
    {.name = "pool", ROW(OPT_TEXT, pool), .arg = "POOL", .doc = "of jobs that name none"},
    {.name = "share", ROW(OPT_TEXT, share), .arg = "N", .doc = "weight in fair share (1)"},
    {.name = "priority-ceiling",
     ROW(OPT_TEXT, ceiling),
     .arg = "N",
     .doc = "the most that its jobs may ask for (100)"},
    {.name = "note", ROW(OPT_TEXT, note), .arg = "TEXT", .doc = "what it is for"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct project_add_opts *o = opts;
    json_t *body = json_pack("{s:s}", "name", args->v[0]);
    people_set_list(body, "members", &o->members);
    people_set_text(body, "pool", o->pool);
    people_set_text(body, "note", o->note);
    int r = people_set_number(body, "share", o->share, err);
    if (r >= 0)
        r = people_set_number(body, "priority_ceiling", o->ceiling, err);
    if (r >= 0)
        r = cli_open(cli, err);
    if (r >= 0)
        return people_change(cli, "POST", "projects", args->v[0], body, "made", err);
    json_decref(body);
    return r;
}

const struct command cmd_project_add = {
    .name = "project add",
    .args = "NAME",
    .least = 1,
    .most = 1,
    .summary = "make a project",
    .text =
        "For admins. Members submit to it with 'project: NAME' in the JobSpec and see each other's "
        "jobs. From the first project on, jobs may only name projects that were made, and "
        "'default', which is everybody's.",
    .example = "argus project add rlhf --member alice --member bob\ttwo people who share\n"
               "argus quota set --project rlhf --guaranteed 8 --gpus 16\tand what they may hold",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct project_add_opts),
    .run = run,
};
