/* SPDX-License-Identifier: Apache-2.0 */
/* tails.h - followers of logs: a thousand of them cost one reader of the file.
 *
 * A followed log is one tail. It reads what is new four times a second in the worker pool, one
 * read at a time; whoever has caught up is sent what that read brought. One who comes late or is
 * slow is served from the last chunks (tailcache.h), or has a chunk read for him, which others at
 * that place share; no follower holds more than his stream's queue.
 *
 * Events: `log` {attempt, offset, b64} with id: = the offset of the next byte, and last `end`
 * {state, exit_code, reason}. Where the file becomes another one (or is cut), `replaced` {attempt,
 * was, offset, lost} comes once between the two: what follows is of the new one, from its first
 * byte (from where it was cut). One who names no attempt gets those that follow as well; the id of
 * an attempt after the first is then "<attempt>:<offset>". */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "argusd/people/people_rules.h"

struct http_req;
struct job;
struct expo;
struct tails;

struct tails_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct cluster *cluster;
    struct jobs *jobs;
    struct people *people;
    struct tokens *tokens;
};
struct tails *tails_new(const struct tails_parts *parts);
void tails_free(struct tails *ts); /* streams are gone already */

struct tails_place {
    int k;            /* 0: the job has none yet */
    bool named;       /* only this attempt */
    const char *name; /* of the log, in the attempt's directory; copied */
    uint64_t offset;
    uint64_t barrier; /* of the store: the stream begins when this is on disk */
};

/* Answers the request with a stream. */
void tails_follow(struct tails *ts,
                  struct http_req *req,
                  const struct job *job,
                  const struct tails_place *place);

/* What it costs, for Prometheus. */
void tails_put_metrics(const struct tails *ts, struct expo *e);
