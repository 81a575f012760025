/* SPDX-License-Identifier: Apache-2.0 */
/* preflight.c - see preflight.h.
 *
 * A look belongs to itself: its askers are answered by its worker or by the clock, whichever comes
 * first, and it goes once its worker is back. Who asks what somebody else has asked already joins
 * a look that has not begun, so that no answer is older than its question; of one question one
 * look runs at a time; and what many questions name is read once, as long as it does not change. So
 * a crowd costs two looks, a hung mount a few workers, and everybody who asks meanwhile is told at
 * what it hangs. The directory of a chosen id is no part of the question: a look asks for those of
 * all its askers at once, since each submit has another one. */
#include "argusd/launch/preflight.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "base/buf.h"
#include "base/digest/hash.h"
#include "base/map.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/attempt/jobdir.h"
#include "fsroot/look/look.h"
#include "fsroot/look/looked.h"
#include "fsroot/look/verlversion.h"

/* Somebody puts another release in place, and submits again. */
static const usec_t KNOWN_FOR = 5 * USEC_SEC;
static const usec_t FRESH = 2 * USEC_SEC; /* clocks of file systems tick in milliseconds */
/* ANSWERS: in one turn of the loop, each of them judges and may submit. */
enum { LOOKS_MAX = 6, CACHE_MAX = 1000, KNOWN_FILES = 20000, TICK_MS = 100, ANSWERS = 16 };
enum { QUESTION_MAX = 4 << 20 }; /* a body has 1 MiB at most, and its paths become longer */

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

struct preflight_asker {
    struct preflight_asker *next;
    struct look *look;
    preflight_f cb;
    void *arg;
    usec_t asked; /* monotonic */
    char *job;    /* the id that its spec chose; NULL: none */
    size_t at;    /* among the jobs of a look that has begun */
};

struct look {
    struct look *next;
    struct preflights *p;
    struct preflight_asker *askers; /* the oldest first; NULL: nobody asks any more */
    struct buf question;            /* all that decides the answer, see say_question() */
    usec_t began;                   /* monotonic, of a busy one */
    bool busy;                      /* a worker has it */
    bool ready;                     /* its worker is back: the askers are being answered */
    struct spec about; /* what a configuration's name depends on: workload and overrides alone */
    char *root, *tree, *model_id;
    struct strv jobs;                 /* that its askers chose, when it began */
    enum fsroot_seen *jobs_are_there; /* of each */
    struct preflight_facts facts;
    char *verl;
    bool has_verl; /* from the cache */
    struct kept_keys *keys;
    bool new_keys;
    bool is_unseen; /* which verl it is could not be found out: nothing of that is remembered */
    char *config;   /* whose keys are asked */
    _Atomic(size_t) at;
};

struct preflights {
    uv_loop_t *loop;
    uv_timer_t timer, answers;
    bool closed;
    struct look *looks; /* the oldest first */
    int n_busy;
    struct map *verls, *keys; /* tree -> kept_verl; "tree\nconfig" -> kept_keys */
    struct looked *known;     /* all looks share it */
};

struct preflights *preflights_new(uv_loop_t *loop)
{
    struct preflights *p = xcalloc(1, sizeof(*p));
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    p->loop = loop;
    p->verls = map_new(seed);
    p->keys = map_new(seed);
    p->known = looked_new(KNOWN_FILES, FRESH, clock_wall);
    (void)uv_timer_init(loop, &p->timer); /* never fails, nor does the next */
    (void)uv_timer_init(loop, &p->answers);
    p->timer.data = p->answers.data = p;
    return p;
}

static void unref_keys(struct kept_keys *k)
{
    if (!k || --k->refs > 0)
        return;
    preflight_keys_release(&k->keys);
    free(k);
}

static void asker_free(struct preflight_asker *a)
{
    free(a->job);
    free(a);
}

static void preflight_look_free(struct look *l)
{
    for (struct preflight_asker *a = l->askers, *next; a; a = next) {
        next = a->next;
        asker_free(a);
    }
    for (struct look **at = &l->p->looks; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    preflight_release(&l->facts);
    strv_release(&l->about.overrides);
    buf_release(&l->question);
    strv_release(&l->jobs);
    free(l->jobs_are_there);
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
    for (struct look *l = p->looks, *next; l; l = next) {
        next = l->next;
        if (!l->busy || l->ready)
            preflight_look_free(l);
    }
    uv_close((uv_handle_t *)&p->timer, NULL);
    uv_close((uv_handle_t *)&p->answers, NULL);
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
    looked_free(p->known);
    free(p);
}

/* ---- what is remembered for KNOWN_FOR ---- */

static void remember_verl(struct look *l)
{
    struct map *m = l->p->verls;
    struct kept_verl *v = l->tree ? map_find(m, l->tree) : NULL;
    if (!l->tree || l->has_verl || l->is_unseen)
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

static void remember_keys(struct look *l)
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
static void recall(struct look *l)
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

static void read_keys(struct look *l)
{
    char buf[128];
    const char *config =
        preflight_config_name(&l->about, verl_version_find(str_or(l->verl, ""), NULL), buf);
    if (!l->verl || !config || !l->about.overrides.n)
        return;
    l->config = xstrdup(config);
    l->keys = xcalloc(1, sizeof(*l->keys));
    l->keys->refs = 1;
    int r = fsroot_verl_keys(l->root, l->tree, config, &l->keys->keys);
    l->new_keys = r >= 0;
    l->keys->there = r > 0;
}

static void preflight_run(void *arg)
{
    struct look *l = arg;
    if (l->tree && !l->has_verl)
        l->is_unseen = fsroot_verl_version(l->root, l->tree, &l->verl, NULL) < 0;
    if (l->tree && !l->keys)
        read_keys(l);
    if (l->jobs.n > 0)
        fsroot_jobs_are_there(l->root, &l->jobs, l->jobs_are_there);
    fsroot_look(l->root, l->p->known, &l->facts, &l->at);
}

/* ---- on the loop ---- */

static bool is_same_question(const struct look *a, const struct look *b)
{
    const struct buf *p = &a->question, *q = &b->question;
    return p->len == q->len && !memcmp(p->data, q->data, p->len) && !p->failed && !q->failed;
}

/* The same question, on a worker that may still come back in time. */
static const struct look *busy_twin(const struct look *l)
{
    usec_t now = clock_mono();
    for (const struct look *t = l->p->looks; t; t = t->next)
        if (t != l && t->busy && !t->ready && now - t->began < PREFLIGHT_DEADLINE &&
            is_same_question(t, l))
            return t;
    return NULL;
}

/* Nobody joins from here on, and who leaves keeps his place. */
static void look_take_jobs(struct look *l)
{
    for (struct preflight_asker *a = l->askers; a; a = a->next)
        if (a->job) {
            a->at = l->jobs.n;
            strv_add(&l->jobs, a->job);
        }
    l->jobs_are_there = xcalloc(l->jobs.n + 1, sizeof(*l->jobs_are_there));
}

static void preflight_done(void *arg);

static void preflight_begin_next(struct preflights *p)
{
    if (!p->looks && !p->closed)
        (void)uv_timer_stop(&p->timer); /* nobody waits */
    for (struct look *l = p->looks; l && p->n_busy < LOOKS_MAX && !p->closed; l = l->next)
        if (!l->busy && l->askers && !busy_twin(l)) {
            l->busy = true;
            l->began = clock_mono();
            p->n_busy++;
            recall(l);
            look_take_jobs(l);
            work_start(p->loop, preflight_run, preflight_done, l);
        }
}

/* taken: it is in no list any more. */
static void preflight_answer(struct preflight_asker *taken, const struct preflight_seen *seen)
{
    preflight_f cb = taken->cb;
    void *cb_arg = taken->arg;
    asker_free(taken);
    cb(seen, cb_arg);
}

static struct look *find_ready(const struct preflights *p)
{
    struct look *l = p->looks;
    while (l && !l->ready)
        l = l->next;
    return l;
}

static void on_answers(uv_timer_t *timer)
{
    struct preflights *p = timer->data;
    struct look *l = find_ready(p);
    for (int n = 0; l && n < ANSWERS; l = find_ready(p)) {
        struct preflight_seen seen = {.verl = l->verl, .facts = &l->facts};
        for (struct preflight_asker *a; n < ANSWERS && (a = l->askers); n++) {
            l->askers = a->next;
            /* What could not be looked at is asked for again when the directory is made. */
            seen.job_is_there = a->job && l->jobs_are_there[a->at] == FSROOT_PRESENT;
            preflight_answer(a, &seen);
        }
        if (!l->askers)
            preflight_look_free(l);
    }
    if (l && !p->closed)
        (void)uv_timer_start(&p->answers, on_answers, 0, 0); /* never fails */
    preflight_begin_next(p);
}

static void preflight_done(void *arg)
{
    struct look *l = arg;
    struct preflights *p = l->p;
    p->n_busy--;
    l->ready = true;
    remember_verl(l);
    remember_keys(l);
    if (l->keys && l->keys->there)
        l->facts.keys = &l->keys->keys;
    if (p->closed)
        preflight_look_free(l);
    else if (!uv_is_active((uv_handle_t *)&p->answers))
        on_answers(&p->answers);
}

/* The strings that are read here were made before the worker began. */
static void name_place(const struct look *l, char *ret, size_t size)
{
    const struct look *t = l->busy ? l : busy_twin(l);
    size_t at = t ? t->at : 0;
    const char *what = !t                             ? l->root
                       : at && at <= t->facts.n_files ? t->facts.files[at - 1].path
                       : at > t->facts.n_files        ? str_or(t->model_id, t->root)
                       : t->tree                      ? t->tree
                                                      : t->root;
    text_copy_to(ret, size, what);
}

/* The first whose time is over, out of its list; NULL: nobody. */
static struct preflight_asker *preflight_take_late(const struct preflights *p)
{
    usec_t now = clock_mono();
    for (struct look *l = p->looks; l; l = l->next)
        for (struct preflight_asker **at = &l->askers; *at && !l->ready; at = &(*at)->next) {
            struct preflight_asker *a = *at;
            if (now - a->asked < PREFLIGHT_DEADLINE)
                continue;
            *at = a->next;
            return a;
        }
    return NULL;
}

static void preflight_on_tick(uv_timer_t *timer)
{
    struct preflights *p = timer->data;
    struct preflight_asker *a;
    for (int n = 0; n < ANSWERS && (a = preflight_take_late(p)); n++) {
        struct preflight_seen seen = {.late = true};
        struct look *l = a->look;
        name_place(l, seen.where, sizeof(seen.where));
        preflight_answer(a, &seen);
        if (!l->askers && !l->busy)
            preflight_look_free(l);
    }
    preflight_begin_next(p); /* it stops the timer when nobody is left */
}

/* ---- asking ---- */

static void preflight_add_text(struct buf *q, const char *text)
{
    (void)buf_addc(q, text ? '+' : '-'); /* overflow: no look is like it */
    if (text)
        (void)buf_add(q, text, strlen(text) + 1);
}

/* All that decides what a look finds: compared byte by byte, which costs less than a hash. */
static void say_question(struct look *l)
{
    struct buf *q = &l->question;
    const struct preflight_facts *f = &l->facts;
    preflight_add_text(q, l->root);
    preflight_add_text(q, l->tree);
    preflight_add_text(q, l->model_id);
    (void)buf_add(q, &l->about.workload, sizeof(l->about.workload)); /* overflow: as above */
    for (size_t i = 0; i < l->about.overrides.n; i++)
        preflight_add_text(q, l->about.overrides.v[i]);
    (void)buf_add(q, &f->n_files, sizeof(f->n_files));
    for (size_t i = 0; i < f->n_files; i++) {
        preflight_add_text(q, f->files[i].field);
        preflight_add_text(q, f->files[i].path);
        (void)buf_add(q, &f->files[i].kind, sizeof(f->files[i].kind));
    }
    preflight_add_text(q, f->model ? f->model->path : NULL);
    preflight_add_text(q, f->model ? f->model->cache : NULL);
    if (f->model) {
        const bool how[] = {f->model->is_hub, f->model->is_offline, f->model->only_there};
        (void)buf_add(q, how, sizeof(how));
    }
}

static struct look *look_new(struct preflights *p,
                             const struct spec *spec,
                             const struct preflight_where *where,
                             const char *tree)
{
    struct look *l = xcalloc(1, sizeof(*l));
    *l = (struct look){.p = p,
                       .root = xstrdup(where->shared_root),
                       .tree = xstrdup(tree),
                       .question = BUF_INIT(QUESTION_MAX),
                       .model_id = xstrdup(spec->model_id)};
    l->about.workload = spec->workload;
    strv_copy(&l->about.overrides, &spec->overrides);
    preflight_plan(spec, where, &l->facts);
    say_question(l);
    return l;
}

/* The one that has not begun yet, else this one: taken. */
static struct look *join_or_add(struct look *taken)
{
    struct look **at = &taken->p->looks;
    for (; *at; at = &(*at)->next)
        if (!(*at)->busy && is_same_question(*at, taken)) {
            preflight_look_free(taken);
            return *at;
        }
    *at = taken;
    return taken;
}

struct preflight_asker *preflight_look(struct preflights *p,
                                       const struct spec *spec,
                                       const struct preflight_where *where,
                                       const char *tree,
                                       preflight_f cb,
                                       void *arg)
{
    struct preflight_asker *a = xcalloc(1, sizeof(*a));
    struct look *l = join_or_add(look_new(p, spec, where, tree));
    struct preflight_asker **end = &l->askers;
    *a = (struct preflight_asker){
        .look = l, .cb = cb, .arg = arg, .asked = clock_mono(), .job = xstrdup(spec->id)};
    while (*end)
        end = &(*end)->next;
    *end = a;
    if (!uv_is_active((uv_handle_t *)&p->timer))
        (void)uv_timer_start(&p->timer, preflight_on_tick, TICK_MS, TICK_MS); /* never fails */
    /* Requests that the loop reads in one turn share a look: it begins in the next turn. */
    if (!uv_is_active((uv_handle_t *)&p->answers))
        (void)uv_timer_start(&p->answers, on_answers, 0, 0); /* never fails */
    return a;
}

void preflight_forget(struct preflight_asker *a)
{
    if (!a)
        return;
    struct look *l = a->look;
    struct preflight_asker **at = &l->askers;
    while (*at && *at != a)
        at = &(*at)->next;
    if (*at)
        *at = a->next;
    asker_free(a);
    if (!l->askers && !l->busy)
        preflight_look_free(l);
}
