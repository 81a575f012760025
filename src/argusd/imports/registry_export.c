/* SPDX-License-Identifier: Apache-2.0 */
/* registry_export.c - see registry_export.h. The command line of the merger is the workload's own
 * (core/verl): here is only which keys of the training's spec its job needs. */
#define _GNU_SOURCE
#include "argusd/imports/registry_export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/jobspec.h"
#include "argusd/imports/ownjob.h"
#include "argusd/imports/registry_import.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { SPEC_MAX = 128 << 10 };
#define MERGE_TIMEOUT "4h" /* as the shipped preset has it */

void registry_export_release(struct registry_export *x)
{
    freep(&x->spec);
    freep(&x->source);
    freep(&x->target);
}

/* Where a merge leaves its model. Yours. */
static char *export_target(const struct importer *im, const char *merge)
{
    return xasprintf("%s/jobs/%s/output/model", im->settings->shared_root, merge);
}

/* ---- the spec ---- */

static void export_put_list(struct jout *j, const char *key, const struct strv *list)
{
    if (!list->n)
        return;
    jout_open(j, key, '[');
    for (size_t i = 0; i < list->n; i++)
        jout_str(j, NULL, list->v[i]);
    jout_close(j, ']');
}

/* A merge needs no secret, and what is named like one is not written down once more. */
static void export_put_env(struct jout *j, const struct pairs *env)
{
    jout_open(j, "env", '{');
    for (size_t i = 0; i < env->n; i++)
        if (!str_is_secret_name(env->v[i].key))
            jout_str(j, env->v[i].key, env->v[i].value);
    jout_close(j, '}');
}

static bool has_word(const struct strv *overrides, const char *word)
{
    for (size_t i = 0; i < overrides->n; i++)
        if (strcasestr(overrides->v[i], word))
            return true;
    return false;
}

/* Which engine saved it, and whether the model brings code of its own. */
static void export_put_options(struct jout *j, const struct strv *overrides)
{
    jout_open(j, "overrides", '[');
    if (has_word(overrides, "megatron"))
        jout_str(j, NULL, "--backend=megatron");
    if (has_word(overrides, "trust_remote_code=true"))
        jout_str(j, NULL, "--trust-remote-code");
    jout_close(j, ']');
}

static void export_put_text(struct jout *j, const char *key, const char *value)
{
    if (value && *value)
        jout_str(j, key, value);
}

static char *export_spec(const struct registry_export *x,
                         const struct job *job,
                         const struct spec *s,
                         int64_t step)
{
    struct buf out = BUF_INIT(SPEC_MAX);
    struct jout j = jout_begin(&out);
    char name[SPEC_JOB_NAME_MAX];
    text_printf(name, "export of %s, step %" PRId64, job->id, step);
    jout_open(&j, NULL, '{');
    jout_str(&j, "workload", workload_to_string(WORKLOAD_MERGE));
    jout_str(&j, "submission_id", x->id);
    jout_str(&j, "name", name);
    jout_int(&j, "nnodes", 1);
    export_put_text(&j, "project", job->project);
    export_put_text(&j, "cluster", s->cluster);
    export_put_list(&j, "pool", &s->pool);
    export_put_text(&j, "code", s->code);
    export_put_text(&j, "code_path", s->code ? NULL : s->code_path);
    export_put_list(&j, "extra_pythonpath", &s->extra_pythonpath);
    export_put_env(&j, &s->env);
    if (s->py_executable) {
        jout_open(&j, "runtime_env", '{');
        jout_str(&j, "py_executable", s->py_executable);
        jout_close(&j, '}');
    }
    jout_str(&j, "model_id", x->source);
    export_put_options(&j, &s->overrides);
    jout_str(&j, "timeout", MERGE_TIMEOUT);
    jout_close(&j, '}');
    bool fits = !out.failed;
    char *text = buf_take(&out);
    if (!fits)
        freep(&text);
    return text;
}

int registry_export_plan(const struct importer *im,
                         const struct job *job,
                         int64_t step,
                         struct registry_export *ret,
                         struct err *err)
{
    const char *root = im->settings->shared_root;
    const struct spec *s = jobspec_of(im->settings, job);
    if (!workload_word_trains(job->workload) || !s)
        return message_refuse(
            err, ERR_REFUSED, "nothing_to_export",
            MESSAGE_ARGS(MESSAGE_STR("job", job->id), MESSAGE_STR("workload", job->workload)));
    struct registry_export x = {0};
    bool is_sft = str_eq(job->workload, workload_to_string(WORKLOAD_SFT));
    ownjob_choose_id(im, WORKLOAD_MERGE, x.id);
    x.source = xasprintf("%s/jobs/%s/checkpoints/global_step_%" PRId64 "%s", root, job->id, step,
                         is_sft ? "" : "/actor");
    x.target = export_target(im, x.id);
    x.spec = export_spec(&x, job, s, step);
    if (!x.spec) {
        registry_export_release(&x);
        return message_refuse(err, ERR_REFUSED, "retry_spec_large",
                              MESSAGE_ARGS(MESSAGE_STR("job", job->id)));
    }
    *ret = x;
    return 0;
}

/* ---- the entry ---- */

int registry_export_add(const struct importer *im,
                        const struct registry_export *x,
                        const struct registry_export_as *as,
                        json_t *lineage,
                        struct registry_entry **ret,
                        struct err *err)
{
    int r = dataref_check_name("model", as->name, err);
    if (r < 0) {
        json_decref(lineage);
        return r;
    }
    if (lineage)
        (void)json_object_set_new(lineage, "merge", json_string(x->id)); /* lacks memory alone */
    struct registry_entry *e = xcalloc(1, sizeof(*e));
    *e = (struct registry_entry){.kind = REGISTRY_MODEL,
                                 .state = REGISTRY_importing,
                                 .name = xstrdup(as->name),
                                 .owner = xstrdup(as->who->user),
                                 .project = xstrdup(as->project),
                                 .is_common = as->is_common,
                                 .in_place = true,
                                 .is_made = true,
                                 .path = xstrdup(x->target),
                                 .source = xstrdup(x->target),
                                 .job = xstrdup(x->id),
                                 .lineage = lineage,
                                 .is_recorded = lineage != NULL,
                                 .created_at = clock_wall()};
    r = registry_add(im->registry, e, &e, err);
    if (r < 0)
        return r;
    e->busy = true;
    *ret = e;
    return 0;
}

void registry_export_begun(struct registry_entry *e)
{
    e->busy = false;
}

/* ---- made before ---- */

/* The attempt that saved it; 0: not known. */
static int64_t export_attempt(const struct importer *im, const char *job, int64_t step)
{
    const struct ckpt_list *known = checkpoints_of(im->checkpoints, job);
    const struct ckpt *c = known ? ckpt_list_find(known, step) : NULL;
    return c ? c->attempt : 0;
}

static bool export_is_of(const struct registry_entry *e,
                         const char *job,
                         int64_t step,
                         int64_t attempt)
{
    int64_t by = json_get_int(e->lineage, "attempt", 0);
    return e->is_recorded && e->state != REGISTRY_removing &&
           json_get_str(e->lineage, "merge", NULL) &&
           str_eq(json_get_str(e->lineage, "job", NULL), job) &&
           json_get_int(e->lineage, "step", 0) == step && (!by || !attempt || by == attempt);
}

/* Where the merge that its lineage names has left it: no copy, and nothing that was put elsewhere.
 */
static bool export_lies_in_place(const struct importer *im, const struct registry_entry *e)
{
    const char *merge = json_get_str(e->lineage, "merge", NULL);
    _cleanup_(freep) char *path = merge ? export_target(im, merge) : NULL;
    return path && str_eq(e->path, path);
}

static bool export_is_better(const struct registry_entry *e, const struct registry_entry *than)
{
    bool is_ready = e->state == REGISTRY_ready;
    if (is_ready != (than->state == REGISTRY_ready))
        return is_ready;
    return e->created_at > than->created_at;
}

struct registry_entry *registry_export_find(const struct importer *im,
                                            const struct access_who *who,
                                            const char *owner,
                                            const char *job,
                                            int64_t step)
{
    int64_t attempt = export_attempt(im, job, step);
    struct registry_entry *e, *best = NULL;
    for (size_t pos = 0; (e = registry_next(im->registry, REGISTRY_MODEL, &pos));)
        if (str_eq(e->owner, owner) && export_is_of(e, job, step, attempt) &&
            export_lies_in_place(im, e) && (!best || export_is_better(e, best)) &&
            registry_check(e, who, ACCESS_DATA_SEE, "see", NULL) == 0)
            best = e;
    return best;
}

int registry_export_take(struct registry_entry *e, void *arg, struct err *err)
{
    const struct importer *im = arg;
    struct http_principal p;
    int r = people_admit_absent(im->people, e->owner, &p, err);
    return r < 0 ? r : registry_import_made(im, &p, e, err);
}
