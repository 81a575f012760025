/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints.c - the catalogue: a book for each job, and when it is looked at; see checkpoints.h.
 *
 * What a look does is checkpoints_pass.c's. A book without a checkpoint, of a job that does not
 * run and whose end was looked at, is none. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/archive/archives.h"
#include "argusd/checkpoints/checkpoints_book.h"
#include "argusd/ground/jobspec.h"
#include "argusd/launch/secretcheck.h"
#include "argusd/people/people.h"
#include "base/digest/hash.h"
#include "base/str.h"
#include "core/spec/evalspec.h"

enum { TICK_MS = 2000, LIST_TEXT_MAX = 6 << 20 };
static const double GIB = 1024.0 * 1024 * 1024;
static const usec_t LOOK_EVERY = 4 * USEC_SEC;
static const usec_t OWED_EVERY = 60 * USEC_SEC; /* of a job that is over */
static const usec_t IDLE_EVERY = 12 * USEC_SEC; /* while its step does not change */

/* ---- books ---- */

static struct book *book_add(struct checkpoints *cs, const char *id)
{
    struct book *b = xcalloc(1, sizeof(*b));
    *b = (struct book){.next = cs->first, .cs = cs, .id = xstrdup(id), .has_pins = true};
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

/* What follows from its spec, which may have been another one for the attempt before. */
static void book_take_spec(struct book *b, const struct job *job)
{
    const struct spec *spec = jobspec_of(b->cs->p.settings, job);
    b->has_spec = true;
    freep(&b->eval);
    if (!spec)
        return;
    set_str(&b->metric, spec->keep_best_metric);
    b->policy = (struct ckpt_policy){.keep_last = spec->keep_last > 0 ? spec->keep_last : 1,
                                     .best = b->metric,
                                     .best_is_min = spec->keep_best_mode != 0};
    if (spec->eval_on_save)
        b->eval = evalspec_template_of(job->spec);
    b->eval_is_secret = secretcheck_holds(spec);
}

static struct book *book_of(struct checkpoints *cs, const struct job *job)
{
    struct book *b = map_find(cs->by_id, job->id);
    if (b && b->seq)
        return b;
    if (!b)
        b = book_add(cs, job->id);
    b->seq = job->seq;
    set_str(&b->project, job->project);
    set_str(&b->user, job->user);
    b->policy.keep_last = 1;
    book_take_spec(b, job);
    return b;
}

void checkpoints_restore(struct checkpoints *cs, const struct store_entry *row)
{
    struct book *b = book_add(cs, row->name);
    book_read(b, row->body);
}

const struct ckpt_list *checkpoints_of(const struct checkpoints *cs, const char *job)
{
    const struct book *b = map_find(cs->by_id, job);
    return b ? &b->list : NULL;
}

bool checkpoints_is_looking(const struct checkpoints *cs, const char *job)
{
    const struct book *b = map_find(cs->by_id, job);
    return b && b->owes_end;
}

int64_t checkpoints_newest(const struct checkpoints *cs, const char *job, const char *user)
{
    const struct book *b = map_find(cs->by_id, job);
    const struct ckpt *newest = b && book_is_seen_by(b, user) ? ckpt_list_newest(&b->list) : NULL;
    return newest ? newest->step : 0;
}

/* By the values of keep_best's metric: before another one is shown. */
static void book_show_kept(const struct book *b, struct ckpt_list *l)
{
    struct ckpt_policy policy = b->policy;
    enum ckpt_keep *plan = xcalloc(l->n ? l->n : 1, sizeof(*plan));
    policy.is_over = !jobs_find_id(b->cs->p.jobs, b->id);
    ckpt_plan(l, &policy, plan);
    for (size_t i = 0; i < l->n; i++)
        l->v[i].kept = plan[i];
    free(plan);
}

/* p: who asks for those who need them; NULL: nobody does. */
static void book_show(const struct book *b,
                      const struct http_principal *p,
                      struct checkpoints_shown *ret)
{
    ckpt_list_copy(&ret->list, &b->list);
    if (p)
        book_find_users(b, p, ret);
    book_show_kept(b, &ret->list);
    ret->metric = xstrdup(b->metric ? b->metric : ckpt_list_main(&ret->list));
    ret->is_min =
        b->metric ? b->policy.best_is_min : ret->metric && ckpt_metric_is_min(ret->metric);
    if (!b->metric && ret->metric)
        ckpt_list_show(&ret->list, ret->metric);
}

void checkpoints_show(const struct checkpoints *cs, const char *job, struct checkpoints_shown *ret)
{
    checkpoints_show_used(cs, job, NULL, ret);
}

void checkpoints_show_used(const struct checkpoints *cs,
                           const char *job,
                           const struct http_principal *p,
                           struct checkpoints_shown *ret)
{
    const struct book *b = map_find(cs->by_id, job);
    *ret = (struct checkpoints_shown){0};
    if (b)
        book_show(b, p, ret);
}

void checkpoints_shown_ask(struct checkpoints_shown *s, const char *metric)
{
    if (!str_eq(s->metric, metric))
        s->is_min = ckpt_metric_is_min(metric);
    set_str(&s->metric, metric);
}

void checkpoints_shown_release(struct checkpoints_shown *s)
{
    ckpt_list_release(&s->list);
    freep(&s->metric);
    free(s->users);
    s->users = NULL;
    strv_release(&s->user_names);
}

char *checkpoints_shown_text(const struct checkpoints_shown *s, const struct message_listener *to)
{
    struct buf out = BUF_INIT(LIST_TEXT_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < s->list.n; i++)
        ckpt_to_json(&s->list.v[i], &s->list, to, &j, NULL);
    jout_close(&j, ']');
    return buf_take(&out);
}

char *checkpoints_text(const struct checkpoints *cs,
                       const char *job,
                       const struct message_listener *to)
{
    struct checkpoints_shown s;
    checkpoints_show(cs, job, &s);
    char *text = checkpoints_shown_text(&s, to);
    checkpoints_shown_release(&s);
    return text;
}

bool checkpoints_next(const struct checkpoints *cs,
                      const struct book **pos,
                      struct checkpoints_sum *ret)
{
    const struct book *b = *pos ? (*pos)->next : cs->first;
    while (b && !b->list.n)
        b = b->next;
    if (!b)
        return false;
    const struct ckpt *newest = ckpt_list_newest(&b->list);
    *pos = b;
    *ret = (struct checkpoints_sum){.id = b->id,
                                    .user = b->user,
                                    .project = b->project,
                                    .bytes = ckpt_list_bytes(&b->list),
                                    .n = b->list.n,
                                    .newest = newest ? newest->step : 0};
    return true;
}

/* GiB of the checkpoints of a project's jobs, or of a user's. */
static double gib_of(const struct checkpoints *cs, const char *project, const char *user)
{
    double sum = 0;
    for (const struct book *b = cs->first; b; b = b->next)
        if (((project && str_eq(b->project, project)) || (user && str_eq(b->user, user))) &&
            !archives_is_away(cs->p.archives, b->id)) /* they count as what they are packed to */
            sum += (double)ckpt_list_bytes(&b->list) / GIB;
    return sum;
}

static int check_limit(const char *kind, const char *name, double has, double may, struct err *err)
{
    if (may < 0 || has <= may)
        return 0;
    return message_refuse(err, ERR_REFUSED, "quota_checkpoints",
                          MESSAGE_ARGS(MESSAGE_STR("kind", kind), MESSAGE_STR("account", name),
                                       MESSAGE_NUM("has", round(has * 100) / 100),
                                       MESSAGE_NUM("limit", may)));
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
        book_tell_one(b, c);
    book_keep(b);
}

/* ---- when ---- */

static bool is_followed(const struct live *l)
{
    return job_is_in_ray(l->job) && workload_word_trains(l->job->workload);
}

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
    if (!b->has_spec || b->k != k)
        book_take_spec(b, l->job);
    if (!b->followed || b->k != k)
        b->walked_at = 0;
    if (!b->followed || is_due(b, l, now)) {
        b->wanted = true;
        b->step = l->extra.step;
    }
    b->followed = true;
    b->k = k;
}

void checkpoints_ended(struct checkpoints *cs, const struct live *l)
{
    const struct attempt *a = job_attempt(l->job);
    if (!a || !workload_word_trains(l->job->workload))
        return;
    struct book *b = book_of(cs, l->job);
    b->k = a->k;
    b->followed = false;
    b->walked_at = 0;
    b->owes_end = true;
    book_want_pass(b);
    book_keep(b);
}

void checkpoints_forget(struct checkpoints *cs, const char *job)
{
    struct book *b = map_find(cs->by_id, job);
    if (!b)
        return;
    ckpt_list_release(&b->list);
    b->n_pinned = 0;
    b->owes_end = b->owes_look = false;
    book_keep(b);
}

/* Those of jobs that are over and have none. */
static void drop_empty(struct checkpoints *cs)
{
    for (struct book **at = &cs->first, *b; (b = *at);) {
        if (b->followed || b->wanted || b->place.goes_on || b->asks || b->list.n || b->stored) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        (void)map_remove(cs->by_id, b->id); /* it is b */
        book_free(b);
    }
}

static void checkpoints_on_tick(uv_timer_t *t)
{
    struct checkpoints *cs = container_of(t, struct checkpoints, timer);
    const struct live *l;
    usec_t now = clock_mono();
    for (size_t pos = 0; (l = jobs_next_placed(cs->p.jobs, &pos));)
        if (is_followed(l))
            follow(cs, l, now);
    for (struct book *b = cs->first; b; b = b->next) {
        if (b->followed && b->seen_at != now) {
            b->followed = false; /* it has ended: one look more */
            b->wanted = b->owes_end = true;
        } else if (!b->followed && b->owes_look && now - b->looked_at > OWED_EVERY) {
            b->wanted = true;
        }
        if (b->wanted) /* by this turn, or while its job was in an archive */
            book_want_pass(b);
    }
    drop_empty(cs);
    checkpoints_start_wanted(cs);
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
    book_want_pass(b);
    checkpoints_start_wanted(cs);
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
    cs->lines.most_of_one = PASSES_OF_USER_MAX;
    cs->by_id = map_new(seed);
    (void)uv_timer_init(parts->loop, &cs->timer); /* never fails */
    return cs;
}

void checkpoints_start(struct checkpoints *cs)
{
    (void)uv_timer_start(&cs->timer, checkpoints_on_tick, TICK_MS, TICK_MS); /* cannot fail */
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
    userlines_release(&cs->lines);
    map_free(cs->by_id);
    free(cs);
}
