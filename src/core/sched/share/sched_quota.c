/* SPDX-License-Identifier: Apache-2.0 */
/* sched_quota.c - accounts; see sched_quota.h.
 *
 * Usage is integrated lazily: `month` and `decayed` hold until `at`, and since then the account
 * has leased what it leases now. */
#include "core/sched/share/sched_quota.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/sched/line/sched_queue.h"

/* ---- by name ---- */

struct account_key {
    enum sched_account kind;
    const char *name;
};

static bool account_is(const struct sched *s, uint32_t i, const void *key)
{
    const struct account_key *k = key;
    return account_at(s, i)->kind == k->kind && !strcmp(account_at(s, i)->name, k->name);
}

static uint64_t account_hash(const struct sched *s, enum sched_account kind, const char *name)
{
    return hash_keyed(s->seed, name, strlen(name)) + kind;
}

uint32_t account_find(const struct sched *s, enum sched_account kind, const char *name)
{
    struct account_key key = {kind, name};
    return index_find(&s->account_of, s, account_hash(s, kind, name), account_is, &key);
}

uint32_t account_take(struct sched *s, enum sched_account kind, const char *name)
{
    uint32_t i = account_find(s, kind, name);
    if (!i) {
        i = rows_take(&s->accounts);
        struct account *a = account_at(s, i);
        a->kind = kind;
        a->name = xstrdup(name);
        a->at = s->now;
        index_add(&s->account_of, account_hash(s, kind, name), i);
    }
    account_at(s, i)->refs++;
    return i;
}

/* An account that has used GPU time is remembered. */
void account_give(struct sched *s, uint32_t account)
{
    struct account *a = account_at(s, account);
    if (--a->refs || a->has_quota || a->month > 0 || a->decayed > 0)
        return;
    index_remove(&s->account_of, account_hash(s, a->kind, a->name), account);
    free(a->name);
    rows_give(&s->accounts, account);
}

/* ---- usage ---- */

static const double HALF_LIFE = 7 * 86400.0; /* seconds: of what fair share remembers */
static const double AHEAD = 3600; /* what a job that starts is charged at once, seconds */

/* Days since 1970 of the first day of the month of this day. Civil calendar, by Howard Hinnant. */
static int64_t month_of(usec_t at)
{
    int64_t day = (int64_t)(at / USEC_DAY), z = day + 719468;
    int64_t era = z / 146097, of_era = z - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t of_month = of_year - (153 * ((5 * of_year + 2) / 153) + 2) / 5;
    return day - of_month;
}

static double held_gpus(const struct account *a)
{
    return (double)a->gpus / UNIT;
}

double account_month(const struct account *a, usec_t now)
{
    if (now <= a->at)
        return a->month;
    usec_t begin = (usec_t)month_of(now) * USEC_DAY;
    if (a->at < begin) /* a new month since: what was before does not count */
        return held_gpus(a) * (double)(now - begin) / USEC_SEC;
    return a->month + held_gpus(a) * (double)(now - a->at) / USEC_SEC;
}

double account_decayed(const struct account *a, usec_t now)
{
    if (now <= a->at)
        return a->decayed;
    double left = exp2(-(double)(now - a->at) / USEC_SEC / HALF_LIFE);
    return a->decayed * left + held_gpus(a) * (HALF_LIFE / M_LN2) * (1 - left);
}

static void sched_quota_settle(struct account *a, usec_t now)
{
    if (now <= a->at)
        return;
    a->month = account_month(a, now);
    a->decayed = account_decayed(a, now);
    a->at = now;
}

void account_charge(struct sched *s,
                    uint32_t account,
                    const struct amounts *taken,
                    int sign,
                    usec_t now)
{
    struct account *a = account_at(s, account);
    sched_quota_settle(a, now);
    a->gpus += sign * taken->gpus;
    a->cpus += sign * taken->cpus;
    a->memory += sign * taken->memory;
    a->running += sign;
    a->claims_stale = true;
    a->standing_known = false;
}

static double sched_quota_share_of(const struct account *a)
{
    return !a->has_quota ? 1 : a->quota.share > 1e-6 ? a->quota.share : 1e-6;
}

double account_standing(struct account *a, usec_t now)
{
    if (!a->standing_known || a->standing_at != now) {
        a->standing = (account_decayed(a, now) + held_gpus(a) * AHEAD) / sched_quota_share_of(a);
        a->standing_at = now;
        a->standing_known = true;
    }
    return a->standing;
}

double account_step(const struct account *a, int64_t gpus)
{
    return (double)gpus / UNIT * AHEAD / sched_quota_share_of(a);
}

void sched_usage(const struct sched *s,
                 enum sched_account kind,
                 const char *name,
                 usec_t now,
                 struct sched_usage *ret)
{
    *ret = (struct sched_usage){0};
    uint32_t i = account_find(s, kind, name);
    if (!i)
        return;
    const struct account *a = account_at(s, i);
    double guaranteed = a->has_quota ? fmax(0, a->quota.gpus_guaranteed) : 0;
    *ret = (struct sched_usage){.gpus = held_gpus(a),
                                .gpus_borrowed = fmax(0, held_gpus(a) - guaranteed),
                                .cpus = (double)a->cpus / UNIT,
                                .memory = (double)a->memory / UNIT,
                                .running = a->running,
                                .queued = a->queued,
                                .gpu_seconds_month = account_month(a, now),
                                .gpu_seconds_decayed = account_decayed(a, now)};
}

void sched_restore_usage(struct sched *s,
                         enum sched_account kind,
                         const char *name,
                         double gpu_seconds_month,
                         double gpu_seconds_decayed,
                         usec_t at)
{
    uint32_t i = account_take(s, kind, name);
    struct account *a = account_at(s, i);
    a->month = fmax(0, gpu_seconds_month);
    a->decayed = fmax(0, gpu_seconds_decayed);
    a->at = at;
    a->standing_known = false;
    account_give(s, i);
    changed(s);
}

/* ---- limits ---- */

static bool over(double limit, int64_t amount)
{
    return limit >= 0 && (double)amount > limit * UNIT + 0.5;
}

static const char *account_blocks(const struct account *a, const struct shape *shape, usec_t now)
{
    const struct sched_quota *q = &a->quota;
    if (!a->has_quota)
        return NULL;
    if (q->running >= 0 && a->running >= q->running)
        return "quota_running";
    if (shape->gpus && over(q->gpus_ceiling, a->gpus + shape->gpus))
        return "quota_gpus";
    if (over(q->cpus, a->cpus + shape->cpus))
        return "quota_cpus";
    if (shape->memory && over(q->memory, a->memory + shape->memory))
        return "quota_memory";
    if (shape->gpus && q->gpu_hours_per_month >= 0 &&
        account_month(a, now) >= q->gpu_hours_per_month * 3600)
        return "quota_gpu_hours";
    return NULL;
}

const char *quota_blocks(const struct sched *s,
                         uint32_t project,
                         uint32_t user,
                         const struct shape *shape,
                         usec_t now,
                         uint32_t *ret_account)
{
    const uint32_t both[] = {project, user};
    for (size_t i = 0; i < array_len(both); i++) {
        const char *code = account_blocks(account_at(s, both[i]), shape, now);
        if (!code)
            continue;
        *ret_account = both[i];
        return code;
    }
    return NULL;
}

int account_ceiling(const struct sched *s, uint32_t project, uint32_t user, int priority)
{
    const uint32_t both[] = {project, user};
    priority = priority < 0 ? 0 : priority > 100 ? 100 : priority;
    for (size_t i = 0; i < array_len(both); i++) {
        const struct account *a = account_at(s, both[i]);
        if (a->has_quota && a->quota.priority_ceiling >= 0 && priority > a->quota.priority_ceiling)
            priority = a->quota.priority_ceiling;
    }
    return priority;
}

int64_t account_guaranteed(const struct account *a)
{
    double guaranteed = a->has_quota ? a->quota.gpus_guaranteed : 0;
    return guaranteed <= 0 ? 0 : llround(fmin(guaranteed, 1e8) * UNIT);
}

static void list_guarantees(struct sched *s)
{
    s->guaranteed.n = 0;
    for (uint32_t i = 1; i < s->accounts.n; i++)
        if (row_is_used(&s->accounts, i) &&
            (account_at(s, i)->claims || account_guaranteed(account_at(s, i)) > 0))
            numbers_add(&s->guaranteed, i);
}

void sched_set_quota(struct sched *s,
                     enum sched_account kind,
                     const char *name,
                     const struct sched_quota *q)
{
    uint32_t i = account_take(s, kind, name);
    struct account *a = account_at(s, i);
    a->has_quota = q != NULL;
    a->quota = q ? *q : (struct sched_quota){0};
    a->claims_stale = true;
    a->standing_known = false;
    queue_reorder(s, i); /* its jobs may have another level now */
    list_guarantees(s);
    account_give(s, i);
    changed(s);
}

static const char *const kind_words[] = {[SCHED_PROJECT] = "project", [SCHED_USER] = "user"};

static int refuse_ceiling(const struct account *a,
                          const char *limit_key,
                          double limit,
                          const char *asked_key,
                          double asked,
                          struct err *err)
{
    return message_refuse(
        err, ERR_REFUSED, "quota_ceiling",
        MESSAGE_ARGS(MESSAGE_STR("kind", kind_words[a->kind]), MESSAGE_STR("account", a->name),
                     MESSAGE_NUM(limit_key, limit), MESSAGE_NUM(asked_key, asked)));
}

static int refused_by(const struct account *a, const struct demand *d, struct err *err)
{
    const struct sched_quota *q = &a->quota;
    if (!a->has_quota)
        return 0;
    if (q->gpus_ceiling >= 0 && demand_gpus(d) > q->gpus_ceiling + 1e-6)
        return refuse_ceiling(a, "gpus_ceiling", q->gpus_ceiling, "gpus", demand_gpus(d), err);
    if (q->cpus >= 0 && demand_cpus(d) > q->cpus + 1e-6)
        return refuse_ceiling(a, "cpus_ceiling", q->cpus, "cpus", demand_cpus(d), err);
    if (q->memory >= 0 && demand_memory(d) > q->memory + 1e-6)
        return refuse_ceiling(a, "memory_ceiling", q->memory, "memory", demand_memory(d), err);
    if (q->queued < 0 || a->queued < q->queued)
        return 0;
    return message_refuse(
        err, ERR_REFUSED, "quota_queued",
        MESSAGE_ARGS(MESSAGE_STR("kind", kind_words[a->kind]), MESSAGE_STR("account", a->name),
                     MESSAGE_NUM("queued", a->queued), MESSAGE_NUM("limit", q->queued)));
}

int sched_refuses(const struct sched *s,
                  const char *user,
                  const char *project,
                  const struct demand *d,
                  struct err *err)
{
    const uint32_t both[] = {account_find(s, SCHED_PROJECT, str_or(project, "")),
                             account_find(s, SCHED_USER, str_or(user, ""))};
    int r = 0;
    for (size_t i = 0; i < array_len(both) && r == 0; i++)
        r = both[i] ? refused_by(account_at(s, both[i]), d, err) : 0;
    return r;
}

/* ---- invariants ---- */

struct sums {
    int64_t gpus, cpus, memory, leaving;
    int running, queued, claims;
};

static void add_lease(struct sums *v, const struct lease *l)
{
    v->gpus += l->gpus;
    v->cpus += l->cpus;
    v->memory += l->f.memory;
    v->leaving += l->leaving ? l->gpus : 0;
    v->running++;
}

static void add_waiting(struct sums *v, const struct waiting *w)
{
    v[w->f.project].queued++;
    v[w->f.project].claims += w->claims >> SCHED_PROJECT & 1;
    v[w->f.user].queued++;
    v[w->f.user].claims += w->claims >> SCHED_USER & 1;
}

static bool sums_are(const struct account *a, const struct sums *v)
{
    return a->gpus == v->gpus && a->cpus == v->cpus && a->memory == v->memory &&
           a->gpus_leaving == v->leaving && a->running == v->running && a->queued == v->queued &&
           a->claims == v->claims && a->refs == (uint32_t)(v->running + v->queued);
}

const char *quota_check(const struct sched *s)
{
    struct sums *v = xcalloc(s->accounts.n, sizeof(*v));
    const char *broken = NULL;
    for (uint32_t i = 1; i < s->leases.n; i++)
        if (row_is_used(&s->leases, i)) {
            add_lease(&v[lease_at(s, i)->f.project], lease_at(s, i));
            add_lease(&v[lease_at(s, i)->f.user], lease_at(s, i));
        }
    for (uint32_t i = 1; i < s->waiting.n; i++)
        if (row_is_used(&s->waiting, i)) {
            add_waiting(v, waiting_at(s, i));
        }
    for (uint32_t i = 1; i < s->accounts.n && !broken; i++)
        if (row_is_used(&s->accounts, i) && !sums_are(account_at(s, i), &v[i]))
            broken = "an account's sums are those of its leases and waiting jobs";
    free(v);
    return broken;
}
