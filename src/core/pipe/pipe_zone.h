/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_zone.h - a time zone from the bytes of its file, as RFC 8536 (TZif) has them.
 *
 * The C library knows one zone at a time, for the whole process; a schedule needs its own. Times
 * behind the file's last change follow the rule at its end (a TZ text of POSIX). Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { PIPE_ZONE_MAX_BYTES = 64 << 10, PIPE_ZONE_NAME_MAX = 64 };

struct pipe_zone;

/* ERR_BAD_SPEC: it is no such file. */
must_check int pipe_zone_parse(const void *bytes,
                               size_t n,
                               struct pipe_zone **ret,
                               struct err *err);
void pipe_zone_free(struct pipe_zone *z); /* NULL is fine */
/* Seconds east of UTC at that moment; zone is a struct pipe_zone. A pipe_zone_f of pipe_cron.h. */
int pipe_zone_offset(int64_t at, void *zone);
/* "Europe/Berlin": letters, digits and _+-/ with no part that is empty or begins with a dot, so
 * that it names a file below the zones' directory. */
bool pipe_zone_is_name(const char *name);
