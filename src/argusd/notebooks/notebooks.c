/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks.c - see notebooks.h: which notebooks are to run, the job of each, and when one is
 * stopped because nobody uses it.
 *
 * Whatever ends the job ends the run: a notebook is started again by people, never by argusd. While
 * the scheduler takes the machine back, the job waits in the queue, and the notebook with it. */
#include "argusd/notebooks/notebooks.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/figures/figures.h"
#include "argusd/ground/jobspec.h"
#include "argusd/notebooks/notebooks_state.h"
#include "argusd/submit/submit.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/notebook/notebook_idle.h"
#include "fsroot/attempt/install.h"

enum { TICK_MS = 1000, SPEC_TEXT_MAX = 64 << 10, SUBMIT_AGAIN_S = 5 };
static const usec_t GPU_SPAN = USEC_MIN, RECORD_LATE = USEC_MIN;
static const double GPU_BUSY = 0.03; /* of a GPU: its use is a ratio */

#define X(e) [NOTEBOOK_##e] = #e,
const char *const notebook_state_words[] = {NOTEBOOK_STATE_TABLE(X) NULL};
#undef X

/* ---- who is told ---- */

struct access_thing notebook_thing(const struct notebook *n)
{
    return (struct access_thing){
        .kind = ACCESS_KIND_NOTEBOOK, .name = n->name, .owner = n->owner, .project = n->project};
}

void notebook_note(const struct noted *x,
                   const char *kind,
                   const char *actor,
                   const char *code,
                   const char *text)
{
    struct access_thing thing = notebook_thing(&x->n);
    _cleanup_(freep) char *object = xasprintf("notebook/%s/%s", x->n.owner, x->n.name);
    const struct events_note note = {.kind = kind,
                                     .actor = actor,
                                     .code = code,
                                     .text = text,
                                     .thing = &thing,
                                     .object = object};
    events_add(x->of->a->events, &note, clock_wall());
}

static void notebook_changed(struct noted *x)
{
    x->n.changed_at = clock_wall();
    notebook_save(x);
}

static void notebook_set_reason(struct noted *x, const char *code, const char *text)
{
    text_copy(x->reason.code, str_or(code, ""));
    text_copy(x->reason.text, str_or(text, ""));
}

/* ---- its job ---- */

static struct live *notebook_live(const struct noted *x)
{
    struct live *l = x->n.job ? jobs_find_any(x->of->a->jobs, x->n.job) : NULL;
    return l && !l->over ? l : NULL;
}

enum notebook_state notebook_state_of(const struct noted *x)
{
    const struct live *l = notebook_live(x);
    if (!x->n.wanted)
        return x->n.job ? NOTEBOOK_STOPPING : x->n.failed ? NOTEBOOK_FAILED : NOTEBOOK_STOPPED;
    if (!l || (l->job->state != JOB_RUNNING && l->job->state != JOB_STOPPING))
        return NOTEBOOK_WAITING;
    if (l->job->state == JOB_STOPPING)
        return NOTEBOOK_STOPPING;
    return x->report.port ? NOTEBOOK_READY : NOTEBOOK_STARTING;
}

enum notebook_phase notebook_phase_of(const struct noted *x)
{
    const struct live *l = notebook_live(x);
    if (!x->n.wanted || (l && l->job->state == JOB_STOPPING))
        return NOTEBOOK_PHASE_NONE;
    if (!l || l->job->state == JOB_QUEUED)
        return NOTEBOOK_PHASE_QUEUED;
    bool is_heard = l->job->state == JOB_RUNNING && x->report.attempt == l->job->n_attempts;
    return is_heard ? x->report.phase : NOTEBOOK_PHASE_PLACED;
}

/* It does not run any more, and nobody waits for it. */
static void notebook_end(struct noted *x, bool failed, const char *code, const char *text)
{
    x->n.wanted = false;
    x->n.failed = failed;
    set_str(&x->n.code, code);
    set_str(&x->n.text, text);
    notebook_changed(x);
    notebook_note(x, failed ? "notebook_failed" : "notebook_ended", "argusd", code, text);
}

static void notebook_on_submitted(struct live *l, const struct err *err, void *arg)
{
    struct noted *x = arg;
    x->submit = NULL;
    if (l) {
        set_str(&x->n.job, l->job->id);
        notebook_save(x); /* in the batch of the job's own row */
        return;
    }
    const char *code = err->message ? err->message : "serve_said";
    const char *text = err->message ? err->args : err->text;
    notebook_set_reason(x, code, text);
    if (err->code == ERR_BUSY || err->code == ERR_UNAVAILABLE || err->code == ERR_NOT_YET ||
        err->code == ERR_STORE)
        x->again_at = clock_mono() + SUBMIT_AGAIN_S * USEC_SEC;
    else
        notebook_end(x, true, code, text);
}

static void notebook_submit(struct noted *x, usec_t now)
{
    struct api *a = x->of->a;
    struct buf out = BUF_INIT(SPEC_TEXT_MAX);
    if (x->submit || now < x->again_at)
        return;
    _cleanup_(freep) char *lib = fsroot_lib_dir(a->settings->shared_root);
    _cleanup_(freep) char *tool = xasprintf("%s/argus_notebook.py", lib);
    _cleanup_(freep) char *home = jobspec_user_root(a->settings, x->n.owner);
    const struct notebook_place at = {.tool = tool,
                                      .home = home,
                                      .ports = &a->settings->ports.v[PORTS_NOTEBOOK],
                                      .pip_index_url = a->settings->pip_index_url,
                                      .pip_trusted_host = a->settings->pip_trusted_host};
    notebook_write_job(&x->n, &at, &out);
    struct submit_own own = {.spec = buf_take(&out), .done = notebook_on_submitted, .arg = x};
    own.who.role = HTTP_ROLE_USER;
    text_copy(own.who.user, x->n.owner); /* whose code runs is whose right and quota it is */
    submit_own(a, &own, &x->submit);     /* it may be done already */
}

/* Its job has ended in this state; "": nobody knows the job any more. */
static void notebook_lease_ended(struct noted *x, const char *state)
{
    char args[256];
    /* Whoever sees the notebook may hear the id: it is no name of somebody else's job. */
    message_write(args, sizeof(args),
                  MESSAGE_ARGS(MESSAGE_STR("lease", x->n.job), MESSAGE_STR("state", state)));
    bool failed = !str_eq(state, job_state_to_string(JOB_STOPPED));
    notebook_forget(x);
    set_str(&x->n.job, NULL);
    if (x->n.wanted)
        notebook_end(x, failed, "notebook_job_ended", args);
    else
        notebook_changed(x);
}

static void notebook_on_past_job(const struct store_result *r, void *arg)
{
    struct noted *x = arg;
    const struct store_job *j = r->err.code == 0 && r->njobs == 1 ? &r->jobs[0] : NULL;
    x->read = NULL;
    if (x->of->closing)
        return;
    if (r->err.code == ERR_NOT_FOUND)
        notebook_lease_ended(x, "");
    else if (j && job_state_is_terminal(job_state_from_string(j->state)))
        notebook_lease_ended(x, j->state);
    /* else the next turn asks again */
}

void notebook_forget_past_job(struct noted *x)
{
    if (x->read)
        store_read_cancel(x->read);
    x->read = NULL;
}

/* Its job is over. Once its end is on disk the store alone knows how it went. */
static void notebook_see_end(struct noted *x)
{
    const struct live *l = jobs_find_any(x->of->a->jobs, x->n.job);
    const struct store_job_ref ref = {.ref = x->n.job, .is_id = true};
    const struct store_then then = {.done = notebook_on_past_job, .arg = x};
    if (l)
        notebook_lease_ended(x, job_state_to_string(l->job->state));
    else if (!x->read)
        x->read = store_find_job(x->of->a->store, &ref, &then);
}

static void notebook_stop_job(const struct noted *x)
{
    const char *code = x->n.code ? x->n.code : "notebook_released";
    const struct job_event e = {
        .kind = JOB_EV_STOP, .cause = STOP_USER, .code = code, .text = str_or(x->n.text, "{}")};
    struct live *l = notebook_live(x);
    if (l && l->job->state != JOB_STOPPING)
        (void)jobs_apply(l, &e, "argusd", clock_wall()); /* it may end of itself meanwhile */
}

/* ---- idle ---- */

const char *notebooks_of_job(const struct notebooks *ns, const char *job, usec_t *ret_left)
{
    const struct noted *x;
    for (size_t pos = 0; (x = notebooks_next(ns, &pos));) {
        if (!str_eq(x->n.job, job))
            continue;
        if (x->warned_at && x->left)
            *ret_left = x->left;
        return x->n.name;
    }
    return NULL;
}

/* A GPU of its own works, whatever Jupyter says. Of a part of a GPU nobody knows whose work it is:
 * there the processes' CPU time speaks. */
static bool notebook_gpu_works(const struct noted *x, const struct live *l)
{
    if (x->n.gpus < 1)
        return false;
    struct figures_window use =
        figures_gang(x->of->a->figures, &l->job->gang, FIGURE_GPU_UTIL, GPU_SPAN);
    return use.n > 0 && use.max > GPU_BUSY;
}

static void notebook_warn(struct noted *x, usec_t now)
{
    char args[64];
    message_write(
        args, sizeof(args),
        MESSAGE_ARGS(MESSAGE_NUM("minutes", (double)((x->left + USEC_MIN - 1) / USEC_MIN))));
    x->warned_at = now;
    notebook_note(x, "notebook_idle", "argusd", "notebook_idle", args);
}

static void notebook_watch_idle(struct noted *x, const struct live *l, usec_t now)
{
    usec_t wall = clock_wall();
    /* A record that is not written any more (a full disk) does not tell that nobody is there. */
    bool is_told = x->heard_at && now - x->heard_at < RECORD_LATE;
    if (!x->active_at || !is_told || x->report.is_busy || notebook_gpu_works(x, l))
        x->active_at = now;
    if (x->warned_at && x->active_at > x->warned_at)
        x->warned_at = 0; /* somebody is back */
    const struct notebook_use use = {.limit = x->n.idle,
                                     .quiet = now - x->active_at,
                                     .kept = x->n.keep_until > wall ? x->n.keep_until - wall : 0,
                                     .warned = x->warned_at ? now - x->warned_at + 1 : 0};
    enum notebook_idle is = notebook_idle_judge(&use, &x->left);
    if (is == NOTEBOOK_WARNED && !x->warned_at)
        notebook_warn(x, now);
    if (is == NOTEBOOK_IN_USE)
        x->warned_at = 0;
    if (is == NOTEBOOK_OVERDUE) {
        char args[64];
        message_write(args, sizeof(args),
                      MESSAGE_ARGS(MESSAGE_NUM("minutes", (double)(use.quiet / USEC_MIN))));
        notebooks_stop(x->of, x, "argusd", "notebook_was_idle", args);
    }
}

/* ---- turns ---- */

static void notebook_say_why(struct noted *x, const struct live *l)
{
    static const char *const says[NOTEBOOK_PHASES] = {
        [NOTEBOOK_PHASE_PLACED] = "notebook_begins",
        [NOTEBOOK_PHASE_ENVIRONMENT] = "notebook_prepares",
        [NOTEBOOK_PHASE_SERVER] = "notebook_starts",
    };
    int position;
    if (l && l->job->state != JOB_RUNNING)
        jobs_reason(l, &x->reason, &position);
    else if (l)
        notebook_set_reason(x, says[notebook_phase_of(x)], "{}");
}

static void notebook_turn(struct noted *x, usec_t now)
{
    struct live *l = notebook_live(x);
    if (x->n.job && !l)
        notebook_see_end(x);
    if (!x->n.job && x->n.wanted)
        notebook_submit(x, now);
    if (!x->n.wanted)
        notebook_stop_job(x);
    else if (l)
        notebook_tell_interruption(x, l->job);
    bool runs = l && x->n.wanted && l->job->state == JOB_RUNNING && l->job->gang.n;
    if (runs)
        notebook_look(x, l, now);
    else
        notebook_forget(x);
    if (runs && x->report.port)
        notebook_watch_idle(x, l, now);
    notebook_say_why(x, l);
}

static void notebooks_on_tick(uv_timer_t *timer)
{
    struct notebooks *ns = timer->data;
    struct noted *x;
    usec_t now = clock_mono();
    if (ns->closing || store_check(ns->a->store, NULL) < 0)
        return; /* nothing that is begun could be written down */
    for (size_t pos = 0; (x = map_next(ns->by_key, &pos, NULL));)
        notebook_turn(x, now);
}

void notebooks_start(struct notebooks *ns)
{
    (void)uv_timer_init(ns->a->loop, &ns->timer); /* never fails */
    ns->timer.data = ns;
    ns->started = true;
    (void)uv_timer_start(&ns->timer, notebooks_on_tick, TICK_MS, TICK_MS); /* cannot fail */
}

void notebooks_close(struct notebooks *ns)
{
    struct noted *x;
    if (!ns || ns->closing)
        return;
    ns->closing = true;
    for (size_t pos = 0; (x = map_next(ns->by_key, &pos, NULL));) {
        submit_own_forget(x->submit);
        x->submit = NULL;
        notebook_forget_past_job(x);
    }
    if (ns->started)
        uv_close((uv_handle_t *)&ns->timer, NULL);
}

/* ---- what people change ---- */

int notebooks_run(struct notebooks *ns,
                  const struct noted *old,
                  struct notebook *taken,
                  const struct noted **ret,
                  struct err *err)
{
    struct noted *x = old ? notebook_own(ns, old) : NULL;
    if (x && (x->n.wanted || x->n.job))
        return message_refuse(err, ERR_CONFLICT, x->n.wanted ? "notebook_runs" : "notebook_ends",
                              MESSAGE_ARGS(MESSAGE_STR("name", x->n.name)));
    int r = notebooks_check_limits(ns, taken, !x, err);
    if (r == 0)
        r = secrets_need_key(ns->a->secrets, err); /* its token follows from it */
    if (r < 0)
        return r;
    if (!x) {
        taken->created_at = clock_wall();
        x = notebook_keep(ns, taken);
    } else {
        field_assign(&notebook_table, &x->n, taken, FIELD_ASKED);
    }
    x->n.wanted = true;
    x->n.failed = false;
    x->n.keep_until = 0;
    x->again_at = 0;
    set_str(&x->n.code, NULL);
    set_str(&x->n.text, NULL);
    notebook_forget_interruption(x);
    notebook_forget(x);
    notebook_changed(x);
    notebook_note(x, "notebook_started", x->n.owner, NULL, NULL);
    notebook_submit(x, clock_mono());
    *ret = x;
    return 0;
}

void notebooks_stop(struct notebooks *ns,
                    const struct noted *notebook,
                    const char *actor,
                    const char *code,
                    const char *text)
{
    struct noted *x = notebook_own(ns, notebook);
    if (!x->n.wanted)
        return;
    submit_own_forget(x->submit);
    x->submit = NULL;
    x->n.wanted = false;
    set_str(&x->n.code, code);
    set_str(&x->n.text, text);
    notebook_changed(x);
    notebook_note(x, "notebook_stopped", actor, code, text);
    notebook_stop_job(x);
}

void notebooks_extend(struct notebooks *ns,
                      const struct noted *notebook,
                      usec_t span,
                      const char *actor)
{
    struct noted *x = notebook_own(ns, notebook);
    x->n.keep_until = clock_wall() + span;
    notebook_changed(x);
    notebook_note(x, "notebook_extended", actor, NULL, NULL);
}

int notebooks_remove(struct notebooks *ns, const struct noted *notebook, struct err *err)
{
    struct noted *x = notebook_own(ns, notebook);
    if (x->n.wanted || x->n.job || x->reading)
        return message_refuse(err, ERR_CONFLICT, x->n.wanted ? "notebook_runs" : "notebook_ends",
                              MESSAGE_ARGS(MESSAGE_STR("name", x->n.name)));
    notebook_note(x, "notebook_removed", x->n.owner, NULL, NULL);
    notebook_drop(x);
    return 0;
}
