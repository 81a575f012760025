/* SPDX-License-Identifier: Apache-2.0 */
/* people_usage.h - what projects and users used, kept over restarts.
 *
 * The scheduler counts; here its sums are stored: each account that changed once a minute and
 * when one of its jobs gives its lease back. A crash loses at most the minute. */
#pragma once
#include <uv.h>

#include "argusd/jobs/jobs.h"
#include "store/store.h"

struct people_usage;

struct people_usage *people_usage_new(struct store *store);
void people_usage_free(
    struct people_usage *u); /* NULL is fine; after close and a turn of the loop */

/* A row of the store at start, of this kind; one that cannot be read is left out. */
#define PEOPLE_USAGE_ENTRY "usage"
void people_usage_restore_entry(struct people_usage *u, const struct store_entry *entry);
/* Tell the scheduler what was used before, before it hears of any job. */
void people_usage_restored(struct people_usage *u, struct sched *sched);

/* From now on. */
void people_usage_start(struct people_usage *u, uv_loop_t *loop, const struct jobs *jobs);
void people_usage_close(struct people_usage *u);
/* A job of theirs holds a lease. */
void people_usage_begin(struct people_usage *u, const struct job *job);
/* It gave it back. */
void people_usage_end(struct people_usage *u, const struct job *job);
