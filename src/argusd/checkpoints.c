/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints.c - see checkpoints.h.
 *
 *   tick ─▶ look (worker) ─▶ events, row, plan ─▶ remove (worker) ─▶ answers
 *
 * A book is with a worker while it is `busy`: its pass has copies of all that it needs. */
#include "argusd/checkpoints.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/checkpoints_book.h"
#include "argusd/launchplan.h"
#include "argusd/people.h"
#include "argusd/work.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "core/preflight.h"
#include "fsroot/ckpt.h"

enum {
    TICK_MS = 2000,
    BUSY_MAX = 3, /* passes at once: a slow root must not take all workers */
    SIZE_TEXT = 32,
};
static const double GIB = 1024.0 * 1024 * 1024;
static const usec_t LOOK_EVERY = 4 * USEC_SEC;
static const usec_t IDLE_EVERY = 12 * USEC_SEC; /* while its step does not change */
static const usec_t WALK_EVERY = 60 * USEC_SEC; /* what is verified is walked again, too */

struct checkpoints_ask {
    struct checkpoints_ask *next;
    struct book *b;
    bool dry_run, began;
    char *actor;
    checkpoints_f done;
    void *arg;
};

struct checkpoints {
    struct checkpoints_parts p;
    uv_timer_t timer;
    struct map *by_id;
    struct book *first;
    int busy;
    bool closing, reading;
};

/* One turn of a book through the worker pool. */
struct pass {
    struct book *b;
    char *root, *id, *metric;
    int k;
    unsigned flags;
    struct ckpt_list known, found;
    uint64_t free_bytes; /* UINT64_MAX: not known */
    enum ckpt_keep *plan;
    bool dry_run, asked; /* somebody wants to hear of it */
    size_t removed;
    uint64_t removed_bytes;
    int result;
    struct err err;
};

static void pass_free(struct pass *p)
{
    ckpt_list_release(&p->known);
    ckpt_list_release(&p->found);
    free(p->plan);
    free(p->root);
    free(p->id);
    free(p->metric);
    free(p);
}

/* ---- books ---- */

static struct book *book_add(struct checkpoints *cs, const char *id)
{
    struct book *b = xcalloc(1, sizeof(*b));
    *b = (struct book){.next = cs->first, .cs = cs, .id = xstrdup(id)};
    cs->first = b;
    map_set(cs->by_id, id, b);
    return b;
}

static void book_free(struct book *b)
{
    while (b->asks) {
        struct checkpoints_ask *a = b->asks;
        b->asks = a->next;
        free(a->actor);
        free(a);
    }
    book_release(b);
    free(b);
}

static struct book *book_of(struct checkpoints *cs, const struct job *job)
{
    struct book *b = map_find(cs->by_id, job->id);
    if (b && b->seq)
        return b;
    struct spec spec = {0};
    struct problems ps = {0};
    if (!b)
        b = book_add(cs, job->id);
    b->seq = job->seq;
    set_str(&b->project, job->project);
    set_str(&b->user, job->user);
    b->policy.keep_last = 1;
    if (launchplan_read_spec(cs->p.settings, job->spec, strlen(job->spec), job->user, false, &spec,
                             &ps) == 0) {
        b->policy = (struct ckpt_policy){.keep_last = spec.keep_last > 0 ? spec.keep_last : 1,
                                         .best = spec.keep_best_metric,
                                         .best_is_min = spec.keep_best_mode != 0};
        set_str(&b->metric, spec.keep_best_metric);
    }
    spec_release(&spec);
    problems_release(&ps);
    return b;
}

static void keep_row(struct book *b)
{
    struct store *store = b->cs->p.store;
    _cleanup_(freep) char *body = book_text(b);
    if (str_eq(body, b->stored))
        return;
    if (body) {
        struct store_entry row = {
            .kind = BOOK_KIND, .name = b->id, .body = body, .at = clock_wall()};
        store_put_entry(store, &row);
    } else {
        store_remove_entry(store, BOOK_KIND, b->id);
    }
    set_str(&b->stored, body);
}

bool checkpoints_restore(struct checkpoints *cs, const struct store_entry *row)
{
    if (strcmp(row->kind, BOOK_KIND) != 0)
        return false;
    struct book *b = book_add(cs, row->name);
    book_read(b, row->body);
    return true;
}

const struct ckpt_list *checkpoints_of(const struct checkpoints *cs, const char *job)
{
    const struct book *b = map_find(cs->by_id, job);
    return b ? &b->list : NULL;
}

void checkpoints_put(const struct checkpoints *cs, const char *job, struct jout *j, const char *key)
{
    const struct ckpt_list *l = checkpoints_of(cs, job);
    jout_open(j, key, '[');
    for (size_t i = 0; l && i < l->n; i++)
        ckpt_to_json(&l->v[i], j, NULL);
    jout_close(j, ']');
}

/* Of a project's jobs, or a user's. */
static double gib_of(const struct checkpoints *cs, const char *project, const char *user)
{
    double sum = 0;
    for (const struct book *b = cs->first; b; b = b->next)
        if ((project && str_eq(b->project, project)) || (user && str_eq(b->user, user)))
            sum += (double)ckpt_list_bytes(&b->list) / GIB;
    return sum;
}

static int check_limit(const char *kind, const char *name, double has, double may, struct err *err)
{
    if (may < 0 || has <= may)
        return 0;
    return err_set(err, ERR_REFUSED,
                   "the checkpoints of %s '%.60s' take %.4g GiB and its quota is %.4g GiB", kind,
                   name, has, may);
}

int checkpoints_check_quota(const struct checkpoints *cs,
                            const char *project,
                            const char *user,
                            struct err *err)
{
    const struct project *p = project ? people_find_project(cs->p.people, project) : NULL;
    const struct person *u = user ? people_find(cs->p.people, user) : NULL;
    int r = 0;
    if (p && p->quota.checkpoints >= 0)
        r = check_limit("project", project, gib_of(cs, project, NULL), p->quota.checkpoints, err);
    if (r == 0 && u && u->quota.checkpoints >= 0)
        r = check_limit("user", user, gib_of(cs, NULL, user), u->quota.checkpoints, err);
    return r;
}

/* ---- read to the last byte ---- */

bool checkpoints_begin_reading(struct checkpoints *cs)
{
    bool may = !cs->reading;
    cs->reading = true;
    return may;
}

static void tell_one(const struct book *b, const struct ckpt *c);

void checkpoints_end_reading(struct checkpoints *cs, const char *job, const struct ckpt *found)
{
    struct book *b = map_find(cs->by_id, job);
    struct ckpt *c = b && found ? ckpt_list_find(&b->list, found->step) : NULL;
    cs->reading = false;
    if (!c || !found || cs->closing)
        return;
    bool is_news = c->state != found->state && found->state == CKPT_BROKEN;
    c->state = found->state;
    c->mark = found->mark;
    c->bytes = found->bytes;
    memcpy(c->why, found->why, sizeof(c->why));
    if (is_news)
        tell_one(b, c);
    keep_row(b);
}

/* ---- what is told ---- */

static void tell(const struct book *b,
                 const char *actor,
                 const char *kind,
                 const char *code,
                 const char *text,
                 int64_t step,
                 uint64_t bytes)
{
    char data[96];
    (void)snprintf(data, sizeof(data), "{\"step\":%" PRId64 ",\"bytes\":%" PRIu64 "}", step,
                   bytes); /* fits */
    struct events_note note = {.kind = kind,
                               .actor = actor,
                               .job_seq = b->seq,
                               .job = b->id,
                               .code = code,
                               .text = text,
                               .data = data};
    log_info("checkpoints", "%s: %s job=%s", kind, text, b->id);
    events_add(b->cs->p.events, &note, clock_wall());
}

static void tell_one(const struct book *b, const struct ckpt *c)
{
    char text[JOB_REASON_TEXT_MAX], size[SIZE_TEXT];
    if (c->state == CKPT_VERIFIED) {
        (void)snprintf(text, sizeof(text), "the checkpoint of step %" PRId64 " is complete: %s",
                       c->step, preflight_size_text(c->bytes, size)); /* fits */
        tell(b, "argusd", "checkpoint", "", text, c->step, c->bytes);
    } else {
        (void)snprintf(text, sizeof(text), "the checkpoint of step %" PRId64 " cannot be read: %s",
                       c->step, c->why); /* fits */
        tell(b, "argusd", "checkpoint_broken", "checkpoint_broken", text, c->step, c->bytes);
    }
}

static void tell_news(const struct book *b, const struct ckpt_list *found)
{
    for (size_t i = 0; i < found->n; i++) {
        const struct ckpt *c = &found->v[i], *old = ckpt_list_find(&b->list, c->step);
        bool is_told = c->state == CKPT_VERIFIED || c->state == CKPT_BROKEN;
        if (is_told && (!old || old->state != c->state))
            tell_one(b, c);
    }
}

/* ---- the plan ---- */

static bool is_followed(const struct live *l)
{
    const struct attempt *a = job_attempt(l->job);
    return a && l->job->state != JOB_QUEUED && workload_word_trains(l->job->workload) &&
           (a->phase == ATTEMPT_ACCEPTED || a->phase == ATTEMPT_RUNNING);
}

/* Does a job that is not over name one of them? */
static bool is_in_use(const struct book *b, int64_t step)
{
    const struct live *l;
    for (size_t pos = 0; (l = jobs_next(b->cs->p.jobs, &pos));)
        if (strcmp(l->job->id, b->id) != 0 &&
            (ckpt_is_meant(l->job->spec, b->id, step) ||
             (l->extra.inputs && ckpt_is_meant(l->extra.inputs, b->id, step))))
            return true;
    return false;
}

static bool any_goes(const struct ckpt_list *l, const enum ckpt_keep *plan)
{
    for (size_t i = 0; i < l->n; i++)
        if (plan[i] == CKPT_GOES)
            return true;
    return false;
}

static uint64_t largest_of(const struct ckpt_list *l)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].state == CKPT_VERIFIED && l->v[i].bytes > largest)
            largest = l->v[i].bytes;
    return largest;
}

struct room {
    uint64_t next;  /* bytes that the next save takes, as the largest so far */
    uint64_t lacks; /* of that, with some reserve, on the disk */
    uint64_t goes;  /* what is removed */
};

/* Before the next save would not fit. */
static struct room make_room(const struct book *b, const struct pass *p)
{
    struct room r = {.next = b->followed ? largest_of(&b->list) : 0};
    uint64_t wants = r.next + r.next / 20;
    r.lacks = wants > p->free_bytes ? wants - p->free_bytes : 0;
    if (r.lacks)
        r.goes = ckpt_plan_room(&b->list, r.lacks, p->plan);
    return r;
}

static void tell_room(struct book *b, const struct pass *p, const struct room *r)
{
    char text[JOB_REASON_TEXT_MAX], need[SIZE_TEXT], room[SIZE_TEXT];
    bool fits = r->goes >= r->lacks;
    if (!r->lacks || (b->room_told && !fits)) {
        b->room_told = r->lacks > 0;
        return; /* there is room, or it was said */
    }
    b->room_told = !fits;
    (void)snprintf(text, sizeof(text), "the next checkpoint takes about %s and %s are free: %s",
                   preflight_size_text(r->next, need), preflight_size_text(p->free_bytes, room),
                   fits ? "the oldest are removed for it"
                        : "too little may be removed for it, free some space"); /* fits */
    tell(b, "argusd", fits ? "checkpoint_headroom" : "checkpoint_no_room", "disk_full", text, 0,
         r->goes);
}

/* Over the quota of its project or user a job keeps one. */
static bool is_over_quota(struct book *b)
{
    char text[JOB_REASON_TEXT_MAX];
    struct err err = {0};
    bool is_over = checkpoints_check_quota(b->cs, b->project, b->user, &err) < 0;
    if (is_over && !b->quota_told) {
        (void)snprintf(text, sizeof(text), "%.200s: of each running job one is kept", err.text);
        tell(b, "argusd", "checkpoint_quota", "quota_checkpoints", text, 0,
             ckpt_list_bytes(&b->list));
    }
    b->quota_told = is_over;
    return is_over;
}

static void plan(struct book *b, struct pass *p)
{
    struct ckpt_policy policy = b->policy;
    const struct live *l = jobs_find_id(b->cs->p.jobs, b->id);
    policy.is_over = p->asked && !(l && is_followed(l));
    if (is_over_quota(b))
        policy.keep_last = 1;
    p->plan = xcalloc(b->list.n ? b->list.n : 1, sizeof(*p->plan));
    ckpt_plan(&b->list, &policy, p->plan);
    struct room room = make_room(b, p);
    if (any_goes(&b->list, p->plan)) {
        for (size_t i = 0; i < b->list.n; i++) /* all specs are searched: only now */
            b->list.v[i].held = is_in_use(b, b->list.v[i].step);
        ckpt_plan(&b->list, &policy, p->plan);
        room = make_room(b, p);
    }
    tell_room(b, p, &room);
}

/* ---- a pass ---- */

static void start_wanted(struct checkpoints *cs);
static void start_removal(struct pass *p);

static void answer(struct pass *p)
{
    struct book *b = p->b;
    struct checkpoints_answer a = {.err = &p->err,
                                   .list = &p->found,
                                   .plan = p->plan,
                                   .removed = p->removed,
                                   .removed_bytes = p->removed_bytes};
    for (struct checkpoints_ask **at = &b->asks; *at;) {
        struct checkpoints_ask *k = *at;
        if (!k->began) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        k->done(&a, k->arg);
        free(k->actor);
        free(k);
        at = &b->asks; /* the call may have changed it */
    }
    if (b->asks)
        b->wanted = true;
}

static void end_pass(struct pass *p)
{
    struct checkpoints *cs = p->b->cs;
    p->b->busy = false;
    cs->busy--;
    if (!cs->closing) {
        keep_row(p->b);
        answer(p);
        start_wanted(cs);
    }
    pass_free(p);
}

static void copy_list(struct ckpt_list *to, const struct ckpt_list *from)
{
    to->tracker = from->tracker;
    for (size_t i = 0; i < from->n; i++)
        *ckpt_list_add(to, from->v[i].step) = from->v[i];
}

static void run_look(void *arg)
{
    struct pass *p = arg;
    p->free_bytes = UINT64_MAX;
    p->result = ckpt_look(p->root, p->id, &p->known, p->k, p->flags, &p->found, &p->err);
    for (size_t i = 0; p->result == 0 && p->metric && i < p->found.n; i++) {
        struct ckpt *c = &p->found.v[i];
        if (c->state == CKPT_VERIFIED && !c->has_value)
            c->has_value = ckpt_value(p->root, p->id, p->metric, c->step, &c->value);
    }
    if (p->result == 0 && p->found.n && ckpt_free_bytes(p->root, p->id, &p->free_bytes, NULL) < 0)
        p->free_bytes = UINT64_MAX;
}

/* What was found broken since this look began stays so while its files are the same. */
static void keep_verdicts(struct ckpt_list *found, const struct ckpt_list *known)
{
    for (size_t i = 0; i < found->n; i++) {
        struct ckpt *c = &found->v[i];
        const struct ckpt *old = ckpt_list_find(known, c->step);
        if (old && old->state == CKPT_BROKEN && old->mark && old->mark == c->mark &&
            c->state == CKPT_VERIFIED) {
            c->state = CKPT_BROKEN;
            memcpy(c->why, old->why, sizeof(c->why));
        }
    }
}

static void done_look(void *arg)
{
    struct pass *p = arg;
    struct book *b = p->b;
    if (p->result < 0 && !b->failing)
        log_warn("checkpoints", "%s job=%s", p->err.text, b->id);
    b->failing = p->result < 0;
    if (b->cs->closing || p->result < 0) {
        end_pass(p);
        return;
    }
    keep_verdicts(&p->found, &b->list);
    tell_news(b, &p->found);
    ckpt_list_release(&b->list);
    copy_list(&b->list, &p->found);
    plan(b, p);
    if (any_goes(&b->list, p->plan) && !p->dry_run)
        start_removal(p);
    else
        end_pass(p);
}

static void run_removal(void *arg)
{
    struct pass *p = arg;
    for (size_t i = 0; p->result == 0 && i < p->found.n; i++) {
        if (p->plan[i] != CKPT_GOES)
            continue;
        p->result = ckpt_remove(p->root, p->id, p->found.v[i].step, &p->err);
        if (p->result == 0) {
            p->removed++;
            p->removed_bytes += p->found.v[i].bytes;
        }
    }
}

static const char *who_asked(const struct book *b)
{
    for (const struct checkpoints_ask *a = b->asks; a; a = a->next)
        if (a->began)
            return a->actor;
    return "argusd";
}

static void done_removal(void *arg)
{
    struct pass *p = arg;
    struct book *b = p->b;
    struct buf steps = BUF_INIT(160);
    char text[JOB_REASON_TEXT_MAX], size[SIZE_TEXT];
    size_t left = p->removed;
    int64_t last = 0;
    if (p->result < 0)
        log_warn("checkpoints", "%s job=%s", p->err.text, b->id);
    for (size_t i = 0; i < p->found.n && left; i++) {
        if (p->plan[i] != CKPT_GOES)
            continue;
        left--;
        last = p->found.v[i].step;
        struct ckpt *c = ckpt_list_find(&b->list, last);
        (void)buf_addf(&steps, "%s%" PRId64, steps.len ? ", " : "", last); /* more: cut */
        if (c) {
            size_t at = (size_t)(c - b->list.v);
            memmove(c, c + 1, (b->list.n - at - 1) * sizeof(*c));
            b->list.n--;
        }
    }
    if (p->removed && !b->cs->closing) {
        (void)snprintf(text, sizeof(text), "removed the checkpoints of the steps %s%s: %s",
                       buf_str(&steps), steps.failed ? " …" : "",
                       preflight_size_text(p->removed_bytes, size)); /* fits */
        tell(b, who_asked(b), "checkpoint_removed", "", text, last, p->removed_bytes);
    }
    buf_release(&steps);
    end_pass(p);
}

static void start_removal(struct pass *p)
{
    work_start(p->b->cs->p.loop, run_removal, done_removal, p);
}

static void start_look(struct book *b)
{
    struct checkpoints *cs = b->cs;
    struct pass *p = xcalloc(1, sizeof(*p));
    usec_t now = clock_mono();
    bool walks = !b->walked_at || now - b->walked_at > WALK_EVERY || !b->followed || b->asks;
    *p = (struct pass){.b = b,
                       .root = xstrdup(cs->p.settings->shared_root),
                       .id = xstrdup(b->id),
                       .metric = xstrdup(b->metric),
                       .k = b->k,
                       .flags = walks ? 0 : CKPT_LOOK_TRUST};
    copy_list(&p->known, &b->list);
    p->dry_run = b->asks != NULL;
    for (struct checkpoints_ask *a = b->asks; a; a = a->next) {
        a->began = true;
        p->asked = true;
        p->dry_run = p->dry_run && a->dry_run;
    }
    b->looked_at = now;
    if (walks)
        b->walked_at = now;
    b->wanted = false;
    b->busy = true;
    cs->busy++;
    work_start(cs->p.loop, run_look, done_look, p);
}

static void start_wanted(struct checkpoints *cs)
{
    if (cluster_root_hangs(cs->p.cluster))
        return;
    for (struct book *b = cs->first; b && cs->busy < BUSY_MAX; b = b->next)
        if (b->wanted && !b->busy)
            start_look(b);
}

/* ---- when ---- */

static bool is_unfinished(const struct ckpt_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].state == CKPT_PARTIAL || l->v[i].state == CKPT_COMPLETE)
            return true;
    return false;
}

/* Where a training tells its steps, nothing is new before the next. */
static bool is_due(const struct book *b, const struct live *l, usec_t now)
{
    if (now - b->looked_at < LOOK_EVERY)
        return false;
    return l->extra.step == 0 || l->extra.step != b->step || is_unfinished(&b->list) ||
           now - b->looked_at > IDLE_EVERY;
}

static void follow(struct checkpoints *cs, const struct live *l, usec_t now)
{
    struct book *b = book_of(cs, l->job);
    int k = job_attempt(l->job)->k;
    b->seen_at = now;
    if (!b->followed || b->k != k)
        b->walked_at = 0;
    if (!b->followed || is_due(b, l, now)) {
        b->wanted = true;
        b->step = l->extra.step;
    }
    b->followed = true;
    b->k = k;
}

static void on_tick(uv_timer_t *t)
{
    struct checkpoints *cs = container_of(t, struct checkpoints, timer);
    const struct live *l;
    usec_t now = clock_mono();
    for (size_t pos = 0; (l = jobs_next(cs->p.jobs, &pos));)
        if (is_followed(l))
            follow(cs, l, now);
    for (struct book *b = cs->first; b; b = b->next)
        if (b->followed && b->seen_at != now) {
            b->followed = false; /* it has ended: one look more */
            b->wanted = true;
        }
    start_wanted(cs);
}

/* ---- asks ---- */

struct checkpoints_ask *checkpoints_gc(struct checkpoints *cs,
                                       const struct job *job,
                                       bool dry_run,
                                       const char *actor,
                                       checkpoints_f done,
                                       void *arg)
{
    struct checkpoints_ask *a = xcalloc(1, sizeof(*a));
    struct book *b = book_of(cs, job);
    *a = (struct checkpoints_ask){.next = b->asks,
                                  .b = b,
                                  .dry_run = dry_run,
                                  .actor = xstrdup(actor),
                                  .done = done,
                                  .arg = arg};
    b->asks = a;
    b->wanted = true;
    start_wanted(cs);
    return a;
}

void checkpoints_unask(struct checkpoints_ask *a)
{
    struct checkpoints_ask **at = a ? &a->b->asks : NULL;
    while (at && *at && *at != a)
        at = &(*at)->next;
    if (!at || !*at)
        return;
    *at = a->next;
    free(a->actor);
    free(a);
}

/* ---- life ---- */

struct checkpoints *checkpoints_new(const struct checkpoints_parts *parts)
{
    unsigned char seed[16];
    struct checkpoints *cs = xcalloc(1, sizeof(*cs));
    random_bytes(seed, sizeof(seed));
    cs->p = *parts;
    cs->by_id = map_new(seed);
    (void)uv_timer_init(parts->loop, &cs->timer); /* never fails */
    return cs;
}

void checkpoints_start(struct checkpoints *cs)
{
    (void)uv_timer_start(&cs->timer, on_tick, TICK_MS, TICK_MS); /* cannot fail */
}

void checkpoints_close(struct checkpoints *cs)
{
    if (!cs || cs->closing)
        return;
    cs->closing = true;
    uv_close((uv_handle_t *)&cs->timer, NULL);
}

void checkpoints_free(struct checkpoints *cs)
{
    if (!cs)
        return;
    for (struct book *b = cs->first, *next; b; b = next) {
        next = b->next;
        book_free(b);
    }
    map_free(cs->by_id);
    free(cs);
}
