/* SPDX-License-Identifier: Apache-2.0 */
/* job_report.h - the report of a job: what happened, its attempts, the first cause with quoted
 * evidence, what to do, what it cost, how its training stood, what can be gone on from. */
#pragma once
#include <jansson.h>

#include "base/message.h"
#include "base/report.h"

/* page: the job as GET /v1/jobs/{id} tells it, in the language of the report. What is missing there
 * is left out here. Pure. */
void job_report(const json_t *page, bool is_html, enum message_language in, struct buf *out);
