/* SPDX-License-Identifier: Apache-2.0 */
/* goodput.c - the sums of a job's attempts, and the formulas on them; see goodput.h. */
#include "core/metric/goodput.h"

#include <math.h>
#include <string.h>

static struct goodput_attempt *goodput_attempt_of(struct goodput_sums *s, int k)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].k == k)
            return &s->v[i];
    if (s->n == GOODPUT_ATTEMPTS_MAX)
        return &s->v[s->n - 1];
    s->v[s->n] = (struct goodput_attempt){.k = k};
    return &s->v[s->n++];
}

static double known(double v)
{
    return isfinite(v) && v > 0 ? v : 0;
}

void goodput_add(struct goodput_sums *s, int k, bool lost, double seconds, double save_s)
{
    struct goodput_attempt *a = goodput_attempt_of(s, k);
    a->steps++;
    a->lost += lost;
    if (lost)
        a->lost_s += known(seconds);
    else
        a->good_s += known(seconds);
    a->unsaved_s = known(save_s) > 0 ? 0 : a->unsaved_s + known(seconds);
    a->saves += known(save_s) > 0;
    a->save_s += known(save_s);
}

#define X(percent) percent,
static const int tens_percent[GOODPUT_TENS] = {GOODPUT_TENS_TABLE(X)};
#undef X

/* Ten together: of one step alone the time at which its record was read says too little. */
static void goodput_end_ten(struct goodput_attempt *a)
{
    double between = known(a->ten_between_s), whole = between + a->ten_s;
    int i = 0;
    while (i < GOODPUT_TENS - 1 && between * 100 > whole * tens_percent[i])
        i++;
    a->tens[i]++;
    a->ten = 0;
    a->ten_s = a->ten_between_s = 0;
}

void goodput_add_between(struct goodput_sums *s, int k, double seconds, double step_s)
{
    if (!isfinite(seconds))
        return;
    struct goodput_attempt *a = goodput_attempt_of(s, k);
    a->between_s += seconds;
    a->ten_s += known(step_s);
    a->ten_between_s += seconds;
    if (++a->ten == 10)
        goodput_end_ten(a);
}

/* The tens of all attempts together; returns how many there are. */
static int64_t goodput_sum_tens(const struct goodput_sums *s, int64_t ret[static GOODPUT_TENS])
{
    int64_t n = 0;
    for (int b = 0; b < GOODPUT_TENS; b++) {
        ret[b] = 0;
        for (size_t i = 0; i < s->n; i++)
            ret[b] += s->v[i].tens[b];
        n += ret[b];
    }
    return n;
}

double goodput_tens_above(const struct goodput_sums *s, int percent)
{
    int64_t tens[GOODPUT_TENS], n = goodput_sum_tens(s, tens), above = 0;
    for (int b = 0; b < GOODPUT_TENS; b++)
        above += tens_percent[b] > percent ? tens[b] : 0;
    return n ? (double)above / (double)n : 0;
}

double goodput_least_between(const struct goodput_sums *s)
{
    int64_t tens[GOODPUT_TENS], n = goodput_sum_tens(s, tens), met = 0;
    if (n < 10)
        return (double)NAN;
    for (int b = 0; b < GOODPUT_TENS; b++) {
        met += tens[b];
        if (met * 10 >= n)
            return tens_percent[b] / 100.0;
    }
    return 1;
}

/* Many steps may be read at once, late: the first began before all that they took. */
void goodput_add_moment(struct goodput_sums *s, int k, bool lost, usec_t ended, bool fresh)
{
    struct goodput_attempt *a = goodput_attempt_of(s, k);
    double took = (a->good_s + a->lost_s) * (double)USEC_SEC;
    if (a->k != k || !ended)
        return; /* beyond the ceiling */
    usec_t began = took < (double)ended ? ended - (usec_t)took : 1;
    a->first_at = !a->first_at || began < a->first_at ? began : a->first_at;
    a->last_at = ended;
    if (!lost)
        a->kept_at = ended;
    if (fresh && !a->fresh_at)
        a->fresh_at = ended;
}

#define ATTEMPT(member, ftype) FIELD_AT(goodput_attempt, #member, ftype, member, .flags = 0)
#define SECONDS(member) FIELD_AT(goodput_attempt, #member, FIELD_REAL, member, .flags = FIELD_MAYBE)
#define TENS(percent)                                                                              \
    FIELD_AT(goodput_attempt, "between_tens_" #percent, FIELD_INT32, tens[GOODPUT_TENS_##percent], \
             .flags = FIELD_OMIT,                                                                  \
             .doc =                                                                                \
                 "how often of ten steps at most this per cent of their time lay between them, "   \
                 "and more than the bound before"),
static const struct field attempt_rows[] = {
    ATTEMPT(k, FIELD_INT32),
    ATTEMPT(steps, FIELD_COUNT),
    ATTEMPT(lost, FIELD_COUNT),
    SECONDS(good_s),
    SECONDS(lost_s),
    ATTEMPT(saves, FIELD_COUNT),
    SECONDS(save_s),
    SECONDS(unsaved_s),
    SECONDS(between_s),
    GOODPUT_TENS_TABLE(TENS) ATTEMPT(first_at, FIELD_TIME),
    ATTEMPT(kept_at, FIELD_TIME),
    ATTEMPT(last_at, FIELD_TIME),
    ATTEMPT(fresh_at, FIELD_TIME),
};
const struct field_table goodput_attempt_table = FIELD_TABLE(NULL, attempt_rows, goodput_attempt);

static uint64_t goodput_count_of(const json_t *o, const char *key)
{
    int64_t n = json_get_int(o, key, 0);
    return n > 0 ? (uint64_t)n : 0;
}

static usec_t goodput_moment_of(const json_t *o, const char *key)
{
    usec_t at = 0;
    const char *text = json_get_str(o, key, NULL);
    return text && clock_from_string(text, &at, NULL) == 0 ? at : 0;
}

static void goodput_read_tens(const json_t *o, int tens[static GOODPUT_TENS])
{
#define X(percent) "between_tens_" #percent,
    static const char *const keys[GOODPUT_TENS] = {GOODPUT_TENS_TABLE(X)};
#undef X
    for (int b = 0; b < GOODPUT_TENS; b++) {
        uint64_t n = goodput_count_of(o, keys[b]);
        tens[b] = n < INT32_MAX ? (int)n : INT32_MAX;
    }
}

void goodput_from_json(const json_t *array, struct goodput_sums *ret)
{
    const json_t *o;
    size_t i;
    *ret = (struct goodput_sums){0};
    json_array_foreach (array, i, o) {
        if (ret->n == GOODPUT_ATTEMPTS_MAX || !json_is_object(o))
            continue;
        ret->v[ret->n++] =
            (struct goodput_attempt){.k = (int)goodput_count_of(o, "k"),
                                     .steps = goodput_count_of(o, "steps"),
                                     .lost = goodput_count_of(o, "lost"),
                                     .good_s = known(json_get_real(o, "good_s", 0)),
                                     .lost_s = known(json_get_real(o, "lost_s", 0)),
                                     .saves = goodput_count_of(o, "saves"),
                                     .save_s = known(json_get_real(o, "save_s", 0)),
                                     .unsaved_s = known(json_get_real(o, "unsaved_s", 0)),
                                     .between_s = known(json_get_real(o, "between_s", 0)),
                                     .first_at = goodput_moment_of(o, "first_at"),
                                     .kept_at = goodput_moment_of(o, "kept_at"),
                                     .last_at = goodput_moment_of(o, "last_at"),
                                     .fresh_at = goodput_moment_of(o, "fresh_at")};
        goodput_read_tens(o, ret->v[ret->n - 1].tens);
    }
}

double goodput_interval(double save_s, double mtbf_s)
{
    if (save_s >= 2 * mtbf_s)
        return mtbf_s;
    double x = save_s / (2 * mtbf_s);
    return sqrt(2 * save_s * mtbf_s) * (1 + sqrt(x) / 3 + x / 9) - save_s;
}

void goodput_judge(const struct goodput_sums *s, double held_s, int failures, struct goodput *ret)
{
    struct goodput g = {.held_s = held_s, .ratio = NAN, .save_s = NAN, .mtbf_s = NAN};
    uint64_t saves = 0, steps = 0;
    double save_s = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct goodput_attempt *a = &s->v[i];
        steps += a->steps;
        g.lost += a->lost;
        g.good_s += a->good_s;
        g.lost_s += a->lost_s;
        saves += a->saves;
        save_s += a->save_s;
    }
    g.steps = steps > g.lost ? steps - g.lost : 0;
    if (held_s > 0)
        g.ratio = g.good_s < held_s ? g.good_s / held_s : 1; /* clocks of two machines */
    if (saves)
        g.save_s = save_s / (double)saves;
    if (failures > 0 && held_s > 0)
        g.mtbf_s = held_s / failures;
    double step_s = steps ? (g.good_s + g.lost_s) / (double)steps : 0;
    if (isfinite(g.save_s) && isfinite(g.mtbf_s) && step_s > 0) {
        double freq = round(goodput_interval(g.save_s, g.mtbf_s) / step_s);
        g.save_freq = freq < 1 ? 1 : freq > 1e9 ? (int64_t)1e9 : (int64_t)freq;
    }
    *ret = g;
}
