/* SPDX-License-Identifier: Apache-2.0 */
/* host_load.h - what the processes of one attempt take of one node: cores and memory. Pure.
 *
 * A scout adds up its attempt's processes and leaves one file for its node on the shared root;
 * argusd reads it for whoever asks. A job can write there, too: numbers that are none, or beyond
 * all machines, are not told, and what is there is believed of that job alone. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/clock.h"

enum { HOST_LOAD_MAX_BYTES = 1024 };    /* of the file */
#define HOST_LOAD_EVERY (15 * USEC_SEC) /* from one to the next */

/* Below 0: not known. */
struct host_load {
    usec_t at; /* wall, of the node */
    double processes;
    double cpu_cores; /* a mean since the one before: 2.5 is two and a half cores */
    double mem_bytes; /* resident and its own: what it shares (Ray's objects, files) is not in it */
};

/* Nothing is known. */
void host_load_init(struct host_load *l);
/* One JSON object. */
void host_load_put(const struct host_load *l, struct buf *out);
/* False: it is none, and ret is as host_load_init() makes it. */
bool host_load_read(const char *text, size_t n, struct host_load *ret);
