/* SPDX-License-Identifier: Apache-2.0 */
/* eventline.h - events as a table, and as lines of a stream that reconnects. */
#pragma once
#include "argus/cli/cli.h"

/* Table of an array of events. one_job: all of a job whose id was given. */
void eventline_table(struct cli *cli,
                     const json_t *events,
                     const struct when *w,
                     bool one_job,
                     bool wide);

enum { EVENTLINE_MOST = 1000 };

/* Print the events so far as such lines of text, or only the last `most` (0 = all). */
must_check int eventline_print(struct cli *cli, const char *path, int64_t most, struct err *err);

/* Print each event after *seq as it comes: a line of text, or JSON on one line. path:
 * "/v1/events" or "/v1/jobs/<id>/events"; with one_job it ends when that job has ended. Returns
 * 0 at the end and after Ctrl-C. */
must_check int eventline_follow(struct cli *cli,
                                const char *path,
                                int64_t seq,
                                bool one_job,
                                int output,
                                struct err *err);
