/* SPDX-License-Identifier: Apache-2.0 */
/* why.c - GET /v1/jobs/{id}/why: what a job waits for, and what would start it.
 *
 * While it waits the scheduler answers: one code, the evidence, the smallest change that
 * helps. In any other state the answer says so and names what it waits for now. */
#include <string.h>

#include "argusd/api/handlers.h"
#include "argusd/kit/saying.h"
#include "argusd/kit/view.h"
#include "base/str.h"
#include "base/text.h"

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
        text_copy(r->code, "unknown");
        text_printf(r->text,
                    "nobody can see it since %s: Ray and the shared root do not both answer, "
                    "or contradict each other; nothing is done to it",
                    clock_to_string(job->unknown_since, at));
    } else if (job->state == JOB_RUNNING && !*r->code) {
        text_copy(r->code, "running");
        _cleanup_(freep) char *names = gang_names(&job->gang);
        text_printf(r->text, "it does not wait: it runs since %s on %s",
                    clock_to_string(job->started_at, at), str_or(names, "its nodes"));
    } else if (job->state == JOB_SUCCEEDED && !*r->code) {
        text_copy(r->code, "succeeded");
        text_printf(r->text, "it has succeeded at %s", clock_to_string(job->ended_at, at));
    }
}

static void put_why(struct jout *j,
                    const struct api_eyes *eyes,
                    const struct job *job,
                    const struct record_extra *extra,
                    struct live *l)
{
    struct sched_why why = {0};
    struct reason reason = job->reason;
    int position = 0;
    char hint[32];
    bool waits = l && jobs_why(l, true, &why);
    if (l)
        jobs_reason(l, &reason, &position);
    if (!waits)
        say_state(job, &reason);
    jout_open(j, NULL, '{');
    jout_str(j, "id", job->id);
    jout_str(j, "state", job_state_to_string(job->state));
    jout_str(j, "code", waits ? why.code : reason.code);
    saying_put(j, eyes, job->id, waits ? why.code : reason.code, waits ? why.text : reason.text);
    if (waits)
        jout_int(j, "position", why.position);
    else
        jout_null(j, "position");
    put_hint(j, eyes, &why.hint);
    (void)snprintf(hint, sizeof(hint), "hint_%s", sched_hint_to_string(why.hint.kind)); /* fits */
    saying_put_text(j, "hint_text", eyes, job->id, hint, why.hint_text);
    usec_t p50 = 0, p90 = 0;
    if (waits)
        jobs_eta(l, &p50, &p90);
    view_eta(j, p50, p90);
    jout_str(j, "finding", record_finding_word(job, extra));
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
    put_why(&j, &eyes, job, extra, l);
    http_reply_json(req, 200, &out, l ? api_barrier(a) : api_reader_barrier(a));
    buf_release(&out);
}

void api_jobs_why(struct http_req *req, void *app)
{
    api_find_job(req, app, answer_why);
}
