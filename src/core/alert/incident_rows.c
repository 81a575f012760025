/* SPDX-License-Identifier: Apache-2.0 */
/* incident_rows.c - see incident_rows.h. An alert's row names the incident that has it now: one
 * that was merged into another has its alerts' rows written anew, under the same ids. */
#include "core/alert/incident_rows.h"

#include <stdlib.h>

#include "base/str.h"

static void alert_write(struct alert *a, incident_row_f put, void *arg)
{
    _cleanup_(freep) char *body = field_to_text(&alert_table_of_alert, a, FIELD_STORED, FIELD_ROW);
    put(INCIDENT_ROW_ALERT, a->id, body, a->since, arg);
    a->is_dirty = false;
}

void incident_write(struct incident *i, incident_row_f put, void *arg)
{
    struct incident alone = *i; /* shallow */
    alone.alerts = (struct field_list){0};
    _cleanup_(freep) char *body = field_to_text(&incident_table, &alone, FIELD_STORED, FIELD_ROW);
    put(INCIDENT_ROW, i->id, body, i->opened_at, arg);
    for (size_t k = 0; k < i->gone.n; k++)
        put(INCIDENT_ROW_ALERT, i->gone.v[k], NULL, 0, arg);
    strv_release(&i->gone);
    for (size_t k = 0; k < i->alerts.n; k++)
        if (incident_alert(i, k)->is_dirty)
            alert_write(incident_alert(i, k), put, arg);
}

void incident_erase(const struct incident *i, incident_row_f put, void *arg)
{
    put(INCIDENT_ROW, i->id, NULL, 0, arg);
    for (size_t k = 0; k < i->gone.n; k++)
        put(INCIDENT_ROW_ALERT, i->gone.v[k], NULL, 0, arg);
    for (size_t k = 0; k < i->alerts.n; k++)
        put(INCIDENT_ROW_ALERT, incident_alert(i, k)->id, NULL, 0, arg);
}

static bool alert_is_whole(const struct alert *a)
{
    return *a->id && a->rule && a->name;
}

bool incident_read(const char *body, struct incident *ret)
{
    struct incident i = {0};
    bool ok = field_from_text(&incident_table, body, FIELD_STORED, &i) && *i.id && i.cause;
    for (size_t k = 0; ok && k < i.alerts.n; k++)
        ok = alert_is_whole(incident_alert(&i, k));
    if (ok)
        *ret = i;
    else
        field_release(&incident_table, &i);
    return ok;
}

bool incident_read_alert(const char *body, struct alert *ret)
{
    struct alert a = {0};
    bool ok = field_from_text(&alert_table_of_alert, body, FIELD_STORED, &a) &&
              alert_is_whole(&a) && *a.incident;
    if (ok)
        *ret = a;
    else
        field_release(&alert_table_of_alert, &a);
    return ok;
}
