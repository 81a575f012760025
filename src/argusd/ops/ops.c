/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - the plans: their rows, who may apply which and when, and the pass that takes each plan
 * under way from step to step. What a step does and is looked at for is ops_steps.c. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/ops/ops_state.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"

enum { TICK_MS = 1000, SAID_MAX = 1600, OPS_ID_BYTES = 5 };

#define X(e, word) word,
const char *const ops_action_words[] = {OPS_ACTION_TABLE(X) NULL};
static const char *const ops_state_words[] = {OPS_STATE_TABLE(X) NULL};
const char *const ops_step_words[] = {OPS_STEP_TABLE(X) NULL};
const char *const ops_step_states[] = {OPS_STEP_STATE_TABLE(X) NULL};
#undef X

#define STEP(key, ftype, ...) FIELD_AT(ops_step, #key, ftype, key, __VA_ARGS__)
static const struct field step_rows[] = {
    STEP(what, FIELD_ENUM, .names = ops_step_words),
    STEP(state, FIELD_ENUM, .names = ops_step_states),
    STEP(begun_at, FIELD_TIME),
    STEP(ended_at, FIELD_TIME),
    STEP(real, FIELD_STR),
};
static const struct field_table step_table = FIELD_TABLE(NULL, step_rows, ops_step);

#define APPROVAL(key, ftype, ...) FIELD_AT(ops_approval, #key, ftype, key, __VA_ARGS__)
static const struct field approval_rows[] = {
    APPROVAL(user, FIELD_STR, .flags = FIELD_ALWAYS),
    APPROVAL(at, FIELD_TIME, .flags = FIELD_ALWAYS),
};
static const struct field_table approval_table = FIELD_TABLE(NULL, approval_rows, ops_approval);

#define THING(key, ftype, ...) FIELD_AT(ops_thing, #key, ftype, key, __VA_ARGS__)
static const struct field thing_rows[] = {
    THING(thing, FIELD_STR, .flags = FIELD_ALWAYS, .doc = "node/w1, checkpoint/20"),
    THING(fate,
          FIELD_STR,
          .flags = FIELD_ALWAYS,
          .doc = "drained, removed, restarted, why it stays; of a job that Argus did not submit "
                 "(foreign/ID) stopped or waited_for"),
    THING(bytes, FIELD_COUNT),
};
static const struct field_table thing_table = FIELD_TABLE(NULL, thing_rows, ops_thing);

enum { OPS_KEPT = FIELD_STORED | FIELD_SHOWN, OPS_ITEM = OPS_KEPT | FIELD_LISTED };
#define PLAN(key, ftype, ...) FIELD_AT(ops_plan, #key, ftype, key, __VA_ARGS__)
static const struct field plan_rows[] = {
    PLAN(id, FIELD_STR, .flags = OPS_ITEM | FIELD_ALWAYS),
    PLAN(action, FIELD_ENUM, .names = ops_action_words, .flags = OPS_ITEM),
    PLAN(state, FIELD_ENUM, .names = ops_state_words, .flags = FIELD_STORED),
    PLAN(user, FIELD_STR, .flags = OPS_ITEM | FIELD_ALWAYS, .doc = "user who asked for it"),
    PLAN(role, FIELD_INT32, .flags = FIELD_STORED),
    PLAN(created_at, FIELD_TIME, .flags = OPS_ITEM | FIELD_ALWAYS),
    PLAN(expires_at, FIELD_TIME, .flags = OPS_ITEM | FIELD_ALWAYS, .doc = "if nobody applies it"),
    PLAN(target,
         FIELD_STR,
         .flags = OPS_ITEM,
         .doc = "the node, job or cluster; of many jobs what chose them, as project/rlhf or "
                "job/sft-1,job/sft-2"),
    PLAN(then, FIELD_INT32, .flags = FIELD_STORED),
    PLAN(within, FIELD_SPAN, .flags = FIELD_STORED),
    PLAN(force, FIELD_BOOL, .flags = OPS_KEPT),
    PLAN(stop_foreign,
         FIELD_BOOL,
         .flags = OPS_KEPT,
         .doc = "jobs that Argus did not submit are not waited for, but stopped with the machine"),
    PLAN(of_user, FIELD_STR, .flags = FIELD_STORED),
    PLAN(of_project, FIELD_STR, .flags = FIELD_STORED),
    PLAN(of_pool, FIELD_STR, .flags = FIELD_STORED),
    PLAN(ids, FIELD_STRV, .flags = FIELD_STORED),
    PLAN(hash,
         FIELD_STR,
         .flags = OPS_KEPT | FIELD_ALWAYS,
         .doc = "hash of the state that the plan was made for"),
    PLAN(facts, FIELD_PAIRS, .flags = FIELD_STORED),
    PLAN(jobs,
         FIELD_JSON,
         .flags = OPS_KEPT | FIELD_ALWAYS,
         .schema = LIST(REF("DrainPlanJob")),
         .doc = "that it touches, and what becomes of each"),
    PLAN(job_ids, FIELD_STRV, .flags = FIELD_STORED),
    PLAN(back, FIELD_STRV, .flags = FIELD_STORED),
    PLAN(waited, FIELD_STRV, .flags = FIELD_STORED),
    PLAN(users, FIELD_STRV, .flags = OPS_ITEM, .doc = "users whose jobs these are"),
    PLAN(things,
         FIELD_LIST,
         .of = &thing_table,
         .flags = OPS_KEPT,
         .doc = "machines and checkpoints, and what becomes of each"),
    PLAN(gpus, FIELD_REAL, .flags = OPS_KEPT, .doc = "GPUs that these jobs hold there"),
    PLAN(at_risk_gpu_hours, FIELD_REAL, .flags = OPS_ITEM, .doc = "work that would be lost"),
    PLAN(newest, FIELD_INT, .flags = FIELD_STORED),
    PLAN(needs, FIELD_INT, .flags = OPS_ITEM, .doc = "approvals of others before it is applied"),
    PLAN(approvals, FIELD_LIST, .of = &approval_table, .flags = OPS_ITEM),
    PLAN(applied_by, FIELD_STR, .flags = OPS_ITEM),
    PLAN(applied_at, FIELD_TIME, .flags = OPS_ITEM),
    PLAN(ended_at, FIELD_TIME, .flags = OPS_ITEM),
    PLAN(steps, FIELD_LIST, .of = &step_table, .flags = FIELD_STORED),
};
const struct field_table ops_plan_table = FIELD_TABLE(NULL, plan_rows, ops_plan);

struct ops_waiter {
    struct ops_waiter *next;
    struct ops_plan *p;
    void (*cb)(void *arg);
    void *arg;
};

/* ---- the table ---- */

static void ops_save(const struct ops_plan *p)
{
    _cleanup_(freep) char *body = field_to_text(&ops_plan_table, p, FIELD_STORED, FIELD_ROW);
    const struct store_entry row = {
        .kind = OPS_ENTRY, .name = p->id, .body = body, .at = p->created_at};
    store_put_entry(p->of->a->store, &row);
}

static void ops_plan_free(struct ops_plan *p)
{
    ops_step_forget(p);
    field_release(&ops_plan_table, p);
    free(p);
}

const char *ops_state_word(const struct ops_plan *p)
{
    return ops_state_words[p->state];
}

bool ops_is_expired(const struct ops_plan *p)
{
    return p->state == OPS_IS_WAITING && p->expires_at <= clock_wall();
}

bool ops_is_over(const struct ops_plan *p)
{
    return p->state > OPS_IS_APPLYING || ops_is_expired(p);
}

const struct ops_plan *ops_next(const struct ops *o, size_t *pos)
{
    return *pos < o->n ? o->v[(*pos)++] : NULL;
}

static struct ops_plan *ops_own(const struct ops *o, const char *id)
{
    for (size_t i = 0; i < o->n; i++)
        if (str_eq(o->v[i]->id, id))
            return o->v[i];
    return NULL;
}

const struct ops_plan *ops_find(const struct ops *o, const char *id)
{
    return ops_own(o, id);
}

static void ops_insert(struct ops *o, struct ops_plan *p)
{
    size_t at = o->n++;
    o->v = xrealloc(o->v, o->n, sizeof(struct ops_plan *));
    for (; at && o->v[at - 1]->created_at > p->created_at; at--)
        o->v[at] = o->v[at - 1]; /* rows come by id */
    o->v[at] = p;
    p->of = o;
}

void ops_restore(struct ops *o, const struct store_entry *row)
{
    struct ops_plan *p = xcalloc(1, sizeof(*p));
    if (field_from_text(&ops_plan_table, row->body, FIELD_STORED, p) && p->id && p->user) {
        ops_insert(o, p);
        return;
    }
    log_warn("ops", "the row of plan '%s' cannot be read: it is left out", row->name);
    ops_plan_free(p);
}

/* The oldest that is over goes. False: all are wanted. */
static bool ops_make_room(struct ops *o)
{
    size_t i = 0;
    while (i < o->n && !ops_is_over(o->v[i]))
        i++;
    if (o->n < OPS_PLANS_MAX)
        return true;
    if (i == o->n)
        return false;
    store_remove_entry(o->a->store, OPS_ENTRY, o->v[i]->id);
    ops_plan_free(o->v[i]);
    for (o->n--; i < o->n; i++)
        o->v[i] = o->v[i + 1];
    return true;
}

/* ---- telling ---- */

struct access_thing ops_thing_of(const struct ops_plan *p)
{
    return (struct access_thing){.kind = ACCESS_KIND_PLAN, .name = p->id, .owner = p->user};
}

/* kind is the code as well. step: the one that it is about, NULL: none. */
static void ops_tell(const struct ops_plan *p,
                     const char *kind,
                     const char *actor,
                     const struct ops_step *step)
{
    char text[SAID_MAX];
    const struct access_thing thing = ops_thing_of(p);
    _cleanup_(freep) char *object = xasprintf("plan/%s", p->id);
    _cleanup_(freep) char *expected = step ? ops_step_expected(p, step) : NULL;
    _cleanup_(freep) char *after =
        step ? field_to_text(&step_table, step, FIELD_ALL, FIELD_PAGE) : NULL;
    message_write(text, sizeof(text),
                  step ? MESSAGE_ARGS(MESSAGE_STR("action", ops_action_words[p->action]),
                                      MESSAGE_STR("step", ops_step_words[step->what]),
                                      MESSAGE_KEPT("expected", expected),
                                      MESSAGE_KEPT("real", str_or(step->real, "")))
                       : MESSAGE_ARGS(MESSAGE_STR("action", ops_action_words[p->action]),
                                      MESSAGE_STR("target", str_or(p->target, ""))));
    const struct events_note note = {.thing = &thing,
                                     .kind = kind,
                                     .actor = actor,
                                     .object = object,
                                     .code = kind,
                                     .text = text,
                                     .after = after};
    events_add(p->of->a->events, &note, clock_wall());
}

/* ---- waiting for its end ---- */

struct ops_waiter *ops_wait(const struct ops_plan *plan, void (*cb)(void *arg), void *arg)
{
    struct ops_plan *p = ops_own(plan->of, plan->id);
    struct ops_waiter *w = xcalloc(1, sizeof(*w));
    *w = (struct ops_waiter){.next = p->waiters, .p = p, .cb = cb, .arg = arg};
    p->waiters = w;
    return w;
}

void ops_unwait(struct ops_waiter *w)
{
    struct ops_waiter **at = w ? &w->p->waiters : NULL;
    while (at && *at != w)
        at = &(*at)->next;
    if (at)
        *at = w->next;
    free(w);
}

static void ops_wake(struct ops_plan *p)
{
    while (p->waiters) {
        struct ops_waiter *w = p->waiters;
        p->waiters = w->next;
        w->cb(w->arg);
        free(w);
    }
}

/* ---- the pass ---- */

static void ops_end(struct ops_plan *p, enum ops_state state, const char *kind)
{
    p->state = (int)state;
    p->ended_at = clock_wall();
    ops_step_forget(p);
    ops_save(p);
    ops_tell(p, kind, "argusd", NULL);
    ops_wake(p);
}

static void ops_end_step(struct ops_plan *p,
                         struct ops_step *s,
                         enum ops_step_state state,
                         char *real_taken)
{
    static const char *const kinds[OPS_STEP_STATES] = {[OPS_STEP_IS_DONE] = "ops_step_done",
                                                       [OPS_STEP_IS_FAILED] = "ops_step_failed",
                                                       [OPS_STEP_IS_BROKEN_OFF] =
                                                           "ops_step_broken_off"};
    free(s->real);
    s->real = real_taken;
    s->state = (int)state;
    s->ended_at = clock_wall();
    ops_save(p);
    ops_tell(p, kinds[state], "argusd", s);
}

static void ops_begin_step(struct ops_plan *p, struct ops_step *s)
{
    struct err err = {0};
    s->state = OPS_STEP_IS_RUNNING;
    s->begun_at = clock_wall();
    if (ops_step_act(p, s, &err) < 0) {
        ops_end_step(p, s, OPS_STEP_IS_FAILED, message_keep(&err));
        return;
    }
    ops_save(p); /* in the batch of what was decided */
}

/* It was waited for long enough. */
static char *ops_late(const struct ops_plan *p, const struct ops_step *s, char *real_taken)
{
    char span[CLOCK_TEXT_MAX];
    struct err err = {0};
    _cleanup_(freep) char *real = real_taken;
    (void)message_refuse(
        &err, ERR_REFUSED, "ops_late",
        MESSAGE_ARGS(MESSAGE_STR("span", span_to_string(ops_step_patience(p, s), span)),
                     MESSAGE_KEPT("why", str_or(real, "")))); /* only fills err */
    return message_keep(&err);
}

static void ops_look_at_step(struct ops_plan *p, struct ops_step *s)
{
    char *real = NULL;
    enum ops_found found = ops_step_look(p, s, &real);
    usec_t patience = ops_step_patience(p, s);
    if (found == OPS_AS_EXPECTED)
        ops_end_step(p, s, OPS_STEP_IS_DONE, real);
    else if (found == OPS_NEVER)
        ops_end_step(p, s, OPS_STEP_IS_FAILED, real);
    else if (patience && clock_wall() > s->begun_at + patience)
        ops_end_step(p, s, OPS_STEP_IS_FAILED, ops_late(p, s, real));
    else
        free(real);
}

static void ops_drive(struct ops_plan *p)
{
    struct ops_step *v = p->steps.v;
    for (size_t i = 0; i < p->steps.n; i++) {
        if (v[i].state == OPS_STEP_IS_WAITING)
            ops_begin_step(p, &v[i]);
        if (v[i].state == OPS_STEP_IS_RUNNING)
            ops_look_at_step(p, &v[i]);
        if (v[i].state == OPS_STEP_IS_RUNNING)
            return;
        if (v[i].state != OPS_STEP_IS_DONE) {
            ops_end(p, OPS_IS_FAILED, "ops_failed");
            return;
        }
    }
    ops_end(p, OPS_IS_DONE, "ops_done");
}

static void ops_on_tick(uv_timer_t *timer)
{
    struct ops *o = timer->data;
    struct err ignored = {0};
    if (store_check(o->a->store, &ignored) < 0)
        return; /* nothing can be decided now */
    for (size_t i = 0; i < o->n; i++)
        if (o->v[i]->state == OPS_IS_APPLYING)
            ops_drive(o->v[i]);
}

/* ---- make, approve, apply ---- */

static int ops_check_room(struct ops *o, const char *user, struct err *err)
{
    size_t own = 0;
    for (size_t i = 0; i < o->n; i++)
        own += !ops_is_over(o->v[i]) && str_eq(o->v[i]->user, user);
    if (own >= OPS_OF_USER_MAX || !ops_make_room(o))
        return message_refuse(err, ERR_BUSY, "ops_full",
                              MESSAGE_ARGS(MESSAGE_NUM("most", OPS_OF_USER_MAX)));
    return 0;
}

int ops_add(struct ops *o,
            struct ops_plan *taken,
            const struct checkpoints_answer *goes,
            const struct ops_plan **ret,
            struct err *err)
{
    char hex[2 * OPS_ID_BYTES + 1], hash[HASH_HEX];
    int r = ops_look(o->a, taken, goes, err);
    if (r == 0)
        r = ops_check_room(o, taken->user, err);
    if (r < 0)
        return r;
    struct ops_plan *p = xcalloc(1, sizeof(*p));
    *p = *taken;
    *taken = (struct ops_plan){0};
    p->id = xasprintf("plan-%s", random_hex(hex));
    opsfacts_hash(&p->facts, hash);
    p->hash = xstrdup(hash);
    p->created_at = clock_wall();
    p->expires_at = p->created_at + o->a->settings->ops_expires;
    p->needs = o->a->settings->ops_approvals;
    ops_insert(o, p);
    ops_save(p);
    ops_tell(p, "ops_planned", p->user, NULL);
    *ret = p;
    return 0;
}

/* It waits, and not for too long. */
static int ops_check_waits(const struct ops_plan *p, struct err *err)
{
    if (p->state != OPS_IS_WAITING)
        return message_refuse(err, ERR_CONFLICT, "ops_was_applied",
                              MESSAGE_ARGS(MESSAGE_STR("id", p->id),
                                           MESSAGE_STR("state", ops_state_words[p->state])));
    if (ops_is_expired(p))
        return message_refuse(err, ERR_CONFLICT, "ops_expired",
                              MESSAGE_ARGS(MESSAGE_STR("id", p->id)));
    return 0;
}

static bool ops_has_approved(const struct ops_plan *p, const char *user)
{
    const struct ops_approval *v = p->approvals.v;
    for (size_t i = 0; i < p->approvals.n; i++)
        if (str_eq(v[i].user, user))
            return true;
    return false;
}

int ops_approve(struct ops *o, const struct ops_plan *plan, const char *user, struct err *err)
{
    struct ops_plan *p = ops_own(o, plan->id);
    int r = ops_check_waits(p, err);
    if (r < 0 || ops_has_approved(p, user))
        return r;
    if (str_eq(user, p->user))
        return message_refuse(err, ERR_FORBIDDEN, "ops_own_approval", MESSAGE_NO_ARGS);
    const struct ops_approval approval = {.user = xstrdup(user), .at = clock_wall()};
    field_list_add(&p->approvals, &approval, sizeof(approval));
    ops_save(p);
    ops_tell(p, "ops_approved", user, NULL);
    return 0;
}

const char *ops_confirmation(const struct ops_plan *p)
{
    return p->action == OPS_RESTART_RAY_HEAD ? p->target : NULL;
}

int ops_compare(const struct ops_plan *p, int role, struct field_list *ret, struct err *err)
{
    struct ops_plan now = {.action = p->action,
                           .user = p->user,
                           .role = role < p->role ? role : p->role,
                           .target = p->target ? xstrdup(p->target) : NULL,
                           .then = p->then,
                           .within = p->within,
                           .force = true, /* what speaks against it was weighed when it was made */
                           .stop_foreign = p->stop_foreign,
                           .of_user = p->of_user,
                           .of_project = p->of_project,
                           .of_pool = p->of_pool};
    strv_copy(&now.ids, &p->ids);
    int r = ops_look(p->of->a, &now, NULL, err);
    if (r == 0)
        opsfacts_compare(&p->facts, &now.facts, ret);
    now.user = now.of_user = now.of_project = now.of_pool = NULL; /* the plan's own */
    field_release(&ops_plan_table, &now);
    return r;
}

static int ops_check_state(const struct ops_plan *p, int role, struct err *err)
{
    struct field_list changes = {0};
    int r = ops_compare(p, role, &changes, err);
    if (r == 0 && changes.n) {
        _cleanup_(freep) char *said = opsfacts_say(&changes);
        r = message_refuse(err, ERR_CONFLICT, "ops_state_changed",
                           MESSAGE_ARGS(MESSAGE_STR("id", p->id), MESSAGE_STR("difference", said)));
    }
    opsfacts_release(&changes);
    return r;
}

/* Two plans do not work on one thing at the same time. Those that stop jobs may: to stop a job that
 * is stopping changes nothing, and a user's plan must not hold up an admin's for the same jobs. */
static int ops_check_alone(const struct ops_plan *p, struct err *err)
{
    if (!p->target || p->action == OPS_STOP_MANY)
        return 0;
    for (size_t i = 0; i < p->of->n; i++) {
        const struct ops_plan *other = p->of->v[i];
        if (other->state == OPS_IS_APPLYING && str_eq(other->target, p->target))
            return message_refuse(
                err, ERR_CONFLICT, "ops_under_way",
                MESSAGE_ARGS(MESSAGE_STR("id", other->id), MESSAGE_STR("target", p->target)));
    }
    return 0;
}

static int ops_check_apply(const struct ops_plan *p, int role, const char *typed, struct err *err)
{
    const char *word = ops_confirmation(p);
    int r = ops_check_waits(p, err);
    if (r == 0 && (int64_t)p->approvals.n < p->needs)
        r = message_refuse(err, ERR_CONFLICT, "ops_needs_approval",
                           MESSAGE_ARGS(MESSAGE_STR("id", p->id), MESSAGE_NUM("n", p->approvals.n),
                                        MESSAGE_NUM("needs", p->needs)));
    if (r == 0 && word && !str_eq(word, str_or(typed, "")))
        r = message_refuse(err, ERR_CONFLICT, "ops_type_it",
                           MESSAGE_ARGS(MESSAGE_STR("word", word)));
    if (r == 0)
        r = ops_check_alone(p, err);
    return r == 0 ? ops_check_state(p, role, err) : r;
}

int ops_apply(struct ops *o,
              const struct ops_plan *plan,
              const struct http_principal *who,
              const char *typed,
              struct err *err)
{
    struct ops_plan *p = ops_own(o, plan->id);
    int role = (int)who->role, r = ops_check_apply(p, role, typed, err);
    if (r < 0)
        return r;
    p->role = role < p->role ? role : p->role; /* what its steps still ask, they ask with it */
    p->state = OPS_IS_APPLYING;
    p->applied_at = clock_wall();
    set_str(&p->applied_by, who->user);
    ops_tell(p, "ops_applied", who->user, NULL);
    ops_drive(p);
    return 0;
}

/* ---- life ---- */

struct ops *ops_new(struct api *a)
{
    struct ops *o = xcalloc(1, sizeof(*o));
    o->a = a;
    return o;
}

/* What argusd ended in the middle of. */
static void ops_break_off(struct ops_plan *p)
{
    struct ops_step *v = p->steps.v;
    struct err err = {0};
    for (size_t i = 0; p->state == OPS_IS_APPLYING && i < p->steps.n; i++) {
        if (v[i].state != OPS_STEP_IS_RUNNING || !ops_step_is_single(&v[i]))
            continue;
        (void)message_refuse(&err, ERR_REFUSED, "ops_broken_off", MESSAGE_NO_ARGS); /* fills err */
        ops_end_step(p, &v[i], OPS_STEP_IS_BROKEN_OFF, message_keep(&err));
        ops_end(p, OPS_IS_BROKEN_OFF, "ops_broken_off");
    }
}

void ops_start(struct ops *o)
{
    for (size_t i = 0; i < o->n; i++)
        ops_break_off(o->v[i]);
    (void)uv_timer_init(o->a->loop, &o->timer); /* never fails */
    o->timer.data = o;
    (void)uv_timer_start(&o->timer, ops_on_tick, TICK_MS, TICK_MS); /* cannot fail */
    o->started = true;
}

void ops_close(struct ops *o)
{
    if (!o || o->closing)
        return;
    o->closing = true;
    for (size_t i = 0; i < o->n; i++)
        ops_step_forget(o->v[i]);
    if (o->started)
        uv_close((uv_handle_t *)&o->timer, NULL);
}

void ops_free(struct ops *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n; i++)
        ops_plan_free(o->v[i]);
    free(o->v);
    free(o);
}
