/* SPDX-License-Identifier: Apache-2.0 */
/* importer.h - the parts of argusd that an import or a preparation is made with: their jobs are
 * ordinary ones, so these are what a submit needs, and the registry. */
#pragma once
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/content/registry.h"
#include "argusd/ground/idset.h"
#include "argusd/people/people_rules.h"
#include "argusd/people/secrets.h"

struct importer { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct cluster *cluster;
    struct jobs *jobs;
    struct idset *used; /* ids of jobs */
    struct people *people;
    struct secrets *secrets;
    struct checkpoints *checkpoints;
    struct registry *registry;
    const struct storage *storage;
};
