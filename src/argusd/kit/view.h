/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - jobs and nodes as the API shows them. Pure: renders what it is given.
 * eyes: who is shown it (saying.h); NULL = nobody, it is written down. */
#pragma once
#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "argusd/jobs/record.h"
#include "base/json.h"

struct api_eyes;

/* A list item. l: the same job where it is live (its reason is then fresh), NULL otherwise. */
void view_item(struct jout *j,
               const struct store_job *row,
               const struct live *l,
               const struct api_eyes *eyes);

/* The whole job. l may be NULL. */
void view_job(struct jout *j,
              const struct settings *settings,
              const struct job *job,
              const struct record_extra *extra,
              const struct live *l,
              const struct api_eyes *eyes);

/* "w1:0+1,w2:2" as "nodes":[{name,gpu_ids}]. */
void view_nodes(struct jout *j, const struct gang *gang);

/* When it is expected to start (wall), as "eta": null where nobody can tell. */
void view_eta(struct jout *j, usec_t p50, usec_t p90);

/* The resolved spec without the values of its secret environment names, wherever they stand. */
struct spec;
void view_put_spec(struct jout *j, const char *key, const struct spec *spec);

/* The spec text with the values of secret environment names replaced by "***". Heap, yours. */
char *view_mask_spec(const char *text);
/* Of a job's page: one attempt, and how much of its time went into steps that counted. */
extern const struct field_table view_attempt_table;
extern const struct field_table view_goodput_table;
