/* SPDX-License-Identifier: Apache-2.0 */
/* evals.c - the timer that looks which checkpoint is due, submits under way, and what a job that
 * ended had told; see evals.h. */
#include "argusd/evals/evals.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/checkpoints/checkpoints.h"
#include "argusd/people/people.h"
#include "argusd/submit/submit.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/evalspec.h"

enum { TICK_MS = 2000, WORKS_MAX = 8 /* submits at once */ };
static const usec_t AGAIN = 30 * USEC_SEC; /* what is refused for now is tried later */

/* A submit under way, or one that is tried later. */
struct eval_work {
    struct eval_work *next;
    struct evals *evals;
    char *job; /* the training */
    int64_t step;
    struct submit *submit; /* NULL: none */
    bool open;             /* the submit has not answered */
    usec_t again_at;       /* monotonic */
};

struct evals {
    struct api *a;
    uv_timer_t timer;
    bool closing;
    struct eval_work *works;
    size_t n_open;
};

struct evals *evals_new(struct api *a)
{
    struct evals *es = xcalloc(1, sizeof(*es));
    es->a = a;
    (void)uv_timer_init(a->loop, &es->timer); /* cannot fail, nor can its start */
    return es;
}

static void evals_drop(struct evals *es, struct eval_work *w)
{
    struct eval_work **at = &es->works;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    es->n_open -= w->open ? 1 : 0;
    free(w->job);
    free(w);
}

static struct eval_work *evals_find(const struct evals *es, const char *job)
{
    struct eval_work *w = es->works;
    while (w && strcmp(w->job, job) != 0)
        w = w->next;
    return w;
}

/* ---- a submit ---- */

static void evals_refused(struct eval_work *w, const struct err *err)
{
    struct evals *es = w->evals;
    const struct checkpoints_eval e = {.state = CKPT_EVAL_REFUSED, .why = err};
    w->open = false;
    es->n_open--;
    if (submit_may_pass(err)) { /* it is tried again */
        w->again_at = clock_mono() + AGAIN;
        return;
    }
    checkpoints_set_eval(es->a->checkpoints, w->job, w->step, &e);
    evals_drop(es, w);
}

static void evals_on_submitted(struct live *l, const struct err *err, void *arg)
{
    struct eval_work *w = arg;
    struct evals *es = w->evals;
    if (!l) {
        evals_refused(w, err);
        return;
    }
    const struct checkpoints_eval e = {.state = CKPT_EVAL_SUBMITTED, .job = l->job->id};
    checkpoints_set_eval(es->a->checkpoints, w->job, w->step, &e);
    evals_drop(es, w);
}

/* As the training's owner would submit it, with no more than the owner may now. */
static void evals_submit(struct eval_work *w, const struct checkpoints_due *due)
{
    struct evals *es = w->evals;
    const struct evalspec_of of = {.job = due->job, .step = due->step, .attempt = due->attempt};
    struct submit_own own = {.no_trial = true, .done = evals_on_submitted, .arg = w};
    struct err err = {0};
    w->open = true;
    es->n_open++;
    if (people_admit_absent(es->a->people, due->user, &own.who, &err) < 0) {
        evals_refused(w, &err);
        return;
    }
    own.spec = evalspec_fill(due->spec, &of);
    if (!own.spec) {
        (void)message_refuse(&err, ERR_REFUSED, "eval_too_long", MESSAGE_NO_ARGS);
        evals_refused(w, &err);
        return;
    }
    own.origin =
        (struct submit_origin){.job = xstrdup(due->job), .how = FAMILY_EVAL, .step = due->step};
    submit_own(es->a, &own, &w->submit); /* w may be gone behind it */
}

static void evals_begin(struct evals *es, const struct checkpoints_due *due)
{
    struct eval_work *w = evals_find(es, due->job);
    if (w && (w->open || clock_mono() < w->again_at))
        return;
    if (w)
        evals_drop(es, w);
    w = xcalloc(1, sizeof(*w));
    *w = (struct eval_work){
        .next = es->works, .evals = es, .job = xstrdup(due->job), .step = due->step};
    es->works = w;
    evals_submit(w, due);
}

/* ---- what is due ---- */

/* Those that wait for a try of which nothing is due any more. */
static void evals_forget_late(struct evals *es)
{
    usec_t now = clock_mono();
    for (struct eval_work *w = es->works, *next; w; w = next) {
        next = w->next;
        if (!w->open && now >= w->again_at + AGAIN)
            evals_drop(es, w);
    }
}

/* A job that is not there and of whose end nobody told: it was taken away. */
static void evals_settle_lost(struct evals *es)
{
    const struct book *pos = NULL;
    const struct checkpoints_eval e = {.state = CKPT_EVAL_FAILED};
    struct checkpoints_judged c;
    while (checkpoints_next_judged(es->a->checkpoints, &pos, &c))
        if (!jobs_find_any(es->a->jobs, c.eval_job))
            checkpoints_set_eval(es->a->checkpoints, c.job, c.step, &e);
}

static void evals_on_tick(uv_timer_t *t)
{
    struct evals *es = container_of(t, struct evals, timer);
    const struct book *pos = NULL;
    struct checkpoints_due due;
    evals_settle_lost(es);
    evals_forget_late(es);
    while (es->n_open < WORKS_MAX && checkpoints_next_due(es->a->checkpoints, &pos, &due))
        evals_begin(es, &due);
}

static bool evals_find_judged(const struct evals *es,
                              const char *eval_job,
                              struct checkpoints_judged *ret)
{
    const struct book *pos = NULL;
    while (checkpoints_next_judged(es->a->checkpoints, &pos, ret))
        if (!strcmp(ret->eval_job, eval_job))
            return true;
    return false;
}

void evals_ended(struct evals *es, const struct live *l)
{
    struct checkpoints_judged c;
    if (!es || !evals_find_judged(es, l->job->id, &c))
        return;
    _cleanup_(json_unrefp) json_t *all =
        l->extra.metrics ? json_loads(l->extra.metrics, 0, NULL) : NULL;
    const struct checkpoints_eval e = {.state = l->job->state == JOB_SUCCEEDED ? CKPT_EVAL_DONE
                                                                               : CKPT_EVAL_FAILED,
                                       .latest = json_get_object(all, "latest")};
    checkpoints_set_eval(es->a->checkpoints, c.job, c.step, &e);
}

/* ---- the life ---- */

void evals_start(struct evals *es)
{
    (void)uv_timer_start(&es->timer, evals_on_tick, TICK_MS, TICK_MS);
}

void evals_close(struct evals *es)
{
    if (!es || es->closing)
        return;
    es->closing = true;
    for (struct eval_work *w = es->works; w; w = w->next)
        submit_own_forget(w->submit);
    uv_close((uv_handle_t *)&es->timer, NULL);
}

void evals_free(struct evals *es)
{
    if (!es)
        return;
    while (es->works)
        evals_drop(es, es->works);
    free(es);
}
