/* SPDX-License-Identifier: Apache-2.0 */
/* ckptexport.h - a checkpoint becomes a model, for whoever asks: checked, looked at, and a job that
 * merges it submitted. What follows then is imports/registry_export.h's. */
#pragma once
#include "argusd/imports/registry_export.h"
#include "argusd/kit/api.h"

struct ckptexport;

struct ckptexport_ask {
    const struct job *job; /* the training; borrowed for the call */
    int64_t step;
    const char *name; /* of the model; NULL: made of the job's id and the step */
    bool is_common;
    /* Called once, later: the entry and the plan, or NULL, NULL and the reason. All are borrowed
     * for the call. The entry and its job are in the open batch. */
    void (*done)(struct registry_entry *e,
                 const struct registry_export *plan,
                 const struct err *err,
                 void *arg);
    void *arg;
};

/* Asked by p, who must be able to change the job; the model is its user's. *ret is what is under
 * way, for ckptexport_forget(), and NULL from before done is called on. Any error that POST
 * …:export knows. */
must_check int ckptexport_begin(struct api *a,
                                const struct http_principal *p,
                                const struct ckptexport_ask *ask,
                                struct ckptexport **ret,
                                struct err *err);
/* Nobody waits for it any more: nothing is submitted, and done is not called. NULL is fine. */
void ckptexport_forget(struct ckptexport *x);
