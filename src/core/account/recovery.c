/* SPDX-License-Identifier: Apache-2.0 */
/* recovery.c - see recovery.h.
 *
 * One walk over the attempts puts each moment of an attempt in its order first, so that what was
 * read from several clocks cannot make a part negative, and then adds the differences up. What an
 * interruption cost is what lies between the last step that counted before it and the first step
 * behind it. */
#include "core/account/recovery.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"

static double recovery_seconds(usec_t t)
{
    return (double)t / (double)USEC_SEC;
}

/* ---- one attempt ---- */

/* The moments of an attempt, none before the one above it. */
struct recovery_span {
    usec_t planned, first, kept, last, fault, noticed, ended;
    usec_t next; /* the next attempt has its slots; `ended` where none follows */
    bool told;   /* of a step */
    bool broken; /* it ended by an interruption */
};

static usec_t between(usec_t at, usec_t low, usec_t high)
{
    return at < low ? low : at > high ? high : at;
}

static bool is_interruption(enum recovery_end end)
{
    return end >= RECOVERY_PREEMPTED;
}

/* When attempt i ended, not before `from`. */
static usec_t recovery_end_of(const struct recovery_job *job, size_t i, usec_t from)
{
    usec_t at = job->v[i].ended;
    if (!at)
        at = i + 1 < job->n ? job->v[i + 1].planned : job->now;
    return at > from ? at : from;
}

/* before: the end of the attempt before it. */
static void recovery_order(const struct recovery_job *job,
                           size_t i,
                           usec_t before,
                           struct recovery_span *ret)
{
    const struct recovery_attempt *a = &job->v[i];
    struct recovery_span s = {.told = a->first != 0, .broken = is_interruption(a->end)};
    usec_t next = i + 1 < job->n ? job->v[i + 1].planned : job->waits ? job->now : 0;
    s.planned = a->planned > before ? a->planned : before;
    s.ended = recovery_end_of(job, i, s.planned);
    s.fault = s.noticed = s.ended;
    if (a->end == RECOVERY_FAILED) {
        usec_t noticed = a->noticed ? a->noticed : s.ended;
        s.fault = between(a->fault ? a->fault : noticed, s.planned, s.ended);
        s.noticed = between(noticed, s.fault, s.ended);
    }
    s.first = s.told ? between(a->first, s.planned, s.fault) : s.fault;
    s.kept = between(a->kept, s.first, s.fault);
    s.last = s.told ? between(a->last, s.kept, s.fault) : s.fault;
    s.next = next > s.ended ? next : s.ended;
    *ret = s;
}

/* told: the job has told of steps, in this attempt or another. */
static void recovery_cut(const struct recovery_attempt *a,
                         const struct recovery_span *s,
                         bool told,
                         usec_t part[static RECOVERY_PARTS])
{
    usec_t counted = s->kept - s->first, good = 0;
    if (a->good_s > 0)
        good = a->good_s < recovery_seconds(counted) ? (usec_t)(a->good_s * (double)USEC_SEC)
                                                     : counted;
    memset(part, 0, RECOVERY_PARTS * sizeof(*part));
    part[told ? RECOVERY_START : RECOVERY_OTHER] += s->first - s->planned;
    part[RECOVERY_PRODUCTIVE] = good;
    part[RECOVERY_OTHER] += counted - good;
    part[RECOVERY_REDO] = s->last - s->kept;
    part[s->broken ? RECOVERY_REDO : RECOVERY_OTHER] += s->fault - s->last;
    part[RECOVERY_DETECT] = s->noticed - s->fault;
    part[RECOVERY_DIAGNOSE] = s->ended - s->noticed;
    part[RECOVERY_QUEUE] = s->next - s->ended;
}

/* ---- one job ---- */

static bool recovery_is_told(const struct recovery_job *job)
{
    for (size_t i = 0; i < job->n; i++)
        if (job->v[i].first)
            return true;
    return false;
}

/* From the fault of attempt i to the first new step behind it, in seconds; NaN: there is none. */
static double recovery_repair_of(const struct recovery_job *job, size_t i, usec_t fault)
{
    for (size_t k = i + 1; k < job->n; k++)
        if (job->v[k].fresh)
            return job->v[k].fresh > fault ? recovery_seconds(job->v[k].fresh - fault) : 0;
    return NAN;
}

/* What one attempt came to. */
struct recovery_told {
    const struct recovery_attempt *attempt;
    usec_t part[RECOVERY_PARTS];
    usec_t held;
    double repair_s; /* NaN: it is no failure, or it is not repaired */
};
typedef void (*recovery_f)(const struct recovery_told *told, void *arg);

static void recovery_walk(const struct recovery_job *job, recovery_f each, void *arg)
{
    bool told = recovery_is_told(job);
    usec_t before = 0;
    for (size_t i = 0; i < job->n; i++) {
        struct recovery_span s;
        struct recovery_told t = {.attempt = &job->v[i], .repair_s = NAN};
        recovery_order(job, i, before, &s);
        recovery_cut(t.attempt, &s, told, t.part);
        t.held = s.ended - s.planned;
        if (t.attempt->end == RECOVERY_FAILED)
            t.repair_s = recovery_repair_of(job, i, s.fault);
        each(&t, arg);
        before = s.ended;
    }
}

static void recovery_add_attempt(const struct recovery_told *t, void *arg)
{
    struct recovery *r = arg;
    for (int p = 0; p < RECOVERY_PARTS; p++)
        r->part[p] += t->part[p];
    r->held += t->held;
    r->waited += t->part[RECOVERY_QUEUE];
    r->failures += t->attempt->end == RECOVERY_FAILED;
    r->interruptions += is_interruption(t->attempt->end);
    if (isfinite(t->repair_s)) {
        r->repaired++;
        r->repair_s += t->repair_s;
    }
}

static usec_t recovery_first_wait(const struct recovery_job *job)
{
    usec_t until = job->n ? job->v[0].planned : job->waits ? job->now : 0;
    return job->queued && until > job->queued ? until - job->queued : 0;
}

void recovery_judge(const struct recovery_job *job, struct recovery *ret)
{
    struct recovery r = {.first_wait = recovery_first_wait(job),
                         .told = recovery_is_told(job),
                         .ettr = NAN,
                         .mttr_s = NAN};
    recovery_walk(job, recovery_add_attempt, &r);
    if (r.told && r.held + r.waited > 0)
        r.ettr = (double)r.part[RECOVERY_PRODUCTIVE] / (double)(r.held + r.waited);
    if (r.repaired)
        r.mttr_s = r.repair_s / r.repaired;
    *ret = r;
}

/* ---- many jobs ---- */

struct recovery_names {
    struct map *by_name;
    struct recovery_sum **v;
    size_t n, left_out;
};

struct recovery_book {
    struct recovery_names by[RECOVERY_BYS];
    struct recovery_sum total;
    size_t jobs;
};

struct recovery_book *recovery_book_new(const unsigned char seed[static 16])
{
    struct recovery_book *b = xcalloc(1, sizeof(*b));
    for (int i = 0; i < RECOVERY_BYS; i++)
        b->by[i].by_name = map_new(seed);
    return b;
}

void recovery_book_free(struct recovery_book *b)
{
    for (int i = 0; b && i < RECOVERY_BYS; i++) {
        for (size_t k = 0; k < b->by[i].n; k++) {
            free(b->by[i].v[k]->name);
            free(b->by[i].v[k]);
        }
        free(b->by[i].v);
        map_free(b->by[i].by_name);
    }
    free(b);
}

/* NULL: there is no room for another name. */
static struct recovery_sum *recovery_place(struct recovery_names *all, const char *name)
{
    struct recovery_sum *s = map_find(all->by_name, name);
    if (s)
        return s;
    if (all->n == RECOVERY_NAMES_MAX) {
        all->left_out++;
        return NULL;
    }
    s = xcalloc(1, sizeof(*s));
    s->name = xstrdup(name);
    all->v = xrealloc(all->v, all->n + 1, sizeof(struct recovery_sum *));
    all->v[all->n++] = s;
    map_set(all->by_name, name, s);
    return s;
}

/* An interruption whose cost is not complete: the start behind it is still to come. */
struct recovery_open {
    struct recovery_book *book;
    const struct recovery_job *job;
    struct recovery_sum *of[2]; /* its class and its node; NULL: none */
};

static const char *recovery_class_of(const struct recovery_attempt *a)
{
    return a->end == RECOVERY_PREEMPTED     ? "preempted"
           : a->end == RECOVERY_NOT_STARTED ? "not_started"
                                            : str_or(a->class, "unknown");
}

static double recovery_gpu_s(const struct recovery_job *job, usec_t t)
{
    return recovery_seconds(t) * job->gpus;
}

static void recovery_count(struct recovery_sum *s, const struct recovery_open *o)
{
    s->jobs += s->seen != o->book->jobs;
    s->seen = o->book->jobs;
}

static void recovery_charge(struct recovery_sum *s,
                            const struct recovery_told *t,
                            const struct recovery_open *o)
{
    static const enum recovery_part parts[] = {RECOVERY_DETECT, RECOVERY_DIAGNOSE, RECOVERY_QUEUE,
                                               RECOVERY_REDO};
    recovery_count(s, o);
    s->interruptions++;
    s->failures += t->attempt->end == RECOVERY_FAILED;
    for (size_t i = 0; i < array_len(parts); i++)
        s->part_s[parts[i]] += recovery_gpu_s(o->job, t->part[parts[i]]);
    if (isfinite(t->repair_s)) {
        s->repaired++;
        s->repair_s += t->repair_s;
    }
}

static void recovery_charge_attempt(const struct recovery_told *t, void *arg)
{
    struct recovery_open *o = arg;
    const struct recovery_attempt *a = t->attempt;
    for (size_t i = 0; i < array_len(o->of); i++) {
        if (o->of[i])
            o->of[i]->part_s[RECOVERY_START] += recovery_gpu_s(o->job, t->part[RECOVERY_START]);
        o->of[i] = NULL;
    }
    if (!is_interruption(a->end))
        return;
    o->of[0] = recovery_place(&o->book->by[RECOVERY_BY_CLASS], recovery_class_of(a));
    if (a->node && *a->node)
        o->of[1] = recovery_place(&o->book->by[RECOVERY_BY_NODE], a->node);
    for (size_t i = 0; i < array_len(o->of); i++)
        if (o->of[i])
            recovery_charge(o->of[i], t, o);
}

static void recovery_add_job(struct recovery_sum *s,
                             const struct recovery *r,
                             const struct recovery_open *o)
{
    recovery_count(s, o);
    for (int p = 0; p < RECOVERY_PARTS; p++)
        s->part_s[p] += recovery_gpu_s(o->job, r->part[p]);
    s->wait_s += recovery_gpu_s(o->job, r->first_wait);
    s->failures += (size_t)r->failures;
    s->interruptions += (size_t)r->interruptions;
    s->repaired += (size_t)r->repaired;
    s->repair_s += r->repair_s;
}

void recovery_book_add(struct recovery_book *b, const struct recovery_job *job)
{
    struct recovery r;
    struct recovery_open open = {.book = b, .job = job};
    if (!job->n && !job->waits)
        return;
    b->jobs++;
    recovery_judge(job, &r);
    recovery_walk(job, recovery_charge_attempt, &open);
    if (r.told)
        recovery_add_job(&b->total, &r, &open);
    struct recovery_sum *s = job->user ? recovery_place(&b->by[RECOVERY_BY_USER], job->user) : NULL;
    if (s)
        recovery_add_job(s, &r, &open);
}

const struct recovery_sum *recovery_book_total(const struct recovery_book *b)
{
    return &b->total;
}

double recovery_cost(const struct recovery_sum *s)
{
    double sum = 0;
    for (int p = RECOVERY_DETECT; p <= RECOVERY_REDO; p++)
        sum += s->part_s[p];
    return sum;
}

static int recovery_costliest_first(const void *a, const void *b)
{
    const struct recovery_sum *p = *(struct recovery_sum *const *)a,
                              *q = *(struct recovery_sum *const *)b;
    double x = recovery_cost(p), y = recovery_cost(q);
    return x < y ? 1 : x > y ? -1 : strcmp(p->name, q->name);
}

const struct recovery_sum *const *recovery_book_list(struct recovery_book *b,
                                                     enum recovery_by by,
                                                     size_t *ret_n)
{
    struct recovery_names *all = &b->by[by];
    xsort(all->v, all->n, sizeof(struct recovery_sum *), recovery_costliest_first);
    *ret_n = all->n;
    return (const struct recovery_sum *const *)all->v;
}

size_t recovery_book_left_out(const struct recovery_book *b, enum recovery_by by)
{
    return b->by[by].left_out;
}
