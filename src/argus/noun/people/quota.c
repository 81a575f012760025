/* SPDX-License-Identifier: Apache-2.0 */
/* quota.c - what projects and users may hold, and hold. A limit that is set keeps the others: the
 * whole quota is read, changed and written. */
#include "core/job/quota.h"
#include "argus/noun/noun.h"
#include "argus/people/account.h"
#include "argus/show/member.h"

#define OF_OPTS                                                                                    \
    {.name = "project",                                                                            \
     .type = OPT_TEXT,                                                                             \
     .arg = "NAME",                                                                                \
     .doc = "quota of this project",                                                               \
     .to = "path:projects"},                                                                       \
    {                                                                                              \
        .name = "user", .type = OPT_TEXT, .arg = "NAME", .doc = "quota of this user",              \
        .to = "path:users"                                                                         \
    }

#define LIMIT_OPT(key, ftype, option, word, title, used, words)                                    \
    {.name = (option), .type = OPT_LIMIT, .arg = (word), .doc = (words), .to = "body:" #key},
static const struct opt SET_OPTS[] = {OF_OPTS, QUOTA_LIMITS(LIMIT_OPT)};

static const struct opt LS_OPTS[] = {
    OPT_OUTPUT(struct listing_opts),
    OPT_WATCH(struct listing_opts),
};

static const struct opt SHOW_OPTS[] = {OF_OPTS, OPT_OUTPUT(struct listing_opts)};

static void quota_of(struct table *t, const json_t *q, const struct when *w)
{
    (void)w;
    table_addf(t, STYLE_PLAIN, "%s %s", member_str(q, "kind"), member_str(q, "name"));
}

static const struct column QUOTAS[] = {
    {.title = "say_of", .flags = COLUMN_FLEX, .least = 14, .draw = quota_of},
    {.title = "say_guaranteed",
     .flags = COLUMN_RIGHT,
     .key = "quota.gpus_guaranteed",
     .as = CELL_VALUE},
    {.title = "say_gpu_use",
     .flags = COLUMN_RIGHT,
     .key = "usage.gpus",
     .most = "quota.gpus_ceiling",
     .as = CELL_USE},
    {.title = "say_borrowed",
     .flags = COLUMN_RIGHT,
     .key = "usage.gpus_borrowed",
     .as = CELL_NUMBER},
    {.title = "say_cpus",
     .flags = COLUMN_RIGHT,
     .rank = 2,
     .key = "usage.cpus",
     .most = "quota.cpus",
     .as = CELL_USE},
    {.title = "say_running",
     .flags = COLUMN_RIGHT,
     .key = "usage.running",
     .most = "quota.running",
     .as = CELL_USE},
    {.title = "say_queued",
     .flags = COLUMN_RIGHT,
     .key = "usage.queued",
     .most = "quota.queued",
     .as = CELL_USE},
    {.title = "say_gpu_hours",
     .flags = COLUMN_RIGHT,
     .rank = 1,
     .key = "usage.gpu_hours_this_month",
     .most = "quota.gpu_hours_per_month",
     .as = CELL_USE},
};

static const struct command QUOTA_COMMANDS[] = {
    {
        .name = "quota set",
        .args = "",
        .summary = "set what a project or user may hold",
        .text = "For admins. Limits that are not given stay; 'none' lifts a limit. A lower limit "
                "takes nothing from jobs that run, except GPUs borrowed beyond a guarantee: jobs "
                "that can be restarted give these back when their owner asks for them.",
        .example = "argus quota set --project rlhf --guaranteed 8 --gpus 16\tup to 16, 8 for sure\n"
                   "argus quota set --user alice --running 4 --gpu-hours 500\tlimits of one user\n"
                   "argus quota set --user alice --running none\tno limit again",
        OPTS(SET_OPTS),
        .ask = {.method = "PUT",
                .path = "/v1/{of}/quota",
                .onto = "quota",
                .nothing = "cli_no_limit_given",
                .print = account_print},
    },
    {
        .name = "quota ls",
        .args = "",
        .summary = "list quotas and what is used of them",
        .text = "Lists the quotas of projects and users that you may see. GUAR is what is "
                "guaranteed; the other columns show what is used and the limit; '-' means no "
                "limit.",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/quotas", .table = {.key = "quotas", COLUMNS(QUOTAS)}},
    },
    {
        .name = "quota show",
        .args = "",
        .summary = "show one quota and what is used of it",
        .text = "You see the quotas of your projects and your own; admins see all.",
        .example = "argus quota show --user alice\twhat alice may hold, and holds",
        OPTS(SHOW_OPTS),
        .ask = {.path = "/v1/{of}/quota", .print = account_print},
    },
};

NOUN(quota, QUOTA_COMMANDS);
