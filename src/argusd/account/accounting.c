/* SPDX-License-Identifier: Apache-2.0 */
/* accounting.c - see accounting.h and the room's README.
 *
 * Entries of kind "slotbook": "0" is a state of the book, with the moment on the machine's clock at
 * which its time stood there; "1/<number>" are the events since then, in order, each row a list.
 * The event "take" says that the sums were added to the rows of usage, in the same batch. */
#include "argusd/account/accounting.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/account/wants.h"
#include "base/digest/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/text.h"

enum {
    TICK_MS = 1000,
    LOOK_TICKS = 15,       /* figures are looked at, over the last minute */
    TAKE_TICKS = 60,       /* sums are stored */
    SHORTEN_TICKS = 900,   /* the events are written anew */
    SHORTEN_ROWS = 4096,   /* or when there are so many */
    CLOCK_SLACK_MS = 2000, /* the label follows the wall clock when it is off by more */
    SETTLE_MS = 250,       /* sums of this age are new enough for a reader */
    BEYOND_MS_DAYS = 366,  /* no machine was off for longer: then its clock was wrong */
};
#define STATE_NAME "0"
#define EVENT_PREFIX "1/"
static const int64_t MS_OF_DAY = 86400 * (int64_t)1000;

struct settling {
    struct settling *next;
    accounting_settled_f cb;
    void *arg;
    uint64_t batch;
};

struct accounting {
    struct accounting_parts p;
    const struct figures *figures; /* NULL before the start */
    struct slotbook *book;
    bool awake, has_timer;
    char boot_id[CLOCK_BOOT_ID_MAX];
    int64_t base, boot_base; /* the book's time and the machine's, once; ms */
    char *saved_boot_id;     /* of the state in the store, NULL = there is none */
    uint64_t next_row, rows; /* of events */
    uint64_t ticks, shortened_at;
    int64_t taken_at;
    struct buf events; /* of the row that is being written */
    struct jout list;
    uv_timer_t timer;
    struct settling *settling;
};

/* ---- a life ---- */

struct accounting *accounting_new(const struct accounting_parts *parts)
{
    struct accounting *a = xcalloc(1, sizeof(*a));
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    a->p = *parts;
    a->book = slotbook_new(seed, 0, 0);
    (void)clock_boot_id(a->boot_id);
    buf_init(&a->events, SLOTBOOK_TEXT_MAX);
    return a;
}

void accounting_free(struct accounting *a)
{
    if (!a)
        return;
    for (struct settling *w = a->settling, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    slotbook_free(a->book);
    buf_release(&a->events);
    free(a->saved_boot_id);
    free(a);
}

/* ---- time ---- */

static int64_t ms_of(usec_t t)
{
    return (int64_t)(t / USEC_MS);
}

static int64_t book_time(const struct accounting *a)
{
    return a->base + ms_of(clock_moment(a->boot_id).boot) - a->boot_base;
}

/* ---- events ---- */

static void events_begin(struct accounting *a)
{
    buf_reset(&a->events);
    a->list = jout_begin(&a->events);
    jout_open(&a->list, NULL, '[');
}

static void events_tell(struct accounting *a, struct slotbook_event *e)
{
    if (!slotbook_apply(a->book, e))
        return;
    if (a->list.comma)
        (void)buf_adds(&a->events, ","); /* `failed` is looked at in the end */
    a->list.comma = true;
    slotbook_event_to_json(e, &a->events);
}

/* An empty list is not worth a row. */
static void events_end(struct accounting *a)
{
    char name[32];
    if (!a->list.comma)
        return;
    jout_close(&a->list, ']');
    if (a->events.failed) {
        log_err("account", "the events of one moment are larger than %d bytes: they are not kept",
                SLOTBOOK_TEXT_MAX);
        return;
    }
    text_printf(name, EVENT_PREFIX "%016llu", (unsigned long long)a->next_row++);
    a->rows++;
    store_put_entry(a->p.store, &(struct store_entry){.kind = ACCOUNTING_ENTRY,
                                                      .name = name,
                                                      .body = buf_str(&a->events),
                                                      .at = clock_wall()});
}

static void events_tell_one(struct accounting *a, struct slotbook_event *e)
{
    events_begin(a);
    events_tell(a, e);
    events_end(a);
}

/* ---- the disk ---- */

static void add_row(const struct slotbook_row *row, void *arg)
{
    struct accounting *a = arg;
    static const int64_t steps[] = {ACCOUNTING_QUARTER, ACCOUNTING_DAY};
    static_assert((int)STORE_USAGE_SUMS == (int)SLOTBOOK_SUMS,
                  "the store has a column for each sum");
    struct store_usage u = {.cluster = a->p.cluster,
                            .labels = row->labels,
                            .project = row->project,
                            .user = row->user,
                            .workload = row->workload};
    memcpy(u.sums, row->sums, sizeof(u.sums));
    for (size_t i = 0; i < array_len(steps); i++) {
        u.step = steps[i];
        u.at = row->at / 1000 / u.step * u.step;
        store_add_usage(a->p.store, &u);
    }
}

/* A row of the store is of one owner and one name; here the name is that of the pair. Their steps
 * are negative, so that no question about sums meets them. */
static void add_dealing(const struct slotbook_dealing *row, void *arg)
{
    struct accounting *a = arg;
    static const int64_t steps[] = {ACCOUNTING_QUARTER, ACCOUNTING_DAY};
    static_assert((int)DEALING_SUMS <= (int)STORE_USAGE_SUMS, "the store has a column for each");
    _cleanup_(freep) char *pair = xasprintf("%s%c%s", row->project, ACCOUNTING_PAIR, row->other);
    struct store_usage u = {.cluster = a->p.cluster,
                            .labels = "",
                            .project = row->project,
                            .user = "",
                            .workload = pair};
    memcpy(u.sums, row->sums, DEALING_SUMS * sizeof(*u.sums));
    for (size_t i = 0; i < array_len(steps); i++) {
        u.step = -steps[i];
        u.at = row->at / 1000 / steps[i] * steps[i];
        store_add_usage(a->p.store, &u);
    }
}

/* The sums until then become rows; the event that says so stands in the same batch. */
static void accounting_take(struct accounting *a, int64_t now)
{
    struct slotbook_event e = {.kind = SLOTBOOK_EV_TAKE, .at = now};
    slotbook_take(a->book, now, add_row, a);
    slotbook_take_dealings(a->book, now, add_dealing, a);
    a->taken_at = now;
    events_tell_one(a, &e);
}

static void drop_events(struct accounting *a)
{
    char name[32];
    for (uint64_t i = a->next_row - a->rows; i < a->next_row; i++) {
        text_printf(name, EVENT_PREFIX "%016llu", (unsigned long long)i);
        store_remove_entry(a->p.store, ACCOUNTING_ENTRY, name);
    }
    a->rows = 0;
}

/* The state in place of the events that led to it. */
static void shorten(struct accounting *a)
{
    struct buf events = BUF_INIT(SLOTBOOK_TEXT_MAX), body = BUF_INIT(SLOTBOOK_TEXT_MAX);
    struct jout j = jout_begin(&body);
    int64_t now = book_time(a);
    accounting_take(a, now);
    slotbook_save(a->book, &events);
    jout_open(&j, NULL, '{');
    jout_int(&j, "at", now);
    jout_str(&j, "boot_id", a->boot_id);
    jout_int(&j, "boot", a->boot_base + (now - a->base));
    jout_raw(&j, "events", buf_str(&events));
    jout_close(&j, '}');
    if (events.failed || body.failed) {
        log_err("account", "the state of the slots is larger than %d bytes: its events stay",
                SLOTBOOK_TEXT_MAX);
    } else {
        store_put_entry(a->p.store, &(struct store_entry){.kind = ACCOUNTING_ENTRY,
                                                          .name = STATE_NAME,
                                                          .body = buf_str(&body),
                                                          .at = clock_wall()});
        drop_events(a);
        a->shortened_at = a->ticks;
    }
    buf_release(&events);
    buf_release(&body);
}

/* ---- at start ---- */

static void restore_state(struct accounting *a, const struct store_entry *entry)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    size_t len = strlen(entry->body);
    const json_t *events = NULL;
    if (json_parse(entry->body, len, SLOTBOOK_TEXT_MAX, &v, NULL) == 0)
        events = json_get_array(v, "events");
    char *text = events ? json_dumps(events, JSON_COMPACT) : NULL;
    if (!text || !slotbook_load(a->book, text, strlen(text))) {
        log_err("account", "the state of the slots cannot be read: their time is counted anew");
    } else {
        set_str(&a->saved_boot_id, json_get_str(v, "boot_id", ""));
        a->base = json_get_int(v, "at", 0);
        a->boot_base = json_get_int(v, "boot", 0);
    }
    free(text);
}

void accounting_restore(struct accounting *a, const struct store_entry *entry)
{
    int64_t row = 0;
    if (str_eq(entry->name, STATE_NAME)) {
        restore_state(a, entry);
        return;
    }
    if (str_to_int(entry->name + strlen(EVENT_PREFIX), 0, INT64_MAX, &row, NULL) < 0 ||
        !slotbook_load(a->book, entry->body, strlen(entry->body)))
        log_err("account", "the events '%.40s' of the slots cannot be read: left out", entry->name);
    if (!a->rows)
        a->next_row = (uint64_t)row;
    a->rows = (uint64_t)row - (a->next_row - a->rows) + 1;
    a->next_row = (uint64_t)row + 1;
}

/* The book's time now, after a life that ended at its newest event. */
static int64_t time_after_gap(const struct accounting *a, int64_t boot, int64_t wall)
{
    int64_t last = slotbook_now(a->book), now = wall;
    if (a->saved_boot_id && *a->boot_id && str_eq(a->saved_boot_id, a->boot_id))
        now = a->base + boot - a->boot_base;
    else if (a->saved_boot_id)
        now = last + (wall - slotbook_label(a->book));
    now = now > last ? now : last;
    return a->saved_boot_id && now - last > BEYOND_MS_DAYS * MS_OF_DAY ? last : now;
}

/* Day by day, so that a long gap is not one large list. */
static void cross_gap(struct accounting *a, int64_t now)
{
    while (slotbook_now(a->book) + MS_OF_DAY < now)
        accounting_take(a, slotbook_now(a->book) + MS_OF_DAY);
}

static void accounting_wake(struct accounting *a)
{
    const struct moment m = clock_moment(a->boot_id);
    int64_t now = time_after_gap(a, ms_of(m.boot), ms_of(m.wall));
    int64_t offset = ms_of(m.wall) - now;
    int64_t off = offset - (slotbook_label(a->book) - slotbook_now(a->book));
    a->awake = true;
    a->base = now;
    a->boot_base = ms_of(m.boot);
    if (!a->saved_boot_id || off > CLOCK_SLACK_MS || off < -CLOCK_SLACK_MS)
        events_tell_one(a, &(struct slotbook_event){.kind = SLOTBOOK_EV_CLOCK,
                                                    .at = a->saved_boot_id ? 0 : now,
                                                    .offset = offset});
    cross_gap(a, now);
    a->taken_at = slotbook_now(a->book);
    if (!a->saved_boot_id)
        shorten(a); /* events alone do not say when they were */
}

static int64_t accounting_time(struct accounting *a)
{
    if (!a->awake)
        accounting_wake(a);
    return book_time(a);
}

/* ---- leases ---- */

enum { PARTS_OF_LEASE_MAX = 4096 };

void accounting_begin(struct accounting *a, const struct accounting_job *job)
{
    struct slotbook_event e = {.kind = SLOTBOOK_EV_BEGIN,
                               .at = accounting_time(a),
                               .name = job->id,
                               .project = job->project,
                               .user = job->user,
                               .workload = job->workload};
    struct sched_part part;
    while (e.n_parts < PARTS_OF_LEASE_MAX &&
           sched_lease_part(a->p.sched, job->id, e.n_parts, &part)) {
        if ((e.n_parts & (e.n_parts - 1)) == 0)
            e.parts = xrealloc(e.parts, e.n_parts ? e.n_parts * 2 : 1, sizeof(*e.parts));
        e.parts[e.n_parts++] = (struct slotbook_part){
            .node = part.node, .amount = part.amount, .unknown = part.amount};
    }
    events_tell_one(a, &e);
    free(e.parts);
}

void accounting_again(struct accounting *a, const struct accounting_job *job)
{
    struct slotbook_held held;
    if (!slotbook_job(a->book, job->id, accounting_time(a), &held))
        accounting_begin(a, job);
}

void accounting_set_redoes(struct accounting *a, const char *id, bool redoes)
{
    events_tell_one(
        a, &(struct slotbook_event){
               .kind = SLOTBOOK_EV_REDO, .at = accounting_time(a), .name = id, .amount = redoes});
}

void accounting_add_held(struct accounting *a, const char *id, struct slotbook_held *held)
{
    struct slotbook_held lease;
    if (slotbook_job(a->book, id, accounting_time(a), &lease))
        slotbook_held_add(held, &lease);
}

void accounting_end(struct accounting *a, const char *id, struct slotbook_held *held)
{
    int64_t now = accounting_time(a);
    struct slotbook_held lease;
    if (!slotbook_job(a->book, id, now, &lease))
        return;
    slotbook_held_add(held, &lease);
    events_tell_one(a, &(struct slotbook_event){.kind = SLOTBOOK_EV_END, .at = now, .name = id});
}

/* ---- nodes ---- */

static int64_t amount_of(double gpus)
{
    return gpus > 0 ? llround(gpus * SLOTBOOK_GPU) : 0;
}

static struct slotbook_event node_event(const struct sched_node *n, double foreign, int64_t now)
{
    double others = foreign < n->gpus_held ? foreign : n->gpus_held;
    return (struct slotbook_event){
        .kind = SLOTBOOK_EV_NODE,
        .at = now,
        .name = n->name,
        .labels = n->pool,
        .gpus = amount_of(n->gpus),
        .foreign = amount_of(others),
        .clearing = amount_of(n->gpus_held - others),
        .state = n->usable                        ? SLOTBOOK_OPEN
                 : str_eq(n->why_not, "draining") ? SLOTBOOK_IN_DRAIN
                                                  : SLOTBOOK_DOWN,
    };
}

/* The book's nodes that are in the table no more. */
static void tell_gone(struct accounting *a, const struct map *listed, int64_t now)
{
    struct strv gone = {0};
    const char *name;
    for (size_t pos = 0; (name = slotbook_node_next(a->book, &pos));)
        if (!map_find(listed, name))
            strv_add(&gone, name);
    for (size_t i = 0; i < gone.n; i++)
        events_tell(
            a, &(struct slotbook_event){.kind = SLOTBOOK_EV_GONE, .at = now, .name = gone.v[i]});
    strv_release(&gone);
}

void accounting_set_nodes(struct accounting *a,
                          const struct sched_node *nodes,
                          const double *foreign,
                          size_t n)
{
    static const unsigned char seed[16] = {1}; /* names that operators chose */
    int64_t now = accounting_time(a);
    struct map *listed = map_new(seed);
    events_begin(a);
    for (size_t i = 0; i < n; i++) {
        if (!nodes[i].usable && !nodes[i].why_not)
            continue; /* Ray's head: it never takes jobs and is in no pool */
        struct slotbook_event e = node_event(&nodes[i], foreign[i], now);
        (void)map_set(listed, nodes[i].name, a);
        events_tell(a, &e);
    }
    tell_gone(a, listed, now);
    events_end(a);
    map_free(listed);
}

/* ---- what is kept for gangs ---- */

static void look_at_kept(struct accounting *a, int64_t now)
{
    static const unsigned char seed[16] = {2};
    struct map *kept = map_new(seed);
    struct strv not_kept = {0};
    const char *name;
    int64_t amount = 0;
    events_begin(a);
    for (size_t pos = 0; (name = sched_kept_next(a->p.sched, &pos, &amount));) {
        (void)map_set(kept, name, a);
        events_tell(a, &(struct slotbook_event){
                           .kind = SLOTBOOK_EV_KEEP, .at = now, .name = name, .amount = amount});
    }
    for (size_t pos = 0; (name = slotbook_node_next(a->book, &pos));)
        if (slotbook_kept(a->book, name) && !map_find(kept, name))
            strv_add(&not_kept, name);
    for (size_t i = 0; i < not_kept.n; i++)
        events_tell(a, &(struct slotbook_event){
                           .kind = SLOTBOOK_EV_KEEP, .at = now, .name = not_kept.v[i]});
    events_end(a);
    strv_release(&not_kept);
    map_free(kept);
}

/* ---- guarantees, and what is waited for ---- */

static void on_want(struct slotbook_event *e, void *arg)
{
    events_tell(arg, e);
}

static void look_at_wants(struct accounting *a, int64_t now)
{
    events_begin(a);
    wants_look(a->book, a->p.sched, now, on_want, a);
    events_end(a);
}

/* ---- what the figures say ---- */

/* By the job's own part of the GPUs that it shares. */
static struct slotbook_part measured(const struct accounting *a,
                                     const char *job,
                                     const struct sched_part *p)
{
    int idle = 0, unknown = 0, n = __builtin_popcountll(p->gpus);
    double busy = 0;
    for (uint64_t m = p->gpus; m; m &= m - 1) {
        struct figures_window w =
            figures_use(a->figures, job, p->node, __builtin_ctzll(m), USEC_MIN);
        unknown += !w.n;
        idle += w.n && w.mean < ACCOUNTING_IDLE_BELOW;
        busy += w.n ? fmin(fmax(w.mean, 0), 1) : 0;
    }
    return (struct slotbook_part){.node = p->node,
                                  .amount = p->amount,
                                  .idle = n ? p->amount * idle / n : 0,
                                  .unknown = n ? p->amount * unknown / n : p->amount,
                                  .busy = n ? llround((double)p->amount * busy / n) : 0};
}

static void look_at_use(struct accounting *a, int64_t now)
{
    struct sched_lease_view lease;
    struct sched_part part;
    events_begin(a);
    for (size_t pos = 0; sched_lease_next(a->p.sched, &pos, &lease);)
        for (size_t i = 0; sched_lease_part(a->p.sched, lease.id, i, &part); i++) {
            struct slotbook_part told = measured(a, lease.id, &part);
            events_tell(a, &(struct slotbook_event){.kind = SLOTBOOK_EV_USE,
                                                    .at = now,
                                                    .name = lease.id,
                                                    .parts = &told,
                                                    .n_parts = 1});
        }
    events_end(a);
}

/* ---- from then on ---- */

static void follow_clock(struct accounting *a, int64_t now)
{
    int64_t wall = ms_of(clock_wall()),
            off = wall - (now + slotbook_label(a->book) - slotbook_now(a->book));
    if (off > CLOCK_SLACK_MS || off < -CLOCK_SLACK_MS)
        events_tell_one(a, &(struct slotbook_event){
                               .kind = SLOTBOOK_EV_CLOCK, .at = now, .offset = wall - now});
}

static void prune_quarters(struct accounting *a)
{
    int64_t before = (int64_t)((clock_wall() - ACCOUNTING_KEPT) / USEC_SEC);
    store_prune_usage(a->p.store, ACCOUNTING_QUARTER, before);
    store_prune_usage(a->p.store, -ACCOUNTING_QUARTER, before);
}

static void accounting_on_timer(uv_timer_t *t)
{
    struct accounting *a = t->data;
    int64_t now = accounting_time(a);
    a->ticks++;
    follow_clock(a, now);
    look_at_kept(a, now);
    look_at_wants(a, now);
    if (store_is_failing(a->p.store))
        return; /* what is not stored now is stored then */
    if (a->ticks % LOOK_TICKS == 0)
        look_at_use(a, now);
    if (a->ticks % TAKE_TICKS == 0)
        accounting_take(a, now);
    if (a->ticks - a->shortened_at >= SHORTEN_TICKS || a->rows > SHORTEN_ROWS) {
        shorten(a);
        prune_quarters(a);
    }
}

/* Leases whose job is over, or cannot be read. */
static void end_strays(struct accounting *a, int64_t now)
{
    struct sched_lease_view view;
    struct strv over = {0};
    const char *id;
    for (size_t pos = 0; (id = slotbook_job_next(a->book, &pos));)
        if (!sched_lease_find(a->p.sched, id, &view))
            strv_add(&over, id);
    events_begin(a);
    for (size_t i = 0; i < over.n; i++)
        events_tell(
            a, &(struct slotbook_event){.kind = SLOTBOOK_EV_END, .at = now, .name = over.v[i]});
    events_end(a);
    strv_release(&over);
}

void accounting_start(struct accounting *a, const struct figures *figures)
{
    end_strays(a, accounting_time(a));
    shorten(a); /* the machine's clock of this life stands in the store from here on */
    a->figures = figures;
    (void)uv_timer_init(a->p.loop, &a->timer); /* cannot fail, as below */
    a->timer.data = a;
    a->has_timer = true;
    (void)uv_timer_start(&a->timer, accounting_on_timer, TICK_MS, TICK_MS);
}

void accounting_close(struct accounting *a)
{
    if (!a || !a->has_timer)
        return;
    shorten(a);
    a->has_timer = false;
    uv_close((uv_handle_t *)&a->timer, NULL);
}

void accounting_pool(const struct accounting *a, const char *label, int64_t ret[SLOTBOOK_SUMS])
{
    slotbook_pool(a->book, label, ret);
}

/* ---- readers ---- */

static int64_t taken_label(const struct accounting *a)
{
    return a->taken_at + slotbook_label(a->book) - slotbook_now(a->book);
}

void accounting_settle(struct accounting *a, accounting_settled_f cb, void *arg)
{
    int64_t now = accounting_time(a);
    bool failing = store_is_failing(a->p.store);
    if (!failing && a->has_timer && now - a->taken_at >= SETTLE_MS)
        accounting_take(a, now);
    uint64_t batch = store_batch(a->p.store);
    if (failing || batch <= store_durable(a->p.store)) {
        cb(taken_label(a), arg);
        return;
    }
    struct settling *w = xcalloc(1, sizeof(*w));
    *w = (struct settling){.next = a->settling, .cb = cb, .arg = arg, .batch = batch};
    a->settling = w;
}

void accounting_forget(struct accounting *a, const void *arg)
{
    for (struct settling **at = &a->settling; *at;) {
        struct settling *w = *at;
        if (w->arg != arg) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        free(w);
    }
}

void accounting_durable(struct accounting *a, uint64_t batch)
{
    struct settling *due = NULL;
    for (struct settling **at = &a->settling; *at;) {
        struct settling *w = *at;
        if (w->batch > batch) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->next = due;
        due = w;
    }
    while (due) {
        struct settling *w = due;
        due = w->next;
        w->cb(taken_label(a), w->arg);
        free(w);
    }
}
