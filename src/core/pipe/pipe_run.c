/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_run.c - see pipe_run.h. What is due follows from the items alone: nothing is remembered
 * beside them, so that a run that was read back from the store goes on where it stood. */
#include "core/pipe/pipe_run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "core/pipe/pipe_text.h"

#define X(e, word) word,
const char *const pipe_state_names[] = {PIPE_STATES(X) NULL};
#undef X
static_assert(array_len(pipe_state_names) == PIPE_STATES_COUNT + 1, "one word per state");

static void pipe_item_release(struct pipe_item *i)
{
    field_release(&pipe_item_table, i);
}

void pipe_run_release(struct pipe_run *r)
{
    for (size_t i = 0; i < r->n; i++)
        pipe_item_release(&r->v[i]);
    free(r->v);
    json_decref(r->params);
    *r = (struct pipe_run){0};
}

#define ITEM(key, ftype, ...)                                                                      \
    FIELD_AT(pipe_item, #key, ftype, key, .flags = FIELD_STORED | FIELD_SHOWN, __VA_ARGS__)
#define PIPE_ANY_OBJECT                                                                            \
    "{\"type\":[\"object\",\"null\"],\"additionalProperties\":{\"description\":\"as it came\"}}"
static const struct field pipe_item_rows[] = {
    FIELD_AT(pipe_item,
             "name",
             FIELD_STR,
             name,
             .flags = FIELD_STORED | FIELD_SHOWN | FIELD_ALWAYS,
             .doc = "name of the step, with -N behind it for combination N of its matrix"),
    ITEM(matrix, FIELD_JSON, .schema = PIPE_ANY_OBJECT, .doc = "the combination"),
    ITEM(state, FIELD_ENUM, .names = pipe_state_names),
    ITEM(tries, FIELD_INT),
    ITEM(again_at, FIELD_TIME, .doc = "time at which the step is tried again"),
    ITEM(started_at, FIELD_TIME),
    ITEM(ended_at, FIELD_TIME),
    ITEM(job, FIELD_STR, .doc = "job of its newest try"),
    ITEM(left,
         FIELD_JSON,
         .schema = PIPE_ANY_OBJECT,
         .doc = "what it left behind, as expressions name it"),
    ITEM(hash, FIELD_TEXT, .size = HASH_HEX, .doc = "SHA-256 of its inputs"),
    ITEM(cached, FIELD_BOOL, .doc = "an earlier run with the same inputs stands in for it"),
    ITEM(earlier, FIELD_STR, .doc = "the run whose step stands in for it"),
    FIELD_AT(pipe_item, "own_gpu_hours", FIELD_REAL, gpu_hours, .flags = FIELD_STORED),
    FIELD_AT(pipe_item, "past_gpu_hours", FIELD_REAL, gpu_hours_before, .flags = FIELD_STORED),
    FIELD_AT(pipe_item, "contents", FIELD_JSON, contents, .flags = FIELD_STORED),
    FIELD_AT(pipe_item, "code", FIELD_STR, code, .flags = FIELD_STORED),
    FIELD_AT(pipe_item, "text", FIELD_STR, text, .flags = FIELD_STORED),
};
const struct field_table pipe_item_table = {.rows = pipe_item_rows,
                                            .n = array_len(pipe_item_rows),
                                            .size = sizeof(struct pipe_item)};

/* ---- its items ---- */

/* The scalar as the JSON value that YAML gives it. */
static json_t *pipe_scalar(const struct node *n)
{
    struct buf out = BUF_INIT(DOC_MAX_BYTES);
    struct jout j = jout_begin(&out);
    struct node alone = *n;
    alone.key = NULL;
    node_to_json(&alone, &j, NULL);
    json_t *v = json_loads(buf_str(&out), JSON_DECODE_ANY, NULL);
    buf_release(&out);
    return v ? v : json_null();
}

/* Combination k of the matrix: the last list changes fastest. */
static char *pipe_combination(const struct node *matrix, size_t k, size_t n)
{
    _cleanup_(json_unrefp) json_t *all = json_object();
    for (const struct node *list = matrix->first; list; list = list->next) {
        n /= list->n;
        const struct node *v = list->first;
        for (size_t at = k / n % list->n; at; at--)
            v = v->next;
        (void)json_object_set_new(all, list->key, pipe_scalar(v)); /* both are there */
    }
    return json_dumps(all, JSON_COMPACT);
}

void pipe_run_begin(struct pipe_run *ret)
{
    const struct pipe *p = ret->pipe;
    for (size_t i = 0; i < p->n_steps; i++)
        ret->n += p->steps[i].n_items;
    ret->v = xcalloc(ret->n, sizeof(*ret->v));
    struct pipe_item *item = ret->v;
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct pipe_step *s = &p->steps[i];
        for (size_t k = 0; k < s->n_items; k++, item++) {
            item->step = (int)i;
            item->name = s->matrix ? xasprintf("%s-%zu", s->name, k + 1) : xstrdup(s->name);
            item->matrix = s->matrix ? pipe_combination(s->matrix, k, s->n_items) : NULL;
        }
    }
}

/* ---- what is due ---- */

static bool pipe_item_is_over(const struct pipe_item *i)
{
    return i->state >= PIPE_SUCCEEDED;
}

struct pipe_before {
    bool over, failed,
        skipped; /* all of them have ended; one failed or was cancelled; one was skipped */
};

static struct pipe_before pipe_run_before(const struct pipe_run *r, const struct pipe_step *s)
{
    struct pipe_before b = {.over = true};
    for (size_t i = 0; i < r->n; i++)
        for (int k = 0; k < s->n_before; k++)
            if (r->v[i].step == s->before[k]) {
                b.over = b.over && pipe_item_is_over(&r->v[i]);
                b.failed =
                    b.failed || r->v[i].state == PIPE_FAILED || r->v[i].state == PIPE_CANCELLED;
                b.skipped = b.skipped || r->v[i].state == PIPE_SKIPPED;
            }
    return b;
}

struct pipe_looking {
    const struct pipe_run *run;
    const struct pipe_item *item;
};

/* The member of a JSON object that the reference names from its part `from` on. */
static json_t *pipe_member(const char *object, const struct pipe_ref *ref, int from)
{
    _cleanup_(json_unrefp) json_t *all = object ? json_loads(object, 0, NULL) : NULL;
    json_t *v = all;
    for (int k = from; v && k < ref->n; k++)
        v = json_object_get(v, ref->part[k]);
    return json_incref(v);
}

static json_t *pipe_left_at(const struct pipe_item *i, const struct pipe_ref *ref)
{
    if (str_eq(ref->part[2], "state"))
        return json_string(pipe_state_names[i->state]);
    return pipe_member(i->left, ref, 2);
}

/* What a step left behind: a list where it has a matrix. */
static json_t *pipe_find_left(const struct pipe_run *r, const struct pipe_ref *ref)
{
    const struct pipe_step *s = pipe_find_step(r->pipe, ref->part[1]);
    json_t *all = s->matrix ? json_array() : NULL;
    for (size_t i = 0; i < r->n; i++) {
        if (r->v[i].step != (int)(s - r->pipe->steps))
            continue;
        json_t *v = pipe_left_at(&r->v[i], ref);
        if (!all)
            return v;
        (void)json_array_append_new(all, v ? v : json_null()); /* both are there */
    }
    return all;
}

static json_t *pipe_find_value(const struct pipe_ref *ref, void *arg)
{
    const struct pipe_looking *l = arg;
    const struct pipe_run *r = l->run;
    const char *word = ref->part[0], *name = ref->n > 1 ? ref->part[1] : "";
    if (str_eq(word, "steps"))
        return pipe_find_left(r, ref);
    if (str_eq(word, "params"))
        return json_incref(json_object_get(r->params, name));
    if (str_eq(word, "matrix"))
        return pipe_member(l->item->matrix, ref, 1);
    if (str_eq(name, "number"))
        return json_integer(r->number);
    const char *text = str_eq(name, "id") ? r->id : str_eq(name, "user") ? r->user : r->project;
    return json_string(str_or(text, ""));
}

bool pipe_run_wants(const struct pipe_run *r, size_t item)
{
    const struct pipe_item *i = &r->v[item];
    const struct pipe_step *s = &r->pipe->steps[i->step];
    struct pipe_before b = pipe_run_before(r, s);
    struct pipe_looking l = {r, i};
    const struct pipe_scope scope = {.find = pipe_find_value, .arg = &l, .failed = b.failed};
    if (!s->when || !pipe_expr_says_when(s->when))
        if (b.failed || b.skipped)
            return false;
    _cleanup_(json_unrefp) json_t *v = s->when ? pipe_expr_value(s->when, &scope) : json_true();
    return pipe_value_is_true(v);
}

json_t *pipe_run_if(const struct pipe_run *r, size_t item)
{
    const struct pipe_item *i = &r->v[item];
    const struct pipe_step *s = &r->pipe->steps[i->step];
    struct pipe_before b = pipe_run_before(r, s);
    struct pipe_looking l = {r, i};
    const struct pipe_scope scope = {.find = pipe_find_value, .arg = &l, .failed = b.failed};
    return s->when && b.over ? pipe_expr_value(s->when, &scope) : NULL;
}

/* While the values of a step's references are put together. */
struct pipe_valuing {
    struct pipe_looking l;
    json_t *all;
};

static void pipe_add_value(const struct pipe_ref *ref, void *arg)
{
    struct pipe_valuing *v = arg;
    struct buf text = BUF_INIT(PIPE_REF_PARTS * (PIPE_REF_PART_MAX + 4));
    pipe_ref_write(ref, &text);
    json_t *value = pipe_find_value(ref, &v->l);
    if (!json_object_get(v->all, buf_str(&text)))
        (void)json_object_set_new(v->all, buf_str(&text),
                                  value ? value : json_null()); /* both are there */
    else
        json_decref(value);
    buf_release(&text);
}

json_t *pipe_run_values(const struct pipe_run *r, size_t item)
{
    struct pipe_valuing v = {.l = {r, &r->v[item]}, .all = json_object()};
    pipe_step_each_ref(&r->pipe->steps[r->v[item].step], PIPE_REFS_IF | PIPE_REFS_WITH,
                       pipe_add_value, &v);
    return v.all;
}

enum pipe_act pipe_run_next(const struct pipe_run *r, usec_t now, size_t *ret_item)
{
    for (size_t i = 0; i < r->n && !r->is_cancelled; i++) {
        const struct pipe_item *item = &r->v[i];
        if (item->state != PIPE_WAITING || item->again_at > now)
            continue;
        struct pipe_before b = pipe_run_before(r, &r->pipe->steps[item->step]);
        if (!b.over)
            continue;
        *ret_item = i;
        return item->tries || pipe_run_wants(r, i) ? PIPE_ACT_START : PIPE_ACT_SKIP;
    }
    return PIPE_ACT_NONE;
}

usec_t pipe_run_wake(const struct pipe_run *r)
{
    usec_t first = 0;
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].state == PIPE_WAITING && r->v[i].again_at &&
            (!first || r->v[i].again_at < first))
            first = r->v[i].again_at;
    return first;
}

enum pipe_state pipe_run_state(const struct pipe_run *r)
{
    bool failed = false, cancelled = r->is_cancelled;
    for (size_t i = 0; i < r->n; i++) {
        if (!pipe_item_is_over(&r->v[i]))
            return PIPE_RUNNING;
        failed = failed || r->v[i].state == PIPE_FAILED;
        cancelled = cancelled || r->v[i].state == PIPE_CANCELLED;
    }
    return cancelled ? PIPE_CANCELLED : failed ? PIPE_FAILED : PIPE_SUCCEEDED;
}

int pipe_run_fill(const struct pipe_run *r, size_t item, struct buf *out, struct err *err)
{
    const struct pipe_item *i = &r->v[item];
    const struct pipe_step *s = &r->pipe->steps[i->step];
    struct pipe_before b = pipe_run_before(r, s);
    struct pipe_looking l = {r, i};
    const struct pipe_scope scope = {.find = pipe_find_value, .arg = &l, .failed = b.failed};
    const struct node *at = NULL;
    struct jout j = jout_begin(out);
    int x = pipe_text_fill(s->with, &scope, &j, &at, err);
    if (x == 0 && out->failed)
        x = message_refuse(err, ERR_REFUSED, "pipe_text_long",
                           MESSAGE_ARGS(MESSAGE_NUM("most", out->max)));
    return x;
}

/* ---- what became of it ---- */

static void pipe_item_set(struct pipe_item *i, enum pipe_state state, usec_t now)
{
    i->state = (int)state;
    i->again_at = 0;
    i->ended_at = state >= PIPE_SUCCEEDED ? now : 0;
}

static void pipe_item_say(struct pipe_item *i, const char *code, const char *text)
{
    set_str(&i->code, code);
    set_str(&i->text, text);
}

void pipe_run_skip(struct pipe_run *r, size_t item, usec_t now)
{
    struct pipe_item *i = &r->v[item];
    struct pipe_before b = pipe_run_before(r, &r->pipe->steps[i->step]);
    pipe_item_set(i, PIPE_SKIPPED, now);
    pipe_item_say(i, b.failed || b.skipped ? "pipe_before_failed" : "pipe_if_false", "{}");
}

void pipe_run_started(struct pipe_run *r, size_t item, const char *job, usec_t now)
{
    struct pipe_item *i = &r->v[item];
    pipe_item_set(i, PIPE_RUNNING, now);
    pipe_item_say(i, NULL, NULL);
    set_str(&i->job, job);
    i->hash[0] = 0; /* what it names may have changed since the try before */
    set_str(&i->contents, NULL);
    i->gpu_hours_before += i->gpu_hours;
    i->gpu_hours = 0;
    i->tries++;
    i->started_at = now;
}

void pipe_run_ended(struct pipe_run *r,
                    size_t item,
                    enum pipe_state state,
                    const char *left,
                    const char *code,
                    const char *text,
                    usec_t now)
{
    struct pipe_item *i = &r->v[item];
    const struct pipe_step *s = &r->pipe->steps[i->step];
    set_str(&i->left, left);
    pipe_item_say(i, code, text);
    bool again = state == PIPE_FAILED && i->tries <= s->retry_limit && !r->is_cancelled;
    pipe_item_set(i, again ? PIPE_WAITING : state, now);
    if (again)
        i->again_at = now + s->retry_backoff;
}

void pipe_run_cancel(struct pipe_run *r, usec_t now)
{
    r->is_cancelled = true;
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].state == PIPE_WAITING)
            pipe_item_set(&r->v[i], PIPE_CANCELLED, now);
}

static bool pipe_step_failed(const struct pipe_run *r, int step)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].step == step && r->v[i].state != PIPE_SUCCEEDED)
            return true;
    return false;
}

static void pipe_item_again(struct pipe_item *i)
{
    pipe_item_set(i, PIPE_WAITING, 0);
    pipe_item_say(i, NULL, NULL);
    set_str(&i->job, NULL);
    set_str(&i->left, NULL);
    set_str(&i->earlier, NULL);
    set_str(&i->contents, NULL);
    i->hash[0] = 0;
    i->tries = 0;
    i->cached = false;
    i->started_at = 0;
}

/* Does the step read a parameter that has another value now? */
struct pipe_rereading {
    const json_t *before, *now;
    bool found;
};

static void pipe_on_reread(const struct pipe_ref *ref, void *arg)
{
    struct pipe_rereading *x = arg;
    if (ref->n == 2 && str_eq(ref->part[0], "params"))
        x->found = x->found || !json_equal(json_object_get(x->before, ref->part[1]),
                                           json_object_get(x->now, ref->part[1]));
}

static bool pipe_step_rereads(const struct pipe_run *r, int step, const json_t *params)
{
    struct pipe_rereading x = {.before = r->params, .now = params};
    if (params)
        pipe_step_each_ref(&r->pipe->steps[step], PIPE_REFS_IF | PIPE_REFS_WITH, pipe_on_reread,
                           &x);
    return x.found;
}

void pipe_run_again(struct pipe_run *r, int step, json_t *taken_params)
{
    bool again[PIPE_STEPS_MAX] = {false};
    for (size_t k = 0; k < r->pipe->n_steps; k++) { /* each comes behind all that it needs */
        int at = r->pipe->order[k];
        const struct pipe_step *s = &r->pipe->steps[at];
        again[at] = at == step || pipe_step_failed(r, at) || pipe_step_rereads(r, at, taken_params);
        for (int b = 0; b < s->n_before; b++)
            again[at] = again[at] || again[s->before[b]];
    }
    for (size_t i = 0; i < r->n; i++)
        if (again[r->v[i].step])
            pipe_item_again(&r->v[i]);
    if (taken_params) {
        json_decref(r->params);
        r->params = taken_params;
    }
    r->is_cancelled = false;
}
