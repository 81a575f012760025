/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - one event as a page; see events.c. */
#pragma once
#include "argusd/kit/api.h"

/* One event as these eyes see it: "Event" in openapi.json. */
void api_event_put(const struct api_eyes *eyes, const struct store_event *row, struct jout *j);
