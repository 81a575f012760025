/* SPDX-License-Identifier: Apache-2.0 */
/* storage.c - sums over rows of snapshots and registry, and the sentence of a refusal; see
 * storage.h. */
#include "argusd/content/storage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/archive/archives.h"
#include "argusd/content/registry.h"
#include "argusd/content/snapshots.h"
#include "argusd/people/people.h"
#include "base/map.h"
#include "base/str.h"
#include "base/text.h"

enum { SIZE_MAX_TEXT = 32 };

/* The sum of one account, while it is made. */
struct sum {
    const char *user, *project; /* one of them is NULL */
    uint64_t bytes;
    uint64_t most;                       /* of the largest one, */
    char largest[REGISTRY_REF_MAX + 32]; /* which is this; "" = there is none */
};

static const char *storage_size_text(uint64_t bytes, char ret[static SIZE_MAX_TEXT])
{
    double n = (double)bytes;
    const char *unit = text_bytes_unit(&n);
    text_printf_to(ret, SIZE_MAX_TEXT, bytes < 1024 ? "%.0f bytes" : "%.4g %s", n, unit);
    return ret;
}

/* ---- what there is ---- */

static void storage_add(struct sum *x, uint64_t bytes, const char *kind, const char *name)
{
    x->bytes += bytes;
    if (bytes <= x->most)
        return;
    x->most = bytes;
    text_printf(x->largest, "%s '%s'", kind, name);
}

static const char *payer_of(const struct snapshot *s)
{
    return s->user ? s->user : s->actor;
}

static void add_snapshots(const struct storage *st, struct sum *x)
{
    static const unsigned char seed[16] = {0}; /* hashes of content: nobody chooses them */
    struct map *seen = map_new(seed);
    struct snapshot *s;
    for (size_t pos = 0; (s = snapshots_next(st->snapshots, &pos));)
        if (!s->leaving && str_eq(payer_of(s), x->user) && !map_set(seen, s->hash, s))
            storage_add(x, s->bytes, "snapshot", s->ref);
    map_free(seen);
}

static void add_entries(const struct storage *st, enum registry_kind kind, struct sum *x)
{
    struct registry_entry *e;
    char ref[REGISTRY_REF_MAX];
    for (size_t pos = 0; (e = registry_next(st->registry, kind, &pos));) {
        bool is_theirs = x->user ? str_eq(e->owner, x->user) : str_eq(e->project, x->project);
        if (is_theirs && !e->in_place && e->bytes > 0 && e->state != REGISTRY_removing)
            storage_add(x, (uint64_t)e->bytes, registry_kind_name(kind), registry_ref(e, ref));
    }
}

static void storage_sum_up(const struct storage *st, struct sum *x)
{
    if (st->snapshots && x->user)
        add_snapshots(st, x);
    x->bytes += archives_bytes(st->archives, x->user, x->project);
    for (int kind = 0; st->registry && kind < REGISTRY_KINDS; kind++)
        add_entries(st, (enum registry_kind)kind, x);
}

uint64_t storage_used(const struct storage *s, const char *user, const char *project)
{
    struct sum x = {.user = user, .project = project};
    storage_sum_up(s, &x);
    return x.bytes;
}

bool storage_has_content(const struct storage *st, const char *user, const char *hash)
{
    struct snapshot *s;
    for (size_t pos = 0; st->snapshots && (s = snapshots_next(st->snapshots, &pos));)
        if (!s->leaving && !strcmp(s->hash, hash) && str_eq(payer_of(s), user))
            return true;
    return false;
}

/* ---- against the quota ---- */

/* False: it has none. */
static bool limit_of(const struct storage *st, const struct sum *x, uint64_t *ret)
{
    const struct person *u = x->user ? people_find(st->people, x->user) : NULL;
    const struct project *p = x->project ? people_find_project(st->people, x->project) : NULL;
    double gib = u ? u->quota.storage : p ? p->quota.storage : -1;
    if (gib < 0)
        return false;
    *ret = (uint64_t)(gib * (double)(1ULL << 30));
    return true;
}

static int storage_refuse(const struct sum *x, uint64_t limit, uint64_t more, struct err *err)
{
    char used[SIZE_MAX_TEXT], may[SIZE_MAX_TEXT], comes[SIZE_MAX_TEXT], large[SIZE_MAX_TEXT];
    return message_refuse(
        err, ERR_REFUSED, "quota_storage",
        MESSAGE_ARGS(MESSAGE_STR("kind", x->user ? "user" : "project"),
                     MESSAGE_STR("account", x->user ? x->user : x->project),
                     MESSAGE_NUM("own", x->user ? 1 : 0),
                     MESSAGE_STR("used", storage_size_text(x->bytes, used)),
                     MESSAGE_STR("limit", storage_size_text(limit, may)),
                     MESSAGE_STR("more", more ? storage_size_text(more, comes) : ""),
                     MESSAGE_STR("largest", x->largest),
                     MESSAGE_STR("takes", *x->largest ? storage_size_text(x->most, large) : "")));
}

/* His own first, then that of the project. */
static void accounts_of(const char *user, const char *project, struct sum ret[static 2])
{
    ret[0] = (struct sum){.user = user};
    ret[1] = (struct sum){.project = project && *project ? project : NULL};
}

static uint64_t left_of(const struct storage *st, struct sum *x, uint64_t *ret_limit)
{
    if ((!x->user && !x->project) || !limit_of(st, x, ret_limit))
        return UINT64_MAX;
    storage_sum_up(st, x);
    return *ret_limit > x->bytes ? *ret_limit - x->bytes : 0;
}

uint64_t storage_left(const struct storage *s, const char *user, const char *project)
{
    struct sum x[2];
    uint64_t limit, own, shared;
    accounts_of(user, project, x);
    own = left_of(s, &x[0], &limit);
    shared = left_of(s, &x[1], &limit);
    return own < shared ? own : shared;
}

int storage_check(const struct storage *s,
                  const char *user,
                  const char *project,
                  uint64_t more,
                  struct err *err)
{
    struct sum x[2];
    accounts_of(user, project, x);
    for (size_t i = 0; i < array_len(x); i++) {
        uint64_t limit, left = left_of(s, &x[i], &limit);
        if (left && left >= more)
            continue;
        return storage_refuse(&x[i], limit, more, err);
    }
    return 0;
}

char *storage_keep(const struct storage *s, const char *user, const char *project)
{
    struct sum x[2];
    uint64_t limit[2] = {0}, left[2];
    accounts_of(user, project, x);
    for (size_t i = 0; i < array_len(x); i++)
        left[i] = left_of(s, &x[i], &limit[i]);
    size_t least = left[1] < left[0];
    struct err err = {0};
    if (left[least] < UINT64_MAX)
        (void)storage_refuse(&x[least], limit[least], 0, &err); /* only fills err */
    return err.code ? message_keep(&err) : NULL;
}
