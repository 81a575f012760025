/* SPDX-License-Identifier: Apache-2.0 */
/* alert_way.h - a message on its way to one receiver: what it tells of, and how it is taken back.
 *
 * Hours may lie between the moment at which a message is put and the one at which its receiver
 * listens. So it is asked again before each try whether it may go: a silence may cover it by then,
 * or quiet hours hold it back. One that may not is taken back, with all messages to this receiver
 * that wait behind it in its incident: then everything is as if they had never been put, and
 * incident_tell() decides anew.
 *
 * A way is kept with its message. The table counts the ways, in memory alone: whoever keeps the
 * messages tells it of each after a restart. Pure. */
#pragma once
#include "core/alert/alert_route.h"

struct alert_way {
    struct strv names; /* ids of the alerts that it tells of; none in a test, and in a message of an
                          argusd that asked nothing again */
    struct strv fresh; /* those of which its receiver had not been told before */
    int severity;      /* the one for which it was put: by it quiet hours are asked */
    /* of its telling, as that was before */
    bool begun, escalated;
    int told; /* severity */
    usec_t at;
    int64_t messages;
};
extern const struct field_table alert_way_table;

/* Which message it is. All borrowed; incident NULL: of a test. */
struct alert_way_of {
    const char *incident, *receiver;
    const struct alert_way *way;
};

struct alert_silences { /* borrowed */
    const struct alert_silence *v;
    size_t n;
};
/* May it go now? TELLING_ON_THE_WAY, or why not: _SILENCED, _QUIET. */
must_check enum telling_state alert_way_ask(const struct alert_table *t,
                                            const struct alert_way_of *m,
                                            const struct alert_config *c,
                                            struct alert_silences silences,
                                            usec_t now);
/* After a restart: it is on its way still. */
void alert_way_restore(struct alert_table *t, const struct alert_way_of *m);
/* It is on its way no more: what became of it, and what the receiver said (NULL: nothing). Borrowed
 * is the incident that says so; NULL: nobody has it. */
struct incident *alert_way_end(struct alert_table *t,
                               const struct alert_way_of *m,
                               enum telling_state state,
                               const char *why);
/* Takes it back. why: what alert_way_ask() said. Of several the newest goes first. What changed is
 * marked as dirty. */
void alert_way_take_back(struct alert_table *t,
                         const struct alert_way_of *m,
                         enum telling_state why);
