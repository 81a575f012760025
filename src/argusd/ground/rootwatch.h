/* SPDX-License-Identifier: Apache-2.0 */
/* rootwatch.h - is the shared root there and usable: checked again and again, told as events.
 * Places on it what jobs and nodes need of us, and the mark by which nodes know this root. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "argusd/ground/events.h"
#include "argusd/ground/settings.h"

struct rootwatch;

/* mark: path below the root of the file to be there; borrowed, as all others. changed: it became
 * usable, or is no more. */
struct rootwatch *rootwatch_new(uv_loop_t *loop,
                                const struct settings *settings,
                                struct events *events,
                                const char *mark,
                                void (*changed)(void *arg),
                                void *arg);
void rootwatch_start(struct rootwatch *w);
/* Nothing is called any more; freed when the loop has let go of it. NULL is fine. */
void rootwatch_free(struct rootwatch *w);
/* Every few seconds: finds a check that hangs. */
void rootwatch_turn(struct rootwatch *w);

bool rootwatch_is_ok(const struct rootwatch *w);
bool rootwatch_is_known(const struct rootwatch *w); /* it was checked at least once */
bool rootwatch_hangs(const struct rootwatch *w);    /* who reads there now would hang too */
/* A message (base/message.h); "" when all is well. Borrowed. */
void rootwatch_why(const struct rootwatch *w, const char **ret_code, const char **ret_text);
/* The error of the last look at it; code 0: none. Borrowed. */
const struct err *rootwatch_trouble(const struct rootwatch *w);
/* The other paths by which this machine reaches it, see rootnames.h. Borrowed until the loop goes
 * on. */
const struct strv *rootwatch_names(const struct rootwatch *w);
uint64_t rootwatch_free_bytes(const struct rootwatch *w);
/* What the last check that worked took to write its small file, synced; 0 = none has. */
usec_t rootwatch_write_took(const struct rootwatch *w);
