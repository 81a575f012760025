/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c - who holds what in Ray besides us; see foreign.h.
 *
 * Of actors and bundles one sum is kept for each pair of node and job, ours too: which job an id is
 * of may be told later than what it holds. A survey is two lists, taken as one or not at all. Ray
 * cuts long lists, dead actors counted, and says so: such a survey is of no time. */
#include "argusd/ground/foreign.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/map.h"
#include "base/str.h"

static const usec_t SURVEY_EVERY = 3 * USEC_SEC;

/* What one job has on one node. */
struct foreign_sum {
    char *node_id, *job_id, *ray_id; /* one of the two ids of the job is NULL */
    double gpus, cpus;
    bool is_detached; /* some of it outlives the job */
};

struct foreign {
    struct ray_client *ray;
    struct foreign_job *jobs;
    size_t n_jobs, n_live;
    struct map *by_ray_id, *by_job_id; /* of jobs */
    usec_t jobs_of, holders_of;
    struct map *sums, *coming; /* "node job" -> struct foreign_sum; coming: of a survey under way */
    struct ray_call *call;
    usec_t asked;    /* when the survey began */
    bool is_partial; /* so is the survey */
    bool wanted, closing;
};

static struct map *foreign_map_new(void)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    return map_new(seed);
}

static void foreign_sums_free(struct map *sums)
{
    struct foreign_sum *s;
    for (size_t pos = 0; sums && (s = map_next(sums, &pos, NULL));) {
        free(s->node_id);
        free(s->job_id);
        free(s->ray_id);
        free(s);
    }
    map_free(sums);
}

static void foreign_jobs_free(struct foreign *f)
{
    for (size_t i = 0; i < f->n_jobs; i++) {
        free(f->jobs[i].ray_id);
        free(f->jobs[i].job_id);
        free(f->jobs[i].node_id);
        free(f->jobs[i].ip);
    }
    free(f->jobs);
    map_free(f->by_ray_id);
    map_free(f->by_job_id);
}

struct foreign *foreign_new(struct ray_client *ray)
{
    struct foreign *f = xcalloc(1, sizeof(*f));
    f->ray = ray;
    f->by_ray_id = foreign_map_new();
    f->by_job_id = foreign_map_new();
    f->sums = foreign_map_new();
    return f;
}

void foreign_close(struct foreign *f)
{
    ray_call_free(f->call);
    f->call = NULL;
    f->closing = true;
}

void foreign_free(struct foreign *f)
{
    if (!f)
        return;
    foreign_jobs_free(f);
    foreign_sums_free(f->sums);
    foreign_sums_free(f->coming);
    free(f);
}

/* ---- the jobs ---- */

void foreign_take_jobs(struct foreign *f, struct foreign_job *v, size_t n, usec_t asked)
{
    foreign_jobs_free(f);
    f->jobs = v;
    f->n_jobs = n;
    f->n_live = 0;
    f->by_ray_id = foreign_map_new();
    f->by_job_id = foreign_map_new();
    f->jobs_of = asked;
    for (size_t i = 0; i < n; i++) {
        f->n_live += v[i].is_live;
        map_set(f->by_ray_id, v[i].ray_id, &v[i]);
        if (v[i].job_id)
            map_set(f->by_job_id, v[i].job_id, &v[i]);
    }
}

bool foreign_has_id(const struct foreign *f, const char *ray_id)
{
    const struct foreign_job *job = map_find(f->by_ray_id, ray_id);
    return job && job->is_submission;
}

size_t foreign_count_live(const struct foreign *f)
{
    return f->n_live;
}

usec_t foreign_jobs_of(const struct foreign *f)
{
    return f->jobs_of;
}

usec_t foreign_holders_of(const struct foreign *f)
{
    return f->holders_of;
}

/* ---- the survey ---- */

static struct foreign_sum *foreign_sum_of(struct foreign *f,
                                          const char *node_id,
                                          const char *job_id,
                                          const char *ray_id)
{
    _cleanup_(freep) char *key =
        xasprintf("%s %s%s", node_id, ray_id ? "=" : "", ray_id ? ray_id : job_id);
    struct foreign_sum *s = map_find(f->coming, key);
    if (s)
        return s;
    s = xcalloc(1, sizeof(*s));
    s->node_id = xstrdup(node_id);
    s->job_id = ray_id ? NULL : xstrdup(job_id);
    s->ray_id = xstrdup(ray_id);
    map_set(f->coming, key, s);
    return s;
}

static void foreign_add(struct foreign_sum *s, const struct ray_amounts *amounts, bool is_detached)
{
    s->gpus += ray_amounts_find(amounts, "GPU");
    s->cpus += ray_amounts_find(amounts, "CPU");
    s->is_detached |= is_detached;
}

/* Ray's own actor that runs an entrypoint is known by the submission's id. What an actor of a group
 * uses is in the group's bundles already. */
static void foreign_add_actor(struct foreign *f, const struct ray_actor *r)
{
    static const struct ray_amounts nothing = {0};
    bool runs_entrypoint = r->name && str_starts(r->name, RAY_SUPERVISOR);
    const char *ray_id = runs_entrypoint ? r->name + strlen(RAY_SUPERVISOR) : NULL;
    if (!r->node_id || (!ray_id && !r->job_id))
        return;
    foreign_add(foreign_sum_of(f, r->node_id, r->job_id, ray_id),
                r->group_id ? &nothing : &r->resources, r->is_detached && !runs_entrypoint);
}

static void foreign_add_group(struct foreign *f, const struct ray_group *g)
{
    for (size_t i = 0; g->job_id && i < g->n_bundles; i++)
        if (g->bundles[i].node_id)
            foreign_add(foreign_sum_of(f, g->bundles[i].node_id, g->job_id, NULL),
                        &g->bundles[i].resources, g->is_detached);
}

static void foreign_on_groups(const struct ray_groups *groups, const struct err *err, void *arg)
{
    struct foreign *f = arg;
    (void)err; /* the last survey stands, and foreign_holders_of() says of when it is */
    f->call = NULL;
    if (!groups)
        return;
    for (size_t i = 0; i < groups->n; i++)
        foreign_add_group(f, &groups->v[i]);
    foreign_sums_free(f->sums);
    f->sums = f->coming;
    f->coming = NULL;
    f->holders_of = f->is_partial || groups->is_partial ? 0 : f->asked;
}

static void foreign_on_actors(const struct ray_actors *actors, const struct err *err, void *arg)
{
    struct foreign *f = arg;
    (void)err; /* as above */
    f->call = NULL;
    if (!actors)
        return;
    f->is_partial = actors->is_partial;
    for (size_t i = 0; i < actors->n; i++)
        foreign_add_actor(f, &actors->v[i]);
    f->call = ray_list_groups(f->ray, NULL, foreign_on_groups, f);
}

void foreign_want(struct foreign *f, bool wanted)
{
    f->wanted = wanted;
}

bool foreign_is_wanted(const struct foreign *f)
{
    return f->wanted;
}

void foreign_turn(struct foreign *f, usec_t now)
{
    if (f->closing || f->call || (f->asked && now - f->asked < SURVEY_EVERY))
        return;
    if (f->wanted || f->n_live) {
        foreign_sums_free(f->coming);
        f->coming = foreign_map_new();
        f->asked = now;
        f->call = ray_list_actors(f->ray, NULL, foreign_on_actors, f);
    } else if (f->asked) { /* what it says grows old */
        foreign_sums_free(f->sums);
        f->sums = foreign_map_new();
        f->holders_of = f->asked = 0;
    }
}

/* ---- what they hold ---- */

/* at: of each job its place in v, counted from 1; 0: it has none. */
struct foreign_holds {
    struct foreign_hold *v;
    size_t n, *at;
};

static struct foreign_hold *foreign_hold_of(const struct foreign *f,
                                            struct foreign_holds *h,
                                            const struct foreign_job *job)
{
    size_t *at = &h->at[job - f->jobs];
    if (!*at) {
        h->v = xrealloc(h->v, h->n + 1, sizeof(*h->v));
        h->v[h->n] = (struct foreign_hold){.job = job};
        *at = ++h->n;
    }
    return &h->v[*at - 1];
}

/* Ray says of a submission on which node it runs, and of another driver at which address. */
static bool foreign_is_at(const struct foreign_job *job, const char *node_id, const char *ip)
{
    if (!job->is_live)
        return false;
    if (!node_id)
        return true;
    return job->node_id ? str_eq(job->node_id, node_id) : job->ip && str_eq(job->ip, ip);
}

static int foreign_most_first(const void *a, const void *b)
{
    const struct foreign_hold *x = a, *y = b;
    if (x->gpus < y->gpus || x->gpus > y->gpus)
        return x->gpus < y->gpus ? 1 : -1;
    if (x->cpus < y->cpus || x->cpus > y->cpus)
        return x->cpus < y->cpus ? 1 : -1;
    return strcmp(x->job->ray_id, y->job->ray_id);
}

size_t foreign_on(const struct foreign *f,
                  const char *node_id,
                  const char *ip,
                  struct foreign_hold **ret)
{
    _cleanup_(freep) size_t *at = xcalloc(f->n_jobs + 1, sizeof(*at));
    struct foreign_holds h = {.at = at};
    const struct foreign_sum *s;
    for (size_t i = 0; i < f->n_jobs; i++)
        if (foreign_is_at(&f->jobs[i], node_id, ip))
            (void)foreign_hold_of(f, &h, &f->jobs[i]); /* with what it holds, below */
    for (size_t pos = 0; (s = map_next(f->sums, &pos, NULL));) {
        const struct foreign_job *job =
            s->ray_id ? map_find(f->by_ray_id, s->ray_id) : map_find(f->by_job_id, s->job_id);
        bool is_there = !node_id || !strcmp(s->node_id, node_id);
        if (!job || !is_there || !(job->is_live || s->is_detached))
            continue;
        struct foreign_hold *hold = foreign_hold_of(f, &h, job);
        hold->gpus += s->gpus;
        hold->cpus += s->cpus;
    }
    xsort(h.v, h.n, sizeof(*h.v), foreign_most_first);
    *ret = h.v;
    return h.n;
}
