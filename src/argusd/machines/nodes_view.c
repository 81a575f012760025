/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_view.c - nodes as JSON and as metrics; see nodes.h.
 *
 * A node has one row, whether it is registered, only attached, or both known to the registry and
 * listed by Ray. What may change by itself from second to second is left out, so that the ETag of
 * a node that nothing happens to stays. */
#include <stdlib.h>
#include <string.h>

#include "argusd/machines/nodes_run.h"
#include "argusd/machines/nodes_slots.h"
#include "base/digest/hash.h"
#include "base/field.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/account/slotbook.h"
#include "core/job/network.h"
#include "http/expo.h"

/* ---- the page ---- */

struct amounts_page {
    double total, used, free, bad, foreign, held; /* the last two: -1 = left out */
};
#define AMOUNT(key, ...) FIELD_AT(amounts_page, #key, FIELD_REAL, key, __VA_ARGS__)
static const struct field amounts_rows[] = {
    AMOUNT(total),
    AMOUNT(used),
    AMOUNT(free),
    AMOUNT(bad),
    AMOUNT(foreign, .flags = FIELD_NO_LIMIT | FIELD_OMIT),
    AMOUNT(held, .flags = FIELD_NO_LIMIT | FIELD_OMIT),
};
#undef AMOUNT
static const struct field_table amounts_table = FIELD_TABLE(NULL, amounts_rows, amounts_page);

/* A message as its reader gets it, see kit/saying.h. */
struct reason_page {
    const char *code, *text, *fix, *args;
    struct message_page said;
};
static const struct field reason_rows[] = {
    FIELD_AT(reason_page, "code", FIELD_STR, code, .flags = FIELD_ALWAYS),
    FIELD_AT(reason_page, "text", FIELD_STR, text, .flags = FIELD_ALWAYS),
    FIELD_AT(reason_page, "fix", FIELD_STR, fix),
    FIELD_AT(reason_page,
             "args",
             FIELD_JSON,
             args,
             .flags = FIELD_OMIT | FIELD_BORROWED,
             .schema = MESSAGE_ARGS_SCHEMA),
};
const struct field_table nodes_reason_table = FIELD_TABLE("NodeReason", reason_rows, reason_page);

struct drain_page {
    const char *then;
    usec_t deadline;
    bool is_due, stop_foreign;
};
static const struct field drain_rows[] = {
    FIELD_AT(drain_page, "then", FIELD_STR, then, .flags = FIELD_ALWAYS),
    FIELD_AT(drain_page, "deadline", FIELD_TIME, deadline),
    FIELD_AT(drain_page, "due", FIELD_BOOL, is_due),
    FIELD_AT(drain_page,
             "stop_foreign",
             FIELD_BOOL,
             stop_foreign,
             .doc =
                 "jobs that Argus did not submit are not waited for, but stopped with the machine"),
};
const struct field_table nodes_drain_table = FIELD_TABLE("NodeDrain", drain_rows, drain_page);

struct port_page {
    const char *key, *from, *why;
    int first, last;
};
static const struct field port_rows[] = {
    FIELD_AT(port_page, "key", FIELD_STR, key, .flags = FIELD_ALWAYS),
    FIELD_AT(port_page, "first", FIELD_INT32, first),
    FIELD_AT(port_page, "last", FIELD_INT32, last),
    FIELD_AT(port_page, "from", FIELD_STR, from, .flags = FIELD_ALWAYS),
    FIELD_AT(port_page, "why", FIELD_STR, why, .flags = FIELD_ALWAYS),
};
static const struct field_table port_table = FIELD_TABLE(NULL, port_rows, port_page);

static const struct field lease_rows[] = {
    FIELD_AT(node_lease_page, "job", FIELD_STR, job, .doc = "null: the job of somebody else"),
    FIELD_AT(node_lease_page, "gpu_ids", FIELD_BITS, gpus),
    FIELD_AT(node_lease_page, "gpus", FIELD_REAL, amount, .doc = "less than one: a share of it"),
};
const struct field_table nodes_lease_table = FIELD_TABLE("NodeLease", lease_rows, node_lease_page);

/* A node of either kind. Texts are borrowed for one answer; labels, jobs, leases, pool and spec
 * are owned. */
struct node_page {
    const char *name, *cluster, *state, *health, *ip, *node_id, *peers;
    char *pool, *spec;
    struct strv labels, jobs;
    struct field_list leases; /* of node_lease_page */
    struct field_list slots;  /* of node_slot_page */
    struct amounts_page gpus, cpus;
    int64_t jobs_hidden;
    usec_t since;
    struct node_reason reason;
    struct reason_page shown_reason, shown_findings[PROBE_FINDINGS_MAX];
    bool is_head, is_registered;
    uint64_t flags;
    /* What only a registered node has. */
    const char *want, *gpu_type, *host_key;
    const struct drain_page *drain;
    struct drain_page its_drain;
    struct node_facts facts;
    struct pairs network_env; /* owned */
    struct field_list findings, ports;
    usec_t checked_at;
    struct port_page its_ports[PORTS_COUNT];
    struct reason_page *exporter, its_exporter; /* NULL: it has none, or it is not known yet */
    char exporter_says[NODE_TEXT_MAX];
    /* What the amounts are made of. */
    bool usable, draining;
    double gpus_total, cpus_total, foreign, held;
};

enum { NODE_FLAG_UNHEALTHY = 1 << 0, NODE_FLAG_SSH_AWAY = 1 << 1, NODE_FLAG_STRAYS = 1 << 2 };
static const char *const flag_words[] = {"unhealthy", "ssh_unreachable", "strays", NULL};

/* Rows of each node, and those of a registered one alone. */
#define EACH(key, ftype, member, how, ...)                                                         \
    FIELD_AT(node_page, key, ftype, member, .flags = FIELD_SHOWN | (how), __VA_ARGS__)
#define REGISTERED FIELD_OWN(0)
#define TEXT_MAP "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}"
#define PEERS "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/NetworkPeer\"}}"
#define OWN(key, ftype, member, how, ...)                                                          \
    FIELD_AT(node_page, key, ftype, member, .flags = REGISTERED | (how), __VA_ARGS__)
static const struct field node_rows[] = {
    EACH("name", FIELD_STR, name, FIELD_ALWAYS),
    EACH("cluster", FIELD_STR, cluster, FIELD_ALWAYS),
    EACH("pool", FIELD_STR, pool, 0),
    EACH("labels", FIELD_STRV, labels, 0),
    EACH("state",
         FIELD_STR,
         state,
         FIELD_ALWAYS,
         .schema = "{\"enum\":[\"pending\",\"online\",\"draining\",\"offline\"]}"),
    EACH("gpus", FIELD_OBJECT, gpus, 0, .of = &amounts_table),
    EACH("cpus", FIELD_OBJECT, cpus, 0, .of = &amounts_table),
    EACH("jobs", FIELD_STRV, jobs, 0),
    EACH("jobs_hidden", FIELD_INT, jobs_hidden, 0),
    EACH("leases", FIELD_LIST, leases, 0, .of = &nodes_lease_table, .doc = "who holds which GPU"),
    EACH("slots",
         FIELD_LIST,
         slots,
         FIELD_OMIT,
         .of = &nodes_slot_table,
         .doc = "its GPUs one by one; in the list of machines"),
    EACH("health", FIELD_STR, health, FIELD_ALWAYS),
    EACH("since", FIELD_TIME, since, 0),
    EACH("reason", FIELD_OBJECT, shown_reason, 0, .of = &nodes_reason_table),
    EACH("ip", FIELD_STR, ip, FIELD_ALWAYS),
    EACH("is_head", FIELD_BOOL, is_head, 0),
    EACH("ray_node_id", FIELD_STR, node_id, 0),
    EACH("flags", FIELD_BITS, flags, 0, .names = flag_words),
    EACH("registered", FIELD_BOOL, is_registered, 0),
    EACH("network_peers",
         FIELD_JSON,
         peers,
         FIELD_OMIT | FIELD_BORROWED,
         .schema = PEERS,
         .doc = "what it reaches with others; on the page of one machine"),
    OWN("want", FIELD_STR, want, FIELD_ALWAYS),
    OWN("gpu_type", FIELD_STR, gpu_type, 0),
    OWN("host_key", FIELD_STR, host_key, 0),
    OWN("drain", FIELD_PART, drain, 0, .of = &nodes_drain_table),
    OWN("spec", FIELD_JSON, spec, FIELD_ALWAYS, .schema = "NodeSpecShown"),
    OWN("facts", FIELD_OBJECT, facts, 0, .of = &node_facts_table),
    OWN("network_env",
        FIELD_PAIRS,
        network_env,
        0,
        .schema = TEXT_MAP,
        .doc = "what jobs get that say nothing themselves"),
    OWN("exporter",
        FIELD_PART,
        exporter,
        0,
        .of = &nodes_reason_table,
        .doc = "how the exporter of its NodeSpec is"),
    OWN("findings", FIELD_LIST, findings, 0, .of = &nodes_reason_table),
    OWN("checked_at", FIELD_TIME, checked_at, 0),
    OWN("ports", FIELD_LIST, ports, 0, .of = &port_table),
};
#undef EACH
#undef OWN
const struct field_table nodes_node_table = FIELD_TABLE("Node", node_rows, node_page);

/* ---- pieces ---- */

static struct amounts_page amounts_of(const struct node_page *p, bool is_gpu, double used)
{
    double total = is_gpu ? p->gpus_total : p->cpus_total, held = is_gpu ? p->held : 0;
    double left = total > used ? total - used : 0;
    double room = left > held ? left - held : 0;
    return (struct amounts_page){.total = total,
                                 .used = used,
                                 .free = p->usable ? room : 0,
                                 .bad = p->usable || p->draining || p->is_head ? 0 : left,
                                 .foreign = is_gpu ? p->foreign : -1,
                                 .held = !is_gpu             ? -1
                                         : held > p->foreign ? held - p->foreign
                                                             : 0};
}

/* What the job holds of this machine; nothing: it has a place there and no GPU. */
static struct node_lease_page nodes_view_lease(const struct nodes *ns,
                                               const char *job,
                                               const char *node)
{
    struct node_lease_page page = {0};
    struct sched_part part;
    for (size_t i = 0; sched_lease_part(ns->p.sched, job, i, &part); i++)
        if (!strcmp(part.node, node)) {
            page.gpus |= part.gpus;
            page.amount += (double)part.amount / SLOTBOOK_GPU;
        }
    return page;
}

static void nodes_view_fill_jobs(const struct nodes *ns,
                                 const struct nodes_eyes *eyes,
                                 struct node_page *p)
{
    struct node_lease_page *leases = NULL;
    const char *id;
    for (size_t i = 0; (id = sched_node_lease(ns->p.sched, p->name, i)); i++) {
        bool is_seen = eyes->sees(id, eyes->arg);
        leases = xrealloc(leases, i + 1, sizeof(*leases));
        leases[i] = nodes_view_lease(ns, id, p->name);
        leases[i].job = is_seen ? id : NULL;
        p->leases = (struct field_list){.n = i + 1, .v = leases};
        if (is_seen)
            strv_add(&p->jobs, id);
        else
            p->jobs_hidden++;
    }
}

static void nodes_view_fill_labels(struct node_page *p)
{
    const char *item, *list = p->pool;
    size_t n;
    while ((item = str_item(&list, &n))) {
        _cleanup_(freep) char *label = xstrndup(item, n);
        strv_add(&p->labels, label);
    }
}

static struct reason_page nodes_view_say(const struct nodes_eyes *eyes,
                                         const char *code,
                                         const char *text,
                                         const char *fix)
{
    struct reason_page r = {.code = code};
    message_page(code, text, eyes->listener, &r.said);
    r.text = r.said.text;
    r.fix = *fix ? fix : r.said.fix;
    r.args = str_or(r.said.args, "null");
    return r;
}

/* What both kinds have, once the rest is there; written and released. */
static void nodes_view_put(const struct nodes *ns,
                           struct node_page *p,
                           const struct nodes_eyes *eyes,
                           struct jout *j,
                           const char *key)
{
    double gpus, cpus;
    unsigned which = FIELD_SHOWN | (p->is_registered ? REGISTERED : 0);
    sched_node_used(ns->p.sched, p->name, &gpus, &cpus);
    p->cluster = ns->p.settings->cluster;
    p->gpus = amounts_of(p, true, gpus);
    p->cpus = amounts_of(p, false, cpus);
    p->shown_reason = nodes_view_say(eyes, p->reason.code, p->reason.text, p->reason.fix);
    p->peers = eyes->peers;
    nodes_view_fill_labels(p);
    nodes_view_fill_jobs(ns, eyes, p);
    if (eyes->with_slots) {
        const struct nodes_slots_of of = {.node = p->name,
                                          .total = p->gpus_total,
                                          .foreign = p->foreign,
                                          .held = p->held,
                                          .usable = p->usable,
                                          .draining = p->draining,
                                          .is_head = p->is_head,
                                          .leases = p->leases.v,
                                          .n = p->leases.n};
        nodes_slots_list(ns, &of, &p->slots);
    }
    field_to_json(&nodes_node_table, p, which, FIELD_PAGE, j, key);
    message_page_release(&p->shown_reason.said);
    if (p->exporter)
        message_page_release(&p->its_exporter.said);
    for (size_t i = 0; i < p->findings.n; i++)
        message_page_release(&p->shown_findings[i].said);
    strv_release(&p->labels);
    strv_release(&p->jobs);
    free(p->leases.v);
    nodes_slots_release(&p->slots);
    pairs_release(&p->network_env);
    free(p->pool);
    free(p->spec);
}

/* ---- registered ---- */

static void nodes_view_set_reason(struct node_reason *r, const char *code, const char *text)
{
    text_copy(r->code, code);
    text_copy(r->text, text);
    r->fix[0] = 0;
}

/* A node that is in has no reason but its health's. */
static void show_health(const struct noderun *nr, struct node_page *p)
{
    const struct node_row *n = nr->row;
    p->health = "ok";
    if (n->step != NODE_STEP_IN) {
        p->health = node_state_to_string(n->state);
    } else if (*n->sick) {
        p->health = "unhealthy";
        nodes_view_set_reason(&p->reason, "unhealthy", n->sick);
    } else if (n->net != NODE_NET_FREE) {
        p->health = n->net == NODE_NET_BAD ? "unhealthy" : "checking";
        nodes_view_set_reason(&p->reason, n->net_code, n->net_text);
    } else if (nr->strays) {
        p->health = "strays";
        nodes_view_set_reason(&p->reason, "strays", nr->stray_text);
    } else if (n->ssh_away) {
        p->health = "ssh_unreachable";
        nodes_view_set_reason(&p->reason, "ssh_unreachable", "{}");
    } else if (nr->n_holds) {
        p->health = "cleaning";
    }
}

/* Whoever waits for the machine to go is told why it does not, however well it is. */
static void show_health_or_wait(const struct noderun *nr, struct node_page *p)
{
    const struct node_reason own = p->reason;
    bool waits = !strcmp(own.code, "drain_foreign") || !strcmp(own.code, "drain_untold");
    show_health(nr, p);
    if (waits)
        p->reason = own;
}

static void show_registered(const struct noderun *nr, struct node_page *p)
{
    const struct node_row *n = nr->row;
    double used, cpus;
    sched_node_used(nr->nodes->p.sched, n->spec.name, &used, &cpus);
    double held = nodes_held(nr) + nr->foreign_gpus, room = nr->gpus > used ? nr->gpus - used : 0;
    *p = (struct node_page){.name = n->spec.name,
                            .state = node_state_to_string(n->state),
                            .ip = *n->address ? n->address : n->spec.host,
                            .node_id = nr->ray_alive ? nr->ray_id : NULL,
                            .pool = n->spec.labels.n ? nodespec_pool(&n->spec) : NULL,
                            .is_head = n->is_head,
                            .is_registered = true,
                            .usable = !*node_why_not(n) && !n->is_head && nr->takes_drivers,
                            .draining = n->state == NODE_DRAINING,
                            .gpus_total = nr->gpus,
                            .cpus_total = nr->cpus,
                            .foreign = nr->foreign_gpus,
                            .held = held < room ? held : room,
                            .since = n->since,
                            .reason = n->reason};
    if (n->is_head && n->state == NODE_ONLINE)
        nodes_view_set_reason(&p->reason, "head", "{}");
    else if (n->state == NODE_ONLINE && nr->ray_alive && !nr->takes_drivers)
        nodes_view_set_reason(&p->reason, "no_driver_resources", "{}");
    show_health_or_wait(nr, p);
}

static void show_drain(const struct noderun *nr, struct node_page *p)
{
    const struct node_row *n = nr->row;
    /* The deadline as it was when it was set: a moment that does not move with the clocks' noise.
     */
    p->its_drain =
        (struct drain_page){.then = node_then_to_string(n->then),
                            .deadline = n->drain_within ? n->drain_watch.wall + n->drain_within : 0,
                            .is_due = n->drain_due,
                            .stop_foreign = n->stop_foreign};
    p->drain = n->want == NODE_WANT_DRAINED ? &p->its_drain : NULL;
}

static void show_ports(const struct noderun *nr, struct node_page *p)
{
    p->ports.v = p->its_ports;
    for (int k = 0; k < PORTS_COUNT; k++) {
        const struct ports_row *row = ports_row((enum ports_key)k);
        if (!row->on_node && !nr->row->is_head)
            continue;
        struct ports_range r =
            ports_at(&nr->nodes->p.settings->ports, (enum ports_key)k, nr->row->place);
        p->its_ports[p->ports.n++] = (struct port_page){
            .key = row->key, .from = row->from, .why = row->why, .first = r.first, .last = r.last};
    }
}

static void show_exporter(const struct noderun *nr,
                          const struct nodes_eyes *eyes,
                          struct node_page *p)
{
    const char *why = "", *code = nr->exporter.code;
    int port = *code ? figures_exporter(nr->nodes->p.figures, nr->row->spec.name, &why) : 0;
    if (!*code)
        return;
    if (port && *why) {
        message_write(p->exporter_says, sizeof(p->exporter_says),
                      MESSAGE_ARGS(MESSAGE_NUM("port", port), MESSAGE_STR("says", why)));
        p->its_exporter = nodes_view_say(eyes, "exporter_silent", p->exporter_says, "");
    } else {
        p->its_exporter = nodes_view_say(eyes, code, nr->exporter.text, "");
    }
    p->exporter = &p->its_exporter;
}

static uint64_t flags_of(const struct noderun *nr)
{
    return (node_is_unhealthy(nr->row) ? NODE_FLAG_UNHEALTHY : 0u) |
           (nr->row->ssh_away ? NODE_FLAG_SSH_AWAY : 0u) | (nr->strays ? NODE_FLAG_STRAYS : 0u);
}

void nodes_put(const struct noderun *nr,
               const struct nodes_eyes *eyes,
               struct jout *j,
               const char *key)
{
    const struct node_row *n = nr->row;
    struct node_page p;
    show_registered(nr, &p);
    show_drain(nr, &p);
    show_ports(nr, &p);
    show_exporter(nr, eyes, &p);
    p.flags = flags_of(nr);
    p.want = node_want_to_string(n->want);
    p.gpu_type = n->spec.gpu_type     ? n->spec.gpu_type
                 : *n->facts.gpu_type ? n->facts.gpu_type
                                      : NULL;
    p.host_key = *n->host_key ? n->host_key : NULL;
    p.spec = nodespec_text(&n->spec, true);
    p.facts = n->facts;
    const struct network_node node = {
        .name = n->spec.name, .facts = &n->facts, .own = &n->spec.env};
    network_profile(&node, &nr->nodes->p.settings->env_vars, &p.network_env);
    p.findings.n = nr->n_findings;
    p.findings.v = p.shown_findings;
    for (size_t i = 0; i < nr->n_findings; i++)
        p.shown_findings[i] = nodes_view_say(eyes, nr->findings[i].code, nr->findings[i].text, "");
    p.checked_at = nr->found_at;
    nodes_view_put(nr->nodes, &p, eyes, j, key);
}

/* ---- attached ---- */

static const char *nodes_view_attached_state(const struct cluster_node *k)
{
    return k->is_alive ? "online" : "offline";
}

static void put_attached(const struct nodes *ns,
                         const struct cluster_node *k,
                         const struct nodes_eyes *eyes,
                         struct jout *j,
                         const char *key)
{
    double foreign = k->is_alive ? nodes_foreign(ns, k) : 0;
    struct node_page p = {.name = k->name,
                          .state = nodes_view_attached_state(k),
                          .health = k->is_alive ? "ok" : "offline",
                          .ip = k->ip,
                          .node_id = k->node_id,
                          .pool = *k->pool ? xstrdup(k->pool) : NULL,
                          .is_head = k->is_head,
                          .usable = k->is_alive && !k->is_head && k->takes_drivers,
                          .gpus_total = k->gpus,
                          .cpus_total = k->cpus,
                          .foreign = foreign,
                          .held = foreign,
                          .since = k->since};
    if (!k->is_alive) {
        text_copy(p.reason.code, "ray_dead");
        message_write(p.reason.text, sizeof(p.reason.text),
                      MESSAGE_ARGS(MESSAGE_STR("says", str_or(k->message, ""))));
    }
    if (k->is_alive && k->is_head)
        nodes_view_set_reason(&p.reason, "head", "{}");
    else if (k->is_alive && !k->takes_drivers)
        nodes_view_set_reason(&p.reason, "no_driver_resources", "{}");
    nodes_view_put(ns, &p, eyes, j, key);
}

/* A dead one hides behind the living, and both behind the registry's row. */
bool nodes_view_is_hidden(const struct nodes *ns, const struct cluster_node *k)
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

bool nodes_next_name(const struct nodes *ns, size_t *pos, struct nodes_name *ret)
{
    size_t n;
    const struct cluster_node *v = cluster_nodes(ns->p.cluster, &n);
    for (; *pos < ns->n; ++*pos)
        if (!ns->v[*pos]->gone) {
            const struct node_row *row = ns->v[(*pos)++]->row;
            *ret = (struct nodes_name){row->spec.name, node_state_to_string(row->state)};
            return true;
        }
    for (; *pos < ns->n + n; ++*pos)
        if (!nodes_view_is_hidden(ns, &v[*pos - ns->n])) {
            const struct cluster_node *k = &v[(*pos)++ - ns->n];
            *ret = (struct nodes_name){k->name, nodes_view_attached_state(k)};
            return true;
        }
    return false;
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

double nodes_gpus(const struct noderun *nr)
{
    return nr->gpus;
}

void nodes_put_metrics(const struct nodes *ns, struct expo *e)
{
    expo_family(e, EXPO_GAUGE, "node_state", "1 for the state that a registered node is in.");
    for (size_t i = 0; i < ns->n; i++)
        for (int s = 0; s < NODE_STATE_END; s++)
            EXPO_PUT(e, ns->v[i]->row->state == (enum node_state)s,
                     {"node", ns->v[i]->row->spec.name},
                     {"state", node_state_to_string((enum node_state)s)});
    expo_family(e, EXPO_GAUGE, "node_unhealthy", "1 while its health keeps jobs off.");
    for (size_t i = 0; i < ns->n; i++)
        EXPO_PUT(e, node_is_unhealthy(ns->v[i]->row), {"node", ns->v[i]->row->spec.name});
}
