/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - the event loop of replay.h: a list of submissions, a heap of ends, and a pass of
 * the scheduler after each instant at which something happened.
 *
 * Invariants: a job is in exactly one of {to come, waiting, running, over}; what runs is in the
 * heap with its generation (a preempted run's entry is stale). */
#include "core/past/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/past/forecast.h"
#include "core/past/learn.h"

enum { ID_MAX = 16 };

struct run {
    usec_t started;
    usec_t told_at; /* 0: not yet */
    struct forecast_row told;
    usec_t promised;     /* the first time that was promised; 0: none */
    unsigned generation; /* of its start */
    bool waits;
    usec_t done;        /* steps that a checkpoint has */
    usec_t set_back_at; /* the latest time; 0: never */
    unsigned set_backs;
    bool taught; /* its forecast has been judged */
};

struct end {
    usec_t at;
    size_t job;
    unsigned generation;
    bool gives_way; /* its checkpoint is complete */
};

struct player {
    const struct replay *r;
    struct tally *tally;
    struct sched *sched;
    struct learn *learn;
    struct forecast_error *errors;
    struct run *runs;
    struct end *ends; /* a heap, the next one first */
    size_t n_ends, cap_ends;
    size_t next; /* submission */
    size_t untold;
    size_t credit; /* forecast starts that are paid for */
    uint64_t digest;
    struct sched_decision decision;
    struct forecast_row rows[REPLAY_MAX_ROWS];
};

/* ---- numbers ---- */

static uint64_t scramble(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

uint64_t replay_mix(uint64_t digest, uint64_t more)
{
    return scramble((digest ^ more) + 0x9e3779b97f4a7c15ULL);
}

static uint64_t mix_text(uint64_t digest, const char *s)
{
    for (size_t left = strlen(s); left;) {
        uint64_t word = 0;
        size_t n = left < sizeof(word) ? left : sizeof(word);
        for (size_t i = 0; i < n; i++)
            word |= (uint64_t)(unsigned char)s[i] << (8 * i);
        digest = replay_mix(digest, word);
        s += n;
        left -= n;
    }
    return digest;
}

void replay_guess(struct replay_job *jobs,
                  size_t n,
                  double low,
                  double high,
                  uint64_t seed,
                  const char *pool)
{
    uint64_t state = mix_text(replay_mix(0, seed), pool);
    for (size_t i = 0; i < n; i++) {
        state += 0x9e3779b97f4a7c15ULL;
        double unit = (double)(scramble(state) >> 11) * 0x1p-53;
        double seconds = ceil((double)jobs[i].duration / 1e6 * (low + unit * (high - low)));
        jobs[i].limit = seconds < 1 ? USEC_SEC : (usec_t)seconds * USEC_SEC;
    }
}

/* ---- the heap ---- */

static bool replay_is_before(const struct end *a, const struct end *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    return a->job != b->job ? a->job < b->job : a->gives_way < b->gives_way;
}

static void replay_heap_add(struct player *p, struct end e)
{
    if (p->n_ends == p->cap_ends) {
        p->cap_ends = p->cap_ends ? 2 * p->cap_ends : 64;
        p->ends = xrealloc(p->ends, p->cap_ends, sizeof(*p->ends));
    }
    size_t i = p->n_ends++;
    for (; i && replay_is_before(&e, &p->ends[(i - 1) / 2]); i = (i - 1) / 2)
        p->ends[i] = p->ends[(i - 1) / 2];
    p->ends[i] = e;
}

static struct end replay_heap_take(struct player *p)
{
    struct end first = p->ends[0], last = p->ends[--p->n_ends];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < p->n_ends; i = child) {
        if (child + 1 < p->n_ends && replay_is_before(&p->ends[child + 1], &p->ends[child]))
            child++;
        if (!replay_is_before(&p->ends[child], &last))
            break;
        p->ends[i] = p->ends[child];
    }
    p->ends[i] = last;
    return first;
}

/* ---- a job ---- */

static struct demand demand_of(const struct replay *r, int gpus)
{
    struct demand d = {.nnodes = 1, .gpus_per_node = gpus};
    if (gpus > r->gpus_per_node) {
        d.nnodes = (gpus + r->gpus_per_node - 1) / r->gpus_per_node;
        d.gpus_per_node = r->gpus_per_node;
    }
    return d;
}

static int held_by(const struct replay *r, int gpus)
{
    struct demand d = demand_of(r, gpus);
    return d.nnodes * (int)d.gpus_per_node;
}

static const char *id_of(size_t job, char id[static ID_MAX])
{
    text_printf_to(id, ID_MAX, "j%zu", job);
    return id;
}

/* The same jobs under every policy. */
static bool is_restartable(const struct replay *r, size_t i)
{
    double unit = (double)(scramble(i + 0x51ed2701U) >> 11) * 0x1p-53;
    return unit < r->costs.restartable;
}

static struct learn_kind replay_kind_of(const struct replay_job *j)
{
    return (struct learn_kind){.gpus = j->gpus, .limit = j->limit};
}

static void replay_submit(struct player *p, size_t i, usec_t queued_at)
{
    char id[ID_MAX];
    const struct replay_job *j = &p->r->jobs[i];
    struct sched_job job = {.id = id_of(i, id),
                            .seq = (int64_t)i,
                            .demand = demand_of(p->r, j->gpus),
                            .queued_at = queued_at,
                            .limit = j->limit,
                            .restartable = is_restartable(p->r, i),
                            .served = p->runs[i].done,
                            .saves_every = p->runs[i].set_backs ? p->r->costs.every : 0,
                            .job = &p->runs[i]};
    struct learn_kind kind = replay_kind_of(j);
    if (p->r->policy == SCHED_POLICY_SHORTEST)
        job.limit = j->duration;
    else if (p->learn)
        (void)learn_expect(p->learn, &kind, &job.expected_p50, &job.expected_p90); /* or not */
    p->runs[i].waits = true;
    p->untold++;
    sched_enqueue(p->sched, &job);
    tally_waiting(p->tally, held_by(p->r, j->gpus), true);
}

/* What became of the promise and of the forecast of a job that starts now. */
static void replay_settle(struct player *p, struct run *run, usec_t now)
{
    if (run->promised && now > run->promised)
        tally_broken(p->tally);
    if (!run->told_at) {
        p->untold--;
        return;
    }
    usec_t waited = now - run->told_at;
    if (!run->told.p90) {
        tally_unforeseen(p->tally);
        return;
    }
    tally_forecast(p->tally, run->told.p50 - run->told_at, run->told.p90 - run->told_at, waited);
    if (!run->taught)
        forecast_error_add(p->errors, &run->told, run->told_at, waited);
}

/* Under perfect knowledge nothing costs anything: that is a bound. */
static usec_t restart_of(const struct player *p)
{
    return p->r->policy == SCHED_POLICY_SHORTEST ? 0 : p->r->costs.restart;
}

static usec_t save_of(const struct player *p)
{
    return p->r->policy == SCHED_POLICY_SHORTEST ? 0 : p->r->costs.save;
}

static void replay_start(struct player *p, size_t i, usec_t now)
{
    const struct replay_job *j = &p->r->jobs[i];
    struct run *run = &p->runs[i];
    int held = held_by(p->r, j->gpus);
    char id[ID_MAX];
    replay_settle(p, run, now);
    run->waits = false;
    run->started = now;
    run->generation++;
    usec_t from = now + (run->set_backs ? restart_of(p) : 0);
    replay_heap_add(p, (struct end){from + j->duration - run->done, i, run->generation, false});
    tally_waiting(p->tally, held, false);
    tally_running(p->tally, j->gpus, held, true);
    if (run->set_backs)
        tally_again(p->tally, j->gpus, restart_of(p), now - run->set_back_at);
    if (p->r->costs.every)
        sched_lease_saves(p->sched, id_of(i, id), from, p->r->costs.every);
}

static void replay_stop(struct player *p, size_t i, usec_t now)
{
    char id[ID_MAX];
    const struct replay_job *j = &p->r->jobs[i];
    sched_lease_end(p->sched, id_of(i, id), now);
    tally_running(p->tally, j->gpus, held_by(p->r, j->gpus), false);
}

/* Its checkpoint is complete: it goes back to the line, if its slots are wanted still. */
static void give_way(struct player *p, size_t i, usec_t now)
{
    char id[ID_MAX];
    struct run *run = &p->runs[i];
    const struct replay_job *j = &p->r->jobs[i];
    if (!sched_is_wanted_back(p->sched, id_of(i, id), now))
        return;
    usec_t lost = (run->set_backs ? restart_of(p) : 0) + save_of(p), ran = now - run->started;
    usec_t done = run->done + (ran > lost ? ran - lost : 0);
    replay_stop(p, i, now);
    run->done = done < j->duration ? done : j->duration - 1;
    run->set_back_at = now;
    run->set_backs++;
    run->generation++;
    run->told_at = 0;
    run->taught = false;
    tally_preempted(p->tally);
    tally_wasted(p->tally, j->gpus, save_of(p));
    replay_submit(p, i, now);
}

static void replay_end(struct player *p, const struct end *e)
{
    const struct replay_job *j = &p->r->jobs[e->job];
    const struct run *run = &p->runs[e->job];
    if (e->generation != run->generation)
        return;
    if (e->gives_way) {
        give_way(p, e->job, e->at);
        return;
    }
    replay_stop(p, e->job, e->at);
    tally_started(p->tally, j->gpus, e->at - j->submit - j->duration, j->duration);
    tally_set_backs(p->tally, run->set_backs);
    struct learn_kind kind = replay_kind_of(j);
    if (p->learn)
        learn_add(p->learn, &kind, j->duration);
}

/* What it has done is lost: it goes back to its place in the line. */
static void preempt(struct player *p, size_t i, usec_t now)
{
    replay_stop(p, i, now);
    p->runs[i].generation++;
    p->runs[i].told_at = 0;
    p->runs[i].taught = false;
    tally_preempted(p->tally);
    replay_submit(p, i, p->r->jobs[i].submit);
}

/* ---- a pass ---- */

static void replay_pass(struct player *p, usec_t now)
{
    struct sched_decision *d = &p->decision;
    while (sched_next(p->sched, now, d)) {
        size_t i = (size_t)((struct run *)d->job - p->runs);
        p->digest = replay_mix(p->digest, (uint64_t)d->verb);
        p->digest = replay_mix(p->digest, now);
        p->digest = replay_mix(p->digest, i);
        p->digest = mix_text(p->digest, d->verb == SCHED_START ? d->nodes : "");
        if (d->verb == SCHED_START)
            replay_start(p, i, now);
        else if (d->at_save)
            replay_heap_add(p, (struct end){d->at_save > now ? d->at_save : now, i,
                                            p->runs[i].generation, true});
        else
            preempt(p, i, now);
    }
}

static void keep_promise(struct player *p, usec_t now)
{
    void *job = NULL;
    usec_t at = 0;
    if (sched_promise(p->sched, "", now, &job, &at) && !((struct run *)job)->promised)
        ((struct run *)job)->promised = at;
}

static void replay_tell(struct player *p, usec_t now)
{
    size_t cost = 2 * (sched_queue_length(p->sched) + sched_lease_count(p->sched));
    if (!p->untold || p->credit < cost)
        return;
    p->credit -= cost;
    size_t n = forecast_run(sched_copy(p->sched), p->errors, now, REPLAY_MAX_ROWS, p->rows);
    for (size_t k = 0; k < n; k++) {
        struct run *run = p->rows[k].job;
        if (run->told_at) {
            run->taught =
                run->taught || forecast_error_late(p->errors, &run->told, run->told_at, now);
            continue;
        }
        run->told_at = now;
        run->told = p->rows[k];
        p->untold--;
    }
}

/* ---- the loop ---- */

static bool instant(struct player *p, usec_t *ret_now)
{
    bool more = p->next < p->r->n;
    if (!more && !p->n_ends)
        return false;
    usec_t now = more ? p->r->jobs[p->next].submit : p->ends[0].at;
    if (p->n_ends && p->ends[0].at < now)
        now = p->ends[0].at;
    *ret_now = now;
    return true;
}

static void play(struct player *p)
{
    usec_t now;
    while (instant(p, &now)) {
        size_t came = p->next;
        tally_advance(p->tally, now);
        while (p->n_ends && p->ends[0].at == now) {
            struct end e = replay_heap_take(p);
            replay_end(p, &e);
        }
        while (p->next < p->r->n && p->r->jobs[p->next].submit == now) {
            replay_submit(p, p->next, now);
            p->next++;
        }
        replay_pass(p, now);
        keep_promise(p, now);
        p->credit += REPLAY_LOOK_AHEAD * (p->next - came);
        if (p->r->forecasts && p->next > came)
            replay_tell(p, now);
        if (p->r->go_on && !p->r->go_on(p->next, p->r->arg))
            return;
    }
    for (size_t i = 0; i < p->r->n; i++)
        if (p->runs[i].waits)
            tally_never(p->tally);
}

static void add_nodes(struct player *p)
{
    int n = p->r->nodes;
    struct sched_node *nodes = xcalloc((size_t)n, sizeof(*nodes));
    char(*names)[ID_MAX] = xcalloc((size_t)n, sizeof(*names));
    for (int i = 0; i < n; i++) {
        text_printf_to(names[i], ID_MAX, "n%d", i);
        nodes[i] = (struct sched_node){.name = names[i],
                                       .gpus = p->r->gpus_per_node,
                                       .cpus = p->r->gpus_per_node,
                                       .usable = true};
    }
    sched_set_nodes(p->sched, nodes, (size_t)n);
    tally_capacity(p->tally, n * p->r->gpus_per_node);
    free(names);
    free(nodes);
}

uint64_t replay_run(const struct replay *r, struct tally *tally)
{
    static const unsigned char seed[16] = "a replay's maps"; /* nobody chooses keys here */
    struct sched_limits limits = {.policy = r->policy, .starve_after = r->starve_after};
    struct player *p = xcalloc(1, sizeof(*p));
    p->r = r;
    p->tally = tally;
    p->sched = sched_new(seed, &limits);
    p->learn = r->learner ? learn_new(seed) : NULL;
    p->errors = forecast_error_new();
    p->runs = xcalloc(r->n, sizeof(*p->runs));
    add_nodes(p);
    play(p);
    uint64_t digest = p->digest;
    sched_free(p->sched);
    learn_free(p->learn);
    forecast_error_free(p->errors);
    free(p->runs);
    free(p->ends);
    free(p);
    return digest;
}
