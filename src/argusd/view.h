/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - jobs and nodes as the API shows them. Pure: renders what it is given. */
#pragma once
#include "argusd/cluster.h"
#include "argusd/jobs.h"
#include "argusd/record.h"
#include "argusd/settings.h"
#include "base/json.h"

/* A list item. l: the same job where it is live (its reason is then fresh), NULL otherwise. */
void view_item(struct jout *j, const struct store_job *row, const struct live *l);

/* The whole job. l may be NULL. */
void view_job(struct jout *j,
              const struct settings *settings,
              const struct job *job,
              const struct record_extra *extra,
              const struct live *l);

/* The spec text with the values of secret environment names replaced by "***". Heap, yours. */
char *view_mask_spec(const char *text);
