/* SPDX-License-Identifier: Apache-2.0 */
/* runs_page.h - a run of a pipeline as an answer. */
#pragma once
#include "argusd/pipes/pipes.h"
#include "argusd/pipes/pipes_plan.h"

void runs_answer(struct http_req *req, struct api *a, const struct pipe_life *run, int status);

/* `params` of a form. */
#define RUNS_PARAMS                                                                                \
    "{\"type\":[\"object\",\"null\"],\"additionalProperties\":{\"description\":\"of the parameter's type, or its text\"}}"

/* A request for a plan is handled from its beginning again each time that the files it asked about
 * have been looked at: meanwhile pipelines, runs and rights may have become others. */
typedef void (*runs_seeing_f)(struct http_req *req, struct api *a, struct pipes_sight *taken_sight);
/* The plan, released; or its sight is open, and the request waits for the look and is handled
 * again: *sight is taken then, and NULL. The request may close meanwhile. */
void runs_answer_plan(struct http_req *req,
                      struct api *a,
                      struct pipes_plan *plan,
                      struct pipes_sight **sight,
                      runs_seeing_f again);
