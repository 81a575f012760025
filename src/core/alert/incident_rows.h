/* SPDX-License-Identifier: Apache-2.0 */
/* incident_rows.h - an incident in the store: one row of its own, and one of each of its alerts.
 *
 * What is written at an event is what it changed, so that an incident with hundreds of alerts costs
 * no more at each of them than a small one. Rows of an incident belong into one batch. Pure. */
#pragma once
#include "core/alert/incident.h"

enum incident_row { INCIDENT_ROW, INCIDENT_ROW_ALERT };

/* body NULL: the row is taken out. All borrowed. */
typedef void (
    *incident_row_f)(enum incident_row of, const char *id, const char *body, usec_t at, void *arg);

/* The incident without its alerts, and the alerts that changed since they were written. */
void incident_write(struct incident *i, incident_row_f put, void *arg);
/* It is forgotten, with all of its alerts. */
void incident_erase(const struct incident *i, incident_row_f put, void *arg);

/* False: the row cannot be read; *ret is as it was. An incident of a row that an older argusd wrote
 * has its alerts in it. */
bool incident_read(const char *body, struct incident *ret);
bool incident_read_alert(const char *body, struct alert *ret);
