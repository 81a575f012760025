/* SPDX-License-Identifier: Apache-2.0 */
/* placement.c - the read-back; see placement.h.
 *
 *   each 3 s: what is used ──(changed, a job began, a minute passed)──▶ actors ─▶ groups ─▶ judge
 *
 * CPUs in use change with every task, so they alone ask for the lists each 10 s at most.
 *
 * Ray's monitor tells what is used every 5 s; when it tells nothing, the lists are asked each
 * time. Whose an actor or a group is, is known from the metadata of Ray's jobs: a driver that
 * was seen once stays known, also when another one of the same attempt followed it. */
#include "argusd/evidence/placement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/evidence/placement_page.h"
#include "argusd/ground/work.h"
#include "argusd/jobs/lease.h"
#include "argusd/jobs/tally.h"
#include "argusd/launch/mark.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

enum { TICK_MS = 3000, OWNED_MAX = 20000, NOTE_MAX = 256 << 10 };
static const char NOTE_FILE[] = "debug/binding.txt"; /* see hook/sitecustomize.py */
static const usec_t LOOK_ANYWAY = 60 * USEC_SEC;
static const usec_t LOOK_FOR_CPUS = 10 * USEC_SEC;
static const usec_t SAVE_EVERY = 30 * USEC_SEC;
static const double TINY = PLACEMENT_TINY;

struct owned { /* a driver of one of our attempts */
    char *ray_job, *job;
    int k;
};

struct seen { /* of a live job */
    int k;
    bool looked;
    double told_gpus;    /* beyond the lease, in all: told again when it grows */
    double doubted_gpus; /* beyond what was told, seen by the last look alone */
    bool head_told, guest_told;
    usec_t saved_at;
    char *text; /* without its time */
};

struct use {
    char *node_id;
    double gpus, cpus;
};

struct placement {
    struct placement_parts p;
    uv_timer_t timer;
    struct ray_call *usage_call, *list_call;
    usec_t looked_at; /* monotonic */
    bool again;       /* a look is due */
    bool cpus_moved;  /* a look is due when the last one is LOOK_FOR_CPUS ago */
    bool no_usage;    /* Ray has no report: the lists are asked each time */
    struct owned *owned;
    size_t n_owned;
    struct map *seen; /* job id -> struct seen */
    struct use *uses; /* GPUs of each node, as Ray told last; sorted by id */
    size_t n_uses;
    struct tally tally; /* actors of this look, until the groups came */
    bool partial, closing;
    int handles; /* the timer and notes that are being read */
};

/* ---- whose a driver is ---- */

static const struct owned *find_owned(const struct placement *p, const char *ray_job)
{
    for (size_t i = p->n_owned; i > 0; i--)
        if (!strcmp(p->owned[i - 1].ray_job, ray_job))
            return &p->owned[i - 1];
    return NULL;
}

static void forget_owned(struct placement *p, size_t n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n; i++) {
        free(p->owned[i].ray_job);
        free(p->owned[i].job);
    }
    p->n_owned -= n;
    memmove(p->owned, p->owned + n, p->n_owned * sizeof(*p->owned));
}

static int attempt_of(const struct ray_job *rj)
{
    int64_t k;
    const char *text = str_or(pairs_find(&rj->metadata, "argus_attempt"), "");
    return str_to_int(text, 1, 1 << 20, &k, NULL) == 0 ? (int)k : 1;
}

void placement_saw_jobs(struct placement *p, const struct ray_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const struct ray_job *rj = &jobs->v[i];
        const char *job = mark_job(rj);
        if (!job || !rj->job_id || find_owned(p, rj->job_id) || !mark_is_ours(p->p.instance, rj))
            continue;
        if (p->n_owned >= OWNED_MAX)
            forget_owned(p, OWNED_MAX / 2);
        p->owned = xrealloc(p->owned, p->n_owned + 1, sizeof(*p->owned));
        p->owned[p->n_owned++] = (struct owned){
            .ray_job = xstrdup(rj->job_id), .job = xstrdup(job), .k = attempt_of(rj)};
        p->again = true;
    }
}

/* ---- what was seen of a job ---- */

static void seen_free(struct seen *s)
{
    free(s->text);
    free(s);
}

static struct seen *seen_of(struct placement *p, const struct live *l, int k)
{
    struct seen *s = map_find(p->seen, l->job->id);
    if (s && s->k == k)
        return s;
    if (s)
        seen_free(s);
    s = xcalloc(1, sizeof(*s));
    s->k = k;
    map_set(p->seen, l->job->id, s);
    return s;
}

static void forget_seen(struct placement *p)
{
    const char *id;
    struct seen *s;
    for (size_t pos = 0; (s = map_next(p->seen, &pos, &id));)
        if (!jobs_find_id(p->p.jobs, id)) {
            map_remove(p->seen, id);
            seen_free(s);
            pos = 0;
        }
}

static const struct attempt *placed_attempt(const struct live *l)
{
    return job_is_in_ray(l->job) && l->job->gang.n ? job_attempt(l->job) : NULL;
}

/* ---- judging one job ---- */

/* What the job's page shows; stored when it changed, and not more often than needed. */
static void placement_keep(struct live *l,
                           struct seen *s,
                           const struct tally_owner *held,
                           double beyond,
                           bool partial)
{
    usec_t now = clock_mono();
    struct placement_seen seen = {
        .job = l->job, .held = held, .beyond_gpus = beyond, .is_partial = partial};
    char *text = placement_text(&seen);
    bool changed = text && !str_eq(s->text, text);
    if (changed) {
        free(s->text);
        s->text = text;
        seen.checked_at = clock_wall();
        free(l->extra.placement);
        l->extra.placement = placement_text(&seen);
    } else {
        free(text);
    }
    if (changed && (!s->saved_at || now - s->saved_at > SAVE_EVERY || beyond > TINY)) {
        s->saved_at = now;
        jobs_save(l);
    }
}

/* ---- what the hook noted ---- */

struct note { /* on a worker thread */
    struct placement *p;
    const char *root;
    char *job, *path;
    struct buf text;
};

static void placement_let_go(struct placement *p);

static void placement_run_note(void *arg)
{
    struct note *n = arg;
    if (rootfile_read(n->root, n->path, &n->text, NULL) < 0)
        buf_reset(&n->text); /* it noted nothing */
}

static void placement_done_note(void *arg)
{
    struct note *n = arg;
    struct live *l = n->p->closing ? NULL : jobs_find_id(n->p->p.jobs, n->job);
    const char *text = buf_str(&n->text);
    char line[360];
    _cleanup_(freep) char *why = xstrndup(text, strcspn(text, "\n"));
    message_write(line, sizeof(line), MESSAGE_ARGS(MESSAGE_STR("why", why)));
    if (l && *text)
        jobs_note(l, "lease_unbound", "lease_unbound", line, clock_wall());
    placement_let_go(n->p);
    buf_release(&n->text);
    free(n->job);
    free(n->path);
    free(n);
}

static void ask_note(struct placement *p, const struct job *j)
{
    struct note *n = xcalloc(1, sizeof(*n));
    if (cluster_root_hangs(p->p.cluster)) {
        free(n);
        return;
    }
    *n = (struct note){
        .p = p,
        .root = p->p.settings->shared_root,
        .job = xstrdup(j->id),
        .path = fsroot_attempt_dir(p->p.settings->shared_root, j->id, j->n_attempts, NOTE_FILE),
        .text = BUF_INIT(NOTE_MAX)};
    p->handles++;
    work_start(p->p.loop, placement_run_note, placement_done_note, n);
}

/* where: arguments of "lease_broken". */
static void breach(struct placement *p, struct live *l, const char *where)
{
    struct reason why;
    reason_set(&why, finding_class_to_string(FINDING_LEASE_BREACH), "lease_broken", where);
    jobs_note(l, "lease_breach", why.code, why.text, clock_wall());
    ask_note(p, l->job);
    if (p->p.settings->lease_breach != LEASE_BREACH_STOP || l->job->state == JOB_STOPPING)
        return;
    struct job_event e = {.kind = JOB_EV_STOP,
                          .cause = STOP_FINDING,
                          .finding = FINDING_LEASE_BREACH,
                          .text = why.text};
    (void)jobs_apply(l, &e, "argusd", clock_wall());
}

static void note_guest(struct live *l, struct seen *s, const struct tally_place *q)
{
    char text[300];
    if (s->head_told || !q->actors)
        return;
    s->head_told = true;
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("actor", q->guest), MESSAGE_STR("node", q->node)));
    jobs_note(l, "head_used", "head_used", text, clock_wall());
}

/* No breach, since it holds no GPU: a library such as Serve has actors on each node. */
static void note_outside(const struct placement *p,
                         struct live *l,
                         struct seen *s,
                         const struct tally_place *q)
{
    const struct cluster_node *n = cluster_find_name(p->p.cluster, q->node);
    char text[300];
    if (n && n->is_head)
        note_guest(l, s, q);
    if (s->guest_told || !n || n->is_head || !n->is_alive || !q->actors ||
        gang_has(&l->job->gang, q->node) || lease_spreads(l->job, p->p.settings))
        return;
    s->guest_told = true;
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("actor", q->guest), MESSAGE_STR("node", q->node)));
    jobs_note(l, "outside_lease", "outside_lease", text, clock_wall());
}

/* Actors and groups are two lists of two moments: what moved between them is in both. So a breach
 * is what two looks in a row have seen. */
static bool is_doubtful(struct placement *p, struct seen *s, double beyond)
{
    double before = s->doubted_gpus;
    s->doubted_gpus = beyond > s->told_gpus + TINY ? beyond : 0;
    bool doubtful = s->doubted_gpus > 0 && before <= 0;
    p->again |= doubtful;
    return doubtful;
}

enum { PLACES_TOLD = 3 };

static void placement_put_place(const struct job *job, const struct tally_place *q, struct jout *j)
{
    char text[JOB_REASON_TEXT_MAX / (PLACES_TOLD + 1)];
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_NUM("gpus", q->gpus), MESSAGE_STR("node", q->node),
                               MESSAGE_NUM("leased", placement_leased(job, q->node)),
                               MESSAGE_STR("holder", q->what)));
    message_put(j, NULL, "lease_place", text);
}

/* Ray's list of nodes may lag or lack some: what is on none that lives is no breach of anything,
 * and is looked at again. */
static void placement_judge(struct placement *p, struct live *l, const struct tally_owner *held)
{
    struct seen *s = seen_of(p, l, job_attempt(l->job)->k);
    double beyond = 0;
    char where[JOB_REASON_TEXT_MAX];
    size_t n_places = 0;
    bool unsure = false;
    struct message m;
    message_begin(&m);
    jout_open(&m.j, "places", '[');
    s->looked = true;
    for (size_t i = 0; i < held->n; i++) {
        const struct tally_place *q = &held->places[i];
        const struct cluster_node *n = cluster_find_name(p->p.cluster, q->node);
        double more = q->gpus - placement_leased(l->job, q->node);
        note_outside(p, l, s, q);
        if (more <= TINY)
            continue;
        if (!n || !n->is_alive) {
            unsure = true;
            continue;
        }
        beyond += more;
        if (n_places++ < PLACES_TOLD) /* the first ones say enough */
            placement_put_place(l->job, q, &m.j);
    }
    jout_close(&m.j, ']');
    message_end(&m, where, sizeof(where));
    p->again |= unsure;
    if (is_doubtful(p, s, beyond))
        return;
    /* What is left of one that is being stopped is not where it was. */
    if (l->job->state != JOB_STOPPING || !s->text || beyond > s->told_gpus + TINY)
        placement_keep(l, s, held, beyond, p->partial || unsure);
    if (beyond > s->told_gpus + TINY) {
        s->told_gpus = beyond;
        breach(p, l, where);
    }
}

/* ---- a look at the lists ---- */

static const char *placement_name_of(const char *node_id, void *arg)
{
    const struct placement *p = arg;
    const struct cluster_node *n = cluster_find_id(p->p.cluster, node_id);
    return n ? n->name : NULL;
}

static void judge_all(struct placement *p)
{
    struct live *l;
    for (size_t pos = 0; (l = jobs_next_placed(p->p.jobs, &pos));) {
        const struct attempt *a = placed_attempt(l);
        if (!a)
            continue;
        struct tally_owner held = {0};
        bool known = false;
        for (size_t i = 0; i < p->tally.n; i++) {
            const struct owned *o = find_owned(p, p->tally.v[i].job_id);
            if (o && o->k == a->k && !strcmp(o->job, l->job->id))
                tally_merge(&held, &p->tally.v[i]);
        }
        for (size_t i = 0; i < p->n_owned && !known; i++)
            known = p->owned[i].k == a->k && !strcmp(p->owned[i].job, l->job->id);
        if (known) { /* its driver has reached Ray */
            jobs_busy(l);
            placement_judge(p, l, &held);
            jobs_idle(l);
        }
        tally_owner_release(&held);
    }
}

static void placement_on_groups(const struct ray_groups *groups, const struct err *err, void *arg)
{
    struct placement *p = arg;
    static const struct ray_actors no_actors;
    p->list_call = NULL;
    if (groups) {
        tally_add(&p->tally, &no_actors, groups, placement_name_of, p);
        p->partial |= groups->is_partial;
        p->looked_at = clock_mono();
        judge_all(p);
    } else {
        log_debug("placement", "cannot read Ray's placement groups: %s", err->text);
        p->again = true;
    }
    tally_release(&p->tally);
    forget_seen(p);
}

static void placement_on_actors(const struct ray_actors *actors, const struct err *err, void *arg)
{
    struct placement *p = arg;
    static const struct ray_groups no_groups;
    p->list_call = NULL;
    if (!actors) {
        log_debug("placement", "cannot read Ray's actors: %s", err->text);
        p->again = true;
        return;
    }
    tally_add(&p->tally, actors, &no_groups, placement_name_of, p);
    p->partial = actors->is_partial;
    p->list_call = ray_list_groups(p->p.ray, NULL, placement_on_groups, p);
}

static void placement_look(struct placement *p)
{
    if (p->list_call)
        return;
    tally_release(&p->tally);
    p->again = p->cpus_moved = false;
    p->list_call = ray_list_actors(p->p.ray, NULL, placement_on_actors, p);
}

/* ---- what is used ---- */

static void uses_release(struct placement *p)
{
    for (size_t i = 0; i < p->n_uses; i++)
        free(p->uses[i].node_id);
    free(p->uses);
    p->uses = NULL;
    p->n_uses = 0;
}

/* Since the last report: sets again or cpus_moved; true if anything is another. */
static bool usage_moved(struct placement *p, const struct ray_usages *usages)
{
    bool nodes = p->n_uses != usages->n, gpus = false, cpus = false;
    for (size_t i = 0; i < usages->n && !nodes; i++) {
        nodes = strcmp(p->uses[i].node_id, usages->v[i].node_id) != 0;
        gpus |= fabs(p->uses[i].gpus - usages->v[i].gpus_used) > TINY;
        cpus |= fabs(p->uses[i].cpus - usages->v[i].cpus_used) > TINY;
    }
    p->again |= nodes || gpus;
    p->cpus_moved |= cpus;
    return nodes || gpus || cpus;
}

static void on_usage(const struct ray_usages *usages, const struct err *err, void *arg)
{
    struct placement *p = arg;
    p->usage_call = NULL;
    p->no_usage = !usages;
    if (!usages) {
        log_debug("placement", "Ray does not tell what is used: %s", err->text);
        return;
    }
    if (!usage_moved(p, usages))
        return;
    uses_release(p);
    p->uses = xcalloc(usages->n + 1, sizeof(*p->uses));
    for (p->n_uses = 0; p->n_uses < usages->n; p->n_uses++)
        p->uses[p->n_uses] = (struct use){.node_id = xstrdup(usages->v[p->n_uses].node_id),
                                          .gpus = usages->v[p->n_uses].gpus_used,
                                          .cpus = usages->v[p->n_uses].cpus_used};
}

static bool any_unseen(const struct placement *p)
{
    const struct live *l;
    for (size_t pos = 0; (l = jobs_next_placed(p->p.jobs, &pos));) {
        const struct attempt *a = placed_attempt(l);
        const struct seen *s = a ? map_find(p->seen, l->job->id) : NULL;
        if (a && l->job->state == JOB_RUNNING && !(s && s->k == a->k && s->looked))
            return true;
    }
    return false;
}

static void placement_on_tick(uv_timer_t *t)
{
    struct placement *p = container_of(t, struct placement, timer);
    usec_t now = clock_mono();
    bool any = jobs_count(p->p.jobs, JOB_STARTING) + jobs_count(p->p.jobs, JOB_RUNNING) +
                   jobs_count(p->p.jobs, JOB_STOPPING) >
               0;
    if (!any || !cluster_is_up(p->p.cluster))
        return;
    if (!p->usage_call)
        p->usage_call = ray_list_usages(p->p.ray, on_usage, p);
    usec_t since = now - p->looked_at;
    bool due = since >= LOOK_ANYWAY || (p->cpus_moved && since >= LOOK_FOR_CPUS);
    if (p->again || p->no_usage || due || any_unseen(p))
        placement_look(p);
}

/* ---- life ---- */

struct placement *placement_new(const struct placement_parts *parts)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct placement *p = xcalloc(1, sizeof(*p));
    p->p = *parts;
    p->seen = map_new(seed);
    p->looked_at = clock_mono();
    p->handles = 1;
    (void)uv_timer_init(parts->loop, &p->timer); /* never fails */
    return p;
}

void placement_start(struct placement *p)
{
    (void)uv_timer_start(&p->timer, placement_on_tick, TICK_MS, TICK_MS); /* cannot fail */
}

static void placement_let_go(struct placement *p)
{
    struct seen *s;
    if (--p->handles > 0 || !p->closing)
        return;
    for (size_t pos = 0; (s = map_next(p->seen, &pos, NULL));)
        seen_free(s);
    map_free(p->seen);
    forget_owned(p, p->n_owned);
    free(p->owned);
    uses_release(p);
    tally_release(&p->tally);
    free(p);
}

static void placement_on_closed(uv_handle_t *h)
{
    placement_let_go(container_of(h, struct placement, timer));
}

void placement_free(struct placement *p)
{
    if (!p)
        return;
    p->closing = true;
    ray_call_free(p->usage_call);
    ray_call_free(p->list_call);
    uv_close((uv_handle_t *)&p->timer, placement_on_closed);
}
