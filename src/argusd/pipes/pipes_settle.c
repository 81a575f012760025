/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_settle.c - how the job of a step ended, and what it left behind.
 *
 * The store is asked for the job's last row. Where it trained, its directory is looked at once more
 * for checkpoints before the step counts as ended; where it brings a model or a data set, the entry
 * has to be ready. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/checkpoints/checkpoints.h"
#include "argusd/ground/jobspec.h"
#include "argusd/kit/view.h"
#include "argusd/pipes/pipes_state.h"
#include "base/message.h"
#include "base/str.h"

enum { LEFT_MAX = 96 << 10, METRICS_MAX = 64 << 10 };

/* ---- what it left ---- */

static const struct ckpt *pipes_best(const struct spec *spec, const struct ckpt_list *list)
{
    const struct ckpt *best = NULL;
    bool wants_small = spec && spec->keep_best_mode != 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct ckpt *c = &list->v[i];
        if (c->state != CKPT_VERIFIED || !c->has_value)
            continue;
        if (!best || (wants_small ? c->value < best->value : c->value > best->value))
            best = c;
    }
    return best ? best : ckpt_list_newest(list);
}

static void pipes_put_checkpoint(struct jout *j,
                                 const struct pipe_life *r,
                                 const struct job *job,
                                 const char *key,
                                 const struct ckpt *c)
{
    const char *root = r->pipes->a->settings->shared_root;
    bool is_rl = str_eq(job->workload, "ppo") || str_eq(job->workload, "grpo");
    _cleanup_(freep) char *ref = xasprintf("%s@%" PRId64, job->id, c->step);
    _cleanup_(freep) char *path = xasprintf("%s/jobs/%s/checkpoints/global_step_%" PRId64 "%s",
                                            root, job->id, c->step, is_rl ? "/actor" : "");
    _cleanup_(freep) char *path_key = xasprintf("%s_path", key);
    jout_str(j, key, ref);
    jout_str(j, path_key, path);
}

/* The JSON object that expressions name. list may be NULL. Heap. */
static char *pipes_left(const struct pipe_life *r,
                        const struct job *job,
                        const char *metrics,
                        const struct ckpt_list *list)
{
    struct buf out = BUF_INIT(LEFT_MAX);
    struct jout j = jout_begin(&out);
    const struct spec *spec = jobspec_of(r->pipes->a->settings, job);
    const struct ckpt *newest = list ? ckpt_list_newest(list) : NULL;
    _cleanup_(freep) char *dir =
        xasprintf("%s/jobs/%s", r->pipes->a->settings->shared_root, job->id);
    jout_open(&j, NULL, '{');
    jout_str(&j, "job", job->id);
    jout_str(&j, "dir", dir);
    jout_open(&j, "checkpoint", '{');
    if (newest) {
        pipes_put_checkpoint(&j, r, job, "latest", newest);
        pipes_put_checkpoint(&j, r, job, "best", pipes_best(spec, list));
    }
    jout_close(&j, '}');
    jout_raw(&j, "metrics", str_or(metrics, "{}"));
    jout_close(&j, '}');
    return buf_take(&out);
}

/* The newest value of each metric, of what a job's row says of its training. Heap; NULL: nothing.
 */
static char *pipes_metrics(const struct record_extra *x)
{
    _cleanup_(json_unrefp) json_t *all = x->metrics ? json_loads(x->metrics, 0, NULL) : NULL;
    const json_t *latest = json_get_object(all, "latest");
    char *text = latest ? json_dumps(latest, JSON_COMPACT) : NULL;
    if (text && strlen(text) > METRICS_MAX)
        freep(&text);
    return text;
}

/* ---- how it ended ---- */

static enum pipe_state pipes_state_of(const struct pipe_life *r, size_t item, const struct job *job)
{
    const struct pipe_step *s = &r->pipe->steps[r->run.v[item].step];
    bool is_late = s->timeout && str_eq(job_state_reason(job)->code, "pipe_step_timeout");
    if (job->state == JOB_SUCCEEDED)
        return PIPE_SUCCEEDED;
    return job->state == JOB_STOPPED && !is_late ? PIPE_CANCELLED : PIPE_FAILED;
}

static void pipes_job_over(struct pipe_life *r,
                           size_t item,
                           const struct job *job,
                           const char *left)
{
    enum pipe_state state = pipes_state_of(r, item, job);
    char text[JOB_REASON_TEXT_MAX];
    const char *class = finding_class_to_string(job->finding);
    const char *said = job_state_to_string(job->state);
    if (state == PIPE_FAILED && job->finding)
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_STR("job", job->id), MESSAGE_STR("state", said),
                                   MESSAGE_STR("class", class)));
    else
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_STR("job", job->id), MESSAGE_STR("state", said)));
    pipes_item_over(r, item, state, left, state == PIPE_SUCCEEDED ? NULL : "pipe_job_ended",
                    state == PIPE_SUCCEEDED ? NULL : text);
    pipes_drive(r);
}

static void pipes_on_checkpoints(const struct checkpoints_answer *answer, void *arg)
{
    struct pipe_step_work *w = arg;
    struct pipe_life *r = w->run;
    size_t item = w->item;
    struct job *job = w->job;
    w->ask = NULL;
    w->job = NULL;
    _cleanup_(freep) char *left = pipes_left(r, job, w->metrics, answer->list);
    pipes_drop_work(r, item);
    pipes_job_over(r, item, job, left);
    job_free(job);
}

int pipes_entry_is_ready(const struct pipe_life *r, int uses, const char *job)
{
    enum registry_kind kind = uses == PIPE_USES_PUBLISH ? REGISTRY_MODEL : REGISTRY_DATASET;
    const struct registry_entry *e;
    for (size_t pos = 0; (e = registry_next(r->pipes->a->registry, kind, &pos));)
        if (str_eq(e->job, job))
            return e->state == REGISTRY_ready;
    return -1;
}

/* A publish or a preparation has left its entry, which was written down when it began. */
static void pipes_settle_entry(struct pipe_life *r, size_t item, const struct job *job)
{
    const struct pipe_item *i = &r->run.v[item];
    int ready = pipes_entry_is_ready(r, r->pipe->steps[i->step].uses, i->job);
    _cleanup_(freep) char *left = xstrdup(i->left);
    struct err err = {0};
    if (job->state == JOB_SUCCEEDED && ready == 0)
        return; /* asked again in a second */
    if (job->state == JOB_SUCCEEDED && ready < 0) {
        (void)message_refuse(&err, ERR_REFUSED, "pipe_entry_gone",
                             MESSAGE_ARGS(MESSAGE_STR("job", job->id))); /* only fills err */
        pipes_item_over(r, item, PIPE_FAILED, left, err.message, err.args);
        pipes_drive(r);
        return;
    }
    pipes_job_over(r, item, job, left);
}

static void pipes_settle_job(struct pipe_life *r,
                             size_t item,
                             struct job *taken_job,
                             const struct record_extra *x)
{
    const struct pipe_step *s = &r->pipe->steps[r->run.v[item].step];
    const struct api *a = r->pipes->a;
    _cleanup_(freep) char *metrics = pipes_metrics(x);
    bool trains = workload_word_trains(taken_job->workload);
    if (s->uses != PIPE_USES_JOB) {
        pipes_settle_entry(r, item, taken_job);
    } else if (!trains || cluster_root_hangs(a->cluster)) {
        _cleanup_(freep) char *left =
            pipes_left(r, taken_job, metrics, checkpoints_of(a->checkpoints, taken_job->id));
        pipes_job_over(r, item, taken_job, left);
    } else {
        struct pipe_step_work *w = pipes_begin_work(r, item);
        w->job = taken_job;
        w->metrics = metrics;
        metrics = NULL;
        w->ask = checkpoints_gc(a->checkpoints, taken_job, true, "argusd", pipes_on_checkpoints, w);
        return;
    }
    job_free(taken_job);
}

static void pipes_on_row(const struct store_result *result, void *arg)
{
    struct pipe_step_work *w = arg;
    struct pipe_life *r = w->run;
    size_t item = w->item;
    struct record_extra x = {0};
    struct err err = result->err;
    struct job *job = NULL;
    w->read = NULL;
    pipes_drop_work(r, item);
    if (!err.code && str_eq(result->jobs[0].id, r->run.v[item].job))
        if (record_to_job(&result->jobs[0], &job, &x, &err) < 0)
            job = NULL; /* err says why */
    if (job && job_state_is_terminal(job->state)) {
        r->run.v[item].gpu_hours = view_gpu_hours(result->jobs[0].gpu_held, NULL);
        pipes_settle_job(r, item, job, &x);
    } else {
        job_free(job);
        if (err.code == ERR_NOT_FOUND || err.code == -EINVAL) {
            pipes_item_over(r, item, PIPE_FAILED, NULL, err.message, err.message ? err.args : NULL);
            pipes_drive(r);
        }
    }
    record_extra_release(&x);
}

void pipes_settle(struct pipe_life *r, size_t item)
{
    struct pipe_step_work *w = pipes_begin_work(r, item);
    struct store_then then = {.done = pipes_on_row, .arg = w};
    struct store_job_ref ref = {.ref = r->run.v[item].job, .is_id = true};
    w->read = store_find_job(r->pipes->a->store, &ref, &then);
}
