/* SPDX-License-Identifier: Apache-2.0 */
/* finding_judge.c - the deciding half of finding.h: events and facts to one finding.
 *
 * Candidates are the causes that nothing went on after, what a traceback without an exception
 * was doing, and the facts. Those that another candidate outranks leave. Of the rest the weight
 * decides by steps of 20 (a root beats a symptom, whichever was printed first: an OOM killer is
 * often told late), and within a step the first line wins. Wrappers only say that something
 * failed. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/text.h"
#include "core/figure/figure.h"
#include "core/finding/finding_candidate.h"
#include "core/finding/finding_start.h"

enum {
    GOES_ON_STEPS = 2, /* so many steps after a line excuse it */
    LAST_SIGNAL = 31,
    STALL_TAIL = 2000, /* bytes that may follow the last line of a wait */
    EXIT_NOT_RUN = 126,
    EXIT_NOT_FOUND = 127, /* of shells, and of what starts programs as they do */
};

#define BIT(class) ((uint64_t)1 << (class))
static const uint64_t ALL = ~(uint64_t)0;
#define X(e, word, flags, meaning) | ((flags)&FINDING_IS_DEATH ? BIT(e) : 0)
static const uint64_t DIED = 0 FINDING_TABLE(X);
#undef X

/* Shells tell of a command that a signal ended by 128 and its number. */
static int signal_of(const struct finding_facts *f)
{
    bool by_shell = !f->signal && f->exit_code > 128 && f->exit_code <= 128 + LAST_SIGNAL;
    return !f->exit_known ? 0 : by_shell ? f->exit_code - 128 : f->signal;
}

static bool is_ended(const struct finding_facts *f)
{
    int sig = signal_of(f);
    return sig == 15 || sig == 2 || sig == 1;
}

static bool is_killed(const struct finding_facts *f)
{
    return signal_of(f) && !is_ended(f);
}

static bool is_bad_xid(const struct finding_facts *f)
{
    return f->xid > 0 && !figure_xid_is_of_program(f->xid);
}

static bool is_mistake(const struct finding_facts *f, enum finding_class class)
{
    const struct finding_start *m = f->not_started ? finding_start_of(f->start_says) : NULL;
    return m && m->class == class;
}

static bool is_no_command(const struct finding_facts *f)
{
    return is_mistake(f, FINDING_PERMISSION_OR_PATH);
}

static bool is_bad_command(const struct finding_facts *f)
{
    return is_mistake(f, FINDING_CONFIG_ERROR);
}

static bool has_exited(const struct finding_facts *f, int code)
{
    return f->exit_known && !f->signal && f->exit_code == code;
}

#define HOLDS(name, member)                                                                        \
    static bool name(const struct finding_facts *f)                                                \
    {                                                                                              \
        return f->member;                                                                          \
    }
HOLDS(is_stopped, stopped)
HOLDS(is_preempted, preempted)
HOLDS(is_timed_out, timed_out)
HOLDS(is_hung, hung)
HOLDS(is_not_started, not_started && !finding_start_of(f->start_says))
HOLDS(is_not_found, exit_known &&has_exited(f, EXIT_NOT_FOUND))
HOLDS(is_not_run, exit_known &&has_exited(f, EXIT_NOT_RUN))
HOLDS(is_shepherd_killed, shepherd_killed)
HOLDS(is_head_lost, head_lost)
HOLDS(is_mismatch, import_mismatch)
HOLDS(is_disk_full, disk_full)
HOLDS(is_shm_full, shm_full)
HOLDS(is_nan, metrics_nan)
HOLDS(is_oom_killed, oom_kills > 0 && !f->oom_unsure)
HOLDS(is_oom_suspected, oom_kills > 0 && f->oom_unsure)
HOLDS(is_node_lost, lost_node != NULL)

static const struct fact FACTS[] = {
    {"fact-stopped", FINDING_PREEMPTED_OR_STOPPED, 99, ALL, is_stopped, "the job was stopped"},
    {"fact-preempted", FINDING_PREEMPTED_OR_STOPPED, 99, ALL, is_preempted,
     "the job's GPUs were taken back"},
    {"fact-import", FINDING_IMPORT_ERROR, 98, ALL, is_mismatch,
     "the proof shows code that is not the job's"},
    {"fact-oom-kill", FINDING_HOST_OOM, 85,
     DIED | BIT(FINDING_USER_CODE_ERROR) | BIT(FINDING_NODE_LOST), is_oom_killed,
     "the kernel's OOM killer ended a process of the job"},
    {"fact-xid", FINDING_GPU_HARDWARE, 85, DIED | BIT(FINDING_CUDA_ERROR), is_bad_xid,
     "the GPU driver reported an Xid that means hardware"},
    {"fact-disk-full", FINDING_DISK_FULL, 82,
     DIED | BIT(FINDING_CHECKPOINT_ERROR) | BIT(FINDING_PERMISSION_OR_PATH), is_disk_full,
     "the file system that the job writes to was full"},
    {"fact-shm-full", FINDING_SHM_EXHAUSTED, 82, DIED, is_shm_full, "/dev/shm was full"},
    {"fact-node-lost", FINDING_NODE_LOST, 80, DIED, is_node_lost, "a node of the job went away"},
    {"fact-head-lost", FINDING_NODE_LOST, 80, DIED, is_head_lost, "Ray's head went away"},
    {"fact-timed-out", FINDING_TIMEOUT_OR_HANG, 70, 0, is_timed_out,
     "the job's own timeout was over"},
    {"fact-hung", FINDING_TIMEOUT_OR_HANG, 62, 0, is_hung, "the job made no progress"},
    {"fact-nan", FINDING_NAN_LOSS, 60, 0, is_nan, "the metrics became NaN or infinite"},
    {"fact-no-command", FINDING_PERMISSION_OR_PATH, 90, DIED, is_no_command,
     "the command could not be started"},
    {"fact-bad-command", FINDING_CONFIG_ERROR, 90, DIED, is_bad_command,
     "the command could not be started"},
    {"fact-not-started", FINDING_PLATFORM, 50, 0, is_not_started,
     "the attempt could not be started"},
    {"fact-shepherd-killed", FINDING_PLATFORM, 50, 0, is_shepherd_killed,
     "the job's shepherd was killed, and its command with it"},
    {"fact-signalled", FINDING_PREEMPTED_OR_STOPPED, 35, 0, is_ended,
     "the driver was ended by a signal that asks to stop"},
    {"fact-oom-suspected", FINDING_HOST_OOM, 32, 0, is_oom_suspected,
     "the kernel's OOM killer ended a process in the job's cgroup, which other jobs share, so it is not certain that it was this job's"},
    {"fact-exit-127", FINDING_PERMISSION_OR_PATH, 22, 0, is_not_found,
     "it ended with exit code 127, by which a shell says that it found no such program"},
    {"fact-exit-126", FINDING_PERMISSION_OR_PATH, 22, 0, is_not_run,
     "it ended with exit code 126, by which a shell says that it may not execute the program"},
    {"fact-killed", FINDING_ACTOR_DIED, 30, 0, is_killed, "the driver was killed by a signal"},
};

static void finding_judge_add(struct candidates *c, struct candidate add)
{
    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 32;
        c->v = xrealloc(c->v, c->cap, sizeof(*c->v));
    }
    c->v[c->n++] = add;
}

static bool is_excused(const struct finder *f, const struct finding_event *e)
{
    if (!e->rule || e->rule->lasting)
        return false;
    return f->progress >= e->progress + GOES_ON_STEPS || (f->success && e->at < f->success_at);
}

/* Raylets tell every driver of the cluster what befell on their node, whoever's it was. */
static bool is_elsewhere(const struct finding_facts *facts, const struct finding_event *e)
{
    return facts->nodes && e->node && str_eq(e->actor, "raylet") &&
           !pairs_find(facts->nodes, e->node);
}

static const struct finding_event *finding_judge_last_of(const struct rule_events *of)
{
    return of->n > EVENTS_FIRST ? &of->last : &of->first[of->n ? of->n - 1 : 0];
}

/* It came again, and hardly anything after it. */
static bool is_stalled(const struct finder *f, const struct rule_events *of)
{
    return of->n > 1 && f->total - finding_judge_last_of(of)->at <= STALL_TAIL;
}

/* No line of the rule came in the last steps: what it told went away again. One step that went
 * wrong is made good by the next one. */
static bool is_healed(const struct finder *f, const struct rule_events *of)
{
    uint64_t steps = of->n == 1 && of->first[0].is_step ? 1 : GOES_ON_STEPS;
    return of->n && f->progress >= finding_judge_last_of(of)->progress + steps;
}

static void finding_judge_add_event(struct candidates *c, const struct finding_event *e)
{
    finding_judge_add(c,
                      (struct candidate){.event = e,
                                         .class = e->class,
                                         .weight = e->weight,
                                         .at = e->at,
                                         .beats = e->weight < HINT ? 0 : e->rule->beats_classes});
}

static size_t kept(const struct rule_events *of)
{
    return of->n < EVENTS_FIRST ? (size_t)of->n : EVENTS_FIRST;
}

static bool finding_judge_counts(const struct finder *f,
                                 const struct finding_facts *facts,
                                 const struct finding_event *e)
{
    return !is_excused(f, e) && !is_elsewhere(facts, e);
}

static bool rule_counts(const struct finder *f,
                        const struct finding_rule *r,
                        const struct rule_events *of)
{
    return r->role == ROLE_CAUSE && !(r->heals && is_healed(f, of)) &&
           (!r->stalls || is_stalled(f, of));
}

static void collect_rule(const struct finder *f,
                         const struct finding_facts *facts,
                         const struct rule_events *of,
                         struct candidates *c)
{
    for (size_t k = 0; k < kept(of); k++)
        if (finding_judge_counts(f, facts, &of->first[k]))
            finding_judge_add_event(c, &of->first[k]);
    if (of->n > EVENTS_FIRST && finding_judge_counts(f, facts, &of->last))
        finding_judge_add_event(c, &of->last);
}

static void finding_judge_collect(const struct finder *f,
                                  const struct finding_facts *facts,
                                  struct candidates *c)
{
    for (size_t i = 0; i < f->rules->n; i++)
        if (rule_counts(f, &f->rules->v[i], &f->events[i]))
            collect_rule(f, facts, &f->events[i], c);
    for (size_t i = 0; i < f->n_streams; i++)
        if (f->streams[i].open && f->streams[i].has_frame && !is_excused(f, &f->streams[i].frame))
            finding_judge_add_event(c, &f->streams[i].frame);
    for (size_t i = 0; i < array_len(FACTS); i++)
        if (FACTS[i].holds(facts))
            finding_judge_add(c,
                              (struct candidate){.fact = &FACTS[i],
                                                 .class = FACTS[i].class,
                                                 .weight = FACTS[i].weight,
                                                 .at = UINT64_MAX,
                                                 .beats = FACTS[i].beats & ~BIT(FACTS[i].class)});
}

static bool outranks(const struct finder *f, const struct candidate *a, const struct candidate *b)
{
    if (a->class == b->class && !(a->event && b->event && a->event->rule != b->event->rule))
        return false;
    if (a->beats >> b->class & 1 && a->class != b->class)
        return true;
    if (!a->event || !b->event || a->weight < HINT)
        return false;
    size_t k = (size_t)(b->event->rule - f->rules->v);
    return a->event->rule->beats_rules[k / 64] >> (k % 64) & 1;
}

static void drop_outranked(const struct finder *f, struct candidates *c)
{
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->n && !c->v[k].out; k++)
            if (i != k && !c->v[i].out && outranks(f, &c->v[i], &c->v[k]) &&
                !(outranks(f, &c->v[k], &c->v[i]) && c->v[k].at <= c->v[i].at))
                c->v[k].out = true;
}

/* What needs another sign comes after what is vague. */
static int finding_judge_step_of(int weight)
{
    return weight < HINT ? -1 : weight / STEP;
}

/* The heavier by steps, then the earlier. */
static bool comes_before(const struct candidate *a, const struct candidate *b)
{
    int step_a = finding_judge_step_of(a->weight), step_b = finding_judge_step_of(b->weight);
    return step_a != step_b ? step_a > step_b
           : a->at != b->at ? a->at < b->at
                            : a->weight > b->weight;
}

const struct candidate *candidates_best(const struct candidates *c, const struct candidate *not_as)
{
    const struct candidate *best = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const struct candidate *it = &c->v[i];
        if (it->out || (not_as && it->class == not_as->class))
            continue;
        if (!best || comes_before(it, best))
            best = it;
    }
    return best;
}

/* It opens a traceback, or stands in one. */
static bool only_opens(const struct finding_event *e)
{
    static const char tail[] = "raceback (most recent call last):";
    size_t n = e->quote.text ? strlen(e->quote.text) : 0, k = sizeof(tail) - 1;
    return e->rule->head || e->rule->role == ROLE_FRAME ||
           (n >= k && str_eq(e->quote.text + n - k, tail));
}

/* What follows a line that only opens a traceback, or stands in one: the next line of its class. */
static const struct candidate *told_after(const struct candidates *c, const struct candidate *head)
{
    const struct candidate *next = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const struct candidate *it = &c->v[i];
        const struct finding_rule *r = it->event ? it->event->rule : NULL;
        if (r && r->role == ROLE_CAUSE && !only_opens(it->event) && it->class == head->class &&
            it->weight >= HINT && it->at > head->at && (!next || it->at < next->at))
            next = it;
    }
    return next ? next : head;
}

static struct finding_quote copy_quote(const struct finding_quote *q)
{
    struct finding_quote copy = *q;
    copy.source = xstrdup(q->source);
    copy.text = xstrdup(q->text);
    return copy;
}

static bool has_quote(const struct finding_quote *q, size_t n, const struct finding_quote *other)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(q[i].text, other->text))
            return true;
    return false;
}

static void add_quote(struct finding_quote *q,
                      size_t *n,
                      size_t max,
                      const struct finding_quote *add)
{
    if (*n < max && !has_quote(q, *n, add))
        q[(*n)++] = copy_quote(add);
}

static void add_fact_quote(struct finding *ret, const char *text)
{
    struct finding_quote q = {.text = xstrdup(text)};
    add_quote(ret->evidence, &ret->n_evidence, FINDING_EVIDENCE_MAX, &q);
    free(q.text);
}

/* A fact in words, with what is known of it. */
static char *finding_judge_text_of(const struct fact *fact, const struct finding_facts *facts)
{
    static const struct message_listener english = {.language = MESSAGE_ENGLISH};
    _cleanup_(freep) char *says = facts->not_started && facts->start_says
                                      ? message_kept_say(facts->start_says, &english)
                                      : NULL;
    char number[16];
    const char *more = NULL;
    if (fact->holds == is_no_command || fact->holds == is_bad_command ||
        fact->holds == is_not_started)
        more = says;
    else if (fact->class == FINDING_PREEMPTED_OR_STOPPED)
        more = facts->stopped_reason;
    else if (fact->class == FINDING_HOST_OOM)
        more = facts->oom_line;
    else if (fact->class == FINDING_NAN_LOSS)
        more = facts->nan_text;
    else if (fact->class == FINDING_GPU_HARDWARE && facts->xid_line)
        more = facts->xid_line;
    else if (fact->class == FINDING_GPU_HARDWARE || fact->holds == is_killed) {
        text_printf(number, "%d", fact->holds == is_killed ? signal_of(facts) : facts->xid);
        more = number;
    }
    return more ? xasprintf("%s: %s", fact->text, more) : xstrdup(fact->text);
}

/* More lines of the same class, and facts of it. */
static void add_support(const struct candidates *c,
                        const struct finding_facts *facts,
                        struct finding *ret)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct candidate *it = &c->v[i];
        if (it->class != ret->class)
            continue;
        if (it->event)
            add_quote(ret->evidence, &ret->n_evidence, FINDING_EVIDENCE_MAX, &it->event->quote);
        else {
            _cleanup_(freep) char *text = finding_judge_text_of(it->fact, facts);
            add_fact_quote(ret, text);
        }
    }
}

/* The first line of every rule that only follows, in the order of the log. */
static void add_after(const struct finder *f, uint64_t from, struct finding *ret)
{
    uint64_t seen = from;
    while (ret->n_after < FINDING_AFTER_MAX) {
        const struct finding_event *next = NULL;
        for (size_t i = 0; i < f->rules->n; i++) {
            const struct rule_events *of = &f->events[i];
            bool same =
                of->n && of->first[0].rule->role == ROLE_CAUSE && of->first[0].class == ret->class;
            if (of->n && !same && of->first[0].at > seen && (!next || of->first[0].at < next->at))
                next = &of->first[0];
        }
        if (!next)
            return;
        seen = next->at;
        add_quote(ret->after, &ret->n_after, FINDING_AFTER_MAX, &next->quote);
    }
}

static double confidence_of(const struct candidates *c, const struct candidate *best)
{
    static const double by_step[] = {0.35, 0.5, 0.7, 0.85, 0.95};
    double v = by_step[best->weight / STEP];
    const struct candidate *other = candidates_best(c, best);
    if (other && other->weight / STEP == best->weight / STEP)
        v -= 0.15;
    for (size_t i = 0; i < c->n; i++)
        if (best->event && c->v[i].fact && c->v[i].class == best->class)
            v = v + 0.05 < 0.99 ? v + 0.05 : 0.99; /* log and facts agree */
    return v;
}

static void finding_judge_fill_event(const struct finding_event *e, struct finding *ret)
{
    ret->rule = xstrdup(e->rule->id);
    const struct finding_rule *adviser = e->frame && e->frame->advice ? e->frame : e->rule;
    ret->advice = xstrdup(adviser->advice);
    ret->advice_code = adviser->advice ? xstrdup(adviser->id) : NULL;
    ret->rank = xstrdup(e->rank);
    ret->node = xstrdup(e->node);
    ret->actor = xstrdup(e->actor);
    ret->pid = xstrdup(e->pid);
    ret->time = xstrdup(e->time);
    add_quote(ret->evidence, &ret->n_evidence, FINDING_EVIDENCE_MAX, &e->quote);
    for (size_t i = 0; i < e->rule->n_patch && e->class == e->rule->class; i++)
        finding_change_copy(&ret->patch[ret->n_patch++], &e->rule->patch[i]);
}

static void fill_fact(const struct fact *fact,
                      const struct finding_facts *facts,
                      struct finding *ret)
{
    const struct finding_start *mistake =
        facts->not_started ? finding_start_of(facts->start_says) : NULL;
    ret->rule = xstrdup(fact->id);
    finding_advise(ret, mistake ? mistake->advice : fact->id);
    ret->node = xstrdup(fact->class == FINDING_NODE_LOST ? facts->lost_node : facts->odd_node);
    ret->rank = xstrdup(facts->odd_rank);
    _cleanup_(freep) char *text = finding_judge_text_of(fact, facts);
    add_fact_quote(ret, text);
}

static void finding_judge_fill(const struct finder *f,
                               const struct candidates *c,
                               const struct candidate *best,
                               const struct finding_facts *facts,
                               struct finding *ret)
{
    ret->class = best->class;
    ret->confidence = confidence_of(c, best);
    finding_second_fill(c, best, ret);
    ret->is_vague = best->weight < STEP || (!best->event && best->fact->holds == is_oom_suspected);
    if (best->event && only_opens(best->event))
        best = told_after(c, best);
    ret->fatal = !best->event || !is_excused(f, best->event);
    if (best->event)
        finding_judge_fill_event(best->event, ret);
    else if (best->fact)
        fill_fact(best->fact, facts, ret);
    if (best->event && !ret->node && facts->odd_node)
        ret->node = xstrdup(facts->odd_node);
    add_support(c, facts, ret);
    add_after(f, best->event ? best->event->at : 0, ret);
}

/* It says that something failed. The level of a line alone does where nothing else went on. */
static bool passes_on(const struct finder *f, const struct finding_event *e)
{
    bool well = f->success || f->progress >= GOES_ON_STEPS;
    return !is_excused(f, e) && !(e->rule->severe && well);
}

/* The first line that only passes an error on; NULL: there is none. */
static const struct finding_event *first_wrapper(const struct finder *f)
{
    const struct finding_event *first = NULL;
    for (size_t i = 0; i < f->rules->n; i++) {
        const struct rule_events *of = &f->events[i];
        for (size_t k = 0; k < kept(of); k++)
            if (f->rules->v[i].role == ROLE_WRAPPER && passes_on(f, &of->first[k]) &&
                (!first || of->first[k].at < first->at))
                first = &of->first[k];
    }
    return first;
}

static bool has_failed(const struct finder *f, const struct finding_facts *facts)
{
    return (facts->exit_known && (facts->exit_code || facts->signal)) || first_wrapper(f) ||
           (f->failed && !f->success && f->progress < GOES_ON_STEPS);
}

/* Nothing says why. */
static void fill_unknown(const struct finder *f, bool failed, struct finding *ret)
{
    const struct finding_event *w = first_wrapper(f);
    ret->class = failed ? FINDING_UNKNOWN : FINDING_NONE;
    ret->confidence = failed ? 0.3 : 0.9;
    if (!failed)
        return;
    finding_advise(ret, "unknown");
    if (w)
        add_quote(ret->evidence, &ret->n_evidence, FINDING_EVIDENCE_MAX, &w->quote);
    add_after(f, w ? w->at : 0, ret);
}

static bool ended_well(const struct finding_facts *f)
{
    bool other = f->stopped || f->preempted || f->timed_out || f->hung || f->not_started ||
                 f->head_lost || f->import_mismatch || f->lost_node;
    return f->ended_well || (f->exit_known && !f->exit_code && !f->signal && !other);
}

void finder_end(struct finder *f, const struct finding_facts *facts, struct finding *ret)
{
    static const struct finding_facts nothing;
    struct candidates c = {0};
    *ret = (struct finding){0};
    facts = facts ? facts : &nothing;
    finder_seek(f, f->offset, f->line); /* reads what is left of the last line */
    ret->bytes = f->total;
    ret->lines = f->lines;
    if (ended_well(facts)) {
        ret->class = FINDING_NONE;
        ret->confidence = 0.99;
        return;
    }
    finding_judge_collect(f, facts, &c);
    drop_outranked(f, &c);
    const struct candidate *best = candidates_best(&c, NULL);
    bool failed = has_failed(f, facts);
    int enough = f->success ? STEP : HINT; /* what is vague is nothing where all went well */
    if (best && (best->weight >= enough || failed))
        finding_judge_fill(f, &c, best, facts, ret);
    else
        fill_unknown(f, failed, ret);
    free(c.v);
}
