/* SPDX-License-Identifier: Apache-2.0 */
/* serve_name.h - names of services, and of the applications and routes that Ray Serve has for them.
 *
 * Version 2 of service "sums" is the application "sums-v2" with the route "/s/sums-v2"; its further
 * replicas, each with a lease of its own, are "sums-v2-r2" and so on. Names that look like that
 * are no names of services, so that no two of them meet. Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { SERVE_NAME_MAX = 40, SERVE_APP_MAX = 80 };
#define SERVE_ROUTES "/s/" /* routes below it are argusd's, and guarded by the gate */

/* [a-z0-9][a-z0-9-]{0,39}, and no "-v<n>" or "-v<n>-r<k>" at its end. ERR_BAD_SPEC. */
must_check int serve_name_check(const char *name, struct err *err);
/* A name made of another text: "Qwen2.5_0.5B" becomes "qwen2-5-0-5b". "" where nothing is left. */
void serve_name_make(const char *text, char ret[static SERVE_NAME_MAX + 1]);

/* unit: from 1. Returns ret. */
const char *serve_app_name(const char *service,
                           int64_t version,
                           int64_t unit,
                           char ret[static SERVE_APP_MAX]);
/* False: it is none of ours. ret_service is cut to its size never: longer ones are none of ours. */
bool serve_app_parse(const char *app,
                     char ret_service[static SERVE_NAME_MAX + 1],
                     int64_t *ret_version,
                     int64_t *ret_unit);
/* "/s/sums-v2". Returns ret. */
const char *serve_app_route(const char *app, char ret[static SERVE_APP_MAX + 8]);
