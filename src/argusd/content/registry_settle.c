/* SPDX-License-Identifier: Apache-2.0 */
/* registry_settle.c - imports under way: how far they are, what becomes of them, and the bytes of
 * what is removed; see registry.h.
 *
 * Every two seconds each entry that is not at rest is looked at: its job's state says what is owed.
 * All of it can be done twice: a result is read again, a tree that is gone is swept again. */
#include <stdlib.h>
#include <string.h>

#include "argusd/content/registry.h"
#include "argusd/ground/work.h"
#include "base/log.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/tree/rootfile.h"
#include "fsroot/tree/sweep.h"

enum { PROGRESS_MAX = 4096 };

enum chore { CHORE_PROGRESS, CHORE_TAKE, CHORE_SWEEP };

/* One call in the worker pool. */
struct errand {
    struct registry *rg;
    struct registry_entry *e; /* busy: it stays */
    enum chore chore;
    bool succeeded; /* CHORE_TAKE: its job did */
    const char *root;
    char *staging, *goal;    /* goal: NULL when its bytes are not ours */
    char *progress, *result; /* files */
    char *text;              /* of progress */
    struct registry_result found;
    struct err err;
    int r;
};

static void errand_free(struct errand *x)
{
    char *texts[] = {x->staging, x->goal, x->progress, x->result, x->text};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    registry_result_release(&x->found);
    free(x);
}

/* ---- on a worker thread ---- */

static void read_progress(struct errand *x)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(PROGRESS_MAX);
    _cleanup_(json_unrefp) json_t *o = NULL;
    x->r = rootfile_read(x->root, x->progress, &text, &x->err);
    if (x->r == 0)
        x->r = json_parse(buf_str(&text), text.len, PROGRESS_MAX, &o, &x->err);
    if (x->r == 0 && json_is_object(o))
        x->text = json_dumps(o, JSON_COMPACT);
}

static void registry_settle_read_result(struct errand *x)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(REGISTRY_RESULT_MAX);
    x->r = rootfile_read(x->root, x->result, &text, &x->err);
    if (x->r == -ENOENT)
        x->r = message_refuse(&x->err, ERR_NOT_FOUND, "job_without_result", MESSAGE_NO_ARGS);
    if (x->r == 0)
        x->r = registry_result_read(buf_str(&text), text.len, &x->found, &x->err);
}

static void registry_settle_sweep(struct errand *x, bool goal_too)
{
    int r = fsroot_sweep(x->root, x->staging, &x->err);
    if (r == 0 && goal_too && x->goal)
        r = fsroot_sweep(x->root, x->goal, &x->err);
    if (r < 0)
        x->r = r;
}

static void registry_settle_run(void *arg)
{
    struct errand *x = arg;
    struct err why;
    switch (x->chore) {
    case CHORE_PROGRESS:
        read_progress(x);
        break;
    case CHORE_TAKE:
        registry_settle_read_result(x);
        if (x->r == 0 && !x->found.ok && !*x->found.error)
            text_copy(x->found.error, "it failed");
        x->succeeded = x->succeeded && x->r == 0 && x->found.ok;
        why = x->err;
        registry_settle_sweep(x, !x->succeeded);
        if (why.code < 0)
            x->err = why;
        break;
    case CHORE_SWEEP:
        registry_settle_sweep(x, true);
        break;
    }
}

/* ---- on the loop ---- */

static void registry_settle_tell(struct registry *rg,
                                 const struct registry_entry *e,
                                 const char *verb,
                                 const char *text)
{
    char said[JOB_REASON_TEXT_MAX];
    _cleanup_(freep) char *kind = xasprintf("%s_%s", registry_kind_word(e->kind), verb);
    _cleanup_(freep) char *object = xasprintf("%s/%s", registry_kind_word(e->kind), e->key);
    struct access_thing thing = registry_thing(e);
    struct events_note note = {.thing = &thing,
                               .kind = kind,
                               .actor = e->owner,
                               .object = object,
                               .code = kind,
                               .text = text};
    events_add(rg->p.events, &note, clock_wall());
    message_to_string(kind, text, true, said, sizeof(said));
    log_info("registry", "%s: %s %s=%s", verb, said, registry_kind_word(e->kind), e->key);
}

static void registry_settle_tell_failed(struct registry *rg,
                                        const struct registry_entry *e,
                                        const struct message_arg *why)
{
    char text[JOB_REASON_TEXT_MAX];
    message_write(text, sizeof(text), why);
    registry_settle_tell(rg, e, "import_failed", text);
}

/* As it is now: others may have come since its job began. Its bytes go as those of one that is
 * removed. */
static bool registry_settle_is_over_quota(const struct errand *x)
{
    struct registry_entry *e = x->e;
    struct err err = {0};
    uint64_t bytes = (uint64_t)x->found.bytes;
    if (e->in_place || storage_check(x->rg->p.storage, e->owner, e->project, bytes, &err) == 0)
        return false;
    registry_settle_tell_failed(x->rg, e, MESSAGE_ARGS(MESSAGE_ERR("why", &err)));
    registry_remove(x->rg, e);
    return true;
}

static void registry_settle_take(struct errand *x)
{
    struct registry_entry *e = x->e;
    if (!x->succeeded && !*x->found.error && !x->err.code) /* it ended well, and was stopped */
        (void)message_refuse(&x->err, ERR_REFUSED, "maker_failed",
                             MESSAGE_ARGS(MESSAGE_STR("job", e->job))); /* only fills it */
    if (!x->succeeded) {
        registry_settle_tell_failed(x->rg, e,
                                    *x->found.error
                                        ? MESSAGE_ARGS(MESSAGE_STR("why", x->found.error))
                                        : MESSAGE_ARGS(MESSAGE_ERR("why", &x->err)));
        registry_drop(x->rg, e);
        return;
    }
    if (registry_settle_is_over_quota(x))
        return;
    e->state = REGISTRY_ready;
    set_str(&e->hash, x->found.hash);
    if (*x->found.revision)
        set_str(&e->revision, x->found.revision);
    e->bytes = x->found.bytes;
    e->files = x->found.files;
    json_decref(e->about);
    e->about = json_incref(x->found.about);
    set_str(&e->progress, NULL);
    registry_save(x->rg, e);
    registry_settle_tell(x->rg, e, "imported", "{}");
}

static void registry_settle_done(void *arg)
{
    struct errand *x = arg;
    struct registry_entry *e = x->e;
    e->busy = false;
    if (x->rg->closed) {
        errand_free(x);
        return;
    }
    switch (x->chore) {
    case CHORE_PROGRESS:
        if (x->text)
            set_str(&e->progress, x->text);
        break;
    case CHORE_TAKE:
        registry_settle_take(x);
        break;
    case CHORE_SWEEP:
        if (x->r < 0) {
            log_warn("registry", "%s", x->err.text); /* the next turn tries again */
        } else {
            registry_settle_tell(x->rg, e, "removed", "{}");
            registry_drop(x->rg, e);
        }
        break;
    }
    errand_free(x);
}

static void registry_settle_begin(struct registry *rg,
                                  struct registry_entry *e,
                                  enum chore chore,
                                  bool succeeded)
{
    struct errand *x = xcalloc(1, sizeof(*x));
    const char *job = str_or(e->job, "none");
    _cleanup_(freep) char *report = registry_report(rg->p.settings, job);
    *x = (struct errand){.rg = rg,
                         .e = e,
                         .chore = chore,
                         .root = rg->p.settings->shared_root,
                         .succeeded = succeeded,
                         .staging = registry_staging(rg->p.settings, e),
                         .goal = e->in_place ? NULL : xstrdup(e->path),
                         .progress = xasprintf("%s/progress.json", report),
                         .result = xasprintf("%s/result.json", report)};
    e->busy = true;
    work_start(rg->p.loop, registry_settle_run, registry_settle_done, x);
}

/* The job that made its files is over: its row is the next job's from now on, or it goes as one
 * that is removed. The files are the job's own and stay. */
static void registry_settle_made(struct registry *rg, struct registry_entry *e, bool succeeded)
{
    struct err err = {0};
    if (succeeded && rg->made(e, rg->made_arg, &err) == 0) {
        registry_save(rg, e);
        return;
    }
    if (!succeeded)
        (void)message_refuse(&err, ERR_REFUSED, "maker_failed",
                             MESSAGE_ARGS(MESSAGE_STR("job", e->job))); /* only fills err */
    registry_settle_tell_failed(rg, e, MESSAGE_ARGS(MESSAGE_ERR("why", &err)));
    registry_remove(rg, e);
}

static void registry_settle_over(struct registry *rg, struct registry_entry *e, bool succeeded)
{
    if (e->is_made)
        registry_settle_made(rg, e, succeeded);
    else
        registry_settle_begin(rg, e, CHORE_TAKE, succeeded);
}

/* A job that is over, and that nobody has in memory any more. */
struct lookup {
    struct registry *rg;
    struct registry_entry *e;
};

static void found_job(const struct store_result *r, void *arg)
{
    struct lookup *k = arg;
    struct registry *rg = k->rg;
    struct registry_entry *e = k->e;
    bool none = r->err.code == ERR_NOT_FOUND;
    const struct store_job *j = r->err.code == 0 && r->njobs == 1 ? &r->jobs[0] : NULL;
    bool over =
        j && str_eq(j->id, e->job) && job_state_is_terminal(job_state_from_string(j->state));
    free(k);
    e->busy = false;
    if (!rg->closed && (none || over))
        registry_settle_over(rg, e, over && str_eq(j->state, job_state_to_string(JOB_SUCCEEDED)));
}

static void registry_settle_look_up(struct registry *rg, struct registry_entry *e)
{
    struct lookup *k = xcalloc(1, sizeof(*k));
    struct store_job_ref ref = {.ref = e->job, .is_id = true};
    struct store_then then = {.done = found_job, .arg = k};
    *k = (struct lookup){rg, e};
    e->busy = true;
    if (!store_find_job(rg->p.store, &ref, &then))
        log_debug("registry", "the store is closing job=%s", e->job);
}

static void registry_settle_entry(struct registry *rg,
                                  struct registry_entry *e,
                                  const struct live *l)
{
    /* Whoever takes an import away takes it away, though its job ended well in that very moment. */
    bool succeeded = l->job->state == JOB_SUCCEEDED;
    if (store_durable(rg->p.store) >= l->end_batch)
        registry_settle_over(rg, e, succeeded && l->job->stop_cause != STOP_USER);
}

static void turn_import(struct registry *rg, struct registry_entry *e)
{
    const struct live *l = jobs_find_any(rg->jobs, e->job);
    if (!l)
        registry_settle_look_up(rg, e);
    else if (l->over)
        registry_settle_entry(rg, e, l);
    else if (l->job->state == JOB_RUNNING && !e->is_made)
        registry_settle_begin(rg, e, CHORE_PROGRESS, false);
}

static void turn_entry(struct registry *rg, struct registry_entry *e)
{
    if (e->busy)
        return;
    if (e->state == REGISTRY_importing)
        turn_import(rg, e);
    else if (e->state == REGISTRY_removing &&
             store_durable(rg->p.store) >= store_batch(rg->p.store))
        registry_settle_begin(rg, e, CHORE_SWEEP, false);
}

/* Nothing is done while the root is away: what cannot be read then is not lost. */
static bool registry_settle_is_blind(const struct registry *rg)
{
    return rg->closed || !cluster_root_is_ok(rg->p.cluster) || cluster_root_hangs(rg->p.cluster) ||
           store_is_failing(rg->p.store);
}

void registry_turn(struct registry *rg)
{
    struct registry_entry *e;
    if (registry_settle_is_blind(rg))
        return;
    for (int i = 0; i < REGISTRY_KINDS; i++)
        for (size_t pos = 0; (e = registry_next(rg, (enum registry_kind)i, &pos));)
            turn_entry(rg, e);
}

void registry_saw(struct registry *rg, const struct live *l)
{
    struct registry_entry *e;
    if (registry_settle_is_blind(rg) || !l->over)
        return;
    for (int i = 0; i < REGISTRY_KINDS; i++)
        for (size_t pos = 0; (e = registry_next(rg, (enum registry_kind)i, &pos));)
            if (e->state == REGISTRY_importing && !e->busy && !e->is_made &&
                str_eq(e->job, l->job->id))
                registry_settle_entry(rg, e, l);
}
