/* SPDX-License-Identifier: Apache-2.0 */
/* service_metrics.h - what Prometheus is told of services: one series per service and code, of as
 * many services as there may be, and of those alone that whoever scrapes may see. Counted since
 * argusd started; a service that is removed takes its series along. */
#pragma once

struct access_who;
struct expo;
struct service_counted;
struct service_totals;
struct serving;

/* *t is made with the first request, and released with free(). */
void service_totals_add(struct service_totals **t, const struct service_counted *c);
void serving_put_metrics(const struct serving *sv, const struct access_who *who, struct expo *e);
