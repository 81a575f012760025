/* SPDX-License-Identifier: Apache-2.0 */
/* secretsweep.c - see secretsweep.h. First the worker lists, then the loop chooses, then the worker
 * removes: an attempt is planned before its files are written, so what was listed and belongs to
 * no attempt of now is of one that is over. Ids of attempts are never used again. */
#include "argusd/launch/secretsweep.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "base/log.h"
#include "base/str.h"
#include "fsroot/attempt/secrets.h"

enum { SOON_MS = 500, RETRY_MS = 3000, EVERY_MS = 60000 };

struct secretsweep {
    struct secretsweep_parts p;
    char *root;
    uv_timer_t timer;
    struct strv names; /* of the work under way */
    struct err err;
    int result;
    bool busy, again, closing;
};

static void secretsweep_on_closed(uv_handle_t *h)
{
    struct secretsweep *s = h->data;
    strv_release(&s->names);
    free(s->root);
    free(s);
}

static void close_timer(struct secretsweep *s)
{
    uv_close((uv_handle_t *)&s->timer, secretsweep_on_closed);
}

static void next_in(struct secretsweep *s, uint64_t ms);

static void secretsweep_end(struct secretsweep *s)
{
    s->busy = false;
    if (s->result < 0)
        log_warn("secrets", "%s", s->err.text);
    if (s->closing)
        close_timer(s);
    else
        next_in(s, s->again ? SOON_MS : EVERY_MS);
    s->again = false;
}

static void secretsweep_run_remove(void *arg)
{
    struct secretsweep *s = arg;
    for (size_t i = 0; i < s->names.n && s->result == 0; i++)
        s->result = fsroot_secrets_remove(s->root, s->names.v[i], &s->err);
}

static void secretsweep_done_remove(void *arg)
{
    secretsweep_end(arg);
}

static bool is_of_trial(const struct job *j, const char *ray_id)
{
    if (job_act(j) != JOB_ACT_TRY || !str_starts(ray_id, j->id))
        return false;
    _cleanup_(freep) char *id = job_trial_id(j);
    return str_eq(id, ray_id);
}

/* Are these the secrets of an attempt that runs or is about to, or of a trial? */
static bool is_needed(const struct secretsweep *s, const char *ray_id)
{
    const struct live *l;
    for (size_t pos = 0; (l = jobs_next_placed(s->p.jobs, &pos));) {
        const struct attempt *a = job_attempt(l->job);
        if (a && str_eq(a->ray_id, ray_id))
            return true;
    }
    for (size_t pos = 0; (l = jobs_next_untried(s->p.jobs, &pos));)
        if (is_of_trial(l->job, ray_id))
            return true;
    return drytrials_know(s->p.drytrials, ray_id);
}

static void run_list(void *arg)
{
    struct secretsweep *s = arg;
    s->result = fsroot_secrets_list(s->root, &s->names, &s->err);
}

static void done_list(void *arg)
{
    struct secretsweep *s = arg;
    struct strv over = {0};
    for (size_t i = 0; i < s->names.n && !s->closing; i++)
        if (!is_needed(s, s->names.v[i]))
            strv_add(&over, s->names.v[i]);
    strv_release(&s->names);
    s->names = over;
    if (over.n)
        work_start(s->p.loop, secretsweep_run_remove, secretsweep_done_remove, s);
    else
        secretsweep_end(s);
}

static void on_time(uv_timer_t *t)
{
    struct secretsweep *s = t->data;
    if (!cluster_root_is_ok(s->p.cluster)) {
        next_in(s, RETRY_MS);
        return;
    }
    s->busy = true;
    s->result = 0;
    strv_release(&s->names);
    work_start(s->p.loop, run_list, done_list, s);
}

static void next_in(struct secretsweep *s, uint64_t ms)
{
    (void)uv_timer_start(&s->timer, on_time, ms, 0); /* fails only while closing */
}

struct secretsweep *secretsweep_new(const struct secretsweep_parts *parts)
{
    struct secretsweep *s = xcalloc(1, sizeof(*s));
    s->p = *parts;
    s->root = xstrdup(parts->shared_root);
    (void)uv_timer_init(s->p.loop, &s->timer); /* cannot fail */
    s->timer.data = s;
    return s;
}

void secretsweep_soon(struct secretsweep *s)
{
    if (!s || s->closing)
        return;
    if (s->busy)
        s->again = true;
    else if (!uv_is_active((uv_handle_t *)&s->timer) || uv_timer_get_due_in(&s->timer) > SOON_MS)
        next_in(s, SOON_MS);
}

void secretsweep_free(struct secretsweep *s)
{
    if (!s)
        return;
    s->closing = true;
    if (!s->busy)
        close_timer(s);
}
