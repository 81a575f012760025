/* SPDX-License-Identifier: Apache-2.0 */
/* trackers_state.h - what the files of trackers share. Nobody outside this room includes it. */
#pragma once
#include "argusd/ground/userlines.h"
#include "argusd/trackers/trackers.h"
#include "base/map.h"
#include "ray/wire.h"

enum tracker_state {
    TRACKER_RUNNING, /* the attempt is about to start, or runs */
    TRACKER_OWED,    /* it is over, and the tracker does not have all of it */
    TRACKER_SYNCING, /* a job sends it */
    TRACKER_COMPLETE,
    TRACKER_KEPT, /* in files of the job, and no server is configured for them */
    TRACKER_GIVEN_UP
};
enum tracker_end { TRACKER_FINISHED, TRACKER_FAILED, TRACKER_KILLED };

/* One attempt in one tracker. */
struct tracker_run {
    struct tracker_run *next; /* of the same job */
    struct trackers *ts;
    char *job, *user, *group, *pool; /* group: the job's project in Argus, "" */
    int attempt;
    int kind, mode, state, end; /* enum tracker_kind, _mode, _state, _end */
    char *url;                  /* of the server; NULL: none */
    char *project, *name;       /* as the spec has them, or defaults */
    char *experiment, *run;     /* MLflow's ids */
    char *link;                 /* a URL, or a directory */
    char *why;                  /* why it is not online, or the newest failure */
    char *python;               /* py_executable of the job; NULL: none */
    struct strv path;           /* its extra_pythonpath */
    char *sync_job;
    /* As the job's page says them, for the tracker; NULL: not known. */
    char *outcome, *finding, *advice;
    /* The run of a pipeline that its job was a step of, which step, and how that run ended; NULL:
     * it was none, or the run goes on. */
    char *pipeline, *pipeline_step, *pipeline_end;
    /* There was more to tell while it was being sent: it is owed once more. */
    bool is_more;
    int tries;
    usec_t started_at, ended_at;
    usec_t owed_at; /* when its end, or a pipeline's, became owed; 0: an old row, since ended_at */

    /* Not stored. */
    bool deciding; /* not stored itself yet */
    usec_t after;  /* mono: not tried before */
    struct talk *talk;
};

struct trackers {
    struct trackers_parts p;
    struct wire *wire;
    struct map *by_job; /* id -> its first run */
    size_t n_runs;
    /* Each user has turns of his own, whatever the servers of others do; what is sent after an end
     * takes none of a start. */
    struct userlines starts, ends;
    uv_timer_t timer, turn; /* turn: somebody's may have come */
    struct {
        struct tracker_sight v[TRACKERS_NAMED_MAX];
        size_t n, waits;
        trackers_looked_f done; /* NULL: none is under way */
        void *arg;
    } look;
    bool closed;
};
/* Tells who waits for a look; nobody: nothing is done. */
void trackers_look_over(struct trackers *ts);

/* Conversations at once. */
enum { STARTS_MOST = 32, STARTS_OF_ONE = 4, ENDS_MOST = 8, ENDS_OF_ONE = 2 };

/* A conversation with the server of one run, once it is its user's turn. The callback comes once,
 * not from inside the call; why is NULL when all went well. */
typedef void (*talk_f)(struct tracker_run *r, const char *why);
/* Find or make the run: before a start. Of a run that is being decided it is over in 20 s, and the
 * time in which it waits for its turn counts. */
void talk_begin(struct tracker_run *r, talk_f done);
/* All of what it lacks, how it ended and why, and its end: afterwards. MLflow alone. */
void talk_complete(struct tracker_run *r, talk_f done);
/* Length of a server's address without the slashes at its end; a path follows. */
int tracker_url_len(const char *url);
/* Ends it without a callback. */
void talk_end(struct tracker_run *r);
/* One that waits for its turn for too long is over. */
void talk_look(struct tracker_run *r, usec_t now);
/* Begins those whose turn it is. */
void talks_take_turns(struct trackers *ts);

/* ---- what a server lacks ---- */

enum { FEED_METRICS_MAX = 1000 }; /* of one request, as MLflow takes them */

struct feed {
    char *root, *job;
    int attempt;
    struct map *newest; /* key as the server has it -> int64_t *: its newest step there */
    off_t offset;       /* of the job's metrics.jsonl: read from here on, */
    size_t taken;       /* without so many values of the record there: they are in a request */
    char *run;
    usec_t at;       /* of records that do not say when */
    struct buf body; /* of the next request; empty: there is nothing left */
    int result;
    struct err err;
};
/* Blocking: fills body. */
void feed_run(struct feed *f);

/* ---- W&B's files ---- */

/* A job of its user that sends it. False: not now, *r->why says why. */
bool trackers_sync(struct tracker_run *r);
