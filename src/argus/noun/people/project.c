/* SPDX-License-Identifier: Apache-2.0 */
/* project.c - the projects: people who share machines. */
#include "argus/noun/noun.h"
#include "argus/people/account.h"
#include "argus/show/cell.h"

static const struct opt ADD_OPTS[] = {
    {.name = "member",
     .type = OPT_NAMES,
     .arg = "USER",
     .doc = "a member of the project; may be given again, or with commas",
     .to = "body:members"},
    {.name = "pool",
     .type = OPT_TEXT,
     .arg = "POOL",
     .doc = "pool of jobs that name none",
     .to = "body:pool"},
    {.name = "share",
     .type = OPT_LIMIT,
     .arg = "N",
     .doc = "weight in fair share (1)",
     .to = "body:share"},
    {.name = "priority-ceiling",
     .type = OPT_LIMIT,
     .arg = "N",
     .doc = "the most that its jobs may ask for (100)",
     .to = "body:priority_ceiling"},
    {.name = "note",
     .type = OPT_TEXT,
     .arg = "TEXT",
     .doc = "a note: what the project is for",
     .to = "body:note"},
    {.name = "retention",
     .type = OPT_TEXT,
     .arg = "SPAN",
     .doc = "archive its jobs by themselves, this long after their end: 90d",
     .to = "body:retention"},
    {.name = "retention-checkpoints",
     .type = OPT_FLAG,
     .doc = "archive jobs that still have checkpoints, too",
     .to = "body:retention_checkpoints"},
    {.name = "alert",
     .type = OPT_LIST,
     .arg = "TEXT",
     .doc = "an alert of the metrics of each of its jobs; may be given again",
     .to = "body:alerts"},
};

static const struct opt SET_OPTS[] = {
    {.name = "add",
     .type = OPT_NAMES,
     .arg = "USER",
     .doc = "a further member; may be given again, or with commas",
     .to = "body:add"},
    {.name = "remove",
     .type = OPT_NAMES,
     .arg = "USER",
     .doc = "a member to take out; may be given again, or with commas",
     .to = "body:remove"},
    {.name = "pool",
     .type = OPT_TEXT,
     .arg = "POOL",
     .doc = "pool of jobs that name none; '' for any",
     .to = "body:pool"},
    {.name = "share",
     .type = OPT_LIMIT,
     .arg = "N",
     .doc = "weight in fair share",
     .to = "body:share"},
    {.name = "priority-ceiling",
     .type = OPT_LIMIT,
     .arg = "N",
     .doc = "the most that its jobs may ask for",
     .to = "body:priority_ceiling"},
    {.name = "note", .type = OPT_TEXT, .arg = "TEXT", .doc = "what it is for", .to = "body:note"},
    {.name = "retention",
     .type = OPT_TEXT,
     .arg = "SPAN",
     .doc = "archive its jobs by themselves, this long after their end: 90d; 0s for never",
     .to = "body:retention"},
    {.name = "retention-checkpoints",
     .type = OPT_FLAG,
     .doc = "those that still have checkpoints too",
     .to = "body:retention_checkpoints"},
    {.name = "no-retention-checkpoints",
     .type = OPT_FLAG,
     .doc = "do not archive jobs that still have checkpoints",
     .to = "body:retention_checkpoints=false"},
    {.name = "alert",
     .type = OPT_LIST,
     .arg = "TEXT",
     .doc = "an alert of the metrics of each of its jobs, in place of those it has; may be given "
            "again",
     .to = "body:alerts"},
    {.name = "no-alerts",
     .type = OPT_FLAG,
     .doc = "its jobs have no alerts but their own",
     .to = "body:alerts=[]"},
};

static const struct opt VIEW_OPTS[] = {OPT_OUTPUT(struct listing_opts)};

static void project_members(struct table *t, const json_t *project, const struct when *w)
{
    static const struct column members = {.key = "members", .as = CELL_LIST};
    if (str_eq(json_get_str(project, "name", ""), "default"))
        table_add(t, STYLE_DIM, "(everybody)");
    else
        cell_add(t, &members, project, w);
}

static const struct column PROJECTS[] = {
    {.title = "say_project", .flags = COLUMN_FLEX, .least = 12, .key = "name"},
    {.title = "say_members", .flags = COLUMN_FLEX, .least = 10, .draw = project_members},
    {.title = "say_pool", .flags = COLUMN_FLEX, .least = 6, .key = "pool"},
    {.title = "say_share", .flags = COLUMN_RIGHT, .key = "share", .as = CELL_VALUE},
    {.title = "say_prio", .flags = COLUMN_RIGHT, .key = "priority_ceiling", .as = CELL_VALUE},
    {.title = "say_gpu_use",
     .flags = COLUMN_RIGHT,
     .key = "usage.gpus",
     .most = "quota.gpus_ceiling",
     .as = CELL_USE},
    {.title = "say_jobs", .flags = COLUMN_RIGHT, .draw = account_jobs},
    {.title = "say_note", .flags = COLUMN_FLEX, .least = 8, .rank = 1, .key = "note"},
};

static const struct command PROJECT_COMMANDS[] = {
    {
        .name = "project add",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "make a project",
        .text = "For admins. Members submit to it with 'project: NAME' in the JobSpec and "
                "see each other's jobs. From the first project on, jobs may only name "
                "projects that were made, and 'default', which is everybody's.",
        .example =
            "argus project add rlhf --member alice --member bob\ttwo people who share\n"
            "argus quota set --project rlhf --guaranteed 8 --gpus 16\tand what they may hold",
        OPTS(ADD_OPTS),
        .ask = {.method = "POST",
                .path = "/v1/projects",
                .arg_to = "body:name",
                .done = "say_done_made",
                .subject = "project {name}"},
    },
    {
        .name = "project ls",
        .args = "",
        .summary = "list the projects",
        .text = "Admins and users of role viewer see all; others see 'default' and those "
                "that they are members of. GPUS is what is held now and what may be.",
        OPTS(VIEW_OPTS),
        .ask = {.path = "/v1/projects", .table = {.key = "projects", COLUMNS(PROJECTS)}},
    },
    {
        .name = "project show",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "show one project: members, limits, use",
        .text = "Shows what its jobs hold now, and what they may hold.",
        OPTS(VIEW_OPTS),
        .ask = {.path = "/v1/projects/{}", .print = account_print},
    },
    {
        .name = "project set",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "change a project's members, pool, share or ceiling",
        .text = "For admins. Jobs that were submitted before keep what they were given.",
        .example =
            "argus project set rlhf --add carol --remove bob\twho is in it\n"
            "argus project set rlhf --alert 'actor/entropy < 0.1 for 10 steps'\twhat is told "
            "of each of its jobs",
        OPTS(SET_OPTS),
        .ask = {.method = "PATCH",
                .path = "/v1/projects/{}",
                .nothing = "cli_no_change_project",
                .done = "say_done_changed",
                .subject = "project {name}"},
    },
    {
        .name = "project rm",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "remove a project",
        .text = "For admins. A project with a job that is not over cannot be removed. Jobs that "
                "ended keep the project's name.",
        .ask = {.method = "DELETE",
                .path = "/v1/projects/{}",
                .done = "say_done_removed",
                .subject = "project {name}"},
    },
};

NOUN(project, PROJECT_COMMANDS);
