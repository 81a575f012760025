/* SPDX-License-Identifier: Apache-2.0 */
/* archive.c - put the directory of a job that is over away, and bring it back. The work goes on
 * after the answer: the job's page says how far it is, and an event its end. */
#include "argusd/api/handlers.h"
#include "argusd/archive/archives.h"
#include "argusd/kit/view.h"

enum { ANSWER_MAX = 8 << 20 };

typedef int (*archive_begin_f)(struct archives *as,
                               const struct job *job,
                               const char *actor,
                               struct err *err);

static int archive_check(const struct api *a,
                         const struct http_principal *p,
                         const char *verb,
                         const struct job *job,
                         struct err *err)
{
    int r = api_may_change(a, p, verb, job, err);
    if (r == 0 && store_is_failing(a->store))
        r = err_set(err, ERR_STORE, "the store cannot write now: no job can be archived");
    if (r == 0 && !job_state_is_terminal(job->state))
        r = message_refuse(err, ERR_CONFLICT, "job_not_over",
                           MESSAGE_ARGS(MESSAGE_STR("job", job->id),
                                        MESSAGE_STR("state", job_state_to_string(job->state))));
    return r;
}

static void archive_change(struct http_req *req,
                           struct api *a,
                           const struct job *job,
                           const struct record_extra *extra,
                           const char *verb,
                           archive_begin_f begin)
{
    const struct http_principal *p = http_req_principal(req);
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    struct api_eyes eyes = {.a = a, .p = p};
    struct err err = {0};
    int r = archive_check(a, p, verb, job, &err);
    if (r == 0)
        r = begin(a->archives, job, p->user, &err);
    if (r < 0) {
        api_fail(req, &err, 0);
        return;
    }
    view_job(&j, a->settings, job, extra, NULL, &eyes);
    http_reply_json(req, 202, &out, api_barrier(a));
    buf_release(&out);
}

static void archive_job(struct http_req *req,
                        struct api *a,
                        const struct job *job,
                        const struct record_extra *extra,
                        struct live *l)
{
    (void)l;
    archive_change(req, a, job, extra, "archive", archives_pack);
}

static void unarchive_job(struct http_req *req,
                          struct api *a,
                          const struct job *job,
                          const struct record_extra *extra,
                          struct live *l)
{
    (void)l;
    archive_change(req, a, job, extra, "unarchive", archives_unpack);
}

void api_jobs_archive(struct http_req *req, void *app)
{
    api_find_job(req, app, archive_job);
}

void api_jobs_unarchive(struct http_req *req, void *app)
{
    api_find_job(req, app, unarchive_job);
}
