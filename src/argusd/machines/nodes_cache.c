/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_cache.c - asks all nodes of a lease for a model at once, and tells when the last has
 * answered; see nodes_cache.h. Nothing is kept: the copies on the disks are the truth. */
#include "argusd/machines/nodes_cache.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/machines/nodes_run.h"
#include "base/str.h"
#include "ssh/modelcache.h"

enum { HOW_MAX = 16 << 10 };

struct nodes_cache_one {
    struct nodes_cache *c;
    char *name;
    struct modelcache *call; /* NULL: it has answered */
    usec_t began;
};

struct nodes_cache {
    struct nodes_cache_one *v;
    size_t n, left;
    bool is_everywhere;
    char *path;
    struct buf how;
    nodes_cache_f cb;
    void *arg;
};

void nodes_cache_free(struct nodes_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++) {
        modelcache_free(c->v[i].call);
        free(c->v[i].name);
    }
    buf_release(&c->how);
    free(c->path);
    free(c->v);
    free(c);
}

static void nodes_cache_tell(const struct nodes_cache_one *one,
                             const struct modelcache_found *found)
{
    struct buf *how = &one->c->how;
    double took = (double)(clock_mono() - one->began) / (double)USEC_SEC;
    /* past its ceiling: the rest is missing */
    (void)buf_addf(how, "%s%s %s %.1f s", how->len ? ", " : "", one->name,
                   modelcache_to_string(found->state), took);
    if (found->removed)
        (void)buf_addf(how, " (-%d)", found->removed);
    if (*found->text)
        (void)buf_addf(how, ": %s", found->text);
}

static void nodes_cache_on_found(const struct modelcache_found *found, void *arg)
{
    struct nodes_cache_one *one = arg;
    struct nodes_cache *c = one->c;
    one->call = NULL;
    nodes_cache_tell(one, found);
    if (found->state != MODELCACHE_HIT && found->state != MODELCACHE_MISS)
        c->is_everywhere = false;
    if (--c->left)
        return;
    struct nodes_cache_answer a = {.path = c->is_everywhere ? c->path : NULL,
                                   .how = buf_str(&c->how)};
    c->cb(&a, c->arg);
    nodes_cache_free(c);
}

static const char *nodes_cache_dir(const struct nodes *ns, const char *name)
{
    const struct noderun *nr = nodes_find(ns, name);
    return nr ? nr->row->spec.model_cache : NULL;
}

/* The directory that all of them have; NULL: see nodes_cache_ask(). */
static const char *nodes_cache_common(const struct nodes *ns,
                                      const struct gang *gang,
                                      char **ret_how)
{
    const char *dir = NULL;
    for (size_t i = 0; i < gang->n && !dir; i++)
        dir = nodes_cache_dir(ns, gang->v[i].name);
    for (size_t i = 0; i < gang->n && dir; i++) {
        const char *its = nodes_cache_dir(ns, gang->v[i].name);
        if (its && !strcmp(its, dir))
            continue;
        *ret_how = its ? xasprintf("%s: model_cache '%s', '%s'", gang->v[i].name, its, dir)
                       : xasprintf("%s: model_cache -", gang->v[i].name);
        return NULL;
    }
    return dir;
}

static void nodes_cache_begin(const struct nodes *ns,
                              const struct nodes_cache_want *want,
                              const char *dir,
                              struct nodes_cache_one *one)
{
    const struct noderun *nr = nodes_find(ns, one->name);
    const char *id, **live = xcalloc(MODELCACHE_LIVE_MAX, sizeof(*live));
    struct ssh_target t;
    struct modelcache_want w = {.dir = dir,
                                .from = want->path,
                                .hash = want->hash,
                                .most = ns->p.settings->model_cache_bytes,
                                .job = want->job,
                                .live = live};
    while (w.n_live < MODELCACHE_LIVE_MAX &&
           (id = sched_node_lease(ns->p.sched, one->name, w.n_live)))
        live[w.n_live++] = id;
    nodes_target(nr, &t);
    one->began = clock_mono();
    one->call = modelcache_ask(ns->p.loop, &t, &w, ns->p.settings->model_cache_wait,
                               nodes_cache_on_found, one);
    free(live);
}

struct nodes_cache *nodes_cache_ask(const struct nodes *ns,
                                    const struct nodes_cache_want *want,
                                    nodes_cache_f cb,
                                    void *arg,
                                    char **ret_how)
{
    *ret_how = NULL;
    const char *dir = nodes_cache_common(ns, want->gang, ret_how);
    if (!dir)
        return NULL;
    struct nodes_cache *c = xcalloc(1, sizeof(*c));
    *c = (struct nodes_cache){.v = xcalloc(want->gang->n, sizeof(*c->v)),
                              .n = want->gang->n,
                              .left = want->gang->n,
                              .is_everywhere = true,
                              .path = xasprintf("%s/%s/model", dir, want->hash),
                              .how = BUF_INIT(HOW_MAX),
                              .cb = cb,
                              .arg = arg};
    for (size_t i = 0; i < c->n; i++) {
        c->v[i] = (struct nodes_cache_one){.c = c, .name = xstrdup(want->gang->v[i].name)};
        nodes_cache_begin(ns, want, dir, &c->v[i]);
    }
    return c;
}
