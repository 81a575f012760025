/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.c - see lanes.h.
 *
 * A job remembers its lane, so that a page of thousands of jobs walks each list once; a free lane
 * is found by a walk, once in the life of a job. */
#include "argusd/jobs/lanes.h"

#include <stdlib.h>

#include "argusd/people/people_rules.h"
#include "base/text.h"

struct lane {
    const struct live *l; /* NULL: free */
    bool has_steps;       /* the job has told of some, and the two below are known */
    double useful_s, ratio;
};

struct lanes {
    struct lane *v;
    size_t n, taken;                /* lanes there were at once, so far; those that have a job */
    double ended_useful_s, ended_s; /* of jobs that are over: of these, and held by them */
};

/* What a job keeps. */
struct lane_place {
    size_t number; /* from 1; 0: it has none */
};

struct lanes *lanes_new(void)
{
    return xcalloc(1, sizeof(struct lanes));
}

void lanes_free(struct lanes *ls)
{
    if (!ls)
        return;
    free(ls->v);
    free(ls);
}

/* NULL: it has none. */
static struct lane *lanes_find(const struct lanes *ls, const struct live *l)
{
    const struct lane_place *place = live_kept(l, LIVE_LANE);
    struct lane *lane = place && place->number ? &ls->v[place->number - 1] : NULL;
    return lane && lane->l == l ? lane : NULL; /* it may have given it back */
}

/* NULL: all are taken. */
static struct lane *lanes_find_free(struct lanes *ls)
{
    for (size_t i = 0; ls->taken < ls->n && i < ls->n; i++)
        if (!ls->v[i].l)
            return &ls->v[i];
    if (ls->n == LANES_MAX)
        return NULL;
    ls->v = xrealloc(ls->v, ls->n + 1, sizeof(*ls->v));
    return &ls->v[ls->n++];
}

bool lanes_join(struct lanes *ls, struct live *l)
{
    if (lanes_find(ls, l))
        return true;
    struct lane *lane = lanes_find_free(ls);
    if (!lane)
        return false;
    struct lane_place *place = live_keep(l, LIVE_LANE, sizeof(*place));
    place->number = (size_t)(lane - ls->v) + 1;
    *lane = (struct lane){.l = l};
    ls->taken++;
    return true;
}

void lanes_set(struct lanes *ls, struct live *l, double useful_s, usec_t now)
{
    double held_s = (double)job_held(l->job, now) / (double)USEC_SEC;
    if (held_s <= 0 || !lanes_join(ls, l))
        return;
    struct lane *lane = lanes_find(ls, l);
    lane->has_steps = true;
    lane->useful_s = useful_s;
    lane->ratio = useful_s < held_s ? useful_s / held_s : 1;
}

void lanes_end(struct lanes *ls, const struct live *l, usec_t now)
{
    struct lane *lane = lanes_find(ls, l);
    if (!lane)
        return;
    if (lane->has_steps) {
        ls->ended_useful_s += lane->useful_s;
        ls->ended_s += (double)job_held(l->job, now) / (double)USEC_SEC;
    }
    *lane = (struct lane){0};
    ls->taken--;
}

const struct live *lanes_next(const struct lanes *ls, size_t *pos)
{
    while (*pos < ls->n) {
        const struct live *l = ls->v[(*pos)++].l;
        if (l)
            return l;
    }
    return NULL;
}

static bool lane_may_be_seen(const struct access_who *who, const struct job *j)
{
    const struct access_thing thing = people_job_thing(j);
    return access_check(who, ACCESS_JOB_SEE, "see", &thing, NULL) == 0;
}

void lanes_put(const struct lanes *ls, const struct access_who *who, struct expo *e)
{
    char number[24];
    const struct live *l;
    expo_family(e, EXPO_GAUGE, "job_goodput_ratio",
                "Share of its time that a live job spent in steps that counted; the lane is in "
                "job_lane_info.");
    for (size_t pos = 0; lanes_next(ls, &pos);) {
        const struct lane *lane = &ls->v[pos - 1];
        text_printf(number, "%zu", pos);
        if (lane->has_steps)
            EXPO_PUT(e, lane->ratio, {"lane", number});
    }
    expo_family(e, EXPO_GAUGE, "job_lane_info", "Which live job is in a lane.");
    for (size_t pos = 0; (l = lanes_next(ls, &pos));) {
        if (!lane_may_be_seen(who, l->job))
            continue;
        text_printf(number, "%zu", pos);
        EXPO_PUT(e, 1, {"lane", number}, {"id", l->job->id}, {"user", l->job->user},
                 {"project", l->job->project}, {"workload", l->job->workload});
    }
    expo_one(e, EXPO_COUNTER, "job_useful_seconds_total",
             "Time of steps that counted, of jobs that ended and had told of steps.",
             ls->ended_useful_s);
    expo_one(e, EXPO_COUNTER, "job_held_seconds_total", "Time that these jobs held their slots.",
             ls->ended_s);
}
