/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - see metrics.h. A reader is with its worker while its place goes on, and with nobody
 * else. One that has something to read waits in its user's line, and at its end again where a pass
 * had its fill: a job that writes more than can be read takes turns from its own user's jobs alone.
 */
#include "argusd/watch/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/jobspec.h"
#include "argusd/ground/userlines.h"
#include "argusd/ground/work.h"
#include "argusd/samples/sampler.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/logs/metricfile.h"
#include "fsroot/samples/samplefigures.h"

enum {
    TICK_MS = 1000,
    BUSY_MAX = 4,    /* passes at once: a slow root must not take all workers */
    OF_USER_MAX = 2, /* of these of one user's jobs */
    PAGE_MAX = 256 << 10,
    PICKS_MAX = 16 << 10, /* of an event */
};
static const uint64_t SOURCE_BYTES_MAX = 8ULL << 30; /* of an attempt's file, and of its log */
static const usec_t SAVE_EVERY = 15 * USEC_SEC; /* the store's copy; the page is always fresh */
static const usec_t PATIENCE = 5 * USEC_SEC;    /* for the last lines of a job */
static const usec_t PACE_FRESH = 30 * USEC_SEC; /* older than that nobody knows how it goes now */

struct reader {
    struct reader *next;
    struct metrics *ms;
    char *id;
    struct metric_reader *file;
    struct samplefigures *samples; /* that file asks */
    struct userlines_place place;  /* it waits, or goes on */
    bool wanted;                   /* again, once its worker is back */
    bool failing;                  /* and that was told */
    int cut_k;                     /* the attempt that says too much: that was told */
    bool has_told;                 /* since argusd started */
    int ending_k;                  /* the attempt whose last lines are asked for */
    usec_t ending_at;
    int settled_k; /* they were read */
    usec_t saved_at;

    /* What belongs to the pass under way. */
    int k, result;
    bool ended;
    struct metric_pass pass;
    struct err err;
    char *page, *verdict, *anatomy, *alerts;
    double gpus;
    int64_t step, total_steps;
    double useful_s;
    bool redoes;
    struct metric_pace pace;
    struct metric_trouble trouble;

    usec_t began, known_at; /* mono: of this pass, and of the last good one; 0: there was none */
    struct metric_pace known;
};

struct metrics {
    struct metrics_parts p;
    uv_timer_t timer;
    struct map *by_id;
    struct reader *first;
    struct userlines lines;
    bool closing;
};

static void metrics_reader_free(struct reader *r)
{
    metric_reader_free(r->file);
    samplefigures_free(r->samples);
    free(r->page);
    free(r->verdict);
    free(r->anatomy);
    free(r->alerts);
    free(r->id);
    free(r);
}

static bool metrics_of_samples(int64_t after, int64_t last, struct metric_record *ret, void *arg)
{
    const struct reader *r = arg;
    return samplefigures_next(r->samples, after, last, ret);
}

static struct reader *reader_of(struct metrics *ms, const struct job *job)
{
    const char *id = job->id;
    struct reader *r = map_find(ms->by_id, id);
    if (r)
        return r;
    _cleanup_(freep) char *path = sampler_path(ms->p.settings, job->user, id);
    r = xcalloc(1, sizeof(*r));
    *r = (struct reader){.next = ms->first,
                         .ms = ms,
                         .id = xstrdup(id),
                         .file = metric_reader_new(ms->p.settings->shared_root, id),
                         .samples = samplefigures_new(path)};
    metric_reader_set_more(r->file, metrics_of_samples, r);
    metric_reader_set_most(r->file, SOURCE_BYTES_MAX);
    ms->first = r;
    map_set(ms->by_id, id, r);
    return r;
}

/* ---- what is told ---- */

/* An event with the samples that show it, as far as they are known by now. */
static void metrics_note(struct live *l,
                         const char *kind,
                         const char *code,
                         const char *text,
                         const struct sample_picks *picks)
{
    struct buf samples = BUF_INIT(PICKS_MAX);
    struct jout j = jout_begin(&samples);
    sample_picks_to_json(picks, &j, NULL);
    bool has = picks && picks->n && !samples.failed;
    jobs_note_samples(l, kind, code, text, has ? buf_str(&samples) : NULL, clock_wall());
    buf_release(&samples);
}

/* told: the kinds that were told before. */
static void tell_trouble(struct live *l,
                         const struct metric_trouble *t,
                         const struct verdict *v,
                         unsigned told)
{
    char text[JOB_REASON_TEXT_MAX];
    if (t->kinds & ~told & METRIC_NOT_FINITE) {
        struct reason why;
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_STR("key", t->bad_key),
                                   MESSAGE_NUM("step", t->bad_step))); /* a long key is cut */
        reason_set(&why, finding_class_to_string(FINDING_NAN_LOSS), "metric_not_finite", text);
        metrics_note(l, "metric_not_finite", why.code, why.text,
                     verdict_picks(v, VERDICT_NOT_FINITE));
    }
    if (t->kinds & ~told & METRIC_COLLAPSED) {
        char best[32], fallen[32];
        text_printf(best, "%.4g", t->best);
        text_printf(fallen, "%.4g", t->fallen_to);
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_STR("best", best), MESSAGE_STR("now", fallen),
                                   MESSAGE_NUM("step", t->fallen_step)));
        metrics_note(l, "reward_collapse", "reward_collapse", text,
                     verdict_picks(v, VERDICT_REWARD_FELL));
    }
}

/* Kinds whose events tell_trouble() writes. */
static bool is_told_by_the_watch(enum verdict_kind k)
{
    return k == VERDICT_NOT_FINITE || k == VERDICT_REWARD_FELL;
}

/* Each kind once in a job's life. told: those that were told before. */
static void tell_verdict(struct live *l, const struct verdict *v, uint64_t told)
{
    char text[JOB_REASON_TEXT_MAX];
    struct verdict_item item;
    uint64_t news = verdict_seen(v) & ~told;
    for (int i = 0; i < VERDICT_KINDS; i++) {
        enum verdict_kind k = (enum verdict_kind)i;
        if (news & verdict_kind_bit(k) && !is_told_by_the_watch(k) && verdict_item(v, k, &item)) {
            const char *code = verdict_message(&item, text, sizeof(text));
            metrics_note(l, "verdict", code, text, verdict_picks(v, k));
        }
    }
}

/* Returns true where a kind is new. */
static bool take_verdict(struct reader *r, struct live *l)
{
    const struct training *t = metric_reader_training(r->file);
    uint64_t told = l->extra.verdict_seen;
    if (!r->verdict)
        return false;
    tell_verdict(l, t->verdict, told);
    record_set_verdict(&l->extra, r->verdict);
    l->extra.verdict_seen |= told; /* what was told stays told, whatever a restart reads */
    r->verdict = NULL;
    return (l->extra.verdict_seen & ~told) != 0;
}

/* Each alert of its spec once in a job's life. Returns true where one is new. */
static bool take_alerts(struct reader *r, struct live *l)
{
    const struct metric_alarms *as = metric_reader_training(r->file)->alarms;
    unsigned told = l->extra.alerts_seen, news = metric_alarms_seen(as) & ~told;
    char text[JOB_REASON_TEXT_MAX];
    if (!r->alerts)
        return false;
    for (size_t i = 0; i < metric_alarms_count(as); i++)
        if (news >> i & 1) {
            struct metric_alarm a;
            metric_alarms_get(as, i, &a);
            const char *code = metric_alarm_message(&a, text, sizeof(text));
            metrics_note(l, "metric_alert", code, text, a.picks);
        }
    record_set_alerts(&l->extra, r->alerts);
    l->extra.alerts_seen |= told;
    r->alerts = NULL;
    return news != 0;
}

static void take_anatomy(struct reader *r, struct live *l)
{
    if (!r->anatomy)
        return;
    free(l->extra.anatomy);
    l->extra.anatomy = r->anatomy;
    r->anatomy = NULL;
}

/* Nothing is new. Samples come later than the step that they show, and no step may follow. */
static bool metrics_is_same(const struct reader *r, const struct live *l)
{
    const struct record_extra *x = &l->extra;
    return !r->page ||
           (str_eq(r->page, x->metrics) && (!r->verdict || str_eq(r->verdict, x->verdict)) &&
            (!r->alerts || str_eq(r->alerts, x->metric_alerts)));
}

static void take_page(struct reader *r, struct live *l)
{
    bool same = metrics_is_same(r, l);
    if (r->page && (!same || !r->has_told))
        jobs_set_useful(l, r->useful_s);
    /* By each pass that knows all, not by a new step alone: a job may be seen to run, or to hang no
     * more, behind the step that says what it does. */
    if (r->page && !r->pass.more)
        jobs_set_redoes(l, r->pace.attempt, r->redoes);
    r->has_told |= r->page != NULL;
    if (same)
        return;
    usec_t now = clock_mono();
    bool first = !l->extra.metrics, news = r->trouble.kinds != l->extra.metrics_trouble;
    tell_trouble(l, &r->trouble, metric_reader_training(r->file)->verdict,
                 l->extra.metrics_trouble);
    news |= take_verdict(r, l);
    news |= take_alerts(r, l);
    take_anatomy(r, l);
    free(l->extra.metrics);
    l->extra.metrics = r->page;
    l->extra.metrics_trouble = r->trouble.kinds;
    l->extra.step = r->step;
    l->extra.total_steps = r->total_steps;
    l->extra.has_reward = isfinite(r->pace.reward);
    l->extra.reward = l->extra.has_reward ? r->pace.reward : 0;
    l->extra.paced_end = r->pace.ends_at;
    r->page = NULL;
    if (first || news || now - r->saved_at > SAVE_EVERY) {
        r->saved_at = now;
        jobs_keep(l);
    }
}

/* ---- a pass ---- */

static void start_wanted(struct metrics *ms);

static void metrics_want(struct reader *r, const struct live *l)
{
    r->wanted = r->place.goes_on;
    if (!r->place.line)
        userlines_join(&r->ms->lines, &r->place, l->job->user);
}

/* What was written, or NULL: nothing was, or it does not fit. Releases the buffer. */
static char *metrics_text(struct buf *out, bool is_written)
{
    char *text = is_written && !out->failed ? buf_take(out) : NULL;
    buf_release(out);
    return text;
}

static void metrics_pick(enum sample_pick_by by, int64_t step, struct sample_picks *ret, void *arg)
{
    const struct reader *r = arg;
    samplefigures_pick(r->samples, by, r->id, step, ret);
}

static void metrics_run(void *arg)
{
    struct reader *r = arg;
    r->result = metric_reader_pass(r->file, r->k, r->ended, clock_wall(), &r->pass, &r->err);
    const struct metric_watch *w = metric_reader_watch(r->file);
    r->step = metric_watch_step(w);
    r->total_steps = metric_watch_total(w);
    r->useful_s = metric_watch_useful(w);
    metric_watch_pace(w, &r->pace);
    r->redoes = metric_watch_redoes(w);
    metric_watch_trouble(w, &r->trouble);
    if (r->step < 0)
        return;
    struct training *t = metric_reader_training(r->file);
    training_pick(t, samplefigures_stamp(r->samples), metrics_pick, r);
    struct buf page = BUF_INIT(PAGE_MAX), verdict = BUF_INIT(PAGE_MAX),
               anatomy = BUF_INIT(PAGE_MAX);
    struct jout j = jout_begin(&page), of_verdict = jout_begin(&verdict);
    struct jout of_anatomy = jout_begin(&anatomy);
    metric_watch_to_json(w, &j, NULL);
    r->page = metrics_text(&page, true);
    r->verdict = metrics_text(&verdict, verdict_to_json(t->verdict, &of_verdict, NULL));
    if (metric_alarms_count(t->alarms)) {
        struct buf alerts = BUF_INIT(PAGE_MAX);
        struct jout of_alerts = jout_begin(&alerts);
        metric_alarms_to_json(t->alarms, &of_alerts, NULL);
        r->alerts = metrics_text(&alerts, true);
    }
    r->anatomy = metrics_text(&anatomy, anatomy_to_json(t->anatomy, r->gpus, &of_anatomy, NULL));
}

static void metrics_tell_failure(struct reader *r)
{
    if (r->result < 0 && !r->failing)
        log_warn("metrics", "%s job=%s", r->err.text, r->id);
    r->failing = r->result < 0;
    if (!r->pass.is_cut || r->cut_k == r->k)
        return;
    r->cut_k = r->k;
    log_warn("metrics",
             "the attempt says more than is read: its later metrics are left out job=%s attempt=%d",
             r->id, r->k);
}

static void metrics_done(void *arg)
{
    struct reader *r = arg;
    struct metrics *ms = r->ms;
    struct live *l = ms->closing ? NULL : jobs_find_id(ms->p.jobs, r->id);
    userlines_leave(&ms->lines, &r->place);
    metrics_tell_failure(r);
    r->known_at = r->result == 0 ? r->began : 0;
    r->known = r->pace;
    if (l)
        take_page(r, l);
    freep(&r->page);
    freep(&r->verdict);
    freep(&r->anatomy);
    freep(&r->alerts);
    bool goes_on = r->wanted || (r->result == 0 && r->pass.more);
    bool settled = r->ended && r->result == 0 && !r->pass.more;
    if (settled)
        r->settled_k = r->k;
    if (ms->closing)
        return;
    if (l && goes_on)
        metrics_want(r, l);
    if (settled && l)
        ms->p.settled(ms->p.arg);
    start_wanted(ms);
}

/* What its machines have, by which a trend of memory is judged: of the smallest one. */
static void metrics_bound(struct reader *r, const struct live *l)
{
    static const double GIB = 1024.0 * 1024 * 1024;
    const struct job *job = l->job;
    const struct figures *fs = r->ms->p.figures;
    struct verdict_bounds bounds = {.total = metric_watch_total(metric_reader_watch(r->file))};
    double gpu = figures_gang(fs, &job->gang, FIGURE_GPU_MEM_TOTAL, 5 * USEC_MIN).min;
    double host = NAN;
    for (size_t i = 0; i < job->gang.n; i++)
        host = fmin(host, figures_now(fs, job->gang.v[i].name, FIGURE_MEM_TOTAL, -1));
    bounds.gpu_gb = gpu > 0 ? gpu / GIB : 0;
    bounds.host_gb = host > 0 ? host / GIB : 0;
    const struct spec *spec = jobspec_of(r->ms->p.settings, job);
    struct training *t = metric_reader_training(r->file);
    verdict_set_bounds(t->verdict, &bounds);
    training_set_alerts(t, spec ? &spec->alerts : NULL, &l->extra.project_alerts);
    r->gpus = demand_gpus(&job->demand);
}

static void watch_metrics_start(struct reader *r, const struct live *l)
{
    metrics_bound(r, l);
    r->wanted = false;
    r->began = clock_mono();
    r->k = job_attempt(l->job)->k;
    r->ended = r->ending_k == r->k;
    work_start(r->ms->p.loop, metrics_run, metrics_done, r);
}

static void start_wanted(struct metrics *ms)
{
    struct userlines_place *next;
    while (!cluster_root_hangs(ms->p.cluster) && (next = userlines_next(&ms->lines, BUSY_MAX))) {
        struct reader *r = container_of(next, struct reader, place);
        const struct live *l = jobs_find_id(ms->p.jobs, r->id);
        if (l && job_attempt(l->job))
            watch_metrics_start(r, l);
        else
            userlines_leave(&ms->lines, next); /* it went meanwhile */
    }
}

/* ---- when ---- */

static void metrics_forget(struct metrics *ms)
{
    for (struct reader **p = &ms->first; *p;) {
        struct reader *r = *p;
        if (r->place.line || jobs_find_any(ms->p.jobs, r->id)) {
            p = &r->next;
            continue;
        }
        *p = r->next;
        map_remove(ms->by_id, r->id);
        metrics_reader_free(r);
    }
}

static void metrics_on_tick(uv_timer_t *t)
{
    struct metrics *ms = container_of(t, struct metrics, timer);
    const struct live *l;
    for (size_t pos = 0; (l = jobs_next_placed(ms->p.jobs, &pos));)
        if (job_is_in_ray(l->job))
            metrics_want(reader_of(ms, l->job), l);
    start_wanted(ms);
    metrics_forget(ms);
}

bool metrics_pace(const struct metrics *ms, const char *id, struct metric_pace *ret)
{
    const struct reader *r = map_find(ms->by_id, id);
    if (!r || !r->known_at || clock_mono() - r->known_at > PACE_FRESH)
        return false;
    *ret = r->known;
    return true;
}

bool metrics_settle(struct metrics *ms, struct live *l)
{
    struct reader *r = reader_of(ms, l->job);
    int k = job_attempt(l->job)->k;
    usec_t now = clock_mono();
    if (r->settled_k == k)
        return true;
    if (r->ending_k != k) {
        r->ending_k = k;
        r->ending_at = now;
        metrics_want(r, l);
        start_wanted(ms);
    }
    return now - r->ending_at > PATIENCE;
}

/* ---- life ---- */

struct metrics *metrics_new(const struct metrics_parts *parts)
{
    unsigned char seed[16];
    struct metrics *ms = xcalloc(1, sizeof(*ms));
    random_bytes(seed, sizeof(seed));
    ms->p = *parts;
    ms->lines.most_of_one = OF_USER_MAX;
    ms->by_id = map_new(seed);
    (void)uv_timer_init(parts->loop, &ms->timer); /* never fails */
    return ms;
}

void metrics_start(struct metrics *ms)
{
    (void)uv_timer_start(&ms->timer, metrics_on_tick, TICK_MS, TICK_MS); /* cannot fail */
}

void metrics_close(struct metrics *ms)
{
    if (!ms || ms->closing)
        return;
    ms->closing = true;
    uv_close((uv_handle_t *)&ms->timer, NULL);
}

void metrics_free(struct metrics *ms)
{
    if (!ms)
        return;
    for (struct reader *r = ms->first, *next; r; r = next) {
        next = r->next;
        metrics_reader_free(r);
    }
    userlines_release(&ms->lines);
    map_free(ms->by_id);
    free(ms);
}
