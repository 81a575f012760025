/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_ask.c - what operators ask of the registry: add, drain, remove, check, up, down; see
 * nodes.h. Each changes rows at once, in one batch; what follows is the pass's business. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/machines/nodes_run.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

/* From this moment on: not after a pass, in which somebody might still get a lease. */
static void tell_sched(struct nodes *ns)
{
    nodes_give_table(ns);
    ns->table_changed = true; /* who waits is told in the pass */
    nodes_kick(ns);
}

/* ---- adding ---- */

static int same_machine(const struct nodes *ns, const struct nodespec *s, struct err *err)
{
    for (size_t i = 0; i < ns->n; i++) {
        const struct node_row *n = ns->v[i]->row;
        if (!n->is_head && strcmp(n->spec.name, s->name) != 0 && nodespec_same_machine(&n->spec, s))
            return message_refuse(
                err, ERR_CONFLICT, "host_is_node",
                MESSAGE_ARGS(MESSAGE_STR("host", s->host), MESSAGE_STR("name", n->spec.name)));
    }
    return 0;
}

/* Raylets that share a host's ports: those of one address, and all of loopback addresses. */
static bool shares_ports(const char *a, const char *b)
{
    bool la = str_starts(a, "127.") || !strcmp(a, "localhost");
    bool lb = str_starts(b, "127.") || !strcmp(b, "localhost");
    return (la && lb) || !strcmp(a, b);
}

static int choose_place(const struct nodes *ns, const char *host, int *ret, struct err *err)
{
    unsigned used = 0;
    const char *head = cluster_head_ip(ns->p.cluster);
    if (*head && shares_ports(head, host))
        used |= 1;
    for (size_t i = 0; i < ns->n; i++) {
        const struct node_row *n = ns->v[i]->row;
        const char *at = n->is_head ? str_or(ns->p.settings->head_host, "") : n->spec.host;
        if (shares_ports(at, host))
            used |= 1U << n->place;
    }
    for (int place = 0; place < PORTS_RAYLETS_MAX; place++)
        if (!(used & 1U << place)) {
            *ret = place;
            return 0;
        }
    return message_refuse(
        err, ERR_REFUSED, "host_full",
        MESSAGE_ARGS(MESSAGE_STR("host", host), MESSAGE_NUM("nodes", PORTS_RAYLETS_MAX)));
}

static int check_new(const struct nodes *ns, const struct nodespec *s, struct err *err)
{
    int place;
    const struct noderun *old = nodes_find(ns, s->name);
    if (s->cluster && strcmp(s->cluster, ns->p.settings->cluster) != 0)
        return message_refuse(err, ERR_REFUSED, "no_such_cluster",
                              MESSAGE_ARGS(MESSAGE_STR("cluster", s->cluster),
                                           MESSAGE_STR("ours", ns->p.settings->cluster)));
    if (old && old->row->want == NODE_WANT_REMOVED)
        return message_refuse(err, ERR_CONFLICT, "node_going",
                              MESSAGE_ARGS(MESSAGE_STR("name", s->name)));
    if (old && !nodespec_equal(&old->row->spec, s))
        return message_refuse(err, ERR_CONFLICT, "node_other_spec",
                              MESSAGE_ARGS(MESSAGE_STR("name", s->name)));
    if (old)
        return 0;
    int r = same_machine(ns, s, err);
    return r < 0 ? r : choose_place(ns, s->host, &place, err);
}

static struct noderun *add_one(struct nodes *ns, struct nodespec *taken, const char *actor)
{
    char text[NODE_TEXT_MAX];
    struct node_row *n = node_row_new();
    nodespec_move(&n->spec, taken);
    n->seq = ns->next_seq++;
    n->added_at = n->since = clock_wall();
    if (choose_place(ns, n->spec.host, &n->place, NULL) < 0)
        n->place = PORTS_RAYLETS_MAX - 1; /* many at once: its probe says whose ports it has */
    text_copy(n->reason.text, "{}");
    text_copy(n->reason.code, "added");
    text_copy(n->added_by, actor);
    struct noderun *nr = nodes_insert(ns, n);
    _cleanup_(freep) char *after = nodes_summary(n);
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("host", n->spec.host)));
    struct events_note note = {.kind = "node_added",
                               .actor = actor,
                               .to = node_state_to_string(n->state),
                               .code = "node_added",
                               .text = text,
                               .after = after};
    nodes_save(nr);
    nodes_note(nr, &note);
    nr->act_batch = store_batch(ns->p.store);
    ns->table_changed = true;
    return nr;
}

int nodes_add(struct nodes *ns,
              struct nodespec *specs,
              size_t n,
              const char *actor,
              struct noderun ***ret,
              size_t *ret_new,
              struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        int r = check_new(ns, &specs[i], err);
        if (r < 0)
            return r;
    }
    struct noderun **v = xcalloc(n, sizeof(struct noderun *));
    size_t added = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = nodes_find(ns, specs[i].name);
        if (!v[i]) {
            v[i] = add_one(ns, &specs[i], actor);
            added++;
        }
    }
    if (added)
        tell_sched(ns);
    *ret = v;
    *ret_new = added;
    return 0;
}

/* ---- what operators ask for ---- */

static int refuse_state(const struct noderun *nr, const char *what, struct err *err)
{
    return message_refuse(err, ERR_CONFLICT, "node_state_refuses",
                          MESSAGE_ARGS(MESSAGE_STR("name", nr->row->spec.name),
                                       MESSAGE_STR("verb", what),
                                       MESSAGE_STR("state", node_state_to_string(nr->row->state)),
                                       MESSAGE_STR("want", node_want_to_string(nr->row->want))));
}

static int refuse_head(const struct noderun *nr, struct err *err)
{
    return nr->row->is_head
               ? message_refuse(err, ERR_REFUSED, "head_is_configured", MESSAGE_NO_ARGS)
               : 0;
}

int nodes_check_drain(const struct noderun *nr, struct err *err)
{
    int r = refuse_head(nr, err);
    if (r < 0)
        return r;
    return nr->row->want == NODE_WANT_REMOVED ? refuse_state(nr, "drained", err) : 0;
}

int nodes_drain(struct noderun *nr,
                const struct nodes_drain *how,
                const char *actor,
                struct err *err)
{
    int r = nodes_check_drain(nr, err);
    if (r < 0)
        return r;
    struct node_event e = {.kind = NODE_EV_DRAIN,
                           .within = how->within,
                           .then = how->then,
                           .stop_foreign = how->stop_foreign,
                           .text = how->stop_foreign ? "{\"stop_foreign\":1}" : "{}"};
    if (nodes_change(nr, &e, actor)) { /* twice is once */
        nr->idle_since = 0;
        tell_sched(nr->nodes);
    }
    return 0;
}

int nodes_undrain(struct noderun *nr, const char *actor, struct err *err)
{
    struct node_event e = {.kind = NODE_EV_UNDRAIN};
    int r = refuse_head(nr, err);
    if (r < 0)
        return r;
    if (nr->row->want == NODE_WANT_REMOVED)
        return refuse_state(nr, "taken back", err);
    if (nodes_change(nr, &e, actor)) /* one that is up stays up */
        tell_sched(nr->nodes);
    return 0;
}

/* Do others use a raylet of ours there? ret: their names. */
static bool nodes_ask_holders(const struct noderun *nr, char *ret, size_t size)
{
    return nr->row->may_run && nodes_holders_names(nr->nodes, nr, ret, size);
}

static int refuse_holders(const struct noderun *nr, struct err *err)
{
    char jobs[200];
    if (!nodes_ask_holders(nr, jobs, sizeof(jobs)))
        return 0;
    return message_refuse(
        err, ERR_CONFLICT, "node_has_foreign",
        MESSAGE_ARGS(MESSAGE_STR("name", nr->row->spec.name), MESSAGE_STR("jobs", jobs)));
}

int nodes_remove(struct noderun *nr, unsigned flags, const char *actor, struct err *err)
{
    char jobs[200];
    bool forced = flags & NODES_REMOVE_FORCED, stop_foreign = flags & NODES_REMOVE_STOP_FOREIGN;
    int r = refuse_head(nr, err);
    if (r == 0 && !forced && !stop_foreign)
        r = refuse_holders(nr, err);
    if (r < 0)
        return r;
    nodes_jobs_on(nr->nodes, nr->row->spec.name, jobs, sizeof(jobs));
    if (*jobs && !forced)
        return message_refuse(
            err, ERR_CONFLICT,
            nr->row->want == NODE_WANT_DRAINED ? "node_still_drains" : "node_has_jobs",
            MESSAGE_ARGS(MESSAGE_STR("name", nr->row->spec.name), MESSAGE_STR("jobs", jobs)));
    struct node_event e = {.kind = NODE_EV_REMOVE, .forced = forced, .stop_foreign = stop_foreign};
    if (nodes_change(nr, &e, actor)) {
        nr->idle_since = 0;
        tell_sched(nr->nodes);
    }
    return 0;
}

struct nodes_check *nodes_check(struct noderun *nr,
                                bool accept_key,
                                const char *actor,
                                nodes_check_f cb,
                                void *arg)
{
    struct nodes_check *k = xcalloc(1, sizeof(*k));
    *k = (struct nodes_check){.next = nr->checks, .nr = nr, .cb = cb, .arg = arg};
    nr->checks = k;
    if (accept_key) {
        struct ssh_target t;
        struct err err = {0};
        nodes_target(nr, &t);
        if (ssh_forget_key(&t, &err) < 0)
            log_warn("node", "its host key stays pinned: %s node=%s", err.text, t.name);
        nr->row->host_key[0] = 0;
        struct events_note note = {
            .kind = "node_key_accepted", .actor = actor, .code = "node_key_accepted", .text = "{}"};
        nodes_note(nr, &note);
        nodes_save(nr);
    }
    nr->act_after = 0; /* what was to be tried later is tried now */
    nodes_kick(nr->nodes);
    return k;
}

void nodes_check_free(struct nodes_check *k)
{
    if (!k)
        return;
    for (struct nodes_check **p = &k->nr->checks; *p; p = &(*p)->next)
        if (*p == k) {
            *p = k->next;
            free(k);
            return;
        }
}

void nodes_jobs_on(const struct nodes *ns, const char *name, char *ret, size_t size)
{
    const char *id;
    size_t len = 0;
    *ret = 0;
    for (size_t i = 0; (id = sched_node_lease(ns->p.sched, name, i)) && len < size; i++) {
        if (i == 5) {
            text_copy_to(ret + len, size - len, ", …");
            return;
        }
        len += (size_t)snprintf(ret + len, size - len, "%s%s", i ? ", " : "", id);
    }
}

/* ---- the whole cluster ---- */

static bool has_ours(const struct nodes *ns)
{
    return ns->n > 0;
}

int nodes_up(struct nodes *ns, const char *actor, struct err *err)
{
    if (!has_ours(ns))
        return message_refuse(err, ERR_CONFLICT, "nothing_to_start", MESSAGE_NO_ARGS);
    for (size_t i = 0; i < ns->n; i++) {
        struct node_event e = {.kind = NODE_EV_UNDRAIN};
        if (ns->v[i]->row->downed)
            (void)nodes_change(ns->v[i], &e, actor);
        ns->v[i]->act_after = 0; /* what failed is tried at once */
    }
    nodes_kick(ns);
    return 0;
}

/* Without the head no job of Ray lives; where the head is not ours, our machines alone go. */
int nodes_check_down(const struct nodes *ns, bool stop_foreign, struct err *err)
{
    char jobs[200];
    if (stop_foreign)
        return 0;
    if (!ns->p.settings->head_managed) {
        for (size_t i = 0; i < ns->n; i++)
            if (nodes_ask_holders(ns->v[i], jobs, sizeof(jobs)))
                return message_refuse(err, ERR_CONFLICT, "cluster_has_foreign",
                                      MESSAGE_ARGS(MESSAGE_STR("name", ns->v[i]->row->spec.name),
                                                   MESSAGE_STR("jobs", jobs)));
        return 0;
    }
    if (!nodes_holders_names(ns, NULL, jobs, sizeof(jobs)))
        return 0;
    return message_refuse(err, ERR_CONFLICT, "cluster_has_foreign",
                          MESSAGE_ARGS(MESSAGE_STR("jobs", jobs)));
}

int nodes_down(struct nodes *ns,
               enum node_then then,
               bool stop_foreign,
               const char *actor,
               struct err *err)
{
    if (!has_ours(ns))
        return message_refuse(err, ERR_CONFLICT, "nothing_to_stop", MESSAGE_NO_ARGS);
    int r = nodes_check_down(ns, stop_foreign, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ns->n && then == NODE_THEN_WAIT; i++) {
        char jobs[200];
        nodes_jobs_on(ns, ns->v[i]->row->spec.name, jobs, sizeof(jobs));
        if (*jobs)
            return message_refuse(err, ERR_CONFLICT, "cluster_has_jobs",
                                  MESSAGE_ARGS(MESSAGE_STR("name", ns->v[i]->row->spec.name),
                                               MESSAGE_STR("jobs", jobs)));
    }
    for (size_t i = 0; i < ns->n; i++) {
        struct node_event e = {.kind = NODE_EV_DRAIN,
                               .then = then == NODE_THEN_WAIT ? NODE_THEN_STOP : then,
                               .downed = true,
                               .stop_foreign = stop_foreign,
                               .text = "{\"cluster\":1}"};
        (void)nodes_change(ns->v[i], &e, actor);
        ns->v[i]->idle_since = 0;
    }
    tell_sched(ns);
    return 0;
}
