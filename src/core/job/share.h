/* SPDX-License-Identifier: Apache-2.0 */
/* share.h - the resource of its nodes by which Ray counts a lease.
 *
 * Ray knows no limit per job, so a job could take GPUs beyond its lease from others on the
 * same node. Each node that we start therefore has SHARES resources argus_share_<i> of amount
 * 1, and a lease has one of them for itself on all of its nodes: of k GPUs leased on a node, a
 * demand of g asks for g/k of it (hook/sitecustomize.py), and Ray lets what is beyond wait.
 * Pure: numbers and names only. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/strv.h"

struct jout;

enum { SHARES = 16, SHARE_NAME_MAX = 24 };
#define SHARE_PREFIX "argus_share_"
#define SHARE_NONE (-1) /* the lease has none: all were taken, or its nodes have none */

/* "argus_share_3" */
const char *share_name(int share, char ret[static SHARE_NAME_MAX]);
/* Into an object that is open: "argus_share_0": 1, … as `ray start --resources` takes them. */
void share_put_resources(struct jout *j);

/* The lowest share that is not taken (bit i = share i); SHARE_NONE when there is none. */
int share_free(uint32_t taken);
