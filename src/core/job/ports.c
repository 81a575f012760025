/* SPDX-License-Identifier: Apache-2.0 */
/* ports.c - the table of ports; see ports.h.
 *
 * All of them lie below 32768, where the kernel begins to give ports out: Ray's own defaults do
 * not (52365), and then a client's socket may sit on the port of a raylet that is to start. */
#include "core/job/ports.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { PORT_MAX = 65535, WORKERS_LEAST = 50 };

/* clang-format off */
static const struct ports_row table[] = {
    [PORTS_GCS] = {"gcs", "6379", true, false, "nodes",
        "Ray's control store: every raylet, driver and worker connects to it"},
    [PORTS_DASHBOARD] = {"dashboard", "8265", true, false, "argusd",
        "Ray's HTTP API (jobs, state); access to it means running code, so argusd alone"},
    [PORTS_CLIENT] = {"client", "10001", true, false, "nobody",
        "Ray Client; Argus does not use it, so it need not be reachable"},
    [PORTS_HEAD_METRICS] = {"head_metrics", "9300-9301", true, false, "prometheus",
        "metrics of Ray's autoscaler and dashboard"},
    [PORTS_RAYLET] = {"raylet", "9500-9599", true, true, "nodes, argusd",
        "node manager; argusd only asks whether it is there"},
    [PORTS_OBJECTS] = {"objects", "9600-9699", true, true, "nodes",
        "object manager: transfer of objects between nodes"},
    [PORTS_AGENT] = {"agent", "9700-9799", true, true, "head",
        "HTTP of the node's agent; on the head it accepts jobs, so no one else"},
    [PORTS_AGENT_GRPC] = {"agent_grpc", "9800-9899", true, true, "head",
        "the same agent for the dashboard"},
    [PORTS_RUNTIME_ENV] = {"runtime_env", "9900-9999", true, true, "nobody",
        "runtime environments; the node itself alone"},
    [PORTS_METRICS] = {"metrics", "9410-9499", true, true, "argusd, prometheus",
        "metrics of the node and its workers"},
    [PORTS_EXPORTER] = {"exporter", "9400-9407", false, true, "argusd, prometheus",
        "GPUs by the exporter of its NodeSpec; another one that listens there is read as well"},
    [PORTS_NOTEBOOK] = {"notebook", "8700-8799", false, true, "argusd",
        "one for each notebook, which asks for a token"},
    [PORTS_WORKER] = {"worker", "20000-29999", true, true, "nodes",
        "one for each worker process, driver and actor"},
};
/* clang-format on */
static_assert(array_len(table) == PORTS_COUNT, "one row per key");

static const char *const options[PORTS_COUNT] = {
    [PORTS_GCS] = "port",
    [PORTS_DASHBOARD] = "dashboard-port",
    [PORTS_CLIENT] = "ray-client-server-port",
    [PORTS_RAYLET] = "node-manager-port",
    [PORTS_OBJECTS] = "object-manager-port",
    [PORTS_AGENT] = "dashboard-agent-listen-port",
    [PORTS_AGENT_GRPC] = "dashboard-agent-grpc-port",
    [PORTS_RUNTIME_ENV] = "runtime-env-agent-port",
    [PORTS_METRICS] = "metrics-export-port",
};

const struct ports_row *ports_row(enum ports_key k)
{
    return &table[k];
}

/* How many a host needs of a key. */
static int least(enum ports_key k)
{
    if (k == PORTS_WORKER)
        return PORTS_RAYLETS_MAX * WORKERS_LEAST;
    if (k == PORTS_HEAD_METRICS)
        return 2;
    return table[k].on_node ? PORTS_RAYLETS_MAX : 1;
}

static int read_range(const char *text, struct ports_range *ret, struct err *err)
{
    int64_t first = 0, last = 0;
    const char *dash = strchr(text, '-');
    _cleanup_(freep) char *low = dash ? xstrndup(text, (size_t)(dash - text)) : xstrdup(text);
    if (str_to_int(low, 1, PORT_MAX, &first, NULL) < 0 ||
        str_to_int(dash ? dash + 1 : low, first, PORT_MAX, &last, NULL) < 0)
        return message_refuse(err, ERR_BAD_SPEC, "port_range",
                              MESSAGE_ARGS(MESSAGE_STR("text", text)));
    *ret = (struct ports_range){(int)first, (int)last};
    return 0;
}

static int unknown_key(const char *key, struct err *err)
{
    const char *names[PORTS_COUNT];
    for (size_t k = 0; k < PORTS_COUNT; k++)
        names[k] = table[k].key;
    const char *near = str_nearest(key, names, PORTS_COUNT);
    return message_refuse(
        err, ERR_BAD_SPEC, "port_unknown",
        MESSAGE_ARGS(MESSAGE_STR("key", key), MESSAGE_STR("near", str_or(near, ""))));
}

static int check_apart(const struct ports *p, const char **ret_key, struct err *err)
{
    for (size_t a = 0; a < PORTS_COUNT; a++)
        for (size_t b = 0; b < a; b++)
            if (p->v[a].first <= p->v[b].last && p->v[b].first <= p->v[a].last) {
                *ret_key = table[a].key;
                return message_refuse(err, ERR_BAD_SPEC, "ports_meet",
                                      MESSAGE_ARGS(MESSAGE_STR("one", table[b].key),
                                                   MESSAGE_STR("other", table[a].key)));
            }
    return 0;
}

static int ports_read_given(const struct pair *given, struct ports *ret, struct err *err)
{
    size_t k = 0;
    while (k < PORTS_COUNT && strcmp(table[k].key, given->key) != 0)
        k++;
    if (k == PORTS_COUNT)
        return unknown_key(given->key, err);
    struct ports_range range = {0};
    int r = read_range(given->value, &range, err);
    if (r < 0)
        return r;
    int n = range.last - range.first + 1, need = least((enum ports_key)k);
    if (n < need)
        return message_refuse(err, ERR_BAD_SPEC, "ports_too_few",
                              MESSAGE_ARGS(MESSAGE_STR("key", given->key),
                                           MESSAGE_NUM("needs", need), MESSAGE_NUM("has", n)));
    ret->v[k] = range;
    return 0;
}

int ports_read(const struct pairs *given, struct ports *ret, const char **ret_key, struct err *err)
{
    for (size_t k = 0; k < PORTS_COUNT; k++) {
        int r = read_range(table[k].dflt, &ret->v[k], NULL);
        assert(r == 0); /* our own texts */
        (void)r;
    }
    struct ports wanted = *ret;
    for (size_t i = 0; i < given->n; i++) {
        int r = ports_read_given(&given->v[i], &wanted, err);
        if (r < 0) {
            *ret_key = given->v[i].key;
            return r;
        }
    }
    int r = check_apart(&wanted, ret_key, err);
    if (r == 0)
        *ret = wanted;
    return r;
}

struct ports_range ports_at(const struct ports *p, enum ports_key k, int place)
{
    const struct ports_range *all = &p->v[k];
    if (!table[k].on_node)
        return *all;
    if (k == PORTS_NOTEBOOK) /* whoever comes first */
        return *all;
    if (k != PORTS_WORKER)
        return (struct ports_range){all->first + place, all->first + place};
    int part = (all->last - all->first + 1) / PORTS_RAYLETS_MAX;
    int first = all->first + place * part;
    return (struct ports_range){first, first + part - 1};
}

static void set_port(struct pairs *ret, const char *name, int port)
{
    char text[16];
    text_printf(text, "%d", port);
    pairs_set(ret, name, text);
}

void ports_options(const struct ports *p, int place, bool head, struct pairs *ret)
{
    for (size_t k = 0; k < PORTS_COUNT; k++)
        if (options[k] && (table[k].on_node || head))
            set_port(ret, options[k], ports_at(p, (enum ports_key)k, place).first);
    struct ports_range workers = ports_at(p, PORTS_WORKER, place);
    set_port(ret, "min-worker-port", workers.first);
    set_port(ret, "max-worker-port", workers.last);
}

void ports_head_env(const struct ports *p, struct pairs *ret)
{
    set_port(ret, "AUTOSCALER_METRIC_PORT", p->v[PORTS_HEAD_METRICS].first);
    set_port(ret, "DASHBOARD_METRIC_PORT", p->v[PORTS_HEAD_METRICS].first + 1);
}

size_t ports_needed(const struct ports *p, int place, bool head, int ret[static PORTS_COUNT])
{
    size_t n = 0;
    for (size_t k = 0; k < PORTS_COUNT; k++) /* one of the many for workers stands for them all */
        if (k != PORTS_EXPORTER && k != PORTS_NOTEBOOK && (table[k].on_node || head))
            ret[n++] = ports_at(p, (enum ports_key)k, place).first;
    return n;
}

void ports_page(struct buf *out)
{
    (void)buf_adds(
        out, "# Ports\n\nMade from the table that argusd runs on (`argusd --list-ports`). "
             "`ports:` in argus.yaml moves a row: a port, or a\nrange that the raylets of one host "
             "share (up to 8 of them; the first gets the first port, or the first eighth).\n"
             "`argus node firewall NODE` prints the rules of one node with its own ports and the "
             "addresses of who connects, to read or (`--format`) for\niptables or nft.\n\n"
             "| key | default | head | node | who connects | why |\n| --- | --- | --- | --- | --- "
             "| --- |\n"); /* overflow: out->failed, here and below */
    for (size_t k = 0; k < PORTS_COUNT; k++)
        (void)buf_addf(out, "| `%s` | %s | %s | %s | %s | %s |\n", table[k].key, table[k].dflt,
                       table[k].on_head ? "yes" : "", table[k].on_node ? "yes" : "", table[k].from,
                       table[k].why);
    (void)buf_adds(out, "\nBeside them: sshd of each node (22, or `port` of its NodeSpec), for "
                        "argusd alone; and `listen` of argusd itself\n(8080), for its users. Where "
                        "Ray has no authentication (before 2.52) every port above runs code for "
                        "everyone\nwho reaches it: admit only the sources above.\n");
}
