/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - the network between machines over HTTP: a check is asked for, and all that is known
 * is shown. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/machines/clusters.h"
#include "argusd/kit/part.h"
#include "argusd/kit/saying.h"
#include "argusd/network/netchecks.h"
#include "argusd/network/netpairs_view.h"
#include "base/message.h"
#include "base/str.h"

enum { NETWORK_ANSWER_MAX = 16 << 20, CHECK_ANSWER_MAX = 1 << 20, CHECK_BODY_MAX = 64 << 10 };

/* ---- the page of a check; texts are borrowed for one answer ---- */

/* What is wrong, and what to do about it. */
static const struct field trouble_rows[] = {
    {.name = "", .type = FIELD_INLINE, .of = &said_table, .flags = FIELD_BORROWED},
    FIELD_AT(said, "fix", FIELD_STR, fix, .flags = 0),
};
static const struct field_table trouble_table = FIELD_TABLE("NetworkTrouble", trouble_rows, said);

struct netcheck_page {
    const char *job, *user, *state, *backend;
    struct strv nodes; /* borrowed */
    bool anew, join;
    usec_t asked_at, ended_at;
    struct field_list sizes, troubles;
    int64_t n_troubles;
};
#define CHECK(key, ftype, member, ...) FIELD_AT(netcheck_page, key, ftype, member, __VA_ARGS__)
static const struct field check_page_rows[] = {
    CHECK("job",
          FIELD_STR,
          job,
          .flags = FIELD_ALWAYS,
          .doc = "job that measures; its id is that of the check, too"),
    CHECK("user", FIELD_STR, user, .flags = FIELD_ALWAYS),
    CHECK("nodes", FIELD_STRV, nodes, .flags = 0),
    CHECK("state",
          FIELD_STR,
          state,
          .flags = FIELD_ALWAYS,
          .schema = "{\"enum\":[\"running\",\"passed\",\"failed\"]}"),
    CHECK("baseline", FIELD_BOOL, anew, .doc = "the check sets the baseline anew"),
    CHECK("join",
          FIELD_BOOL,
          join,
          .doc = "a machine that has joined waits for it (check_net of its NodeSpec)"),
    CHECK("asked_at", FIELD_TIME, asked_at),
    CHECK("ended_at", FIELD_TIME, ended_at),
    CHECK("backend", FIELD_STR, backend),
    CHECK("sizes",
          FIELD_LIST,
          sizes,
          .of = &netcheck_size_table,
          .doc = "all-reduce over all its machines"),
    CHECK("troubles", FIELD_LIST, troubles, .of = &trouble_table, .doc = "the first of them"),
    CHECK("troubles_total", FIELD_INT, n_troubles),
};
static const struct field_table check_page_table =
    FIELD_TABLE("NetworkCheck", check_page_rows, netcheck_page);

static void put_check(const struct api_eyes *eyes,
                      const struct netcheck *k,
                      struct jout *j,
                      const char *key)
{
    struct said said[NETCHECKS_TROUBLES_MAX];
    const struct netcheck_said *v = k->troubles.v;
    size_t n = k->troubles.n < array_len(said) ? k->troubles.n : array_len(said);
    for (size_t i = 0; i < n; i++)
        saying_say(eyes, NULL, v[i].code, v[i].text, &said[i]);
    const struct netcheck_page page = {.job = k->job,
                                       .user = k->user,
                                       .state = netcheck_state_words[k->state],
                                       .backend = k->backend,
                                       .nodes = k->nodes,
                                       .anew = k->anew,
                                       .join = k->join,
                                       .asked_at = k->asked_at,
                                       .ended_at = k->ended_at,
                                       .sizes = k->sizes,
                                       .troubles = {.v = said, .n = n},
                                       .n_troubles = k->n_troubles};
    field_to_json(&check_page_table, &page, FIELD_ALL, FIELD_PAGE, j, key);
    for (size_t i = 0; i < n; i++)
        said_release(&said[i]);
}

/* ---- handlers ---- */

static int order_pairs(const void *a, const void *b)
{
    const struct netpair *x = *(const struct netpair *const *)a;
    const struct netpair *y = *(const struct netpair *const *)b;
    int c = strcmp(x->a, y->a);
    return c ? c : strcmp(x->b, y->b);
}

static void put_pairs(const struct api *a, struct jout *j)
{
    const struct netpairs *pairs = netchecks_pairs(a->netchecks);
    const struct netpair *p, **v = xcalloc(NETPAIRS_MAX, sizeof(struct netpair *));
    size_t n = 0;
    for (size_t pos = 0; n < NETPAIRS_MAX && (p = netpairs_next(pairs, &pos));)
        v[n++] = p;
    xsort((void *)v, n, sizeof(struct netpair *), order_pairs);
    jout_open(j, "pairs", '[');
    for (size_t i = 0; i < n; i++) {
        netpair_put(v[i], j, NULL);
    }
    jout_close(j, ']');
    free((void *)v);
}

static void api_network(struct http_req *req, void *app)
{
    struct api *a = app;
    const struct api_eyes eyes = {a, http_req_principal(req)};
    const struct netcheck *k;
    if (!api_is_our_cluster(req, a))
        return;
    _cleanup_(buf_release) struct buf out = BUF_INIT(NETWORK_ANSWER_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    put_pairs(a, &j);
    jout_open(&j, "checks", '[');
    for (size_t pos = 0; (k = netchecks_next(a->netchecks, &pos));)
        put_check(&eyes, k, &j, NULL);
    jout_close(&j, ']');
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_reader_barrier(a));
}

static const struct field check_form_rows[] = {
    OPT_AS("nodes", LIST(TEXT)),
    OPT_AS("pool", TEXT_OR_NULL),
    OPT_AS("python", TEXT_OR_NULL),
    OPT_BOOLEAN("baseline"),
};
static const struct field_table check_form = ACTION_FORM(check_form_rows);

static int read_order(const json_t *o, struct netchecks_order *ret, struct err *err)
{
    const json_t *nodes = json_object_get(o, "nodes");
    size_t i;
    const json_t *v;
    if (nodes && !json_is_array(nodes))
        return message_refuse(err, ERR_BAD_REQUEST, "netcheck_nodes_form", MESSAGE_NO_ARGS);
    json_array_foreach (nodes, i, v) {
        if (!json_is_string(v))
            return message_refuse(err, ERR_BAD_REQUEST, "netcheck_nodes_form", MESSAGE_NO_ARGS);
        strv_add(&ret->nodes, json_string_value(v));
    }
    ret->pool = json_get_str(o, "pool", NULL);
    ret->python = json_get_str(o, "python", NULL);
    ret->anew = json_get_bool(o, "baseline", false);
    return 0;
}

static void api_network_check(struct http_req *req, void *app)
{
    struct api *a = app;
    struct netchecks_order order = {0};
    const struct netcheck *k = NULL;
    const char *field = NULL;
    struct err err = {0};
    _cleanup_(json_unrefp) json_t *o = api_read_action(req, &check_form);
    if (!o)
        return;
    int r = store_check(a->store, &err);
    if (r == 0)
        r = read_order(o, &order, &err);
    if (r == 0)
        r = netchecks_begin(a->netchecks, http_req_principal(req), &order, &k, &field, &err);
    strv_release(&order.nodes);
    if (r < 0 || !k) {
        http_problem(req, err.code, &err, field, NULL, 0);
        return;
    }
    const struct api_eyes eyes = {a, http_req_principal(req)};
    _cleanup_(buf_release) struct buf out = BUF_INIT(CHECK_ANSWER_MAX);
    struct jout j = jout_begin(&out);
    put_check(&eyes, k, &j, NULL);
    http_reply_json(req, 202, &out, api_barrier(a));
}

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/clusters/{cluster}/network",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_network,
     .summary = "what each pair of machines reaches, its baseline, and the newest checks",
     .reply_schema = "Network"},
    {.method = "POST",
     .pattern = "/v1/nodes:check",
     .least = HTTP_ROLE_ADMIN,
     .max_body = CHECK_BODY_MAX,
     .handle = api_network_check,
     .summary = "check the network between machines, by a job: all-reduce over each pair and all",
     .request_schema = "NetworkOrder",
     .reply_schema = "NetworkCheck",
     .reply_status = 202},
};

static const struct http_schema schemas[] = {
    {.name = "NetworkOrder", .table = &check_form, .is_form = true},
    {.name = "NetworkSize", .table = &netcheck_size_table},
    {.name = "NetworkTrouble", .table = &trouble_table},
    {.name = "NetworkCheck", .table = &check_page_table},
    {.name = "NetworkPair", .table = &netpair_page_table},
    {.name = "NetworkPeer", .table = &netpair_peer_table},
    LIST_AND("Network", "pairs", "NetworkPair", "," KEY("checks", LIST(REF("NetworkCheck")))),
};

const struct api_part part_network = {rows, array_len(rows), schemas, array_len(schemas)};
