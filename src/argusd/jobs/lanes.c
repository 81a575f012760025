/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.c - see lanes.h.
 *
 * A lane is found by a walk: those that live at the same time and tell of steps are a few hundred,
 * and each tells once a second at most. */
#include "argusd/jobs/lanes.h"

#include <stdlib.h>

#include "base/text.h"

struct lane {
    const struct live *l; /* NULL: free */
    double useful_s, ratio;
};

struct lanes {
    struct lane *v;
    size_t n;                       /* lanes there were at once, so far */
    double ended_useful_s, ended_s; /* of jobs that are over: of these, and held by them */
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

/* The lane of l, or for NULL the first lane that is free; NULL: there is none. A few hundred jobs
 * run. */
static struct lane *lanes_find(const struct lanes *ls, const struct live *l)
{
    for (size_t i = 0; i < ls->n; i++)
        if (ls->v[i].l == l)
            return &ls->v[i];
    return NULL;
}

static struct lane *lanes_take(struct lanes *ls, const struct live *l)
{
    struct lane *lane = lanes_find(ls, l);
    if (!lane)
        lane = lanes_find(ls, NULL);
    if (!lane && ls->n < LANES_MAX) {
        ls->v = xrealloc(ls->v, ls->n + 1, sizeof(*ls->v));
        lane = &ls->v[ls->n++];
    }
    return lane;
}

void lanes_set(struct lanes *ls, const struct live *l, double useful_s, usec_t now)
{
    struct lane *lane = lanes_take(ls, l);
    double held_s = (double)job_held(l->job, now) / (double)USEC_SEC;
    if (!lane || held_s <= 0)
        return;
    *lane = (struct lane){
        .l = l, .useful_s = useful_s, .ratio = useful_s < held_s ? useful_s / held_s : 1};
}

void lanes_end(struct lanes *ls, const struct live *l, usec_t now)
{
    struct lane *lane = lanes_find(ls, l);
    if (!lane)
        return;
    ls->ended_useful_s += lane->useful_s;
    ls->ended_s += (double)job_held(l->job, now) / (double)USEC_SEC;
    *lane = (struct lane){0};
}

/* The families of the lanes one after the other: the figure, then who is in them. */
static void lanes_put_each(const struct lanes *ls, struct expo *e, bool who)
{
    char number[24];
    for (size_t i = 0; i < ls->n; i++) {
        const struct lane *lane = &ls->v[i];
        if (!lane->l)
            continue;
        const struct job *j = lane->l->job;
        text_printf(number, "%zu", i + 1);
        if (who)
            EXPO_PUT(e, 1, {"lane", number}, {"id", j->id}, {"user", j->user},
                     {"project", j->project}, {"workload", j->workload});
        else
            EXPO_PUT(e, lane->ratio, {"lane", number});
    }
}

void lanes_put(const struct lanes *ls, struct expo *e)
{
    expo_family(e, EXPO_GAUGE, "job_goodput_ratio",
                "Share of its time that a live job spent in steps that counted; the lane is in "
                "job_lane_info.");
    lanes_put_each(ls, e, false);
    expo_family(e, EXPO_GAUGE, "job_lane_info", "Which live job is in a lane.");
    lanes_put_each(ls, e, true);
    expo_one(e, EXPO_COUNTER, "job_useful_seconds_total",
             "Time of steps that counted, of jobs that ended and had told of steps.",
             ls->ended_useful_s);
    expo_one(e, EXPO_COUNTER, "job_held_seconds_total", "Time that these jobs held their slots.",
             ls->ended_s);
}
