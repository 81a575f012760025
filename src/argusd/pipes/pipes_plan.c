/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_plan.c - see pipes_plan.h. A run that nobody knows goes through its steps in the order in
 * which each comes behind all that it needs. */
#include "argusd/pipes/pipes_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/pipes/pipes_state.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { WITH_MAX = 256 << 10, CHANGES_MAX = 20, VALUE_MAX = 200, KEY_MAX = 200, NEST_MAX = 8 };

#define X(e, word) word,
const char *const pipes_would_names[] = {PIPES_WOULD(X) NULL};
#undef X
static_assert(array_len(pipes_would_names) == PIPES_WOULD_COUNT + 1, "one word per outcome");

#define CHANGE(key) FIELD_AT(pipes_change, #key, FIELD_STR, key, .flags = FIELD_SHOWN)
static const struct field change_rows[] = {CHANGE(key), CHANGE(from), CHANGE(to)};
const struct field_table pipes_change_table =
    FIELD_TABLE("PipelineChange", change_rows, pipes_change);

struct planning {
    struct pipe_life *r;
    struct pipes_sight *sight;
    struct pipes_planned *v;
    bool open[PIPE_STEPS_MAX];  /* would run: what it leaves behind is not known */
    bool doubt[PIPE_STEPS_MAX]; /* nor whether it succeeds */
};

static void plan_says(struct pipes_planned *p, const char *code, const struct message_arg *args)
{
    char text[JOB_REASON_TEXT_MAX];
    message_write(text, sizeof(text), args);
    set_str(&p->code, code);
    set_str(&p->text, text);
}

/* ---- what is other than before ---- */

struct plan_diff {
    struct pipes_change *v;
    size_t n;
};

static char *plan_value(const json_t *v)
{
    char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;
    if (!text || strlen(text) <= VALUE_MAX)
        return text;
    char *cut = xasprintf("%.*s…", (int)str_cut(text, VALUE_MAX), text);
    free(text);
    return cut;
}

/* Compares two values under one key, which may be mappings. */
static void plan_compare(struct plan_diff *d, const char *key, json_t *from, json_t *to, int depth)
{
    const char *name;
    json_t *v;
    if (d->n == CHANGES_MAX || json_equal(from, to))
        return;
    if (!json_is_object(from) || !json_is_object(to) || depth == NEST_MAX) {
        d->v[d->n++] = (struct pipes_change){xstrdup(key), plan_value(from), plan_value(to)};
        return;
    }
    json_object_foreach (to, name, v) {
        _cleanup_(freep) char *path = xasprintf("%s%s%.*s", key, *key ? "." : "", KEY_MAX, name);
        plan_compare(d, path, json_object_get(from, name), v, depth + 1);
    }
    json_object_foreach (from, name, v)
        if (!json_object_get(to, name)) {
            _cleanup_(freep) char *path =
                xasprintf("%s%s%.*s", key, *key ? "." : "", KEY_MAX, name);
            plan_compare(d, path, v, NULL, depth + 1);
        }
}

/* The newest earlier item of that name whose inputs are known, and its run. */
static const struct pipe_item *plan_find_last(const struct pipe_life *r,
                                              const char *name,
                                              const struct pipe_life **ret_run)
{
    const struct pipe_life *other;
    for (size_t pos = 0; (other = pipes_next_run(r->pipes, &pos));) {
        if (!str_eq(other->pipeline, r->pipeline) || !str_eq(other->user, r->user) ||
            !str_eq(other->owner, r->owner))
            continue;
        for (size_t i = 0; i < other->run.n; i++)
            if (other->run.v[i].hash[0] && str_eq(other->run.v[i].name, name)) {
                *ret_run = other;
                return &other->run.v[i];
            }
    }
    return NULL;
}

/* Its `with` as it would be beside that of the newest one before. */
static void plan_diff_with(struct pipes_planned *out,
                           const struct pipe_life *other,
                           const struct pipe_item *last,
                           const char *with)
{
    struct buf before = BUF_INIT(WITH_MAX);
    struct plan_diff d = {.v = xcalloc(CHANGES_MAX, sizeof(*d.v))};
    if (last) {
        out->earlier = xstrdup(other->id);
        out->job = xstrdup(last->job);
        if (pipe_run_fill(&other->run, (size_t)(last - other->run.v), &before, NULL) == 0) {
            _cleanup_(json_unrefp) json_t *from = json_loads(buf_str(&before), 0, NULL);
            _cleanup_(json_unrefp) json_t *to = json_loads(with, 0, NULL);
            plan_compare(&d, "", from, to, 0);
        }
    }
    out->changes = (struct field_list){.v = d.v, .n = d.n};
    buf_release(&before);
}

/* What an input of the same name held then and holds now: its version, or the first characters of
 * its hash. What is named anew stands among the keys of `with` already. */
static void plan_diff_contents(struct pipes_planned *out,
                               const struct pipe_item *last,
                               const struct pipe_item *now)
{
    struct plan_diff d = {.v = out->changes.v, .n = out->changes.n};
    _cleanup_(json_unrefp) json_t *from = json_loads(str_or(last->contents, "{}"), 0, NULL);
    _cleanup_(json_unrefp) json_t *to = json_loads(str_or(now->contents, "{}"), 0, NULL);
    const char *name;
    json_t *v;
    json_object_foreach (to, name, v) {
        json_t *before = json_object_get(from, name);
        _cleanup_(freep) char *key = xasprintf("%.*s", (int)str_cut(name, KEY_MAX), name);
        if (before)
            plan_compare(&d, key, before, v, 0);
    }
    out->changes.n = d.n;
}

/* Why it would run, when all its inputs are known. e: what would have stood in for it is gone. */
static void plan_explain(const struct planning *p,
                         size_t item,
                         const struct pipes_earlier *e,
                         const char *with)
{
    struct pipe_life *r = p->r;
    struct pipes_planned *out = &p->v[item];
    const struct pipe_step *s = &r->pipe->steps[r->run.v[item].step];
    const struct pipe_life *other = NULL;
    const struct pipe_item *last = plan_find_last(r, out->name, &other);
    plan_diff_with(out, other, last, with);
    bool is_other = out->changes.n > 0;
    if (last)
        plan_diff_contents(out, last, &r->run.v[item]);
    if (r->force || !s->cache)
        plan_says(out, r->force ? "pipe_plan_forced" : "pipe_plan_no_cache", MESSAGE_NO_ARGS);
    else if (e->gone)
        plan_says(out, "pipe_plan_gone",
                  MESSAGE_ARGS(MESSAGE_STR("path", e->gone), MESSAGE_STR("run", e->gone_in)));
    else if (!last)
        plan_says(out, "pipe_plan_first", MESSAGE_NO_ARGS);
    else
        plan_says(out,
                  is_other                        ? "pipe_plan_other"
                  : last->state != PIPE_SUCCEEDED ? "pipe_plan_failed"
                  : str_eq(other->id, r->id)      ? "pipe_plan_again"
                                                  : "pipe_plan_content",
                  MESSAGE_ARGS(MESSAGE_STR("run", other->id)));
}

/* ---- one item ---- */

struct plan_reading {
    const struct planning *p;
    const char *step; /* whose outcome it reads; NULL: none that is open */
};

static void plan_on_ref(const struct pipe_ref *ref, void *arg)
{
    struct plan_reading *at = arg;
    const struct pipe *pipe = at->p->r->pipe;
    const struct pipe_step *s =
        ref->n > 1 && str_eq(ref->part[0], "steps") ? pipe_find_step(pipe, ref->part[1]) : NULL;
    if (s && at->p->open[s - pipe->steps])
        at->step = s->name;
}

static const char *plan_reads(const struct planning *p,
                              const struct pipe_step *s,
                              enum pipe_refs_in in)
{
    struct plan_reading at = {.p = p};
    pipe_step_each_ref(s, in, plan_on_ref, &at);
    return at.step;
}

/* A step that it needs, and that may not succeed; NULL: there is none. */
static const char *plan_doubts(const struct planning *p, const struct pipe_step *s)
{
    for (int k = 0; k < s->n_before; k++)
        if (p->doubt[s->before[k]])
            return p->r->pipe->steps[s->before[k]].name;
    return NULL;
}

/* In the run that nobody knows, so that those behind it find it so. */
static void plan_set(struct planning *p, size_t item, enum pipes_would would)
{
    static const enum pipe_state as[PIPES_WOULD_COUNT] = {
        [PIPES_WOULD_RUN] = PIPE_SUCCEEDED,   [PIPES_WOULD_REUSE] = PIPE_SUCCEEDED,
        [PIPES_WOULD_KEEP] = PIPE_SUCCEEDED,  [PIPES_WOULD_PASS] = PIPE_SUCCEEDED,
        [PIPES_WOULD_SKIP] = PIPE_SKIPPED,    [PIPES_WOULD_FAIL] = PIPE_FAILED,
        [PIPES_WOULD_DEPEND] = PIPE_SUCCEEDED};
    struct pipe_item *i = &p->r->run.v[item];
    p->v[item].would = (int)would;
    i->state = (int)as[would];
    if (would == PIPES_WOULD_RUN || would == PIPES_WOULD_DEPEND)
        p->open[i->step] = true;
    if (would == PIPES_WOULD_DEPEND)
        p->doubt[i->step] = true;
}

/* By what that step leaves behind, or by how it ends. */
static void plan_decided(struct planning *p, size_t item, const char *step)
{
    plan_says(&p->v[item], "pipe_plan_decided", MESSAGE_ARGS(MESSAGE_STR("step", step)));
    plan_set(p, item, PIPES_WOULD_DEPEND);
}

/* A check whose `that` is known. */
static void plan_check(struct planning *p, size_t item, const char *with)
{
    struct pipes_planned *out = &p->v[item];
    _cleanup_(json_unrefp) json_t *all = json_loads(with, 0, NULL);
    const json_t *that = json_object_get(all, "that");
    bool is_true = pipe_value_is_true(that) && !json_is_string(that);
    const char *otherwise = json_get_str(all, "else", NULL);
    if (!is_true && otherwise)
        plan_says(out, "pipe_check_false", MESSAGE_ARGS(MESSAGE_STR("else", otherwise)));
    else if (!is_true)
        plan_says(out, "pipe_check_false", MESSAGE_NO_ARGS);
    set_str(&p->r->run.v[item].left, is_true ? "{\"value\":true}" : "{\"value\":false}");
    plan_set(p, item, is_true ? PIPES_WOULD_PASS : PIPES_WOULD_FAIL);
}

/* Its inputs are known. */
static void plan_known(struct planning *p, size_t item, const char *with)
{
    struct pipe_life *r = p->r;
    struct pipe_item *i = &r->run.v[item];
    const struct pipe_step *s = &r->pipe->steps[i->step];
    struct pipes_planned *out = &p->v[item];
    struct pipes_earlier e = {0};
    if (s->uses == PIPE_USES_CHECK) {
        plan_check(p, item, with);
        return;
    }
    if (pipes_hash_inputs(r, item, with, p->sight, &out->paths) && s->cache && !r->force)
        pipes_find_earlier(r, s, i->hash, p->sight, &e);
    if (!e.item) {
        if (!pipes_sight_is_open(p->sight)) /* else this plan is not shown */
            plan_explain(p, item, &e, with);
        plan_set(p, item, PIPES_WOULD_RUN);
    } else {
        out->earlier = xstrdup(str_or(e.item->earlier, e.run->id));
        out->job = xstrdup(e.item->job);
        set_str(&i->left, e.item->left);
        plan_says(out, "pipe_cached", MESSAGE_NO_ARGS);
        plan_set(p, item, PIPES_WOULD_REUSE);
    }
    pipes_earlier_release(&e);
}

static void plan_item(struct planning *p, size_t item)
{
    struct pipe_life *r = p->r;
    const struct pipe_step *s = &r->pipe->steps[r->run.v[item].step];
    struct pipes_planned *out = &p->v[item];
    const char *asks = plan_reads(p, s, PIPE_REFS_IF), *reads = plan_reads(p, s, PIPE_REFS_WITH);
    if (r->run.v[item].state != PIPE_WAITING) {
        out->job = xstrdup(r->run.v[item].job);
        p->v[item].would = PIPES_WOULD_KEEP;
        return;
    }
    if (asks) {
        plan_decided(p, item, asks);
        return;
    }
    if (!pipe_run_wants(&r->run, item)) {
        pipe_run_skip(&r->run, item, 0);
        plan_says(out, r->run.v[item].code, MESSAGE_NO_ARGS);
        plan_set(p, item, PIPES_WOULD_SKIP);
        return;
    }
    const char *doubted = plan_doubts(p, s);
    if (doubted || (reads && s->uses == PIPE_USES_CHECK)) {
        plan_decided(p, item, doubted ? doubted : reads);
        return;
    }
    if (reads) {
        plan_says(out, "pipe_plan_reads", MESSAGE_ARGS(MESSAGE_STR("step", reads)));
        plan_set(p, item, PIPES_WOULD_RUN);
        return;
    }
    struct buf with = BUF_INIT(WITH_MAX);
    struct err err = {0};
    if (pipe_run_fill(&r->run, item, &with, &err) == 0) {
        plan_known(p, item, buf_str(&with));
    } else {
        set_str(&out->code, str_or(err.message, "pipe_said"));
        set_str(&out->text, err.message ? err.args : err.text);
        plan_set(p, item, PIPES_WOULD_FAIL);
    }
    buf_release(&with);
}

/* Takes r, which has its items. */
static void plan_all(struct pipe_life *r, struct pipes_sight *sight, struct pipes_plan *ret)
{
    struct planning p = {.r = r, .sight = sight, .v = xcalloc(r->run.n + 1, sizeof(*p.v))};
    for (size_t i = 0; i < r->run.n; i++) {
        const struct pipe_step *s = &r->pipe->steps[r->run.v[i].step];
        p.v[i] = (struct pipes_planned){.name = r->run.v[i].name,
                                        .step = s->name,
                                        .uses = pipe_uses_to_string((enum pipe_uses)s->uses),
                                        .matrix = r->run.v[i].matrix};
    }
    for (size_t k = 0; k < r->pipe->n_steps; k++)
        for (size_t i = 0; i < r->run.n; i++)
            if (r->run.v[i].step == r->pipe->order[k])
                plan_item(&p, i);
    *ret = (struct pipes_plan){
        .params = xstrdup(r->params), .steps = {.v = p.v, .n = r->run.n}, .run = r};
    for (size_t i = 0; i < r->run.n; i++) {
        ret->to_run += p.v[i].would == PIPES_WOULD_RUN || p.v[i].would == PIPES_WOULD_DEPEND;
        ret->reused += p.v[i].would == PIPES_WOULD_REUSE || p.v[i].would == PIPES_WOULD_KEEP;
    }
}

void pipes_plan_release(struct pipes_plan *plan)
{
    struct pipes_planned *v = plan->steps.v;
    for (size_t i = 0; i < plan->steps.n; i++) {
        struct pipes_change *c = v[i].changes.v;
        for (size_t k = 0; k < v[i].changes.n; k++)
            field_release(&pipes_change_table, &c[k]);
        free(c);
        pipes_paths_release(&v[i].paths);
        free(v[i].earlier);
        free(v[i].job);
        free(v[i].code);
        free(v[i].text);
    }
    free(v);
    free(plan->params);
    if (plan->run)
        pipe_life_free(plan->run);
    *plan = (struct pipes_plan){0};
}

/* ---- who asks ---- */

int pipes_plan_run(struct pipes *ps,
                   const struct pipes_start_ask *ask,
                   struct pipes_sight *sight,
                   struct pipes_plan *ret,
                   struct problems *problems,
                   struct err *err)
{
    struct pipe_life *r = NULL;
    int x = pipes_make_run(ps, ask, &r, problems, err);
    if (x < 0)
        return x;
    r->id = xasprintf("%s-0", r->pipeline);
    pipes_open_run(r);
    plan_all(r, sight, ret);
    return 0;
}

static void plan_copy_items(const struct pipe_run *from, struct pipe_run *to)
{
    for (size_t i = 0; i < to->n; i++) {
        _cleanup_(freep) char *row =
            field_to_text(&pipe_item_table, &from->v[i], FIELD_STORED, FIELD_ROW);
        int step = to->v[i].step;
        field_release(&pipe_item_table, &to->v[i]);
        to->v[i] = (struct pipe_item){0};
        bool ok = field_from_text(&pipe_item_table, row, FIELD_STORED, &to->v[i]);
        assert(ok); /* it was just written */
        (void)ok;
        to->v[i].step = step;
    }
}

int pipes_plan_retry(const struct pipe_life *run,
                     const struct pipes_retry_ask *ask,
                     struct pipes_sight *sight,
                     struct pipes_plan *ret,
                     struct problems *problems,
                     struct err *err)
{
    struct problems none = {0};
    const struct pipe_step *s = NULL;
    json_t *params = NULL;
    int x = pipes_check_retry(run, ask, &s, &params, problems, err);
    if (x < 0)
        return x;
    struct pipe_life *r = xcalloc(1, sizeof(*r));
    *r = (struct pipe_life){.pipes = run->pipes,
                            .id = xstrdup(run->id),
                            .pipeline = xstrdup(run->pipeline),
                            .owner = xstrdup(run->owner),
                            .user = xstrdup(run->user),
                            .project = xstrdup(run->project),
                            .text = xstrdup(run->text),
                            .params = xstrdup(run->params),
                            .number = run->number,
                            .force = ask->force};
    r->pipe = pipes_read_text(r->text, &none);
    assert(r->pipe); /* the run was read from it */
    problems_release(&none);
    pipes_open_run(r);
    plan_copy_items(&run->run, &r->run);
    pipes_wait_again(r, s ? (int)(s - run->pipe->steps) : -1, params);
    plan_all(r, sight, ret);
    return 0;
}
