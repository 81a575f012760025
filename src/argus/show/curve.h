/* SPDX-License-Identifier: Apache-2.0 */
/* curve.h - how a training goes, in a line of text: progress, and curves as small pictures.
 *
 * Reads the "metrics" of a job as the server tells them; what is missing is left out. */
#pragma once
#include "argus/show/when.h"
#include "base/buf.h"

/* Append the numbers as at most width blocks of eight heights; NULL appends nothing. */
void curve_spark(struct buf *out, const json_t *values, int width);

/* These are yours to free(); "" when nothing is known. */

/* "step 12 of 30 (40%), ends in 2m, 3.2s per step, 1200 tokens/s, MFU 0.41" */
char *curve_progress(const json_t *metrics, const struct when *w);
/* "critic/score/mean 0.512 ▁▂▃▅▇ 0.05 to 0.512", within width columns where it can. */
char *curve_line(const json_t *curve, int width);
/* "actor/grad_norm is not a number since step 12" */
char *curve_trouble(const json_t *metrics, enum message_language lang);
