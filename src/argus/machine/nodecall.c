/* SPDX-License-Identifier: Apache-2.0 */
/* nodecall.c - see nodecall.h. Every change may be asked for twice: a lost answer is asked for
 * again. */
#include "argus/machine/nodecall.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "argus/cli/ask.h"
#include "argus/job/jobview.h"
#include "argus/net/watch.h"
#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/message.h"
#include "base/str.h"

enum { TRIES = 3, LINE_MAX_BYTES = 4096, TURN_MS = 300 };

int nodecall_post(struct cli *cli,
                  const char *name,
                  const char *verb,
                  json_t *body,
                  json_t **ret,
                  struct err *err)
{
    _cleanup_(freep) char *node = ask_path("/v1/nodes/{}", name);
    _cleanup_(freep) char *path = xasprintf("%s%s", node, verb);
    return ask_send(cli, "POST", path, body, TRIES, ret, err);
}

/* ---- for people ---- */

static void nodecall_put_reason(struct buf *out, const json_t *node)
{
    const json_t *reason = json_get_object(node, "reason");
    const char *text = json_get_str(reason, "text", ""), *fix = json_get_str(reason, "fix", "");
    if (*text)
        (void)buf_addf(out, ": %s%s%s", text, *fix ? "; " : "", fix); /* cut: fine */
}

/* "node-1 online", "node-1 pending: the key is refused; give …". */
static char *nodecall_describe(const json_t *node)
{
    _cleanup_(buf_release) struct buf line = BUF_INIT(LINE_MAX_BYTES);
    _cleanup_(buf_release) struct buf clean = BUF_INIT(LINE_MAX_BYTES);
    _cleanup_(freep) char *state = jobview_state(node);
    (void)buf_addf(&line, "%s %s", member_str(node, "name"), state); /* fits */
    nodecall_put_reason(&line, node);
    text_clean(&clean, buf_str(&line)); /* a longer one is cut */
    return xstrdup(buf_str(&clean));
}

void nodecall_print(struct cli *cli, const json_t *node)
{
    _cleanup_(freep) char *line = nodecall_describe(node);
    (void)fprintf(cli->out, "%s\n", line);
    (void)fflush(cli->out); /* ferror(out) tells at the end */
}

size_t nodecall_print_findings(struct cli *cli, const json_t *node)
{
    const json_t *findings = json_get_array(node, "findings");
    size_t i;
    json_t *v;
    json_array_foreach (findings, i, v) {
        _cleanup_(buf_release) struct buf line = BUF_INIT(LINE_MAX_BYTES);
        _cleanup_(buf_release) struct buf clean = BUF_INIT(LINE_MAX_BYTES);
        (void)buf_addf(&line, "%s: %s; %s", json_get_str(v, "code", "-"),
                       json_get_str(v, "text", ""), json_get_str(v, "fix", "")); /* cut: fine */
        text_clean(&clean, buf_str(&line));
        (void)fprintf(cli->out, "  %s\n", buf_str(&clean));
    }
    return findings ? i : 0;
}

static void print_online(struct cli *cli, const json_t *node)
{
    const json_t *facts = json_get_object(node, "facts");
    const char *key = json_get_str(node, "host_key", "");
    nodecall_print(cli, node);
    (void)fprintf(cli->out, "  GPUs: %g, Ray %s, Python %s\n",
                  json_get_real(json_get_object(node, "gpus"), "total", 0),
                  member_str(facts, "ray"), member_str(facts, "python"));
    if (*key)
        (void)fprintf(cli->out, "  host key %s\n", key);
}

/* ---- waiting ---- */

struct waited {
    struct watch *watch;
    const char *name;
    char *told;
    bool is_there, has_reason;
};

struct waiting {
    struct cli *cli;
    struct waited *v;
    size_t n, n_left;
    enum node_goal goal;
};

static bool reached(const struct waiting *a, const json_t *node)
{
    const char *state = json_get_str(node, "state", "");
    return (a->goal == NODE_GOAL_ONLINE && str_eq(state, "online")) ||
           (a->goal == NODE_GOAL_OFFLINE && str_eq(state, "offline"));
}

static void arrive(struct waiting *a, struct waited *x)
{
    x->is_there = true;
    a->n_left--;
}

static void on_node(struct waiting *a, struct waited *x, const json_t *node)
{
    _cleanup_(freep) char *line = nodecall_describe(node);
    x->has_reason = *json_get_str(json_get_object(node, "reason"), "text", "") != 0;
    if (reached(a, node)) {
        if (a->goal == NODE_GOAL_ONLINE)
            print_online(a->cli, node);
        else
            nodecall_print(a->cli, node);
        arrive(a, x);
    } else if (!str_eq(line, x->told)) {
        cli_talk(a->cli, "%s", line);
        set_str(&x->told, line);
    }
}

static int nodecall_step(struct waiting *a, struct err *err)
{
    for (size_t i = 0; i < a->n; i++) {
        _cleanup_(json_unrefp) json_t *node = NULL;
        struct err e = {0};
        struct waited *x = &a->v[i];
        if (x->is_there)
            continue;
        int r = watch_step(x->watch, &node, &e);
        if (r == ERR_NOT_FOUND && a->goal == NODE_GOAL_GONE) {
            (void)fprintf(a->cli->out, "%s removed\n", x->name);
            arrive(a, x);
        } else if (r < 0) {
            return err_copy(err, r, &e);
        }
        if (node)
            on_node(a, x, node);
    }
    return a->n_left ? client_turn(a->cli->client, TURN_MS) : 0;
}

static int late(const struct waiting *a, struct err *err)
{
    const struct waited *x = a->v;
    while (x->is_there)
        x++;
    if (a->goal == NODE_GOAL_ONLINE && x->has_reason)
        return message_refuse(err, ERR_REFUSED, "cli_not_online",
                              MESSAGE_ARGS(MESSAGE_STR("name", x->name)));
    return message_refuse(err, ERR_TIMEOUT, "cli_machines_late",
                          MESSAGE_ARGS(MESSAGE_NUM("left", a->n_left), MESSAGE_NUM("all", a->n)));
}

int nodecall_wait(struct cli *cli,
                  const struct strv *names,
                  enum node_goal goal,
                  usec_t timeout,
                  struct err *err)
{
    struct waiting a = {.cli = cli,
                        .v = xcalloc(names->n, sizeof(struct waited)),
                        .n = names->n,
                        .n_left = names->n,
                        .goal = goal};
    usec_t deadline = timeout ? clock_mono() + timeout : 0;
    int r = cli_catch_interrupt(cli, err);
    for (size_t i = 0; i < a.n; i++) {
        _cleanup_(freep) char *path = ask_path("/v1/nodes/{}", names->v[i]);
        a.v[i].name = names->v[i];
        a.v[i].watch = watch_new(cli->client, path);
    }
    while (r >= 0 && a.n_left) {
        r = nodecall_step(&a, err);
        if (r >= 0 && a.n_left && deadline && clock_mono() >= deadline)
            r = late(&a, err);
    }
    for (size_t i = 0; i < a.n; i++) {
        watch_free(a.v[i].watch);
        free(a.v[i].told);
    }
    free(a.v);
    return r == -EINTR ? 128 + SIGINT : r < 0 ? r : 0;
}
