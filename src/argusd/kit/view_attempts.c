/* SPDX-License-Identifier: Apache-2.0 */
/* view_attempts.c - see view_attempts.h.
 *
 * A job keeps the whole finding of its newest attempt alone; of one before it the class and how it
 * ended are kept with the attempt, and that is what is said. GET /v1/jobs/{id}/findings has all of
 * them whole. */
#include "argusd/kit/view_attempts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/kit/saying.h"
#include "base/json.h"
#include "base/said.h"
#include "base/str.h"

static const struct field brief_rows[] = {
    FIELD_AT(view_brief, "class", FIELD_STR, class, .flags = FIELD_ALWAYS),
    FIELD_AT(view_brief, "sentence", FIELD_STR, sentence, .flags = FIELD_ALWAYS),
    FIELD_AT(view_brief, "node", FIELD_STR, node),
    FIELD_AT(view_brief, "advice", FIELD_STR, advice),
};
const struct field_table view_brief_table = FIELD_TABLE("FindingBrief", brief_rows, view_brief);

static const struct field node_gpus_rows[] = {
    FIELD_AT(gang_node, "name", FIELD_STR, name, .flags = FIELD_ALWAYS),
    FIELD_AT(gang_node, "gpu_ids", FIELD_BITS, gpus),
};
const struct field_table view_node_gpus_table = FIELD_TABLE("NodeGpus", node_gpus_rows, gang_node);

struct attempt_page {
    struct attempt of; /* texts are borrowed, but for the end */
    usec_t queued_at;
    struct gang gang;
    struct field_list nodes;          /* of the gang */
    const struct view_brief *finding; /* NULL: none */
    struct view_brief its_finding;    /* what `finding` points to */
    json_t *whole;                    /* owned, what the finding may borrow from */
};

#define X(word) [ATTEMPT_##word] = #word,
static const char *const phase_words[] = {ATTEMPT_PHASE_TABLE(X) NULL};
#undef X
#define ATTEMPT(key, ftype, member, ...) FIELD_AT(attempt_page, key, ftype, member, __VA_ARGS__)
static const struct field attempt_rows[] = {
    ATTEMPT("k", FIELD_INT32, of.k),
    ATTEMPT("ray_id", FIELD_STR, of.ray_id, .flags = FIELD_ALWAYS),
    ATTEMPT("state", FIELD_ENUM, of.phase, .names = phase_words),
    ATTEMPT("queued_at",
            FIELD_TIME,
            queued_at,
            .doc = "it began to wait: the submit, or the end of the attempt before it"),
    ATTEMPT("accepted_at", FIELD_TIME, of.accepted_at),
    ATTEMPT("started_at", FIELD_TIME, of.started_at),
    ATTEMPT("fault_at",
            FIELD_TIME,
            of.fault_at,
            .doc = "of one that failed or hangs: it ended, was last heard of, or last got on"),
    ATTEMPT("noticed_at", FIELD_TIME, of.noticed_at, .doc = "argusd met that"),
    ATTEMPT("ended_at", FIELD_TIME, of.ended_at),
    ATTEMPT("end", FIELD_STR, of.end_text, .doc = "how it ended, in the reader's language"),
    ATTEMPT("nodes",
            FIELD_LIST,
            nodes,
            .of = &view_node_gpus_table,
            .doc = "its lease, the driver's node first; empty: nobody kept that"),
    ATTEMPT("finding",
            FIELD_PART,
            finding,
            .of = &view_brief_table,
            .doc = "why it failed or hangs; null: it does not, or nobody knows"),
    ATTEMPT("gpu_seconds",
            FIELD_REAL,
            of.gpu_s,
            .flags = FIELD_MAYBE,
            .doc = "that it held, each of its GPUs an equal part, exactly once it is over; null: "
                   "nobody kept that"),
    ATTEMPT("gpu_idle_seconds",
            FIELD_REAL,
            of.gpu_idle_s,
            .flags = FIELD_MAYBE,
            .doc = "of these, measured idle"),
    ATTEMPT("gpu_unknown_seconds",
            FIELD_REAL,
            of.gpu_unknown_s,
            .flags = FIELD_MAYBE,
            .doc = "of these, measured by nobody"),
    ATTEMPT("gpu_redone_seconds",
            FIELD_REAL,
            of.gpu_redone_s,
            .flags = FIELD_MAYBE,
            .doc = "of these, while steps ran that an earlier attempt had run"),
};
#undef ATTEMPT
const struct field_table view_attempt_table = FIELD_TABLE("Attempt", attempt_rows, attempt_page);

/* What the attempts held: the newest of a live job up to now. Of one with GPUs that ended under an
 * argusd that did not keep that nothing is known. */
static void view_fill_attempts_held(const struct view_attempts_ask *ask,
                                    struct attempt_page *v,
                                    size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct attempt *a = &v[i].of;
        if (a->ended_at && a->gpu_s <= 0 && ask->gpus > 0)
            a->gpu_s = a->gpu_idle_s = a->gpu_unknown_s = a->gpu_redone_s = (double)NAN;
    }
    if (ask->leased && n)
        jobs_add_held_of(&v[n - 1].of, ask->leased);
}

/* An attempt that an older argusd planned has no slots with it: the newest one's are the job's. */
static void view_fill_attempt_nodes(const struct job *job, struct attempt_page *p)
{
    bool is_newest = p->of.k == job->n_attempts;
    if (p->of.slots)
        gang_from_text(p->of.slots, &p->gang);
    else if (is_newest)
        gang_copy(&p->gang, &job->gang);
    p->nodes = (struct field_list){.v = p->gang.v, .n = p->gang.n};
}

/* From the whole finding, in the reader's language. False: it is not this attempt's, or says no
 * class. */
static bool view_read_whole_finding(const struct view_attempts_ask *ask, struct attempt_page *p)
{
    const struct record_finding *f = &ask->extra->finding;
    if (!f->json || f->attempt != p->of.k ||
        json_parse(f->json, strlen(f->json), RECORD_DETAIL_MAX, &p->whole, NULL) < 0)
        return false;
    said_in(p->whole, ask->eyes ? ask->eyes->p->language : MESSAGE_ENGLISH);
    const char *meaning = json_get_str(p->whole, "meaning", "");
    p->its_finding = (struct view_brief){.class = json_get_str(p->whole, "class", NULL),
                                         .sentence = json_get_str(p->whole, "sentence", meaning),
                                         .node = json_get_str(p->whole, "node", p->of.node),
                                         .advice = json_get_str(p->whole, "advice", NULL)};
    return p->its_finding.class && !str_eq(p->its_finding.class, "none"); /* a hang that is over */
}

static void view_fill_attempt_finding(const struct view_attempts_ask *ask, struct attempt_page *p)
{
    const struct attempt *a = &p->of;
    if (a->outcome == ATTEMPT_DONE || a->outcome == ATTEMPT_PREEMPTED)
        return;
    if (view_read_whole_finding(ask, p)) {
        p->finding = &p->its_finding;
        return;
    }
    if (a->finding == FINDING_NONE)
        return;
    bool is_newest = a->k == ask->job->n_attempts;
    const char *word = is_newest ? record_finding_word(ask->job, ask->extra) : NULL;
    p->its_finding = (struct view_brief){.class = str_or(word, finding_class_to_string(a->finding)),
                                         .sentence = str_or(a->end_text, ""),
                                         .node = a->node};
    p->finding = &p->its_finding;
}

void view_fill_attempts(const struct view_attempts_ask *ask, struct field_list *ret)
{
    const struct job *job = ask->job;
    struct saying_to to = {.eyes = ask->eyes, .about = job->id};
    const struct message_listener listener = saying_listener(&to);
    size_t n = (size_t)job->n_attempts;
    struct attempt_page *v = xcalloc(n ? n : 1, sizeof(*v));
    for (size_t i = 0; i < n; i++) {
        v[i].of = job->attempts[i];
        v[i].of.end_text = message_kept_say(job->attempts[i].end_text, &listener);
        v[i].queued_at = job_attempt_queued_at(job, (int)i + 1);
        view_fill_attempt_nodes(job, &v[i]);
        view_fill_attempt_finding(ask, &v[i]);
    }
    view_fill_attempts_held(ask, v, n);
    *ret = (struct field_list){.v = v, .n = n};
}

void view_release_attempts(struct field_list *attempts)
{
    struct attempt_page *v = attempts->v;
    for (size_t i = 0; i < attempts->n; i++) {
        free(v[i].of.end_text);
        gang_release(&v[i].gang);
        json_decref(v[i].whole);
    }
    free(v);
    *attempts = (struct field_list){0};
}
