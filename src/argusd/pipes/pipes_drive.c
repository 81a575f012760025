/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_drive.c - carries a run on: what core says is due is begun here, and what has ended is told
 * to core. A job of a step is submitted as the run's user would submit it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/checkpoints/checkpoints.h"
#include "argusd/imports/lineage.h"
#include "argusd/imports/registry_import.h"
#include "argusd/imports/registry_prepare.h"
#include "argusd/pipes/pipes_state.h"
#include "argusd/submit/submit.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { WITH_MAX = 256 << 10, AGAIN = 5 };

/* A publish between the look at the job whose output it is and the import. */
struct pipe_publish {
    struct pipe_step_work *work; /* NULL: nobody wants it any more */
    struct api *a;
    struct http_principal who;
    struct registry_form form;
    char *job; /* whose output it is; NULL: no job's */
};

/* ---- work under way ---- */

struct pipe_step_work *pipes_find_work(const struct pipe_life *r, size_t item)
{
    struct pipe_step_work *w = r->works;
    while (w && w->item != item)
        w = w->next;
    return w;
}

struct pipe_step_work *pipes_begin_work(struct pipe_life *r, size_t item)
{
    struct pipe_step_work *w = xcalloc(1, sizeof(*w));
    *w = (struct pipe_step_work){.run = r, .item = item, .next = r->works};
    r->works = w;
    return w;
}

void pipes_drop_work(struct pipe_life *r, size_t item)
{
    struct pipe_step_work **at = &r->works;
    while (*at && (*at)->item != item)
        at = &(*at)->next;
    struct pipe_step_work *w = *at;
    if (!w)
        return;
    *at = w->next;
    submit_own_forget(w->submit);
    if (w->read)
        store_read_cancel(w->read);
    checkpoints_unask(w->ask);
    pipes_sight_free(w->sight);
    if (w->publish)
        w->publish->work = NULL;
    job_free(w->job);
    free(w->metrics);
    free(w);
}

/* ---- what becomes of an item ---- */

static void pipes_say_item(const struct pipe_life *r, size_t item, int from)
{
    const struct pipe_item *i = &r->run.v[item];
    pipes_note(r, &(struct pipes_said){.kind = "pipeline_step",
                                       .actor = "argusd",
                                       .item = i->name,
                                       .from = pipe_state_names[from],
                                       .to = pipe_state_names[i->state],
                                       .code = i->code,
                                       .text = i->text});
}

void pipes_item_over(struct pipe_life *r,
                     size_t item,
                     enum pipe_state state,
                     const char *left,
                     const char *code,
                     const char *text)
{
    int from = r->run.v[item].state;
    pipe_run_ended(&r->run, item, state, left, code, text, clock_wall());
    pipes_say_item(r, item, from);
    pipes_save_run(r);
}

static void pipes_item_failed(struct pipe_life *r, size_t item, const struct err *err)
{
    const char *code = err->message;
    pipes_item_over(r, item, PIPE_FAILED, r->run.v[item].left, code ? code : "pipe_said",
                    code ? err->args : err->text);
}

/* What is refused for now waits and is tried again, and the try does not count. */
static void pipes_item_refused(struct pipe_life *r, size_t item, const struct err *err)
{
    struct pipe_item *i = &r->run.v[item];
    if (!submit_may_pass(err) || r->cancelled) {
        pipes_item_failed(r, item, err);
        return;
    }
    i->state = PIPE_WAITING;
    i->tries--;
    i->again_at = clock_wall() + AGAIN * USEC_SEC;
    set_str(&i->code, err->message);
    set_str(&i->text, err->message ? err->args : err->text);
    pipes_save_run(r);
}

/* ---- a job ---- */

struct http_principal pipes_principal(const struct pipe_life *r)
{
    struct http_principal p;
    if (people_admit_absent(r->pipes->a->people, r->user, &p, NULL) < 0)
        p.role = HTTP_ROLE_NONE;
    return p;
}

int pipes_admit(const struct pipes *ps, const char *user, struct err *err)
{
    struct http_principal p;
    return people_admit_absent(ps->a->people, user, &p, err);
}

static void pipes_has_job(struct pipe_life *r, size_t item, const char *job)
{
    struct pipe_item *i = &r->run.v[item];
    char text[JOB_REASON_TEXT_MAX];
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("job", job)));
    set_str(&i->job, job);
    pipes_note(r, &(struct pipes_said){.kind = "pipeline_job",
                                       .actor = "argusd",
                                       .item = i->name,
                                       .code = "pipe_job",
                                       .text = text});
    pipes_save_run(r);
}

static void pipes_on_submitted(struct live *l, const struct err *err, void *arg)
{
    struct pipe_step_work *w = arg;
    struct pipe_life *r = w->run;
    size_t item = w->item;
    pipes_drop_work(r, item);
    if (l) {
        pipes_has_job(r, item, l->job->id);
        return;
    }
    pipes_item_refused(r, item, err);
    pipes_drive(r);
}

/* The spec with the project and a name where it has none. */
static char *pipes_spec(const struct pipe_life *r, size_t item, const char *with)
{
    _cleanup_(json_unrefp) json_t *spec = json_loads(with, 0, NULL);
    _cleanup_(freep) char *name = xasprintf("%s-%s", r->pipeline, r->run.v[item].name);
    if (!spec || !json_is_object(spec))
        return xstrdup(with); /* the submit says what is wrong */
    if (!json_object_get(spec, "name") && strlen(name) <= SPEC_ID_MAX)
        (void)json_object_set_new(spec, "name", json_string(name)); /* both are there */
    if (!json_object_get(spec, "project") && *r->project)
        (void)json_object_set_new(spec, "project", json_string(r->project)); /* as above */
    return json_dumps(spec, JSON_COMPACT);
}

static void pipes_begin_job(struct pipe_life *r, size_t item, const char *with)
{
    struct pipe_step_work *w = pipes_begin_work(r, item);
    const struct submit_own own = {.who = pipes_principal(r),
                                   .spec = pipes_spec(r, item, with),
                                   .done = pipes_on_submitted,
                                   .arg = w};
    submit_own(r->pipes->a, &own, &w->submit); /* w may be gone behind it */
}

/* ---- a publish, a preparation ---- */

static void pipes_has_entry(struct pipe_life *r,
                            size_t item,
                            const char *key,
                            const struct registry_entry *e)
{
    char ref[REGISTRY_REF_MAX];
    json_t *left = json_pack("{s:s,s:s}", "job", str_or(e->job, ""), key, registry_ref(e, ref));
    char *text = json_dumps(left, JSON_COMPACT);
    json_decref(left);
    set_str(&r->run.v[item].left, text);
    free(text);
    pipes_has_job(r, item, e->job);
}

static void pipes_free_publish(struct pipe_publish *x)
{
    registry_form_release(&x->form);
    free(x->job);
    free(x);
}

static void pipes_publish(struct pipe_publish *x)
{
    struct pipe_life *r = x->work->run;
    size_t item = x->work->item;
    struct registry_entry *e = NULL;
    struct err err = {0};
    const char *field;
    x->work->publish = NULL;
    pipes_drop_work(r, item);
    if (registry_import(&x->a->importer, &x->who, REGISTRY_MODEL, &x->form, &e, &field, &err) == 0)
        pipes_has_entry(r, item, "model", e);
    else
        pipes_item_refused(r, item, &err);
    pipes_free_publish(x);
}

static void pipes_on_lineage(json_t *lineage, void *arg)
{
    struct pipe_publish *x = arg;
    if (!x->work) {
        json_decref(lineage);
        pipes_free_publish(x);
        return;
    }
    if (lineage) {
        registry_form_take_lineage(&x->form, x->job, lineage);
        x->job = NULL;
    }
    pipes_publish(x);
}

static int pipes_begin_publish(struct pipe_life *r, size_t item, const char *with, struct err *err)
{
    struct api *a = r->pipes->a;
    _cleanup_(freep) char *path = NULL;
    struct problems ps = {0};
    struct pipe_publish *x = xcalloc(1, sizeof(*x));
    *x = (struct pipe_publish){.a = a, .who = pipes_principal(r)};
    if (registry_form_read(with, strlen(with), &x->form, &ps) < 0) {
        (void)problem_to_err(problems_first(&ps), ERR_BAD_SPEC, err); /* only fills err */
        problems_release(&ps);
        pipes_free_publish(x);
        return ERR_BAD_SPEC;
    }
    problems_release(&ps);
    x->work = pipes_begin_work(r, item);
    x->work->publish = x;
    x->job = registry_source_job(&a->importer, &x->who, x->form.source, &path);
    if (x->job)
        lineage_find(&a->importer, &x->who, path, pipes_on_lineage, x);
    else
        pipes_publish(x);
    return 0;
}

static int pipes_begin_prepare(struct pipe_life *r, size_t item, const char *with, struct err *err)
{
    const struct importer *im = &r->pipes->a->importer;
    const struct http_principal p = pipes_principal(r);
    struct registry_preparation form = {0};
    struct problems ps = {0};
    struct registry_entry *e = NULL;
    const char *field;
    int x = registry_preparation_read(with, strlen(with), &form, &ps);
    if (x < 0)
        (void)problem_to_err(problems_first(&ps), ERR_BAD_SPEC, err); /* only fills err */
    if (x == 0)
        x = registry_prepare(im, &p, &form, &e, &field, err);
    if (x == 0)
        pipes_has_entry(r, item, "dataset", e);
    registry_preparation_release(&form);
    problems_release(&ps);
    return x;
}

/* ---- a check ---- */

static void pipes_check(struct pipe_life *r, size_t item, const char *with)
{
    _cleanup_(json_unrefp) json_t *all = json_loads(with, 0, NULL);
    const json_t *that = json_object_get(all, "that");
    const char *otherwise = json_get_str(all, "else", NULL);
    bool is_true = pipe_value_is_true(that) && !json_is_string(that);
    char text[JOB_REASON_TEXT_MAX];
    text_copy(text, "{}");
    if (otherwise)
        message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("else", otherwise)));
    pipes_item_over(r, item, is_true ? PIPE_SUCCEEDED : PIPE_FAILED,
                    is_true ? "{\"value\":true}" : "{\"value\":false}",
                    is_true ? NULL : "pipe_check_false", is_true ? NULL : text);
}

/* ---- what is due ---- */

enum pipes_take { PIPES_TAKE_NONE, PIPES_TAKE_DONE, PIPES_TAKE_LATER };

/* What an earlier run had made is gone: told while the step runs, and by the event. */
static void pipes_say_gone(struct pipe_life *r, size_t item, const struct pipes_earlier *e)
{
    struct pipe_item *i = &r->run.v[item];
    char text[JOB_REASON_TEXT_MAX];
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("path", e->gone), MESSAGE_STR("run", e->gone_in)));
    set_str(&i->code, "pipe_plan_gone");
    set_str(&i->text, text);
    pipes_say_item(r, item, PIPE_RUNNING);
}

static void pipes_take(struct pipe_life *r, size_t item, const struct pipes_earlier *e)
{
    struct pipe_item *i = &r->run.v[item];
    _cleanup_(freep) char *left = xstrdup(e->item->left);
    i->cached = true;
    set_str(&i->earlier, str_or(e->item->earlier, e->run->id));
    set_str(&i->job, e->item->job);
    pipes_item_over(r, item, PIPE_SUCCEEDED, left, "pipe_cached", "{}");
}

/* Does an earlier run stand in for it? LATER: what that run left has to be looked at first. */
static enum pipes_take pipes_take_earlier(struct pipe_life *r,
                                          size_t item,
                                          const char *with,
                                          struct pipes_sight *sight)
{
    struct pipe_item *i = &r->run.v[item];
    const struct pipe_step *s = &r->pipe->steps[i->step];
    struct pipes_earlier e = {0};
    enum pipes_take take = PIPES_TAKE_NONE;
    if (s->uses == PIPE_USES_CHECK)
        return PIPES_TAKE_NONE;
    bool is_told = pipes_hash_inputs(r, item, with, sight, NULL);
    if (is_told && !pipes_sight_is_open(sight) && s->cache && !r->force)
        pipes_find_earlier(r, s, i->hash, sight, &e);
    if (pipes_sight_is_open(sight)) {
        i->hash[0] = 0;
        take = PIPES_TAKE_LATER;
    } else if (e.item) {
        pipes_take(r, item, &e);
        take = PIPES_TAKE_DONE;
    } else if (e.gone) {
        pipes_say_gone(r, item, &e);
    }
    pipes_earlier_release(&e);
    return take;
}

static int pipes_begin_uses(struct pipe_life *r, size_t item, const char *with, struct err *err)
{
    const struct pipe_step *s = &r->pipe->steps[r->run.v[item].step];
    pipes_save_run(r);
    if (s->uses == PIPE_USES_PUBLISH)
        return pipes_begin_publish(r, item, with, err);
    if (s->uses == PIPE_USES_DEPLOY)
        return pipes_begin_deploy(r, item, with, err);
    if (s->uses == PIPE_USES_PREPARE)
        return pipes_begin_prepare(r, item, with, err);
    if (s->uses == PIPE_USES_JOB)
        pipes_begin_job(r, item, with);
    else
        pipes_check(r, item, with);
    return 0;
}

static void pipes_go_on_item(struct pipe_life *r, size_t item, struct pipes_sight *taken_sight);

static void pipes_on_seen(void *arg)
{
    struct pipe_step_work *w = arg;
    struct pipe_life *r = w->run;
    size_t item = w->item;
    struct pipes_sight *sight = w->sight;
    w->sight = NULL;
    pipes_drop_work(r, item);
    pipes_go_on_item(r, item, sight);
    pipes_drive(r);
}

/* It is RUNNING, and has neither a job nor an earlier one yet. A restart begins it again. */
static void pipes_go_on_item(struct pipe_life *r, size_t item, struct pipes_sight *taken_sight)
{
    struct buf with = BUF_INIT(WITH_MAX);
    struct err err = {0};
    enum pipes_take take = PIPES_TAKE_NONE;
    int x = pipes_admit(r->pipes, r->user, &err);
    if (x == 0)
        x = pipe_run_fill(&r->run, item, &with, &err);
    if (x == 0)
        take = pipes_take_earlier(r, item, buf_str(&with), taken_sight);
    if (take == PIPES_TAKE_LATER) {
        struct pipe_step_work *w = pipes_begin_work(r, item);
        w->sight = taken_sight;
        pipes_sight_look(w->sight, r->user, pipes_on_seen, w);
    } else {
        pipes_sight_free(taken_sight);
        if (x == 0 && take == PIPES_TAKE_NONE)
            x = pipes_begin_uses(r, item, buf_str(&with), &err);
    }
    if (x < 0)
        pipes_item_refused(r, item, &err);
    buf_release(&with);
}

static void pipes_begin_item(struct pipe_life *r, size_t item)
{
    pipe_run_started(&r->run, item, NULL, clock_wall());
    set_str(&r->run.v[item].left, NULL); /* of the try before */
    pipes_say_item(r, item, PIPE_WAITING);
    pipes_go_on_item(r, item, pipes_sight_new(r->pipes->a));
    const struct pipe_step_work *w = pipes_find_work(r, item);
    if (w && w->sight)
        pipes_save_run(r); /* once, and not in each round of the look */
}

void pipes_drive(struct pipe_life *r)
{
    size_t item;
    usec_t now = clock_wall();
    if (r->pipes->closing || !r->started_at || r->ended_at)
        return;
    for (enum pipe_act act; (act = pipe_run_next(&r->run, now, &item)) != PIPE_ACT_NONE;) {
        if (act == PIPE_ACT_START) {
            pipes_begin_item(r, item);
            continue;
        }
        pipe_run_skip(&r->run, item, now);
        pipes_say_item(r, item, PIPE_WAITING);
        pipes_save_run(r);
    }
    /* A submit that is refused at once drives the run from within: it may be over already. */
    if (!r->ended_at && pipe_run_state(&r->run) != PIPE_RUNNING)
        pipes_run_over(r);
}

/* ---- as time passes ---- */

static void pipes_stop_job(struct live *l, const char *actor, const char *code, const char *text)
{
    struct job_event e = {.kind = JOB_EV_STOP, .cause = STOP_USER, .code = code, .text = text};
    (void)jobs_apply(l, &e, actor, clock_wall()); /* it may be stopping already */
}

void pipes_stop_jobs(struct pipe_life *r, const char *actor)
{
    char text[JOB_REASON_TEXT_MAX];
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("run", r->id)));
    for (size_t i = 0; i < r->run.n; i++) {
        struct pipe_item *item = &r->run.v[i];
        struct live *l = item->job ? jobs_find_id(r->pipes->a->jobs, item->job) : NULL;
        if (item->state != PIPE_RUNNING)
            continue;
        if (l)
            pipes_stop_job(l, actor, "pipe_run_cancelled", text);
        else if (!item->job) {
            pipes_drop_work(r, i);
            if (r->pipe->steps[item->step].uses == PIPE_USES_DEPLOY)
                pipes_call_off(r, i, actor);
            pipes_item_over(r, i, PIPE_CANCELLED, NULL, NULL, NULL);
        }
    }
}

static void pipes_look_item(struct pipe_life *r, size_t item, usec_t now)
{
    struct pipe_item *i = &r->run.v[item];
    const struct pipe_step *s = &r->pipe->steps[i->step];
    struct live *l = i->job ? jobs_find_any(r->pipes->a->jobs, i->job) : NULL;
    char text[JOB_REASON_TEXT_MAX];
    if (i->state == PIPE_RUNNING && s->uses == PIPE_USES_DEPLOY) {
        pipes_look_deploy(r, item, now);
        return;
    }
    if (i->state != PIPE_RUNNING || !i->job || pipes_find_work(r, item))
        return;
    if (!l) {
        pipes_settle(r, item);
    } else if (!l->over && s->timeout && now - i->started_at >= s->timeout) {
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_NUM("seconds", s->timeout / USEC_SEC)));
        pipes_stop_job(l, "argusd", "pipe_step_timeout", text);
    }
}

void pipes_look(struct pipe_life *r)
{
    usec_t now = clock_wall(), wake = pipe_run_wake(&r->run);
    for (size_t i = 0; i < r->run.n && !r->ended_at; i++)
        pipes_look_item(r, i, now);
    if (!r->ended_at && (!wake || wake <= now))
        pipes_drive(r);
}
