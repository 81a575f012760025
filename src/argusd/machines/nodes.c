/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.c - the table of registered nodes, and the one way to change a row; see nodes.h.
 *
 * Decide, commit, act: nodes_change() puts row and event into the open batch; nodes_durable()
 * starts a pass over all nodes, in which each does what its row says (nodes_act()). A timer
 * starts the same pass twice a second, for what is due by time. */
#include "argusd/machines/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/machines/noderecord.h"
#include "argusd/machines/nodes_run.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { PASS_MS = 500 };

struct moment nodes_moment(const struct nodes *ns)
{
    return clock_moment(ns->p.boot_id);
}

/* ---- storing and telling ---- */

static const char *nodes_kind_of(const struct noderun *nr)
{
    return nr->row->is_head ? NODES_ENTRY_HEAD : NODES_ENTRY;
}

void nodes_save(struct noderun *nr)
{
    struct buf body = BUF_INIT(NODERECORD_MAX);
    noderecord_write(nr->row, &body);
    struct store_entry entry = {.kind = nodes_kind_of(nr),
                                .name = nr->row->spec.name,
                                .body = buf_str(&body),
                                .at = clock_wall()};
    if (body.failed)
        log_err("node", "its record is too large to be stored node=%s", nr->row->spec.name);
    else
        store_put_entry(nr->nodes->p.store, &entry);
    buf_release(&body);
}

void nodes_note(struct noderun *nr, const struct events_note *what)
{
    struct events_note note = *what;
    const char *name = nr->row->spec.name;
    _cleanup_(freep) char *object = xasprintf("node/%s", name);
    struct access_thing thing = {.kind = ACCESS_KIND_NODE, .name = name};
    note.thing = &thing;
    note.object = object;
    char said[NODE_TEXT_MAX];
    message_to_string(note.code, note.text, true, said, sizeof(said));
    log_info("node", "%s: %s node=%s", note.kind, said, name);
    events_add(nr->nodes->p.events, &note, clock_wall());
}

void nodes_tell(struct noderun *nr, const char *kind, const char *code, const char *text)
{
    struct events_note note = {.kind = kind, .actor = "argusd", .code = code, .text = text};
    nodes_note(nr, &note);
}

/* Wish and state, for before and after of an event. */
char *nodes_summary(const struct node_row *n)
{
    struct buf out = BUF_INIT(NODERECORD_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    nodespec_to_json(&n->spec, &j, "spec", true);
    jout_str(&j, "want", node_want_to_string(n->want));
    jout_str(&j, "state", node_state_to_string(n->state));
    if (n->stop_foreign)
        jout_bool(&j, "stop_foreign", true);
    jout_close(&j, '}');
    return buf_take(&out);
}

/* What kind of event a change is; NULL = one that nobody needs to hear of. */
static const char *change_kind(const struct node_row *was,
                               const struct node_row *is,
                               enum node_event_kind kind)
{
    static const char *const entered[NODE_STATE_END] = {
        [NODE_PENDING] = "node_pending",
        [NODE_ONLINE] = "node_online",
        [NODE_DRAINING] = "node_draining",
        [NODE_OFFLINE] = "node_offline",
    };
    static const char *const asked[NODE_EV_END] = {
        [NODE_EV_DRAIN] = "node_drain",          [NODE_EV_UNDRAIN] = "node_undrain",
        [NODE_EV_REMOVE] = "node_remove",        [NODE_EV_DUE] = "node_drain_due",
        [NODE_EV_SICK] = "node_unhealthy",       [NODE_EV_WELL] = "node_healthy",
        [NODE_EV_AWAY] = "node_ssh_unreachable", [NODE_EV_BACK] = "node_ssh_back",
        [NODE_EV_NET_BAD] = "node_unhealthy",    [NODE_EV_NET_WELL] = "node_healthy",
    };
    if (was->state != is->state)
        return entered[is->state];
    if (kind == NODE_EV_FAILED || kind == NODE_EV_SILENT)
        return strcmp(was->reason.code, is->reason.code) != 0 ? "node_trouble" : NULL;
    if (kind == NODE_EV_NET_BAD && was->net == is->net)
        return NULL; /* measured anew, and as bad as before */
    return asked[kind];
}

static void tell_change(struct noderun *nr,
                        const struct node_row *was,
                        const char *before,
                        const struct node_event *e,
                        const char *actor)
{
    const struct node_row *is = nr->row;
    const char *kind = change_kind(was, is, e->kind);
    bool by_user = strcmp(actor, "argusd") != 0, moved = was->state != is->state;
    bool of_health = e->kind >= NODE_EV_SICK;
    const char *text = of_health ? str_or(e->text, "") : is->reason.text;
    if (!kind)
        return;
    _cleanup_(freep) char *after = by_user ? nodes_summary(is) : NULL;
    struct events_note note = {.kind = kind,
                               .actor = actor,
                               .from = moved ? node_state_to_string(was->state) : NULL,
                               .to = moved ? node_state_to_string(is->state) : NULL,
                               .code = of_health ? str_or(e->code, "") : is->reason.code,
                               .text = text,
                               .before = by_user ? before : NULL,
                               .after = after};
    nodes_note(nr, &note);
}

/* ---- waiters ---- */

static void wake(struct noderun *nr)
{
    struct nodes_waiter *w;
    while ((w = nr->waiters)) { /* one at a time: a call may take others back */
        void (*cb)(void *arg) = w->cb;
        void *arg = w->arg;
        nr->waiters = w->next;
        free(w);
        cb(arg);
    }
}

struct nodes_waiter *nodes_wait(struct noderun *nr, void (*cb)(void *arg), void *arg)
{
    struct nodes_waiter *w = xcalloc(1, sizeof(*w));
    *w = (struct nodes_waiter){.next = nr->waiters, .nr = nr, .cb = cb, .arg = arg};
    nr->waiters = w;
    return w;
}

void nodes_unwait(struct nodes_waiter *w)
{
    if (!w)
        return;
    for (struct nodes_waiter **p = &w->nr->waiters; *p; p = &(*p)->next)
        if (*p == w) {
            *p = w->next;
            free(w);
            return;
        }
}

/* ---- the one way to change ---- */

bool nodes_change(struct noderun *nr, const struct node_event *e, const char *actor)
{
    struct node_row *n = nr->row, was = *n; /* compared only */
    struct moment now = nodes_moment(nr->nodes);
    _cleanup_(freep) char *before = strcmp(actor, "argusd") != 0 ? nodes_summary(n) : NULL;
    if (!node_apply(n, e, &now))
        return false;
    const char *broken = node_check(n);
    if (broken)
        log_err("node", "its row cannot be: %s node=%s", broken, n->spec.name);
    if (was.step != n->step || was.tries != n->tries) {
        nr->step_since = clock_mono();
        nr->act_after = nr->step_since + node_backoff(n);
    }
    nodes_save(nr);
    tell_change(nr, &was, before, e, actor);
    nr->act_batch = store_batch(nr->nodes->p.store);
    nr->nodes->table_changed = true;
    wake(nr);
    return true;
}

void nodes_note_slow(struct nodes *ns, const char *name, const char *job, const char *user)
{
    struct noderun *nr = nodes_find(ns, name);
    if (!nr || !node_slow_note(nr->row->slow, job, user, clock_wall()))
        return;
    nodes_save(nr);
    ns->table_changed = true; /* it may be used last from now on */
}

void nodes_net_told(struct noderun *nr, const struct node_event *e)
{
    if (nodes_change(nr, e, "argusd"))
        nodes_kick(nr->nodes);
}

void nodes_fail(struct noderun *nr, const char *code, const char *text)
{
    struct node_event e = {.kind = NODE_EV_FAILED, .code = code, .text = text};
    (void)nodes_change(nr, &e, "argusd");
}

/* ---- the table ---- */

struct noderun *nodes_find(const struct nodes *ns, const char *name)
{
    return map_find(ns->by_name, name);
}

const struct node_row *nodes_next(const struct nodes *ns, size_t *pos)
{
    return *pos < ns->n ? ns->v[(*pos)++]->row : NULL;
}

bool nodes_is_registered(const struct nodes *ns, const char *name)
{
    return map_find(ns->by_name, name) != NULL;
}

const char *nodes_address(const struct nodes *ns, const char *name)
{
    const struct noderun *nr = nodes_find(ns, name);
    return nr ? nr->row->address : NULL;
}

struct noderun *nodes_insert(struct nodes *ns, struct node_row *taken)
{
    struct noderun *nr = xcalloc(1, sizeof(*nr));
    nr->nodes = ns;
    nr->row = taken;
    nr->step_since = clock_mono();
    nr->gpus = nodes_declared_gpus(nr);
    nr->cpus = nodes_declared_cpus(nr);
    ns->v = xrealloc(ns->v, ns->n + 1, sizeof(struct noderun *));
    size_t at = ns->n;
    while (at && ns->v[at - 1]->row->seq > taken->seq) { /* the store gives them by name */
        ns->v[at] = ns->v[at - 1];
        at--;
    }
    ns->v[at] = nr;
    ns->n++;
    if (taken->seq >= ns->next_seq)
        ns->next_seq = taken->seq + 1;
    map_set(ns->by_name, taken->spec.name, nr);
    return nr;
}

static void tell_gone(struct noderun *nr)
{
    struct nodes_check *k;
    wake(nr);
    while ((k = nr->checks)) {
        nr->checks = k->next;
        k->cb(nr, k->arg);
        free(k);
    }
}

static void noderun_free(struct noderun *nr)
{
    nodes_act_cancel(nr);
    nodes_look_cancel(nr);
    nodes_exporter_cancel(nr);
    nodes_remedy_cancel(nr);
    nodes_ports_cancel(nr);
    nodes_peers_cancel(nr);
    nodes_holds_free(nr);
    for (struct nodes_waiter *w = nr->waiters, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    for (struct nodes_check *k = nr->checks, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    node_row_free(nr->row);
    free(nr->rdma);
    free(nr);
}

void nodes_target(const struct noderun *nr, struct ssh_target *ret)
{
    const struct nodespec *spec = &nr->row->spec;
    const struct settings *s = nr->nodes->p.settings;
    bool head = nr->row->is_head;
    *ret = (struct ssh_target){.name = spec->name,
                               .host = spec->host,
                               .user = spec->user ? spec->user : s->ssh_user,
                               .port = (int)(spec->port ? spec->port : s->ssh_port),
                               .identity_file =
                                   spec->identity_file ? spec->identity_file : s->ssh_identity,
                               .proxy_jump = spec->proxy_jump,
                               .config_file = s->ssh_config,
                               .known_hosts = nr->nodes->known_hosts,
                               .control_dir = nr->nodes->control_dir,
                               .local = head && !s->head_ssh_host};
}

void nodes_forget(struct noderun *nr)
{
    struct nodes *ns = nr->nodes;
    struct ssh_target t;
    struct err err = {0};
    nodes_target(nr, &t);
    ssh_close_master(ns->p.loop, &t);
    if (ssh_forget_key(&t, &err) < 0)
        log_warn("node", "its host key stays pinned: %s node=%s", err.text, t.name);
    store_remove_entry(ns->p.store, nodes_kind_of(nr), nr->row->spec.name);
    nodes_tell(nr, "node_removed", "", "it was removed, and its host key forgotten");
    map_remove(ns->by_name, nr->row->spec.name);
    nodes_bury(nr);
    nr->gone = true;
    ns->table_changed = true;
    tell_gone(nr);
}

static void nodes_sweep(struct nodes *ns)
{
    size_t n = 0;
    for (size_t i = 0; i < ns->n; i++)
        if (ns->v[i]->gone)
            noderun_free(ns->v[i]);
        else
            ns->v[n++] = ns->v[i];
    ns->n = n;
}

/* ---- the pass ---- */

static void pass_once(struct nodes *ns)
{
    usec_t now = clock_mono();
    for (size_t i = 0; i < ns->n; i++) {
        struct noderun *nr = ns->v[i];
        if (!nr->gone)
            nodes_act(nr, now);
        if (!nr->gone)
            nodes_look(nr, now);
        if (!nr->gone)
            nodes_exporter(nr, now);
        if (!nr->gone)
            nodes_remedy(nr, now);
        if (!nr->gone)
            nodes_ports(nr, now);
    }
    nodes_peers(ns, now);
    nodes_sweep(ns);
    if (ns->table_changed) {
        nodes_give_table(ns);
        ns->p.changed(ns->p.arg);
    }
}

void nodes_pass(struct nodes *ns)
{
    if (ns->closing || !ns->started)
        return;
    ns->again = true;
    if (ns->walking)
        return;
    ns->walking = true;
    for (int i = 0; i < 4 && ns->again; i++) { /* what is left is the timer's */
        ns->again = false;
        pass_once(ns);
    }
    ns->walking = false;
}

void nodes_durable(struct nodes *ns, uint64_t batch)
{
    bool due = false;
    for (size_t i = 0; i < ns->n; i++)
        due |= !ns->v[i]->op && ns->v[i]->act_batch && ns->v[i]->act_batch <= batch;
    for (size_t i = 0; i < ns->n; i++)
        if (ns->v[i]->act_batch <= batch)
            ns->v[i]->act_batch = 0;
    if (due)
        nodes_pass(ns);
}

static void nodes_on_timer(uv_timer_t *t)
{
    nodes_pass(container_of(t, struct nodes, timer));
}

void nodes_kick(struct nodes *ns)
{
    if (!ns->closing && ns->started)
        (void)uv_timer_start(&ns->timer, nodes_on_timer, 0, PASS_MS); /* cannot fail */
}

/* ---- life ---- */

void nodes_restore(struct nodes *ns, const struct store_entry *entry)
{
    struct err err = {0};
    struct node_row *n = NULL;
    bool head = !strcmp(entry->kind, NODES_ENTRY_HEAD);
    if (noderecord_read(entry->body, &n, &err) < 0) {
        log_err("store", "%s node=%s", err.text, entry->name);
        return;
    }
    n->is_head = head;
    if (head && !ns->p.settings->head_managed) {
        node_row_free(n); /* argus.yaml has taken it out of our hands; what runs goes on */
        return;
    }
    (void)nodes_insert(ns, n);
}

/* The managed head is a row too; its spec is argus.yaml's. */
static void nodes_take_head(struct nodes *ns)
{
    const struct settings *s = ns->p.settings;
    struct noderun *nr = nodes_find(ns, "head");
    if (!s->head_managed)
        return;
    struct nodespec spec = {.name = xstrdup("head"),
                            .host = xstrdup(str_or(s->head_ssh_host, s->head_host)),
                            .user = xstrdup(s->head_ssh_user),
                            .port = s->head_ssh_port,
                            .identity_file = xstrdup(s->head_ssh_identity),
                            .proxy_jump = xstrdup(s->head_ssh_jump),
                            .ray_bin = xstrdup(s->head_ray_bin),
                            .gpu_count = 0,
                            .cpu_count = 0};
    if (!nr) {
        struct node_row *n = node_row_new();
        n->is_head = true;
        n->seq = 0;
        n->added_at = n->since = clock_wall();
        nodespec_move(&n->spec, &spec);
        nr = nodes_insert(ns, n);
        nodes_save(nr);
        nr->act_batch = store_batch(ns->p.store);
    } else {
        nodespec_move(&nr->row->spec, &spec);
    }
    text_copy(nr->row->address, s->head_host);
}

int nodes_new(const struct nodes_parts *parts, struct nodes **ret, struct err *err)
{
    unsigned char seed[16];
    struct nodes *ns = xcalloc(1, sizeof(*ns));
    ns->p = *parts;
    int r = ssh_control_dir(parts->settings->state_dir, ns->control_dir, err);
    if (r == 0)
        r = settings_read_token(parts->settings, &ns->token, err);
    if (r < 0) {
        free(ns);
        return r;
    }
    random_bytes(seed, sizeof(seed));
    ns->by_name = map_new(seed);
    ns->ended = map_new(seed);
    ns->former = map_new(seed);
    ns->next_seq = 1;
    ns->known_hosts = xasprintf("%s/known_hosts", parts->settings->state_dir);
    (void)uv_timer_init(parts->loop, &ns->timer); /* never fails */
    *ret = ns;
    return 0;
}

void nodes_start(struct nodes *ns)
{
    ns->started = true;
    nodes_take_head(ns);
    nodes_give_table(ns);
    (void)uv_timer_start(&ns->timer, nodes_on_timer, 0, PASS_MS); /* cannot fail */
}

void nodes_close(struct nodes *ns)
{
    if (!ns || ns->closing)
        return;
    ns->closing = true;
    for (size_t i = 0; i < ns->n; i++) {
        nodes_act_cancel(ns->v[i]);
        nodes_look_cancel(ns->v[i]);
        nodes_exporter_cancel(ns->v[i]);
        nodes_remedy_cancel(ns->v[i]);
        nodes_ports_cancel(ns->v[i]);
        nodes_peers_cancel(ns->v[i]);
    }
    uv_close((uv_handle_t *)&ns->timer, NULL);
}

void nodes_free(struct nodes *ns)
{
    if (!ns)
        return;
    for (size_t i = 0; i < ns->n; i++)
        noderun_free(ns->v[i]);
    map_free(ns->by_name);
    nodes_ended_free(ns);
    map_free(ns->former);
    free(ns->v);
    free(ns->known_hosts);
    free(ns->token);
    free(ns);
}
