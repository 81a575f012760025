/* SPDX-License-Identifier: Apache-2.0 */
/* notices.h - what the handlers of alerts, incidents, rules and receivers share: an alert's page,
 * and who may see the alert. */
#pragma once
#include "argusd/alerts/alerts.h"
#include "argusd/kit/resource.h"

enum { ALERT_SHOWN_MAX = 4096 }; /* bytes of a sentence */

struct alert_page {
    const struct alert *a; /* borrowed, as are the texts */
    char *id, *rule, *kind, *name, *user, *project, *incident, *silenced_by, *facts, *acked_by;
    char *ack_note, *text, *fix;
    int severity;
    bool open;
    int64_t count;
    usec_t since, ended_at, acked_at;
};
extern const struct field_table alert_page_table;

/* i: the incident of the alert. The page speaks its reader's language. Release it by its table. */
void alert_page_fill(const struct api *api,
                     enum message_language reader,
                     const struct incident *i,
                     const struct alert *a,
                     struct alert_page *page);
/* For a member of a page that is borrowed in it. */
char *alert_borrow(const char *text);
/* To see or change an alert is to see or change the thing that it is about. */
must_check int alert_access(const struct access_who *who,
                            enum access_action action,
                            const char *verb,
                            const struct alert *a,
                            struct err *err);
