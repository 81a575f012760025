/* SPDX-License-Identifier: Apache-2.0 */
/* trials.c - see trials.h.
 *
 *   files (worker) -> GET the id -> none: POST -> watched: result.json, and Ray's word
 *        passed before, or a result there -> over at once
 *        Ray says that it ended, and no result -> lost: the next id */
#include "argusd/launch/trials.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/jobs/lease.h"
#include "argusd/launch/mark.h"
#include "argusd/launch/secretcheck.h"
#include "argusd/launch/trialplan.h"
#include "base/json.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/check/trial.h"

/* No more than LOOKS jobs are asked in a second: a hundred thousand that wait for an empty pool
 * must not hold the loop up. */
enum { AT_ONCE = 8, POOLS_MAX = 256, LOOKS = 4096 };
static const usec_t ASK_EVERY = 3 * USEC_SEC;
static const usec_t LAG = 5 * USEC_SEC;         /* between Ray's word and the file's */
static const usec_t HUNG = 5 * USEC_MIN;        /* of running: the program ends itself before */
static const usec_t TELL_AFTER = 20 * USEC_SEC; /* of waiting for a CPU */

enum phase { PLAN, ASK, SENT };

struct trial_run {
    struct trial_run *next;
    struct trials *t;
    struct live *l; /* NULL: not wanted any more */
    struct trialplan plan;
    char *node; /* where it was sent to; NULL: not known */
    enum phase phase;
    bool busy; /* a worker or Ray has it */
    int result;
    struct err err;
    usec_t asked, running_since, over_since, pending_since; /* monotonic; 0 = not */
};

/* What is kept for a job. */
struct tried {
    struct trial_run *run; /* NULL = none under way */
    bool is_failed;        /* its end is told by somebody else */
    struct reason far;     /* how far it is, a message; empty: not begun */
};

struct trials {
    struct trials_parts p;
    struct trial_run *runs;
    int n;
    size_t pos; /* where the walk over those that have not begun goes on */
    bool closed;
    struct strv empty; /* pools without a worker, as seen at empty_at */
    usec_t empty_at;
};

struct trials *trials_new(const struct trials_parts *parts)
{
    struct trials *t = xcalloc(1, sizeof(*t));
    t->p = *parts;
    return t;
}

static void trials_run_free(struct trial_run *r)
{
    for (struct trial_run **at = &r->t->runs; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    r->t->n--;
    trialplan_release(&r->plan);
    free(r->node);
    free(r);
}

void trials_close(struct trials *t)
{
    if (t)
        t->closed = true;
}

void trials_free(struct trials *t)
{
    if (!t)
        return;
    while (t->runs)
        trials_run_free(t->runs);
    strv_release(&t->empty);
    free(t);
}

/* ---- ends ---- */

static struct tried *tried_of(struct live *l)
{
    return live_keep(l, LIVE_TRIAL, sizeof(struct tried));
}

static void detach(struct trial_run *r)
{
    struct live *l = r->l;
    if (l) {
        r->l = NULL;
        *tried_of(l) = (struct tried){0};
        jobs_idle(l);
    }
}

/* The job goes on without this run: freed now, or when its worker or Ray is done with it. */
static void trials_let_go(struct trial_run *r)
{
    detach(r);
    if (!r->busy)
        trials_run_free(r);
}

static bool trials_is_wanted(struct trial_run *r)
{
    return r->l && !r->t->closed && !r->l->over && job_act(r->l->job) == JOB_ACT_TRY;
}

/* The event's texts may be the run's own: it lives until the end. */
static void trials_finish(struct trial_run *r, const struct job_event *e)
{
    struct live *l = r->l;
    jobs_busy(l);
    detach(r);
    (void)jobs_apply(l, e, "argusd", clock_wall()); /* too late is harmless */
    jobs_idle(l);
    trials_let_go(r);
}

/* The texts may be the run's own: it lives until the end. */
static void trials_fail(struct trial_run *r,
                        const struct finding *found,
                        const char *message,
                        const char *text,
                        bool left)
{
    struct live *l = r->l;
    const struct trials *t = r->t;
    struct tried *tried = tried_of(l);
    jobs_busy(l);
    detach(r);
    tried->is_failed = true;
    reason_set(&tried->far, "trial_found", NULL, "{}");
    t->p.failed(l, found, message, text, left, t->p.arg);
    jobs_idle(l);
    trials_let_go(r);
}

/* It could not be asked: why. */
static void trials_refuse(struct trial_run *r)
{
    const struct err *err = &r->err;
    struct finding found;
    trial_finding_of_refusal(err->text, &found);
    trials_fail(r, &found, err->message, err->message ? err->args : err->text, false);
    finding_release(&found);
}

static void take_result(struct trial_run *r)
{
    struct trial_result *got = &r->plan.result;
    set_str(&r->l->extra.trial, got->shown);
    struct job_event passed = {.kind = JOB_EV_TRIED, .code = "trial_passed", .text = "{}"};
    if (got->ok) {
        trials_finish(r, &passed);
        return;
    }
    set_str(&got->found.node, r->node);
    trials_fail(r, &got->found, got->message, got->text, true);
}

static void trials_lose(struct trial_run *r, const char *code, const char *why)
{
    char text[JOB_REASON_TEXT_MAX], shown[sizeof(r->err.args)]; /* Ray tells what was printed */
    bool last = r->l->job->trial_tries + 1 >= JOB_TRIAL_TRIES;
    trialplan_mask(&r->plan, why, shown, sizeof(shown));
    message_write(text, sizeof(text),
                  last ? MESSAGE_ARGS(MESSAGE_OF("why", code, shown), MESSAGE_NUM("last", 1))
                       : MESSAGE_ARGS(MESSAGE_OF("why", code, shown)));
    struct job_event lost = {.kind = JOB_EV_UNTRIED, .code = "trial_lost", .text = text};
    trials_finish(r, &lost);
}

static void trials_lose_by(struct trial_run *r, const struct err *err)
{
    trials_lose(r, err->message, err->message ? err->args : err->text);
}

static void trials_say(struct trial_run *r, const char *code, const char *text)
{
    struct tried *t = tried_of(r->l);
    reason_set(&t->far, code, NULL, text);
}

static void trials_say_why(struct trial_run *r, const struct err *err)
{
    trials_say(r, str_or(err->message, "trial_begins"), err->message ? err->args : err->text);
}

/* After an answer: is there somebody to go on for? Frees the run if not. */
static bool trials_goes_on(struct trial_run *r)
{
    r->busy = false;
    if (trials_is_wanted(r))
        return true;
    trials_let_go(r);
    return false;
}

/* ---- Ray ---- */

static void trials_on_posted(enum ray_submit_outcome outcome, const struct err *err, void *arg)
{
    struct trial_run *r = arg;
    if (!trials_goes_on(r))
        return;
    switch (outcome) {
    case RAY_SUBMIT_ACCEPTED:
        r->phase = SENT;
        trials_say(r, "trial_sent", "{}");
        break;
    case RAY_SUBMIT_REFUSED:
        trials_lose_by(r, err);
        break;
    default: /* DUPLICATE, doubt, not reached: Ray is asked first */
        trials_say_why(r, err);
        r->phase = ASK;
    }
}

const struct cluster_node *trials_choose_node(const struct cluster *cluster,
                                              const struct nodes *machines,
                                              const char *pool,
                                              const char *needs)
{
    size_t n;
    const struct cluster_node *nodes = cluster_nodes(cluster, &n), *best = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct cluster_node *k = &nodes[i];
        if (!k->is_alive || k->is_head || !k->takes_drivers)
            continue;
        _cleanup_(freep) char *labels = nodes_labels(machines, k->name);
        if (*pool && !str_list_has_all(str_or(labels, str_or(k->pool, "")), pool))
            continue;
        if (needs && !nodes_meets(machines, k->name, needs))
            continue;
        if (!best || k->cpus - k->cpus_used > best->cpus - best->cpus_used)
            best = k;
    }
    return best;
}

/* Looked for once a second for each pool and what is needed of it, whatever the number of jobs that
 * wait for it. */
static bool trials_is_empty(struct trials *t, const struct live *l)
{
    const char *pool = l->job->pool;
    _cleanup_(freep) char *key = xasprintf("%s %s", pool, str_or(l->needs, ""));
    usec_t now = clock_mono();
    if (now - t->empty_at >= USEC_SEC) {
        strv_release(&t->empty);
        t->empty_at = now;
    }
    if (strv_has(&t->empty, key))
        return true;
    if (trials_choose_node(t->p.cluster, t->p.nodes, pool, l->needs))
        return false;
    if (t->empty.n < POOLS_MAX)
        strv_add(&t->empty, key);
    return true;
}

static bool trials_may_begin(const struct trials *t)
{
    return !t->closed && cluster_is_up(t->p.cluster) && cluster_root_is_ok(t->p.cluster);
}

void trials_tell(struct trials *t, const struct live *l, struct reason *ret)
{
    char others[32];
    *ret = (struct reason){0};
    const struct tried *tried = live_kept(l, LIVE_TRIAL);
    if (tried && (tried->run || tried->is_failed)) {
        *ret = tried->far;
    } else if (trials_may_begin(t) && t->n >= AT_ONCE) {
        message_write(others, sizeof(others), MESSAGE_ARGS(MESSAGE_NUM("others", AT_ONCE)));
        reason_set(ret, "trial_others", NULL, others);
    } else if (trials_may_begin(t) && trials_is_empty(t, l)) {
        reason_set(ret, "trial_no_worker", NULL, TRIALS_NO_WORKER(l->needs));
    }
}

int trials_post(struct ray_client *ray,
                const struct trials_submit *s,
                ray_submit_f cb,
                void *arg,
                struct err *err)
{
    struct ray_amounts resources = {0};
    struct pairs mark = {0};
    _cleanup_(freep) char *own = lease_node_resource(s->node);
    _cleanup_(buf_release) struct buf env = BUF_INIT(16 << 10);
    struct jout j = jout_begin(&env);
    jout_open(&j, NULL, '{');
    if (s->plan->py_executable)
        jout_str(&j, "py_executable", s->plan->py_executable);
    jout_close(&j, '}');
    ray_amounts_set(&resources, "worker_node", 0.001);
    ray_amounts_set(&resources, own, 0.001);
    mark_put(&mark, s->instance, s->job, 0, s->plan->user);
    struct ray_submit what = {.submission_id = s->ray_id,
                              .entrypoint = s->plan->entrypoint,
                              .runtime_env = buf_str(&env),
                              .env = &s->plan->env,
                              .metadata = &mark,
                              .num_cpus = 1,
                              .resources = &resources};
    bool is_sent = ray_submit(ray, &what, cb, arg, err) != NULL;
    ray_amounts_release(&resources);
    pairs_release(&mark);
    return is_sent ? 0 : ERR_USAGE;
}

static void launch_trials_post(struct trial_run *r)
{
    const struct trials *t = r->t;
    struct err err = {0};
    const struct cluster_node *node =
        trials_choose_node(t->p.cluster, t->p.nodes, r->l->job->pool, r->l->needs);
    if (!node) { /* it must not keep others from theirs */
        trials_let_go(r);
        return;
    }
    struct trials_submit what = {.plan = &r->plan,
                                 .node = node,
                                 .ray_id = r->plan.ray_id,
                                 .job = r->l->job->id,
                                 .instance = t->p.instance};
    set_str(&r->node, node->name);
    r->busy = true;
    if (trials_post(t->p.ray, &what, trials_on_posted, r, &err) < 0) {
        r->busy = false;
        trials_lose_by(r, &err);
    }
}

static void on_record(struct trial_run *r, const struct ray_job *rj)
{
    usec_t now = clock_mono();
    if (!mark_is_ours(r->t->p.instance, rj)) {
        trials_lose(r, "trial_foreign", "{}");
        return;
    }
    r->phase = SENT;
    if (ray_job_status_is_terminal(rj->status)) {
        if (!r->over_since)
            r->over_since = now;
        if (now - r->over_since > LAG)
            trials_lose(r, rj->message ? NULL : "trial_no_result", str_or(rj->message, "{}"));
        return;
    }
    if (rj->status == RAY_JOB_PENDING) {
        if (!r->pending_since)
            r->pending_since = now;
        trials_say(r, now - r->pending_since > TELL_AFTER ? "trial_no_cpu" : "trial_starts", "{}");
        return;
    }
    if (!r->running_since)
        r->running_since = now;
    trials_say(r, "trial_looks", "{}");
    if (now - r->running_since > HUNG)
        trials_lose(r, "trial_hangs", "{}");
}

static void trials_on_asked(enum ray_found found,
                            const struct ray_job *rj,
                            const struct err *err,
                            void *arg)
{
    struct trial_run *r = arg;
    if (!trials_goes_on(r))
        return;
    if (found == RAY_FOUND)
        on_record(r, rj);
    else if (found == RAY_UNKNOWN)
        trials_say_why(r, err);
    else if (r->phase == SENT && !r->over_since)
        r->over_since = clock_mono(); /* the file may come a little later */
    else if (r->phase == SENT && clock_mono() - r->over_since > LAG)
        trials_lose(r, "trial_forgotten", "{}");
    else if (r->phase == ASK)
        launch_trials_post(r);
}

static void trials_ask(struct trial_run *r)
{
    r->asked = clock_mono();
    r->busy = true;
    (void)ray_get_job(r->t->p.ray, r->plan.ray_id, trials_on_asked, r);
}

/* ---- the files ---- */

static void trials_run_make(void *arg)
{
    struct trial_run *r = arg;
    r->result = trialplan_make(&r->plan, &r->err);
}

static void trials_done_make(void *arg)
{
    struct trial_run *r = arg;
    if (r->plan.made)
        r->plan.is_new = false;
    if (r->l)
        r->l->has_dir |= r->plan.made;
    if (!trials_goes_on(r))
        return;
    if (r->result == ERR_BAD_SPEC || r->result == ERR_CONFLICT ||
        r->result == -ELOOP) { /* a link is in its directory, or that is another's */
        trials_refuse(r);
    } else if (r->result < 0) {
        trials_say_why(r, &r->err); /* the shared root: it may come back */
    } else if (r->plan.is_over) {
        take_result(r);
    } else {
        r->phase = ASK;
        trials_ask(r);
    }
}

static void trials_run_look(void *arg)
{
    struct trial_run *r = arg;
    r->result = trialplan_look(&r->plan, &r->err);
}

static void trials_done_look(void *arg)
{
    struct trial_run *r = arg;
    if (!trials_goes_on(r))
        return;
    if (r->result > 0)
        take_result(r);
    else if (r->result < 0)
        trials_lose_by(r, &r->err);
    else if (clock_mono() - r->asked >= ASK_EVERY)
        trials_ask(r);
}

/* ---- each second ---- */

static void trials_begin(struct trials *t, struct live *l)
{
    const struct job *j = l->job;
    struct trial_run *r = xcalloc(1, sizeof(*r));
    *r = (struct trial_run){.next = t->runs, .t = t, .l = l};
    r->plan = (struct trialplan){.settings = t->p.settings,
                                 .spec = xstrdup(j->spec),
                                 .id = xstrdup(j->id),
                                 .user = xstrdup(j->user),
                                 .ray_id = job_trial_id(j),
                                 .is_new = !l->has_dir,
                                 .inputs = xstrdup(l->extra.inputs),
                                 .snapshots = xstrdup(l->extra.snapshots)};
    t->runs = r;
    t->n++;
    tried_of(l)->run = r;
    secrets_derive(t->p.secrets, "trial", r->plan.key);
    jobs_busy(l);
    trials_say(r, "trial_begins", "{}");
    if (secretcheck_open(t->p.secrets, t->p.settings, j, &r->plan.secrets, &r->err) < 0)
        trials_refuse(r); /* a secret was removed */
}

static void step(struct trial_run *r)
{
    if (r->busy)
        return;
    if (r->phase == ASK) {
        if (clock_mono() - r->asked >= USEC_SEC)
            trials_ask(r);
        return;
    }
    r->busy = true;
    work_start(r->t->p.loop, r->phase == PLAN ? trials_run_make : trials_run_look,
               r->phase == PLAN ? trials_done_make : trials_done_look, r);
}

void trials_act(struct trials *t, struct live *l)
{
    const struct tried *tried = live_kept(l, LIVE_TRIAL);
    bool is_taken = tried && (tried->run || tried->is_failed);
    if (!trials_may_begin(t) || is_taken || t->n >= AT_ONCE || trials_is_empty(t, l))
        return;
    trials_begin(t, l);
    struct trial_run *r = tried_of(l)->run;
    if (r) /* else it was refused */
        step(r);
}

/* The oldest first, as long as there are places; where the last walk ended if it found none. */
static void trials_fill(struct trials *t, const struct jobs *jobs)
{
    struct live *l = NULL;
    int n = 0;
    while (t->n < AT_ONCE && n++ < LOOKS && (l = jobs_next_untried(jobs, &t->pos)))
        if (!l->act_queued)
            trials_act(t, l);
    if (!l || t->n >= AT_ONCE)
        t->pos = 0;
}

void trials_tick(struct trials *t, const struct jobs *jobs)
{
    if (!trials_may_begin(t))
        return;
    for (struct trial_run *r = t->runs; r; r = r->next)
        if (trials_is_wanted(r) && !r->l->act_queued)
            step(r);
    trials_fill(t, jobs);
}

static void trials_on_stopped(enum ray_stop_outcome outcome, const struct err *err, void *arg)
{
    (void)arg;
    if (outcome == RAY_STOP_UNKNOWN)
        log_debug("trial", "a trial was not stopped: %s", err->text);
}

void trials_drop(struct trials *t, struct live *l)
{
    const struct tried *tried = live_kept(l, LIVE_TRIAL);
    struct trial_run *r = tried ? tried->run : NULL;
    if (!r)
        return;
    if (r->phase != PLAN && !t->closed)
        (void)ray_stop_job(t->p.ray, r->plan.ray_id, trials_on_stopped, NULL);
    trials_let_go(r);
}
