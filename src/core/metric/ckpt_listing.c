/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_listing.c - is a checkpoint whole, by the names of its files; see ckpt.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "core/metric/ckpt.h"

enum kind { MODEL, OPTIM, EXTRA, KIND_COUNT };
enum group { FLAT, ACTOR, CRITIC, GROUP_COUNT };

static const char *const kind_names[] = {"model", "optim", "extra_state"};
static const char *const group_names[] = {"", "actor", "critic"};

struct shards {
    unsigned char *seen[KIND_COUNT]; /* one bit a rank */
    int64_t n[KIND_COUNT];
    int64_t world;
    bool mixed; /* of two world sizes */
    int64_t dist, dist_index;
    int64_t weights, weights_of; /* model-00001-of-00003.safetensors */
};

struct ckpt_listing {
    struct shards of[GROUP_COUNT];
    int64_t data;                 /* files of the loader's state */
    char empty[CKPT_WHY_MAX / 2]; /* a shard without a byte; "" = none */
};

struct ckpt_listing *ckpt_listing_new(void)
{
    return xcalloc(1, sizeof(struct ckpt_listing));
}

void ckpt_listing_free(struct ckpt_listing *l)
{
    for (int g = 0; l && g < GROUP_COUNT; g++)
        for (int k = 0; k < KIND_COUNT; k++)
            free(l->of[g].seen[k]);
    free(l);
}

/* Digits to a number of at most nine of them; -1. *s is behind them. */
static int64_t ckpt_listing_take_number(const char **s)
{
    int64_t n = 0;
    const char *p = *s;
    while (isdigit((unsigned char)*p) && p - *s < 9)
        n = n * 10 + (*p++ - '0');
    if (p == *s || isdigit((unsigned char)*p))
        return -1;
    *s = p;
    return n;
}

static bool ckpt_listing_take_text(const char **s, const char *text)
{
    if (!str_starts(*s, text))
        return false;
    *s += strlen(text);
    return true;
}

struct shard {
    enum kind kind;
    int64_t world, rank;
};

/* model_world_size_2_rank_0.pt */
static bool ckpt_listing_read_shard(const char *name, struct shard *ret)
{
    for (int k = 0; k < KIND_COUNT; k++) {
        const char *s = name;
        if (!ckpt_listing_take_text(&s, kind_names[k]) ||
            !ckpt_listing_take_text(&s, "_world_size_"))
            continue;
        struct shard x = {.kind = (enum kind)k, .world = ckpt_listing_take_number(&s)};
        if (!ckpt_listing_take_text(&s, "_rank_"))
            return false;
        x.rank = ckpt_listing_take_number(&s);
        if (strcmp(s, ".pt") != 0 || x.world < 1 || x.world > CKPT_WORLD_MAX || x.rank < 0 ||
            x.rank >= x.world)
            return false;
        *ret = x;
        return true;
    }
    return false;
}

static void ckpt_listing_add_shard(struct shards *to, const struct shard *x)
{
    if (!to->world)
        to->world = x->world;
    if (to->world != x->world) {
        to->mixed = true;
        return;
    }
    if (!to->seen[x->kind])
        to->seen[x->kind] = xcalloc(((size_t)x->world + 7) / 8, 1);
    unsigned char *byte = &to->seen[x->kind][x->rank / 8];
    unsigned char bit = (unsigned char)(1U << (x->rank % 8));
    to->n[x->kind] += !(*byte & bit);
    *byte |= bit;
}

/* "model-00001-of-00003.safetensors", or one alone. 0: none. */
static int64_t weights_of(const char *name)
{
    const char *s = name;
    if (!strcmp(name, "model.safetensors"))
        return 1;
    if (!ckpt_listing_take_text(&s, "model-") || ckpt_listing_take_number(&s) < 1 ||
        !ckpt_listing_take_text(&s, "-of-"))
        return 0;
    int64_t of = ckpt_listing_take_number(&s);
    return of > 0 && !strcmp(s, ".safetensors") ? of : 0;
}

static bool is_data(const char *path)
{
    const char *s = path;
    if (!strcmp(path, "data.pt"))
        return true;
    return ckpt_listing_take_text(&s, "data_") && ckpt_listing_take_number(&s) >= 0 &&
           !strcmp(s, ".pt");
}

/* The group of a path, and the name below it. GROUP_COUNT: none. */
static enum group group_of(const char *path, const char **ret_name)
{
    for (int g = ACTOR; g < GROUP_COUNT; g++) {
        const char *s = path;
        if (ckpt_listing_take_text(&s, group_names[g]) && ckpt_listing_take_text(&s, "/")) {
            *ret_name = s;
            return (enum group)g;
        }
    }
    *ret_name = path;
    return strchr(path, '/') && !str_starts(path, "dist_ckpt/") ? GROUP_COUNT : FLAT;
}

static bool is_dist(const char *name)
{
    const char *s = name;
    if (!ckpt_listing_take_text(&s, "model/") && !ckpt_listing_take_text(&s, "optimizer/"))
        (void)ckpt_listing_take_text(&s, "extra/");
    return str_starts(s, "dist_ckpt/");
}

bool ckpt_is_shard(const char *path)
{
    struct shard x;
    const char *name;
    enum group g = group_of(path, &name);
    return g != GROUP_COUNT && (ckpt_listing_read_shard(name, &x) || is_dist(name) ||
                                weights_of(name) || (g == FLAT && is_data(name)));
}

static void add_dist(struct shards *to, const char *name)
{
    to->dist += str_ends(name, ".distcp");
    to->dist_index += str_ends(name, "/.metadata") || str_ends(name, "/metadata.json");
}

void ckpt_listing_add(struct ckpt_listing *l, const char *path, uint64_t bytes)
{
    struct shard x;
    const char *name;
    enum group g = group_of(path, &name);
    if (g == GROUP_COUNT || !ckpt_is_shard(path))
        return;
    if (!bytes && !*l->empty)
        text_printf(l->empty, "%.80s", path);
    if (g == FLAT && is_data(name))
        l->data++;
    else if (ckpt_listing_read_shard(name, &x))
        ckpt_listing_add_shard(&l->of[g], &x);
    else if (is_dist(name))
        add_dist(&l->of[g], name);
    else if (weights_of(name)) {
        l->of[g].weights++;
        l->of[g].weights_of = weights_of(name);
    }
}

/* ---- the verdict ---- */

static bool ckpt_listing_says(char *why, const char *group, const char *code)
{
    ckpt_write_why(why, code, MESSAGE_ARGS(MESSAGE_STR("group", group)));
    return false;
}

static bool shards_are_whole(const struct shards *s, const char *group, char *why)
{
    if (s->mixed)
        return ckpt_listing_says(why, group, "shards_mixed");
    for (int k = 0; k < KIND_COUNT; k++) {
        if (s->n[k] == s->world || (k != MODEL && !s->n[k]))
            continue; /* save_contents may leave out what is not the model */
        ckpt_write_why(why, "shards_missing",
                       MESSAGE_ARGS(MESSAGE_STR("group", group), MESSAGE_NUM("there", s->n[k]),
                                    MESSAGE_NUM("world", s->world),
                                    MESSAGE_STR("what", kind_names[k])));
        return false;
    }
    return true;
}

/* 1 whole, 0 not (why says it), -1 nothing there. */
static int group_is_whole(const struct shards *s, const char *group, char *why)
{
    if (s->world)
        return shards_are_whole(s, group, why);
    if (s->dist || s->dist_index)
        return s->dist && s->dist_index ? 1 : ckpt_listing_says(why, group, "dist_no_metadata");
    if (s->weights)
        return s->weights == s->weights_of ? 1 : ckpt_listing_says(why, group, "weights_missing");
    return -1;
}

/* Weights for other programs do not count: training writes them now and then. */
enum { KINDS_OF_GROUP = KIND_COUNT + 1, KINDS_DATA = 1u << (KINDS_OF_GROUP * GROUP_COUNT) };

unsigned ckpt_listing_kinds(const struct ckpt_listing *l)
{
    unsigned ret = l->data ? KINDS_DATA : 0;
    for (int g = 0; g < GROUP_COUNT; g++) {
        const struct shards *s = &l->of[g];
        for (int k = 0; k < KIND_COUNT; k++)
            ret |= (unsigned)(s->n[k] > 0) << (g * KINDS_OF_GROUP + k);
        ret |= (unsigned)(s->dist > 0) << (g * KINDS_OF_GROUP + KIND_COUNT);
    }
    return ret;
}

/* The first of them in words: "actor/optim". */
static void kinds_say(unsigned kinds, char ret[static 40])
{
    int at = 0;
    while (!(kinds >> at & 1))
        at++;
    int g = at / KINDS_OF_GROUP, k = at % KINDS_OF_GROUP;
    if (g >= GROUP_COUNT)
        text_printf_to(ret, 40, "data.pt");
    else
        text_printf_to(ret, 40, "%s%s%s", group_names[g], *group_names[g] ? "/" : "",
                       k < KIND_COUNT ? kind_names[k] : "dist_ckpt");
}

void ckpt_list_compare(struct ckpt_list *l)
{
    const struct ckpt *older = NULL;
    for (size_t i = 0; i < l->n; i++) {
        struct ckpt *c = &l->v[i];
        unsigned lost = older && c->kinds ? older->kinds & ~c->kinds : 0;
        char what[40];
        if (c->state != CKPT_VERIFIED && c->state != CKPT_COMPLETE)
            continue;
        if (!lost) {
            older = c->state == CKPT_VERIFIED && c->kinds ? c : older;
            continue;
        }
        kinds_say(lost, what);
        c->state = CKPT_PARTIAL;
        ckpt_write_why(c->why, "ckpt_lost_kind",
                       MESSAGE_ARGS(MESSAGE_STR("what", what), MESSAGE_NUM("step", older->step)));
    }
}

bool ckpt_listing_is_known(const struct ckpt_listing *l)
{
    for (int g = 0; g < GROUP_COUNT; g++)
        if (l->of[g].world || l->of[g].dist || l->of[g].dist_index || l->of[g].weights)
            return true;
    return false;
}

bool ckpt_listing_is_whole(const struct ckpt_listing *l, char *why)
{
    bool any = false, resumes = false;
    *why = 0;
    if (*l->empty) {
        ckpt_write_why(why, "ckpt_empty_file", MESSAGE_ARGS(MESSAGE_STR("path", l->empty)));
        return false;
    }
    for (int g = 0; g < GROUP_COUNT; g++) {
        int r = group_is_whole(&l->of[g], group_names[g], why);
        if (r == 0)
            return false;
        any = any || r == 1;
        resumes = resumes || l->of[g].world || l->of[g].dist;
    }
    if (!any)
        return ckpt_listing_says(why, "", "no_shards");
    return !resumes || l->data || ckpt_listing_says(why, "", "no_data_pt");
}
