/* SPDX-License-Identifier: Apache-2.0 */
/* lineage.c - see lineage.h. A job of workload merge stands between a checkpoint and a model: what
 * counts is the job whose checkpoint it merged, so one further job is looked up. */
#include "argusd/imports/lineage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/checkpoints/checkpoints.h"
#include "argusd/ground/jobspec.h"
#include "argusd/people/people_rules.h"
#include "base/log.h"
#include "base/str.h"
#include "core/metric/ckpt.h"
#include "core/spec/spec.h"

enum { DATA_MAX = 16 << 10 }; /* bytes of names of its data; JSON may need six times as many */

struct search {
    const struct importer *im;
    struct http_principal who;
    char *path, *id;
    char *merge; /* the id of the job that merged; NULL: none */
    lineage_f done;
    void *arg;
};

char *lineage_job_of(const struct settings *s, const char *path)
{
    _cleanup_(freep) char *jobs = xasprintf("%s/jobs/", s->shared_root);
    if (!path || !str_starts(path, jobs))
        return NULL;
    const char *id = path + strlen(jobs);
    size_t n = strcspn(id, "/");
    return n && id[n] ? xstrndup(id, n) : NULL;
}

static void lineage_end(struct search *x, json_t *lineage)
{
    if (lineage && x->merge)
        (void)json_object_set_new(lineage, "merge", json_string(x->merge)); /* lacks memory alone */
    x->done(lineage, x->arg);
    free(x->path);
    free(x->id);
    free(x->merge);
    free(x);
}

/* ---- what is known ---- */

/* The step in ".../checkpoints/global_step_30/actor"; 0: none. */
static int64_t lineage_step_of(const char *path)
{
    const char *at = strstr(path, "/global_step_");
    if (!at)
        return 0;
    _cleanup_(freep) char *name = xstrndup(at + 1, strcspn(at + 1, "/"));
    return ckpt_step_of_name(name);
}

/* None of these fails but for lack of memory. */
static void lineage_put_text(json_t *o, const char *key, const char *text)
{
    if (text && *text)
        (void)json_object_set_new(o, key, json_string(text));
}

static void put_step(const struct search *x, json_t *o)
{
    const struct ckpt_list *known = checkpoints_of(x->im->checkpoints, x->id);
    int64_t step = lineage_step_of(x->path);
    const struct ckpt *c = known ? ckpt_list_find(known, step) : NULL;
    if (c && c->attempt)
        (void)json_object_set_new(o, "attempt", json_integer(c->attempt));
    if (step)
        (void)json_object_set_new(o, "step", json_integer(step));
}

json_t *lineage_eval(const struct checkpoints *cs, const json_t *lineage)
{
    const char *job = json_get_str(lineage, "job", NULL);
    const struct ckpt_list *known = job ? checkpoints_of(cs, job) : NULL;
    const struct ckpt *c = known ? ckpt_list_find(known, json_get_int(lineage, "step", 0)) : NULL;
    if (!c || c->attempt != json_get_int(lineage, "attempt", 0))
        return NULL;
    json_t *eval = json_object(), *values = json_object();
    for (size_t i = 0; i < CKPT_VALUES_MAX && known->names[i]; i++)
        if (c->told & (1U << i) && isfinite(c->values[i]))
            (void)json_object_set_new(values, known->names[i], json_real(c->values[i]));
    bool has_values = json_object_size(values) > 0;
    lineage_put_text(eval, "job", c->eval_job);
    (void)json_object_set_new(eval, "values", values);
    if (has_values)
        return eval;
    json_decref(eval);
    return NULL;
}

static json_t *parse_array(const char *text)
{
    json_t *v = NULL;
    if (!text || json_parse(text, strlen(text), RECORD_DETAIL_MAX, &v, NULL) < 0)
        return json_array();
    return v;
}

/* {"key": …, "ref": …, "hash": …} of {…} */
static json_t *pick(const json_t *from, const char *key, const char *name)
{
    json_t *o = json_object();
    lineage_put_text(o, "key", key);
    lineage_put_text(o, name, json_get_str(from, name, NULL));
    lineage_put_text(o, "hash", json_get_str(from, "hash", NULL));
    return o;
}

static void put_snapshots(json_t *o, const struct record_extra *extra, const struct spec *spec)
{
    _cleanup_(json_unrefp) json_t *all = parse_array(extra->snapshots);
    json_t *v, *out = json_array();
    size_t i;
    bool has_code = false;
    json_array_foreach (all, i, v) {
        const char *key = json_get_str(v, "key", "");
        has_code |= str_starts(key, "code"); /* code, code_path */
        (void)json_array_append_new(out, pick(v, key, "name"));
    }
    if (!has_code && spec->code_path)
        (void)json_array_append_new(
            out, json_pack("{s:s, s:s}", "key", "code_path", "path", spec->code_path));
    (void)json_object_set_new(o, "snapshot", out);
}

/* The data of a job, as many of it as fit. */
struct data {
    json_t *v;
    size_t left; /* bytes */
    size_t more; /* that did not fit */
};

static void put_data(struct data *d, const char *name, json_t *taken)
{
    size_t size = strlen(name) + 128; /* with its key and hash */
    if (size > d->left || d->more) {
        d->more++;
        json_decref(taken);
        return;
    }
    d->left -= size;
    (void)json_array_append_new(d->v, taken);
}

static void lineage_put_paths(struct data *d, const char *key, const struct strv *files)
{
    for (size_t i = 0; i < files->n; i++)
        if (!spec_is_input_name(files->v[i]))
            put_data(d, files->v[i], json_pack("{s:s, s:s}", "key", key, "path", files->v[i]));
}

static void put_inputs(json_t *o, const struct record_extra *extra, const struct spec *spec)
{
    _cleanup_(json_unrefp) json_t *all = parse_array(extra->inputs);
    struct data data = {.v = json_array(), .left = DATA_MAX};
    json_t *v;
    size_t i;
    json_array_foreach (all, i, v) {
        const char *key = json_get_str(v, "key", "");
        bool is_model = str_eq(json_get_str(v, "kind", ""), "model");
        if (is_model && !strcmp(key, "model_id"))
            (void)json_object_set_new(o, "model", pick(v, NULL, "ref"));
        else if (!is_model)
            put_data(&data, json_get_str(v, "ref", ""), pick(v, key, "ref"));
    }
    lineage_put_paths(&data, "train_file", &spec->train_file);
    lineage_put_paths(&data, "val_file", &spec->val_file);
    (void)json_object_set_new(o, "data", data.v);
    if (data.more)
        (void)json_object_set_new(o, "more_data", json_integer((json_int_t)data.more));
    if (!json_object_get(o, "model") && spec->model_id)
        (void)json_object_set_new(o, "model", json_pack("{s:s}", "id", spec->model_id));
}

static json_t *describe(const struct search *x,
                        const struct job *job,
                        const struct record_extra *extra,
                        const struct spec *spec)
{
    json_t *o = json_pack("{s:s, s:s}", "job", job->id, "workload", job->workload);
    put_step(x, o);
    json_t *eval = lineage_eval(x->im->checkpoints, o);
    if (eval)
        (void)json_object_set_new(o, "eval", eval);
    lineage_put_text(o, "verl", extra->verl);
    put_snapshots(o, extra, spec);
    put_inputs(o, extra, spec);
    return o;
}

/* All that is said of a job that is gone, or that is not for him to see. */
static json_t *name_only(const struct search *x)
{
    json_t *o = json_pack("{s:s}", "job", x->id);
    if (lineage_step_of(x->path))
        (void)json_object_set_new(o, "step", json_integer(lineage_step_of(x->path)));
    return o;
}

/* ---- the jobs ---- */

static void lineage_look_up(struct search *x);

/* True: the one whose checkpoint it merged is looked for now. */
static bool lineage_go_back(struct search *x, const struct job *job, const struct spec *spec)
{
    if (x->merge || strcmp(job->workload, workload_to_string(WORKLOAD_MERGE)) != 0)
        return false;
    char *before = lineage_job_of(x->im->settings, spec->model_id);
    if (!before)
        return false;
    x->merge = x->id;
    x->id = before;
    set_str(&x->path, spec->model_id);
    return true;
}

static void lineage_take(struct search *x, const struct job *job, const struct record_extra *extra)
{
    static const struct spec none;
    bool sees = people_check_job(x->im->people, &x->who, ACCESS_JOB_SEE, "see", job, NULL) == 0;
    json_t *lineage = NULL;
    bool further = false;
    if (sees) {
        const struct spec *spec = jobspec_of(x->im->settings, job);
        if (!spec)
            spec = &none; /* it was good once: less is said */
        further = lineage_go_back(x, job, spec);
        lineage = further ? NULL : describe(x, job, extra, spec);
    } else if (x->merge) {
        lineage = name_only(x);
    }
    if (further)
        lineage_look_up(x);
    else
        lineage_end(x, lineage);
}

static void lineage_on_found(const struct store_result *r, void *arg)
{
    struct search *x = arg;
    struct record_extra extra = {0};
    struct job *job = NULL;
    bool is_it = !r->err.code && r->njobs == 1 && str_eq(r->jobs[0].id, x->id);
    if (is_it && record_to_job(&r->jobs[0], &job, &extra, NULL) == 0 && job) {
        secrets_open_spec(x->im->secrets, job->id, &job->spec);
        lineage_take(x, job, &extra);
    } else {
        lineage_end(x, x->merge ? name_only(x) : NULL);
    }
    record_extra_release(&extra);
    job_free(job);
}

static void lineage_look_up(struct search *x)
{
    struct live *l = jobs_find_any(x->im->jobs, x->id);
    if (l) {
        lineage_take(x, l->job, &l->extra);
        return;
    }
    struct store_job_ref ref = {.ref = x->id, .is_id = true};
    struct store_then then = {.done = lineage_on_found, .arg = x};
    if (!store_find_job(x->im->store, &ref, &then)) {
        log_debug("registry", "the store is closing job=%s", x->id);
        lineage_end(x, NULL);
    }
}

void lineage_find(const struct importer *im,
                  const struct http_principal *p,
                  const char *path,
                  lineage_f done,
                  void *arg)
{
    struct search *x = xcalloc(1, sizeof(*x));
    *x = (struct search){.im = im, .who = *p, .path = xstrdup(path), .done = done, .arg = arg};
    x->id = lineage_job_of(im->settings, path);
    if (x->id)
        lineage_look_up(x);
    else
        lineage_end(x, NULL);
}
