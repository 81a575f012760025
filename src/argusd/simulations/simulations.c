/* SPDX-License-Identifier: Apache-2.0 */
/* simulations.c - see simulations.h.
 *
 * A simulation and its work are two objects: who is removed leaves its work behind, which ends at
 * the next instant of its replay and frees itself on the loop. The worker touches its work alone;
 * the two words that both sides touch are atomic. */
#include "argusd/simulations/simulations.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "argusd/ground/work.h"
#include "base/clock.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"

enum { LOOK_EACH = 64 }; /* instants of a replay between two looks at the clock */

const char *const simulated_states[] = {"waiting", "running", "done", "failed", "cancelled", NULL};
const char *const simulated_sources[] = {"history", "trace", NULL};

/* What a worker has in hand. */
struct simulations_work {
    struct simulations *all;
    struct simulated *of; /* NULL: removed */
    char *name;
    struct buf trace;
    char *texts[5]; /* of the options, owned: s may go meanwhile */
    struct simulation_opts opts;
    bool is_started;
    atomic_bool stop;
    atomic_size_t done, whole;
    usec_t until; /* monotonic */
    unsigned looks;
    bool is_late;
    /* the result */
    struct buf out;
    struct err err;
    int result;
    size_t jobs;
};

struct simulations {
    uv_loop_t *loop;
    struct store *store;
    struct simulated **v; /* by age */
    size_t n;
    struct turns turns;
    bool is_closed;
};

#define ROW(key, ftype, ...)                                                                       \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct simulated, key), __VA_ARGS__        \
    }
enum { ITEM = FIELD_STORED | FIELD_SHOWN | FIELD_LISTED };
static const struct field simulated_rows[] = {
    ROW(id, FIELD_STR, .flags = ITEM | FIELD_ALWAYS),
    ROW(user, FIELD_STR, .flags = ITEM | FIELD_ALWAYS, .doc = "user who asked for it"),
    ROW(name, FIELD_STR, .flags = ITEM | FIELD_ALWAYS, .doc = "name of the trace, as it was sent"),
    ROW(source, FIELD_ENUM, .names = simulated_sources, .flags = ITEM),
    ROW(state, FIELD_ENUM, .names = simulated_states, .flags = ITEM),
    ROW(nodes, FIELD_STR, .flags = ITEM, .doc = "as it was asked for: 64x8; likewise below"),
    ROW(load, FIELD_STR, .flags = ITEM),
    ROW(policy, FIELD_STR, .flags = ITEM),
    ROW(guess, FIELD_STR, .flags = ITEM),
    ROW(pool, FIELD_STR, .flags = ITEM),
    ROW(seed, FIELD_INT, .flags = ITEM),
    ROW(learner, FIELD_BOOL, .flags = ITEM),
    ROW(since,
        FIELD_TIME,
        .flags = ITEM,
        .doc = "a history begins with the jobs queued from then on"),
    ROW(created_at, FIELD_TIME, .flags = ITEM | FIELD_ALWAYS),
    ROW(ended_at, FIELD_TIME, .flags = ITEM),
    ROW(jobs, FIELD_INT, .flags = ITEM, .doc = "jobs that are played; 0: not known yet"),
    ROW(is_cut, FIELD_BOOL, .flags = ITEM, .doc = "there were older jobs that did not fit"),
    ROW(progress, FIELD_REAL, .flags = FIELD_SHOWN | FIELD_LISTED, .doc = "0 to 1"),
    ROW(reason, FIELD_STR, .flags = FIELD_STORED),
    ROW(result, FIELD_JSON, .flags = FIELD_STORED),
};
const struct field_table simulated_table = {.name = NULL,
                                            .rows = simulated_rows,
                                            .n = array_len(simulated_rows),
                                            .size = sizeof(struct simulated)};

/* ---- the table ---- */

struct simulations *simulations_new(uv_loop_t *loop, struct store *store)
{
    struct simulations *ss = xcalloc(1, sizeof(*ss));
    ss->loop = loop;
    ss->store = store;
    return ss;
}

static void simulated_free(struct simulated *s)
{
    field_release(&simulated_table, s);
    free(s);
}

bool simulated_is_over(const struct simulated *s)
{
    return s->state >= SIMULATED_DONE;
}

static void simulations_put(struct simulations *ss, struct simulated *s)
{
    ss->v = xrealloc(ss->v, ss->n + 1, sizeof(struct simulated *));
    ss->v[ss->n++] = s;
}

static void simulations_save(const struct simulations *ss, const struct simulated *s)
{
    _cleanup_(freep) char *body = field_to_text(&simulated_table, s, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {
        .kind = SIMULATIONS_ENTRY, .name = s->id, .body = body, .at = s->created_at};
    store_put_entry(ss->store, &row);
}

static void simulated_end(struct simulated *s, enum simulated_state state, const struct err *err)
{
    s->state = (int)state;
    s->ended_at = clock_wall();
    free(s->reason);
    s->reason = err ? message_keep(err) : NULL;
}

void simulations_restore(struct simulations *ss, const struct store_entry *row)
{
    struct simulated *s = xcalloc(1, sizeof(*s));
    struct err err = {0};
    size_t at;
    if (!field_from_text(&simulated_table, row->body, FIELD_STORED, s) || !s->id || !s->user) {
        simulated_free(s);
        return;
    }
    s->progress = s->state == SIMULATED_DONE;
    if (!simulated_is_over(s)) {
        (void)message_refuse(&err, ERR_UNAVAILABLE, "simulation_lost", MESSAGE_NO_ARGS);
        simulated_end(s, SIMULATED_FAILED, &err);
    }
    simulations_put(ss, s);
    for (at = ss->n - 1; at && ss->v[at - 1]->created_at > s->created_at; at--) {
        ss->v[at] = ss->v[at - 1]; /* rows come by id */
        ss->v[at - 1] = s;
    }
}

const struct simulated *simulations_next(const struct simulations *ss, size_t *pos)
{
    return *pos < ss->n ? ss->v[(*pos)++] : NULL;
}

struct simulated *simulations_find(const struct simulations *ss, const char *id)
{
    for (size_t i = 0; i < ss->n; i++)
        if (str_eq(ss->v[i]->id, id))
            return ss->v[i];
    return NULL;
}

/* ---- beginning and ending ---- */

int simulations_check(const struct simulations *ss, const char *user, struct err *err)
{
    size_t own = 0, all = 0;
    for (size_t i = 0; i < ss->n; i++)
        if (!simulated_is_over(ss->v[i])) {
            all++;
            own += str_eq(ss->v[i]->user, user);
        }
    if (own >= SIMULATIONS_LIVE_OF_ONE)
        return message_refuse(
            err, ERR_BUSY, "simulation_own_busy",
            MESSAGE_ARGS(MESSAGE_NUM("count", own), MESSAGE_NUM("most", SIMULATIONS_LIVE_OF_ONE)));
    if (all >= SIMULATIONS_LIVE_MAX)
        return message_refuse(
            err, ERR_BUSY, "simulation_busy",
            MESSAGE_ARGS(MESSAGE_NUM("count", all), MESSAGE_NUM("most", SIMULATIONS_LIVE_MAX)));
    return 0;
}

static void simulations_make_room(struct simulations *ss, const char *user)
{
    size_t over = 0;
    struct simulated *oldest = NULL;
    for (size_t i = ss->n; i-- > 0;)
        if (simulated_is_over(ss->v[i]) && str_eq(ss->v[i]->user, user)) {
            over++;
            oldest = ss->v[i];
        }
    if (over >= SIMULATIONS_KEPT_OF_ONE)
        simulations_remove(ss, oldest);
}

struct simulated *simulations_add(struct simulations *ss, const struct simulated *asked, usec_t now)
{
    char hex[2 * 5 + 1];
    struct simulated *s = xcalloc(1, sizeof(*s));
    simulations_make_room(ss, asked->user);
    field_copy(&simulated_table, s, asked);
    s->id = xasprintf("sim-%s", random_hex(hex));
    s->state = SIMULATED_WAITING;
    s->created_at = now;
    simulations_put(ss, s);
    simulations_save(ss, s);
    return s;
}

static void simulations_begin(struct simulations *ss);

/* Its work goes its own way: a worker that has it in hand ends at the next instant. */
static void simulated_leave_work(struct simulations *ss, struct simulated *s)
{
    struct simulations_work *w = s->work;
    if (!w)
        return;
    turns_leave(&ss->turns, &s->turn);
    s->work = NULL;
    w->of = NULL;
    atomic_store(&w->stop, true);
}

static void simulations_work_free(struct simulations_work *w)
{
    for (size_t i = 0; i < array_len(w->texts); i++)
        free(w->texts[i]);
    free(w->name);
    buf_release(&w->trace);
    buf_release(&w->out);
    free(w);
}

void simulations_fail(struct simulations *ss, struct simulated *s, const struct err *err)
{
    simulated_end(s, SIMULATED_FAILED, err);
    simulations_save(ss, s);
}

/* It has no work any more; one that had not begun is freed here. */
static void simulations_stop(struct simulations *ss, struct simulated *s)
{
    struct simulations_work *w = s->work;
    simulated_leave_work(ss, s);
    if (w && !w->is_started)
        simulations_work_free(w);
    simulations_begin(ss);
}

int simulations_cancel(struct simulations *ss,
                       struct simulated *s,
                       const char *user,
                       struct err *err)
{
    struct err why = {0};
    if (simulated_is_over(s))
        return message_refuse(err, ERR_CONFLICT, "simulation_over",
                              MESSAGE_ARGS(MESSAGE_STR("id", s->id)));
    (void)message_refuse(&why, ERR_REFUSED, "simulation_cancelled",
                         MESSAGE_ARGS(MESSAGE_STR("user", user))); /* only fills why */
    simulated_end(s, SIMULATED_CANCELLED, &why);
    simulations_save(ss, s);
    simulations_stop(ss, s);
    return 0;
}

void simulations_remove(struct simulations *ss, struct simulated *s)
{
    size_t i = 0;
    simulations_stop(ss, s);
    store_remove_entry(ss->store, SIMULATIONS_ENTRY, s->id);
    while (ss->v[i] != s)
        i++;
    for (ss->n--; i < ss->n; i++)
        ss->v[i] = ss->v[i + 1];
    simulated_free(s);
}

/* ---- on a worker ---- */

static bool simulations_go_on(size_t done, size_t all, void *arg)
{
    struct simulations_work *w = arg;
    atomic_store_explicit(&w->done, done, memory_order_relaxed);
    atomic_store_explicit(&w->whole, all, memory_order_relaxed);
    if (++w->looks % LOOK_EACH == 0 && clock_mono() > w->until)
        w->is_late = true;
    return !w->is_late && !atomic_load_explicit(&w->stop, memory_order_relaxed);
}

static int simulations_check_size(const struct simulations_work *w,
                                  const struct trace *t,
                                  struct err *err)
{
    if (t->n > SIMULATIONS_JOBS_MAX)
        return message_refuse(
            err, ERR_REFUSED, "simulation_jobs",
            MESSAGE_ARGS(MESSAGE_NUM("jobs", t->n), MESSAGE_NUM("most", SIMULATIONS_JOBS_MAX)));
    if (!w->opts.pool && t->n_pools > SIMULATIONS_POOLS_MAX)
        return message_refuse(err, ERR_REFUSED, "simulation_pools",
                              MESSAGE_ARGS(MESSAGE_NUM("pools", t->n_pools),
                                           MESSAGE_NUM("most", SIMULATIONS_POOLS_MAX)));
    return 0;
}

static int simulations_replay(struct simulations_work *w, struct trace *trace)
{
    const struct simulation_watch watch = {
        .go_on = simulations_go_on, .arg = w, .most_nodes = SIMULATIONS_NODES_MAX};
    struct simulation s;
    int r = simulation_run(&w->opts, trace, &watch, &s, &w->err);
    if (r == -ECANCELED && w->is_late)
        return message_refuse(&w->err, ERR_TIMEOUT, "simulation_late",
                              MESSAGE_ARGS(MESSAGE_NUM("seconds", SIMULATIONS_SECONDS_MAX)));
    if (r < 0)
        return r;
    for (size_t i = 0; i < s.n_pools; i++)
        w->jobs += s.pools[i].n;
    simulation_page(&s, &w->out);
    simulation_release(&s);
    return w->out.failed ? message_refuse(&w->err, ERR_TOO_LARGE, "simulation_pools",
                                          MESSAGE_ARGS(MESSAGE_NUM("pools", s.n_pools),
                                                       MESSAGE_NUM("most", SIMULATIONS_POOLS_MAX)))
                         : 0;
}

static void simulations_run(void *arg)
{
    struct simulations_work *w = arg;
    struct trace trace = {0};
    w->until = clock_mono() + SIMULATIONS_SECONDS_MAX * USEC_SEC;
    w->result = trace_parse(w->name, buf_str(&w->trace), w->trace.len, &trace, &w->err);
    buf_release(&w->trace);
    if (w->result == 0)
        w->result = simulations_check_size(w, &trace, &w->err);
    if (w->result == 0)
        w->result = simulations_replay(w, &trace);
    trace_release(&trace);
}

/* ---- on the loop again ---- */

static void simulated_settle(struct simulations *ss, struct simulations_work *w)
{
    struct simulated *s = w->of;
    s->jobs = w->jobs ? (int64_t)w->jobs : s->jobs;
    if (w->result == 0) {
        s->result = buf_take(&w->out);
        s->progress = 1;
        simulated_end(s, SIMULATED_DONE, NULL);
    } else {
        simulated_end(s, SIMULATED_FAILED, &w->err);
    }
    simulated_leave_work(ss, s);
    if (!ss->is_closed)
        simulations_save(ss, s);
}

static void simulations_on_done(void *arg)
{
    struct simulations_work *w = arg;
    struct simulations *ss = w->all;
    if (w->of)
        simulated_settle(ss, w);
    simulations_work_free(w);
    simulations_begin(ss);
}

static void simulations_begin(struct simulations *ss)
{
    struct turn *next = ss->is_closed ? NULL : turns_next(&ss->turns, 1);
    if (!next)
        return;
    struct simulated *s =
        (struct simulated *)(void *)((char *)next - offsetof(struct simulated, turn));
    s->state = SIMULATED_RUNNING;
    s->work->is_started = true;
    work_start(ss->loop, simulations_run, simulations_on_done, s->work);
}

/* Options of the request into those of a replay; they were read before, when it was asked for. */
static int simulations_read_opts(const struct simulated *s,
                                 struct simulations_work *w,
                                 struct err *err)
{
    const char *const from[] = {s->nodes, s->load, s->policy, s->guess, s->pool};
    for (size_t i = 0; i < array_len(from); i++)
        w->texts[i] = xstrdup(from[i]);
    w->name = xstrdup(s->name);
    const struct simulation_texts texts = {
        .trace = w->name,
        .nodes = w->texts[0],
        .load = w->texts[1],
        .policy = w->texts[2],
        .guess = w->texts[3],
        .pool = s->source == SIMULATED_TRACE ? w->texts[4] : NULL, /* a history is of one pool */
        .seed = s->seed,
        .no_learner = !s->learner};
    return simulation_read(&texts, &w->opts, err);
}

void simulations_play(struct simulations *ss,
                      struct simulated *s,
                      struct buf *trace,
                      int nodes,
                      int gpus_per_node)
{
    struct simulations_work *w = xcalloc(1, sizeof(*w));
    struct err err = {0};
    *w = (struct simulations_work){
        .all = ss, .of = s, .trace = *trace, .out = BUF_INIT(SIMULATIONS_RESULT_MAX)};
    *trace = BUF_INIT(0);
    int r = simulations_read_opts(s, w, &err);
    if (r == 0 && nodes > 0 && !s->nodes && !s->load) {
        w->opts.nodes = nodes;
        w->opts.gpus_per_node = gpus_per_node;
    }
    s->turn = (struct turn){.user = s->user};
    if (r == 0 && !turns_join(&ss->turns, &s->turn))
        r = message_refuse(&err, ERR_BUSY, "simulation_busy",
                           MESSAGE_ARGS(MESSAGE_NUM("count", SIMULATIONS_LIVE_MAX),
                                        MESSAGE_NUM("most", SIMULATIONS_LIVE_MAX)));
    if (r < 0) {
        simulations_work_free(w);
        simulations_fail(ss, s, &err);
        return;
    }
    s->work = w;
    simulations_begin(ss);
}

double simulated_progress(const struct simulated *s)
{
    size_t whole = s->work ? atomic_load(&s->work->whole) : 0;
    return whole ? (double)atomic_load(&s->work->done) / (double)whole : s->progress;
}

void simulations_close(struct simulations *ss)
{
    if (!ss)
        return;
    ss->is_closed = true;
    for (size_t i = 0; i < ss->n; i++)
        if (ss->v[i]->work)
            atomic_store(&ss->v[i]->work->stop, true);
}

/* What was begun has ended: the loop has run dry. */
void simulations_free(struct simulations *ss)
{
    if (!ss)
        return;
    for (size_t i = 0; i < ss->n; i++) {
        if (ss->v[i]->work)
            simulations_work_free(ss->v[i]->work);
        simulated_free(ss->v[i]);
    }
    free(ss->v);
    free(ss);
}
