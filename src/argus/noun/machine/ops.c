/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - plans of what is dangerous: made, looked at, approved, applied; and what argusd put right
 * by itself. */
#include "argus/noun/noun.h"

#include <stdlib.h>
#include <string.h>

#include "argus/machine/drainview.h"
#include "argus/show/member.h"
#include "base/message.h"
#include "base/text.h"

enum { OPS_TARGET_WIDE = 32, REMEDIES_CELL_MAX = 4096 };

static const struct opt PLAN_OPTS[] = {
    {.name = "node",
     .type = OPT_TEXT,
     .arg = "NODE",
     .to = "body:node",
     .doc = "for drain_node and remove_node: the machine"},
    {.name = "deadline",
     .type = OPT_SPAN,
     .arg = "SPAN",
     .to = "body:deadline",
     .doc = "for drain_node: how long the jobs there may go on; without it, to their end"},
    {.name = "then",
     .type = OPT_TEXT,
     .arg = "WHAT",
     .to = "body:then",
     .doc = "for drain_node: what becomes of jobs at the deadline: wait on, stop them, or restart "
            "them elsewhere"},
    {.name = "job",
     .type = OPT_TEXT,
     .arg = "JOB",
     .to = "body:job",
     .doc = "for cleanup_job_artifacts: the job"},
    {.name = "jobs",
     .type = OPT_NAMES,
     .arg = "JOB",
     .to = "body:jobs",
     .doc = "for stop_many: jobs with these ids"},
    {.name = "user",
     .type = OPT_TEXT,
     .arg = "USER",
     .to = "body:user",
     .doc = "for stop_many: jobs of this user"},
    {.name = "project",
     .type = OPT_TEXT,
     .arg = "PROJECT",
     .to = "body:project",
     .doc = "for stop_many: jobs of this project"},
    {.name = "pool",
     .type = OPT_TEXT,
     .arg = "POOL",
     .to = "body:pool",
     .doc = "for stop_many: jobs for this pool"},
    {.name = "cluster",
     .type = OPT_TEXT,
     .arg = "CLUSTER",
     .to = "body:cluster",
     .doc = "for restart_ray_head: the cluster"},
    {.name = "force",
     .type = OPT_FLAG,
     .to = "body:force",
     .doc = "for remove_node and restart_ray_head: go on though jobs run"},
    {.name = "stop-foreign",
     .type = OPT_FLAG,
     .to = "body:stop_foreign",
     .doc =
         "for drain_node, remove_node and restart_ray_head: stop jobs that Argus did not submit, "
         "and do not wait for them"},
    {.letter = 'q', .name = "quiet", .type = OPT_FLAG, .doc = "print only the id of the plan"},
    OPT_OUTPUT(struct listing_opts),
};

struct ops_ls_opts {
    int output, action;
    bool utc, watch, waiting, quiet;
    const char *target;
};
#define OPS_LS_ROW(type_, member) .type = (type_), .offset = offsetof(struct ops_ls_opts, member)
static const char *const OPS_LS_ACTIONS[] = {
    "",          "drain_node", "remove_node", "restart_ray_head", "cleanup_job_artifacts",
    "stop_many", NULL};
static const struct opt LS_OPTS[] = {
    {.name = "waiting",
     OPS_LS_ROW(OPT_FLAG, waiting),
     .doc = "list only plans that wait for approval or apply"},
    {.name = "action",
     OPS_LS_ROW(OPT_CHOICE, action),
     .arg = "ACTION",
     .choices = OPS_LS_ACTIONS,
     .doc = "plans of this action"},
    {.name = "target",
     OPS_LS_ROW(OPT_TEXT, target),
     .arg = "TARGET",
     .doc = "plans with exactly this target: the node, the job or the cluster; for stop_many what "
            "chose the jobs, as project/rlhf, user/alice or job/sft-1"},
    {.letter = 'q',
     .name = "quiet",
     OPS_LS_ROW(OPT_FLAG, quiet),
     .doc = "print only the ids, one on a line"},
    OPT_OUTPUT(struct ops_ls_opts),
    OPT_UTC(struct ops_ls_opts),
    OPT_WATCH(struct ops_ls_opts),
};
static const struct opt SHOW_OPTS[] = {OPT_OUTPUT(struct listing_opts)};

struct ops_apply_opts {
    const char *confirm;
    int output;
    bool wait;
};
static const struct opt APPLY_OPTS[] = {
    {.name = "confirm",
     .type = OPT_TEXT,
     .offset = offsetof(struct ops_apply_opts, confirm),
     .arg = "WORD",
     .to = "body:confirm",
     .doc = "the word that the plan asks for: for restart_ray_head, the cluster's name"},
    {.name = "wait",
     .type = OPT_FLAG,
     .offset = offsetof(struct ops_apply_opts, wait),
     .doc = "wait until the plan is over; Ctrl-C ends only the waiting"},
    OPT_OUTPUT(struct ops_apply_opts),
};

static const struct opt REMEDIES_OPTS[] = {
    {.name = "node",
     .type = OPT_TEXT,
     .arg = "NODE",
     .to = "query:node",
     .doc = "only what was done on this machine"},
    {.name = "from",
     .type = OPT_TEXT,
     .arg = "TIME",
     .to = "query:from",
     .doc = "acts from this time on, or from this long ago (24h)"},
    LISTING_OPTS,
};

/* ---- shown ---- */

static void ops_state(struct table *t, const json_t *plan, const struct when *w)
{
    const char *state = member_str(plan, "state");
    bool is_bad = str_eq(state, "failed") || str_eq(state, "broken_off");
    enum style style = is_bad                     ? STYLE_RED
                       : str_eq(state, "done")    ? STYLE_GREEN
                       : str_eq(state, "waiting") ? STYLE_YELLOW
                                                  : STYLE_DIM;
    (void)w;
    table_add(t, style, state);
}

static void ops_approvals(struct table *t, const json_t *plan, const struct when *w)
{
    (void)w;
    table_addf(t, STYLE_PLAIN, "%zu/%g", json_array_size(json_get_array(plan, "approvals")),
               json_get_real(plan, "needs", 0));
}

static const struct column PLANS[] = {
    {.title = "say_id", .key = "id", .style = STYLE_BOLD},
    {.title = "say_ops_action", .key = "action"},
    {.title = "say_ops_target", .flags = COLUMN_FLEX, .least = 8, .key = "target"},
    {.title = "say_state", .draw = ops_state},
    {.title = "say_ops_approvals", .draw = ops_approvals, .rank = 1},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 6, .key = "user", .rank = 2},
    {.title = "say_expires", .key = "expires_at", .as = CELL_TIME, .rank = 3},
};

static void ops_print_reason(struct cli *cli, const char *says, const json_t *step, const char *key)
{
    char line[2048];
    const char *text = json_get_str(json_get_object(step, key), "text", NULL);
    const char *texts[] = {text};
    if (text)
        (void)fprintf(cli->out, "   %s\n",
                      msg_fill(cli->term.lang, says, texts, line, sizeof(line)));
}

static void ops_print_steps(struct cli *cli, const json_t *plan)
{
    size_t i;
    json_t *step;
    json_array_foreach (json_get_array(plan, "steps"), i, step) {
        (void)fprintf(cli->out, "%zu. %s: %s\n", i + 1, member_str(step, "step"),
                      member_str(step, "state"));
        ops_print_reason(cli, "say_ops_expected", step, "expected");
        ops_print_reason(cli, "say_ops_found", step, "real");
    }
}

static void ops_print_changes(struct cli *cli, const json_t *plan)
{
    size_t i;
    json_t *change;
    json_array_foreach (json_get_array(plan, "difference"), i, change)
        cli_say(cli, "say_ops_changed", member_str(change, "fact"), member_str(change, "planned"),
                member_str(change, "now"));
}

static void ops_print_things(struct cli *cli, const json_t *plan)
{
    char size[SIZE_TEXT_MAX];
    size_t i;
    json_t *thing;
    json_array_foreach (json_get_array(plan, "things"), i, thing) {
        double bytes = json_get_real(thing, "bytes", 0);
        (void)fprintf(cli->out, "%s: %s%s%s\n", member_str(thing, "thing"),
                      member_str(thing, "fate"), bytes > 0 ? ", " : "",
                      bytes > 0 ? size_text((int64_t)bytes, size) : "");
    }
}

static void ops_print(struct cli *cli, const json_t *plan, const struct seen *seen)
{
    char count[32], risk[32];
    const json_t *jobs = json_get_array(plan, "jobs");
    const char *id = member_str(plan, "id"), *state = member_str(plan, "state");
    (void)seen;
    const char *action = member_str(plan, "action"), *target = member_str(plan, "target");
    if (strlen(target) > OPS_TARGET_WIDE) /* jobs by their ids: a line of its own */
        (void)fprintf(cli->out, "%s  %s  %s\n%s\n", id, action, state, target);
    else
        (void)fprintf(cli->out, "%s  %s  %s  %s\n", id, action, target, state);
    if (json_array_size(jobs))
        drainview_print_jobs(cli, plan);
    ops_print_things(cli, plan);
    ops_print_steps(cli, plan);
    text_printf(count, "%zu", json_array_size(jobs));
    text_printf(risk, "%.1f", json_get_real(plan, "at_risk_gpu_hours", 0));
    cli_say(cli, "say_ops_risk", count, risk, NULL);
    ops_print_changes(cli, plan);
    if (!str_eq(state, "waiting"))
        return;
    bool lacks = (double)json_array_size(json_get_array(plan, "approvals")) <
                 json_get_real(plan, "needs", 0);
    cli_say(cli, lacks ? "say_ops_approve_next" : "say_ops_apply_next", id, NULL, NULL);
}

/* ---- list ---- */

static const struct listing OPS_LISTING = {.key = "plans",
                                           COLUMNS(PLANS),
                                           .none = "say_ops_no_plans"};
static const struct listing OPS_LISTING_SOME = {.key = "plans",
                                                COLUMNS(PLANS),
                                                .none = "say_ops_none_such"};

static bool ops_ls_wants(const struct ops_ls_opts *o, const json_t *plan)
{
    return (!o->action || str_eq(member_str(plan, "action"), OPS_LS_ACTIONS[o->action])) &&
           (!o->target || str_eq(member_str(plan, "target"), o->target));
}

static int ops_ls_page(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct ops_ls_opts *o = opts;
    bool is_some = o->waiting || o->action || o->target;
    const struct listing *l = is_some ? &OPS_LISTING_SOME : &OPS_LISTING;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    int r = client_get(cli->client, o->waiting ? "/v1/ops/plans?waiting=1" : "/v1/ops/plans",
                       &answer, err);
    if (r < 0)
        return r;
    json_t *plans = json_object_get(answer, "plans");
    for (size_t i = json_array_size(plans); i-- > 0;)
        if (!ops_ls_wants(o, json_array_get(plans, i)))
            (void)json_array_remove(plans, i); /* it is there */
    if (o->quiet && o->output < OUTPUT_JSON)
        listing_print_ids(cli, plans, l->none);
    else
        listing_print(cli, l, answer, o->output, o->utc);
    return 0;
}

static int ops_ls_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct ops_ls_opts *o = opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : cli_page(cli, o->watch, ops_ls_page, opts, args, err);
}

/* ---- apply ---- */

static int ops_wait_over(struct cli *cli, const char *id, json_t **plan, struct err *err)
{
    _cleanup_(freep) char *path = ask_path("/v1/ops/plans/{}?wait=30s", id);
    int r = 0;
    while (r >= 0 && str_eq(json_get_str(*plan, "state", ""), "applying")) {
        json_t *now = NULL;
        r = ask_send(cli, NULL, path, NULL, 1, &now, err);
        if (r < 0)
            break;
        json_decref(*plan);
        *plan = now;
    }
    return r;
}

static int ops_apply_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct ops_apply_opts *o = opts;
    _cleanup_(freep) char *path = ask_path("/v1/ops/plans/{}:apply?wait=5s", args->v[0]);
    _cleanup_(json_unrefp) json_t *plan = NULL;
    if (!*args->v[0]) /* "$(argus ops ls -q ...)" that found none */
        return message_refuse(err, ERR_USAGE, "cli_ops_which", MESSAGE_NO_ARGS);
    json_t *body = json_object();
    int r = ask_fill(APPLY_OPTS, array_len(APPLY_OPTS), o, body, err);
    if (r == 0)
        r = cli_open(cli, err);
    if (r < 0) {
        json_decref(body);
        return r;
    }
    r = ask_send(cli, "POST", path, body, 1, &plan, err);
    if (r >= 0 && o->wait)
        r = ops_wait_over(cli, args->v[0], &plan, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, plan, o->output);
    else
        ops_print(cli, plan, NULL);
    const char *state = json_get_str(plan, "state", "");
    if (str_eq(state, "done") || str_eq(state, "applying"))
        return 0;
    return message_refuse(err, ERR_REFUSED, "ops_not_done",
                          MESSAGE_ARGS(MESSAGE_STR("id", args->v[0]), MESSAGE_STR("state", state)));
}

/* ---- remedies ---- */

static void remedies_switch(struct table *t, const json_t *remedy, const struct when *w)
{
    bool is_on = json_get_bool(remedy, "on", false);
    (void)w;
    table_add(t, is_on ? STYLE_GREEN : STYLE_DIM, is_on ? "on" : "off");
}

/* "node-1 3, node-2 12": where it acted in the last hour, and how often. */
static void remedies_nodes(struct table *t, const json_t *remedy, const struct when *w)
{
    _cleanup_(buf_release) struct buf all = BUF_INIT(REMEDIES_CELL_MAX);
    bool is_spent = false;
    size_t i;
    json_t *node;
    (void)w;
    json_array_foreach (json_get_array(remedy, "nodes"), i, node) {
        is_spent |= str_eq(member_str(node, "leave"), "spent");
        (void)buf_addf(&all, "%s%s %g", i ? ", " : "", member_str(node, "node"),
                       json_get_real(node, "acts", 0)); /* nodes that do not fit are left out */
    }
    table_add(t, is_spent ? STYLE_RED : STYLE_PLAIN, all.len ? buf_str(&all) : NULL);
}

static void remedies_outcome(struct table *t, const json_t *act, const struct when *w)
{
    const char *outcome = member_str(act, "outcome");
    enum style style = str_eq(outcome, "done")     ? STYLE_GREEN
                       : str_eq(outcome, "failed") ? STYLE_RED
                                                   : STYLE_YELLOW;
    (void)w;
    table_add(t, style, outcome);
}

static const struct column REMEDIES[] = {
    {.title = "say_remedy", .key = "remedy", .style = STYLE_BOLD},
    {.title = "say_state", .draw = remedies_switch},
    {.title = "say_remedy_limit", .flags = COLUMN_RIGHT, .key = "limit", .as = CELL_NUMBER},
    {.title = "say_remedy_rest", .flags = COLUMN_RIGHT, .key = "rest"},
    {.title = "say_remedy_nodes", .flags = COLUMN_ROOM, .draw = remedies_nodes},
    {.title = "say_remedy_key", .key = "key", .rank = 1},
};
static const struct column REMEDY_ACTS[] = {
    {.title = "say_at", .key = "at", .as = CELL_TIME},
    {.title = "say_node", .flags = COLUMN_NAME, .least = 8, .key = "node"},
    {.title = "say_remedy", .key = "remedy"},
    {.title = "say_state", .draw = remedies_outcome},
    {.title = "say_reason", .flags = COLUMN_FLEX, .least = 20, .key = "why.text", .rank = 1},
    {.title = "say_remedy_found", .flags = COLUMN_ROOM, .key = "found.text"},
};
static const struct listing REMEDIES_LISTING = {.key = "remedies", COLUMNS(REMEDIES)};
static const struct listing REMEDY_ACTS_LISTING = {.key = "acts",
                                                   COLUMNS(REMEDY_ACTS),
                                                   .none = "say_remedies_no_acts"};

static void remedies_print(struct cli *cli, const json_t *answer, const struct seen *seen)
{
    int output = seen->wide ? OUTPUT_WIDE : OUTPUT_TABLE;
    listing_print(cli, &REMEDIES_LISTING, answer, output, seen->when.utc);
    (void)fputc('\n', cli->out);
    listing_print(cli, &REMEDY_ACTS_LISTING, answer, output, seen->when.utc);
    if (json_get_bool(answer, "cut", false))
        cli_say(cli, "say_remedies_cut", "", "", "");
}

#define OPS_ONE(words) .args = (words), .least = 1, .most = 1
static const struct command OPS_COMMANDS[] = {
    {.name = "ops plan",
     OPS_ONE("ACTION"),
     .summary = "plan a dangerous act, and see what it would touch",
     .text =
         "ACTION is drain_node, remove_node, restart_ray_head, cleanup_job_artifacts or "
         "stop_many. Nothing is done: 'argus ops apply' does it, while the plan has not expired "
         "and the state is the one that it was made for.",
     .example =
         "argus ops plan drain_node --node node-7 --then restart --deadline 10m\tbefore work on "
         "it\n"
         "argus ops plan stop_many --project rlhf\tall jobs of a project\n"
         "argus ops plan cleanup_job_artifacts --job sft-1\tcheckpoints that nothing needs",
     OPTS(PLAN_OPTS),
     .ask = {.method = "POST", .path = "/v1/ops/{}", .tries = 1, .print = ops_print}},
    {.name = "ops ls",
     .args = "",
     .summary = "list the plans",
     .text = "Yours; admins see all. The newest come first.",
     .example = "argus ops ls -q --waiting --action drain_node --target node-7 | head -n 1\tthe id "
                "of the newest plan for this machine\n"
                "argus ops ls --action stop_many --target project/rlhf\tplans that stop the jobs "
                "of a project",
     OPTS(LS_OPTS),
     .opts_size = sizeof(struct ops_ls_opts),
     .run = ops_ls_run},
    {.name = "ops show",
     OPS_ONE("PLAN"),
     .summary = "show a plan: what it touches, and what each step came to",
     .text = "While it waits, also what has changed since it was made.",
     OPTS(SHOW_OPTS),
     .ask = {.path = "/v1/ops/plans/{}", .print = ops_print}},
    {.name = "ops approve",
     OPS_ONE("PLAN"),
     .summary = "approve a plan of somebody else",
     .text = "For admins. How many must approve says 'ops.approvals' in argus.yaml.",
     OPTS(SHOW_OPTS),
     .ask = {.method = "POST", .path = "/v1/ops/plans/{}:approve", .tries = 1, .print = ops_print}},
    {.name = "ops apply",
     OPS_ONE("PLAN"),
     .summary = "do what a plan says, step by step",
     .text =
         "After each step argusd looks whether it came to what was expected, and only then goes "
         "on. A plan that fails or is broken off is told with exit status 5.",
     .example =
         "argus ops apply plan-0123456789 --wait\tand see what each step came to\n"
         "argus ops apply plan-0123456789 --confirm default\ta plan that restarts the Ray head",
     OPTS(APPLY_OPTS),
     .opts_size = sizeof(struct ops_apply_opts),
     .run = ops_apply_run},
    {.name = "ops remedies",
     .args = "",
     .summary = "show what argusd puts right by itself, and what it did lately",
     .text =
         "Each remedy with the key of argus.yaml that turns it off, how often it may act on a "
         "machine in an hour, and where it acted in the last hour; then its acts: what each was "
         "for, and what it came to.",
     .example = "argus ops remedies --node node-7 --from 2d\twhat was put right on a machine",
     OPTS(REMEDIES_OPTS),
     .ask = {.path = "/v1/remedies", .print = remedies_print}},
};

NOUN(ops, OPS_COMMANDS);
