/* SPDX-License-Identifier: Apache-2.0 */
/* api_why.c - GET /v1/jobs/{id}/why: what a job waits for, and what would start it.
 *
 * While it waits the scheduler answers: one code, the evidence, the smallest change that
 * helps. In any other state the answer says so and names what it waits for now. */
#include <stdio.h>
#include <string.h>

#include "argusd/api.h"
#include "argusd/conceal.h"
#include "argusd/view.h"
#include "base/str.h"

enum { WHY_MAX_BYTES = 64 << 10 };

static void put_hint(struct jout *j, const struct api_eyes *eyes, const struct sched_hint *h)
{
    if (h->kind == SCHED_HINT_NONE) {
        jout_null(j, "hint");
        return;
    }
    jout_open(j, "hint", '{');
    jout_str(j, "kind", sched_hint_to_string(h->kind));
    if (h->kind == SCHED_HINT_POOL)
        jout_str(j, "pool", h->pool);
    if (h->kind == SCHED_HINT_SHAPE) {
        jout_int(j, "nnodes", h->nnodes);
        jout_real(j, "n_gpus_per_node", h->n_gpus_per_node);
    }
    if (h->kind == SCHED_HINT_JOB_END) {
        struct api_eyes who = *eyes;
        jout_str(j, "job", api_sees_job(h->job, &who) ? h->job : NULL);
        jout_time(j, "at", jobs_to_wall(eyes->a->jobs, h->at));
    }
    if (h->kind == SCHED_HINT_NODE)
        jout_str(j, "node", h->node);
    if (h->kind == SCHED_HINT_TIMEOUT)
        jout_real(j, "timeout", (double)h->limit / USEC_SEC);
    if (h->kind == SCHED_HINT_PRIORITY)
        jout_int(j, "priority", h->priority);
    jout_close(j, '}');
}

/* Of a job that runs or did: a sentence where the reason has none. */
static void say_state(const struct job *job, struct reason *r)
{
    char at[CLOCK_TEXT_MAX];
    if (job->flags & JOB_FLAG_UNKNOWN) {
        (void)snprintf(r->code, sizeof(r->code), "unknown"); /* these fit, or are cut */
        (void)snprintf(r->text, sizeof(r->text),
                       "nobody can see it since %s: Ray and the shared root do not both answer, "
                       "or contradict each other; nothing is done to it",
                       clock_to_string(job->unknown_since, at));
    } else if (job->state == JOB_RUNNING && !*r->code) {
        (void)snprintf(r->code, sizeof(r->code), "running");
        (void)snprintf(r->text, sizeof(r->text), "it does not wait: it runs since %s on %s",
                       clock_to_string(job->started_at, at), str_or(job->nodes, "its nodes"));
    } else if (job->state == JOB_SUCCEEDED && !*r->code) {
        (void)snprintf(r->code, sizeof(r->code), "succeeded");
        (void)snprintf(r->text, sizeof(r->text), "it has succeeded at %s",
                       clock_to_string(job->ended_at, at));
    }
}

static void put_why(struct jout *j,
                    const struct api_eyes *eyes,
                    const struct job *job,
                    struct live *l)
{
    struct sched_why why = {0};
    struct reason reason = job->reason;
    int position = 0;
    bool waits = l && jobs_why(l, true, &why);
    if (l)
        jobs_reason(l, &reason, &position);
    if (!waits)
        say_state(job, &reason);
    jout_open(j, NULL, '{');
    jout_str(j, "id", job->id);
    jout_str(j, "state", job_state_to_string(job->state));
    jout_str(j, "code", waits ? why.code : reason.code);
    conceal_put(j, "text", eyes, job->id, waits ? why.text : reason.text);
    if (waits)
        jout_int(j, "position", why.position);
    else
        jout_null(j, "position");
    put_hint(j, eyes, &why.hint);
    conceal_put(j, "hint_text", eyes, job->id, why.hint_text);
    view_eta(j, waits ? l->eta_p50 : 0, waits ? l->eta_p90 : 0);
    jout_str(j, "finding", job->finding);
    jout_close(j, '}');
}

static void answer_why(struct http_req *req,
                       struct api *a,
                       const struct job *job,
                       const struct record_extra *extra,
                       struct live *l)
{
    struct buf out = BUF_INIT(WHY_MAX_BYTES);
    struct jout j = jout_begin(&out);
    (void)extra;
    struct api_eyes eyes = {.a = a, .p = http_req_principal(req)};
    put_why(&j, &eyes, job, l);
    http_reply_json(req, 200, &out, l ? api_barrier(a) : api_reader_barrier(a));
    buf_release(&out);
}

void api_jobs_why(struct http_req *req, void *app)
{
    api_find_job(req, app, answer_why);
}
