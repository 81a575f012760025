/* SPDX-License-Identifier: Apache-2.0 */
/* change.h - a change of a job that others ask for, too; see change.c. */
#pragma once
#include <stdbool.h>

struct live;

/* Stopped as this user's wish; false: it was already. */
bool api_stop_job(struct live *l, const char *user);
