/* SPDX-License-Identifier: Apache-2.0 */
/* dealings.h - what projects had of each other in a time, as GET /v1/usage?by=project tells it. */
#pragma once
#include "argusd/people/people_rules.h"
#include "base/field.h"
#include "store/store.h"

struct dealings;
extern const struct field_table dealings_table, dealing_part_table;

/* The rows are those under minus the steps of accounting.h; called on a worker. A project that the
 * view does not have is told among the others. */
struct dealings *dealings_read(const struct store_result *r, const struct people_view *view);
void dealings_free(struct dealings *d); /* NULL is fine */
/* By project, described by dealings_table; borrowed. NULL: none. */
struct field_list dealings_list(const struct dealings *d);
