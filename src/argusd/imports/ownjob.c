/* SPDX-License-Identifier: Apache-2.0 */
/* ownjob.c - see ownjob.h. The checks are those of submit/submit.c, as far as such a job can fail
 * them. */
#include "argusd/imports/ownjob.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/jobspec.h"
#include "argusd/jobs/jobs_rules.h"
#include "argusd/launch/secretcheck.h"
#include "argusd/people/people_dirs.h"
#include "base/digest/hash.h"
#include "base/str.h"

void ownjob_choose_id(const struct importer *im, enum workload w, char ret[static SPEC_ID_BUF])
{
    unsigned char bytes[6];
    do {
        random_bytes(bytes, sizeof(bytes));
        (void)spec_generate_id(w, clock_wall(), bytes, ret);
    } while (idset_has(im->used, ret));
}

static int ownjob_read_spec(const struct importer *im,
                            const struct http_principal *p,
                            const char *text,
                            struct spec *spec,
                            const char **ret_field,
                            struct err *err)
{
    struct problems ps = {0};
    int r = jobspec_read(im->settings, text, strlen(text), p->user, false, spec, &ps);
    *ret_field = NULL;
    if (r < 0 && ps.n)
        r = problem_to_err(problems_first(&ps), ERR_BAD_SPEC, err);
    problems_release(&ps);
    return r < 0 ? r : people_check_submit(im->people, p, spec, ret_field, err);
}

static int ownjob_check_quota(const struct importer *im,
                              const struct http_principal *p,
                              const struct spec *spec,
                              const struct demand *d,
                              struct err *err)
{
    int r = sched_refuses(jobs_sched(im->jobs), p->user, str_or(spec->project, ""), d, err);
    if (r < 0)
        return r;
    return jobs_check_user_room(im->jobs, im->people, im->settings, p->user, err);
}

int ownjob_submit(const struct importer *im,
                  const struct http_principal *p,
                  const char *id,
                  const char *spec_text,
                  struct live **ret,
                  const char **ret_field,
                  struct err *err)
{
    struct demand d;
    struct spec spec = {0};
    struct demand_defaults dflt = {.entrypoint_cpus = (double)im->settings->entrypoint_num_cpus,
                                   .entrypoint_gpus = 0};
    int r = jobs_check_room(im->jobs, im->store, im->cluster, im->settings, err);
    if (r == 0)
        r = ownjob_read_spec(im, p, spec_text, &spec, ret_field, err);
    if (r == 0)
        r = secretcheck(im->secrets, p->user, &spec, spec_text, err);
    if (r == 0) {
        demand_compute(&spec, NULL, &dflt, &d);
        r = ownjob_check_quota(im, p, &spec, &d, err);
    }
    if (r == 0) {
        struct record_extra extra = {0};
        const struct job_given given = {.id = id,
                                        .user = p->user,
                                        .cluster = im->settings->cluster,
                                        .text = spec_text,
                                        .demand = &d,
                                        .now = clock_wall()};
        struct job *job = job_of_spec(&spec, &given);
        job->seq = jobs_next_seq(im->jobs);
        idset_add(im->used, id);
        *ret = jobs_add(im->jobs, job, &extra, job->queued_at);
        struct person *who = people_find(im->people, p->user);
        if (who)
            people_dirs_make(im->loop, im->cluster, im->settings->shared_root, im->people, who);
        jobs_admit(im->jobs, job->queued_at);
    }
    spec_release(&spec);
    return r;
}
