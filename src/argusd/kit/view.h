/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - jobs and nodes as the API shows them. Pure: renders what it is given.
 * eyes: who is shown it (saying.h); NULL = nobody, it is written down. */
#pragma once
#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "argusd/jobs/record.h"
#include "argusd/kit/view_attempts.h"
#include "base/json.h"

struct api_eyes;

/* A list item. l: the same job where it is live (its reason is then fresh), NULL otherwise. */
void view_item(struct jout *j,
               const struct store_job *row,
               const struct live *l,
               const struct api_eyes *eyes);

/* What its leases held: up to now of a live job, to the whole minute; l NULL: gpu_held of its row.
 */
double view_gpu_hours(int64_t of_row, const struct live *l);

/* A number that differs when what view_item() says of a live job differs, but for the languages. */
uint64_t view_item_mark(const struct live *l, const struct api_eyes *eyes);

/* The whole job. l may be NULL. */
void view_job(struct jout *j,
              const struct settings *settings,
              const struct job *job,
              const struct record_extra *extra,
              const struct live *l,
              const struct api_eyes *eyes);

/* When a job is expected to start (wall). */
struct view_eta {
    usec_t p50, p90;
};
/* NULL where nobody can tell. */
const struct view_eta *view_eta_known(const struct view_eta *eta);

/* The resolved spec as JSON, without the values of its secret environment names wherever they
 * stand. Heap; NULL: it is too large. */
struct spec;
char *view_spec(const struct spec *spec);
/* The same of a job's spec, with its inputs and snapshots in place. NULL also: an older version
 * took the spec and read it otherwise. */
char *view_resolved(const struct settings *settings,
                    const struct job *job,
                    const char *inputs,
                    const char *snapshots);

/* The spec text with the values of secret environment names replaced by "***". Heap, yours. */
char *view_mask_spec(const char *text);
/* The same values, to be hidden in what else is told of the spec. */
struct mask;
void view_mask_values(const char *text, struct mask *m);

/* What these pages are made of, and parts of them. */
extern const struct field_table view_item_table, view_job_table;
extern const struct field_table view_eta_table, view_goodput_table, view_proof_table;
