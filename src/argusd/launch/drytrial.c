/* SPDX-License-Identifier: Apache-2.0 */
/* drytrial.c - see drytrial.h.
 *
 *   files (worker) -> POST -> looked at twice a second: result.json, and Ray's word
 *        passed before -> over at once
 * A step that is under way (a worker, or Ray) always ends before its memory goes. */
#include "argusd/launch/drytrial.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/launch/secretcheck.h"
#include "argusd/launch/trials.h"
#include "base/digest/hash.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/attempt/secrets.h"
#include "fsroot/tree/sweep.h"

enum { TURN_MS = 500 };
static const usec_t ASK_EVERY = 3 * USEC_SEC;
static const usec_t LAG = 5 * USEC_SEC; /* between Ray's word and the file's */

struct drytrial {
    struct drytrial *next;
    struct drytrials *ds;
    struct trialplan plan;
    char *id, *pool, *needs;
    drytrial_f cb; /* NULL: forgotten */
    void *arg;
    bool busy; /* a worker or Ray has it */
    bool sent, is_over;
    usec_t began, asked, over_since; /* monotonic; 0 = not */
    const char *state;               /* what it waits for: a code */
    int result;
    struct err err;
};

#define PREFIX "dry-run-"

struct drytrials {
    struct drytrials_parts p;
    struct drytrial *all;
    size_t n;
    uv_timer_t *timer;
};

/* ---- ends ---- */

static void drytrial_free(struct drytrial *d)
{
    trialplan_release(&d->plan);
    free(d->id);
    free(d->pool);
    free(d->needs);
    free(d);
}

static void unlink_it(struct drytrial *d)
{
    for (struct drytrial **at = &d->ds->all; *at; at = &(*at)->next)
        if (*at == d) {
            *at = d->next;
            d->ds->n--;
            break;
        }
}

static void drytrial_run_remove(void *arg)
{
    struct drytrial *d = arg;
    const char *root = d->plan.settings->shared_root;
    d->result = fsroot_secrets_remove(root, d->plan.ray_id, &d->err); /* or the sweep does */
    if (d->result == 0)
        d->result =
            fsroot_sweep(root, d->plan.dir, &d->err); /* what stays goes with the old cache */
}

static void drytrial_done_remove(void *arg)
{
    struct drytrial *d = arg;
    unlink_it(d);
    drytrial_free(d);
}

/* Not wanted any more, and nothing of it is under way: its files go, then it goes. The watcher
 * clears Ray's records of ids that were used. */
static void put_away(struct drytrial *d)
{
    if (d->busy)
        return;
    if (d->sent)
        idset_add(d->ds->p.used, d->id);
    d->busy = true;
    work_start(d->ds->p.loop, drytrial_run_remove, drytrial_done_remove, d);
}

static void drytrial_end(struct drytrial *d,
                         const struct trial_result *result,
                         const struct reason *why)
{
    drytrial_f cb = d->cb;
    d->is_over = true;
    d->cb = NULL;
    if (cb)
        cb(result, why, d->arg);
    put_away(d);
}

/* It has not run: a message, or (code NULL) a sentence. */
static void drytrial_fail(struct drytrial *d, const char *code, const char *text)
{
    struct reason why;
    reason_set(&why, code, NULL, text);
    drytrial_end(d, NULL, &why);
}

static void drytrial_fail_by(struct drytrial *d, const struct err *err)
{
    drytrial_fail(d, err->message, err->message ? err->args : err->text);
}

void drytrial_forget(struct drytrial *d)
{
    if (!d || d->is_over)
        return;
    d->cb = NULL;
    d->is_over = true;
    put_away(d);
}

/* After an answer: does anybody still want to know? Puts it away if not. */
static bool drytrial_goes_on(struct drytrial *d)
{
    d->busy = false;
    if (!d->is_over)
        return true;
    put_away(d);
    return false;
}

/* ---- Ray ---- */

static void drytrial_on_posted(enum ray_submit_outcome outcome, const struct err *err, void *arg)
{
    struct drytrial *d = arg;
    bool is_sent = outcome == RAY_SUBMIT_ACCEPTED || outcome == RAY_SUBMIT_DUPLICATE ||
                   outcome == RAY_SUBMIT_DOUBT;
    d->sent = is_sent;
    if (!drytrial_goes_on(d))
        return;
    d->asked = clock_mono();
    if (!is_sent)
        drytrial_fail_by(d, err);
}

static void drytrial_post(struct drytrial *d)
{
    const struct drytrials_parts *p = &d->ds->p;
    struct err err = {0};
    const char *code, *text;
    cluster_why_not(p->cluster, &code, &text);
    const struct cluster_node *node =
        *code ? NULL : trials_choose_node(p->cluster, p->nodes, d->pool, d->needs);
    if (!node) {
        drytrial_fail(d, *code ? code : "trial_no_worker",
                      *code ? text : TRIALS_NO_WORKER(d->needs));
        return;
    }
    struct trials_submit what = {.plan = &d->plan,
                                 .node = node,
                                 .ray_id = d->plan.ray_id,
                                 .job = d->id,
                                 .instance = p->instance};
    d->state = "trial_sent";
    d->busy = true;
    if (trials_post(p->ray, &what, drytrial_on_posted, d, &err) < 0) {
        d->busy = false;
        drytrial_fail_by(d, &err);
    }
}

static void drytrial_on_asked(enum ray_found found,
                              const struct ray_job *rj,
                              const struct err *err,
                              void *arg)
{
    struct drytrial *d = arg;
    usec_t now = clock_mono();
    if (!drytrial_goes_on(d) || found == RAY_UNKNOWN)
        return;
    (void)err;
    bool gone = found == RAY_NOT_FOUND || ray_job_status_is_terminal(rj->status);
    if (gone && d->over_since && now - d->over_since > LAG) {
        char why[400]; /* Ray tells what was printed */
        const char *told = rj ? rj->message : NULL;
        trialplan_mask(&d->plan, str_or(told, "{}"), why, sizeof(why));
        drytrial_fail(d, told ? NULL : "trial_no_result", why);
        return;
    }
    if (gone && !d->over_since)
        d->over_since = now;
    if (!gone)
        d->state = rj->status == RAY_JOB_PENDING ? "trial_no_cpu" : "trial_runs";
}

static void drytrial_ask(struct drytrial *d)
{
    d->asked = clock_mono();
    d->busy = true;
    (void)ray_get_job(d->ds->p.ray, d->plan.ray_id, drytrial_on_asked, d);
}

/* ---- the files ---- */

static void drytrial_run_make(void *arg)
{
    struct drytrial *d = arg;
    if (d->result == 0)
        d->result = trialplan_make(&d->plan, &d->err);
}

static void drytrial_done_make(void *arg)
{
    struct drytrial *d = arg;
    if (!drytrial_goes_on(d))
        return;
    if (d->result < 0)
        drytrial_fail_by(d, &d->err);
    else if (d->plan.is_over)
        drytrial_end(d, &d->plan.result, NULL);
    else
        drytrial_post(d);
}

static void drytrial_run_look(void *arg)
{
    struct drytrial *d = arg;
    d->result = trialplan_look(&d->plan, &d->err);
}

static void drytrial_done_look(void *arg)
{
    struct drytrial *d = arg;
    if (!drytrial_goes_on(d))
        return;
    if (d->result > 0)
        drytrial_end(d, &d->plan.result, NULL);
    else if (d->result < 0)
        drytrial_fail_by(d, &d->err);
    else if (clock_mono() - d->asked >= ASK_EVERY)
        drytrial_ask(d);
}

/* ---- time ---- */

static void drytrial_give_up(struct drytrial *d)
{
    char why[260];
    message_write(why, sizeof(why),
                  MESSAGE_ARGS(MESSAGE_NUM("seconds", DRYTRIAL_WAIT / USEC_SEC),
                               MESSAGE_OF("how", str_or(d->state, "trial_begins"), "{}")));
    drytrial_fail(d, "trial_late", why);
}

static void on_turn(uv_timer_t *timer)
{
    struct drytrials *ds = timer->data;
    usec_t now = clock_mono();
    for (struct drytrial *d = ds->all, *next; d; d = next) {
        next = d->next;
        if (d->busy || d->is_over)
            continue;
        if (now - d->began > DRYTRIAL_WAIT) {
            drytrial_give_up(d);
        } else if (d->sent) {
            d->busy = true;
            work_start(ds->p.loop, drytrial_run_look, drytrial_done_look, d);
        }
    }
    if (!ds->n)
        (void)uv_timer_stop(timer);
}

static const char *drytrials_are_full(const struct drytrials *ds, const char *user)
{
    for (const struct drytrial *d = ds->all; d; d = d->next)
        if (!d->is_over && str_eq(d->plan.user, user))
            return "trial_of_yours";
    return !ds->timer ? "argusd_stops" : ds->n >= DRYTRIALS_AT_ONCE ? "trial_of_others" : NULL;
}

struct drytrial *drytrial_begin(struct drytrials *ds,
                                const struct job *job,
                                const struct launchplan *plan,
                                const char *needs,
                                drytrial_f cb,
                                void *arg,
                                const char **ret_why)
{
    char hex[2 * 6 + 1];
    *ret_why = drytrials_are_full(ds, job->user);
    if (*ret_why)
        return NULL;
    struct drytrial *d = xcalloc(1, sizeof(*d));
    *d = (struct drytrial){.next = ds->all, .ds = ds, .cb = cb, .arg = arg, .began = clock_mono()};
    d->id = xasprintf(PREFIX "%s", random_hex(hex));
    d->pool = xstrdup(job->pool);
    d->needs = xstrdup(needs);
    d->plan = (struct trialplan){.settings = plan->settings,
                                 .spec = xstrdup(job->spec),
                                 .id = xstrdup(d->id),
                                 .user = xstrdup(job->user),
                                 .inputs = xstrdup(plan->inputs),
                                 .snapshots = xstrdup(plan->snapshots)};
    d->plan.ray_id = xasprintf("%s-trial", d->id);
    d->plan.dir = xasprintf("%s/argus/trials/%s", plan->settings->shared_root, d->id);
    secrets_derive(ds->p.secrets, "trial", d->plan.key);
    d->result = secretcheck_open(ds->p.secrets, plan->settings, job, &d->plan.secrets, &d->err);
    ds->all = d;
    ds->n++;
    d->busy = true;
    work_start(ds->p.loop, drytrial_run_make, drytrial_done_make, d);
    if (!uv_is_active((uv_handle_t *)ds->timer))
        (void)uv_timer_start(ds->timer, on_turn, TURN_MS, TURN_MS); /* it is open: cannot fail */
    return d;
}

bool drytrials_is_stray(const struct drytrials *ds, const char *id)
{
    for (const struct drytrial *d = ds->all; d; d = d->next)
        if (!strcmp(d->id, id))
            return false;
    return str_starts(id, PREFIX);
}

bool drytrials_know(const struct drytrials *ds, const char *ray_id)
{
    for (const struct drytrial *d = ds->all; d; d = d->next)
        if (!strcmp(d->plan.ray_id, ray_id))
            return true;
    return false;
}

/* ---- the owner ---- */

struct drytrials *drytrials_new(const struct drytrials_parts *parts)
{
    struct drytrials *ds = xcalloc(1, sizeof(*ds));
    ds->p = *parts;
    ds->timer = xcalloc(1, sizeof(*ds->timer));
    ds->timer->data = ds;
    (void)uv_timer_init(parts->loop, ds->timer); /* fails for lack of memory alone */
    return ds;
}

static void drytrial_on_timer_closed(uv_handle_t *handle)
{
    free(handle);
}

void drytrials_close(struct drytrials *ds)
{
    if (!ds || !ds->timer)
        return;
    for (struct drytrial *d = ds->all; d; d = d->next)
        drytrial_forget(d);
    uv_close((uv_handle_t *)ds->timer, drytrial_on_timer_closed);
    ds->timer = NULL;
}

void drytrials_free(struct drytrials *ds)
{
    if (!ds)
        return;
    for (struct drytrial *d = ds->all, *next; d; d = next) {
        next = d->next;
        drytrial_free(d);
    }
    free(ds);
}
