/* SPDX-License-Identifier: Apache-2.0 */
/* metric_watch.c - the health of a training, from its metrics; see metric_watch.h.
 *
 * Collapse: the reward's mean over a window had risen clearly, and then every value of a whole
 * window lies near or below where it began. A run that never rose has nothing to lose. */
#include "core/metric/metric_watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "core/metric/goodput.h"
#include "core/metric/metric_table.h"

enum {
    SPARK_POINTS = 64, /* of the small table; 32 to 64 are shown, of many keys fewer */
    TIMES = 64,        /* step times that are remembered */
    WINDOW = 8,        /* values of the reward that are one mean */
    COLLAPSE_AFTER = 3 * WINDOW,
    LATEST_MAX = 128,         /* values that a page is given */
    LATEST_BYTES = 256 << 10, /* their names have a ceiling: they fit */
};
static const double RISE_LEAST = 0.1; /* of the best: less than that is no rise */
static const double FALL_TO = 0.2;    /* of the rise: what is left of it in a collapse */
static const double NOISE_TIMES = 5;  /* the noise of a mean: less is no rise */

static const char *const rewards[] = {"critic/score/mean",  "critic/rewards/mean", "reward",
                                      "reward/mean",        "reward_mean",         "mean_reward",
                                      "episode_reward_mean"};
static const char *const losses[] = {"train/loss", "actor/loss", "actor/pg_loss", "loss",
                                     "val/loss"};
static const char *const mfus[] = {"perf/mfu/actor", "train/mfu", "mfu"};
static const char *const times[] = {"timing_s/step", "perf/time_per_step", "step_time"};
static const char *const saves[] = {"timing_s/save_checkpoint"};
static const char *const tokens[] = {"perf/total_num_tokens", "train/global_tokens"};

struct seen {
    int64_t step;
    usec_t at;
    double seconds; /* as the record says; NaN */
};

struct metric_watch {
    struct metric_table *table;
    int64_t step, total;
    bool total_is_sure;
    int attempt;
    int step_attempt; /* of the newest record that has a step; 0: none */
    usec_t at;
    struct seen ring[TIMES]; /* of the newest attempt */
    size_t n_seen;
    double tokens_per_s;
    uint64_t n_superseded, n_left_out;

    struct goodput_sums sums;
    int told_attempt; /* of the newest record of training, a void one too; 0: none */
    usec_t told_at;
    int64_t reached;        /* the highest step of training that any attempt has told of */
    int64_t reached_before; /* the same, by attempts before the newest that told; 0: none has */
    bool redoes;

    char bad_key[METRIC_NAME_MAX + 1]; /* "" = none */
    int64_t bad_step;
    char ill_key[METRIC_NAME_MAX + 1]; /* the same of the newest attempt, until it is well again */
    int64_t ill_step;

    char unread_key[METRIC_NAME_MAX + 1]; /* the first value that was no number; "" = none */
    int64_t unread_step;
    uint64_t n_unread;

    double window[WINDOW], base, best;
    double leaps; /* from each reward to the next, without their signs */
    size_t n_rewards;
    int64_t fallen_step; /* 0 = not */
    double fallen_to;
};

struct metric_watch *metric_watch_new(void)
{
    struct metric_watch *w = xcalloc(1, sizeof(*w));
    w->table = metric_table_new(SPARK_POINTS);
    w->step = -1;
    w->tokens_per_s = NAN;
    return w;
}

void metric_watch_free(struct metric_watch *w)
{
    if (!w)
        return;
    metric_table_free(w->table);
    free(w);
}

static double first_of(const struct metric_record *r, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double v = metric_value(r, names[i]);
        if (isfinite(v))
            return v;
    }
    return NAN;
}

/* ---- what is wrong ---- */

/* Some metrics are no number in good runs (a variance of nothing); these never. */
static bool is_vital(const char *name)
{
    static const char *const parts[] = {"loss",   "grad_norm", "score",      "reward", "/kl",
                                        "ppo_kl", "entropy",   "advantages", "returns"};
    for (size_t i = 0; i < array_len(parts); i++)
        if (strstr(name, parts[i]))
            return !str_starts(name, "val");
    return false;
}

static void watch_numbers(struct metric_watch *w, const struct metric_record *r)
{
    for (size_t i = 0; i < r->n && !*w->bad_key; i++)
        if (!isfinite(r->v[i].value) && is_vital(r->v[i].name)) {
            text_copy(w->bad_key, r->v[i].name);
            w->bad_step = r->step;
        }
}

static bool has_number(const struct metric_record *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->v[i].name, name))
            return isfinite(r->v[i].value);
    return false;
}

/* The first of the newest attempt that is ill until now. */
static void watch_illness(struct metric_watch *w, const struct metric_record *r)
{
    if (*w->ill_key && has_number(r, w->ill_key))
        w->ill_key[0] = 0;
    for (size_t i = 0; i < r->n && !*w->ill_key; i++)
        if (!isfinite(r->v[i].value) && is_vital(r->v[i].name)) {
            text_copy(w->ill_key, r->v[i].name);
            w->ill_step = r->step;
        }
}

/* A mean may be higher by so much by chance: noise leaps 2 / sqrt(pi) of its spread in the mean. */
static double window_noise(const struct metric_watch *w)
{
    return NOISE_TIMES * 0.886 * w->leaps / (double)(w->n_rewards - 1) / sqrt(WINDOW);
}

static void watch_reward(struct metric_watch *w, const struct metric_record *r)
{
    double v = first_of(r, rewards, array_len(rewards)), sum = 0, top = -INFINITY;
    if (!isfinite(v))
        return;
    if (w->n_rewards)
        w->leaps += fabs(v - w->window[(w->n_rewards - 1) % WINDOW]);
    w->window[w->n_rewards++ % WINDOW] = v;
    if (w->n_rewards < WINDOW)
        return;
    for (size_t i = 0; i < WINDOW; i++) {
        sum += w->window[i];
        top = w->window[i] > top ? w->window[i] : top;
    }
    double mean = sum / WINDOW;
    if (w->n_rewards == WINDOW)
        w->base = w->best = mean;
    w->best = mean > w->best ? mean : w->best;
    double rise = w->best - w->base, least = fmax(RISE_LEAST * fabs(w->best), window_noise(w));
    if (!w->fallen_step && w->n_rewards >= COLLAPSE_AFTER && rise > least &&
        top <= w->base + FALL_TO * rise) {
        w->fallen_step = r->step;
        w->fallen_to = mean;
    }
}

/* ---- speed ---- */

static void remember_time(struct metric_watch *w, const struct metric_record *r)
{
    struct seen s = {.step = r->step, .at = r->at, .seconds = first_of(r, times, array_len(times))};
    w->ring[w->n_seen++ % TIMES] = s;
}

static size_t ring_count(const struct metric_watch *w)
{
    return w->n_seen < TIMES ? w->n_seen : TIMES;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median of what the records say; NaN if they do not. */
static double told_seconds(const struct metric_watch *w)
{
    double v[TIMES];
    size_t n = 0;
    for (size_t i = 0; i < ring_count(w); i++)
        if (isfinite(w->ring[i].seconds) && w->ring[i].seconds >= 0)
            v[n++] = w->ring[i].seconds;
    xsort(v, n, sizeof(v[0]), by_size);
    return n ? v[n / 2] : NAN;
}

/* The mean between the first and the last that came under our eyes. */
static double seen_seconds(const struct metric_watch *w)
{
    size_t n = ring_count(w);
    if (n < 2)
        return NAN;
    const struct seen *a = &w->ring[w->n_seen > TIMES ? w->n_seen % TIMES : 0];
    const struct seen *b = &w->ring[(w->n_seen - 1) % TIMES];
    if (b->step <= a->step || b->at <= a->at)
        return NAN;
    return (double)(b->at - a->at) / (double)USEC_SEC / (double)(b->step - a->step);
}

double metric_watch_step_seconds(const struct metric_watch *w)
{
    double told = told_seconds(w);
    return isfinite(told) ? told : seen_seconds(w);
}

/* The longest that is told or lay between two that came under our eyes; NaN. */
static double longest_seconds(const struct metric_watch *w)
{
    size_t n = ring_count(w);
    double longest = NAN;
    for (size_t i = w->n_seen - n; i < w->n_seen; i++) {
        const struct seen *b = &w->ring[i % TIMES];
        const struct seen *a = i > w->n_seen - n ? &w->ring[(i - 1) % TIMES] : NULL;
        double gap = a && b->at > a->at ? (double)(b->at - a->at) / (double)USEC_SEC : NAN;
        longest = fmax(longest, fmax(gap, b->seconds)); /* NaN where both are */
    }
    return longest;
}

static size_t find_key(const struct metric_watch *w, const char *const *names, size_t n)
{
    size_t keys = metric_table_keys(w->table);
    for (size_t i = 0; i < n; i++) {
        size_t k = metric_table_find(w->table, names[i]);
        if (k < keys)
            return k;
    }
    return keys;
}

static double newest_reward(const struct metric_watch *w)
{
    int64_t step;
    size_t k = find_key(w, rewards, array_len(rewards));
    return k < metric_table_keys(w->table) ? metric_table_latest(w->table, k, &step) : NAN;
}

static int64_t steps_left(const struct metric_watch *w)
{
    return w->total > w->step ? w->total - w->step : 0;
}

/* At its pace; NaN: not known. */
static double seconds_left(const struct metric_watch *w)
{
    bool is_known = w->total && w->step >= 0;
    return is_known ? metric_watch_step_seconds(w) * (double)steps_left(w) : NAN;
}

/* It changes only when a record comes. */
static usec_t foreseen_end(const struct metric_watch *w)
{
    double rest = seconds_left(w);
    bool is_foreseen = steps_left(w) && w->at && rest >= 0 && rest < 1e9;
    return is_foreseen ? w->at + (usec_t)(rest * (double)USEC_SEC) : 0;
}

void metric_watch_pace(const struct metric_watch *w, struct metric_pace *ret)
{
    *ret = (struct metric_pace){.attempt = w->attempt,
                                .records = w->n_seen,
                                .step = w->step,
                                .total = w->total,
                                .median_s = metric_watch_step_seconds(w),
                                .longest_s = longest_seconds(w),
                                .reward = newest_reward(w),
                                .ends_at = foreseen_end(w),
                                .bad_step = w->ill_step};
    memcpy(ret->bad_key, w->ill_key, sizeof(ret->bad_key));
}

static void metric_watch_measure(struct metric_watch *w, const struct metric_record *r)
{
    double n = first_of(r, tokens, array_len(tokens)), s = first_of(r, times, array_len(times));
    remember_time(w, r);
    if (!isfinite(s))
        s = seen_seconds(w);
    if (isfinite(n) && s > 0)
        w->tokens_per_s = n / s;
}

/* ---- records ---- */

void metric_watch_set_total(struct metric_watch *w, int64_t total, bool sure)
{
    if (total <= 0 || (w->total_is_sure && !sure))
        return;
    w->total = total;
    w->total_is_sure = sure;
}

/* What lay between the step before and this one, which took s. Some versions of verl time a
 * validation beside the step, others in it: beside, it lies there, too, and is no wait for data. As
 * records are read late or early, what is nearer to all of it than to nothing has it. */
static double metric_watch_between(const struct metric_record *r, double came, double s)
{
    double between = came - s, test = metric_value(r, "timing_s/testing");
    return test > 0 && between >= test / 2 ? between - test : between;
}

/* What its step took, as it says or as it came. */
static void metric_watch_sum_up(struct metric_watch *w, const struct metric_record *r)
{
    double s = first_of(r, times, array_len(times)), came = NAN;
    if (!metric_is_training(r))
        return;
    if (w->told_attempt == r->attempt && r->at >= w->told_at)
        came = (double)(r->at - w->told_at) / (double)USEC_SEC;
    if (isfinite(s) && isfinite(came) && !r->superseded)
        goodput_add_between(&w->sums, r->attempt, metric_watch_between(r, came, s), s);
    if (!isfinite(s) && came > 0)
        s = came;
    goodput_add(&w->sums, r->attempt, r->superseded, s, first_of(r, saves, array_len(saves)));
    goodput_add_moment(&w->sums, r->attempt, r->superseded, r->at, r->step > w->reached);
    if (w->told_attempt != r->attempt)
        w->reached_before = w->reached;
    w->redoes = w->reached_before > 0 && r->step <= w->reached_before;
    w->reached = r->step > w->reached ? r->step : w->reached;
    w->told_attempt = r->attempt;
    w->told_at = r->at;
}

void metric_watch_add(struct metric_watch *w, const struct metric_record *r)
{
    metric_watch_sum_up(w, r);
    if (r->superseded) {
        w->n_superseded += metric_is_training(r);
        return;
    }
    if (r->attempt != w->attempt) {
        w->n_seen = 0; /* the time between two attempts is no step's */
        w->ill_key[0] = 0;
    }
    w->attempt = r->attempt;
    if (metric_has_step(r))
        w->step_attempt = r->attempt;
    w->at = r->at;
    w->step = r->step > w->step ? r->step : w->step;
    w->n_left_out += r->left_out;
    if (r->unread && !w->n_unread) {
        text_copy(w->unread_key, r->unread);
        w->unread_step = r->step;
    }
    w->n_unread += r->n_unread;
    metric_watch_set_total(w, r->total, true);
    metric_table_add(w->table, r);
    if (!metric_is_training(r))
        return;
    watch_numbers(w, r);
    watch_illness(w, r);
    watch_reward(w, r);
    metric_watch_measure(w, r);
}

double metric_watch_useful(const struct metric_watch *w)
{
    double seconds = 0;
    for (size_t i = 0; i < w->sums.n; i++)
        seconds += w->sums.v[i].good_s;
    return seconds;
}

bool metric_watch_redoes(const struct metric_watch *w)
{
    return w->redoes;
}

int64_t metric_watch_step(const struct metric_watch *w)
{
    return w->step;
}

int64_t metric_watch_total(const struct metric_watch *w)
{
    return w->total;
}

bool metric_watch_goes_back(const struct metric_watch *w, const struct metric_record *r)
{
    return w->step_attempt && r->attempt > w->step_attempt && r->step <= w->step &&
           metric_has_step(r);
}

/* A validation before the first step belongs to the step that was resumed from: that one counts
 * on, its other values too. */
bool metric_is_void(const struct metric_record *old, const struct metric_record *begin)
{
    if (old->attempt >= begin->attempt)
        return false;
    return old->step > begin->step || (old->step == begin->step && metric_is_training(begin));
}

/* ---- as JSON ---- */

static size_t find_validation(const struct metric_watch *w)
{
    size_t k = 0, keys = metric_table_keys(w->table);
    while (k < keys && !str_starts(metric_table_key(w->table, k), "val-core/"))
        k++;
    return k;
}

/* The curve in small, one number for each point. */
struct curve_page {
    const char *key;
    double value, min, max;
    int64_t step;
    struct field_list spark; /* owned */
};
#define CURVE(name, ftype, member, ...) FIELD_AT(curve_page, name, ftype, member, __VA_ARGS__)
static const struct field curve_rows[] = {
    CURVE("key", FIELD_STR, key, .flags = FIELD_ALWAYS),
    CURVE("value", FIELD_REAL, value, .flags = FIELD_MAYBE),
    CURVE("step", FIELD_INT, step),
    CURVE("min", FIELD_REAL, min, .flags = FIELD_OMIT | FIELD_MAYBE),
    CURVE("max", FIELD_REAL, max, .flags = FIELD_OMIT | FIELD_MAYBE),
    CURVE("spark", FIELD_REALS, spark),
};
const struct field_table metric_curve_table = FIELD_TABLE("Curve", curve_rows, curve_page);

struct bad_page {
    const char *key;
    int64_t step;
};
static const struct field bad_rows[] = {
    FIELD_AT(bad_page, "key", FIELD_STR, key, .flags = FIELD_ALWAYS),
    FIELD_AT(bad_page, "step", FIELD_INT, step),
};
static const struct field_table bad_table = FIELD_TABLE(NULL, bad_rows, bad_page);

struct unread_page {
    const char *key;
    int64_t step;
    uint64_t values;
};
static const struct field unread_rows[] = {
    FIELD_AT(unread_page, "key", FIELD_STR, key, .flags = FIELD_ALWAYS),
    FIELD_AT(unread_page, "step", FIELD_INT, step),
    FIELD_AT(unread_page, "values", FIELD_COUNT, values),
};
static const struct field_table unread_table = FIELD_TABLE(NULL, unread_rows, unread_page);

struct fall_page {
    int64_t step;
    double best, now;
};
static const struct field fall_rows[] = {
    FIELD_AT(fall_page, "step", FIELD_INT, step),
    FIELD_AT(fall_page, "best", FIELD_REAL, best, .flags = FIELD_MAYBE),
    FIELD_AT(fall_page, "now", FIELD_REAL, now, .flags = FIELD_MAYBE),
};
static const struct field_table fall_table = FIELD_TABLE(NULL, fall_rows, fall_page);

#define NOT_FINITE "not_finite"
#define COLLAPSE "collapse"

/* What a page shows of a training. */
struct training_page {
    int64_t step, total, keys;
    double progress, eta_s, step_seconds, tokens_per_s, mfu;
    usec_t eta, updated_at;
    int attempt;
    const struct curve_page *reward, *loss, *validation;
    const struct bad_page *bad;
    const struct fall_page *fall;
    const struct unread_page *unread;
    uint64_t superseded, left_out;
    struct field_list attempts;
    char *latest; /* owned */
};
#define PAGE(key, ftype, member, ...) FIELD_AT(training_page, key, ftype, member, __VA_ARGS__)
static const struct field training_rows[] = {
    PAGE("step", FIELD_INT, step),
    PAGE("total_steps", FIELD_INT, total, .flags = FIELD_NO_LIMIT),
    PAGE("progress", FIELD_REAL, progress, .flags = FIELD_MAYBE),
    PAGE("eta_s", FIELD_REAL, eta_s, .flags = FIELD_MAYBE),
    PAGE("eta", FIELD_TIME, eta),
    PAGE("step_seconds", FIELD_REAL, step_seconds, .flags = FIELD_MAYBE),
    PAGE("tokens_per_s", FIELD_REAL, tokens_per_s, .flags = FIELD_MAYBE),
    PAGE("updated_at", FIELD_TIME, updated_at),
    PAGE("attempt", FIELD_INT32, attempt),
    PAGE("mfu", FIELD_REAL, mfu, .flags = FIELD_MAYBE),
    PAGE("reward", FIELD_PART, reward, .of = &metric_curve_table),
    PAGE("loss", FIELD_PART, loss, .of = &metric_curve_table),
    PAGE("validation", FIELD_PART, validation, .of = &metric_curve_table),
    PAGE(NOT_FINITE, FIELD_PART, bad, .of = &bad_table),
    PAGE(COLLAPSE, FIELD_PART, fall, .of = &fall_table),
    PAGE("unread", FIELD_PART, unread, .of = &unread_table, .flags = FIELD_OMIT),
    PAGE("superseded", FIELD_COUNT, superseded),
    PAGE("left_out", FIELD_COUNT, left_out),
    PAGE("attempts", FIELD_LIST, attempts, .of = &goodput_attempt_table),
    PAGE("latest",
         FIELD_JSON,
         latest,
         .flags = FIELD_ALWAYS,
         .schema = "{\"type\":\"object\",\"additionalProperties\":"
                   "{\"type\":[\"number\",\"null\"]}}"),
    PAGE("keys", FIELD_INT, keys),
};
const struct field_table metric_training_table =
    FIELD_TABLE("Training", training_rows, training_page);

/* The curve of key k in ret; NULL: there is none. */
static const struct curve_page *curve_of(const struct metric_watch *w,
                                         size_t k,
                                         struct curve_page *ret)
{
    const struct metric_table *t = w->table;
    struct metric_point p;
    size_t n = metric_table_points(t);
    if (k >= metric_table_keys(t))
        return NULL;
    *ret = (struct curve_page){.key = metric_table_key(t, k), .min = NAN, .max = NAN};
    ret->value = metric_table_latest(t, k, &ret->step);
    if (metric_table_range(t, k, 0, n, &p)) {
        ret->min = p.min;
        ret->max = p.max;
    }
    double *spark = xcalloc(n + 1, sizeof(*spark));
    ret->spark.v = spark;
    for (size_t i = 0; i < n; i++)
        if (metric_table_range(t, k, i, i + 1, &p))
            spark[ret->spark.n++] = p.value;
    return ret;
}

/* The newest values by their names; heap. */
static char *latest_text(const struct metric_watch *w)
{
    size_t n = metric_table_keys(w->table);
    int64_t step;
    struct buf out = BUF_INIT(LATEST_BYTES);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    for (size_t k = 0; k < n && k < LATEST_MAX; k++)
        jout_real(&j, metric_table_key(w->table, k), metric_table_latest(w->table, k, &step));
    jout_close(&j, '}');
    return buf_take(&out);
}

static void show_progress(const struct metric_watch *w, struct training_page *p)
{
    bool known = w->total && w->step >= 0;
    p->step = w->step;
    p->total = w->total ? w->total : -1;
    p->progress = known ? (double)(w->total - steps_left(w)) / (double)w->total : NAN;
    p->eta_s = seconds_left(w);
    p->eta = foreseen_end(w);
    p->step_seconds = metric_watch_step_seconds(w);
    p->tokens_per_s = w->tokens_per_s;
    p->updated_at = w->at;
    p->attempt = w->attempt;
}

void metric_watch_trouble(const struct metric_watch *w, struct metric_trouble *ret)
{
    *ret = (struct metric_trouble){.kinds = (*w->bad_key ? METRIC_NOT_FINITE : 0u) |
                                            (w->fallen_step ? METRIC_COLLAPSED : 0u),
                                   .bad_step = w->bad_step,
                                   .fallen_step = w->fallen_step,
                                   .best = w->best,
                                   .fallen_to = w->fallen_to};
    memcpy(ret->bad_key, w->bad_key, sizeof(ret->bad_key));
}

unsigned metric_trouble_from_json(const json_t *metrics)
{
    return (json_get_object(metrics, NOT_FINITE) ? METRIC_NOT_FINITE : 0u) |
           (json_get_object(metrics, COLLAPSE) ? METRIC_COLLAPSED : 0u);
}

void metric_watch_to_json(const struct metric_watch *w, struct jout *j, const char *key)
{
    int64_t step;
    size_t n = metric_table_keys(w->table), mfu = find_key(w, mfus, array_len(mfus));
    const struct bad_page bad = {.key = w->bad_key, .step = w->bad_step};
    const struct fall_page fall = {.step = w->fallen_step, .best = w->best, .now = w->fallen_to};
    const struct unread_page unread = {
        .key = w->unread_key, .step = w->unread_step, .values = w->n_unread};
    struct curve_page reward = {0}, loss = {0}, validation = {0};
    struct training_page page = {
        .keys = (int64_t)n,
        .mfu = mfu < n ? metric_table_latest(w->table, mfu, &step) : NAN,
        .reward = curve_of(w, find_key(w, rewards, array_len(rewards)), &reward),
        .loss = curve_of(w, find_key(w, losses, array_len(losses)), &loss),
        .validation = curve_of(w, find_validation(w), &validation),
        .bad = *w->bad_key ? &bad : NULL,
        .fall = w->fallen_step ? &fall : NULL,
        .unread = w->n_unread ? &unread : NULL,
        .superseded = w->n_superseded,
        .left_out = w->n_left_out + metric_table_left_out(w->table),
        .attempts = {.v = (void *)(uintptr_t)w->sums.v, .n = w->sums.n}, /* only written out */
        .latest = latest_text(w)};
    show_progress(w, &page);
    field_to_json(&metric_training_table, &page, FIELD_ALL, FIELD_PAGE, j, key);
    free(reward.spark.v);
    free(loss.spark.v);
    free(validation.spark.v);
    free(page.latest);
}
