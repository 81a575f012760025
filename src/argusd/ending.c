/* SPDX-License-Identifier: Apache-2.0 */
/* ending.c - see ending.h. What the witnesses say of the class stands where no finding came in
 * time, or where it knows no better. */
#define _GNU_SOURCE
#include "argusd/ending.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fsroot/proof.h"

struct ending {
    int k;
    char cause[24], signal[24], text[512];
    int code;          /* -1: none */
    const char *class; /* by the witnesses; a literal */
    bool head_lost;    /* Ray's head was, since it began */
    bool by_head;      /* and that was its end */
};

static const char *class_of(const struct fsroot_exit *x)
{
    if (!strcmp(x->cause, "start_failed"))
        return "platform";
    if (!strcmp(x->cause, "mismatch") && !strcmp(x->class, PROOF_CLASS))
        return PROOF_CLASS;
    if (x->oom_kills > 0 && !x->oom_unsure && !strcmp(x->signal, "SIGKILL"))
        return "host_oom";
    return "unknown";
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
static const char *choose(const struct finding *found, const char *witnessed)
{
    bool knows = found && found->class != FINDING_UNKNOWN && found->class != FINDING_NONE &&
                 !found->is_vague;
    return knows ? finding_class_to_string(found->class) : witnessed;
}

/* A program may see for itself that Ray's head went away, and end; it may also fail of its own, and
 * the head be lost later. */
static bool is_of_head(const struct ending *e, const struct finding *found)
{
    bool says_so = found && found->class == FINDING_NODE_LOST && !found->is_vague;
    return e->by_head || (e->head_lost && says_so);
}

static void tell(struct live *l, const struct ending *e, const struct finding *found)
{
    bool knows_node =
        found && !found->is_vague && found->node && str_list_has(l->job->nodes, found->node);
    struct job_end end = {.cause = e->cause,
                          .code = e->code,
                          .signal = e->signal,
                          .finding = choose(found, e->class),
                          .head_lost = is_of_head(e, found),
                          .node = knows_node ? found->node : NULL,
                          .text = e->text};
    struct job_event ev = {.kind = JOB_EV_ENDED, .end = &end};
    (void)jobs_apply(l, &ev, "argusd", clock_wall()); /* too late is harmless */
    if (!l->over && job_is_holding(l->job))
        jobs_note(l, "holding", "hold_on_failure", l->job->reason.text, clock_wall());
}

static void on_finding(struct live *l, const struct finding *found, void *arg)
{
    struct ending *e = arg;
    const struct attempt *a = job_attempt(l->job);
    l->ending = false;
    if (!l->over && a && a->k == e->k && a->phase < ATTEMPT_ENDED)
        tell(l, e, found);
    free(e);
}

/* What was no number at the end, into text. */
static bool is_nan(const struct metrics *ms, const struct job *j, char *text, size_t size)
{
    struct metric_pace p;
    if (!metrics_pace(ms, j->id, &p) || p.attempt != j->n_attempts || !*p.bad_key)
        return false;
    (void)snprintf(text, size, "'%s' since step %lld", p.bad_key, (long long)p.bad_step); /* cut */
    return true;
}

static void ask(struct findings *fs,
                const struct metrics *ms,
                struct live *l,
                const struct ending *e,
                struct findings_end *end)
{
    const struct job *j = l->job;
    struct finding_facts *f = &end->facts;
    char nan[METRIC_NAME_MAX + 64];
    struct ending *kept = xmalloc(sizeof(*kept));
    *kept = *e;
    f->stopped =
        j->stop_cause == STOP_USER || (j->stop_cause == STOP_NONE && f->stopped && !e->by_head);
    f->preempted = j->stop_cause == STOP_PREEMPTED;
    f->timed_out = j->stop_cause == STOP_TIMEOUT;
    f->head_lost = e->by_head;
    f->metrics_nan = is_nan(ms, j, nan, sizeof(nan));
    f->nan_text = f->metrics_nan ? nan : NULL;
    if (j->stop_cause != STOP_NONE)
        f->stopped_reason = j->reason.text;
    end->given = j->stop_cause == STOP_FINDING ? str_or(j->finding, "platform") : NULL;
    f->hung = j->flags & JOB_FLAG_HUNG;
    if (f->hung && str_eq(end->given, "timeout_or_hang") && findings_shows(l, FINDINGS_HANG))
        end->whole = l->extra.finding; /* who hung it was found while it ran */
    end->no_logs = f->stopped || f->preempted;
    l->ending = true;
    findings_ask(fs, l, end, on_finding, kept);
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
                       .class = class_of(x),
                       .head_lost = head_lost,
                       .by_head = head_lost && was_swept(j, x)};
    (void)snprintf(e.cause, sizeof(e.cause), "%s", x->cause); /* of the same sizes */
    (void)snprintf(e.signal, sizeof(e.signal), "%s", x->signal);
    (void)snprintf(e.text, sizeof(e.text), "%s%.440s",
                   e.by_head ? "Ray's head went away, and what it left was ended: " : "",
                   x->sentence); /* cut: fine */
    if (e.by_head)
        e.class = "node_lost";
    if (e.code == 0 && !strcmp(e.cause, "exit") && j->stop_cause != STOP_FINDING) {
        tell(l, &e, NULL);
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
    ask(fs, ms, l, &e, &end);
}

/* ---- without ---- */

/* How it was lost; all texts fit. */
static void tell_lost(const struct live *l, bool never, bool killed, struct ending *e)
{
    const struct proof *p = &l->job->proof;
    enum witness_ray ray = l->sight.ray;
    const char *space = *p->node ? " " : "", *on = *p->node ? " on " : "";
    size_t size = sizeof(e->text);
    if (ray == WITNESS_RAY_BLIND || (never && ray == WITNESS_RAY_GONE))
        (void)snprintf(e->text, size,
                       "it was told to stop and is heard of no more: Ray is away and its node%s%s "
                       "silent",
                       space, p->node);
    else if (never)
        (void)snprintf(e->text, size,
                       "Ray says that it is over and no shepherd ever wrote to its directory%s%s",
                       space, p->node);
    else if (killed)
        (void)snprintf(e->text, size,
                       "Ray saw its shepherd%s%s end without a word: it was killed, and the node "
                       "lives",
                       on, p->node);
    else if (e->head_lost)
        (void)snprintf(e->text, size, "Ray's head went away, and its shepherd%s%s fell silent", on,
                       p->node);
    else
        (void)snprintf(e->text, size, "its node%s%s fell silent and Ray says that it is over",
                       space, p->node);
}

void ending_lost(struct findings *fs, const struct metrics *ms, struct live *l, bool head_lost)
{
    const struct job *j = l->job;
    bool never = l->sight.files == WITNESS_FILES_NONE;
    bool killed = !never && !head_lost && l->sight.saw_exit;
    struct ending e = {.k = j->n_attempts,
                       .cause = "lost",
                       .code = -1,
                       .class = never || killed ? "platform" : "node_lost",
                       .head_lost = head_lost,
                       .by_head = head_lost};
    tell_lost(l, never, killed, &e);
    const char *node = *j->proof.node ? j->proof.node : str_or(j->driver_node, "its node");
    struct findings_end end = {.facts = {.not_started = never,
                                         .shepherd_killed = killed,
                                         .lost_node = never || head_lost || killed ? NULL : node}};
    ask(fs, ms, l, &e, &end);
}
