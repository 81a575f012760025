/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.c - see sampler.h. A job whose samples may have news waits in its user's line for one of
 * a few passes. What a pass leaves waits at the end of that line again, so however much one user's
 * jobs dump, other users' are brought up meanwhile. An entry is with its worker while its place
 * goes on. */
#include "argusd/samples/sampler.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "argusd/ground/jobspec.h"
#include "argusd/ground/userlines.h"
#include "argusd/ground/work.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "fsroot/samples/sampleindex.h"

enum { SAMPLER_TICK_MS = 3000, SAMPLER_AT_ONCE = 2, SAMPLER_OF_USER_MAX = 1, WANTED_MAX = 100 };
static const uint64_t PASS_BYTES = 256ULL << 20; /* of dumps, or one that is larger */
static const usec_t SWEEP_EVERY = USEC_HOUR;
static const int64_t UNUSED_SECONDS = 31 * 86400;

struct sampler_entry {
    struct sampler_entry *next;
    struct sampler *s;
    char *job, *user, *root, *path;
    struct userlines_place place;
    bool fails;    /* and that was told */
    unsigned told; /* enum sampleindex_limits that were */

    /* Results. */
    struct sampleindex_update u;
    struct err err;
    int result;
};

struct sampler {
    struct sampler_parts p;
    uv_timer_t timer;
    struct map *by_id;
    struct sampler_entry *first;
    struct userlines lines;
    usec_t swept_at;
    atomic_bool closing; /* passes end between two dumps */
    bool is_sweeping;
};

struct sampler_sweep {
    struct sampler *s;
    char *dir;
    int64_t since; /* seconds */
};

static char *sampler_dir(const struct settings *settings)
{
    return xasprintf("%s/samples", settings->state_dir);
}

char *sampler_path(const struct settings *settings, const char *user, const char *job)
{
    _cleanup_(freep) char *dir = sampler_dir(settings);
    return xasprintf("%s/%s/%s", dir, user, job);
}

/* ---- entries ---- */

static void sampler_entry_free(struct sampler_entry *e)
{
    free(e->job);
    free(e->user);
    free(e->root);
    free(e->path);
    free(e);
}

static struct sampler_entry *sampler_entry(struct sampler *s, const char *job, const char *user)
{
    struct sampler_entry *e = map_find(s->by_id, job);
    if (e)
        return e;
    e = xcalloc(1, sizeof(*e));
    *e = (struct sampler_entry){.next = s->first,
                                .s = s,
                                .job = xstrdup(job),
                                .user = xstrdup(user),
                                .root = xstrdup(s->p.settings->shared_root),
                                .path = sampler_path(s->p.settings, user, job)};
    s->first = e;
    (void)map_set(s->by_id, job, e); /* there was none */
    return e;
}

static void sampler_forget(struct sampler *s)
{
    for (struct sampler_entry **p = &s->first; *p;) {
        struct sampler_entry *e = *p;
        if (e->place.line || jobs_find_any(s->p.jobs, e->job)) {
            p = &e->next;
            continue;
        }
        *p = e->next;
        (void)map_remove(s->by_id, e->job); /* it was there */
        sampler_entry_free(e);
    }
}

static void sampler_join(struct sampler_entry *e)
{
    if (!e->place.line)
        userlines_join(&e->s->lines, &e->place, e->user);
}

void sampler_want(struct sampler *s, const char *job, const char *user)
{
    size_t waiting = 0;
    for (const struct sampler_entry *e = s->first; e; e = e->next)
        waiting += e->place.line && str_eq(e->user, user);
    if (waiting < WANTED_MAX && !s->closing)
        sampler_join(sampler_entry(s, job, user));
}

/* ---- a pass ---- */

static void sampler_start_waiting(struct sampler *s);

static void sampler_run(void *arg)
{
    struct sampler_entry *e = arg;
    e->u = (struct sampleindex_update){.root = e->root,
                                       .job = e->job,
                                       .path = e->path,
                                       .budget = PASS_BYTES,
                                       .stop = &e->s->closing};
    e->err = (struct err){0};
    e->result = sampleindex_run_update(&e->u, &e->err);
}

/* Each limit of a job once. */
static void sampler_tell(struct sampler_entry *e)
{
    static const char *const words[] = {
        "its index is as large as one may be: of its older steps no samples are found",
        "the indexes of this user's jobs are as large as they may be together: new steps are not "
        "indexed",
        "the file system of state_dir is nearly full: samples are not indexed",
        "dumps that have more than one name are not indexed",
    };
    _Static_assert(1 << array_len(words) == SAMPLEINDEX_LIMITS_END, "each limit has its words");
    if (e->result < 0 && !e->fails)
        log_warn("samples", "%s job=%s", e->err.text, e->job);
    e->fails = e->result < 0;
    for (size_t i = 0; i < array_len(words); i++)
        if (e->u.limits & ~e->told & 1u << i)
            log_warn("samples", "%s job=%s user=%s", words[i], e->job, e->user);
    e->told |= e->u.limits;
}

static void sampler_done(void *arg)
{
    struct sampler_entry *e = arg;
    struct sampler *s = e->s;
    userlines_leave(&s->lines, &e->place);
    if (s->closing)
        return;
    sampler_tell(e);
    if (e->result == 0 && e->u.pending && e->u.read)
        sampler_join(e);
    sampler_start_waiting(s);
}

static void sampler_start_waiting(struct sampler *s)
{
    struct userlines_place *next;
    while (!s->closing && !cluster_root_hangs(s->p.cluster) &&
           (next = userlines_next(&s->lines, SAMPLER_AT_ONCE))) {
        struct sampler_entry *e = container_of(next, struct sampler_entry, place);
        work_start(s->p.loop, sampler_run, sampler_done, e);
    }
}

/* ---- when ---- */

static bool sampler_has_samples(const struct sampler *s, const struct job *job)
{
    const struct spec *spec = job_is_in_ray(job) ? jobspec_of(s->p.settings, job) : NULL;
    return spec && spec->samples && spec->workload <= WORKLOAD_GRPO;
}

static void sampler_sweep_run(void *arg)
{
    const struct sampler_sweep *w = arg;
    sampleindex_sweep(w->dir, w->since);
}

static void sampler_sweep_done(void *arg)
{
    struct sampler_sweep *w = arg;
    w->s->is_sweeping = false;
    free(w->dir);
    free(w);
}

static void sampler_start_sweep(struct sampler *s)
{
    usec_t now = clock_mono();
    if (s->is_sweeping || (s->swept_at && now - s->swept_at <= SWEEP_EVERY))
        return;
    struct sampler_sweep *w = xcalloc(1, sizeof(*w));
    w->s = s;
    w->dir = sampler_dir(s->p.settings);
    w->since = (int64_t)(clock_wall() / USEC_SEC) - UNUSED_SECONDS;
    s->swept_at = now;
    s->is_sweeping = true;
    work_start(s->p.loop, sampler_sweep_run, sampler_sweep_done, w);
}

static void sampler_on_tick(uv_timer_t *t)
{
    struct sampler *s = container_of(t, struct sampler, timer);
    const struct live *l;
    for (size_t pos = 0; (l = jobs_next_placed(s->p.jobs, &pos));)
        if (sampler_has_samples(s, l->job))
            sampler_join(sampler_entry(s, l->job->id, l->job->user));
    sampler_start_waiting(s);
    sampler_start_sweep(s);
    sampler_forget(s);
}

/* ---- life ---- */

struct sampler *sampler_new(const struct sampler_parts *parts)
{
    unsigned char seed[16];
    struct sampler *s = xcalloc(1, sizeof(*s));
    random_bytes(seed, sizeof(seed));
    s->p = *parts;
    s->by_id = map_new(seed);
    s->lines.most_of_one = SAMPLER_OF_USER_MAX;
    atomic_init(&s->closing, false);
    (void)uv_timer_init(parts->loop, &s->timer); /* never fails */
    return s;
}

void sampler_start(struct sampler *s)
{
    (void)uv_timer_start(&s->timer, sampler_on_tick, SAMPLER_TICK_MS,
                         SAMPLER_TICK_MS); /* cannot fail */
}

void sampler_close(struct sampler *s)
{
    if (!s || s->closing)
        return;
    s->closing = true;
    uv_close((uv_handle_t *)&s->timer, NULL);
}

void sampler_free(struct sampler *s)
{
    if (!s)
        return;
    for (struct sampler_entry *e = s->first, *next; e; e = next) {
        next = e->next;
        sampler_entry_free(e);
    }
    userlines_release(&s->lines);
    map_free(s->by_id);
    free(s);
}
