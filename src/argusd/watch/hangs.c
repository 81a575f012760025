/* SPDX-License-Identifier: Apache-2.0 */
/* hangs.c - see hangs.h. A log is with its worker while `reading`, and with nobody else. */
#include "argusd/watch/hangs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/evidence/stackask.h"
#include "argusd/figures/figures.h"
#include "argusd/ground/jobspec.h"
#include "argusd/ground/work.h"
#include "argusd/watch/ending.h"
#include "argusd/watch/sight.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/metric/gpu_idle.h"
#include "core/metric/hang.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/logs/logread.h"

enum {
    TICK_MS = 1000,
    ASKS_MAX = 8,  /* jobs that are asked at the same time */
    READS_MAX = 4, /* logs that are read at the same time */
    LOG_MAX = 256 << 10,
};
static const usec_t READ_EVERY = 3 * USEC_SEC;
static const usec_t BEAT_STALE = 20 * USEC_SEC;
static const usec_t IDLE_WINDOW = 30 * USEC_MIN; /* where the spec names none */
static const char RULE[] = FINDINGS_HANG, HANG[] = "hang_found";

struct watched {
    struct watched *next;
    struct hangs *hs;
    char *id;
    int k; /* of which attempt all this is; 0: of none yet */
    struct hang hang;
    struct hang_limits limits;
    bool is_known;        /* see struct hang_look */
    bool stops_if_silent; /* the spec says so of a job without steps that prints nothing */
    struct gpu_idle_rule idle_rule;
    struct gpu_idle idle;
    usec_t silence;   /* what counts in the place of its use while that is not known */
    usec_t hung_at;   /* mono; 0: not, or before our time */
    bool is_taken_up; /* before our time, and what was still to be done was done */
    struct stackask *ask;

    /* Its log, for the marks of its phases. */
    enum hang_phase phase;
    uint64_t log_at, log_seen; /* read up to here; bytes there were then */
    usec_t read_at;
    bool reading;
    struct {
        int k;
        enum hang_phase phase;
        uint64_t at;
        bool good;
    } work;
};

struct hangs {
    struct hangs_parts p;
    uv_timer_t timer;
    struct map *by_id;
    struct watched *first;
    int asks, reads;
    bool closing;
};

/* ---- who is watched ---- */

static bool is_watched(const struct live *l)
{
    const struct attempt *a = job_attempt(l->job);
    return a && a->phase == ATTEMPT_RUNNING && l->job->state == JOB_RUNNING &&
           !ending_is_awaited(l);
}

static void drop_ask(struct watched *w)
{
    if (!w->ask)
        return;
    stackask_cancel(w->ask);
    w->ask = NULL;
    w->hs->asks--;
}

/* What the spec asks for beyond what is done for every training. */
static void hangs_read_spec(struct watched *w, const struct live *l)
{
    const struct job *j = l->job;
    const struct spec *spec = jobspec_of(w->hs->p.settings, j);
    w->limits.silence =
        restart_on_has(&j->restart.on, FINDING_TIMEOUT_OR_HANG) ? w->limits.start[HANG_FIRST] : 0;
    if (!spec)
        return;
    w->is_known = workload_trains((enum workload)spec->workload);
    if (spec->workload == WORKLOAD_SERVE || spec->workload == WORKLOAD_NOTEBOOK)
        w->limits.factor = 0;
    usec_t window = spec->idle_window ? spec->idle_window : IDLE_WINDOW;
    w->idle_rule = (struct gpu_idle_rule){
        .least = j->demand.gpus_per_node > 0 ? spec->idle_min_gpu_util / 100 : 0,
        .window = window,
        .span = window < FIGURES_WINDOW_MAX ? window : FIGURES_WINDOW_MAX,
        .warn = spec->idle_warn ? spec->idle_warn : gpu_idle_warn(window),
        .stops = spec->idle_action != 0};
    if (spec->idle_window) {
        w->limits.silence = w->silence = spec->idle_window;
        w->stops_if_silent = w->idle_rule.stops;
    }
}

/* A new attempt, or the first one under our eyes. */
static void hangs_begin(struct watched *w, const struct live *l)
{
    const struct settings *s = w->hs->p.settings;
    drop_ask(w);
    w->k = job_attempt(l->job)->k;
    w->hang = (struct hang){0};
    w->limits = (struct hang_limits){
        .factor = s->hang_factor,
        .floor = s->hang_floor,
        .start = {s->hang_environment, s->hang_model_load, s->hang_first_step}};
    w->is_known = w->stops_if_silent = false;
    w->idle_rule = (struct gpu_idle_rule){0};
    w->idle = gpu_idle_begin(l->extra.idle_learnt);
    w->silence = 0;
    w->hung_at = 0;
    w->is_taken_up = false;
    w->phase = HANG_ENVIRONMENT;
    w->log_at = w->log_seen = 0;
    hangs_read_spec(w, l);
}

static struct watched *watched_of(struct hangs *hs, const struct live *l)
{
    struct watched *w = map_find(hs->by_id, l->job->id);
    if (!w) {
        w = xcalloc(1, sizeof(*w));
        *w = (struct watched){.next = hs->first, .hs = hs, .id = xstrdup(l->job->id)};
        hs->first = w;
        map_set(hs->by_id, w->id, w);
    }
    if (w->k != job_attempt(l->job)->k)
        hangs_begin(w, l);
    return w;
}

static void watched_free(struct watched *w)
{
    free(w->id);
    free(w);
}

static void hangs_forget(struct hangs *hs)
{
    for (struct watched **p = &hs->first; *p;) {
        struct watched *w = *p;
        const struct live *l = jobs_find_id(hs->p.jobs, w->id);
        bool stays = l && is_watched(l);
        if (!stays)
            drop_ask(w);
        if (w->reading || stays) {
            p = &w->next;
            continue;
        }
        *p = w->next;
        map_remove(hs->by_id, w->id);
        watched_free(w);
    }
}

/* ---- its log ---- */

static void read_log(void *arg)
{
    struct watched *w = arg;
    const char *root = w->hs->p.settings->shared_root;
    struct logread_part part;
    char *text = xmalloc(LOG_MAX);
    w->work.good = logread_at(root, w->id, w->work.k, ATTEMPT_LOG, w->work.at, text, LOG_MAX, &part,
                              NULL) == 0;
    if (w->work.good && part.end > part.offset + LOG_MAX) /* what is older says less */
        w->work.good = logread_at(root, w->id, w->work.k, ATTEMPT_LOG, part.end - LOG_MAX, text,
                                  LOG_MAX, &part, NULL) == 0;
    if (w->work.good && part.n) {
        w->work.phase = hang_phase_read(w->work.phase, text, part.n);
        w->work.at = part.offset + part.n;
    }
    free(text);
}

static void on_log(void *arg)
{
    struct watched *w = arg;
    w->reading = false;
    w->hs->reads--;
    if (!w->work.good || w->work.k != w->k)
        return;
    w->phase = w->work.phase;
    w->log_at = w->work.at;
}

static void follow_log(struct watched *w, const struct live *l, usec_t now)
{
    if (!w->is_known || w->reading || w->hs->reads >= READS_MAX || now - w->read_at < READ_EVERY ||
        sight_of(l)->log_bytes == w->log_seen)
        return;
    w->reading = true;
    w->hs->reads++;
    w->read_at = now;
    w->log_seen = sight_of(l)->log_bytes;
    w->work.k = w->k;
    w->work.phase = w->phase;
    w->work.at = w->log_at;
    work_start(w->hs->p.loop, read_log, on_log, w);
}

/* ---- what is told ---- */

static struct finding_quote hangs_quote(char *source_taken, const char *text)
{
    return (struct finding_quote){.source = source_taken, .text = xstrdup(text)};
}

static void note_hang(struct watched *w,
                      struct live *l,
                      const struct stacks_verdict *v,
                      int n,
                      const char *code,
                      const char *args)
{
    char text[JOB_REASON_TEXT_MAX]; /* a finding has one text for everybody */
    char where[2 * STACKS_NAME_MAX + STACKS_PLACE_MAX];
    struct finding f = {.class = FINDING_TIMEOUT_OR_HANG,
                        .rule = xstrdup(RULE),
                        .confidence = v && v->is_stopped ? 0.95
                                      : v && v->has_odd  ? 0.85
                                                         : 0.6,
                        .fatal = true};
    message_to_string(code, args, true, text, sizeof(text));
    f.evidence[f.n_evidence++] = hangs_quote(NULL, text);
    finding_advise(&f, v && v->is_stopped ? "hang-stopped"
                       : v && v->has_odd  ? "hang-odd"
                                          : "hang-all");
    if (v && v->has_odd) {
        f.rank = *v->rank ? xstrdup(v->rank) : NULL;
        f.node = *v->node ? xstrdup(v->node) : NULL;
        f.actor = *v->actor ? xstrdup(v->actor) : NULL;
        f.pid = xasprintf("%lld", (long long)v->pid);
        text_printf(where, "pid %lld: %s", (long long)v->pid,
                    v->is_stopped ? "stopped"
                    : *v->place   ? v->place
                                  : "native code");
        f.evidence[f.n_evidence++] = hangs_quote(xasprintf("stacks/%d/%s.json", n, v->node), where);
    }
    findings_note(w->hs->p.findings, l, &f);
    finding_release(&f);
}

/* Its spec wants an end to it: of the class in restart.on, or of a job that idles. */
static void act_on(struct watched *w, struct live *l, const char *message, const char *text)
{
    bool restarts = restart_is_due(&l->job->restart, FINDING_TIMEOUT_OR_HANG, false);
    bool idles = w->stops_if_silent && !w->hang.steps;
    struct job_event e = {.kind = JOB_EV_STOP,
                          .cause = STOP_FINDING,
                          .finding = FINDING_TIMEOUT_OR_HANG,
                          .message = message,
                          .text = text};
    if (restarts || idles)
        (void)jobs_apply(l, &e, "argusd", clock_wall()); /* it ends by itself: fine too */
}

static void tell_hang(struct watched *w,
                      struct live *l,
                      const struct hang_late *late,
                      const struct stacks_verdict *v,
                      int n)
{
    char span[160], text[JOB_REASON_TEXT_MAX];
    const char *code = hang_late_message(&w->hang, late, span, sizeof(span));
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_OF("late", code, span),
                               MESSAGE_OF("stacks", "stacks", v ? v->text : "")));
    usec_t now = clock_wall();
    struct job_event e = {.kind = JOB_EV_HUNG,
                          .message = HANG,
                          .text = text,
                          .since = late->span < now ? now - late->span : 0};
    l->extra.hung_step = l->extra.step;
    l->extra.hung_bytes = w->hang.bytes;
    if (!jobs_apply(l, &e, "argusd", now))
        return;
    w->hung_at = clock_mono();
    note_hang(w, l, v, n, HANG, text);
    act_on(w, l, HANG, text);
}

static void tell_end(struct watched *w, struct live *l, usec_t now)
{
    char span[CLOCK_TEXT_MAX] = "", text[JOB_REASON_TEXT_MAX], said[JOB_REASON_TEXT_MAX];
    if (w->hung_at)
        (void)span_to_string(now - w->hung_at, span);
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("span", span)));
    message_to_string("hang_over", text, true, said, sizeof(said));
    struct job_event e = {.kind = JOB_EV_WENT_ON, .code = "hang_over", .text = text};
    w->hung_at = 0;
    if (!jobs_apply(l, &e, "argusd", clock_wall()))
        return;
    struct finding f = {.class = FINDING_NONE, .rule = xstrdup(RULE), .confidence = 1};
    f.evidence[f.n_evidence++] = hangs_quote(NULL, said);
    findings_note(w->hs->p.findings, l, &f);
    finding_release(&f);
}

/* ---- the watch ---- */

/* What moves gets more time; so does what nobody could look at, unless it is silent as well. */
static bool is_sure(struct hang *h, const struct hang_late *late, const struct stacks_verdict *v)
{
    if (v && v->is_stopped)
        return true;
    if (v && v->processes && !v->moved && !v->unclear)
        return true;
    bool unseen = !v || !v->processes || !v->moved;
    if (unseen && h->grants && late->silent >= late->limit)
        return true;
    return !hang_grant(h);
}

static void hangs_log_late(const struct watched *w, const struct stacks_verdict *v)
{
    char said[JOB_REASON_TEXT_MAX];
    message_to_string("stacks", v ? v->text : "not seen", true, said, sizeof(said));
    log_info("hang", "late, and not called hung yet: %s job=%s", said, w->id);
}

static void on_stacks(const struct stacks_verdict *v, int n, void *arg)
{
    struct watched *w = arg;
    struct hang_late late;
    struct live *l = jobs_find_id(w->hs->p.jobs, w->id);
    w->ask = NULL;
    w->hs->asks--;
    if (!l || !is_watched(l) || job_attempt(l->job)->k != w->k || !w->hang.begun ||
        !hang_is_late(&w->hang, &w->limits, clock_mono(), &late))
        return;
    if (is_sure(&w->hang, &late, v))
        tell_hang(w, l, &late, v, n);
    else
        hangs_log_late(w, v);
}

static bool hangs_is_blind(const struct hangs *hs, const struct live *l, usec_t now)
{
    const struct sight *s = sight_of(l);
    return (l->job->flags & JOB_FLAG_UNKNOWN) || cluster_root_hangs(hs->p.cluster) ||
           s->files != WITNESS_FILES_BEAT || now - s->beat_at > BEAT_STALE;
}

/* What its metrics say. Without a total nobody knows whether there is to be another step. */
static void take_pace(const struct watched *w,
                      const struct metric_pace *pace,
                      struct hang_look *ret)
{
    if (pace->attempt != w->k)
        return;
    ret->steps = pace->records;
    ret->median_s = pace->median_s;
    ret->longest_s = pace->longest_s;
    ret->is_done = pace->total ? pace->step >= pace->total : pace->records && !w->is_known;
}

static void hangs_look(const struct watched *w,
                       const struct live *l,
                       usec_t now,
                       struct hang_look *ret)
{
    struct metric_pace pace;
    *ret = (struct hang_look){.now = now,
                              .is_known = w->is_known,
                              .median_s = (double)NAN,
                              .longest_s = (double)NAN,
                              .bytes = sight_of(l)->log_bytes,
                              .phase = w->phase};
    if (metrics_pace(w->hs->p.metrics, w->id, &pace))
        take_pace(w, &pace, ret);
    else
        ret->blind = true;
    ret->blind = ret->blind || hangs_is_blind(w->hs, l, now);
    if (ret->steps && ret->phase <= HANG_FIRST)
        ret->phase = HANG_TRAINING;
}

/* It is further than where it was called hung: that may have been before our time. */
static bool is_further(const struct live *l, const struct hang_look *seen)
{
    if (seen->blind)
        return false;
    return seen->steps && !seen->is_done ? l->extra.step > l->extra.hung_step
                                         : seen->bytes > l->extra.hung_bytes;
}

/* It was called hung before our time: what a kill left undone is done. */
static void take_up(struct watched *w, struct live *l)
{
    const struct reason why = *job_state_reason(l->job);
    w->is_taken_up = true;
    if (!findings_shows(l, RULE)) /* of a silence before it, perhaps */
        note_hang(w, l, NULL, 0, why.code, why.text);
    act_on(w, l, NULL, why.text);
}

/* ---- its GPUs ---- */

/* Warns, or stops: e is what happens, without its reason. It may be so already, from before a
 * restart, or end by itself: fine too. */
static void hangs_apply_idle(const struct watched *w,
                             struct live *l,
                             double use,
                             usec_t now,
                             struct job_event e)
{
    char since[CLOCK_TEXT_MAX], ends[CLOCK_TEXT_MAX] = "", text[JOB_REASON_TEXT_MAX];
    usec_t wall = clock_wall();
    if (w->idle_rule.stops && now < w->idle.warned + w->idle_rule.warn)
        (void)clock_to_string(wall + w->idle.warned + w->idle_rule.warn - now, ends);
    message_write(
        text, sizeof(text),
        MESSAGE_ARGS(MESSAGE_NUM("gpus", l->job->demand.nnodes * l->job->demand.gpus_per_node),
                     MESSAGE_NUM("use", round(1000 * use) / 10),
                     MESSAGE_STR("since", clock_to_string(wall - (now - w->idle.since), since)),
                     MESSAGE_NUM("least", w->idle_rule.least * 100), MESSAGE_STR("ends", ends),
                     MESSAGE_STR("id", l->job->id)));
    e.code = "gpu_idle";
    e.text = text;
    (void)jobs_apply(l, &e, "argusd", wall);
}

static void hangs_tell_busy(struct live *l)
{
    struct job_event e = {.kind = JOB_EV_BUSY};
    if (l->job->flags & JOB_FLAG_IDLE)
        (void)jobs_apply(l, &e, "argusd", clock_wall()); /* it is running: it applies */
}

/* Silence counts only where nobody measured its GPUs: whose work it is that was measured need not
 * be known for that. */
static void hangs_watch_silence(struct watched *w, const struct live *l)
{
    const struct figures_window all =
        figures_gang(w->hs->p.figures, &l->job->gang, FIGURE_GPU_UTIL, w->idle_rule.span);
    bool is_measured = jobs_in_state(l) >= w->idle_rule.span && figures_window_is_told(&all);
    w->limits.silence = is_measured ? 0 : w->silence;
}

/* The mean of its own part of all its GPUs; while not half of it is known, nothing is. */
static void hangs_watch_use(struct watched *w, struct live *l, usec_t now)
{
    if (w->idle_rule.least <= 0)
        return;
    struct figures_window use =
        figures_gang_use(w->hs->p.figures, l->job->id, &l->job->gang, w->idle_rule.span);
    bool is_known = jobs_in_state(l) >= w->idle_rule.span && figures_window_is_told(&use);
    const struct gpu_idle_look look = {
        .now = now,
        .use = is_known ? use.mean : NAN,
        .is_justified = l->extra.idle_until > clock_wall(),
        .phase = w->phase,
        .has_phases = w->is_known,
        .step = l->extra.step,
        .saved = checkpoints_newest(w->hs->p.checkpoints, l->job->id, l->job->user)};
    if (w->silence)
        hangs_watch_silence(w, l);
    enum gpu_idle_act act = gpu_idle_see(&w->idle, &w->idle_rule, &look);
    l->extra.idle_learnt = w->idle.learnt; /* stored with what is told, or with the next change */
    switch (act) {
    case GPU_IDLE_NOTHING:
        break;
    case GPU_IDLE_BUSY:
        hangs_tell_busy(l);
        break;
    case GPU_IDLE_WARN:
        hangs_apply_idle(w, l, use.mean, now, (struct job_event){.kind = JOB_EV_IDLE});
        break;
    case GPU_IDLE_STOP:
        hangs_apply_idle(w, l, use.mean, now,
                         (struct job_event){.kind = JOB_EV_STOP,
                                            .cause = STOP_FINDING,
                                            .finding = FINDING_TIMEOUT_OR_HANG});
        break;
    }
}

static void hangs_watch(struct hangs *hs, struct live *l, usec_t now)
{
    struct watched *w = watched_of(hs, l);
    struct hang_look seen;
    struct hang_late late;
    hangs_look(w, l, now, &seen);
    hangs_watch_use(w, l, now);
    follow_log(w, l, now);
    (void)hang_see(&w->hang, &seen);
    bool is_hung = l->job->flags & JOB_FLAG_HUNG;
    if (is_hung && is_further(l, &seen))
        tell_end(w, l, now);
    else if (is_hung && !w->hung_at && !w->is_taken_up && !seen.blind)
        take_up(w, l);
    bool is_late = !is_hung && hang_is_late(&w->hang, &w->limits, now, &late);
    if (!is_late) {
        drop_ask(w);
    } else if (!w->ask && hs->asks < ASKS_MAX) {
        char args[160], why[JOB_REASON_TEXT_MAX];
        const char *code = hang_late_message(&w->hang, &late, args, sizeof(args));
        message_to_string(code, args, true, why, sizeof(why));
        hs->asks++;
        w->ask =
            stackask_start(hs->p.loop, hs->p.settings->shared_root, w->id, w->k, why, on_stacks, w);
    }
}

static void hangs_on_tick(uv_timer_t *t)
{
    struct hangs *hs = container_of(t, struct hangs, timer);
    usec_t now = clock_mono();
    struct live *l;
    for (size_t pos = 0; (l = jobs_next_placed(hs->p.jobs, &pos));)
        if (is_watched(l))
            hangs_watch(hs, l, now);
    hangs_forget(hs);
}

/* ---- life ---- */

struct hangs *hangs_new(const struct hangs_parts *parts)
{
    unsigned char seed[16];
    struct hangs *hs = xcalloc(1, sizeof(*hs));
    random_bytes(seed, sizeof(seed));
    hs->p = *parts;
    hs->by_id = map_new(seed);
    (void)uv_timer_init(parts->loop, &hs->timer); /* never fails */
    return hs;
}

void hangs_start(struct hangs *hs)
{
    (void)uv_timer_start(&hs->timer, hangs_on_tick, TICK_MS, TICK_MS); /* cannot fail */
}

void hangs_close(struct hangs *hs)
{
    if (!hs || hs->closing)
        return;
    hs->closing = true;
    for (struct watched *w = hs->first; w; w = w->next)
        drop_ask(w);
    uv_close((uv_handle_t *)&hs->timer, NULL);
}

void hangs_free(struct hangs *hs)
{
    if (!hs)
        return;
    for (struct watched *w = hs->first, *next; w; w = next) {
        next = w->next;
        watched_free(w);
    }
    map_free(hs->by_id);
    free(hs);
}
