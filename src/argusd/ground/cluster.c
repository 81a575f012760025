/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - polls Ray and the shared root; see cluster.h.
 *
 * A node is named by its resource argus_node_<name>, else by its address. Nodes
 * that vanish from Ray's list are dropped with it; dead ones stay for people to
 * see. An unusable answer changes nothing but how long Ray has been silent. */
#include "argusd/ground/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/foreign.h"
#include "argusd/ground/inventory.h"
#include "argusd/ground/rootwatch.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/share.h"
#include "ray/reach.h"

enum { NODE_POLL_MS = 2000 };
static const usec_t AWAY_AFTER = 10 * USEC_SEC; /* silence that counts as away */
static const usec_t VERSION_EVERY = 10 * USEC_SEC;
static const usec_t USAGE_EVERY = 3 * USEC_SEC; /* Ray's monitor writes it every 5 s */
static const usec_t USAGE_SOON = USEC_SEC;      /* a machine waits to go until it is new */
static const char NODE_RESOURCE[] = "argus_node_";

struct cluster {
    uv_loop_t *loop;
    const struct settings *settings;
    struct ray_client *ray;
    struct events *events;
    struct cluster_ops ops;
    uv_timer_t node_timer;
    struct rootwatch *root;
    struct ray_call *node_call, *version_call, *usage_call;
    char root_mark[80];

    bool up, ever_up;
    bool too_old; /* Ray has no token authentication, and argus.yaml asks for it */
    usec_t answered_at, asked_since, version_at; /* monotonic */
    usec_t silent_since;                         /* wall; 0 = it answers */
    usec_t up_since;                             /* wall; of the last time that it went up */
    char *version, *session, *head_ip, *head_id;
    char why_ray[JOB_REASON_TEXT_MAX]; /* arguments of ray_unreachable; "" = it answers */
    struct cluster_node *nodes;
    size_t n;
    uint64_t generation;
    struct usage { /* sorted by id */
        char *node_id;
        double gpus, cpus;
    } * usages;
    size_t n_usages;
    usec_t usage_asked;          /* monotonic */
    bool usage_answered;         /* however: a Ray that cannot tell does not stop us */
    usec_t use_of;               /* see cluster_use_of() */
    usec_t report, report_asked; /* the last report: when it was written (the head's clock), and
                                    when it was asked for */
    struct foreign *foreign;
    struct strv own_addresses; /* of this machine, as of the last list of nodes */
};

/* ---- reading ---- */

struct foreign *cluster_foreign(const struct cluster *c)
{
    return c->foreign;
}

usec_t cluster_use_of(const struct cluster *c)
{
    return c->use_of;
}

bool cluster_is_up(const struct cluster *c)
{
    return c->up;
}

usec_t cluster_up_since(const struct cluster *c)
{
    return c->up ? c->up_since : 0;
}

bool cluster_root_is_ok(const struct cluster *c)
{
    return rootwatch_is_ok(c->root);
}

bool cluster_root_is_known(const struct cluster *c)
{
    return rootwatch_is_known(c->root);
}

bool cluster_root_is_bad(const struct cluster *c)
{
    return rootwatch_is_known(c->root) && !rootwatch_is_ok(c->root);
}

int cluster_check_root_answers(const struct cluster *c, struct err *err)
{
    return rootwatch_hangs(c->root)
               ? message_refuse(err, ERR_UNAVAILABLE, "shared_root_hangs", MESSAGE_NO_ARGS)
               : 0;
}

int cluster_check_root(const struct cluster *c, struct err *err)
{
    if (!rootwatch_is_known(c->root))
        return message_refuse(err, ERR_NOT_YET, "shared_root_not_seen", MESSAGE_NO_ARGS);
    if (!rootwatch_is_ok(c->root) && !rootwatch_hangs(c->root)) {
        const struct err *why = rootwatch_trouble(c->root);
        return message_refuse(err, ERR_UNAVAILABLE, "shared_root_unavailable",
                              MESSAGE_ARGS(MESSAGE_ERR("why", why)));
    }
    return cluster_check_root_answers(c, err);
}

void cluster_root_why(const struct cluster *c, const char **ret_code, const char **ret_text)
{
    rootwatch_why(c->root, ret_code, ret_text);
}

bool cluster_root_hangs(const struct cluster *c)
{
    return rootwatch_hangs(c->root);
}

const char *cluster_ray_version(const struct cluster *c)
{
    return str_or(c->version, "");
}

const char *cluster_session(const struct cluster *c)
{
    return str_or(c->session, "");
}

const char *cluster_head_ip(const struct cluster *c)
{
    return str_or(c->head_ip, "");
}

const struct strv *cluster_root_names(const struct cluster *c)
{
    return rootwatch_names(c->root);
}

uint64_t cluster_root_free_bytes(const struct cluster *c)
{
    return rootwatch_free_bytes(c->root);
}

usec_t cluster_root_write_took(const struct cluster *c)
{
    return rootwatch_write_took(c->root);
}

const struct cluster_node *cluster_nodes(const struct cluster *c, size_t *ret_n)
{
    *ret_n = c->n;
    return c->nodes;
}

const struct cluster_node *cluster_find_id(const struct cluster *c, const char *node_id)
{
    for (size_t i = 0; i < c->n; i++)
        if (str_eq(c->nodes[i].node_id, node_id))
            return &c->nodes[i];
    return NULL;
}

const struct cluster_node *cluster_find_name(const struct cluster *c, const char *name)
{
    const struct cluster_node *dead = NULL;
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->nodes[i].name, name)) {
            if (c->nodes[i].is_alive)
                return &c->nodes[i];
            dead = &c->nodes[i];
        }
    return dead;
}

bool cluster_is_worker_ip(const struct cluster *c, const char *ip)
{
    for (size_t i = 0; i < c->n; i++)
        if (!c->nodes[i].is_head && c->nodes[i].is_alive && str_eq(c->nodes[i].ip, ip))
            return true;
    return false;
}

uint64_t cluster_generation(const struct cluster *c)
{
    return c->generation;
}

const char *cluster_root_mark(const struct cluster *c)
{
    return c->root_mark;
}

void cluster_why_not(const struct cluster *c, const char **ret_code, const char **ret_text)
{
    *ret_code = *ret_text = "";
    if (!rootwatch_is_ok(c->root))
        rootwatch_why(c->root, ret_code, ret_text);
    else
        cluster_ray_why(c, ret_code, ret_text);
}

void cluster_ray_why(const struct cluster *c, const char **ret_code, const char **ret_text)
{
    *ret_code = *ret_text = "";
    if (!c->up) {
        *ret_code = "ray_unreachable";
        *ret_text = *c->why_ray ? c->why_ray : "{}";
    } else if (c->too_old) {
        *ret_code = "ray_auth_unsupported";
        *ret_text = "{}";
    } else if (!c->usage_answered) {
        *ret_code = "ray_unreachable";
        *ret_text = "{\"others\":1}";
    }
}

/* ---- nodes ---- */

static void node_release(struct cluster_node *n)
{
    free(n->name);
    free(n->node_id);
    free(n->ip);
    free(n->pool);
    free(n->message);
}

static void nodes_release(struct cluster *c)
{
    for (size_t i = 0; i < c->n; i++)
        node_release(&c->nodes[i]);
    free(c->nodes);
    c->nodes = NULL;
    c->n = 0;
}

static const char *own_name(const struct ray_node *r)
{
    for (size_t i = 0; i < r->resources.n; i++)
        if (str_starts(r->resources.v[i].name, NODE_RESOURCE))
            return r->resources.v[i].name + strlen(NODE_RESOURCE);
    return NULL;
}

static bool has_driver_resources(const struct settings *s, const struct ray_node *r)
{
    for (size_t i = 0; i < s->entrypoint_resources.n; i++) {
        const struct pair *p = &s->entrypoint_resources.v[i];
        double want = 0;
        if (str_to_real(p->value, &want, NULL) == 0 &&
            ray_amounts_find(&r->resources, p->key) < want)
            return false;
    }
    return true;
}

/* Labels of the pool: argus.pool (or pool) as a list, and every argus.label.<x>. */
static char *pool_of(const struct ray_node *r)
{
    const char *pool = pairs_find(&r->labels, "argus.pool");
    if (!pool)
        pool = pairs_find(&r->labels, "pool");
    return xstrdup(str_or(pool, ""));
}

static enum cluster_label label_of(const struct ray_node *r, const char *name)
{
    if (str_eq(pairs_find(&r->labels, "argus.node"), name))
        return CLUSTER_LABEL_NAME;
    return pairs_find(&r->labels, "ray.io/node-id") ? CLUSTER_LABEL_ID : CLUSTER_LABEL_NONE;
}

static int cluster_shares_of(const struct ray_node *r)
{
    char name[SHARE_NAME_MAX];
    int n = 0;
    while (n < SHARES && ray_amounts_find(&r->resources, share_name(n, name)) >= 1)
        n++;
    return n;
}

static int compare_usage(const void *key, const void *row)
{
    return strcmp(key, ((const struct usage *)row)->node_id);
}

static void set_usage(const struct cluster *c, struct cluster_node *n)
{
    const struct usage *u = NULL;
    if (c->n_usages)
        u = bsearch(n->node_id, c->usages, c->n_usages, sizeof(*c->usages), compare_usage);
    n->gpus_used = u && n->is_alive ? u->gpus : 0;
    n->cpus_used = u && n->is_alive ? u->cpus : 0;
}

static void usages_release(struct cluster *c)
{
    for (size_t i = 0; i < c->n_usages; i++)
        free(c->usages[i].node_id);
    free(c->usages);
    c->usages = NULL;
    c->n_usages = 0;
}

/* Any process can tell Ray that it is a machine of any address: what is no address is pasted into
 * no URL, and loopback is this machine's own, which only a Ray on this machine means. */
static bool cluster_may_call(const struct cluster *c, const char *ip)
{
    const struct strv *networks = &c->settings->call_networks;
    bool is_here = inventory_is_here(c->settings->ray_address);
    return reach_allows_text(is_here ? REACH_NAMED : REACH_MACHINES, networks, ip);
}

bool cluster_may_ask(const struct cluster *c, const struct cluster_node *n)
{
    const struct inventory iv = {.networks = &c->settings->ray_networks,
                                 .head_host = c->settings->head_host,
                                 .ray_address = c->settings->ray_address,
                                 .addresses = &c->own_addresses};
    return *n->ip &&
           inventory_has(&iv, c->ops.registered_address(n->name, c->ops.arg), n->is_head, n->ip);
}

const struct cluster_node *cluster_find_callable(const struct cluster *c,
                                                 const char *name,
                                                 struct err *err)
{
    const struct cluster_node *told = NULL, *dead = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const struct cluster_node *n = &c->nodes[i];
        if (strcmp(n->name, name) != 0)
            continue;
        if (!cluster_may_ask(c, n))
            told = n;
        else if (n->is_alive)
            return n;
        else
            dead = n;
    }
    if (dead)
        return dead;
    if (told)
        message_refuse(err, ERR_UNAVAILABLE, "node_only_ray_says",
                       MESSAGE_ARGS(MESSAGE_STR("node", name),
                                    MESSAGE_STR("ip", *told->ip ? told->ip : NULL)));
    else
        message_refuse(err, ERR_UNAVAILABLE, "node_not_in_ray",
                       MESSAGE_ARGS(MESSAGE_STR("node", name)));
    return NULL;
}

const char *cluster_head_address(const struct cluster *c)
{
    const struct cluster_node *head = c->head_id ? cluster_find_id(c, c->head_id) : NULL;
    return head && cluster_may_ask(c, head) ? head->ip : "";
}

/* This machine's own; none where the system does not tell them. */
static void cluster_find_own_addresses(struct cluster *c)
{
    uv_interface_address_t *v = NULL;
    char text[64];
    int n = 0;
    strv_release(&c->own_addresses);
    if (uv_interface_addresses(&v, &n) < 0)
        return;
    for (int i = 0; i < n; i++)
        if (uv_ip_name((const struct sockaddr *)&v[i].address, text, sizeof(text)) == 0)
            strv_add(&c->own_addresses, text);
    uv_free_interface_addresses(v, n);
}

static void node_from_ray(const struct cluster *c,
                          const struct ray_node *r,
                          struct cluster_node *ret)
{
    const char *own = own_name(r);
    const struct cluster_node *old = cluster_find_id(c, r->node_id);
    const char *ip = r->ip && cluster_may_call(c, r->ip) ? r->ip : NULL;
    const char *name = own ? own : r->is_head ? "head" : str_or(ip, r->node_id);
    *ret = (struct cluster_node){
        .name = xstrdup(name),
        .label = label_of(r, name),
        .node_id = xstrdup(r->node_id),
        .ip = xstrdup(str_or(ip, "")),
        .pool = pool_of(r),
        .message = xstrdup(r->state_message),
        .gpus = ray_amounts_find(&r->resources, "GPU"),
        .cpus = ray_amounts_find(&r->resources, "CPU"),
        .is_alive = r->is_alive,
        .is_head = r->is_head,
        .has_own_resource = own != NULL,
        .takes_drivers = has_driver_resources(c->settings, r),
        .shares = cluster_shares_of(r),
        .since = old && old->is_alive == r->is_alive ? old->since : clock_wall(),
    };
    set_usage(c, ret);
}

static void tell_node(struct cluster *c,
                      const struct cluster_node *n,
                      const char *kind,
                      const char *from,
                      const char *to)
{
    char text[640], said[640];
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("node", n->name), MESSAGE_STR("ip", n->ip),
                               MESSAGE_STR("state", to),
                               MESSAGE_STR("why", n->is_alive ? "" : str_or(n->message, ""))));
    message_to_string("node_in_ray", text, true, said, sizeof(said));
    log_info("node", "%s node=%s", said, n->name);
    static const struct access_thing thing = {.kind = ACCESS_KIND_CLUSTER};
    struct events_note note = {.thing = &thing,
                               .kind = kind,
                               .actor = "argusd",
                               .from = from,
                               .to = to,
                               .code = "node_in_ray",
                               .text = text};
    events_add(c->events, &note, clock_wall());
}

static void tell_changes(struct cluster *c, const struct cluster_node *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct cluster_node *old = cluster_find_id(c, nodes[i].node_id);
        bool was = old && old->is_alive;
        if (!old && !nodes[i].is_alive)
            continue; /* dead before we came */
        if (c->ops.is_registered(nodes[i].name, c->ops.arg))
            continue;
        if (was != nodes[i].is_alive)
            tell_node(c, &nodes[i], nodes[i].is_alive ? "node_online" : "node_offline",
                      was ? "online" : "offline", nodes[i].is_alive ? "online" : "offline");
    }
}

/* Another head node is most likely another session: ask before its empty list is believed. */
static void cluster_take_head(struct cluster *c, const struct cluster_node *head)
{
    if (c->head_id && strcmp(c->head_id, head->node_id) != 0)
        c->version_at = 0;
    set_str(&c->head_id, head->node_id);
    set_str(&c->head_ip, head->ip);
}

/* Whoever starts a raylet can say that it is the head: one that only Ray vouches for comes last. */
static const struct cluster_node *cluster_choose_head(const struct cluster *c,
                                                      const struct cluster_node *v,
                                                      size_t n)
{
    const struct cluster_node *head = NULL;
    for (size_t i = 0; i < n; i++)
        if (v[i].is_head && v[i].is_alive &&
            (!head || cluster_may_ask(c, &v[i]) || !cluster_may_ask(c, head)))
            head = &v[i];
    return head;
}

static void cluster_take_nodes(struct cluster *c, const struct ray_nodes *nodes)
{
    struct cluster_node *v = xcalloc(nodes->n, sizeof(*v));
    for (size_t i = 0; i < nodes->n; i++)
        node_from_ray(c, &nodes->v[i], &v[i]);
    cluster_find_own_addresses(c);
    const struct cluster_node *head = cluster_choose_head(c, v, nodes->n);
    if (head)
        cluster_take_head(c, head);
    tell_changes(c, v, nodes->n);
    nodes_release(c);
    c->nodes = v;
    c->n = nodes->n;
    c->generation++;
}

/* ---- is Ray there ---- */

static void go_up(struct cluster *c)
{
    c->answered_at = clock_mono();
    c->silent_since = 0;
    if (c->up)
        return;
    c->up = true;
    c->up_since = clock_wall();
    c->why_ray[0] = 0;
    log_info("ray", "Ray answers at '%s'", c->settings->ray_address);
    static const struct access_thing thing = {.kind = ACCESS_KIND_CLUSTER};
    struct events_note note = {
        .thing = &thing, .kind = "ray_up", .actor = "argusd", .code = "ray_up", .text = "{}"};
    if (c->ever_up)
        events_add(c->events, &note, clock_wall());
    c->ever_up = true;
}

static void go_silent(struct cluster *c, const struct err *err)
{
    usec_t now = clock_mono(), since = c->answered_at ? c->answered_at : c->asked_since;
    char at[CLOCK_TEXT_MAX];
    if (c->up && now - since < AWAY_AFTER)
        return;
    /* A moment and no span: a reason that does not change does not wake who waits for a change. */
    if (!c->silent_since)
        c->silent_since = clock_wall() - (now - since);
    message_write(c->why_ray, sizeof(c->why_ray),
                  MESSAGE_ARGS(MESSAGE_STR("address", c->settings->ray_address),
                               MESSAGE_STR("since", clock_to_string(c->silent_since, at)),
                               MESSAGE_ERR("why", err)));
    if (!c->up)
        return;
    c->up = false;
    char said[JOB_REASON_TEXT_MAX];
    message_to_string("ray_unreachable", c->why_ray, true, said, sizeof(said));
    log_warn("ray", "%s", said);
    static const struct access_thing thing = {.kind = ACCESS_KIND_CLUSTER};
    struct events_note note = {.thing = &thing,
                               .kind = "ray_away",
                               .actor = "argusd",
                               .code = "ray_unreachable",
                               .text = c->why_ray};
    events_add(c->events, &note, clock_wall());
}

static void on_nodes(const struct ray_nodes *nodes, const struct err *err, void *arg)
{
    struct cluster *c = arg;
    c->node_call = NULL;
    if (nodes) {
        go_up(c);
        cluster_take_nodes(c, nodes);
        if (!c->version_at) /* a new head: what it has forgotten is to be known first */
            cluster_poke(c);
    } else {
        go_silent(c, err);
    }
    c->ops.changed(c->ops.arg);
}

static void on_version(const struct ray_version *v, const struct err *err, void *arg)
{
    struct cluster *c = arg;
    c->version_call = NULL;
    if (!v) {
        go_silent(c, err);
        c->ops.changed(c->ops.arg);
        return;
    }
    c->version_at = clock_mono();
    bool other = c->session && v->session_name && strcmp(c->session, v->session_name) != 0;
    c->too_old = c->settings->auth == RAY_AUTH_TOKEN && !(v->supports & RAY_SUPPORTS_TOKEN);
    set_str(&c->version, v->text);
    set_str(&c->session, v->session_name);
    if (!other)
        return;
    log_warn("ray", "Ray has a new session '%s': it has forgotten its jobs", c->session);
    static const struct access_thing thing = {.kind = ACCESS_KIND_CLUSTER};
    struct events_note note = {.thing = &thing,
                               .kind = "ray_new_session",
                               .actor = "argusd",
                               .code = "ray_new_session",
                               .text = "{}"};
    events_add(c->events, &note, clock_wall());
    c->ops.new_session(c->ops.arg);
}

/* A report that the look before did not bring was written after that look began. */
static void cluster_take_report(struct cluster *c, usec_t written)
{
    if (written && c->report && written != c->report)
        c->use_of = c->report_asked;
    c->report = written;
    c->report_asked = c->usage_asked;
}

static void on_usages(const struct ray_usages *usages, const struct err *err, void *arg)
{
    struct cluster *c = arg;
    (void)err; /* on_nodes() tells of a Ray that is away */
    c->usage_call = NULL;
    c->usage_answered |= c->up;
    if (usages) {
        cluster_take_report(c, usages->time);
        usages_release(c);
        c->usages = xcalloc(usages->n ? usages->n : 1, sizeof(*c->usages));
        c->n_usages = usages->n;
        for (size_t i = 0; i < usages->n; i++)
            c->usages[i] = (struct usage){.node_id = xstrdup(usages->v[i].node_id),
                                          .gpus = usages->v[i].gpus_used,
                                          .cpus = usages->v[i].cpus_used};
        for (size_t i = 0; i < c->n; i++)
            set_usage(c, &c->nodes[i]);
    }
    c->ops.changed(c->ops.arg);
}

void cluster_poke(struct cluster *c)
{
    usec_t now = clock_mono();
    usec_t usage_every = foreign_is_wanted(c->foreign) ? USAGE_SOON : USAGE_EVERY;
    if (!c->version_call && (!c->up || !c->version_at || now - c->version_at > VERSION_EVERY))
        c->version_call = ray_get_version(c->ray, on_version, c);
    if (!c->node_call)
        c->node_call = ray_list_nodes(c->ray, on_nodes, c);
    if (!c->usage_call && now - c->usage_asked >= usage_every) {
        c->usage_asked = now;
        c->usage_call = ray_list_usages(c->ray, on_usages, c);
    }
    if (c->up)
        foreign_turn(c->foreign, now);
}

static void on_node_timer(uv_timer_t *t)
{
    struct cluster *c = container_of(t, struct cluster, node_timer);
    rootwatch_turn(c->root);
    cluster_poke(c);
}

/* ---- life ---- */

static void on_root_news(void *arg)
{
    struct cluster *c = arg;
    c->ops.changed(c->ops.arg);
}

struct cluster *cluster_new(uv_loop_t *loop,
                            const struct settings *settings,
                            struct ray_client *ray,
                            const char *instance,
                            struct events *events,
                            const struct cluster_ops *ops)
{
    struct cluster *c = xcalloc(1, sizeof(*c));
    *c = (struct cluster){.loop = loop,
                          .settings = settings,
                          .ray = ray,
                          .events = events,
                          .ops = *ops,
                          .foreign = foreign_new(ray),
                          .asked_since = clock_mono()};
    text_printf(c->root_mark, "argus/.root-%s", instance);
    (void)uv_timer_init(loop, &c->node_timer); /* never fails */
    c->root = rootwatch_new(loop, settings, events, c->root_mark, on_root_news, c);
    return c;
}

void cluster_start(struct cluster *c)
{
    (void)uv_timer_start(&c->node_timer, on_node_timer, 0, NODE_POLL_MS); /* cannot fail */
    rootwatch_start(c->root);
}

static void on_node_timer_closed(uv_handle_t *h)
{
    struct cluster *c = container_of(h, struct cluster, node_timer);
    nodes_release(c);
    usages_release(c);
    strv_release(&c->own_addresses);
    free(c->head_id);
    free(c->version);
    free(c->session);
    free(c->head_ip);
    foreign_free(c->foreign);
    free(c);
}

void cluster_free(struct cluster *c)
{
    if (!c)
        return;
    ray_call_free(c->node_call);
    ray_call_free(c->version_call);
    ray_call_free(c->usage_call);
    foreign_close(c->foreign);
    rootwatch_free(c->root);
    uv_close((uv_handle_t *)&c->node_timer, on_node_timer_closed);
}
