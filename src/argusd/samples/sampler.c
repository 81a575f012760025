/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.c - see sampler.h. A round is the list of jobs whose samples may have news; one worker
 * has it from its start to its end, and the next one begins a few seconds later. */
#include "argusd/samples/sampler.h"

#include <stdlib.h>

#include "argusd/ground/jobspec.h"
#include "argusd/ground/work.h"
#include "base/log.h"
#include "base/str.h"
#include "fsroot/samples/sampleindex.h"

enum { SAMPLER_TICK_MS = 3000, SAMPLER_JOBS_MAX = 1000, WANTED_MAX = 100 };
static const uint64_t JOB_BYTES = 1ULL << 30; /* of one job's dumps in a round */
static const usec_t SWEEP_EVERY = USEC_HOUR;
static const int64_t UNUSED_SECONDS = 31 * 86400;

struct sampler {
    struct sampler_parts p;
    uv_timer_t timer;
    struct strv wanted; /* by who looks at them */
    char *failed;       /* what was told last, so that it is told once */
    usec_t swept_at;
    bool busy, closing;
};

struct sampler_round {
    struct sampler *s;
    char *root, *dir;
    struct strv jobs, more; /* more: that are not at their end yet */
    bool sweeps;
    int64_t now; /* seconds */
    struct err err;
    char *failed; /* the job of err */
};

static char *sampler_dir(const struct settings *settings)
{
    return xasprintf("%s/samples", settings->state_dir);
}

char *sampler_path(const struct settings *settings, const char *job)
{
    _cleanup_(freep) char *dir = sampler_dir(settings);
    return xasprintf("%s/%s", dir, job);
}

void sampler_want(struct sampler *s, const char *job)
{
    if (s->wanted.n < WANTED_MAX && !strv_has(&s->wanted, job))
        strv_add(&s->wanted, job);
}

/* ---- a round ---- */

static void sampler_run(void *arg)
{
    struct sampler_round *r = arg;
    if (r->sweeps)
        sampleindex_sweep(r->dir, r->now - UNUSED_SECONDS);
    for (size_t i = 0; i < r->jobs.n; i++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", r->dir, r->jobs.v[i]);
        struct sampleindex_update u = {
            .root = r->root, .job = r->jobs.v[i], .path = path, .budget = JOB_BYTES};
        struct err err = {0};
        if (sampleindex_run_update(&u, &err) < 0) {
            r->err = err;
            set_str(&r->failed, u.job);
        } else if (u.pending && u.read) {
            strv_add(&r->more, u.job);
        }
    }
}

static void sampler_done(void *arg)
{
    struct sampler_round *r = arg;
    struct sampler *s = r->s;
    s->busy = false;
    if (r->failed && !str_eq(r->failed, s->failed))
        log_warn("samples", "%s job=%s", r->err.text, r->failed);
    set_str(&s->failed, r->failed);
    for (size_t i = 0; i < r->more.n && !s->closing; i++)
        sampler_want(s, r->more.v[i]);
    strv_release(&r->jobs);
    strv_release(&r->more);
    free(r->failed);
    free(r->root);
    free(r->dir);
    free(r);
}

static bool sampler_has_samples(const struct sampler *s, const struct job *job)
{
    const struct spec *spec = job_is_in_ray(job) ? jobspec_of(s->p.settings, job) : NULL;
    return spec && spec->samples && spec->workload <= WORKLOAD_GRPO;
}

/* The jobs of a round: those that somebody looks at, and those that run. */
static struct strv sampler_jobs(struct sampler *s)
{
    struct strv jobs = s->wanted;
    const struct live *l;
    s->wanted = (struct strv){0};
    for (size_t pos = 0; jobs.n < SAMPLER_JOBS_MAX && (l = jobs_next_placed(s->p.jobs, &pos));)
        if (sampler_has_samples(s, l->job) && !strv_has(&jobs, l->job->id))
            strv_add(&jobs, l->job->id);
    return jobs;
}

static void sampler_on_tick(uv_timer_t *t)
{
    struct sampler *s = container_of(t, struct sampler, timer);
    usec_t now = clock_mono();
    if (s->busy || cluster_root_hangs(s->p.cluster))
        return;
    struct strv jobs = sampler_jobs(s);
    bool sweeps = !s->swept_at || now - s->swept_at > SWEEP_EVERY;
    if (!jobs.n && !sweeps)
        return;
    struct sampler_round *r = xcalloc(1, sizeof(*r));
    *r = (struct sampler_round){.s = s,
                                .root = xstrdup(s->p.settings->shared_root),
                                .dir = sampler_dir(s->p.settings),
                                .jobs = jobs,
                                .sweeps = sweeps,
                                .now = (int64_t)(clock_wall() / USEC_SEC)};
    s->swept_at = sweeps ? now : s->swept_at;
    s->busy = true;
    work_start(s->p.loop, sampler_run, sampler_done, r);
}

/* ---- life ---- */

struct sampler *sampler_new(const struct sampler_parts *parts)
{
    struct sampler *s = xcalloc(1, sizeof(*s));
    s->p = *parts;
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
    strv_release(&s->wanted);
    free(s->failed);
    free(s);
}
