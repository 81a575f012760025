/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_look.c - watches nodes that are in, and tells what it saw as events; see nodes_run.h.
 *
 * Two ways to look. Every few seconds a connection to the raylet's port: cheap, and it shows at
 * once that a host or raylet has gone. Every nodes.look_every, and whenever the first way fails
 * or a lease has ended, a look over ssh: is our raylet alive, is the machine healthy, which
 * jobs' processes are there. Only the machine itself, or silence on both ways, makes a node lost;
 * silence of ssh alone is told and changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "argusd/machines/knock.h"
#include "argusd/machines/nodes_run.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "ray/reach.h"

static const usec_t LOOK_LIMIT = 15 * USEC_SEC;
static const usec_t LOOK_AGAIN = 3 * USEC_SEC;  /* after one that failed */
static const usec_t CLEAN_AGAIN = 2 * USEC_SEC; /* while slots are held back */
static const usec_t REACH_EVERY = 4 * USEC_SEC;
static const usec_t REACH_LIMIT = 3 * USEC_SEC;
static const usec_t HOLD_BLIND = 60 * USEC_SEC; /* slots come back unseen when nobody can look */
static const usec_t MAX_WRITE = 5 * USEC_SEC;   /* of one small file to the shared root */
enum { LIVE_MAX = 4096 };

/* ---- slots that are not clean yet ---- */

void nodes_holds_free(struct noderun *nr)
{
    for (size_t i = 0; i < nr->n_holds; i++)
        free(nr->holds[i].job);
    free(nr->holds);
    nr->holds = NULL;
    nr->n_holds = 0;
    nr->strays = 0;
    nr->strays_ours = false;
    nr->stray_text[0] = 0;
}

void nodes_hold(struct noderun *nr, const char *job, double gpus)
{
    nr->holds = xrealloc(nr->holds, nr->n_holds + 1, sizeof(*nr->holds));
    nr->holds[nr->n_holds++] =
        (struct nodes_hold){.job = xstrdup(job), .gpus = gpus, .since = clock_mono()};
    nr->look_after = 0;
}

static bool nodes_look_is_held(const struct noderun *nr, const char *job)
{
    for (size_t i = 0; i < nr->n_holds; i++)
        if (!strcmp(nr->holds[i].job, job))
            return true;
    return false;
}

double nodes_held(const struct noderun *nr)
{
    double sum = 0;
    for (size_t i = 0; i < nr->n_holds; i++)
        sum += nr->holds[i].gpus;
    /* Nobody knows on which GPUs strays sit; those of foreign jobs are counted by Ray. */
    bool all = nr->strays && (nr->strays_ours || nr->foreign_gpus == 0);
    return all ? nr->gpus : sum;
}

static void release_hold(struct noderun *nr, size_t i)
{
    free(nr->holds[i].job);
    nr->holds[i] = nr->holds[--nr->n_holds];
    nr->nodes->table_changed = true;
}

bool nodes_is_leased(const struct noderun *nr, const char *job)
{
    const char *id;
    for (size_t i = 0; (id = sched_node_lease(nr->nodes->p.sched, nr->row->spec.name, i)); i++)
        if (!strcmp(id, job))
            return true;
    return false;
}

static void clean_holds(struct noderun *nr, const struct raylet_look *r)
{
    for (size_t i = nr->n_holds; i-- > 0;) {
        bool there = r->n_jobs == RAYLET_JOBS_MAX; /* then the list may lack it */
        for (size_t k = 0; k < r->n_jobs; k++)
            there |= !strcmp(r->jobs[k].id, nr->holds[i].job);
        if (!there && nr->look_began > nr->holds[i].since)
            release_hold(nr, i);
    }
}

/* What the list calls strays may have got a lease since, or is waited for already. */
static size_t count_strays(const struct noderun *nr, const struct raylet_look *r, bool *ret_ours)
{
    size_t n = r->strays;
    *ret_ours = false;
    for (size_t i = 0; i < r->n_jobs; i++) {
        if (r->jobs[i].is_live)
            continue;
        if (nodes_is_leased(nr, r->jobs[i].id) || nodes_look_is_held(nr, r->jobs[i].id))
            n -= n < r->jobs[i].processes ? n : r->jobs[i].processes;
        else
            *ret_ours = true;
    }
    return n;
}

static void take_strays(struct noderun *nr, const struct raylet_look *r)
{
    bool ours, had = nr->strays > 0;
    nr->strays = count_strays(nr, r, &ours);
    nr->strays_ours = nr->strays && ours;
    text_copy(nr->stray_text, nr->strays ? r->stray_text : "");
    if (had == (nr->strays > 0))
        return;
    nr->nodes->table_changed = true;
    nodes_tell(nr, had ? "node_clean" : "node_strays", had ? "clean" : "strays",
               had ? "{}" : nr->stray_text);
}

static void expire_holds(struct noderun *nr, usec_t now)
{
    for (size_t i = nr->n_holds; i-- > 0;)
        if (nr->looks_failed && now - nr->holds[i].since > HOLD_BLIND) {
            log_warn("node", "GPUs of job '%s' come back unseen: ssh does not get through node=%s",
                     nr->holds[i].job, nr->row->spec.name);
            release_hold(nr, i);
        }
}

/* ---- verdicts ---- */

static void nodes_look_lose(struct noderun *nr, const char *code, const char *text)
{
    struct node_event e = {.kind = NODE_EV_LOST, .code = code, .text = text};
    text_copy(nr->lost_id, nr->ray_id);
    nodes_holds_free(nr);
    (void)nodes_change(nr, &e, "argusd");
}

/* Neither way gets through: not one, which may be its sshd's or a firewall's own trouble. */
static bool nodes_look_is_silent(const struct noderun *nr)
{
    return nr->looks_failed && nr->reach_failed >= 2 && nr->reach_ever;
}

/* code and why: a message, "" = none. */
static void judge_silence(struct noderun *nr, const char *code, const char *why)
{
    char text[NODE_TEXT_MAX];
    if (nr->row->step != NODE_STEP_IN)
        return;
    message_write(
        text, sizeof(text),
        MESSAGE_ARGS(MESSAGE_STR("host", nr->row->spec.host), MESSAGE_OF("why", code, why)));
    if (nodes_look_is_silent(nr)) {
        nodes_look_lose(nr, "node_unreachable", text);
    } else if (nr->looks_failed >= 2 && !nr->row->ssh_away) {
        struct node_event e = {.kind = NODE_EV_AWAY, .code = "ssh_unreachable", .text = text};
        (void)nodes_change(nr, &e, "argusd");
    }
}

static void take_health(struct noderun *nr, const struct raylet_look *r)
{
    bool slow = !strcmp(r->trouble_code, "root_slow");
    nr->slow = slow ? nr->slow + 1 : 0;
    if (slow && nr->slow < 2)
        return; /* once is the server's business */
    struct node_event e = {.kind = *r->trouble ? NODE_EV_SICK : NODE_EV_WELL,
                           .code = r->trouble_code,
                           .text = r->trouble};
    if (!*r->trouble) {
        e.code = "healthy";
        e.text = "{}";
    }
    (void)nodes_change(nr, &e, "argusd");
}

/* Facts of the machine that the probe knew of first are those of now. In memory alone: a row is
 * written when more than a number changes. */
static void take_measures(struct noderun *nr, const struct raylet_look *r)
{
    struct node_facts *f = &nr->row->facts;
    if (!f->at)
        return; /* never probed: the others are not known */
    if (r->has_disk)
        f->disk_free_bytes = r->disk_free;
    if (r->has_shm)
        f->shm_free_bytes = r->shm_free;
    if (r->has_clock)
        f->skew = r->skew;
    if (r->root_write)
        f->root_write = r->root_write;
}

/* The reader is ours: all of its GPUs are believed. One that says the same again is not heard. */
static void take_cards(struct noderun *nr, const struct gpu_sample *cards)
{
    if (!cards || !cards->n || cards->at == nr->cards_at)
        return;
    nr->cards_at = cards->at;
    figures_put_cards(nr->nodes->p.figures, nr->row->spec.name, cards, UINT64_MAX);
}

/* A rate takes two looks; a machine without ports, or one look, tells nothing. */
static void take_rdma(struct noderun *nr, const struct rdma_counts *now)
{
    struct rdma_rate rate;
    if (rdma_rate_of(nr->rdma, now, &rate))
        figures_put_rdma(nr->nodes->p.figures, nr->row->spec.name, &rate);
    free(nr->rdma);
    nr->rdma = rdma_copy(now);
}

/* What the machine says itself, where its NodeSpec (of the head: argus.yaml) names no address and
 * its start was not seen to the end. */
static void nodes_look_take_address(struct noderun *nr, const struct raylet_look *r)
{
    if (reach_is_address(nr->row->address) || !reach_is_address(r->facts.node_ip))
        return; /* a name is no address */
    text_copy(nr->row->address, r->facts.node_ip);
    nodes_save(nr);
}

static void take_look(struct noderun *nr, const struct raylet_look *r)
{
    struct node_event back = {.kind = NODE_EV_BACK, .code = "ssh_back", .text = "{}"};
    nr->looks_failed = 0;
    if (nr->row->ssh_away)
        (void)nodes_change(nr, &back, "argusd");
    if (!r->facts.alive && !r->facts.starting) {
        if (!r->facts.has_gcs)
            nr->gone_at = clock_mono();
        nodes_look_lose(nr, "raylet_died", nr->row->is_head ? "{\"head\":1}" : "{}");
        return;
    }
    nodes_look_take_address(nr, r);
    clean_holds(nr, r);
    take_strays(nr, r);
    take_cards(nr, r->cards);
    take_rdma(nr, r->rdma);
    take_measures(nr, r);
    nodes_remedy_take(nr, r);
    take_health(nr, r);
}

static void nodes_look_on_looked(const struct raylet_look *r, void *arg)
{
    struct noderun *nr = arg;
    usec_t now = clock_mono(), every = nr->nodes->p.settings->look_every;
    nr->look = NULL;
    nr->look_after = now + every;
    if (nr->row->step != NODE_STEP_IN) {
        nodes_pass(nr->nodes);
        return; /* what it saw is of another time */
    }
    if (r->end.outcome == RAYLET_OK) {
        take_look(nr, r);
        if (nr->n_holds || nr->strays)
            nr->look_after = now + (every < CLEAN_AGAIN ? every : CLEAN_AGAIN);
    } else if (r->end.outcome == RAYLET_SSH) {
        nr->looks_failed++;
        nr->look_after = now + (every < LOOK_AGAIN ? every : LOOK_AGAIN);
        judge_silence(nr, ssh_trouble_to_string(r->end.trouble), r->end.text);
    } else {
        char said[NODE_TEXT_MAX];
        message_to_string(raylet_outcome_to_string(r->end.outcome), r->end.text, true, said,
                          sizeof(said));
        log_warn("node", "a look says nothing: %s node=%s", said, nr->row->spec.name);
    }
    nodes_pass(nr->nodes);
}

static void nodes_look_begin_look(struct noderun *nr)
{
    struct nodes *ns = nr->nodes;
    const struct settings *s = ns->p.settings;
    const char *id, **live = xcalloc(LIVE_MAX, sizeof(*live));
    struct ssh_target t;
    size_t n = 0;
    bool head = nr->row->is_head;
    while (n < LIVE_MAX && (id = sched_node_lease(ns->p.sched, nr->row->spec.name, n)))
        live[n++] = id;
    bool has_root = !head && cluster_root_is_ok(ns->p.cluster);
    /* Jobs or none: a scout tells of its own job's GPUs alone. */
    bool asks = has_root && nr->gpus > 0 && nr->row->spec.exporter == NODESPEC_EXPORTER_NONE;
    _cleanup_(freep) char *cards = asks ? xasprintf("%s/argus/bin", s->shared_root) : NULL;
    struct raylet_want want = {
        .owner = ns->p.instance,
        .node = nr->row->spec.name,
        .live_jobs = live,
        .n_live_jobs = n,
        .shared_root = has_root ? s->shared_root : NULL,
        .cards = cards,
        .root_mark = cluster_root_mark(ns->p.cluster),
        .min_disk_bytes = s->min_disk_bytes / 4, /* what keeps a node out need not throw it out */
        .min_shm_bytes = s->min_shm_bytes / 16,
        .temp_dir = s->ray_temp_dir,
        .max_skew = s->max_skew,
        .now = clock_wall(),
        .max_write = MAX_WRITE,
        .gpus = nr->row->facts.gpus ? (int)nr->gpus : 0};
    nodes_target(nr, &t);
    nr->look_began = clock_mono();
    nr->look = raylet_look(ns->p.loop, &t, &want, LOOK_LIMIT, nodes_look_on_looked, nr);
    free(live);
}

usec_t nodes_head_gone(const struct nodes *ns)
{
    const struct noderun *head = nodes_find(ns, "head");
    return head && head->row->is_head ? head->gone_at : 0;
}

/* ---- the raylet's port ---- */

static void take_reach(struct noderun *nr, int status, usec_t now)
{
    bool answers = status == 0 || status == UV_ECONNREFUSED, was_silent = nr->reach_failed > 0;
    nr->reach_after = now + (answers ? REACH_EVERY : USEC_SEC);
    nr->reach_failed = answers ? 0 : nr->reach_failed + 1;
    if (nr->row->step == NODE_STEP_IN) {
        nr->reach_ever |= status == 0;
        if (status != 0 && nr->reach_ever && nr->reach_failed != 1)
            nr->look_after = 0; /* ssh says whether it is the raylet or the host */
        judge_silence(nr, "", "");
    } else if (answers && was_silent) {
        nr->act_after = 0; /* it is back: what was to be tried later is tried now */
    }
}

static void on_reached(int status, void *arg)
{
    struct noderun *nr = arg;
    nr->reach = NULL;
    take_reach(nr, status, clock_mono());
    nodes_pass(nr->nodes);
}

static void begin_reach(struct noderun *nr, usec_t now)
{
    const struct settings *s = nr->nodes->p.settings;
    int port =
        ports_at(&s->ports, nr->row->is_head ? PORTS_GCS : PORTS_RAYLET, nr->row->place).first;
    int r = knock_begin(nr->nodes->p.loop, nr->row->address, port, on_reached, nr, &nr->reach);
    if (r == KNOCK_NO_ADDRESS)
        nr->reach_after = now + USEC_MIN; /* ssh alone tells */
    else if (r < 0)
        take_reach(nr, r, now);
}

/* ---- what is due ---- */

static size_t count_looks(const struct nodes *ns)
{
    size_t n = 0;
    for (size_t i = 0; i < ns->n; i++)
        n += ns->v[i]->look || ns->v[i]->op == OP_PROBE || ns->v[i]->check_probe;
    return n;
}

static bool wants_reach(const struct noderun *nr)
{
    return nr->row->step == NODE_STEP_IN ||
           (nr->row->state == NODE_OFFLINE && nr->row->step == NODE_STEP_PROBE);
}

void nodes_look(struct noderun *nr, usec_t now)
{
    if (nr->reach && knock_is_late(nr->reach, now, REACH_LIMIT)) {
        knock_end(&nr->reach);
        take_reach(nr, UV_ETIMEDOUT, now);
    }
    expire_holds(nr, now);
    if (!nr->reach && now >= nr->reach_after && wants_reach(nr))
        begin_reach(nr, now);
    if (!nr->look && nr->row->step == NODE_STEP_IN && now >= nr->look_after &&
        count_looks(nr->nodes) < (size_t)nr->nodes->p.settings->looks)
        nodes_look_begin_look(nr);
}

void nodes_look_cancel(struct noderun *nr)
{
    raylet_call_free(nr->look);
    nr->look = NULL;
    knock_end(&nr->reach);
}
