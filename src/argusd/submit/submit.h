/* SPDX-License-Identifier: Apache-2.0 */
/* submit.h - submitting a spec that is not the body of its request: a retry, or one that came with
 * an archive.
 *
 * All the checks and the answer are those of POST /v1/jobs (submit/submit.c). */
#pragma once
#include "argusd/kit/api.h"
#include "core/job/family.h"

struct snapshot;

/* Where a spec comes from; see core/job/family.h. Owned texts. */
struct submit_origin {
    char *job;           /* NULL: from nowhere, or from what its `resume` names */
    enum family_how how; /* what it is to that job */
    int64_t step;        /* of that job's checkpoint; 0: none */
    char *note;          /* why it is made, see family_is_note(); NULL: nobody said */
};

/* A request whose body is the spec, as a text or as a form. Answers it, at once or later. */
void submit_request(struct http_req *req, struct api *a);

/* The job that is submitted again. */
struct submit_retry {
    char *id;
    int64_t seq;
    char *changes; /* JSON array, see core/spec/respec.h: how its spec differs from that job's */
    char *note;    /* as of an origin */
};

/* Answers the request, at once or later. who: whose job it will be; copied. taken_spec and the
 * texts of taken are taken. */
void submit_retry(struct http_req *req,
                  struct api *a,
                  const struct http_principal *who,
                  char *taken_spec,
                  const struct submit_retry *taken);

/* The job that waits and is to wait with this spec. */
struct submit_change {
    char *id;
    char *changes;      /* as above */
    bool sets_priority; /* else it keeps the one that it has, whatever its spec says */
};

/* As submit_retry(). It keeps its id, its place, and the code and inputs that it was submitted
 * with. */
void submit_change(struct http_req *req,
                   struct api *a,
                   const struct http_principal *who,
                   char *taken_spec,
                   const struct submit_change *taken);

/* A spec that argusd itself submits for somebody: a step of a pipeline. It says its own id, so that
 * it becomes one job however often it is submitted. */
struct submit_own {
    struct http_principal who;   /* whose job it will be; copied */
    char *spec;                  /* taken */
    bool no_trial;               /* how it ends says as much, and soon */
    struct submit_origin origin; /* taken */
    /* Called once, at once or later: the new job, or NULL with the reason. Both are borrowed for
     * the call. */
    void (*done)(struct live *l, const struct err *err, void *arg);
    void *arg;
};
struct submit;
/* *ret is what is under way, for submit_own_forget(), and NULL from before done is called on. */
void submit_own(struct api *a, const struct submit_own *taken, struct submit **ret);
void submit_own_forget(struct submit *s); /* NULL is fine */
/* The reason is one of the moment: the same spec may be taken later. */
bool submit_may_pass(const struct err *err);

/* A form (submit_form.c) is received, and answered. */
void submit_form(struct http_req *req, struct api *a);

/* What it became. */
struct submit_named {
    char *text;            /* the spec, which names the snapshot */
    char *asked;           /* for the Idempotency-Key: all that came, in one text */
    struct snapshot *held; /* NULL: no archive came */
};
/* Answers as above. The members of taken are taken: held is let go of in the end. */
void submit_named(struct http_req *req, struct api *a, const struct submit_named *taken);
