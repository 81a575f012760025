/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - runs the command of an attempt to its end, and to the end of everything
 * that it left behind.
 *
 * Phases, each with a deadline and a next one:
 *   running    until the command ends (then strays) or somebody asks to stop:
 *              SIGTERM, SIGINT or SIGHUP to us, or the file 'stop'
 *   stopping   every process below us got SIGTERM and has stop_grace; 5 s where one of
 *              the job's processes has imported what is not the job's (fsroot/attempt/proof.h)
 *   strays     the command ended by itself; what it left got SIGTERM and has 5 s
 *   killing    SIGKILL to whatever is left, again and again, until none is
 * Between the end of a command that failed and the strays the scouts gather the scene (scene.h).
 * Over when no process is left below us, its output is read to the end and lies in the log, or
 * the shared root was waited for long enough. */
#pragma once
#include "base/err.h"
#include "shepherd/attempt/order.h"
#include "shepherd/attempt/outcome.h"
#include "shepherd/attempt/sink.h"
#include "shepherd/attempt/tail.h"
#include "shepherd/host/veil.h"

/* All borrowed. */
struct run_spec {
    const char *dir; /* the attempt's */
    const struct order *order;
    struct sink *sink;
    struct tail *tail;
    struct veil *veil; /* of all output; NULL: nothing is secret */
    bool has_scout;    /* a scout may answer questions about the scene */
};

/* The signals that run_command() wants to see; main blocks them first thing, so
 * that none is lost before. */
void run_block_signals(void);

/* The reason when a stop was asked for by file or signal, else NULL. The caller frees it. */
char *run_take_stop(const char *dir);

/* Fills cause, status, times, resources and counters of o. An error means that the
 * command was not started. With o->is_root_stuck a thread still hangs in the sink and in `order`:
 * they must stay until the process ends. */
must_check int run_command(const struct run_spec *spec, struct outcome *o, struct err *err);
