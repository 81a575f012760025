/* SPDX-License-Identifier: Apache-2.0 */
/* incident_acts.h - what argusd and people did about an incident, as the events of its subjects
 * tell it, read from the store for one reader: he gets no act that he may not see. */
#pragma once
#include "argusd/kit/api.h"
#include "core/alert/alert_text.h"

struct incident_gather;

/* acts is borrowed for the call; err has a code where the store could not be read. */
typedef void (*incident_gather_f)(const struct incident_acts *acts,
                                  const struct err *err,
                                  void *arg);

/* Which events are asked for is settled here: i is not kept. reader: who hears of them, in this
 * language; copied. sees as in incident_report(), NULL = all. */
struct incident_gather *incident_gather_new(const struct api *a,
                                            const struct http_principal *reader,
                                            enum message_language in,
                                            const struct incident *i,
                                            incident_sees_f sees,
                                            void *arg);
/* One callback, at once or later; it may free the handle. */
void incident_gather_begin(struct incident_gather *g, incident_gather_f cb, void *arg);
/* The callback never comes; NULL is fine. */
void incident_gather_free(struct incident_gather *g);
