/* SPDX-License-Identifier: Apache-2.0 */
/* sched_hosts.c - the node table; see sched_hosts.h.
 *
 * Invariant: a host that may be used is in exactly one kind, in the bit row of its free slots;
 * a pool lists exactly the kinds that carry all of its labels. Kinds are made anew when labels,
 * networks or usability change; leases only move hosts between bit rows. */
#include "core/sched/place/sched_hosts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/str.h"

static bool sched_hosts_same(double a, double b)
{
    return a <= b && a >= b;
}

/* ---- hosts by name ---- */

struct name {
    const char *text;
    size_t len;
};

static bool host_is(const struct sched *s, uint32_t i, const void *key)
{
    const struct name *n = key;
    const char *name = host_at(s, i)->name;
    return !strncmp(name, n->text, n->len) && !name[n->len];
}

uint32_t host_find(const struct sched *s, const char *name, size_t len)
{
    struct name key = {name, len};
    return index_find(&s->host_of, s, hash_keyed(s->seed, name, len), host_is, &key);
}

uint32_t host_take(struct sched *s, const char *name, size_t len)
{
    uint32_t i = host_find(s, name, len);
    if (i)
        return i;
    i = rows_take(&s->hosts);
    struct host *h = host_at(s, i);
    h->name = xstrndup(name, len);
    h->labels = xstrdup("");
    h->network = xstrdup("");
    h->versions = xstrdup("");
    h->why_not = xstrdup("");
    h->only = xstrdup("");
    h->stamp = ++s->tick;
    index_add(&s->host_of, hash_keyed(s->seed, name, len), i);
    return i;
}

static void host_release(struct host *h)
{
    free(h->name);
    free(h->labels);
    free(h->network);
    free(h->versions);
    free(h->why_not);
    free(h->only);
}

void host_drop_unused(struct sched *s, uint32_t host)
{
    struct host *h = host_at(s, host);
    if (h->listed || h->first_part)
        return;
    index_remove(&s->host_of, hash_keyed(s->seed, h->name, strlen(h->name)), host);
    host_release(h);
    rows_give(&s->hosts, host);
}

void hosts_release(struct sched *s)
{
    for (uint32_t i = 1; i < s->hosts.n; i++)
        if (row_is_used(&s->hosts, i))
            host_release(host_at(s, i));
}

/* ---- free slots ---- */

static uint64_t slot_mask(int n)
{
    return n >= MAX_SLOTS ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

static int sched_hosts_count_free(const struct host *h)
{
    int n = __builtin_popcountll(~h->busy & slot_mask(h->n_slots)) - h->held_slots - h->lost;
    return n < 0 ? 0 : n;
}

static void set_bit(struct sched *s, const struct host *h, bool on)
{
    struct kind *k = &s->kinds[h->kind];
    uint64_t *word = &k->bits[(size_t)h->free * k->words + h->place / 64];
    uint64_t bit = (uint64_t)1 << (h->place % 64);
    *word = on ? *word | bit : *word & ~bit;
    k->count[h->free] += on ? 1 : -1U;
}

void host_touch(struct sched *s, uint32_t host, bool came_free)
{
    struct host *h = host_at(s, host);
    int n = sched_hosts_count_free(h);
    h->stamp = ++s->tick;
    if (h->kind && n != h->free)
        set_bit(s, h, false);
    bool moved = n != h->free;
    h->free = n;
    if (!h->kind)
        return;
    if (moved)
        set_bit(s, h, true);
    const struct numbers *pools = &s->kinds[h->kind].pools;
    for (size_t i = 0; came_free && i < pools->n; i++)
        pool_at(s, pools->v[i])->grown = s->tick;
}

/* ---- kinds ---- */

struct kind_key {
    const char *labels, *network, *versions, *only;
};

static bool kind_is(const struct sched *s, uint32_t i, const void *key)
{
    const struct kind_key *k = key;
    const struct kind *is = &s->kinds[i];
    return !strcmp(is->labels, k->labels) && !strcmp(is->network, k->network) &&
           !strcmp(is->versions, k->versions) && !strcmp(is->only, k->only);
}

static void kind_release(struct kind *k)
{
    free(k->labels);
    free(k->network);
    free(k->versions);
    free(k->only);
    free(k->hosts);
    free(k->bits);
    numbers_release(&k->pools);
}

void kinds_release(struct sched *s)
{
    for (uint32_t i = 1; i < s->n_kinds; i++)
        kind_release(&s->kinds[i]);
    free(s->kinds);
    s->kinds = NULL;
    s->n_kinds = 0;
}

static uint32_t kind_take(struct sched *s, struct index *by_key, const struct host *h)
{
    struct kind_key key = {h->labels, h->network, h->versions, h->only};
    uint64_t hash = hash_keyed(s->seed, h->labels, strlen(h->labels)) ^
                    mix64(hash_keyed(s->seed, h->network, strlen(h->network)) ^
                          mix64(hash_keyed(s->seed, h->versions, strlen(h->versions))));
    uint32_t i = index_find(by_key, s, hash, kind_is, &key);
    if (i)
        return i;
    i = s->n_kinds++;
    s->kinds = xrealloc(s->kinds, s->n_kinds, sizeof(*s->kinds));
    s->kinds[i] = (struct kind){.labels = xstrdup(h->labels),
                                .network = xstrdup(h->network),
                                .versions = xstrdup(h->versions),
                                .only = xstrdup(h->only)};
    index_add(by_key, hash, i);
    return i;
}

bool pool_suits(const struct pool *p, const char *labels, const char *only, const char *versions)
{
    bool has =
        *only ? *p->text && str_list_has_all(only, p->text) : str_list_has_all(labels, p->text);
    return has && (!*p->needs || !needs_find_unmet(p->needs, versions, NULL));
}

static void pool_find_kinds(struct sched *s, uint32_t pool)
{
    struct pool *p = pool_at(s, pool);
    p->kinds.n = 0;
    for (uint32_t i = 1; i < s->n_kinds; i++)
        if (pool_suits(p, s->kinds[i].labels, s->kinds[i].only, s->kinds[i].versions)) {
            numbers_add(&p->kinds, i);
            numbers_add(&s->kinds[i].pools, pool);
        }
    p->grown = s->tick;
}

static void fill_kinds(struct sched *s)
{
    for (uint32_t i = 1; i < s->n_kinds; i++) {
        struct kind *k = &s->kinds[i];
        k->words = (k->n + 63) / 64;
        k->hosts = xcalloc(k->n, sizeof(*k->hosts));
        k->bits = xcalloc((size_t)k->words * (MAX_SLOTS + 1), sizeof(*k->bits));
        k->n = 0;
    }
    for (uint32_t i = 1; i < s->hosts.n; i++) {
        struct host *h = row_is_used(&s->hosts, i) ? host_at(s, i) : NULL;
        if (!h || !h->kind)
            continue;
        struct kind *k = &s->kinds[h->kind];
        h->place = k->n;
        k->hosts[k->n++] = i;
        h->free = sched_hosts_count_free(h);
        set_bit(s, h, true);
    }
}

static void make_kinds(struct sched *s)
{
    struct index by_key = {0};
    kinds_release(s);
    s->kinds = xcalloc(1, sizeof(*s->kinds));
    s->n_kinds = 1;
    for (uint32_t i = 1; i < s->hosts.n; i++) {
        struct host *h = row_is_used(&s->hosts, i) ? host_at(s, i) : NULL;
        if (!h)
            continue;
        h->kind = h->usable && h->listed ? kind_take(s, &by_key, h) : 0;
        s->kinds[h->kind].n += h->kind != 0;
    }
    index_release(&by_key);
    fill_kinds(s);
    s->tick++;
    for (uint32_t i = 1; i < s->pools.n; i++)
        if (row_is_used(&s->pools, i))
            pool_find_kinds(s, i);
}

void kinds_copy(struct sched *dst, const struct sched *src)
{
    dst->kinds = xcalloc(src->n_kinds, sizeof(*dst->kinds));
    for (uint32_t i = 1; i < src->n_kinds; i++) {
        const struct kind *a = &src->kinds[i];
        struct kind *b = &dst->kinds[i];
        size_t words = (size_t)a->words * (MAX_SLOTS + 1);
        *b = *a;
        b->labels = xstrdup(a->labels);
        b->network = xstrdup(a->network);
        b->versions = xstrdup(a->versions);
        b->only = xstrdup(a->only);
        b->hosts = xcalloc(a->n, sizeof(*b->hosts));
        memcpy(b->hosts, a->hosts, a->n * sizeof(*b->hosts));
        b->bits = xcalloc(words, sizeof(*b->bits));
        memcpy(b->bits, a->bits, words * sizeof(*b->bits));
        numbers_copy(&b->pools, &a->pools);
    }
}

bool hosts_each(const struct sched *s,
                uint32_t pool,
                const char *network,
                int least,
                hosts_f f,
                void *arg)
{
    const struct numbers *kinds = &pool_at(s, pool)->kinds;
    for (int free = least; free <= MAX_SLOTS; free++)
        for (size_t i = 0; i < kinds->n; i++) {
            const struct kind *k = &s->kinds[kinds->v[i]];
            if (!k->count[free] || (network && strcmp(network, k->network) != 0))
                continue;
            const uint64_t *bits = &k->bits[(size_t)free * k->words];
            for (uint32_t w = 0; w < k->words; w++)
                for (uint64_t word = bits[w]; word; word &= word - 1)
                    if (f(arg, k->hosts[w * 64 + (uint32_t)__builtin_ctzll(word)]))
                        return true;
        }
    return false;
}

/* ---- the table as told ---- */

enum host_change { HOST_SAME = 0, HOST_AMOUNTS = 1, HOST_KIND = 2 };

static bool text_changed(char **have, const char *want)
{
    if (!strcmp(*have, str_or(want, "")))
        return false;
    set_str(have, str_or(want, ""));
    return true;
}

static int64_t sched_hosts_units(double amount)
{
    return amount <= 0 ? 0 : amount > 1e8 ? (int64_t)1e12 : llround(amount * UNIT);
}

/* Takes the texts that say of what sort the node is: each of them, whatever the others are. */
static bool sched_hosts_kind_changed(struct host *h, const struct sched_node *n)
{
    bool is_relabelled = text_changed(&h->labels, n->pool);
    bool is_rewired = text_changed(&h->network, n->network);
    bool is_other = text_changed(&h->versions, n->versions);
    bool is_shut = text_changed(&h->only, n->only);
    return is_relabelled || is_rewired || is_other || is_shut || !h->listed ||
           h->usable != n->usable;
}

static unsigned update_host(struct host *h, const struct sched_node *n)
{
    unsigned change = sched_hosts_kind_changed(h, n) ? HOST_KIND : HOST_SAME;
    if (!sched_hosts_same(h->gpus, n->gpus) || !sched_hosts_same(h->cpus, n->cpus) ||
        !sched_hosts_same(h->gpus_held, n->gpus_held) ||
        !sched_hosts_same(h->cpus_held, n->cpus_held) || h->shareable != n->shareable ||
        h->slow != n->slow || !sched_hosts_same(h->memory, n->memory))
        change |= HOST_AMOUNTS;
    (void)text_changed(&h->why_not, n->why_not); /* shown only */
    h->gpus = n->gpus;
    h->cpus = n->cpus;
    h->memory = n->memory;
    h->memory_total = n->memory > 0 ? sched_hosts_units(n->memory) : NO_LIMIT;
    h->gpus_held = n->gpus_held;
    h->cpus_held = n->cpus_held;
    h->usable = n->usable;
    h->shareable = n->shareable;
    h->slow = n->slow;
    h->listed = true;
    int64_t slots = sched_hosts_units(n->gpus) / UNIT;
    h->n_slots = slots > MAX_SLOTS ? MAX_SLOTS : (int)slots;
    int64_t held = (sched_hosts_units(n->gpus_held) + UNIT - 1) / UNIT;
    h->held_slots = held > MAX_SLOTS ? MAX_SLOTS : (int)held;
    h->cpus_total = sched_hosts_units(n->cpus) - sched_hosts_units(n->cpus_held);
    return change;
}

/* Hosts in the table get their new values; the others are no longer listed. */
static unsigned update_all(struct sched *s, const struct sched_node *nodes, size_t n)
{
    unsigned change = HOST_SAME;
    bool *seen = xcalloc(s->hosts.n + n + 1, sizeof(*seen));
    s->has_slow = false;
    for (size_t i = 0; i < n; i++) {
        s->has_slow = s->has_slow || nodes[i].slow;
        uint32_t host = host_take(s, nodes[i].name, strlen(nodes[i].name));
        unsigned c = update_host(host_at(s, host), &nodes[i]);
        seen[host] = true;
        if (c)
            host_touch(s, host, true);
        change |= c;
    }
    for (uint32_t i = 1; i < s->hosts.n; i++) {
        struct host *h = row_is_used(&s->hosts, i) ? host_at(s, i) : NULL;
        if (!h || seen[i])
            continue;
        change |= h->listed ? HOST_KIND : HOST_SAME;
        h->listed = h->usable = false;
    }
    free(seen);
    return change;
}

void sched_set_nodes(struct sched *s, const struct sched_node *nodes, size_t n)
{
    unsigned change = update_all(s, nodes, n);
    if (!change)
        return;
    if (change & HOST_KIND) {
        make_kinds(s);
        for (uint32_t i = 1; i < s->hosts.n; i++)
            if (row_is_used(&s->hosts, i))
                host_drop_unused(s, i);
    }
    changed(s);
    s->nodes_stamp = s->tick;
}

void host_set_usable(struct sched *s, uint32_t host)
{
    host_at(s, host)->usable = true;
    make_kinds(s);
    changed(s);
    s->nodes_stamp = s->tick;
}

/* ---- pools ---- */

struct pool_key {
    const char *text, *needs;
};

static bool pool_is(const struct sched *s, uint32_t i, const void *key)
{
    const struct pool *p = pool_at(s, i);
    const struct pool_key *k = key;
    return !strcmp(p->text, k->text) && !strcmp(p->needs, k->needs);
}

static uint64_t pool_hash(const struct sched *s, const char *text, const char *needs)
{
    uint64_t hash = hash_keyed(s->seed, text, strlen(text));
    return *needs ? hash ^ mix64(hash_keyed(s->seed, needs, strlen(needs))) : hash;
}

void pool_hold(struct sched *s, uint32_t pool)
{
    pool_at(s, pool)->refs++;
}

uint32_t pool_take(struct sched *s, const char *text, const char *needs)
{
    struct pool_key key = {text, needs};
    uint64_t hash = pool_hash(s, text, needs);
    uint32_t i = index_find(&s->pool_of, s, hash, pool_is, &key);
    if (!i) {
        i = rows_take(&s->pools);
        pool_at(s, i)->text = xstrdup(text);
        pool_at(s, i)->needs = xstrdup(needs);
        index_add(&s->pool_of, hash, i);
        s->tick++;
        pool_find_kinds(s, i);
    }
    pool_hold(s, i);
    return i;
}

void pool_give(struct sched *s, uint32_t pool)
{
    struct pool *p = pool_at(s, pool);
    if (--p->refs)
        return;
    for (size_t i = 0; i < p->kinds.n; i++) {
        struct numbers *l = &s->kinds[p->kinds.v[i]].pools;
        size_t k = 0;
        while (l->v[k] != pool)
            k++;
        l->v[k] = l->v[--l->n];
    }
    index_remove(&s->pool_of, pool_hash(s, p->text, p->needs), pool);
    free(p->text);
    free(p->needs);
    numbers_release(&p->kinds);
    rows_give(&s->pools, pool);
}

bool pools_meet(const struct sched *s, uint32_t a, uint32_t b)
{
    if (a == b)
        return true;
    const struct numbers *x = &pool_at(s, a)->kinds, *y = &pool_at(s, b)->kinds;
    for (size_t i = 0, k = 0; i < x->n && k < y->n;) {
        if (x->v[i] == y->v[k])
            return true;
        if (x->v[i] < y->v[k])
            i++;
        else
            k++;
    }
    return false;
}

/* ---- invariants ---- */

static const char *sched_hosts_check_kind(const struct sched *s, const struct host *h, uint32_t i)
{
    if ((h->kind != 0) != (h->usable && h->listed))
        return "exactly the usable hosts are in a kind";
    if (!h->kind)
        return NULL;
    const struct kind *k = &s->kinds[h->kind];
    if (strcmp(k->labels, h->labels) != 0 || strcmp(k->network, h->network) != 0 ||
        strcmp(k->versions, h->versions) != 0 || strcmp(k->only, h->only) != 0 ||
        k->hosts[h->place] != i)
        return "a host is in the kind of its labels, network and versions";
    for (int f = 0; f <= MAX_SLOTS; f++) {
        bool on = k->bits[(size_t)f * k->words + h->place / 64] >> (h->place % 64) & 1;
        if (on != (f == h->free))
            return "a host is in the bit row of its free slots";
    }
    return NULL;
}

const char *hosts_check(const struct sched *s)
{
    for (uint32_t i = 1; i < s->hosts.n; i++) {
        if (!row_is_used(&s->hosts, i))
            continue;
        const struct host *h = host_at(s, i);
        const char *broken = h->free == sched_hosts_count_free(h) ? sched_hosts_check_kind(s, h, i)
                                                                  : "a host knows its free slots";
        if (broken)
            return broken;
    }
    for (uint32_t i = 1; i < s->n_kinds; i++) {
        uint32_t n = 0;
        for (int f = 0; f <= MAX_SLOTS; f++)
            n += s->kinds[i].count[f];
        if (n != s->kinds[i].n)
            return "a kind counts each of its hosts once";
    }
    for (uint32_t p = 1; p < s->pools.n; p++)
        for (uint32_t i = 1, k = 0; row_is_used(&s->pools, p) && i < s->n_kinds; i++) {
            const struct numbers *kinds = &pool_at(s, p)->kinds;
            bool has = k < kinds->n && kinds->v[k] == i;
            k += has;
            const struct kind *kind = &s->kinds[i];
            if (has != pool_suits(pool_at(s, p), kind->labels, kind->only, kind->versions))
                return "a pool lists the kinds that carry its labels and meet its needs";
        }
    return NULL;
}
