/* SPDX-License-Identifier: Apache-2.0 */
/* incident_acts.c - reads the events that are acts, subject by subject; see incident_acts.h.
 *
 * An act is an event of one of the kinds below, about a subject of the incident, while it lasted.
 * Subjects, events of each and the acts that come of them are bounded; what is left out is said.
 * One read at a time: a report is worth no more of the store than that. */
#include "argusd/api/alerts/incident_acts.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/alerts/alerts.h"
#include "argusd/kit/saying.h"
#include "argusd/people/people_rules.h"
#include "base/str.h"

enum { GATHER_SUBJECTS_MAX = 20, GATHER_ROWS_MAX = 200, GATHER_SHOWN_MAX = 60 };

/* What is done to a job and to a node. What they do by themselves is evidence, and no act. */
static const char job_acts[] = "admitted,stop,ended,requeued,held,released,reclaim,resume,holding,"
                               "retried,rejected,stop_overdue";
static const char node_acts[] = "node_added,node_online,node_draining,node_drain,node_undrain,"
                                "node_drain_due,node_remove,node_removed,node_key_accepted";

struct incident_gather {
    const struct api *a;
    struct http_principal reader;
    struct strv subjects; /* "job/x" "node/y" */
    size_t next;          /* of them, the one to read */
    usec_t from, to;
    struct incident_act *v;
    size_t n;
    bool is_cut;
    struct store_read *read;
    incident_gather_f cb;
    void *arg;
};

/* ---- which events ---- */

/* A GPU is its node's business; of a cluster what is done is done to its head. */
static char *gather_subject(const struct alert *a)
{
    const char *slash = strchr(a->name, '/');
    switch (a->of) {
    case ALERT_OF_JOB:
        return xasprintf("job/%s", a->name);
    case ALERT_OF_NODE:
        return xasprintf("node/%s", a->name);
    case ALERT_OF_GPU:
        return xasprintf("node/%.*s", (int)(slash ? slash - a->name : 0), a->name);
    case ALERT_OF_CLUSTER:
        return xstrdup("node/head");
    default:
        return NULL;
    }
}

static void gather_take_subject(struct incident_gather *g, const struct alert *a)
{
    _cleanup_(freep) char *subject = gather_subject(a);
    if (!subject || strv_has(&g->subjects, subject))
        return;
    if (g->subjects.n < GATHER_SUBJECTS_MAX)
        strv_add(&g->subjects, subject);
    else
        g->is_cut = true;
}

struct incident_gather *incident_gather_new(const struct api *a,
                                            const struct http_principal *reader,
                                            enum message_language in,
                                            const struct incident *i,
                                            incident_sees_f sees,
                                            void *arg)
{
    struct incident_gather *g = xcalloc(1, sizeof(*g));
    usec_t now = clock_wall();
    /* What the facts show was told as an event up to one look before. */
    usec_t look = alerts_config(a->alerts)->every + USEC_SEC;
    *g = (struct incident_gather){.a = a,
                                  .reader = *reader,
                                  .from = i->opened_at > look ? i->opened_at - look : 0,
                                  .to = i->open ? now : i->closed_at + look};
    g->reader.language = in;
    for (size_t k = 0; k < i->alerts.n; k++)
        if (!sees || sees(incident_alert(i, k), arg))
            gather_take_subject(g, incident_alert(i, k));
    return g;
}

void incident_gather_free(struct incident_gather *g)
{
    if (!g)
        return;
    if (g->read)
        store_read_cancel(g->read);
    for (size_t k = 0; k < g->n; k++)
        incident_act_release(&g->v[k]);
    free(g->v);
    strv_release(&g->subjects);
    free(g);
}

/* ---- what they say ---- */

static void gather_take_row(struct incident_gather *g,
                            const char *subject,
                            const struct store_event *row)
{
    struct api_eyes eyes = {.a = g->a, .p = &g->reader};
    struct said said;
    if (row->at < g->from || row->at > g->to)
        return;
    saying_say(&eyes, row->job, row->reason_code, row->text, &said);
    g->v = xrealloc(g->v, g->n + 1, sizeof(*g->v));
    g->v[g->n++] =
        (struct incident_act){.at = row->at,
                              .seq = row->seq,
                              .who = xstrdup(str_or(row->actor, "argusd")),
                              .subject = xstrdup(subject),
                              .from = xstrdup(row->from_state),
                              .to = xstrdup(row->to_state),
                              .text = xstrdup(*str_or(said.text, "") ? said.text : row->kind)};
    said_release(&said);
}

static int act_compare(const void *a, const void *b)
{
    const struct incident_act *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static void gather_end(struct incident_gather *g, const struct err *err)
{
    xsort(g->v, g->n, sizeof(*g->v), act_compare);
    bool fits = g->n <= GATHER_SHOWN_MAX;
    struct incident_acts acts = {
        .v = g->v, .n = fits ? g->n : GATHER_SHOWN_MAX, .is_cut = g->is_cut || !fits};
    g->cb(&acts, err, g->arg);
}

static void gather_go_on(struct incident_gather *g);

static void gather_on_rows(const struct store_result *r, void *arg)
{
    struct incident_gather *g = arg;
    const char *subject = g->subjects.v[g->next++];
    g->read = NULL;
    if (r->err.code) {
        gather_end(g, &r->err);
        return;
    }
    for (size_t k = 0; k < r->nevents; k++)
        gather_take_row(g, subject, &r->events[k]);
    /* The newest ones came: the oldest of them is still of the incident, so others may be. */
    g->is_cut =
        g->is_cut || (r->nevents == GATHER_ROWS_MAX && r->events[r->nevents - 1].at >= g->from);
    gather_go_on(g);
}

static void gather_go_on(struct incident_gather *g)
{
    static const struct err none;
    if (g->next == g->subjects.n) {
        gather_end(g, &none);
        return;
    }
    const char *subject = g->subjects.v[g->next], *name = strchr(subject, '/') + 1;
    bool of_job = str_starts(subject, "job/");
    struct people_sight sight;
    people_sight(g->a->people, &g->reader, &sight);
    struct store_event_query q = {.job = of_job ? name : NULL,
                                  .object = of_job ? NULL : subject,
                                  .kinds = of_job ? job_acts : node_acts,
                                  .limit = GATHER_ROWS_MAX,
                                  .newest_first = true,
                                  .scope = sight.scope};
    struct store_then then = {.done = gather_on_rows, .arg = g};
    g->read = store_list_events(g->a->store, &q, &then);
    people_sight_release(&sight);
}

void incident_gather_begin(struct incident_gather *g, incident_gather_f cb, void *arg)
{
    g->cb = cb;
    g->arg = arg;
    gather_go_on(g);
}
