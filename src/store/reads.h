/* SPDX-License-Identifier: Apache-2.0 */
/* reads.h - the reads at run time: a few connections, each lent to one libuv worker at
 * a time; what finds none free waits in line, pages before searches. All for the loop thread;
 * store.h has the contract of store_list_jobs() and its kin, which these serve. */
#pragma once
#include "store/store.h"

struct reads;

/* path and vfs are borrowed until `gone`. */
struct reads *reads_new(uv_loop_t *loop, const char *path, const char *vfs, unsigned n);
/* Drops every read; gone is called when the last connection is closed, at once if none is
 * in use. */
void reads_close(struct reads *rs, void (*gone)(void *arg), void *arg);

struct store_read *reads_jobs(struct reads *rs,
                              const struct store_job_query *q,
                              const struct store_then *then);
struct store_read *reads_job(struct reads *rs,
                             const struct store_job_ref *ref,
                             const struct store_then *then);
struct store_read *reads_family(struct reads *rs,
                                const struct store_family_query *q,
                                const struct store_then *then);
struct store_read *reads_events(struct reads *rs,
                                const struct store_event_query *q,
                                const struct store_then *then);
struct store_read *reads_findings(struct reads *rs, int64_t job_seq, const struct store_then *then);
struct store_read *reads_usage(struct reads *rs,
                               const struct store_usage_query *q,
                               const struct store_then *then);
