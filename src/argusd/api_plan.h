/* SPDX-License-Identifier: Apache-2.0 */
/* api_plan.h - the answer to a submit with ?dry_run. */
#pragma once
#include "argusd/api.h"

struct snapshot;
struct spec;

/* Answers req, later. The job is taken and never added; spec and ps are borrowed for the call.
 * changes: of a retry (submit.h), else NULL. held: let go of when it was answered; NULL = none. */
void api_plan(struct http_req *req,
              struct api *a,
              struct job *taken,
              const struct spec *spec,
              const char *verl,
              const char *inputs,
              const char *snapshots,
              const char *changes,
              const char *advice,
              struct snapshot *held,
              const struct problems *ps);
