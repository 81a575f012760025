/* SPDX-License-Identifier: Apache-2.0 */
/* changes.c - see changes.h.
 *
 * What changed is one ring of numbered lines for all followers; each remembers the number up to
 * which he was told. A job that ended is no longer in memory when he is told, so a line says whose
 * it is. */
#include "argusd/web/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/kit/saying.h"
#include "argusd/kit/view.h"
#include "base/digest/hash.h"
#include "base/map.h"
#include "base/str.h"
#include "base/text.h"

enum {
    LINES_MAX = 8192, /* of the ring: a follower that is further behind asks for everything */
    WAITING_EACH_TICK = 500, /* of the queue; those that hold slots are looked at each time */
    MESSAGE_MAX = 1 << 20,
    ROOM_LEAST = 64 << 10,
    TICK_MS = 1000,
    PAGE_BYTES_MAX = 16 << 20,
};

enum change_topic {
    CHANGE_JOBS,
    CHANGE_PIPELINES,
    CHANGE_SERVICES,
    CHANGE_NODES,
    CHANGE_POOLS,
    CHANGE_EVENTS,
    CHANGE_TOPICS
};
static const char *const topic_names[] = {"jobs",  "pipelines", "services",
                                          "nodes", "pools",     "events"};

struct change_line {
    uint64_t seq;
    enum change_topic topic;
    bool is_old; /* the ring has a newer line of the same thing */
    char *id, *owner,
        *project; /* of a job, pipeline or service; NULL: of what everybody may know of */
};

/* What a live job looked like. */
struct change_mark {
    char *owner, *project;
    uint64_t mark, round; /* round: of the walk that met it */
};

struct change_follower {
    struct change_follower *next;
    struct changes *of;
    struct http_stream *st;
    struct http_principal who;
    uint64_t told;
};

struct changes {
    struct api *a;
    uv_timer_t timer;
    bool is_open; /* the timer */
    char boot[17];
    uint64_t seq; /* of the newest line */
    struct change_line lines[LINES_MAX];
    struct map *newest[CHANGE_TOPICS]; /* id -> its newest line */
    struct map *marks;                 /* id -> struct change_mark */
    size_t waiting_pos;
    uint64_t waiting_round;
    uint64_t nodes, pools; /* what their pages were */
    struct events_listener *listener;
    struct change_follower *followers;
};

struct changes *changes_new(struct api *a)
{
    unsigned char seed[16];
    struct changes *c = xcalloc(1, sizeof(*c));
    random_bytes(seed, sizeof(seed));
    c->a = a;
    c->marks = map_new(seed);
    for (int t = 0; t < CHANGE_TOPICS; t++)
        c->newest[t] = map_new(seed);
    (void)random_hex(c->boot);
    (void)uv_timer_init(a->loop, &c->timer); /* cannot fail, as below */
    c->timer.data = c;
    c->is_open = true;
    return c;
}

void changes_close(struct changes *c)
{
    if (!c || !c->is_open)
        return;
    c->is_open = false;
    uv_close((uv_handle_t *)&c->timer, NULL);
}

static void change_mark_free(struct change_mark *m)
{
    if (!m)
        return;
    free(m->owner);
    free(m->project);
    free(m);
}

static void change_line_release(struct changes *c, struct change_line *l)
{
    if (l->id && map_find(c->newest[l->topic], l->id) == l)
        map_remove(c->newest[l->topic], l->id);
    free(l->id);
    free(l->owner);
    free(l->project);
    *l = (struct change_line){0};
}

static void changes_forget(struct changes *c)
{
    struct change_mark *m;
    struct strv ids = {0};
    const char *id;
    for (size_t pos = 0; map_next(c->marks, &pos, &id);)
        strv_add(&ids, id);
    for (size_t i = 0; i < ids.n; i++) {
        m = map_remove(c->marks, ids.v[i]);
        change_mark_free(m);
    }
    strv_release(&ids);
}

void changes_free(struct changes *c)
{
    if (!c)
        return;
    changes_forget(c);
    map_free(c->marks);
    for (size_t i = 0; i < LINES_MAX; i++)
        change_line_release(c, &c->lines[i]);
    for (int t = 0; t < CHANGE_TOPICS; t++)
        map_free(c->newest[t]);
    free(c);
}

/* ---- what changed ---- */

static void changes_add(struct changes *c,
                        enum change_topic topic,
                        const char *id,
                        const char *owner,
                        const char *project)
{
    struct change_line *l = &c->lines[++c->seq % LINES_MAX];
    change_line_release(c, l);
    *l = (struct change_line){.seq = c->seq,
                              .topic = topic,
                              .id = xstrdup(id),
                              .owner = xstrdup(owner),
                              .project = xstrdup(project)};
    struct change_line *before = id ? map_set(c->newest[topic], id, l) : NULL;
    if (before) /* a name may have gone to another person, who is not told of the one before */
        before->is_old = str_eq(before->owner, owner) && str_eq(before->project, project);
}

void changes_tell_pipeline(struct changes *c,
                           const char *id,
                           const char *owner,
                           const char *project)
{
    if (c && c->followers) /* who comes later asks for all that there is */
        changes_add(c, CHANGE_PIPELINES, id, owner, project);
}

void changes_tell_service(struct changes *c,
                          const char *name,
                          const char *owner,
                          const char *project)
{
    if (c && c->followers)
        changes_add(c, CHANGE_SERVICES, name, owner, project);
}

/* True when it is not as it was. */
static void change_look_at(struct changes *c, const struct live *l, uint64_t round)
{
    const struct api_eyes eyes = {.a = c->a};
    struct change_mark *m = map_find(c->marks, l->job->id);
    uint64_t mark = view_item_mark(l, &eyes);
    if (!m) {
        m = xcalloc(1, sizeof(*m));
        m->owner = xstrdup(l->job->user);
        m->project = xstrdup(l->job->project);
        m->mark = ~mark;
        map_set(c->marks, l->job->id, m);
    }
    m->round = round;
    if (m->mark == mark)
        return;
    m->mark = mark;
    changes_add(c, CHANGE_JOBS, l->job->id, m->owner, m->project);
}

/* At the end of a walk over all jobs: those that it did not meet are over. */
static void changes_drop_ended(struct changes *c)
{
    struct strv gone = {0};
    const char *id;
    for (size_t pos = 0; map_next(c->marks, &pos, &id);)
        if (!jobs_find_id(c->a->jobs, id))
            strv_add(&gone, id);
    for (size_t i = 0; i < gone.n; i++) {
        struct change_mark *own = map_remove(c->marks, gone.v[i]);
        changes_add(c, CHANGE_JOBS, gone.v[i], own->owner, own->project);
        change_mark_free(own);
    }
    strv_release(&gone);
}

static void changes_look_at_jobs(struct changes *c)
{
    struct live *l = NULL;
    for (size_t pos = 0; (l = jobs_next_placed(c->a->jobs, &pos));)
        change_look_at(c, l, c->waiting_round);
    for (int i = 0; i < WAITING_EACH_TICK && (l = jobs_next(c->a->jobs, &c->waiting_pos)); i++)
        if (l->job->state == JOB_QUEUED)
            change_look_at(c, l, c->waiting_round);
    if (l)
        return;
    c->waiting_pos = 0;
    c->waiting_round++;
    changes_drop_ended(c);
}

static bool sees_every_job(const char *job, void *arg)
{
    (void)job;
    (void)arg;
    return true;
}

static void changes_look_at_machines(struct changes *c)
{
    static const unsigned char seed[16];
    const struct message_listener listener = {.language = MESSAGE_ENGLISH};
    const struct nodes_eyes eyes = {.sees = sees_every_job, .listener = &listener};
    struct buf out = BUF_INIT(PAGE_BYTES_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    nodes_put_pools(c->a->nodes, &j, "pools");
    uint64_t pools = hash_keyed(seed, buf_str(&out), out.len);
    nodes_put_all(c->a->nodes, &eyes, &j, "nodes");
    jout_close(&j, '}');
    uint64_t nodes = hash_keyed(seed, buf_str(&out), out.len);
    buf_release(&out);
    if (pools != c->pools)
        changes_add(c, CHANGE_POOLS, NULL, NULL, NULL);
    if (nodes != c->nodes)
        changes_add(c, CHANGE_NODES, NULL, NULL, NULL);
    c->pools = pools;
    c->nodes = nodes;
}

/* An event is on disk: its job is as good as changed, and a page of events is old. */
static void changes_on_event(int64_t seq, const char *job, void *arg)
{
    struct changes *c = arg;
    const struct live *l = job ? jobs_find_any(c->a->jobs, job) : NULL;
    (void)seq;
    if (l)
        changes_add(c, CHANGE_JOBS, job, l->job->user, l->job->project);
    const struct change_line *last = &c->lines[c->seq % LINES_MAX];
    if (last->topic != CHANGE_EVENTS)
        changes_add(c, CHANGE_EVENTS, NULL, NULL, NULL);
}

/* ---- telling it ---- */

static bool change_is_his(const struct access_who *who, const struct change_line *l)
{
    static const struct {
        enum access_kind kind;
        enum access_action see;
    } of[CHANGE_TOPICS] = {[CHANGE_JOBS] = {ACCESS_KIND_JOB, ACCESS_JOB_SEE},
                           [CHANGE_PIPELINES] = {ACCESS_KIND_PIPELINE, ACCESS_PIPELINE_SEE},
                           [CHANGE_SERVICES] = {ACCESS_KIND_SERVICE, ACCESS_SERVICE_SEE}};
    const struct access_thing thing = {
        .kind = of[l->topic].kind, .name = l->id, .owner = l->owner, .project = l->project};
    return !l->id || access_check(who, of[l->topic].see, "see", &thing, NULL) == 0;
}

/* The ids of one topic after what he was told, each once: by its newest line, which is among them.
 * False: there is nothing. */
static bool change_collect(const struct changes *c,
                           const struct change_follower *f,
                           const struct access_who *who,
                           enum change_topic topic,
                           struct buf *out)
{
    bool any = false;
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "ids", '[');
    for (uint64_t i = f->told + 1; i <= c->seq; i++) {
        const struct change_line *l = &c->lines[i % LINES_MAX];
        if (l->topic != topic || l->is_old || !change_is_his(who, l))
            continue;
        any = true;
        if (l->id)
            jout_str(&j, NULL, l->id);
    }
    jout_close(&j, ']');
    jout_close(&j, '}');
    return any;
}

static bool change_send(const struct changes *c,
                        struct change_follower *f,
                        const char *event,
                        const struct buf *data)
{
    char id[48];
    text_printf(id, "%s-%llu", c->boot, (unsigned long long)c->seq);
    return http_stream_sse(f->st, id, event, buf_str(data), data->len) >= 0;
}

static void change_follower_free(struct change_follower *f)
{
    struct changes *c = f->of;
    struct change_follower **at = &c->followers;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    free(f);
    if (c->followers)
        return;
    events_unlisten(c->listener);
    c->listener = NULL;
    if (c->is_open)
        (void)uv_timer_stop(&c->timer); /* cannot fail */
}

static void change_hello(struct changes *c, struct change_follower *f, bool is_reset)
{
    struct buf out = BUF_INIT(256);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_bool(&j, "reset", is_reset);
    jout_close(&j, '}');
    (void)change_send(c, f, "hello", &out); /* a new stream has room */
    buf_release(&out);
}

/* Nothing of what he is owed is lost: with no room now, he is told at a later tick. */
static void change_tell(struct changes *c, struct change_follower *f)
{
    struct access_who who;
    if (f->told == c->seq || http_stream_room(f->st) < ROOM_LEAST)
        return;
    if (c->seq - f->told >= LINES_MAX) {
        change_hello(c, f, true);
        f->told = c->seq;
        return;
    }
    people_who(c->a->people, &f->who, &who);
    for (int t = 0; t < CHANGE_TOPICS; t++) {
        struct buf out = BUF_INIT(MESSAGE_MAX);
        if (change_collect(c, f, &who, (enum change_topic)t, &out) && !out.failed &&
            !change_send(c, f, topic_names[t], &out)) {
            buf_release(&out);
            return; /* what was told already is told again */
        }
        buf_release(&out);
    }
    f->told = c->seq;
}

static void changes_on_tick(uv_timer_t *timer)
{
    struct changes *c = timer->data;
    struct change_follower *next;
    changes_look_at_jobs(c);
    changes_look_at_machines(c);
    for (struct change_follower *f = c->followers; f; f = next) {
        next = f->next;
        if (people_may_go_on(c->a->people, c->a->tokens, &f->who)) {
            change_tell(c, f);
        } else {
            http_stream_end(f->st); /* he comes back, and is refused */
            change_follower_free(f);
        }
    }
}

static void change_on_gone(struct http_stream *st, void *arg)
{
    (void)st;
    change_follower_free(arg);
}

/* Where he was: a number of this run that the ring still has. False: nobody knows. */
static bool change_find_place(const struct changes *c, const char *last, uint64_t *ret)
{
    size_t n = strlen(c->boot);
    int64_t seq = 0;
    if (!last || strncmp(last, c->boot, n) != 0 || last[n] != '-' ||
        str_to_int(last + n + 1, 0, (int64_t)c->seq, &seq, NULL) < 0 ||
        c->seq - (uint64_t)seq >= LINES_MAX)
        return false;
    *ret = (uint64_t)seq;
    return true;
}

/* Where a follower who asks for what is there now has to go on from. */
static void change_answer_place(struct http_req *req, const struct changes *c)
{
    char id[48];
    struct buf out = BUF_INIT(256);
    struct jout j = jout_begin(&out);
    text_printf(id, "%s-%llu", c->boot, (unsigned long long)c->seq);
    jout_open(&j, NULL, '{');
    jout_str(&j, "id", id);
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_reader_barrier(c->a));
    buf_release(&out);
}

static void changes_get(struct http_req *req, void *app)
{
    struct api *a = app;
    struct changes *c = a->changes;
    if (!http_req_query_bool(req, "follow", false)) {
        change_answer_place(req, c);
        return;
    }
    struct http_stream *st = http_stream_begin(req, "text/event-stream", 0);
    if (!st)
        return;
    struct change_follower *f = xcalloc(1, sizeof(*f));
    *f = (struct change_follower){.next = c->followers, .of = c, .st = st, .told = c->seq};
    f->who = *http_req_principal(req);
    bool is_first = !c->followers;
    c->followers = f;
    http_stream_on_close(st, change_on_gone, f);
    /* While nobody followed nothing was looked at: what changed then is not known. */
    const char *last = http_req_last_event_id(req);
    bool is_reset = last && *last && (is_first || !change_find_place(c, last, &f->told));
    if (is_first) {
        c->listener = events_listen(a->events, changes_on_event, c);
        changes_forget(c);
        c->waiting_pos = 0;
        changes_look_at_jobs(c);
        changes_look_at_machines(c);
        f->told = c->seq;
        (void)uv_timer_start(&c->timer, changes_on_tick, TICK_MS, TICK_MS); /* cannot fail */
    }
    change_hello(c, f, is_reset);
}

static const struct http_param params[] = {
    {"follow", HTTP_PARAM_BOOLEAN, "an event stream from now on, or from last_event_id on"},
    {"last_event_id", HTTP_PARAM_STRING, "the id of the last message that was seen"},
    {0}};
static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/changes",
     .least = HTTP_ROLE_VIEWER,
     .flags = HTTP_ROUTE_STREAM,
     .handle = changes_get,
     .summary =
         "follow what changes, at most once a second: ids of jobs, pipelines and their runs, "
         "services, and that nodes, pools or events did",
     .params = params,
     .reply_schema = "ChangePlace",
     .stream_schema = "Change"},
};
static const struct http_schema schemas[] = {
    {.name = "ChangePlace", .json = OBJECT("\"id\"", KEY("id", TEXT))},
    {.name = "Change",
     .json = OBJECT("",
                    KEY("ids", TEXTS) "," KEY(
                        "reset",
                        "{\"type\":\"boolean\",\"description\":\"a hello says: ask for everything "
                        "again, what changed meanwhile is not known\"}"))},
};
const struct api_part part_changes = {rows, array_len(rows), schemas, array_len(schemas)};
