/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - the answer to a submit with ?dry_run. */
#pragma once
#include "argusd/kit/api.h"
#include "core/spec/spec.h"

struct snapshot;

struct api_plan_in {
    struct job *taken; /* never added */
    struct spec spec;  /* taken */
    /* Copied, or looked at during the call. */
    const char *verl, *inputs, *snapshots;
    const char *needs;   /* of its snapshots, core/job/needs.h; NULL: nothing */
    const char *changes; /* of a retry (submit.h), else NULL */
    const struct problems *ps;
    struct snapshot *held; /* let go of when it was answered; NULL = none */
    struct live *changed;  /* the job that it would be instead; NULL: one more */
    bool suggest;          /* with advice, see core/past/advise.h */
    uint64_t checkpoint_bytes, free_bytes;
};

/* Answers req, later. */
void api_plan(struct http_req *req, struct api *a, const struct api_plan_in *in);

/* Its answer, for openapi.json. */
extern const struct field_table plan_table;
