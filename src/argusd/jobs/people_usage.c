/* SPDX-License-Identifier: Apache-2.0 */
/* people_usage.c - see people_usage.h. An account is known here once it held a lease, in this
 * life or in one before; entries of kind "usage" are named "user/<name>" and "project/<name>". */
#include "argusd/jobs/people_usage.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/map.h"
#include "base/str.h"

enum { EVERY_MS = 60000, BODY_MAX = 4096 };

struct account {
    enum sched_account kind;
    char *key;             /* "user/alice" */
    double month, decayed; /* GPU-seconds, as stored */
    usec_t at;             /* when that was */
};

struct people_usage {
    struct store *store;
    const struct jobs *jobs; /* NULL before the start */
    struct map *accounts;    /* by key */
    uv_timer_t timer;
    bool has_timer;
};

static const char *people_usage_name_of(const struct account *a)
{
    return strchr(a->key, '/') + 1;
}

struct people_usage *people_usage_new(struct store *store)
{
    unsigned char seed[16];
    struct people_usage *u = xcalloc(1, sizeof(*u));
    random_bytes(seed, sizeof(seed));
    u->store = store;
    u->accounts = map_new(seed);
    return u;
}

void people_usage_free(struct people_usage *u)
{
    struct account *a;
    if (!u)
        return;
    for (size_t pos = 0; (a = map_next(u->accounts, &pos, NULL));) {
        free(a->key);
        free(a);
    }
    map_free(u->accounts);
    free(u);
}

static struct account *ensure(struct people_usage *u, enum sched_account kind, const char *key)
{
    struct account *a = map_find(u->accounts, key);
    if (a)
        return a;
    a = xcalloc(1, sizeof(*a));
    *a = (struct account){.kind = kind, .key = xstrdup(key)};
    map_set(u->accounts, key, a);
    return a;
}

/* ---- at start ---- */

void people_usage_restore_entry(struct people_usage *u, const struct store_entry *entry)
{
    _cleanup_(json_unrefp) json_t *body = NULL;
    bool is_user = str_starts(entry->name, "user/");
    if ((!is_user && !str_starts(entry->name, "project/")) ||
        json_parse(entry->body, strlen(entry->body), BODY_MAX, &body, NULL) < 0)
        return; /* none of ours: nothing was used */
    struct account *a = ensure(u, is_user ? SCHED_USER : SCHED_PROJECT, entry->name);
    a->month = json_get_real(body, "gpu_seconds_month", 0);
    a->decayed = json_get_real(body, "gpu_seconds_decayed", 0);
    a->at = entry->at;
}

void people_usage_restored(struct people_usage *u, struct sched *sched)
{
    const struct account *a;
    for (size_t pos = 0; (a = map_next(u->accounts, &pos, NULL));)
        sched_restore_usage(sched, a->kind, people_usage_name_of(a), a->month, a->decayed, a->at);
}

/* ---- from then on ---- */

static void people_usage_save(struct people_usage *u, struct account *a)
{
    usec_t now = jobs_now(u->jobs);
    struct sched_usage used;
    sched_usage(jobs_sched(u->jobs), a->kind, people_usage_name_of(a), now, &used);
    /* What only decays is right without being written. */
    bool grew = used.gpu_seconds_month > a->month || used.gpu_seconds_month < a->month;
    if (!grew)
        return;
    struct buf body = BUF_INIT(BODY_MAX);
    struct jout j = jout_begin(&body);
    jout_open(&j, NULL, '{');
    jout_real(&j, "gpu_seconds_month", used.gpu_seconds_month);
    jout_real(&j, "gpu_seconds_decayed", used.gpu_seconds_decayed);
    jout_close(&j, '}');
    struct store_entry entry = {
        .kind = PEOPLE_USAGE_ENTRY, .name = a->key, .body = buf_str(&body), .at = now};
    store_put_entry(u->store, &entry);
    a->month = used.gpu_seconds_month;
    a->decayed = used.gpu_seconds_decayed;
    a->at = now;
    buf_release(&body);
}

static void people_usage_on_timer(uv_timer_t *t)
{
    struct people_usage *u = t->data;
    struct account *a;
    if (store_is_failing(u->store))
        return; /* the next one has it all */
    for (size_t pos = 0; (a = map_next(u->accounts, &pos, NULL));)
        people_usage_save(u, a);
}

void people_usage_start(struct people_usage *u, uv_loop_t *loop, const struct jobs *jobs)
{
    u->jobs = jobs;
    (void)uv_timer_init(loop, &u->timer); /* cannot fail, as below */
    u->timer.data = u;
    u->has_timer = true;
    (void)uv_timer_start(&u->timer, people_usage_on_timer, EVERY_MS, EVERY_MS);
}

void people_usage_close(struct people_usage *u)
{
    if (!u || !u->has_timer)
        return;
    people_usage_on_timer(&u->timer);
    u->has_timer = false;
    u->jobs = NULL;
    uv_close((uv_handle_t *)&u->timer, NULL);
}

static void each_of(struct people_usage *u, const struct job *job, bool must_save)
{
    _cleanup_(freep) char *user = xasprintf("user/%s", job->user);
    _cleanup_(freep) char *project = xasprintf("project/%s", job->project);
    struct account *accounts[] = {ensure(u, SCHED_USER, user), ensure(u, SCHED_PROJECT, project)};
    for (size_t i = 0; must_save && u->jobs && i < array_len(accounts); i++)
        people_usage_save(u, accounts[i]);
}

void people_usage_begin(struct people_usage *u, const struct job *job)
{
    each_of(u, job, false);
}

void people_usage_end(struct people_usage *u, const struct job *job)
{
    each_of(u, job, true);
}
