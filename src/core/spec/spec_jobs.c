/* SPDX-License-Identifier: Apache-2.0 */
/* spec_jobs.c - the jobs that a JobSpec names; see spec_list_jobs() in spec.h.
 *
 * Paths are canonical by then. The entrypoint, env and overrides are free text: there each
 * "<shared_root>/jobs/<id>" counts that begins a word, whatever stands around it. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/spec/spec.h"

struct jobs_named {
    struct spec_jobs *out;
    const char *own; /* id; NULL: it has none yet */
    const char *shared_root;
};

static bool is_job_byte(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

static bool is_job(const char *name, const char *id, size_t n)
{
    return name && !strncmp(name, id, n) && name[n] == 0;
}

static void name_job(const struct jobs_named *x, const char *field, const char *id, size_t n)
{
    struct spec_jobs *sj = x->out;
    bool is_dots = n <= 2 && !strncmp(id, "..", n);
    if (n == 0 || is_dots || sj->n > SPEC_JOBS_MAX || is_job(x->own, id, n))
        return;
    for (size_t i = 0; i < sj->n; i++)
        if (is_job(sj->v[i].id, id, n))
            return;
    _cleanup_(freep) char *one = xstrndup(id, n);
    spec_jobs_add(sj, field, one);
}

static void name_jobs_in(const struct jobs_named *x, const char *field, const char *text)
{
    size_t n = strlen(x->shared_root);
    for (const char *at = text; at && (at = strstr(at, x->shared_root)); at += n) {
        const char *s = at + n;
        if (at != text && (is_job_byte(at[-1]) || at[-1] == '/'))
            continue;
        s += strspn(s, "/");
        if (s == at + n || strncmp(s, "jobs/", strlen("jobs/")) != 0)
            continue;
        s += strlen("jobs/");
        s += strspn(s, "/");
        size_t len = 0;
        while (is_job_byte(s[len]))
            len++;
        name_job(x, field, s, len);
    }
}

static void name_jobs_of(const struct jobs_named *x, const char *field, const struct strv *texts)
{
    for (size_t i = 0; i < texts->n; i++)
        name_jobs_in(x, field, texts->v[i]);
}

void spec_list_jobs(const struct spec *s, const char *shared_root, struct spec_jobs *ret)
{
    *ret = (struct spec_jobs){0};
    struct jobs_named x = {ret, s->id, shared_root};
    if (s->resume_mode == SPEC_RESUME_JOB && s->resume_job)
        name_job(&x, "resume", s->resume_job, strlen(s->resume_job));
    name_jobs_in(&x, "code_path", s->code_path);
    name_jobs_in(&x, "working_dir", s->working_dir);
    name_jobs_in(&x, "runtime_env.py_executable", s->py_executable);
    name_jobs_of(&x, "extra_pythonpath", &s->extra_pythonpath);
    name_jobs_of(&x, "train_file", &s->train_file);
    name_jobs_of(&x, "val_file", &s->val_file);
    name_jobs_in(&x, "model_id", s->model_id);
    name_jobs_in(&x, "reward_fn_path", s->reward_file);
    for (size_t i = 0; i < s->env.n; i++)
        name_jobs_in(&x, "env", s->env.v[i].value);
    name_jobs_of(&x, "entrypoint", &s->entrypoint);
    name_jobs_of(&x, "overrides", &s->overrides);
}

void spec_jobs_add(struct spec_jobs *sj, const char *field, const char *id)
{
    sj->v = xrealloc(sj->v, sj->n + 1, sizeof(*sj->v));
    sj->v[sj->n++] = (struct spec_job_name){.field = field, .id = xstrdup(id)};
}

void spec_jobs_release(struct spec_jobs *sj)
{
    for (size_t i = 0; i < sj->n; i++)
        free(sj->v[i].id);
    free(sj->v);
    *sj = (struct spec_jobs){0};
}
