/* SPDX-License-Identifier: Apache-2.0 */
/* jobview.h - a job as the server tells it, in the words of tables and last lines.
 *
 * Reads JSON that may come from an older or newer server: a member that is
 * missing shows as "-", one that is unknown is passed over. */
#pragma once
#include "argus/cli/cli.h"

bool jobview_is_terminal(const char *state);
/* The exit status of a job that is over: 0, 10, 11, 12 or 13. */
int jobview_exit_status(const json_t *job);
/* The worse of two such statuses: 13, 10, 12, 11, 0. */
int jobview_worse(int a, int b);
enum style jobview_style(const char *state);

/* These are yours to free(). */
char *jobview_state(const json_t *job);  /* "RUNNING,UNKNOWN" */
char *jobview_gang(const json_t *job);   /* "2×4" */
char *jobview_reason(const json_t *job); /* its sentence, else its code, else "" */
char *jobview_nodes(const json_t *job);  /* "w1,w2", "" when not known */
/* "w1 (0 1), w2" with " (" and " ": nodes with the GPUs that are held on each. Where out is full,
 * the text is cut. */
void jobview_add_places(struct buf *out,
                        const json_t *nodes,
                        const char *open,
                        const char *between);
/* The job's "eta": "5m/2h", P50 and P90; with utc the times; "" when it is not known. Returns
 * out. */
const char *jobview_eta(const json_t *job, const struct when *w, char *out, size_t size);
/* "job x FAILED gpu_oom on node-7 (argus diagnose x)", "job x SUCCEEDED in 4m10s" */
char *jobview_last_line(const json_t *job, const struct when *w);
/* "job x QUEUED, position 3: the pool is full" */
char *jobview_progress(const json_t *job);

/* Up to limit items of "/v1/jobs<query>", page by page, as a new array. *ret_more: there are
 * others. */
must_check int jobview_list(struct cli *cli,
                            const char *query,
                            int64_t limit,
                            json_t **ret,
                            bool *ret_more,
                            struct err *err);
