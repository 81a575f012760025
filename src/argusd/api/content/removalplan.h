/* SPDX-License-Identifier: Apache-2.0 */
/* removalplan.h - the reply to a DELETE with ?dry_run: what uses the thing. */
#pragma once
#include "argusd/kit/resource.h"

/* Answers; entry or preset is NULL. */
void api_plan_removal(struct resource_ask *q,
                      const struct registry_entry *entry,
                      const struct preset_item *preset);
