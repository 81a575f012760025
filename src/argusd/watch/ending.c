/* SPDX-License-Identifier: Apache-2.0 */
/* ending.c - see ending.h. What the witnesses say of the class stands where no finding came in
 * time, or where it knows no better. */
#define _GNU_SOURCE
#include "argusd/watch/ending.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/watch/diagnosis.h"
#include "argusd/watch/sight.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

struct ending {
    int k; /* 0: of its trial */
    char cause[24], signal[24], text[512];
    int code;                 /* -1: none */
    enum finding_class class; /* by the witnesses */
    bool head_lost;           /* Ray's head was, since it began */
    bool by_head;             /* and that was its end */
};

static enum finding_class ending_class_of(const struct fsroot_exit *x)
{
    if (!strcmp(x->cause, "start_failed"))
        return FINDING_PLATFORM;
    if (!strcmp(x->cause, "mismatch") && finding_class_from_string(x->class) >= 0)
        return (enum finding_class)finding_class_from_string(x->class);
    if (x->oom_kills > 0 && !x->oom_unsure && !strcmp(x->signal, "SIGKILL"))
        return FINDING_HOST_OOM;
    return FINDING_UNKNOWN;
}

/* "SIGKILL": 9; 0 for "" and for what there is not here. */
static int signal_number(const char *name)
{
    for (int i = 1; i < NSIG && str_starts(name, "SIG"); i++)
        if (str_eq(sigabbrev_np(i), name + 3))
            return i;
    return 0;
}

/* ---- telling ---- */

/* What is done next follows from it: nothing is started again, nor a node blamed, for a guess. */
static enum finding_class ending_choose(const struct finding *found, enum finding_class witnessed)
{
    bool knows = found && finding_class_tells(found->class) && !found->is_vague;
    return knows ? found->class : witnessed;
}

/* A program may see for itself that Ray's head went away, and end; it may also fail of its own, and
 * the head be lost later. */
static bool is_of_head(const struct ending *e, const struct finding *found)
{
    bool says_so = found && found->class == FINDING_NODE_LOST && !found->is_vague;
    return e->by_head || (e->head_lost && says_so);
}

static void ending_tell(struct live *l, const struct ending *e, const struct finding *found)
{
    bool knows_node =
        found && !found->is_vague && found->node && gang_has(&l->job->gang, found->node);
    struct job_end end = {.cause = e->cause,
                          .code = e->code,
                          .signal = e->signal,
                          .finding = ending_choose(found, e->class),
                          .head_lost = is_of_head(e, found),
                          .node = knows_node ? found->node : NULL,
                          .text = e->text};
    struct job_event ev = {.kind = JOB_EV_ENDED, .end = &end};
    (void)jobs_apply(l, &ev, "argusd", clock_wall()); /* too late is harmless */
    if (!l->over && job_is_holding(l->job))
        jobs_note(l, "holding", "hold_on_failure", l->job->reason.text, clock_wall());
}

static void ending_tell_trial(struct live *l, const struct ending *e)
{
    struct job_event ev = {.kind = JOB_EV_REJECTED, .finding = e->class, .text = e->text};
    (void)jobs_apply(l, &ev, "argusd", clock_wall()); /* too late is harmless */
}

bool ending_is_awaited(const struct live *l)
{
    const bool *is_awaited = live_kept(l, LIVE_ENDING);
    return is_awaited && *is_awaited;
}

static void on_finding(struct live *l, const struct finding *found, void *arg)
{
    const struct ending *e = arg;
    const struct attempt *a = job_attempt(l->job);
    *(bool *)live_keep(l, LIVE_ENDING, sizeof(bool)) = false;
    if (e->k == 0)
        ending_tell_trial(l, e);
    else if (!l->over && a && a->k == e->k && a->phase < ATTEMPT_ENDED)
        ending_tell(l, e, found);
}

static void ending_await(struct findings *fs,
                         struct live *l,
                         const struct ending *e,
                         const struct findings_end *end)
{
    struct ending *kept = xmalloc(sizeof(*kept));
    *kept = *e;
    *(bool *)live_keep(l, LIVE_ENDING, sizeof(bool)) = true;
    findings_ask(fs, l, end, on_finding, kept);
}

/* What was no number at the end, into text. */
static bool is_nan(const struct metrics *ms, const struct job *j, char *text, size_t size)
{
    struct metric_pace p;
    if (!metrics_pace(ms, j->id, &p) || p.attempt != j->n_attempts || !*p.bad_key)
        return false;
    text_printf_to(text, size, "'%s' since step %lld", p.bad_key, (long long)p.bad_step);
    return true;
}

static void ending_ask(struct findings *fs,
                       const struct metrics *ms,
                       struct live *l,
                       const struct ending *e,
                       struct findings_end *end)
{
    const struct job *j = l->job;
    struct finding_facts *f = &end->facts;
    char nan[METRIC_NAME_MAX + 64], reason[JOB_REASON_TEXT_MAX];
    f->stopped =
        j->stop_cause == STOP_USER || (j->stop_cause == STOP_NONE && f->stopped && !e->by_head);
    f->preempted = j->stop_cause == STOP_PREEMPTED;
    f->timed_out = j->stop_cause == STOP_TIMEOUT;
    f->head_lost = e->by_head;
    f->metrics_nan = is_nan(ms, j, nan, sizeof(nan));
    f->nan_text = f->metrics_nan ? nan : NULL;
    if (j->stop_cause != STOP_NONE) { /* a finding has one text for everybody */
        message_to_string(j->reason.code, j->reason.text, false, reason, sizeof(reason));
        f->stopped_reason = reason;
    }
    end->given = j->stop_cause == STOP_FINDING ? j->finding : FINDING_NONE;
    f->hung = j->flags & JOB_FLAG_HUNG;
    if (f->hung && end->given == FINDING_TIMEOUT_OR_HANG && findings_shows(l, FINDINGS_HANG))
        end->whole = l->extra.finding.json; /* who hung it was found while it ran */
    end->no_logs = f->stopped || f->preempted;
    ending_await(fs, l, e, end);
}

/* ---- before an attempt ---- */

void ending_by_trial(struct findings *fs,
                     struct live *l,
                     const struct finding *found,
                     const char *text,
                     bool left)
{
    struct ending e = {.code = -1, .class = found->class};
    struct buf whole = BUF_INIT(DIAGNOSIS_BODY_MAX);
    struct jout j = jout_begin(&whole);
    finding_to_json(found, &j, NULL);
    text_copy(e.text, text);
    struct findings_end end = {.given = found->class,
                               .whole = whole.failed ? NULL : buf_str(&whole),
                               .no_logs = true,
                               .no_file = !left};
    ending_await(fs, l, &e, &end);
    buf_release(&whole);
}

/* ---- with an exit file ---- */

/* A run too short to be seen did start: by the worker's clock, kept between what we know. */
static void note_short_run(struct live *l, const struct fsroot_exit *x, usec_t now)
{
    const struct attempt *a = job_attempt(l->job);
    usec_t at = x->started < a->accepted_at ? a->accepted_at : x->started > now ? now : x->started;
    struct job_event e = {.kind = JOB_EV_STARTED};
    if (x->started)
        (void)jobs_apply(l, &e, "argusd", at); /* nothing if it was seen to start */
}

/* Nobody asked for it: Ray's old raylets, or whoever cleared them away for the new head, ended it.
 */
static bool was_swept(const struct job *j, const struct fsroot_exit *x)
{
    return j->stop_cause == STOP_NONE &&
           (str_starts(x->cause, "stopped") || !strcmp(x->signal, "SIGTERM"));
}

void ending_by_exit(struct findings *fs,
                    const struct metrics *ms,
                    struct live *l,
                    const struct fsroot_exit *x,
                    bool head_lost)
{
    const struct job *j = l->job;
    note_short_run(l, x, clock_wall());
    struct ending e = {.k = j->n_attempts,
                       .code = x->has_code ? x->code : -1,
                       .class = ending_class_of(x),
                       .head_lost = head_lost,
                       .by_head = head_lost && was_swept(j, x)};
    text_copy(e.cause, x->cause);
    text_copy(e.signal, x->signal);
    text_printf(e.text, "%s%.440s",
                e.by_head ? "Ray's head went away, and what it left was ended: " : "", x->sentence);
    if (e.by_head)
        e.class = FINDING_NODE_LOST;
    if (e.code == 0 && !strcmp(e.cause, "exit") && j->stop_cause != STOP_FINDING) {
        ending_tell(l, &e, NULL);
        return;
    }
    struct findings_end end = {.facts = {.exit_known = x->has_code || *x->signal,
                                         .exit_code = x->has_code ? x->code : 0,
                                         .signal = signal_number(x->signal),
                                         .oom_kills = x->oom_kills > 0 ? x->oom_kills : 0,
                                         .oom_unsure = x->oom_unsure,
                                         .oom_line = *x->oom_line ? x->oom_line : NULL,
                                         .odd_node = x->oom_kills > 0 ? j->proof.node : NULL,
                                         .stopped = str_starts(x->cause, "stopped"),
                                         .stopped_reason = *x->stop_reason ? x->stop_reason : NULL,
                                         .not_started = !strcmp(x->cause, "start_failed"),
                                         .import_mismatch = !strcmp(x->cause, "mismatch")}};
    ending_ask(fs, ms, l, &e, &end);
}

/* ---- without ---- */

/* How it was lost; all texts fit. */
static void tell_lost(const struct live *l, bool never, bool killed, struct ending *e)
{
    const struct proof *p = &l->job->proof;
    enum witness_ray ray = sight_of(l)->ray;
    const char *space = *p->node ? " " : "", *on = *p->node ? " on " : "";
    size_t size = sizeof(e->text);
    if (ray == WITNESS_RAY_BLIND || (never && ray == WITNESS_RAY_GONE))
        text_printf_to(e->text, size,
                       "it was told to stop and is heard of no more: Ray is away and its node%s%s "
                       "silent",
                       space, p->node);
    else if (never)
        text_printf_to(e->text, size,
                       "Ray says that it is over and no shepherd ever wrote to its directory%s%s",
                       space, p->node);
    else if (killed)
        text_printf_to(e->text, size,
                       "Ray saw its shepherd%s%s end without a word: it was killed, and the node "
                       "lives",
                       on, p->node);
    else if (e->head_lost)
        text_printf_to(e->text, size, "Ray's head went away, and its shepherd%s%s fell silent", on,
                       p->node);
    else
        text_printf_to(e->text, size, "its node%s%s fell silent and Ray says that it is over",
                       space, p->node);
}

void ending_lost(struct findings *fs, const struct metrics *ms, struct live *l, bool head_lost)
{
    const struct job *j = l->job;
    bool never = sight_of(l)->files == WITNESS_FILES_NONE;
    bool killed = !never && !head_lost && sight_of(l)->saw_exit;
    struct ending e = {.k = j->n_attempts,
                       .cause = "lost",
                       .code = -1,
                       .class = never || killed ? FINDING_PLATFORM : FINDING_NODE_LOST,
                       .head_lost = head_lost,
                       .by_head = head_lost};
    tell_lost(l, never, killed, &e);
    const char *node = *j->proof.node ? j->proof.node : str_or(gang_driver(&j->gang), "its node");
    struct findings_end end = {.facts = {.not_started = never,
                                         .shepherd_killed = killed,
                                         .lost_node = never || head_lost || killed ? NULL : node}};
    ending_ask(fs, ms, l, &e, &end);
}
