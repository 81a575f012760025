/* SPDX-License-Identifier: Apache-2.0 */
/* evalspec.c - see evalspec.h; and the check of the key, by the checks of the JobSpec that it
 * becomes. */
#include "core/spec/evalspec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/spec_table.h"

#define EVAL_KEY "eval_on_save"

/* What is about the training's own life, and not about what it computes. */
static const char *const left_behind[] = {
    "submission_id", EVAL_KEY,   "name",  "resume",  "checkpoint",    "save_freq",
    "test_freq",     "restart",  "idle",  "notify",  "alerts",        "hold_on_failure",
    "wandb",         "tracking", "after", "timeout", "queue_timeout", "priority"};

static bool eval_is_given(const struct node *root, const char *key)
{
    const struct node *n = node_find(root, key);
    return n && !node_is_null(n);
}

bool evalspec_is_own(const struct node *eval)
{
    return !eval_is_given(eval, "workload") && !eval_is_given(eval, "preset");
}

/* ---- the template ---- */

static json_t *eval_read_node(const struct node *n)
{
    struct buf out = BUF_INIT(EVALSPEC_MAX);
    struct jout j = jout_begin(&out);
    node_to_json(n, &j, NULL);
    json_t *v = out.failed ? NULL : json_loads(buf_str(&out), 0, NULL);
    buf_release(&out);
    if (v && !json_is_object(v)) {
        json_decref(v);
        v = NULL;
    }
    return v;
}

static void eval_drop_secrets(json_t *env)
{
    const char *key;
    json_t *v;
    void *next;
    json_object_foreach_safe (env, next, key, v)
        if (str_is_secret_name(key))
            (void)json_object_del(env, key); /* it is there */
}

/* The training's spec without its life. */
static void eval_strip(json_t *o)
{
    for (size_t i = 0; i < array_len(left_behind); i++)
        (void)json_object_del(o, left_behind[i]); /* most are not there */
    eval_drop_secrets(json_object_get(o, "env"));
    eval_drop_secrets(json_object_get(json_object_get(o, "runtime_env"), "env_vars"));
}

/* Both are one text or a list of them. */
static void eval_append_all(json_t *list, const json_t *more)
{
    size_t i;
    json_t *v;
    if (json_is_string(more))
        (void)json_array_append(list, (json_t *)(uintptr_t)more); /* lacks memory alone */
    json_array_foreach (more, i, v)
        (void)json_array_append(list, v); /* as above */
}

/* The training runs to validate the checkpoint that it goes on from, and ends. */
static void eval_put_overrides(json_t *o, const json_t *asked)
{
    static const char *const always[] = {"trainer.val_only=True", "trainer.val_before_train=True"};
    json_t *all = json_array();
    eval_append_all(all, json_object_get(o, "overrides"));
    eval_append_all(all, json_object_get(asked, "overrides"));
    for (size_t i = 0; i < array_len(always); i++)
        (void)json_array_append_new(all, json_string(always[i])); /* lacks memory alone */
    (void)json_object_set_new(o, "overrides", all);               /* as above */
}

static json_t *eval_of_training(json_t *training, json_t *asked)
{
    json_t *o = json_deep_copy(training), *v;
    const char *key;
    eval_strip(o);
    eval_put_overrides(o, asked);
    json_object_foreach (asked, key, v) {
        json_t *old = json_object_get(o, key);
        if (!strcmp(key, "overrides"))
            continue;
        if (json_is_object(old) && json_is_object(v))
            (void)json_object_update(old, v); /* env: by its names */
        else
            (void)json_object_set(o, key, v); /* lacks memory alone */
    }
    (void)json_object_set_new(o, "resume", json_string("${JOB}@${STEP}"));
    (void)json_object_set_new(o, "checkpoint", json_string("none"));
    return o;
}

/* What it does not say itself. */
static void eval_put_defaults(json_t *o, const json_t *training)
{
    static const char *const shared[] = {"project", "cluster", "pool"};
    for (size_t i = 0; i < array_len(shared); i++) {
        json_t *v = json_object_get(training, shared[i]);
        if (v && !json_object_get(o, shared[i]))
            (void)json_object_set(o, shared[i], v); /* lacks memory alone, as below */
    }
    if (!json_object_get(o, "name"))
        (void)json_object_set_new(o, "name", json_string("eval of ${JOB}, step ${STEP}"));
    if (!json_object_get(o, "priority"))
        (void)json_object_set_new(o, "priority", json_integer(0));
}

char *evalspec_template(const struct node *root)
{
    const struct node *eval = node_find(root, EVAL_KEY);
    if (!eval || eval->kind != NODE_MAP)
        return NULL;
    _cleanup_(json_unrefp) json_t *training = eval_read_node(root), *asked = eval_read_node(eval);
    if (!training || !asked)
        return NULL;
    json_t *o = evalspec_is_own(eval) ? eval_of_training(training, asked) : json_incref(asked);
    eval_put_defaults(o, training);
    char *text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    if (text && strlen(text) > EVALSPEC_MAX)
        freep(&text);
    return text;
}

char *evalspec_template_of(const char *text)
{
    struct doc *d = NULL;
    struct problems ps = {0};
    char *ret = NULL;
    if (doc_parse(text, strlen(text), false, &d, &ps) == 0)
        ret = evalspec_template(doc_root(d));
    problems_release(&ps);
    doc_free(d);
    return ret;
}

/* ---- of one checkpoint ---- */

void evalspec_id(const struct evalspec_of *of, char ret[static SPEC_ID_BUF])
{
    static const unsigned char key[16] = "argus eval id";
    char tail[48], mark[8];
    text_printf(tail, "-eval-%" PRId64, of->step);
    if (of->attempt > 1)
        text_printf_to(tail + strlen(tail), sizeof(tail) - strlen(tail), ".%d", of->attempt);
    size_t n = strlen(of->job), room = (size_t)SPEC_ID_MAX - strlen(tail);
    if (n <= room) {
        text_printf_to(ret, SPEC_ID_BUF, "%s%s", of->job, tail);
        return;
    }
    text_printf(mark, "%06x", (unsigned)(hash_keyed(key, of->job, n) & 0xffffff));
    text_printf_to(ret, SPEC_ID_BUF, "%.*s-%s%s", (int)(room - strlen(mark) - 1), of->job, mark,
                   tail);
}

/* Appends text with each name in its place. */
static void eval_put_names(struct buf *out, const char *text, const struct evalspec_of *of)
{
    for (const char *p = text; *p;) {
        const char *at = strstr(p, "${");
        (void)buf_add(out, p, at ? (size_t)(at - p) : strlen(p)); /* overflow: out->failed */
        if (!at)
            break;
        p = at + 2;
        if (str_starts(p, "CHECKPOINT}"))
            (void)buf_addf(out, "${SHARED_ROOT}/jobs/%s/checkpoints/global_step_%" PRId64, of->job,
                           of->step);
        else if (str_starts(p, "STEP}"))
            (void)buf_addf(out, "%" PRId64, of->step);
        else if (str_starts(p, "JOB}"))
            (void)buf_adds(out, of->job);
        else {
            (void)buf_adds(out, "${");
            continue;
        }
        p = strchr(p, '}') + 1;
    }
}

char *evalspec_fill(const char *text, const struct evalspec_of *of)
{
    struct buf out = BUF_INIT((size_t)EVALSPEC_MAX * 2);
    char id[SPEC_ID_BUF];
    eval_put_names(&out, text, of);
    _cleanup_(json_unrefp) json_t *o = out.failed ? NULL : json_loads(buf_str(&out), 0, NULL);
    buf_release(&out);
    if (!json_is_object(o))
        return NULL;
    evalspec_id(of, id);
    (void)json_object_set_new(o, "submission_id", json_string(id)); /* lacks memory alone */
    return json_dumps(o, JSON_COMPACT);
}

/* ---- the check ---- */

/* A key that it may not have: its name and its end are not its own. */
static const char *eval_find_foreign(const struct node *eval)
{
    static const char *const never[] = {"submission_id", EVAL_KEY, "after"};
    static const char *const of_own[] = {"resume", "checkpoint", "save_freq", "test_freq"};
    for (size_t i = 0; i < array_len(never); i++)
        if (eval_is_given(eval, never[i]))
            return never[i];
    for (size_t i = 0; evalspec_is_own(eval) && i < array_len(of_own); i++)
        if (eval_is_given(eval, of_own[i]))
            return of_own[i];
    return NULL;
}

/* A name of its environment whose value would be shown with the spec. */
static const char *eval_find_secret(const struct node *eval)
{
    static const char *const places[] = {"env", "runtime_env.env_vars"};
    for (size_t i = 0; i < array_len(places); i++) {
        const struct node *env = node_find_path(eval, places[i]);
        for (const struct node *n = env && env->kind == NODE_MAP ? env->first : NULL; n;
             n = n->next)
            if (str_is_secret_name(n->key))
                return n->key;
    }
    return NULL;
}

static void eval_complain(const struct spec_check *c, const struct problems *inner)
{
    const struct problem *p = problems_first(inner);
    struct err err = {0};
    if (!p)
        return;
    (void)problem_to_err(p, ERR_BAD_SPEC, &err); /* only fills err */
    spec_error(c, EVAL_KEY, "eval_wrong",
               MESSAGE_ARGS(MESSAGE_STR("key", str_or(p->field, "")), MESSAGE_ERR("why", &err)));
}

/* As it will be for a checkpoint of step 1. */
static void eval_check_whole(const struct spec_check *c)
{
    const struct evalspec_of of = {.job = "training", .step = 1, .attempt = 1};
    _cleanup_(freep) char *text = evalspec_template(c->root);
    _cleanup_(freep) char *filled = text ? evalspec_fill(text, &of) : NULL;
    struct doc *d = NULL;
    struct problems inner = {0};
    struct spec s = {0};
    if (!filled)
        spec_error(c, EVAL_KEY, "eval_too_long", MESSAGE_NO_ARGS);
    else if (doc_parse(filled, strlen(filled), false, &d, &inner) < 0 ||
             spec_read(doc_root(d), NULL, &s, &inner) < 0)
        eval_complain(c, &inner);
    spec_release(&s);
    problems_release(&inner);
    doc_free(d);
}

void spec_check_eval(const struct spec *s, const struct spec_check *c)
{
    const struct node *eval = node_find(c->root, EVAL_KEY);
    if (!eval || eval->kind != NODE_MAP)
        return;
    const char *foreign = eval_find_foreign(eval), *secret = eval_find_secret(eval);
    bool is_own = evalspec_is_own(eval);
    if (!workload_trains((enum workload)s->workload) || s->checkpoint_none)
        spec_error(c, EVAL_KEY, "eval_no_checkpoints", MESSAGE_NO_ARGS);
    else if (is_own && s->workload == WORKLOAD_SFT)
        spec_error(c, EVAL_KEY, "eval_needs_workload", MESSAGE_NO_ARGS);
    else if (foreign)
        spec_error(c, EVAL_KEY, "eval_key", MESSAGE_ARGS(MESSAGE_STR("key", foreign)));
    else if (secret)
        spec_error(c, EVAL_KEY, "eval_secret", MESSAGE_ARGS(MESSAGE_STR("name", secret)));
    else if (!c->ps->errors && !eval_is_given(eval, "preset"))
        eval_check_whole(c);
}
