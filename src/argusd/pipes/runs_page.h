/* SPDX-License-Identifier: Apache-2.0 */
/* runs_page.h - a run of a pipeline as an answer. */
#pragma once
#include "argusd/pipes/pipes.h"
#include "argusd/pipes/pipes_plan.h"

void runs_answer(struct http_req *req, struct api *a, const struct pipe_life *run, int status);
void runs_answer_plan(struct http_req *req, struct api *a, const struct pipes_plan *plan);
