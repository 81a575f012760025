/* SPDX-License-Identifier: Apache-2.0 */
/* scribe.h - the one thread that touches the shared root while the command runs.
 *
 * A shared root that is slow, hangs or is gone must not stop the training: whoever has output
 * hands it over here and never waits for the root. It waits in a spool, in order, and is written
 * when the root answers. The same thread beats, and looks for what asks for an end: the
 * file 'stop' and a mismatch of imports.
 *
 * All calls are for one other thread, the loop's. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"
#include "fsroot/attempt/launch.h"
#include "shepherd/attempt/sink.h"

struct scribe;

struct scribe_spec {
    const char *dir;             /* the attempt's; borrowed */
    const struct launch *launch; /* borrowed */
    const char *node, *ip;       /* of the beat; copied */
    struct sink *sink;           /* borrowed: not to be used by the caller until scribe_free() */
};

must_check int scribe_start(const struct scribe_spec *spec, struct scribe **ret, struct err *err);

/* Becomes readable when there is something to take, or room again. Borrowed. */
int scribe_fd(const struct scribe *s);

/* Output. Never waits for the root; what neither the ceiling per second nor the spool lets pass
 * is dropped, with a line at its place. */
void scribe_add(struct scribe *s, const char *p, size_t n, usec_t mono);
/* False while it is better to let the command wait a moment than to fill the disk: the root
 * takes what comes, only slower. *ret_again: when to ask again at the latest. */
bool scribe_has_room(struct scribe *s, usec_t mono, usec_t *ret_again);

/* Sets the content of the next beats, the first of which is written at once. state is a literal. */
void scribe_beat(struct scribe *s, const char *state, pid_t pid, uint64_t start_ticks);

/* The content of the file 'stop' in the attempt's directory, NULL when there is none. Reads the
 * shared root: only for the scribe's thread, and before it exists. The caller frees the text. */
char *scribe_stop_in_file(const char *dir);

/* The reason of a stop or mismatch found since the last call; NULL: none. The caller frees it. */
char *scribe_take_stop(struct scribe *s);
char *scribe_take_mismatch(struct scribe *s);

/* One line for people about the state of the shared root: false when there is no news. */
enum { SCRIBE_NEWS = 512 };
bool scribe_take_news(struct scribe *s, usec_t mono, char ret[static SCRIBE_NEWS]);

/* No more output comes. */
void scribe_close(struct scribe *s);
/* True when all output is on disk, or never will be: a full disk is waited for ten seconds, a
 * root that is away for the launch's patience. */
bool scribe_is_done(struct scribe *s, usec_t mono);

/* How the log ended. */
struct scribe_end {
    uint64_t log_bytes, dropped;
    usec_t away;     /* how long the root was, in all */
    char *log_error; /* NULL: none; yours */
    bool is_stuck;   /* its thread hangs: neither it nor the sink can be freed */
};
/* After scribe_is_done(). What was not written by now is dropped. Frees it unless it is stuck. */
void scribe_finish(struct scribe *s, struct scribe_end *ret);
