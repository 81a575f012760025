/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - polls Ray and the shared root; see cluster.h.
 *
 * A node is named by its resource argus_node_<name>, else by its address. Nodes
 * that vanish from Ray's list are dropped with it; dead ones stay for people to
 * see. An unusable answer changes nothing but how long Ray has been silent. */
#include "argusd/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/idset.h"
#include "argusd/work.h"
#include "base/log.h"
#include "base/str.h"

enum { NODE_POLL_MS = 2000, ROOT_POLL_MS = 15000, ROOT_RETRY_MS = 2000 };
static const usec_t AWAY_AFTER = 10 * USEC_SEC; /* silence that counts as away */
static const usec_t VERSION_EVERY = 10 * USEC_SEC;
static const usec_t ROOT_HANG = 10 * USEC_SEC;
static const char NODE_RESOURCE[] = "argus_node_";

/* The root is checked on a worker thread; this is all that it touches. */
struct root_check {
    struct cluster *c;
    char *root, *shepherd, *hook;
    struct fsroot_status status;
    struct err err;
    int placed;
    bool was_ok; /* once, in this life: then it is not prepared anew */
};

struct cluster {
    uv_loop_t *loop;
    const struct settings *settings;
    struct ray_client *ray;
    struct sched *sched;
    struct events *events;
    struct cluster_ops ops;
    uv_timer_t node_timer, root_timer;
    struct ray_call *node_call, *version_call;
    int handles; /* timers and checks that still point here */
    bool closing;

    bool up, ever_up, root_ok, root_was_ok, root_known, root_hangs;
    bool too_old;         /* Ray has no token authentication, and argus.yaml asks for it */
    usec_t root_asked_at; /* monotonic; 0 = no check is under way */
    usec_t answered_at, asked_since, version_at; /* monotonic */
    usec_t silent_since;                         /* wall; 0 = it answers */
    char *version, *session, *head_ip;
    char why_ray[400], why_root[600];
    uint64_t root_free;
    struct cluster_node *nodes;
    size_t n;
    struct idset *foreign; /* NULL until Ray's jobs were listed */
};

/* ---- reading ---- */

void cluster_take_foreign(struct cluster *c, struct idset *ids)
{
    idset_free(c->foreign);
    c->foreign = ids;
}

bool cluster_has_foreign(const struct cluster *c, const char *ray_id)
{
    return c->foreign && idset_has(c->foreign, ray_id);
}

bool cluster_is_up(const struct cluster *c)
{
    return c->up;
}

bool cluster_root_is_ok(const struct cluster *c)
{
    return c->root_ok;
}

bool cluster_root_is_bad(const struct cluster *c)
{
    return c->root_known && !c->root_ok;
}

bool cluster_root_hangs(const struct cluster *c)
{
    return c->root_hangs;
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

uint64_t cluster_root_free_bytes(const struct cluster *c)
{
    return c->root_free;
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

void cluster_why_not(const struct cluster *c, const char **ret_code, const char **ret_text)
{
    *ret_code = *ret_text = "";
    if (!c->root_ok) {
        *ret_code = "shared_root_unavailable";
        *ret_text = c->root_known ? c->why_root : "the shared root is being checked";
    } else if (!c->up) {
        *ret_code = "ray_unreachable";
        *ret_text = *c->why_ray ? c->why_ray : "Ray has not answered yet";
    } else if (c->too_old) {
        *ret_code = "ray_auth_unsupported";
        *ret_text = "ray.auth: token needs Ray 2.52 or newer; upgrade Ray, or set auth: none and "
                    "fence its ports";
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

static void node_from_ray(const struct cluster *c,
                          const struct ray_node *r,
                          struct cluster_node *ret)
{
    const char *own = own_name(r);
    const struct cluster_node *old = cluster_find_id(c, r->node_id);
    *ret = (struct cluster_node){
        .name = xstrdup(own          ? own
                        : r->is_head ? "head"
                                     : str_or(r->ip, r->node_id)),
        .node_id = xstrdup(r->node_id),
        .ip = xstrdup(str_or(r->ip, "")),
        .pool = pool_of(r),
        .message = xstrdup(r->state_message),
        .gpus = ray_amounts_find(&r->resources, "GPU"),
        .cpus = ray_amounts_find(&r->resources, "CPU"),
        .is_alive = r->is_alive,
        .is_head = r->is_head,
        .has_own_resource = own != NULL,
        .takes_drivers = has_driver_resources(c->settings, r),
        .since = old && old->is_alive == r->is_alive ? old->since : clock_wall(),
    };
}

static void tell_node(struct cluster *c,
                      const struct cluster_node *n,
                      const char *kind,
                      const char *from,
                      const char *to)
{
    char text[400];
    (void)snprintf(text, sizeof(text), "node '%s' (%s) is %s%s%s", n->name, n->ip, to,
                   n->message && !n->is_alive ? ": " : "",
                   n->message && !n->is_alive ? n->message : ""); /* cut: fine */
    log_info("node", "%s node=%s", text, n->name);
    struct events_note note = {
        .kind = kind, .actor = "argusd", .from = from, .to = to, .code = "", .text = text};
    events_add(c->events, &note, clock_wall());
}

static void tell_changes(struct cluster *c, const struct cluster_node *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct cluster_node *old = cluster_find_id(c, nodes[i].node_id);
        bool was = old && old->is_alive;
        if (!old && !nodes[i].is_alive)
            continue; /* dead before we came */
        if (was != nodes[i].is_alive)
            tell_node(c, &nodes[i], nodes[i].is_alive ? "node_online" : "node_offline",
                      was ? "online" : "offline", nodes[i].is_alive ? "online" : "offline");
    }
}

static void give_to_sched(struct cluster *c)
{
    struct sched_node *v = xcalloc(c->n, sizeof(*v));
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct cluster_node *k = &c->nodes[i];
        if (k->is_alive)
            v[n++] = (struct sched_node){.name = k->name,
                                         .pool = k->pool,
                                         .gpus = k->gpus,
                                         .cpus = k->cpus,
                                         .usable = !k->is_head && k->takes_drivers};
    }
    sched_set_nodes(c->sched, v, n);
    free(v);
}

static void take_nodes(struct cluster *c, const struct ray_nodes *nodes)
{
    struct cluster_node *v = xcalloc(nodes->n, sizeof(*v));
    for (size_t i = 0; i < nodes->n; i++) {
        node_from_ray(c, &nodes->v[i], &v[i]);
        if (v[i].is_head && v[i].is_alive)
            set_str(&c->head_ip, v[i].ip);
    }
    tell_changes(c, v, nodes->n);
    nodes_release(c);
    c->nodes = v;
    c->n = nodes->n;
    give_to_sched(c);
}

/* ---- is Ray there ---- */

static void go_up(struct cluster *c)
{
    c->answered_at = clock_mono();
    c->silent_since = 0;
    if (c->up)
        return;
    c->up = true;
    c->why_ray[0] = 0;
    log_info("ray", "Ray answers at '%s'", c->settings->ray_address);
    struct events_note note = {.kind = "ray_up", .actor = "argusd", .text = "Ray answers"};
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
    (void)snprintf(c->why_ray, sizeof(c->why_ray), "Ray at '%s' has not answered since %s: %.200s",
                   c->settings->ray_address, clock_to_string(c->silent_since, at),
                   err->text); /* cut: fine */
    if (!c->up)
        return;
    c->up = false;
    log_warn("ray", "%s", c->why_ray);
    struct events_note note = {
        .kind = "ray_away", .actor = "argusd", .code = "ray_unreachable", .text = c->why_ray};
    events_add(c->events, &note, clock_wall());
}

static void on_nodes(const struct ray_nodes *nodes, const struct err *err, void *arg)
{
    struct cluster *c = arg;
    c->node_call = NULL;
    if (nodes) {
        go_up(c);
        take_nodes(c, nodes);
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
    struct events_note note = {
        .kind = "ray_new_session", .actor = "argusd", .text = "Ray's head was restarted"};
    events_add(c->events, &note, clock_wall());
    c->ops.new_session(c->ops.arg);
}

static void watch_root_check(struct cluster *c);

static void on_node_timer(uv_timer_t *t)
{
    struct cluster *c = container_of(t, struct cluster, node_timer);
    watch_root_check(c);
    if (!c->node_call)
        c->node_call = ray_list_nodes(c->ray, on_nodes, c);
    if (!c->version_call && (!c->up || clock_mono() - c->version_at > VERSION_EVERY))
        c->version_call = ray_get_version(c->ray, on_version, c);
}

/* ---- the shared root ---- */

static void let_go(struct cluster *c)
{
    if (--c->handles > 0 || !c->closing)
        return;
    nodes_release(c);
    free(c->version);
    free(c->session);
    free(c->head_ip);
    idset_free(c->foreign);
    free(c);
}

static void run_root_check(void *arg)
{
    struct root_check *k = arg;
    int r = fsroot_check(k->root, &k->status, &k->err);
    if (r == 0 && k->was_ok)
        r = fsroot_check_mounted(k->root, &k->err);
    else if (r == 0 && !k->status.prepared)
        r = fsroot_prepare(k->root, &k->err);
    if (r == 0)
        k->placed = r = fsroot_install(k->root, k->shepherd, k->hook, &k->err);
    if (r >= 0)
        k->err = (struct err){0};
}

static void set_root(struct cluster *c, bool ok, const char *why)
{
    bool news = !c->root_known || ok != c->root_ok;
    c->root_ok = ok;
    c->root_known = true;
    (void)snprintf(c->why_root, sizeof(c->why_root), "%s", why); /* cut: fine */
    if (!news)
        return;
    if (!ok)
        log_warn("root", "%s", c->why_root);
    struct events_note note = {.kind = ok ? "root_ok" : "root_bad",
                               .actor = "argusd",
                               .code = ok ? "" : "shared_root_unavailable",
                               .text = ok ? "the shared root can be used" : c->why_root};
    events_add(c->events, &note, clock_wall());
    c->ops.changed(c->ops.arg);
}

static void take_root(struct cluster *c, const struct root_check *k)
{
    c->root_hangs = false;
    c->root_asked_at = 0;
    c->root_free = k->status.free_bytes;
    c->root_was_ok |= k->err.code == 0;
    if (k->placed > 0)
        log_info("root", "placed %d program files below '%s'", k->placed, k->root);
    set_root(c, k->err.code == 0, k->err.text);
}

static void watch_root_check(struct cluster *c)
{
    char text[400];
    if (!c->root_asked_at || c->root_hangs || clock_mono() - c->root_asked_at < ROOT_HANG)
        return;
    c->root_hangs = true;
    (void)snprintf(text, sizeof(text),
                   "shared_root '%.200s' does not answer; check its mount and its server",
                   c->settings->shared_root); /* fits */
    set_root(c, false, text);
}

static void start_root_check(uv_timer_t *t);

static void done_root_check(void *arg)
{
    struct root_check *k = arg;
    struct cluster *c = k->c;
    if (!c->closing) {
        take_root(c, k);
        (void)uv_timer_start(&c->root_timer, start_root_check,
                             c->root_ok ? ROOT_POLL_MS : ROOT_RETRY_MS, 0); /* cannot fail */
    }
    free(k->root);
    free(k->shepherd);
    free(k->hook);
    free(k);
    let_go(c);
}

static void start_root_check(uv_timer_t *t)
{
    struct cluster *c = container_of(t, struct cluster, root_timer);
    struct root_check *k = xcalloc(1, sizeof(*k));
    k->c = c;
    k->was_ok = c->root_was_ok;
    c->root_asked_at = clock_mono();
    k->root = xstrdup(c->settings->shared_root);
    k->shepherd = xstrdup(c->settings->shepherd);
    k->hook = xstrdup(c->settings->hook);
    c->handles++;
    work_start(c->loop, run_root_check, done_root_check, k);
}

/* ---- life ---- */

struct cluster *cluster_new(uv_loop_t *loop,
                            const struct settings *settings,
                            struct ray_client *ray,
                            struct sched *sched,
                            struct events *events,
                            const struct cluster_ops *ops)
{
    struct cluster *c = xcalloc(1, sizeof(*c));
    *c = (struct cluster){.loop = loop,
                          .settings = settings,
                          .ray = ray,
                          .sched = sched,
                          .events = events,
                          .ops = *ops,
                          .asked_since = clock_mono(),
                          .handles = 2};
    (void)uv_timer_init(loop, &c->node_timer); /* these never fail */
    (void)uv_timer_init(loop, &c->root_timer);
    return c;
}

void cluster_start(struct cluster *c)
{
    (void)uv_timer_start(&c->node_timer, on_node_timer, 0, NODE_POLL_MS); /* cannot fail */
    start_root_check(&c->root_timer);
}

static void on_node_timer_closed(uv_handle_t *h)
{
    let_go(container_of(h, struct cluster, node_timer));
}

static void on_root_timer_closed(uv_handle_t *h)
{
    let_go(container_of(h, struct cluster, root_timer));
}

void cluster_free(struct cluster *c)
{
    if (!c)
        return;
    c->closing = true;
    ray_call_free(c->node_call);
    ray_call_free(c->version_call);
    uv_close((uv_handle_t *)&c->node_timer, on_node_timer_closed);
    uv_close((uv_handle_t *)&c->root_timer, on_root_timer_closed);
}
