/* SPDX-License-Identifier: Apache-2.0 */
/* ending.c - see ending.h. What the witnesses say of the class stands where no finding came in
 * time, or where it knows no better. */
#define _GNU_SOURCE
#include "argusd/watch/ending.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/evidence/diagnosis.h"
#include "argusd/watch/sight.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/finding/finding_start.h"

struct ending {
    int k; /* 0: of its trial */
    char cause[24], signal[24];
    const char *message; /* code of the text; NULL: it is a sentence */
    char text[JOB_REASON_TEXT_MAX];
    int code;                    /* -1: none */
    enum finding_class class;    /* by the witnesses */
    bool head_lost;              /* Ray's head was, since it began */
    bool by_head;                /* and that was its end */
    bool is_doubtful;            /* exit code 0, after an error */
    usec_t fault_at, noticed_at; /* wall; 0 = not known */
};

static enum finding_class ending_class_of(const struct fsroot_exit *x)
{
    const struct finding_start *mistake = finding_start_of(x->says);
    if (!strcmp(x->cause, "start_failed"))
        return mistake ? mistake->class : FINDING_PLATFORM;
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
                          .is_doubtful = e->is_doubtful,
                          .node = knows_node ? found->node : NULL,
                          .message = e->message,
                          .text = e->text,
                          .fault_at = e->fault_at,
                          .noticed_at = e->noticed_at};
    struct job_event ev = {.kind = JOB_EV_ENDED, .end = &end};
    (void)jobs_apply(l, &ev, "argusd", clock_wall()); /* too late is harmless */
    if (!l->over && job_is_holding(l->job))
        jobs_note(l, "holding", "hold_on_failure", job_state_reason(l->job)->text, clock_wall());
}

static void ending_tell_trial(struct live *l, const struct ending *e)
{
    struct job_event ev = {
        .kind = JOB_EV_REJECTED, .finding = e->class, .message = e->message, .text = e->text};
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
        const struct reason *why = job_state_reason(j);
        message_to_string(why->code, why->text, false, reason, sizeof(reason));
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
                     const char *message,
                     const char *text,
                     bool left)
{
    struct ending e = {.code = -1, .class = found->class, .message = message};
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

/* A moment of the steady clock by the wall's; 0: there was none. */
static usec_t ending_wall(usec_t mono)
{
    usec_t ago = clock_mono() - mono, now = clock_wall();
    return mono && ago < now ? now - ago : 0;
}

/* Nobody asked for it: Ray's old raylets, or whoever cleared them away for the new head, ended it.
 */
static bool was_swept(const struct job *j, const struct fsroot_exit *x)
{
    return j->stop_cause == STOP_NONE &&
           (str_starts(x->cause, "stopped") || !strcmp(x->signal, "SIGTERM"));
}

enum { PARTS_MAX = 6, PART_TEXT_MAX = 600 };
struct ending_parts {
    size_t n;
    const char *code[PARTS_MAX];
    char text[PARTS_MAX][PART_TEXT_MAX];
};

static void ending_add(struct ending_parts *p, const char *code, const struct message_arg *args)
{
    message_write(p->text[p->n], PART_TEXT_MAX, args);
    p->code[p->n++] = code;
}

static void ending_add_command(struct ending_parts *p, const struct fsroot_exit *x)
{
    if (*x->signal)
        ending_add(p, "attempt_killed", MESSAGE_ARGS(MESSAGE_STR("signal", x->signal)));
    else if (x->has_code)
        ending_add(p, "attempt_exited", MESSAGE_ARGS(MESSAGE_NUM("exit_code", x->code)));
}

static void ending_add_rest(struct ending_parts *p, const struct fsroot_exit *x)
{
    if (*x->last_error)
        ending_add(p, "attempt_last_error", MESSAGE_ARGS(MESSAGE_STR("line", x->last_error)));
    if (x->oom_kills > 0)
        ending_add(p, x->oom_unsure ? "attempt_oom_unsure" : "attempt_oom",
                   MESSAGE_ARGS(MESSAGE_NUM("kills", x->oom_kills)));
    if (x->strays > 0)
        ending_add(p, "attempt_strays", MESSAGE_ARGS(MESSAGE_NUM("processes", x->strays)));
    if (x->dropped_bytes)
        ending_add(p, "attempt_dropped", MESSAGE_ARGS(MESSAGE_NUM("bytes", x->dropped_bytes)));
}

/* What only its shepherd knows, why it could not start and what was imported in another's place. */
static void ending_add_says(struct ending_parts *p, const struct fsroot_exit *x)
{
    p->code[p->n] = message_kept_code(x->says);
    text_copy(p->text[p->n++], message_kept_text(x->says));
}

/* How it ended, from the members of its exit file; as its shepherd says where that is one of
 * before, which has a sentence only. */
static void ending_say(struct ending *e, const struct fsroot_exit *x)
{
    struct ending_parts p = {0};
    struct message m;
    bool not_begun = !strcmp(x->cause, "stopped_before_start");
    bool is_told = !strcmp(x->cause, "mismatch") || !strcmp(x->cause, "start_failed");
    if (is_told && !*x->says) {
        text_copy(e->text, x->sentence);
        return;
    }
    if (is_told)
        ending_add_says(&p, x);
    if (not_begun || !strcmp(x->cause, "stopped"))
        ending_add(&p, not_begun ? "attempt_not_begun" : "attempt_stopped",
                   MESSAGE_ARGS(MESSAGE_STR("reason", x->stop_reason)));
    if (!not_begun)
        ending_add_command(&p, x);
    ending_add_rest(&p, x);
    if (p.n == 1) {
        e->message = p.code[0];
        text_copy(e->text, p.text[0]);
        return;
    }
    e->message = "attempt_end";
    message_begin(&m);
    jout_open(&m.j, "parts", '[');
    for (size_t i = 0; i < p.n; i++)
        message_put(&m.j, NULL, p.code[i], p.text[i]);
    jout_close(&m.j, ']');
    message_end(&m, e->text, sizeof(e->text));
}

static void ending_say_head(struct ending *e)
{
    char how[sizeof(e->text)];
    text_copy(how, e->text);
    message_write(e->text, sizeof(e->text), MESSAGE_ARGS(MESSAGE_OF("how", e->message, how)));
    e->message = "attempt_head_lost";
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
                       .by_head = head_lost && was_swept(j, x),
                       .is_doubtful = *x->last_error != 0,
                       .fault_at = x->ended,
                       .noticed_at = ending_wall(sight_of(l)->files_since)};
    text_copy(e.cause, x->cause);
    text_copy(e.signal, x->signal);
    ending_say(&e, x);
    if (e.by_head) {
        ending_say_head(&e);
        e.class = FINDING_NODE_LOST;
    }
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
                                         .odd_node = x->oom_kills > 0 ? job_proof(j)->node : NULL,
                                         .stopped = str_starts(x->cause, "stopped"),
                                         .stopped_reason = *x->stop_reason ? x->stop_reason : NULL,
                                         .not_started = !strcmp(x->cause, "start_failed"),
                                         .start_says = *x->says ? x->says : NULL,
                                         .import_mismatch = !strcmp(x->cause, "mismatch")}};
    ending_ask(fs, ms, l, &e, &end);
}

/* ---- without ---- */

static void tell_lost(const struct live *l, bool never, bool killed, struct ending *e)
{
    enum witness_ray ray = sight_of(l)->ray;
    bool is_silent = ray == WITNESS_RAY_BLIND || (never && ray == WITNESS_RAY_GONE);
    e->message = is_silent      ? "attempt_stop_silent"
                 : never        ? "attempt_never_wrote"
                 : killed       ? "attempt_shepherd_killed"
                 : e->head_lost ? "attempt_head_silent"
                                : "attempt_node_silent";
    message_write(e->text, sizeof(e->text),
                  MESSAGE_ARGS(MESSAGE_STR("node", job_proof(l->job)->node)));
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
                       .by_head = head_lost,
                       .fault_at = ending_wall(sight_of(l)->beat_at),
                       .noticed_at = j->unknown_since};
    tell_lost(l, never, killed, &e);
    const char *seen = job_proof(j)->node;
    const char *node = *seen ? seen : str_or(gang_driver(&j->gang), "its node");
    struct findings_end end = {.facts = {.not_started = never,
                                         .shepherd_killed = killed,
                                         .lost_node = never || head_lost || killed ? NULL : node}};
    ending_ask(fs, ms, l, &e, &end);
}
