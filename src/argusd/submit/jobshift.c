/* SPDX-License-Identifier: Apache-2.0 */
/* jobshift.c - see jobshift.h. The worker knows the other jobs by their ids: what their pointers
 * point at may be gone by then, and is compared alone. */
#include "argusd/submit/jobshift.h"

#include <stdlib.h>

#include "argusd/kit/saying.h"
#include "base/str.h"

enum { JOBSHIFT_MAX = 1000 };
static const usec_t SAME_WITHIN = USEC_MIN;

struct jobshift_beside {
    char *id;
    void *job;
    usec_t before, after; /* the scheduler's clock */
};

#define OTHER(key, ftype, member, ...) FIELD_AT(jobshift_other, key, ftype, member, __VA_ARGS__)
static const struct field jobshift_other_rows[] = {
    OTHER("job", FIELD_STR, job, .doc = "null: one that you may not see"),
    OTHER("user", FIELD_STR, user),
    OTHER("before", FIELD_TIME, before),
    OTHER("after", FIELD_TIME, after),
};
#undef OTHER
const struct field_table jobshift_other_table =
    FIELD_TABLE(NULL, jobshift_other_rows, jobshift_other);

void jobshift_begin(struct jobshift *w, const struct sched *s, const char *id)
{
    w->id = xstrdup(id);
    w->as_is = sched_copy(s);
}

void jobshift_release(struct jobshift *w)
{
    sched_free(w->as_is);
    for (size_t i = 0; i < w->n; i++)
        free(w->v[i].id);
    free(w->v);
    free(w->id);
    *w = (struct jobshift){0};
}

static void jobshift_set(struct jobshift *w,
                         const struct forecast_row *rows,
                         size_t n,
                         bool is_after)
{
    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < n; k++)
            if (rows[k].job == w->v[i].job)
                *(is_after ? &w->v[i].after : &w->v[i].before) = rows[k].p50;
}

void jobshift_take(struct jobshift *w, const struct forecast_row *rows, size_t n)
{
    jobshift_set(w, rows, n, true);
}

void jobshift_run(struct jobshift *w, const struct forecast_error *e, usec_t now)
{
    struct sched_lease_view seen;
    void *own = NULL;
    if (!w->as_is)
        return;
    struct forecast_row *rows = xcalloc(JOBSHIFT_MAX, sizeof(*rows));
    w->v = xcalloc(JOBSHIFT_MAX, sizeof(*w->v));
    for (size_t pos = 0; w->n < JOBSHIFT_MAX && sched_waiting_next(w->as_is, &pos, &seen);)
        if (str_eq(seen.id, w->id))
            own = seen.job;
        else
            w->v[w->n++] = (struct jobshift_beside){.id = xstrdup(seen.id), .job = seen.job};
    size_t n = forecast_run(w->as_is, e, now, JOBSHIFT_MAX, rows);
    w->as_is = NULL; /* taken */
    for (size_t i = 0; own && i < n; i++)
        if (rows[i].job == own) {
            w->was50 = rows[i].p50;
            w->was90 = rows[i].p90;
        }
    jobshift_set(w, rows, n, false);
    free(rows);
}

struct field_list jobshift_others(const struct jobshift *w, const struct api_eyes *eyes)
{
    struct jobshift_other *v = xcalloc(w->n + 1, sizeof(*v));
    const struct jobs *js = eyes->a->jobs;
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct jobshift_beside *b = &w->v[i];
        usec_t apart = b->after > b->before ? b->after - b->before : b->before - b->after;
        struct api_eyes who = *eyes;
        const struct live *l = jobs_find_id(eyes->a->jobs, b->id);
        if (!l || apart < SAME_WITHIN)
            continue;
        bool sees = api_sees_job(b->id, &who);
        v[n++] = (struct jobshift_other){.job = sees ? l->job->id : NULL,
                                         .user = sees ? l->job->user : NULL,
                                         .before = b->before ? jobs_to_wall(js, b->before) : 0,
                                         .after = b->after ? jobs_to_wall(js, b->after) : 0};
    }
    return (struct field_list){.v = v, .n = n};
}
