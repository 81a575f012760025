/* SPDX-License-Identifier: Apache-2.0 */
/* lineage.h - where a model comes from, from link to link, and what became of it: 'argus
 * model lineage'. */
#pragma once
#include "argus/cli/listing.h"
#include "base/strv.h"

struct cli;
struct err;

/* Runs 'model lineage'; the options are a struct listing_opts. */
must_check int lineage_run(struct cli *cli, void *opts, const struct strv *args, struct err *err);
