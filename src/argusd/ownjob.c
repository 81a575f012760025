/* SPDX-License-Identifier: Apache-2.0 */
/* ownjob.c - see ownjob.h. The checks are those of api_submit.c, as far as such a job can fail
 * them. */
#include "argusd/ownjob.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/launchplan.h"
#include "argusd/people_dirs.h"
#include "argusd/secretcheck.h"
#include "base/hash.h"
#include "base/str.h"

void ownjob_choose_id(const struct api *a, enum workload w, char ret[static SPEC_ID_BUF])
{
    unsigned char bytes[6];
    do {
        random_bytes(bytes, sizeof(bytes));
        (void)spec_generate_id(w, clock_wall(), bytes, ret);
    } while (idset_has(a->used, ret));
}

static int read_spec(const struct api *a,
                     const struct http_principal *p,
                     const char *text,
                     struct spec *spec,
                     const char **ret_field,
                     struct err *err)
{
    struct problems ps = {0};
    int r = launchplan_read_spec(a->settings, text, strlen(text), p->user, false, spec, &ps);
    *ret_field = NULL;
    if (r < 0)
        r = err_set(err, ERR_BAD_SPEC, "%s", ps.n ? ps.v[0].text : "the job's spec is broken");
    problems_release(&ps);
    return r < 0 ? r : people_check_submit(a->people, p, spec, ret_field, err);
}

static int check_quota(const struct api *a,
                       const struct http_principal *p,
                       const struct spec *spec,
                       const struct demand *d,
                       struct err *err)
{
    char text[JOB_REASON_TEXT_MAX];
    const char *code = sched_refuses(jobs_sched(a->jobs), p->user, str_or(spec->project, ""), d,
                                     text, sizeof(text));
    return code ? err_set(err, ERR_REFUSED, "%s: %s", code, text) : 0;
}

static struct job *make_job(const struct api *a,
                            const struct http_principal *p,
                            const char *id,
                            const char *text,
                            const struct spec *spec,
                            const struct demand *d)
{
    struct buf pool = BUF_INIT(1024);
    for (size_t i = 0; i < spec->pool.n; i++)
        (void)buf_addf(&pool, "%s%s", i ? "," : "", spec->pool.v[i]); /* overflow: no node fits */
    struct job *j = job_new();
    j->id = xstrdup(id);
    j->name = xstrdup(str_or(spec->name, ""));
    j->user = xstrdup(p->user);
    j->project = xstrdup(str_or(spec->project, ""));
    j->workload = xstrdup(workload_to_string((enum workload)spec->workload));
    j->cluster = xstrdup(a->settings->cluster);
    j->pool = buf_take(&pool);
    j->spec = xstrdup(text);
    j->priority = (int)spec->priority;
    j->demand = *d;
    j->timeout = spec->timeout;
    j->queue_timeout = spec->queue_timeout;
    j->stop_grace = spec->stop_grace;
    restart_from_spec(spec, &j->restart);
    j->queued_at = clock_wall();
    j->seq = jobs_next_seq(a->jobs);
    return j;
}

int ownjob_submit(struct api *a,
                  const struct http_principal *p,
                  const char *id,
                  const char *spec_text,
                  struct live **ret,
                  const char **ret_field,
                  struct err *err)
{
    struct demand d;
    struct spec spec = {0};
    struct demand_defaults dflt = {.entrypoint_cpus = (double)a->settings->entrypoint_num_cpus,
                                   .entrypoint_gpus = 0};
    int r = api_check_service(a, err);
    if (r == 0)
        r = read_spec(a, p, spec_text, &spec, ret_field, err);
    if (r == 0)
        r = secretcheck(a->secrets, p->user, &spec, spec_text, err);
    if (r == 0) {
        demand_compute(&spec, NULL, &dflt, &d);
        r = check_quota(a, p, &spec, &d, err);
    }
    if (r == 0) {
        struct record_extra extra = {0};
        struct job *job = make_job(a, p, id, spec_text, &spec, &d);
        idset_add(a->used, id);
        *ret = jobs_add(a->jobs, job, &extra, job->queued_at);
        struct person *who = people_find(a->people, p->user);
        if (who)
            people_dirs_make(a->loop, a->cluster, a->settings->shared_root, a->people, who);
        jobs_admit(a->jobs, job->queued_at);
    }
    spec_release(&spec);
    return r;
}
