/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_view.c - nodes and pools as JSON and as metrics; see nodes.h.
 *
 * A node has one row, whether it is registered, only attached, or both known to the registry and
 * listed by Ray. What may change by itself from second to second is left out, so that the ETag of
 * a node that nothing happens to stays. */
#include <stdlib.h>
#include <string.h>

#include "argusd/machines/nodes_run.h"
#include "base/field.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/text.h"

/* What a row needs to know, of either kind. */
struct shown {
    const char *name, *state, *health, *ip, *node_id;
    char *pool; /* NULL = no label */
    bool is_head, usable, draining, is_in;
    double gpus, cpus, foreign, held;
    usec_t since;
    struct node_reason reason;
};

/* ---- pieces ---- */

static void nodes_view_put_amounts(struct jout *j,
                                   const struct shown *s,
                                   const char *key,
                                   bool is_gpu,
                                   double used)
{
    double total = is_gpu ? s->gpus : s->cpus, held = is_gpu ? s->held : 0;
    double left = total > used ? total - used : 0;
    double room = left > held ? left - held : 0;
    jout_open(j, key, '{');
    jout_real(j, "total", total);
    jout_real(j, "used", used);
    jout_real(j, "free", s->usable ? room : 0);
    jout_real(j, "bad", s->usable || s->draining || s->is_head ? 0 : left);
    if (is_gpu) {
        jout_real(j, "foreign", s->foreign);
        jout_real(j, "held", held > s->foreign ? held - s->foreign : 0);
    }
    jout_close(j, '}');
}

static void put_jobs(struct jout *j,
                     const struct nodes *ns,
                     const char *node,
                     const struct nodes_eyes *eyes)
{
    const char *id;
    int64_t hidden = 0;
    jout_open(j, "jobs", '[');
    for (size_t i = 0; (id = sched_node_lease(ns->p.sched, node, i)); i++) {
        if (eyes->sees(id, eyes->arg))
            jout_str(j, NULL, id);
        else
            hidden++;
    }
    jout_close(j, ']');
    jout_int(j, "jobs_hidden", hidden);
}

static void nodes_view_put_labels(struct jout *j, const char *pool)
{
    const char *item;
    size_t n;
    jout_open(j, "labels", '[');
    while ((item = str_item(&pool, &n)))
        jout_strn(j, NULL, item, n);
    jout_close(j, ']');
}

static void nodes_view_put_reason(struct jout *j, const struct node_reason *r)
{
    jout_open(j, "reason", '{');
    jout_str(j, "code", r->code);
    jout_str(j, "text", r->text);
    jout_str(j, "fix", *r->fix ? r->fix : NULL);
    jout_close(j, '}');
}

static void put_common(const struct nodes *ns,
                       const struct shown *s,
                       const struct nodes_eyes *eyes,
                       struct jout *j)
{
    double gpus, cpus;
    sched_node_used(ns->p.sched, s->name, &gpus, &cpus);
    jout_str(j, "name", s->name);
    jout_str(j, "cluster", ns->p.settings->cluster);
    jout_str(j, "pool", s->pool);
    nodes_view_put_labels(j, s->pool);
    jout_str(j, "state", s->state);
    nodes_view_put_amounts(j, s, "gpus", true, gpus);
    nodes_view_put_amounts(j, s, "cpus", false, cpus);
    put_jobs(j, ns, s->name, eyes);
    jout_str(j, "health", s->health);
    jout_time(j, "since", s->since);
    nodes_view_put_reason(j, &s->reason);
    jout_str(j, "ip", s->ip);
    jout_bool(j, "is_head", s->is_head);
    jout_str(j, "ray_node_id", s->node_id);
}

/* ---- registered ---- */

static void nodes_view_set_reason(struct node_reason *r, const char *code, const char *text)
{
    text_copy(r->code, code);
    text_copy(r->text, text);
    r->fix[0] = 0;
}

/* Of one that is in there is no reason but its health's. */
static void show_health(const struct noderun *nr, struct shown *s)
{
    const struct node_row *n = nr->row;
    s->health = "ok";
    if (n->step != NODE_STEP_IN) {
        s->health = node_state_to_string(n->state);
    } else if (*n->sick) {
        s->health = "unhealthy";
        nodes_view_set_reason(&s->reason, "unhealthy", n->sick);
    } else if (nr->strays) {
        s->health = "strays";
        nodes_view_set_reason(&s->reason, "strays", nr->stray_text);
    } else if (n->ssh_away) {
        s->health = "ssh_unreachable";
        nodes_view_set_reason(&s->reason, "ssh_unreachable",
                              "ssh does not get through, though Ray has the node");
    } else if (nr->n_holds) {
        s->health = "cleaning";
    }
}

static void show_registered(const struct noderun *nr, struct shown *s)
{
    const struct node_row *n = nr->row;
    double used, cpus;
    sched_node_used(nr->nodes->p.sched, n->spec.name, &used, &cpus);
    double held = nodes_held(nr) + nr->foreign_gpus, room = nr->gpus > used ? nr->gpus - used : 0;
    *s = (struct shown){.name = n->spec.name,
                        .state = node_state_to_string(n->state),
                        .ip = *n->address ? n->address : n->spec.host,
                        .node_id = nr->ray_alive ? nr->ray_id : NULL,
                        .pool = n->spec.labels.n ? nodespec_pool(&n->spec) : NULL,
                        .is_head = n->is_head,
                        .usable = !*node_why_not(n) && !n->is_head && nr->takes_drivers,
                        .draining = n->state == NODE_DRAINING,
                        .is_in = n->step == NODE_STEP_IN,
                        .gpus = nr->gpus,
                        .cpus = nr->cpus,
                        .foreign = nr->foreign_gpus,
                        .held = held < room ? held : room,
                        .since = n->since,
                        .reason = n->reason};
    if (n->is_head && n->state == NODE_ONLINE)
        nodes_view_set_reason(&s->reason, "head", "the head does no computing");
    else if (n->state == NODE_ONLINE && nr->ray_alive && !nr->takes_drivers)
        nodes_view_set_reason(&s->reason, "no_driver_resources",
                              "it lacks what entrypoint_resources ask for");
    show_health(nr, s);
}

static void nodes_view_put_flags(const struct noderun *nr, struct jout *j)
{
    jout_open(j, "flags", '[');
    if (*nr->row->sick)
        jout_str(j, NULL, "unhealthy");
    if (nr->row->ssh_away)
        jout_str(j, NULL, "ssh_unreachable");
    if (nr->strays)
        jout_str(j, NULL, "strays");
    jout_close(j, ']');
}

static void put_drain(const struct noderun *nr, struct jout *j)
{
    const struct node_row *n = nr->row;
    char at[CLOCK_TEXT_MAX];
    if (n->want != NODE_WANT_DRAINED) {
        jout_null(j, "drain");
        return;
    }
    /* The deadline as it was when it was set: a moment that does not move with the clocks' noise.
     */
    usec_t deadline = n->drain_within ? n->drain_watch.wall + n->drain_within : 0;
    jout_open(j, "drain", '{');
    jout_str(j, "then", node_then_to_string(n->then));
    jout_str(j, "deadline", deadline ? clock_to_string(deadline, at) : NULL);
    jout_bool(j, "due", n->drain_due);
    jout_close(j, '}');
}

static void put_findings(const struct noderun *nr, struct jout *j)
{
    jout_open(j, "findings", '[');
    for (size_t i = 0; i < nr->n_findings; i++) {
        jout_open(j, NULL, '{');
        jout_str(j, "code", nr->findings[i].code);
        jout_str(j, "text", nr->findings[i].text);
        jout_str(j, "fix", nr->findings[i].fix);
        jout_close(j, '}');
    }
    jout_close(j, ']');
    jout_time(j, "checked_at", nr->found_at);
}

static void put_ports(const struct noderun *nr, struct jout *j)
{
    jout_open(j, "ports", '[');
    for (int k = 0; k < PORTS_COUNT; k++) {
        const struct ports_row *row = ports_row((enum ports_key)k);
        if (!row->on_node && !nr->row->is_head)
            continue;
        struct ports_range r =
            ports_at(&nr->nodes->p.settings->ports, (enum ports_key)k, nr->row->place);
        jout_open(j, NULL, '{');
        jout_str(j, "key", row->key);
        jout_int(j, "first", r.first);
        jout_int(j, "last", r.last);
        jout_str(j, "from", row->from);
        jout_str(j, "why", row->why);
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

void nodes_put(const struct noderun *nr,
               const struct nodes_eyes *eyes,
               struct jout *j,
               const char *key)
{
    const struct node_row *n = nr->row;
    struct shown s;
    show_registered(nr, &s);
    jout_open(j, key, '{');
    put_common(nr->nodes, &s, eyes, j);
    nodes_view_put_flags(nr, j);
    jout_bool(j, "registered", true);
    jout_str(j, "want", node_want_to_string(n->want));
    jout_str(j, "gpu_type",
             n->spec.gpu_type     ? n->spec.gpu_type
             : *n->facts.gpu_type ? n->facts.gpu_type
                                  : NULL);
    jout_str(j, "host_key", *n->host_key ? n->host_key : NULL);
    put_drain(nr, j);
    nodespec_to_json(&n->spec, j, "spec", true);
    field_to_json(&node_facts_table, &n->facts, FIELD_ALL, FIELD_PAGE, j, "facts");
    put_findings(nr, j);
    put_ports(nr, j);
    jout_close(j, '}');
    free(s.pool);
}

/* ---- attached ---- */

static void put_attached(const struct nodes *ns,
                         const struct cluster_node *k,
                         const struct nodes_eyes *eyes,
                         struct jout *j,
                         const char *key)
{
    double foreign = k->is_alive ? nodes_foreign(ns, k) : 0;
    struct shown s = {.name = k->name,
                      .state = k->is_alive ? "online" : "offline",
                      .health = k->is_alive ? "ok" : "offline",
                      .ip = k->ip,
                      .node_id = k->node_id,
                      .pool = *k->pool ? k->pool : NULL,
                      .is_head = k->is_head,
                      .usable = k->is_alive && !k->is_head && k->takes_drivers,
                      .gpus = k->gpus,
                      .cpus = k->cpus,
                      .foreign = foreign,
                      .held = foreign,
                      .since = k->since};
    if (!k->is_alive)
        nodes_view_set_reason(&s.reason, "ray_dead", str_or(k->message, "Ray has given it up"));
    else if (k->is_head)
        nodes_view_set_reason(&s.reason, "head", "the head does no computing");
    else if (!k->takes_drivers)
        nodes_view_set_reason(&s.reason, "no_driver_resources",
                              "it lacks what entrypoint_resources ask for");
    jout_open(j, key, '{');
    put_common(ns, &s, eyes, j);
    jout_raw(j, "flags", "[]");
    jout_bool(j, "registered", false);
    jout_close(j, '}');
}

/* A dead one hides behind the living, and both behind the registry's row. */
static bool nodes_view_is_hidden(const struct nodes *ns, const struct cluster_node *k)
{
    const struct noderun *head = nodes_find(ns, "head");
    if (nodes_is_registered(ns, k->name) || nodes_is_former(ns, k) || (head && k->is_head))
        return true;
    return !k->is_alive && cluster_find_name(ns->p.cluster, k->name) != k;
}

bool nodes_put_attached(const struct nodes *ns,
                        const char *name,
                        const struct nodes_eyes *eyes,
                        struct jout *j,
                        const char *key)
{
    const struct cluster_node *k = cluster_find_name(ns->p.cluster, name);
    if (!k || nodes_view_is_hidden(ns, k))
        return false;
    put_attached(ns, k, eyes, j, key);
    return true;
}

void nodes_put_all(const struct nodes *ns,
                   const struct nodes_eyes *eyes,
                   struct jout *j,
                   const char *key)
{
    size_t n;
    const struct cluster_node *v = cluster_nodes(ns->p.cluster, &n);
    jout_open(j, key, '[');
    for (size_t i = 0; i < ns->n; i++)
        if (!ns->v[i]->gone)
            nodes_put(ns->v[i], eyes, j, NULL);
    for (size_t i = 0; i < n; i++)
        if (!nodes_view_is_hidden(ns, &v[i]))
            put_attached(ns, &v[i], eyes, j, NULL);
    jout_close(j, ']');
}

/* ---- pools ---- */

struct pool {
    const char *label; /* NULL = all nodes */
    size_t len;
    double gpus, used, foreign; /* of all its nodes, usable or not */
    int nodes;
    char types[128];
};

struct pools {
    struct pool *v;
    size_t n;
};

static struct pool *nodes_view_find_pool(struct pools *ps, const char *label, size_t len)
{
    for (size_t i = 0; i < ps->n; i++)
        if (ps->v[i].len == len && (!len || !strncmp(ps->v[i].label, label, len)))
            return &ps->v[i];
    ps->v = xrealloc(ps->v, ps->n + 1, sizeof(*ps->v));
    ps->v[ps->n] = (struct pool){.label = label, .len = len};
    return &ps->v[ps->n++];
}

static void note_type(struct pool *p, const char *type)
{
    size_t n = strlen(p->types);
    if (type && *type && !str_list_has(p->types, type))
        text_printf_to(p->types + n, sizeof(p->types) - n, "%s%s", n ? "," : "", type);
}

static double used_on(const struct nodes *ns, const char *node)
{
    double gpus, cpus;
    sched_node_used(ns->p.sched, node, &gpus, &cpus);
    return gpus;
}

/* One node, into the whole and into each of its labels. */
struct counted {
    const char *labels, *type;
    double gpus, used, foreign;
};

static void count_in(struct pools *ps, const struct counted *c)
{
    const char *labels = c->labels;
    const char *item = NULL;
    size_t len = 0;
    do {
        struct pool *p = nodes_view_find_pool(ps, item, len);
        p->nodes++;
        p->gpus += c->gpus;
        p->used += c->used;
        p->foreign += c->foreign;
        note_type(p, c->type);
    } while ((item = str_item(&labels, &len)));
}

static int compare_pools(const void *a, const void *b)
{
    const struct pool *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int c = n ? strncmp(x->label, y->label, n) : 0;
    return c ? c : (x->len > y->len) - (x->len < y->len);
}

/* Texts are borrowed for one answer. */
struct pool_page {
    const char *cluster, *label, *type;
    int64_t nodes, usable_nodes, queued;
    struct {
        double total, used, foreign, held, free, draining, bad;
    } gpus;
    double largest_gang;
    usec_t next_free;
};

#define ROW(key, ftype, member, ...)                                                               \
    {                                                                                              \
        .name = key, .type = ftype, .offset = offsetof(struct pool_page, member), __VA_ARGS__      \
    }
static const struct field pool_rows[] = {
    ROW("cluster", FIELD_STR, cluster, .flags = FIELD_ALWAYS),
    ROW("pool", FIELD_STR, label, .doc = "a label; null: all nodes"),
    ROW("type", FIELD_STR, type),
    ROW("nodes", FIELD_INT, nodes),
    ROW("usable_nodes", FIELD_INT, usable_nodes),
    ROW("gpus.total", FIELD_REAL, gpus.total),
    ROW("gpus.used", FIELD_REAL, gpus.used),
    ROW("gpus.foreign", FIELD_REAL, gpus.foreign),
    ROW("gpus.held", FIELD_REAL, gpus.held),
    ROW("gpus.free", FIELD_REAL, gpus.free),
    ROW("gpus.draining", FIELD_REAL, gpus.draining),
    ROW("gpus.bad", FIELD_REAL, gpus.bad),
    ROW("largest_gang", FIELD_REAL, largest_gang),
    ROW("queued", FIELD_INT, queued),
    ROW("next_free", FIELD_TIME, next_free),
};
#undef ROW
const struct field_table nodes_pool_table = {"Pool", pool_rows, array_len(pool_rows),
                                             sizeof(struct pool_page), 0};

static void put_pool(const struct nodes *ns, const struct pool *p, struct jout *j)
{
    struct sched_pool s;
    _cleanup_(freep) char *label = p->len ? xstrndup(p->label, p->len) : NULL;
    usec_t now = jobs_now(ns->p.jobs);
    sched_pool(ns->p.sched, str_or(label, ""), now, &s);
    usec_t left = s.next_free > now ? s.next_free - now : 0;
    const struct pool_page page = {
        .cluster = ns->p.settings->cluster,
        .label = label,
        .type = *p->types ? p->types : NULL,
        .nodes = p->nodes,
        .usable_nodes = s.nodes,
        .gpus = {.total = p->gpus,
                 .used = p->used,
                 .foreign = p->foreign,
                 .held = s.held > p->foreign ? s.held - p->foreign : 0,
                 .free = s.free,
                 .draining = s.draining,
                 .bad = s.bad},
        .largest_gang = s.largest_gang,
        .queued = s.queued,
        .next_free = s.next_free ? clock_wall() + left : 0,
    };
    field_to_json(&nodes_pool_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
}

void nodes_put_pools(const struct nodes *ns, struct jout *j, const char *key)
{
    size_t n;
    const struct cluster_node *v = cluster_nodes(ns->p.cluster, &n);
    struct pools ps = {0};
    char **labels = xcalloc(ns->n + 1, sizeof(*labels));
    (void)nodes_view_find_pool(&ps, NULL, 0); /* the whole comes first */
    for (size_t i = 0; i < ns->n; i++) {
        const struct noderun *nr = ns->v[i];
        const struct nodespec *spec = &nr->row->spec;
        if (nr->row->is_head || nr->gone)
            continue;
        labels[i] = nodespec_pool(spec);
        struct counted c = {.labels = labels[i],
                            .type = spec->gpu_type ? spec->gpu_type : nr->row->facts.gpu_type,
                            .gpus = nr->gpus,
                            .used = used_on(ns, spec->name),
                            .foreign = nr->foreign_gpus};
        count_in(&ps, &c);
    }
    for (size_t i = 0; i < n; i++) {
        struct counted c = {.labels = v[i].pool, .gpus = v[i].gpus};
        if (!v[i].is_alive || v[i].is_head || nodes_view_is_hidden(ns, &v[i]))
            continue;
        c.used = used_on(ns, v[i].name);
        c.foreign = nodes_foreign(ns, &v[i]);
        count_in(&ps, &c);
    }
    xsort(ps.v, ps.n, sizeof(*ps.v), compare_pools);
    jout_open(j, key, '[');
    for (size_t i = 0; i < ps.n; i++)
        put_pool(ns, &ps.v[i], j);
    jout_close(j, ']');
    for (size_t i = 0; i < ns->n; i++)
        free(labels[i]);
    free(labels);
    free(ps.v);
}

/* ---- counts ---- */

void nodes_count(const struct nodes *ns, size_t *ret_registered, size_t *ret_online)
{
    *ret_registered = *ret_online = 0;
    for (size_t i = 0; i < ns->n; i++) {
        if (ns->v[i]->row->is_head)
            continue;
        ++*ret_registered;
        *ret_online += ns->v[i]->row->state == NODE_ONLINE;
    }
}

const struct node_row *nodes_row(const struct noderun *nr)
{
    return nr->row;
}

void nodes_put_metrics(const struct nodes *ns, const char *prefix, struct buf *out)
{
    (void)buf_addf(out,
                   "# HELP %snode_state 1 for the state that a registered node is in.\n"
                   "# TYPE %snode_state gauge\n",
                   prefix, prefix); /* overflow: out->failed, here and below */
    for (size_t i = 0; i < ns->n; i++)
        for (int s = 0; s < NODE_STATE_END; s++)
            (void)buf_addf(out, "%snode_state{node=\"%s\",state=\"%s\"} %d\n", prefix,
                           ns->v[i]->row->spec.name, node_state_to_string((enum node_state)s),
                           ns->v[i]->row->state == (enum node_state)s);
    (void)buf_addf(out,
                   "# HELP %snode_unhealthy 1 while its health keeps jobs off.\n"
                   "# TYPE %snode_unhealthy gauge\n",
                   prefix, prefix);
    for (size_t i = 0; i < ns->n; i++)
        (void)buf_addf(out, "%snode_unhealthy{node=\"%s\"} %d\n", prefix, ns->v[i]->row->spec.name,
                       *ns->v[i]->row->sick != 0);
    (void)buf_addf(out,
                   "# HELP %sforeign_gpus GPUs that Ray counts as used and that are not ours.\n"
                   "# TYPE %sforeign_gpus gauge\n",
                   prefix, prefix);
    for (size_t i = 0; i < ns->n; i++)
        (void)buf_addf(out, "%sforeign_gpus{node=\"%s\"} %g\n", prefix, ns->v[i]->row->spec.name,
                       ns->v[i]->foreign_gpus);
}
