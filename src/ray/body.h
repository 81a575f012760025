/* SPDX-License-Identifier: Apache-2.0 */
/* body.h - the body of a POST of a job, as JSON. Pure. */
#pragma once
#include <jansson.h>

#include "ray/ray.h"

/* Every key that was given, entrypoint_label_selector too; the caller takes out
 * what the version of Ray does not know. ERR_USAGE: an empty id or entrypoint, a
 * runtime_env that is no JSON object (or whose env_vars is none), text that is not
 * UTF-8. *ret is a new reference. */
must_check int body_new(const struct ray_submit *what, json_t **ret, struct err *err);
