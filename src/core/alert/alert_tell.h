/* SPDX-License-Identifier: Apache-2.0 */
/* alert_tell.h - what is told to whom, now: one pure decision about one incident.
 *
 * A receiver is concerned by an incident when a route, or a job's notify, names it for one of the
 * alerts. It is told once of the begin, a few seconds late, so that what belongs together is one
 * message; again when what concerns it grows worse or more jobs and machines were hit; when nobody
 * acknowledges; and of the end. An alert that a silence covers is in no message, and no reason for
 * one. In quiet hours everything below their severity waits. What is over before it could be told
 * is told afterwards, in one message. Whoever is not told has the reason in his telling. */
#pragma once
#include "core/alert/alert_route.h"
#include "core/alert/alert_text.h"
#include "core/alert/alert_way.h"

/* Puts a message on its way. view: the incident as it may be told, without silenced alerts; way:
 * with what it is asked again before it is sent, and taken back. Both borrowed. The answer is
 * TELLING_ON_THE_WAY, or why not: _NOT_THERE; _FULL, which is tried again at the next look; _SHARE,
 * which is tried again only while the incident is open. */
typedef enum telling_state (*tell_put_f)(const struct incident *view,
                                         enum alert_what what,
                                         const char *receiver,
                                         const struct alert_way *way,
                                         usec_t now,
                                         void *arg);

struct tell_parts { /* all borrowed */
    const struct alert_config *config;
    const struct alert_silence *silences;
    size_t n_silences;
    tell_put_f put;
    void *arg;
};

/* To be asked at each look. Marks what changed as dirty. */
void incident_tell(struct incident *i, const struct tell_parts *p, usec_t now);
