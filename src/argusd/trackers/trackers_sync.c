/* SPDX-License-Identifier: Apache-2.0 */
/* trackers_sync.c - the job that sends an attempt to W&B: argus_track.py with the Python and the
 * packages of the attempt, as a job of its user. */
#include <stdlib.h>
#include <string.h>

#include "argusd/imports/ownjob.h"
#include "argusd/trackers/trackers_state.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/attempt/install.h"
#include "fsroot/tree/paths.h"

enum { SYNC_SPEC_MAX = 256 << 10 };

static char *sync_order(const struct tracker_run *r)
{
    static const char *const ends[] = {"finished", "failed", "killed"};
    const char *root = r->ts->p.settings->shared_root;
    struct buf out = BUF_INIT(SYNC_SPEC_MAX);
    struct jout j = jout_begin(&out);
    _cleanup_(freep) char *dir = fsroot_job_dir(root, r->job);
    _cleanup_(freep) char *run = xasprintf("%s-%d", r->job, r->attempt);
    jout_open(&j, NULL, '{');
    jout_str(&j, "job", r->job);
    jout_int(&j, "attempt", r->attempt);
    jout_str(&j, "dir", dir);
    jout_str(&j, "run", run);
    jout_str(&j, "project", r->project);
    jout_str(&j, "name", str_or(r->name, r->job));
    jout_str(&j, "end", ends[r->end]);
    jout_open(&j, "told", '{'); /* what the job's page says */
    jout_str(&j, "argus_state", r->outcome);
    jout_str(&j, "argus_finding", r->finding);
    jout_str(&j, "argus_advice", r->advice);
    jout_int(&j, "argus_restarts", r->attempt - 1);
    jout_str(&j, "argus_pipeline", r->pipeline);
    jout_str(&j, "argus_pipeline_step", r->pipeline_step);
    jout_str(&j, "argus_pipeline_end", r->pipeline_end);
    jout_close(&j, '}');
    jout_close(&j, '}');
    return buf_take(&out);
}

static void put_words(struct jout *j, const char *key, const char *const *words, size_t n)
{
    jout_open(j, key, '[');
    for (size_t i = 0; i < n; i++)
        jout_str(j, NULL, words[i]);
    jout_close(j, ']');
}

static void sync_spec(const struct tracker_run *r, const char *id, struct buf *out)
{
    const char *root = r->ts->p.settings->shared_root;
    _cleanup_(freep) char *lib = fsroot_lib_dir(root), *order = sync_order(r);
    _cleanup_(freep) char *tool = xasprintf("%s/argus_track.py", lib);
    _cleanup_(freep) char *name = xasprintf("%s-%d to W&B", r->job, r->attempt);
    const char *argv[] = {"python3", tool, order}, *key = "WANDB_API_KEY";
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "workload", "ray");
    jout_str(&j, "submission_id", id);
    jout_str(&j, "name", name);
    if (*r->group)
        jout_str(&j, "project", r->group);
    if (*r->pool)
        jout_str(&j, "pool", r->pool);
    put_words(&j, "entrypoint", argv, array_len(argv));
    if (r->path.n)
        put_words(&j, "extra_pythonpath", (const char *const *)r->path.v, r->path.n);
    put_words(&j, "secrets", &key, 1);
    jout_open(&j, "runtime_env", '{');
    if (r->python)
        jout_str(&j, "py_executable", r->python);
    jout_open(&j, "env_vars", '{');
    jout_str(&j, "WANDB_BASE_URL", r->url);
    jout_close(&j, '}');
    jout_close(&j, '}');
    jout_str(&j, "timeout", "2h");
    jout_str(&j, "stop_grace", "10s");
    jout_close(&j, '}');
}

bool trackers_sync(struct tracker_run *r)
{
    char id[SPEC_ID_BUF];
    struct err err = {0};
    struct buf spec = BUF_INIT(SYNC_SPEC_MAX);
    struct http_principal p = {.role = HTTP_ROLE_USER};
    const char *field;
    struct live *l;
    text_copy(p.user, r->user);
    ownjob_choose_id(r->ts->p.importer, WORKLOAD_DATA, id);
    sync_spec(r, id, &spec);
    int done = ownjob_submit(r->ts->p.importer, &p, id, buf_str(&spec), &l, &field, &err);
    buf_release(&spec);
    set_str(&r->why, done < 0 ? err.text : NULL);
    if (done == 0)
        set_str(&r->sync_job, id);
    return done == 0;
}
