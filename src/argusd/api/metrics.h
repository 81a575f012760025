/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - the page that GET /metrics answers, for whoever else sends it. */
#pragma once
#include "argusd/kit/api.h"

enum { METRICS_PAGE_MAX = 8 << 20 };

/* As this reader may see it, in Prometheus' text form. out->failed: it does not fit. */
void metrics_page(const struct api *a, const struct access_who *who, struct buf *out);
