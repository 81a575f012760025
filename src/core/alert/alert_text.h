/* SPDX-License-Identifier: Apache-2.0 */
/* alert_text.h - what is said of an alert and of an incident, in English and Chinese: sentences,
 * the message that goes to receivers, and the report of an incident. Pure. */
#pragma once
#include "base/buf.h"
#include "core/alert/alert_route.h"

/* The template with {fact}, {fact:percent}, {fact:bytes}, {fact:span} of args filled in; of what is
 * not there "?". {fact:also} is a text behind "; ", and nothing where it is not there. Nothing of a
 * fact is read as a template; one that is a message is said. */
void alert_fill(const char *text, const char *args, enum message_language in, struct buf *out);
/* The facts as an object of numbers and texts, messages said; heap, NULL where there are none. */
char *alert_facts_said(const char *args, enum message_language in);
/* The alert's sentence, or (is_fix) what to do: "" if there is none. */
void alert_sentence(const struct alert *a, enum message_language in, bool is_fix, struct buf *out);

enum alert_what { ALERT_OPENED, ALERT_GREW, ALERT_ESCALATED, ALERT_RESOLVED, ALERT_TEST };
extern const char *const alert_what_names[];
/* "node 'w1' is lost: … (8 jobs)"; nothing of one without an alert. */
void incident_sentence(const struct incident *i, enum message_language in, struct buf *out);
/* The same behind "[critical] ". */
void incident_title(const struct incident *i,
                    enum alert_what what,
                    enum message_language in,
                    struct buf *out);
size_t incident_jobs(const struct incident *i);
/* The worst alert, the oldest of those; what the title says. NULL: it has none. */
const struct alert *incident_first(const struct incident *i);
/* What its jobs lost, in GPU-hours: of one that ended or went back to the queue the work since its
 * newest checkpoint, else the time for which it was hit, until now. */
double incident_gpu_hours(const struct incident *i, usec_t now);

/* What a receiver is told, as JSON: {"id","type","timestamp","incident":{…,"alerts":[…]},"title",
 * "title_zh","lines","lines_zh"}. Of many alerts the first 20. */
enum { ALERT_PAYLOAD_MAX = 64 << 10 };
void incident_payload(const struct incident *i,
                      enum alert_what what,
                      const char *id,
                      usec_t now,
                      struct buf *out);
/* The same of a test, which has no incident. */
void alert_test_payload(const char *id, const char *by, usec_t now, struct buf *out);

enum { INCIDENT_REPORT_MAX = 2 << 20 };
/* May the reader see this alert? NULL: all. */
typedef bool (*incident_sees_f)(const struct alert *a, void *arg);
/* "job/x" as far as the reader may know it: who sees no alert about that job is told "job".
 * Borrowed from i, or static. */
const char *incident_cause(const struct incident *i, incident_sees_f sees, void *arg);
/* Something that was done while it lasted, as an event tells it to this reader. */
struct incident_act {
    usec_t at;
    int64_t seq;     /* of the event */
    char *who;       /* a user, or argusd */
    char *subject;   /* "job/x" */
    char *from, *to; /* states; NULL: none */
    char *text;
};
void incident_act_release(struct incident_act *act);
/* The oldest first. is_cut: there are others. Borrowed. */
struct incident_acts {
    const struct incident_act *v;
    size_t n;
    bool is_cut;
};
/* What, when, who, evidence, what was done, what it cost; of alerts that the reader may not see,
 * how many there are and no more. Of acts nothing is said that is not among them. */
void incident_report(const struct incident *i,
                     const struct incident_acts *acts,
                     bool is_html,
                     enum message_language in,
                     usec_t now,
                     incident_sees_f sees,
                     void *arg,
                     struct buf *out);
