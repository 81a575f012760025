/* SPDX-License-Identifier: Apache-2.0 */
/* quota_set.c - what a project or user may hold: the limits that are given change, the others
 * stay. */
#include "argus/cmd/cmd.h"

#include "argus/people.h"

struct quota_set_opts {
    const char *user, *project;
    const char *gpus, *guaranteed, *cpus, *memory, *running, *queued, *hours, *checkpoints,
        *storage;
};

#define ROW(member) .type = OPT_TEXT, .offset = offsetof(struct quota_set_opts, member)

static const struct opt OPTS[] = {
    {.name = "project", ROW(project), .arg = "NAME", .doc = "of this project"},
    {.name = "user", ROW(user), .arg = "NAME", .doc = "of this user"},
    {.name = "gpus", ROW(gpus), .arg = "N", .doc = "GPUs at most, borrowed ones too"},
    {.name = "guaranteed",
     ROW(guaranteed),
     .arg = "N",
     .doc = "GPUs that others give back when these jobs ask for them"},
    {.name = "cpus", ROW(cpus), .arg = "N", .doc = "CPUs at most"},
    {.name = "memory", ROW(memory), .arg = "GIB", .doc = "GiB of memory at most, as jobs state it"},
    {.name = "running", ROW(running), .arg = "N", .doc = "jobs that run at the same time"},
    {.name = "queued", ROW(queued), .arg = "N", .doc = "jobs that wait"},
    {.name = "gpu-hours", ROW(hours), .arg = "N", .doc = "GPU-hours in a calendar month (UTC)"},
    {.name = "checkpoints", ROW(checkpoints), .arg = "GIB", .doc = "GiB of checkpoints at most"},
    {.name = "storage",
     ROW(storage),
     .arg = "GIB",
     .doc = "GiB of snapshots, data sets and models at most"},
};

static int set_all(json_t *body, const struct quota_set_opts *o, struct err *err)
{
    const struct {
        const char *key, *value;
    } all[] = {
        {"gpus_ceiling", o->gpus}, {"gpus_guaranteed", o->guaranteed}, {"cpus", o->cpus},
        {"memory", o->memory},     {"checkpoints", o->checkpoints},    {"running", o->running},
        {"queued", o->queued},     {"gpu_hours_per_month", o->hours},  {"storage", o->storage}};
    bool given = false;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < array_len(all); i++) {
        given |= all[i].value != NULL;
        r = people_set_number(body, all[i].key, all[i].value, err);
    }
    return r < 0 || given ? r : err_set(err, ERR_USAGE, "no limit is given: see --help");
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct quota_set_opts *o = opts;
    _cleanup_(json_unrefp) json_t *now = NULL, *answer = NULL;
    const char *kind = o->user ? "users" : "projects", *name = o->user ? o->user : o->project;
    (void)args;
    if (!o->user == !o->project)
        return err_set(err, ERR_USAGE, "give --project NAME or --user NAME");
    int r = cli_open(cli, err);
    if (r >= 0)
        r = people_call(cli, "GET", kind, name, "/quota", NULL, &now, err);
    if (r < 0)
        return r;
    json_t *body = json_incref(json_object_get(now, "quota"));
    r = set_all(body, o, err);
    if (r < 0) {
        json_decref(body);
        return r;
    }
    r = people_call(cli, "PUT", kind, name, "/quota", body, &answer, err);
    if (r >= 0)
        people_print_account(cli, answer);
    return r;
}

const struct command cmd_quota_set = {
    .name = "quota set",
    .args = "",
    .summary = "set what a project or user may hold",
    .text = "For admins. Limits that are not given stay; 'none' takes one away. What is held "
            "already is "
            "not taken, but for GPUs borrowed beyond a guarantee: these come back from jobs that "
            "can be restarted when their owner asks for them.",
    .example = "argus quota set --project rlhf --guaranteed 8 --gpus 16\tup to 16, 8 for sure\n"
               "argus quota set --user alice --running 4 --gpu-hours 500\tof one user\n"
               "argus quota set --user alice --running none\tno limit again",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct quota_set_opts),
    .run = run,
};
