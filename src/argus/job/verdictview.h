/* SPDX-License-Identifier: Apache-2.0 */
/* verdictview.h - what is wrong with a training, as lines of a page: the worst that stands and what
 * to do, what else stands, and the command that shows what the model wrote when it began. */
#pragma once
#include "argus/cli/cli.h"

/* A line of the page; an empty text is none. The label is a code of the catalogue, NULL below the
 * first line of one. */
typedef void verdictview_line_f(void *page, const char *label, enum style style, const char *text);

/* Where something stands the server is asked which steps of the job have samples. */
void verdictview_print(struct cli *cli,
                       const char *job,
                       const json_t *verdict,
                       verdictview_line_f *line,
                       void *page);

/* The first of these steps from `since` on, as in "steps" of a job's samples, else the last before
 * it; -1: there is none. */
int64_t verdictview_step(const json_t *steps, int64_t since);
