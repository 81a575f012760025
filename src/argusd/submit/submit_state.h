/* SPDX-License-Identifier: Apache-2.0 */
/* submit_state.h - inside of a submit: submit.c reads it and looks, submit_finish.c makes the job.
 */
#pragma once
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/kit/api.h"
#include "argusd/launch/preflight.h"
#include "argusd/submit/submit.h"
#include "core/check/preflight.h"

struct jobsight;
struct snapshot;

/* One submit between its checks. Owned by the request until it is answered. */
struct submit {
    struct http_req *req;  /* NULL: argusd itself submits, see own */
    struct submit_own own; /* without its spec, which is text */
    struct api *a;
    struct http_principal who;   /* whose job it will be: he who asks, but for a retry */
    char *text;                  /* the spec, in place of the body; NULL = the body */
    char *asked;                 /* see idempotency.h */
    struct submit_retry retry;   /* owned texts */
    struct submit_origin origin; /* owned texts */
    struct submit_change change; /* owned texts; id NULL: it becomes a job of its own */
    struct snapshot *held;       /* came with it; NULL = none */
    struct checkpoints_use use;  /* what it names stays until it is a job */
    struct spec spec;
    struct problems ps;
    char *verl;      /* version text found in its tree, NULL = none */
    char *snapshots; /* that it names, see code.h */
    char *user_root, *hf_home;
    struct preflight_where where; /* of these */
    struct preflight_asker *look; /* under way */
    struct spec_jobs named;       /* that its user has to see; jobsight takes them */
    struct jobsight *sight;       /* under way */
    char *inputs;                 /* what registered names became; NULL: there are none */
    char *made;                   /* the spec in place of that text, see submitted.h */
    uint64_t checkpoint_bytes;    /* of one; 0 = not known */
    uint64_t free_bytes;          /* where they go; 0 = not known */
    bool dry_run, require_fit, no_trial, smoke, suggest;
    struct submit **own_place; /* of who began it, see submit_own(); NULL: of nobody */
    bool has_dir;              /* something has the name of the directory of the chosen id */
};

void submit_state_free(struct submit *s);
/* Is there room for one more job at all? */
must_check int submit_check_room(const struct api *a, struct err *err);
/* Keys of a JobSpec that this version cannot honour and that do harm when they are ignored: the job
 * would run too early, or other code, or without what it needs. */
must_check int submit_check_honoured(const struct submit *s,
                                     const char **ret_field,
                                     struct err *err);
/* The text that the job keeps. */
const char *submit_spec_text(const struct submit *s);

/* Tells who submits that it is refused. field and ps may be NULL. */
void submit_tell(struct submit *s,
                 const struct err *err,
                 const char *field,
                 const struct problems *ps);
/* With every problem of s->ps. */
void submit_tell_problems(struct submit *s);
/* Tells argusd itself, which submitted: the job, or why there is none. */
void submit_own_end(struct submit *s, struct live *l, const struct err *err);

/* All was looked at: what is wrong is told, or the job is made and answered. s is freed. */
void submit_finish(struct submit *s);
/* With every problem that was found, where there is one. */
void submit_answer_refusal(struct submit *s, const struct err *err, const char *field);
