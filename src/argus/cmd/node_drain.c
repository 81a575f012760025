/* SPDX-License-Identifier: Apache-2.0 */
/* node_drain.c - no new jobs on machines, and what becomes of those that run. */
#include "argus/cmd/cmd.h"

#include "argus/nodecall.h"

struct drain_opts {
    usec_t deadline, timeout;
    int then;
    bool wait;
};

static const char *const THEN[] = {"wait", "stop", "restart", NULL};

static const struct opt OPTS[] = {
    {.name = "deadline",
     .type = OPT_SPAN,
     .offset = offsetof(struct drain_opts, deadline),
     .arg = "SPAN",
     .doc = "how long what runs there may go on, such as 2h; without it, to its end"},
    {.name = "then",
     .type = OPT_CHOICE,
     .offset = offsetof(struct drain_opts, then),
     .arg = "WHAT",
     .doc = "at the deadline: wait on, stop the jobs, or restart them on other machines",
     .choices = THEN},
    {.name = "wait",
     .type = OPT_FLAG,
     .offset = offsetof(struct drain_opts, wait),
     .doc = "until it is offline; Ctrl-C ends only the waiting"},
    {.name = "timeout",
     .type = OPT_SPAN,
     .offset = offsetof(struct drain_opts, timeout),
     .arg = "SPAN",
     .doc = "of --wait; without it, for ever"},
};

static int drain(struct cli *cli, const struct drain_opts *o, const char *name, struct err *err)
{
    _cleanup_(json_unrefp) json_t *node = NULL;
    json_t *body = json_pack("{s:s}", "then", THEN[o->then]);
    if (o->deadline)
        (void)json_object_set_new(
            body, "deadline",
            json_integer((json_int_t)(o->deadline / USEC_SEC))); /* fails for lack of memory only */
    int r = nodecall_post(cli, name, ":drain", body, &node, err);
    if (r >= 0 && !o->wait)
        nodecall_print(cli, node);
    return r;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct drain_opts *o = opts;
    if (o->then && !o->deadline)
        return err_set(err, ERR_USAGE, "'--then %s' needs a deadline: --deadline 2h",
                       THEN[o->then]);
    int r = cli_open(cli, err);
    for (size_t i = 0; r >= 0 && i < args->n; i++)
        r = drain(cli, o, args->v[i], err);
    return r < 0 || !o->wait ? r : nodecall_wait(cli, args, NODE_GOAL_OFFLINE, o->timeout, err);
}

const struct command cmd_node_drain = {
    .name = "node drain",
    .args = "NODE…",
    .least = 1,
    .most = ARGS_ANY,
    .summary = "let machines run empty",
    .text = "From now on no job starts there. When nothing runs on it any more, argusd ends its "
            "own Ray there and the machine is offline. 'argus node undrain' takes it back.",
    .example =
        "argus node drain node-7\tjobs run to their end\n"
        "argus node drain node-7 --deadline 2h --then restart --wait\tat the latest in two hours",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct drain_opts),
    .run = run,
};
