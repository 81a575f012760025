/* SPDX-License-Identifier: Apache-2.0 */
/* simulations_csv.h - the result of a simulation as lines for a table or a picture elsewhere. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

/* part: policies (a line each), pools (each under each policy), sizes (waits by the GPUs of a job),
 * series (GPUs in use and jobs that wait, over time). ERR_BAD_REQUEST: none of these. */
must_check int simulations_csv(const char *result,
                               const char *part,
                               struct buf *out,
                               struct err *err);
