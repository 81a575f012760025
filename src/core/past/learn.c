/* SPDX-License-Identifier: Apache-2.0 */
/* learn.c - see learn.h. One table of kinds; a kind is a ring of its newest runs and, sorted,
 * the same runs as spans and as shares of their limits.
 *
 * Invariants: the sorted lists hold what the ring holds (shares: of those with a limit); every
 * kind stands in the map and once in the line of use, newest first; no more than LEARN_KINDS. */
#include "core/past/learn.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/str.h"

enum { LEVELS = 5, KEY_MAX = 1024 };

struct sorted {
    float v[LEARN_RUNS];
    int n;
};

struct kind {
    char *key;
    struct kind *newer, *older;
    float ran[LEARN_RUNS], share[LEARN_RUNS]; /* the ring: seconds; -1 = it had no limit */
    int n, next;
    struct sorted spans, shares;
};

struct learn {
    struct map *kinds; /* key -> kind */
    struct kind *newest, *oldest;
};

struct learn *learn_new(const unsigned char seed[static 16])
{
    struct learn *l = xcalloc(1, sizeof(*l));
    l->kinds = map_new(seed);
    return l;
}

void learn_free(struct learn *l)
{
    if (!l)
        return;
    for (struct kind *k = l->newest, *older; k; k = older) {
        older = k->older;
        free(k->key);
        free(k);
    }
    map_free(l->kinds);
    free(l);
}

/* ---- the table ---- */

static void add_part(struct buf *b, const char *s)
{
    (void)buf_adds(b, str_or(s, "")); /* overflow: learn_key_of() */
    (void)buf_addc(b, '\n');
}

/* Runs of digits become '#'. */
static void add_name(struct buf *b, const char *s)
{
    for (s = str_or(s, ""); *s; s++) {
        bool digit = *s >= '0' && *s <= '9';
        if (!digit || s[1] < '0' || s[1] > '9')
            (void)buf_addc(b, digit ? '#' : *s); /* overflow: learn_key_of() */
    }
    (void)buf_addc(b, '\n');
}

static bool learn_has(const char *s)
{
    return s && *s;
}

/* The key of k at this level, in b; NULL where the level says nothing more than the next. */
static const char *learn_key_of(struct buf *b, const struct learn_kind *k, int level)
{
    const bool says[LEVELS] = {learn_has(k->name), learn_has(k->user), learn_has(k->project),
                               learn_has(k->pool) || learn_has(k->workload), true};
    if (!says[level])
        return NULL;
    buf_reset(b);
    (void)buf_add_int(b, level);
    (void)buf_addc(b, '\n');
    (void)buf_add_int(b, (int64_t)(k->gpus * 10000 + 0.5));
    (void)buf_addc(b, '\n');
    if (level < LEVELS - 1)
        add_part(b, k->workload);
    if (level < 2)
        add_part(b, k->user);
    if (level == 0 || level == 2)
        add_part(b, k->project);
    if (level == 3)
        add_part(b, k->pool);
    if (level == 0)
        add_name(b, k->name);
    return b->failed ? NULL : buf_str(b);
}

static void unlink_kind(struct learn *l, struct kind *k)
{
    if (k->newer)
        k->newer->older = k->older;
    else
        l->newest = k->older;
    if (k->older)
        k->older->newer = k->newer;
    else
        l->oldest = k->newer;
    k->newer = k->older = NULL;
}

static void link_newest(struct learn *l, struct kind *k)
{
    k->older = l->newest;
    if (l->newest)
        l->newest->newer = k;
    else
        l->oldest = k;
    l->newest = k;
}

/* An empty kind that stands nowhere: where there are too many, the least recently used one. */
static struct kind *learn_make_room(struct learn *l)
{
    struct kind *k = l->oldest;
    if (map_count(l->kinds) < LEARN_KINDS || !k)
        return xcalloc(1, sizeof(*k));
    unlink_kind(l, k);
    (void)map_remove(l->kinds, k->key); /* it is k */
    free(k->key);
    *k = (struct kind){0};
    return k;
}

static struct kind *use_kind(struct learn *l, const char *key)
{
    struct kind *k = map_find(l->kinds, key);
    if (k) {
        unlink_kind(l, k);
    } else {
        k = learn_make_room(l);
        k->key = xstrdup(key);
        (void)map_set(l->kinds, key, k); /* it was not there */
    }
    link_newest(l, k);
    return k;
}

/* ---- runs ---- */

/* The first place whose value is not below v. */
static int learn_place_of(const struct sorted *s, float v)
{
    int low = 0, high = s->n;
    while (low < high) {
        int mid = (low + high) / 2;
        if (s->v[mid] < v)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void sorted_add(struct sorted *s, float v)
{
    int i = learn_place_of(s, v);
    memmove(&s->v[i + 1], &s->v[i], (size_t)(s->n - i) * sizeof(s->v[0]));
    s->v[i] = v;
    s->n++;
}

static void sorted_remove(struct sorted *s, float v)
{
    int i = learn_place_of(s, v);
    s->n--;
    memmove(&s->v[i], &s->v[i + 1], (size_t)(s->n - i) * sizeof(s->v[0]));
}

static void kind_add(struct kind *k, float ran, float share)
{
    int i = k->next;
    if (k->n == LEARN_RUNS) {
        sorted_remove(&k->spans, k->ran[i]);
        if (k->share[i] >= 0)
            sorted_remove(&k->shares, k->share[i]);
    } else {
        k->n++;
    }
    k->ran[i] = ran;
    k->share[i] = share;
    sorted_add(&k->spans, ran);
    if (share >= 0)
        sorted_add(&k->shares, share);
    k->next = (i + 1) % LEARN_RUNS;
}

void learn_add(struct learn *l, const struct learn_kind *k, usec_t ran)
{
    _cleanup_(buf_release) struct buf b = BUF_INIT(KEY_MAX);
    double seconds = (double)ran / 1e6;
    double share = k->limit ? (double)ran / (double)k->limit : -1;
    for (int level = 0; level < LEVELS; level++) {
        const char *key = learn_key_of(&b, k, level);
        if (key)
            kind_add(use_kind(l, key), (float)seconds, (float)(share > 1 ? 1 : share));
    }
}

/* ---- the answer ---- */

/* Between the runs, as if there were one more: few runs give a wide answer. */
static double quantile(const struct sorted *s, double q)
{
    double at = q * (s->n + 1) - 1;
    if (at <= 0)
        return (double)s->v[0];
    if (at >= s->n - 1)
        return (double)s->v[s->n - 1];
    int i = (int)at;
    double low = (double)s->v[i], high = (double)s->v[i + 1];
    return low + (at - i) * (high - low);
}

/* Which of two lists is wider, counted in factors: a zero counts as a second, a share as 0.001. */
static double width(const struct sorted *s, double least)
{
    double low = quantile(s, 0.1), high = quantile(s, 0.9);
    return (high > least ? high : least) / (low > least ? low : least);
}

static bool learn_answer(const struct kind *k, usec_t limit, usec_t *ret_p50, usec_t *ret_p90)
{
    if (k->n < LEARN_ENOUGH)
        return false;
    const struct sorted *s = &k->spans;
    double unit = 1e6;
    if (limit && k->shares.n >= LEARN_ENOUGH && width(&k->shares, 0.001) < width(&k->spans, 1)) {
        s = &k->shares;
        unit = (double)limit;
    }
    usec_t p50 = (usec_t)(quantile(s, 0.5) * unit), p90 = (usec_t)(quantile(s, 0.9) * unit);
    p50 = p50 ? p50 : 1;
    p90 = p90 > p50 ? p90 : p50;
    *ret_p50 = limit && p50 > limit ? limit : p50;
    *ret_p90 = limit && p90 > limit ? limit : p90;
    return true;
}

bool learn_expect(const struct learn *l,
                  const struct learn_kind *k,
                  usec_t *ret_p50,
                  usec_t *ret_p90)
{
    _cleanup_(buf_release) struct buf b = BUF_INIT(KEY_MAX);
    for (int level = 0; level < LEVELS; level++) {
        const char *key = learn_key_of(&b, k, level);
        const struct kind *found = key ? map_find(l->kinds, key) : NULL;
        if (found && learn_answer(found, k->limit, ret_p50, ret_p90))
            return true;
    }
    return false;
}

/* ---- check ---- */

static const char *check_sorted(const struct sorted *s, const float *ring, int n)
{
    int held = 0;
    for (int i = 0; i < n; i++) {
        if (ring[i] < 0)
            continue;
        int at = learn_place_of(s, ring[i]);
        held++;
        if (at == s->n || s->v[at] > ring[i])
            return "a run of the ring is not in its sorted list";
    }
    if (held != s->n)
        return "a sorted list holds another number of runs than the ring";
    for (int i = 1; i < s->n; i++)
        if (s->v[i - 1] > s->v[i])
            return "a sorted list is out of order";
    return NULL;
}

const char *learn_check(const struct learn *l)
{
    size_t n = 0;
    const struct kind *newer = NULL;
    for (const struct kind *k = l->newest; k; newer = k, k = k->older, n++) {
        if (k->newer != newer)
            return "the line of use is broken";
        if (map_find(l->kinds, k->key) != k)
            return "a kind is not in the map";
        const char *wrong = check_sorted(&k->spans, k->ran, k->n);
        wrong = wrong ? wrong : check_sorted(&k->shares, k->share, k->n);
        if (wrong)
            return wrong;
    }
    if (l->oldest != newer)
        return "the line of use does not end at the oldest";
    if (n != map_count(l->kinds) || n > LEARN_KINDS)
        return "kinds are lost or too many";
    return NULL;
}
