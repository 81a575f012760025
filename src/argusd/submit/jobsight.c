/* SPDX-License-Identifier: Apache-2.0 */
/* jobsight.c - see jobsight.h. One job is asked about at a time. */
#include "argusd/submit/jobsight.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

struct jobsight {
    struct api *a;
    struct http_principal who;
    struct spec_jobs named;
    size_t at;
    struct store_read *read; /* under way */
    jobsight_f done;
    void *arg;
    struct jobsight **place; /* of the caller */
};

static void jobsight_free(struct jobsight *js)
{
    spec_jobs_release(&js->named);
    free(js);
}

void jobsight_forget(struct jobsight *js)
{
    if (!js)
        return;
    store_read_cancel(js->read);
    jobsight_free(js);
}

static void jobsight_end(struct jobsight *js, const char *field, const struct err *err)
{
    *js->place = NULL;
    js->done(field, err, js->arg);
    jobsight_free(js);
}

static void jobsight_refuse(struct jobsight *js)
{
    const struct spec_job_name *one = &js->named.v[js->at];
    struct err err = {0};
    (void)message_refuse(&err, ERR_NOT_FOUND, "not_found",
                         MESSAGE_ARGS(MESSAGE_STR("noun", "job"),
                                      MESSAGE_STR("name", one->id))); /* only fills err */
    jobsight_end(js, one->field, &err);
}

static void jobsight_go_on(struct jobsight *js);

static void jobsight_on_row(const struct store_result *r, void *arg)
{
    struct jobsight *js = arg;
    bool is_not_told = r->err.code == ERR_NOT_FOUND || r->err.code == ERR_CONFLICT;
    js->read = NULL;
    if (r->err.code && !is_not_told)
        jobsight_end(js, js->named.v[js->at].field, &r->err);
    else if (r->err.code || !str_eq(r->jobs[0].id, js->named.v[js->at].id))
        jobsight_refuse(js);
    else {
        js->at++;
        jobsight_go_on(js);
    }
}

static void jobsight_look_up(struct jobsight *js)
{
    struct store_then then = {.done = jobsight_on_row, .arg = js};
    struct people_view view;
    people_view(js->a->people, &js->who, PEOPLE_WISH_ALL, &view);
    struct store_job_ref ref = {
        .ref = js->named.v[js->at].id, .user = js->who.user, .scope = view.scope, .is_id = true};
    js->read = store_find_job(js->a->store, &ref, &then);
    people_view_release(&view);
}

static void jobsight_go_on(struct jobsight *js)
{
    for (; js->at < js->named.n; js->at++) {
        const char *id = js->named.v[js->at].id;
        const struct live *l = jobs_find_any(js->a->jobs, id);
        if (!l && idset_has(js->a->used, id)) {
            jobsight_look_up(js);
            return;
        }
        if (!l || people_check_job(js->a->people, &js->who, ACCESS_JOB_SEE, "see", l->job, NULL)) {
            jobsight_refuse(js);
            return;
        }
    }
    jobsight_end(js, NULL, NULL);
}

void jobsight_ask(struct api *a,
                  const struct http_principal *who,
                  struct spec_jobs *taken,
                  jobsight_f done,
                  void *arg,
                  struct jobsight **ret)
{
    struct jobsight *js = xcalloc(1, sizeof(*js));
    *js = (struct jobsight){
        .a = a, .who = *who, .named = *taken, .done = done, .arg = arg, .place = ret};
    *taken = (struct spec_jobs){0};
    *ret = js;
    jobsight_go_on(js);
}
