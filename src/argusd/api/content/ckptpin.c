/* SPDX-License-Identifier: Apache-2.0 */
/* ckptpin.c - POST /v1/jobs/{id}/checkpoints/{step}:pin and :unpin: a person's word that a
 * checkpoint stays. What follows from it is the room checkpoints'. */
#include "argusd/archive/archives.h"
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "base/message.h"
#include "base/str.h"

enum { ANSWER_MAX = 64 << 10 };

static int ckptpin_ask(struct http_req *req,
                       struct api *a,
                       const struct job *job,
                       bool is_on,
                       const struct ckpt **ret,
                       struct err *err)
{
    const struct http_principal *p = http_req_principal(req);
    const char *text = str_or(http_req_param(req, "step"), "");
    struct checkpoints_pin pin = {.job = job->id, .actor = p->user, .is_on = is_on};
    int r = api_may_change(a, p, "pin checkpoints of", job, err);
    if (r == 0)
        r = archives_check_files(a->archives, job->id, err);
    if (r < 0)
        return r;
    if (str_to_int(text, 1, INT32_MAX, &pin.step, NULL) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "no_step",
                              MESSAGE_ARGS(MESSAGE_STR("step", text)));
    return checkpoints_pin(a->checkpoints, &pin, ret, err);
}

static void ckptpin_answer(struct http_req *req, struct api *a, const struct job *job, bool is_on)
{
    struct err err = {0};
    const struct ckpt *c = NULL;
    if (ckptpin_ask(req, a, job, is_on, &c, &err) < 0) {
        api_fail(req, &err, 0);
        return;
    }
    const struct message_listener to = {.language = http_req_principal(req)->language};
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    ckpt_to_json(c, checkpoints_of(a->checkpoints, job->id), &to, &j, NULL);
    http_reply_json(req, 200, &out, api_barrier(a));
    buf_release(&out);
}

static void ckptpin_set(struct http_req *req,
                        struct api *a,
                        const struct job *job,
                        const struct record_extra *extra,
                        struct live *l)
{
    (void)extra;
    (void)l;
    ckptpin_answer(req, a, job, true);
}

static void ckptpin_clear(struct http_req *req,
                          struct api *a,
                          const struct job *job,
                          const struct record_extra *extra,
                          struct live *l)
{
    (void)extra;
    (void)l;
    ckptpin_answer(req, a, job, false);
}

static void api_jobs_checkpoints_pin(struct http_req *req, void *app)
{
    api_find_job(req, app, ckptpin_set);
}

static void api_jobs_checkpoints_unpin(struct http_req *req, void *app)
{
    api_find_job(req, app, ckptpin_clear);
}

static const struct http_route rows[] = {
    {.method = "POST",
     .pattern = "/v1/jobs/{id}/checkpoints/{step}:pin",
     .example = "10",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_checkpoints_pin,
     .summary = "keep a checkpoint whatever the retention says",
     .reply_schema = "Checkpoint"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}/checkpoints/{step}:unpin",
     .example = "10",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_checkpoints_unpin,
     .summary = "leave a pinned checkpoint to the retention again",
     .reply_schema = "Checkpoint"},
};
const struct api_part part_ckptpin = {rows, array_len(rows), NULL, 0};
