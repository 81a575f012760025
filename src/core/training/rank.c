/* SPDX-License-Identifier: Apache-2.0 */
/* rank.c - see rank.h. A rank is held against the median of the others, in each window. */
#include "core/training/rank.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

static const double SLOW_TIMES = 1.1; /* the work of the others */
static const double SLOW_LEAST = 0.1; /* of the time, more than they work */
static const double SLOW_SPREADS = 4; /* the same, in spreads of what they work */
static const double FAR_TIMES = 3;    /* the round trip of the others */
static const double FAR_LEAST = 2;    /* ms more */
static const double WAITS = 0.15;     /* of the time: less is no loss by a slow connection */
static const double THROTTLED = 0.05; /* seconds a second that a cgroup holds it back */
static const double FAULTS = 20;      /* a second */
static const double READS = 1 << 20;  /* bytes a second */
static const double RESTS = 0.6; /* of its work is the processor's: less is a rank that blocks */
static const double SECONDS_LEAST = 2; /* of a window */
static const double SLACK = 1.1;       /* of a window: more than that is no sum of its parts */
static const double FACTOR_MOST = 100; /* that is told */

const char *rank_cause_to_string(enum rank_cause c)
{
    static const char *const words[] = {
#define X(e, word) word,
        RANK_CAUSE_TABLE(X)
#undef X
    };
    return words[c];
}

/* ---- reading ---- */

/* A number of the object that is not below 0; NaN. */
static double rank_number(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    double x = json_is_number(v) ? json_number_value(v) : (double)NAN;
    return isfinite(x) && x >= 0 ? x : (double)NAN;
}

struct rank_sums {
    double seconds, work, wait, cpu, throttled, faults, disk, rtt;
};

/* False: it says nothing, lasts for too short a time, or is no sum of its parts. */
static bool rank_read_window(const json_t *o, struct rank_sums *sums, struct rank_window *ret)
{
    double seconds = rank_number(o, "seconds"), work = rank_number(o, "work");
    double wait = rank_number(o, "wait"), calls = rank_number(o, "calls");
    double cpu = rank_number(o, "cpu"), rtt = rank_number(o, "rtt_ms");
    if (!(seconds >= SECONDS_LEAST) || !(calls > 0) || !(work + wait <= SLACK * seconds) ||
        isnan(cpu))
        return false;
    *ret = (struct rank_window){.work = work / seconds, .wait = wait / seconds};
    sums->seconds += seconds;
    sums->work += work;
    sums->wait += wait;
    sums->cpu += cpu;
    sums->throttled += rank_number(o, "throttled");
    sums->faults += rank_number(o, "faults");
    sums->disk += rank_number(o, "disk_bytes");
    sums->rtt = fmin(sums->rtt, rtt);
    return true;
}

static void rank_read_windows(const json_t *list, struct rank_told *ret)
{
    struct rank_sums sums = {.rtt = NAN};
    size_t n = json_array_size(list);
    const json_t *newest = json_array_get(list, n - 1);
    ret->at = (usec_t)(rank_number(newest, "at") * (double)USEC_SEC);
    for (size_t i = 0; i < n && ret->n < RANK_WINDOWS; i++) {
        if (!rank_read_window(json_array_get(list, n - 1 - i), &sums, &ret->w[ret->n]))
            break;
        ret->n++;
    }
    ret->work = sums.work / sums.seconds; /* NaN of none */
    ret->wait = sums.wait / sums.seconds;
    ret->cpu = sums.cpu / sums.seconds;
    ret->throttled = sums.throttled / sums.seconds;
    ret->faults = sums.faults / sums.seconds;
    ret->disk = sums.disk / sums.seconds;
    ret->rtt = sums.rtt;
}

bool rank_read(const char *text, size_t n, struct rank_told *ret)
{
    json_t *o = NULL;
    *ret = (struct rank_told){0};
    if (json_parse(text, n, RANK_BYTES_MAX, &o, NULL) < 0)
        return false;
    const json_t *list = json_object_get(o, "windows");
    double at = rank_number(json_array_get(list, json_array_size(list) - 1), "at");
    ret->rank = json_get_int(o, "rank", -1);
    ret->world = json_get_int(o, "world", 0);
    ret->pid = json_get_int(o, "pid", 0);
    text_copy(ret->id, json_get_str(o, "id", ""));
    text_copy(ret->node, json_get_str(o, "node", ""));
    bool is_rank = ret->rank >= 0 && ret->rank < ret->world && at < 1e11;
    if (is_rank)
        rank_read_windows(list, ret);
    json_decref(o);
    return is_rank && ret->n;
}

/* ---- judging ---- */

static int rank_by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* A figure of a rank, by where it stands in struct rank_told. */
static double rank_figure(const struct rank_told *t, size_t offset)
{
    double x;
    memcpy(&x, (const char *)t + offset, sizeof(x));
    return x;
}
/* A figure of all ranks, sorted; those that do not tell it are left out. */
struct rank_row {
    double *v;
    size_t n;
};

static struct rank_row rank_row_of(const struct rank_told *v, size_t n, size_t offset)
{
    struct rank_row row = {.v = xcalloc(n + 1, sizeof(*row.v))};
    for (size_t i = 0; i < n; i++) {
        double x = rank_figure(&v[i], offset);
        if (isfinite(x))
            row.v[row.n++] = x;
    }
    xsort(row.v, row.n, sizeof(*row.v), rank_by_size);
    return row;
}

static size_t rank_row_find(const struct rank_row *row, double x)
{
    size_t low = 0, high = row->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (row->v[mid] < x)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The k-th of the row without the one at `but`. */
static double rank_row_at(const struct rank_row *row, size_t k, size_t but)
{
    return row->v[k + (k >= but)];
}

/* The median without x, which is in the row, and how far half of them are from it at most; NaN:
 * there are no others. */
static double rank_others(const struct rank_row *row, double x, double *ret_spread)
{
    size_t but = rank_row_find(row, x), n = row->n ? row->n - 1 : 0;
    if (!n || isnan(x))
        return NAN;
    double low = rank_row_at(row, (n - 1) / 2, but), high = rank_row_at(row, n / 2, but);
    if (ret_spread)
        *ret_spread = (rank_row_at(row, n - 1 - n / 4, but) - rank_row_at(row, n / 4, but)) / 2;
    return (low + high) / 2;
}

/* ---- all figures of all ranks ---- */

#define RANK_FIGURES(X)                                                                            \
    X(work0, w[0].work)                                                                            \
    X(work1, w[1].work)                                                                            \
    X(work2, w[2].work)                                                                            \
    X(work, work)                                                                                  \
    X(wait, wait)                                                                                  \
    X(throttled, throttled)                                                                        \
    X(faults, faults)                                                                              \
    X(disk, disk)                                                                                  \
    X(rtt, rtt)

struct rank_rows {
#define X(name, member) struct rank_row name;
    RANK_FIGURES(X)
#undef X
};

static bool rank_is_slow(const struct rank_rows *rows, const struct rank_told *t)
{
    const struct rank_row *const works[RANK_WINDOWS] = {&rows->work0, &rows->work1, &rows->work2};
    for (size_t k = 0; k < RANK_WINDOWS; k++) {
        double spread = 0, own = t->w[k].work, others = rank_others(works[k], own, &spread);
        double least = fmax(SLOW_LEAST, SLOW_SPREADS * spread);
        if (!(own >= SLOW_TIMES * others && own >= others + least))
            return false;
    }
    return true;
}

static bool rank_is_far(const struct rank_rows *rows, const struct rank_told *t)
{
    double others = rank_others(&rows->rtt, t->rtt, NULL);
    double waits = rank_others(&rows->wait, t->wait, NULL);
    return t->rtt >= FAR_TIMES * others && t->rtt >= others + FAR_LEAST && waits >= WAITS;
}

static enum rank_cause rank_cause_of(const struct rank_rows *rows, const struct rank_told *t)
{
    bool rests = t->cpu < RESTS * t->work;
    if (t->throttled >= THROTTLED &&
        t->throttled >= 2 * rank_others(&rows->throttled, t->throttled, NULL))
        return RANK_CPU_CAP;
    if (t->faults >= FAULTS && t->faults >= 4 * rank_others(&rows->faults, t->faults, NULL))
        return RANK_MEMORY;
    if (rests && t->disk >= READS && t->disk >= rank_others(&rows->disk, t->disk, NULL) / 2)
        return RANK_DISK;
    return rests ? RANK_BLOCKED : RANK_COMPUTES;
}

/* Those that tell of now, in the order of v; how many. */
static size_t rank_now(const struct rank_told *v, size_t n, usec_t now, struct rank_told *ret)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (v[i].n == RANK_WINDOWS && v[i].at + RANK_FRESH >= now && v[i].at <= now + RANK_FRESH)
            ret[count++] = v[i];
    return count;
}

static void rank_choose(const struct rank_told *v,
                        size_t n,
                        const struct rank_rows *rows,
                        struct rank_verdict *ret)
{
    const struct rank_told *slowest = NULL, *farthest = NULL;
    size_t slow = 0, far = 0, most = n / 4 ? n / 4 : 1;
    for (const struct rank_told *t = v; t < v + n; t++) {
        bool is_slow = rank_is_slow(rows, t), is_far = rank_is_far(rows, t);
        slow += is_slow;
        far += is_far;
        if (is_slow && (!slowest || t->work > slowest->work))
            slowest = t;
        if (is_far && (!farthest || t->rtt > farthest->rtt))
            farthest = t;
    }
    bool is_slow = slow && slow <= most, is_far = far && far <= most;
    const struct rank_told *t = is_slow ? slowest : farthest;
    if (!is_slow && !is_far)
        return;
    ret->is_slow = true;
    ret->rank = t->rank;
    text_copy(ret->node, t->node);
    ret->cause = is_slow ? rank_cause_of(rows, t) : RANK_NETWORK;
    double factor = is_slow ? t->work / rank_others(&rows->work, t->work, NULL)
                            : t->rtt / rank_others(&rows->rtt, t->rtt, NULL);
    ret->factor = fmin(factor, FACTOR_MOST);
    ret->lost = rank_others(&rows->wait, t->wait, NULL);
}

/* Judges the ranks of one world, count of them fresh, each once. False: one says nothing of now,
 * and may be the slow one. */
static bool rank_judge_world(const struct rank_told *v, size_t count, struct rank_verdict *ret)
{
    if (count < 2 || (int64_t)count != v[0].world)
        return false;
    for (size_t i = 0; i < count; i++) /* they are sorted */
        if (v[i].rank != (int64_t)i || v[i].world != v[0].world)
            return false;
    struct rank_rows rows = {
#define X(name, member) .name = rank_row_of(v, count, offsetof(struct rank_told, member)),
        RANK_FIGURES(X)
#undef X
    };
    struct rank_verdict got = {0};
    rank_choose(v, count, &rows, &got);
#define X(name, member) free(rows.name.v);
    RANK_FIGURES(X)
#undef X
    got.ranks = count;
    if (!ret->is_slow && (got.is_slow || count > ret->ranks))
        *ret = got;
    return true;
}

static int rank_by_world(const void *a, const void *b)
{
    const struct rank_told *x = a, *y = b;
    int r = strcmp(x->id, y->id);
    return r ? r : x->rank < y->rank ? -1 : x->rank > y->rank;
}

void rank_judge(const struct rank_told *v, size_t n, usec_t now, struct rank_verdict *ret)
{
    struct rank_told *fresh = xcalloc(n + 1, sizeof(*fresh));
    size_t count = rank_now(v, n, now, fresh);
    *ret = (struct rank_verdict){0};
    xsort(fresh, count, sizeof(*fresh), rank_by_world);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && str_eq(fresh[end].id, fresh[i].id);)
            end++;
        bool is_judged = rank_judge_world(fresh + i, end - i, ret);
        ret->is_judged = ret->is_judged || is_judged;
    }
    free(fresh);
}
