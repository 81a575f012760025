/* SPDX-License-Identifier: Apache-2.0 */
/* preflight.c - see preflight.h.
 *
 * A look belongs to itself: it is answered by its worker or by the clock, whichever comes
 * first, and goes once its worker is back. So a hung mount costs at most LOOKS_MAX workers,
 * and everybody who asks meanwhile is told at what it hangs. */
#include "argusd/preflight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/work.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/str.h"
#include "fsroot/fsroot.h"
#include "fsroot/look.h"

static const usec_t KNOWN_FOR = USEC_MIN;
enum { LOOKS_MAX = 6, CACHE_MAX = 1000, TICK_MS = 100 };

/* One configuration's keys, shared with the workers that read them: never changed. */
struct kept_keys {
    int refs;   /* of the loop's: the cache, and looks */
    usec_t at;  /* monotonic */
    bool there; /* there is such a configuration */
    struct preflight_keys keys;
};

struct kept_verl {
    char *version; /* NULL: none found there */
    usec_t at;
};

struct preflight_look {
    struct preflight_look *next;
    struct preflights *p;
    preflight_f cb; /* NULL: answered, or nobody asks any more */
    void *arg;
    usec_t asked;      /* monotonic */
    bool busy;         /* a worker has it */
    struct spec about; /* what a configuration's name depends on: workload and overrides */
    char *root, *tree, *model_id;
    struct preflight_facts facts;
    char *verl;
    bool has_verl; /* from the cache */
    struct kept_keys *keys;
    bool new_keys;
    char *config; /* whose keys are asked */
    _Atomic(size_t) at;
};

struct preflights {
    uv_loop_t *loop;
    uv_timer_t timer;
    bool closed;
    struct preflight_look *looks; /* the oldest first */
    int n_busy;
    struct map *verls, *keys; /* tree -> kept_verl; "tree\nconfig" -> kept_keys */
};

struct preflights *preflights_new(uv_loop_t *loop)
{
    struct preflights *p = xcalloc(1, sizeof(*p));
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    p->loop = loop;
    p->verls = map_new(seed);
    p->keys = map_new(seed);
    (void)uv_timer_init(loop, &p->timer); /* never fails */
    p->timer.data = p;
    return p;
}

static void unref_keys(struct kept_keys *k)
{
    if (!k || --k->refs > 0)
        return;
    preflight_keys_release(&k->keys);
    free(k);
}

static void look_free(struct preflight_look *l)
{
    for (struct preflight_look **at = &l->p->looks; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    preflight_release(&l->facts);
    spec_release(&l->about);
    unref_keys(l->keys);
    char *texts[] = {l->root, l->tree, l->model_id, l->verl, l->config};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    free(l);
}

void preflights_close(struct preflights *p)
{
    if (!p || p->closed)
        return;
    p->closed = true;
    for (struct preflight_look *l = p->looks, *next; l; l = next) {
        next = l->next;
        l->cb = NULL;
        if (!l->busy)
            look_free(l);
    }
    uv_close((uv_handle_t *)&p->timer, NULL);
}

void preflights_free(struct preflights *p)
{
    struct kept_verl *v;
    struct kept_keys *k;
    if (!p)
        return;
    for (size_t pos = 0; (v = map_next(p->verls, &pos, NULL));) {
        free(v->version);
        free(v);
    }
    for (size_t pos = 0; (k = map_next(p->keys, &pos, NULL));)
        unref_keys(k);
    map_free(p->verls);
    map_free(p->keys);
    free(p);
}

/* ---- what is remembered for a minute ---- */

static void remember_verl(struct preflight_look *l)
{
    struct map *m = l->p->verls;
    struct kept_verl *v = l->tree ? map_find(m, l->tree) : NULL;
    if (!l->tree || l->has_verl)
        return;
    if (!v) {
        if (map_count(m) >= CACHE_MAX)
            return;
        v = xcalloc(1, sizeof(*v));
        map_set(m, l->tree, v);
    }
    set_str(&v->version, l->verl);
    v->at = clock_mono();
}

static void remember_keys(struct preflight_look *l)
{
    struct map *m = l->p->keys;
    if (!l->new_keys)
        return;
    _cleanup_(freep) char *name = xasprintf("%s\n%s", l->tree, l->config);
    if (map_count(m) >= CACHE_MAX && !map_find(m, name))
        return;
    l->keys->at = clock_mono();
    l->keys->refs++;
    unref_keys(map_set(m, name, l->keys));
}

/* What the version is, if that is known, decides which configuration is asked. */
static void recall(struct preflight_look *l)
{
    char buf[128];
    usec_t now = clock_mono();
    const struct kept_verl *v = l->tree ? map_find(l->p->verls, l->tree) : NULL;
    if (!v || now - v->at >= KNOWN_FOR)
        return;
    l->has_verl = true;
    l->verl = xstrdup(v->version);
    const char *config =
        preflight_config_name(&l->about, verl_version_find(str_or(l->verl, ""), NULL), buf);
    _cleanup_(freep) char *name = xasprintf("%s\n%s", l->tree, str_or(config, ""));
    struct kept_keys *k = map_find(l->p->keys, name);
    if (!k || now - k->at >= KNOWN_FOR)
        return;
    k->refs++;
    l->keys = k;
}

/* ---- on the worker ---- */

static void read_keys(struct preflight_look *l)
{
    char buf[128];
    const char *config =
        preflight_config_name(&l->about, verl_version_find(str_or(l->verl, ""), NULL), buf);
    if (!l->verl || !config || !l->about.overrides.n)
        return;
    l->config = xstrdup(config);
    l->keys = xcalloc(1, sizeof(*l->keys));
    l->keys->refs = 1;
    l->new_keys = true;
    l->keys->there = fsroot_verl_keys(l->tree, config, &l->keys->keys);
}

static void run(void *arg)
{
    struct preflight_look *l = arg;
    if (l->tree && !l->has_verl)
        l->verl = fsroot_verl_version(l->tree);
    if (l->tree && !l->keys)
        read_keys(l);
    fsroot_look(l->root, &l->facts, &l->at);
}

/* ---- on the loop ---- */

static void begin_next(struct preflights *p);

static void done(void *arg)
{
    struct preflight_look *l = arg;
    struct preflights *p = l->p;
    p->n_busy--;
    remember_verl(l);
    remember_keys(l);
    if (l->keys && l->keys->there)
        l->facts.keys = &l->keys->keys;
    struct preflight_seen seen = {.verl = l->verl, .facts = &l->facts};
    if (l->cb)
        l->cb(&seen, l->arg);
    look_free(l);
    begin_next(p);
}

static void begin_next(struct preflights *p)
{
    if (!p->looks && !p->closed)
        (void)uv_timer_stop(&p->timer); /* nobody waits */
    for (struct preflight_look *l = p->looks; l && p->n_busy < LOOKS_MAX && !p->closed; l = l->next)
        if (!l->busy && l->cb) {
            l->busy = true;
            p->n_busy++;
            recall(l);
            work_start(p->loop, run, done, l);
        }
}

/* The strings that are read here were made before the worker began. */
static void name_place(const struct preflight_look *l, char *ret, size_t size)
{
    size_t at = l->at;
    const char *what = at && at <= l->facts.n_files ? l->facts.files[at - 1].path
                       : at > l->facts.n_files      ? str_or(l->model_id, l->root)
                       : l->tree                    ? l->tree
                                                    : l->root;
    (void)snprintf(ret, size, "%s", l->busy ? what : l->root); /* cut: fine */
}

static void on_tick(uv_timer_t *timer)
{
    struct preflights *p = timer->data;
    usec_t now = clock_mono();
    for (struct preflight_look *l = p->looks, *next; l; l = next) {
        struct preflight_seen seen = {.late = true};
        next = l->next;
        if (!l->cb || now - l->asked < PREFLIGHT_DEADLINE)
            continue;
        preflight_f cb = l->cb;
        void *cb_arg = l->arg;
        name_place(l, seen.where, sizeof(seen.where));
        l->cb = NULL;
        if (!l->busy)
            look_free(l);
        cb(&seen, cb_arg);
    }
    begin_next(p); /* it stops the timer when nobody is left */
}

struct preflight_look *preflight_look(struct preflights *p,
                                      const struct spec *spec,
                                      const struct preflight_where *where,
                                      const char *tree,
                                      preflight_f cb,
                                      void *arg)
{
    struct preflight_look *l = xcalloc(1, sizeof(*l)), **at = &p->looks;
    *l = (struct preflight_look){.p = p,
                                 .cb = cb,
                                 .arg = arg,
                                 .asked = clock_mono(),
                                 .root = xstrdup(where->shared_root),
                                 .tree = xstrdup(tree),
                                 .model_id = xstrdup(spec->model_id)};
    l->about.workload = spec->workload;
    strv_copy(&l->about.overrides, &spec->overrides);
    preflight_plan(spec, where, &l->facts);
    while (*at)
        at = &(*at)->next;
    *at = l;
    if (!uv_is_active((uv_handle_t *)&p->timer))
        (void)uv_timer_start(&p->timer, on_tick, TICK_MS, TICK_MS); /* never fails */
    begin_next(p);
    return l;
}

void preflight_forget(struct preflight_look *l)
{
    l->cb = NULL;
    if (!l->busy)
        look_free(l);
}
