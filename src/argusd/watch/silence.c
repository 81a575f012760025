/* SPDX-License-Identifier: Apache-2.0 */
/* silence.c - see silence.h. What was found is known again after a restart by its rule. */
#include "argusd/watch/silence.h"

#include "argusd/watch/ending.h"
#include "argusd/watch/sight.h"
#include "base/message.h"
#include "base/str.h"

static const char HEAD[] = "fact-head-lost", BLIND[] = "silence";

/* A hang has a finding already, which its end will need. */
static bool can_be_found(const struct live *l)
{
    const struct attempt *a = job_attempt(l->job);
    return a && a->phase == ATTEMPT_RUNNING && !ending_is_awaited(l) &&
           !(l->job->flags & JOB_FLAG_HUNG);
}

/* A finding has one text for everybody. */
static void silence_note(struct findings *fs, struct live *l, struct finding *f, const char *code)
{
    char text[JOB_REASON_TEXT_MAX];
    message_to_string(code, "{}", true, text, sizeof(text));
    f->evidence[f->n_evidence++] = (struct finding_quote){.text = xstrdup(text)};
    findings_note(fs, l, f);
    finding_release(f);
}

void silence_begin(struct findings *fs, struct live *l)
{
    bool is_gone = sight_of(l)->ray == WITNESS_RAY_GONE;
    const char *message = is_gone ? "job_head_gone" : "job_unseen";
    const char *rule = is_gone ? HEAD : BLIND, *known = sight_of(l)->silence;
    struct job_event e = {.kind = JOB_EV_BLIND,
                          .code = is_gone ? "head_lost" : "unknown",
                          .message = message,
                          .text = "{}"};
    (void)jobs_apply(l, &e, "argusd", clock_wall()); /* it is UNKNOWN already: fine */
    if (str_eq(known, rule) || str_eq(known, HEAD) || !can_be_found(l))
        return;
    sight_change(l)->silence = rule;
    if (findings_shows(l, rule) || findings_shows(l, HEAD))
        return; /* before our time */
    struct finding f = {.class = is_gone ? FINDING_NODE_LOST : FINDING_UNKNOWN,
                        .rule = xstrdup(rule),
                        .confidence = is_gone ? 0.9 : 0.5};
    finding_advise(&f, is_gone ? "head-gone" : "head-silent");
    silence_note(fs, l, &f, message);
}

void silence_end(struct findings *fs, struct live *l)
{
    struct job_event e = {.kind = JOB_EV_SEEN};
    bool is_open = sight_of(l)->silence || findings_shows(l, HEAD) || findings_shows(l, BLIND);
    if (!jobs_apply(l, &e, "argusd", clock_wall()))
        return;
    sight_change(l)->silence = NULL;
    if (!is_open || !can_be_found(l))
        return;
    struct finding f = {.class = FINDING_NONE, .rule = xstrdup("silence-over"), .confidence = 1};
    silence_note(fs, l, &f, "job_seen");
}
