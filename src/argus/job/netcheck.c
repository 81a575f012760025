/* SPDX-License-Identifier: Apache-2.0 */
/* netcheck.c - see netcheck.h. The check is a job: the server judges, here it is asked how far it
 * is. */
#include "argus/job/netcheck.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "argus/cli/ask.h"
#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/message.h"
#include "base/str.h"

enum { TURN_MS = 300, TURNS_BETWEEN = 5, LINE_MAX_BYTES = 1024, SIZE_SHOWN_MAX = 32 };

static void print_line(struct cli *cli, const char *text)
{
    _cleanup_(buf_release) struct buf clean = BUF_INIT(LINE_MAX_BYTES);
    text_clean(&clean, text); /* a longer one is cut */
    (void)fprintf(cli->out, "%s\n", buf_str(&clean));
}

void netcheck_print_pairs(struct cli *cli, const json_t *pairs, const char *from)
{
    size_t i;
    json_t *p;
    json_array_foreach (pairs, i, p) {
        const char *a = from ? from : member_str(p, "a"), *b = member_str(p, from ? "node" : "b");
        _cleanup_(buf_release) struct buf line = BUF_INIT(LINE_MAX_BYTES);
        double baseline = json_get_real(p, "baseline_mbps", 0);
        /* cut: fine */
        (void)buf_addf(&line, "%s - %s: %.0f Mbit/s, %.0f us", a, b, json_get_real(p, "mbps", 0),
                       json_get_real(p, "usec", 0));
        if (baseline > 0)
            (void)buf_addf(&line, ", %.0f %% of the baseline (%.0f)%s",
                           json_get_real(p, "percent", 0), baseline,
                           json_get_bool(p, "slow", false) ? " SLOW" : "");
        print_line(cli, buf_str(&line));
    }
}

static void print_sizes(struct cli *cli, const json_t *sizes)
{
    size_t i;
    json_t *s;
    json_array_foreach (sizes, i, s) {
        char size[SIZE_SHOWN_MAX];
        _cleanup_(freep) char *line = xasprintf(
            "all, %s: %.0f Mbit/s, bus %.0f Mbit/s, %.0f us",
            size_text(json_get_int(s, "bytes", 0), size), json_get_real(s, "algo_mbps", 0),
            json_get_real(s, "bus_mbps", 0), json_get_real(s, "usec", 0));
        print_line(cli, line);
    }
}

static size_t print_troubles(struct cli *cli, const json_t *check)
{
    const json_t *all = json_get_array(check, "troubles");
    size_t i;
    json_t *t;
    json_array_foreach (all, i, t) {
        const char *fix = json_get_str(t, "fix", "");
        _cleanup_(freep) char *line =
            xasprintf("%s%s%s", json_get_str(t, "text", ""), *fix ? "; " : "", fix);
        print_line(cli, line);
    }
    int64_t more = json_get_int(check, "troubles_total", 0) - (int64_t)json_array_size(all);
    if (more > 0)
        (void)fprintf(cli->out, "and %" PRId64 " more\n", more);
    return json_array_size(all);
}

/* The check in what the server knows of the network; a new reference, NULL: it is not there any
 * more. */
static json_t *check_in(const json_t *network, const char *job)
{
    size_t i;
    json_t *k;
    json_array_foreach (json_get_array(network, "checks"), i, k)
        if (str_eq(json_get_str(k, "job", ""), job))
            return json_incref(k);
    return NULL;
}

/* The pairs that this check has measured last. */
static json_t *pairs_of(const json_t *network, const char *job)
{
    json_t *some = json_array(), *p;
    size_t i;
    json_array_foreach (json_get_array(network, "pairs"), i, p)
        if (str_eq(json_get_str(p, "job", ""), job))
            (void)json_array_append(some, p); /* fails for lack of memory */
    return some;
}

static int netcheck_path(struct cli *cli, char **ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    int r = client_get(cli->client, "/v1/clusters", &answer, err);
    if (r < 0)
        return r;
    const json_t *first = json_array_get(json_get_array(answer, "clusters"), 0);
    *ret = ask_path("/v1/clusters/{}/network", json_get_str(first, "name", "default"));
    return 0;
}

static int netcheck_wait(struct cli *cli, const char *job, json_t **ret, struct err *err)
{
    _cleanup_(freep) char *path = NULL;
    int r = netcheck_path(cli, &path, err);
    if (r == 0)
        r = cli_catch_interrupt(cli, err);
    while (r >= 0) {
        _cleanup_(json_unrefp) json_t *network = NULL, *check = NULL;
        r = client_get(cli->client, path, &network, err);
        check = r < 0 ? NULL : check_in(network, job);
        if (r >= 0 && !check)
            return message_refuse(err, ERR_NOT_FOUND, "cli_check_gone",
                                  MESSAGE_ARGS(MESSAGE_STR("id", job)));
        if (r >= 0 && !str_eq(json_get_str(check, "state", ""), "running")) {
            *ret = json_pack("{s:O,s:o}", "check", check, "pairs", pairs_of(network, job));
            return 0;
        }
        for (int i = 0; r >= 0 && i < TURNS_BETWEEN; i++)
            r = client_turn(cli->client, TURN_MS);
    }
    return r;
}

static int netcheck_print(struct cli *cli, const json_t *told, int output, struct err *err)
{
    const json_t *check = json_get_object(told, "check");
    bool passed = str_eq(json_get_str(check, "state", ""), "passed");
    if (output >= OUTPUT_JSON) {
        cli_emit(cli, told, output);
    } else {
        netcheck_print_pairs(cli, json_get_array(told, "pairs"), NULL);
        print_sizes(cli, json_get_array(check, "sizes"));
        (void)print_troubles(cli, check);
    }
    return passed ? 0 : message_refuse(err, ERR_REFUSED, "cli_network_bad", MESSAGE_NO_ARGS);
}

int netcheck_ask(struct cli *cli, const struct netcheck_wish *w, struct err *err)
{
    _cleanup_(json_unrefp) json_t *check = NULL, *told = NULL;
    json_t *body = json_object(), *nodes = json_array();
    /* these fail for lack of memory */
    for (size_t i = 0; i < w->nodes->n; i++)
        (void)json_array_append_new(nodes, json_string(w->nodes->v[i]));
    (void)json_object_set_new(body, "nodes", nodes);
    if (w->pool)
        (void)json_object_set_new(body, "pool", json_string(w->pool));
    if (w->python)
        (void)json_object_set_new(body, "python", json_string(w->python));
    (void)json_object_set_new(body, "baseline", json_boolean(w->anew));
    int r = ask_send(cli, "POST", "/v1/nodes:check", body, 1, &check, err);
    if (r < 0)
        return r;
    const char *job = json_get_str(check, "job", "");
    if (w->no_wait) {
        if (w->output >= OUTPUT_JSON)
            cli_emit(cli, check, w->output);
        else
            (void)fprintf(cli->out, "%s\n", job);
        return 0;
    }
    cli_talk(cli, "job %s checks %zu machines; 'argus why %s' says what it waits for", job,
             json_array_size(json_get_array(check, "nodes")), job);
    r = netcheck_wait(cli, job, &told, err);
    if (r == -EINTR)
        return 128 + SIGINT;
    return r < 0 ? r : netcheck_print(cli, told, w->output, err);
}
