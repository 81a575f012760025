/* SPDX-License-Identifier: Apache-2.0 */
/* witness.c - the judgement table of witness.h, from the surest word to the weakest. */
#include "core/job/witness.h"

static usec_t longer(usec_t a, usec_t b)
{
    return a > b ? a : b;
}

/* There is a beat, and it has stopped. */
static bool has_stopped(const struct witness *w)
{
    usec_t away = w->was_blind < WITNESS_ROOT_RETRY ? w->was_blind : WITNESS_ROOT_RETRY;
    return w->files == WITNESS_FILES_BEAT && w->beat_age >= longer(WITNESS_BEAT_STALE, away);
}

/* The shepherd is silent: it never wrote, or its beat has stopped. */
static bool witness_is_silent(const struct witness *w)
{
    return has_stopped(w) || (w->files == WITNESS_FILES_NONE && w->files_for >= WITNESS_SETTLE);
}

static bool is_beating(const struct witness *w)
{
    return w->files == WITNESS_FILES_BEAT && !has_stopped(w);
}

static bool is_forlorn(const struct witness *w)
{
    usec_t silent = w->files == WITNESS_FILES_NONE   ? w->files_for
                    : w->files == WITNESS_FILES_BEAT ? w->beat_age
                                                     : 0;
    return w->is_stopping && w->ray_for >= WITNESS_FORLORN && silent >= WITNESS_FORLORN;
}

static enum witness_verdict unknown_after(usec_t span)
{
    return span >= WITNESS_PATIENCE ? WITNESS_UNKNOWN : WITNESS_WAIT;
}

/* Ray says that it is over, or that it has no such job. */
static enum witness_verdict judge_gone(const struct witness *w)
{
    if (is_beating(w))
        return unknown_after(w->ray_for); /* the shepherd contradicts Ray */
    if (w->files == WITNESS_FILES_BLIND)
        return unknown_after(w->files_for);
    if (w->ray_for < WITNESS_SETTLE || !witness_is_silent(w))
        return WITNESS_WAIT;
    if (w->ray == WITNESS_RAY_ABSENT && w->files == WITNESS_FILES_NONE && !w->was_running)
        return WITNESS_NEVER;
    return WITNESS_LOST;
}

/* Ray's head is no more. Its raylets live on for a while, and so may the job. */
static enum witness_verdict judge_headless(const struct witness *w)
{
    bool is_over = w->was_running && has_stopped(w) && w->ray_for >= WITNESS_SETTLE;
    return is_over || is_forlorn(w) ? WITNESS_LOST : WITNESS_UNKNOWN;
}

/* Ray says that it runs, which it does from before its runner starts the shepherd: one that never
 * comes to write has not started. */
static enum witness_verdict judge_running(const struct witness *w)
{
    if (is_beating(w))
        return WITNESS_STARTED;
    if (w->files == WITNESS_FILES_NONE && !w->was_running)
        return WITNESS_WAIT; /* its start has a deadline */
    if (has_stopped(w) && w->is_unwatched)
        return WITNESS_LOST; /* its record is all that Ray has of it */
    return unknown_after(w->files == WITNESS_FILES_BEAT ? w->beat_age : w->files_for);
}

enum witness_verdict witness_judge(const struct witness *w)
{
    if (w->files == WITNESS_FILES_EXIT)
        return WITNESS_EXITED;
    switch (w->ray) {
    case WITNESS_RAY_OVER:
    case WITNESS_RAY_ABSENT:
        return judge_gone(w);
    case WITNESS_RAY_RUNNING:
        return judge_running(w);
    case WITNESS_RAY_PENDING:
        return is_beating(w) ? WITNESS_STARTED : WITNESS_WAIT;
    case WITNESS_RAY_GONE:
        return judge_headless(w);
    case WITNESS_RAY_BLIND:
        break;
    }
    if (is_beating(w) && w->ray_for < WITNESS_PATIENCE)
        return WITNESS_STARTED;
    if (is_forlorn(w))
        return WITNESS_LOST;
    return unknown_after(w->files == WITNESS_FILES_BLIND ? longer(w->ray_for, w->files_for)
                                                         : w->ray_for);
}
