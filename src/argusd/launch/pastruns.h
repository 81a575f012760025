/* SPDX-License-Identifier: Apache-2.0 */
/* pastruns.h - the finished runs like a job that somebody may see, as core/past/past.h judges them.
 */
#pragma once
#include "argusd/people/people_rules.h"
#include "core/past/past.h"
#include "store/store.h"

struct pastruns;

/* past is borrowed; empty where there is none, and where the store cannot be read. On the loop,
 * once, unless it was forgotten. */
typedef void (*pastruns_f)(struct past *past, void *arg);

struct pastruns_ask { /* all borrowed for the call */
    const struct http_principal *who;
    const struct job *job;
    const char *argv; /* its command line, a JSON array */
    const char *verl;
};
/* PAST_RUNS_MAX of the newest jobs of the same workload and pool are looked at. */
struct pastruns *pastruns_find(struct store *store,
                               const struct people *people,
                               const struct pastruns_ask *ask,
                               pastruns_f done,
                               void *arg);
/* The command line of the job itself. Borrowed until done has returned. */
const struct past_line *pastruns_line(const struct pastruns *pr);
void pastruns_forget(struct pastruns *pr);
