/* SPDX-License-Identifier: Apache-2.0 */
/* pastruns.h - the finished runs like a job that somebody may see, as core/past.h judges them. */
#pragma once
#include "argusd/api.h"
#include "core/past.h"

struct pastruns;

/* past is borrowed; empty where there is none, and where the store cannot be read. On the loop,
 * once, unless it was forgotten. */
typedef void (*pastruns_f)(struct past *past, void *arg);

/* Of the newest jobs of its workload and pool PAST_RUNS_MAX are looked at. argv: the JSON array of
 * its command line; job and argv are borrowed for the call. */
struct pastruns *pastruns_find(struct api *a,
                               const struct http_principal *p,
                               const struct job *job,
                               const char *argv,
                               const char *verl,
                               pastruns_f done,
                               void *arg);
/* The command line of the job itself. Borrowed until done has returned. */
const struct past_line *pastruns_line(const struct pastruns *pr);
void pastruns_forget(struct pastruns *pr);
