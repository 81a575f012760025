/* SPDX-License-Identifier: Apache-2.0 */
/* serving_doors.c - the HTTP proxies through which replicas are reached: whether our gate stands in
 * them, whether a replica answers behind one, and which one the next request takes.
 *
 * A gate is tried as a stranger would: without the key, and only its own refusal counts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/services/service_metrics.h"
#include "argusd/services/serving_state.h"
#include "base/file.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "base/version.h"
#include "core/serve/serve_doc.h"
#include "fsroot/tree/rootdir.h"
#include "fsroot/tree/rootfile.h"

enum { KEY_BYTES = 32, DOOR_REPLY_MAX = 256 << 10 };
static const usec_t GATE_AGAIN = 30 * USEC_SEC, GATE_SOON = 2 * USEC_SEC,
                    CHECK_AGAIN = 2 * USEC_SEC, DOOR_WAIT = 10 * USEC_SEC,
                    CHECK_WAIT = 120 * USEC_SEC, REFUSED_FOR = 5 * USEC_SEC;
#define GATE_SAYS "only argusd is answered here"
#define ENGINE_SAYS_NO_TEXT "\"no_completions\"" /* of a model that has embeddings alone */

/* The gate of one proxy. */
struct service_gate {
    struct serving *sv;
    int is_there; /* 1, 0 = not known, -1 */
    bool is_asked;
    usec_t asked_at;
};

/* ---- the key ---- */

/* Made once, kept where no job reads; the gates read a copy of it on the shared root. */
static int doors_open_key(struct serving *sv, struct err *err)
{
    _cleanup_(freep) char *path = xasprintf("%s/serve.key", sv->a->settings->state_dir);
    _cleanup_(buf_release) struct buf text = BUF_INIT(SERVICE_KEY_MAX);
    int r = file_read(path, &text, err);
    if (r == -ENOENT) {
        (void)random_hex_to(sv->key, KEY_BYTES);
        return file_write(path, sv->key, strlen(sv->key), 0600, FILE_SYNC, err);
    }
    if (r < 0)
        return r;
    text_copy(sv->key, buf_str(&text));
    return strlen(sv->key) == 2 * KEY_BYTES
               ? 0
               : err_set(err, -EINVAL, "'%s' holds no key: remove it, another one is made", path);
}

struct placing {
    struct serving *sv;
    char *root, key[SERVICE_KEY_MAX];
    int r;
    struct err err;
};

static void doors_run_place(void *arg)
{
    struct placing *p = arg;
    _cleanup_(buf_release) struct buf now = BUF_INIT(SERVICE_KEY_MAX);
    if (rootfile_read(p->root, "argus/serve/key", &now, NULL) == 0 && str_eq(buf_str(&now), p->key))
        return;
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    p->r = rootdir_open(p->root, "argus/serve", 0700, &dir, &p->err);
    if (p->r == 0)
        p->r = rootdir_write(&dir, "key", p->key, strlen(p->key), 0600, FILE_SYNC, &p->err);
}

static void doors_on_placed(void *arg)
{
    struct placing *p = arg;
    p->sv->placing = false;
    p->sv->key_placed = p->r == 0;
    if (p->r < 0)
        log_warn("serve", "the key of the gates cannot be written: %s", p->err.text);
    free(p->root);
    free(p);
}

bool serving_place_key(struct serving *sv)
{
    if (sv->key_placed || sv->placing || !cluster_root_is_ok(sv->a->cluster) ||
        cluster_root_hangs(sv->a->cluster))
        return sv->key_placed;
    struct placing *p = xcalloc(1, sizeof(*p));
    *p = (struct placing){.sv = sv, .root = xstrdup(sv->a->settings->shared_root)};
    text_copy(p->key, sv->key);
    sv->placing = true;
    work_start(sv->a->loop, doors_run_place, doors_on_placed, p);
    return false;
}

int serving_open_doors(struct serving *sv, struct err *err)
{
    const struct wire_options opt = {.loop = sv->a->loop,
                                     .user_agent = "argus/" ARGUS_VERSION,
                                     .connect_timeout = 3 * USEC_SEC,
                                     .parallel_max = 16,
                                     .reach = REACH_NAMED,
                                     .networks = &sv->a->settings->call_networks};
    int r = doors_open_key(sv, err);
    if (r < 0)
        return r;
    sv->key_line = xasprintf("x-argus-key: %s", sv->key);
    return wire_new(&opt, &sv->wire, err);
}

struct wire *serving_wire(const struct serving *sv)
{
    return sv->wire;
}

void serving_close_doors(struct serving *sv)
{
    wire_free(sv->wire);
    sv->wire = NULL;
}

/* ---- gates ---- */

static char *doors_url(const char *address, int64_t port, const char *path)
{
    _cleanup_(freep) char *at = str_with_port(address, (int)port);
    return xasprintf("http://%s%s", at, path);
}

static void doors_on_gate(const struct wire_reply *reply, void *arg)
{
    struct service_gate *g = arg;
    g->is_asked = false;
    g->asked_at = clock_mono();
    if (!reply->status)
        return; /* nobody listens: what was known holds */
    g->is_there =
        reply->status == 401 && memmem(reply->body, reply->len, GATE_SAYS, strlen(GATE_SAYS)) ? 1
                                                                                              : -1;
    if (g->is_there < 0)
        log_err("serve", "a proxy of Ray Serve answers everybody: no gate stands in it status=%d",
                reply->status);
}

int serving_gate(struct serving *sv, const char *address, int64_t port, usec_t now)
{
    char name[SERVICE_ADDRESS_MAX + 16];
    text_printf(name, "%s:%d", address, (int)port);
    struct service_gate *g = map_find(sv->gates, name);
    if (!g) {
        g = xcalloc(1, sizeof(*g));
        g->sv = sv;
        (void)map_set(sv->gates, name, g); /* there was none */
    }
    usec_t every = g->is_there > 0 ? GATE_AGAIN : GATE_SOON;
    if (!g->is_asked && sv->wire && (!g->asked_at || now - g->asked_at >= every)) {
        _cleanup_(freep) char *url = doors_url(address, port, SERVE_ROUTES);
        struct wire_order o = {
            .method = "GET", .url = url, .timeout = DOOR_WAIT, .max_bytes = DOOR_REPLY_MAX};
        g->is_asked = true;
        (void)wire_send(sv->wire, &o, doors_on_gate, g); /* it ends with the wire */
    }
    return sv->a->settings->serve_gate == SERVE_GATE_FIREWALL ? 1 : g->is_there;
}

/* ---- does it answer? ---- */

/* One check of a replica; its unit may be gone when the answer comes. */
struct door_check {
    struct serving *sv;
    char *service;
    int64_t version, k;
    usec_t held_at;
};

static struct service_unit *doors_unit_of(const struct door_check *c)
{
    const struct served *s = map_find(c->sv->by_name, c->service);
    const struct service_version *v = s ? service_find_version(s, c->version) : NULL;
    for (size_t i = 0; v && i < v->n_units; i++)
        if (v->units[i]->k == c->k && v->units[i]->held_at == c->held_at)
            return v->units[i];
    return NULL;
}

/* The model makes no text: it is asked for an embedding at once. */
static bool doors_turns_to_embedding(struct service_unit *u, const struct wire_reply *reply)
{
    const char *word = ENGINE_SAYS_NO_TEXT;
    if (u->embeds || !u->of->spec.model || reply->status != 400 ||
        !memmem(reply->body, reply->len, word, strlen(word)))
        return false;
    u->embeds = true;
    u->asked_at = 0;
    return true;
}

static void doors_on_check(const struct wire_reply *reply, void *arg)
{
    struct door_check *c = arg;
    struct service_unit *u = doors_unit_of(c);
    if (u) {
        u->is_asked = false;
        u->asked_at = clock_mono();
        u->passed = reply->status >= 200 && reply->status < 400;
    }
    if (u && !u->passed && !doors_turns_to_embedding(u, reply)) {
        char said[160];
        text_printf(said, "%.*s", (int)(reply->status ? reply->len : 0),
                    reply->body ? reply->body : "");
        message_write(u->reason.text, sizeof(u->reason.text),
                      MESSAGE_ARGS(MESSAGE_NUM("status", reply->status),
                                   MESSAGE_STR("says", reply->status ? said : reply->err.text)));
        text_copy(u->reason.code, "serve_check");
    }
    free(c->service);
    free(c);
}

/* A question to the model that costs it one token. */
static void doors_write_question(const struct service_unit *u, struct buf *body)
{
    struct jout j = jout_begin(body);
    jout_open(&j, NULL, '{');
    jout_str(&j, "model", u->of->of->name);
    jout_str(&j, u->embeds ? "input" : "prompt", "1");
    if (!u->embeds)
        jout_int(&j, "max_tokens", 1);
    jout_close(&j, '}');
}

/* A model makes one token, or an embedding of one: it is loaded then, and not only there. */
static void doors_check(struct service_unit *u)
{
    struct serving *sv = u->of->of->serving;
    const struct serve_spec *s = &u->of->spec;
    struct buf body = BUF_INIT(1024);
    struct strv headers = {0};
    const char *path = !s->model   ? str_or(s->check_path, "")
                       : u->embeds ? "/v1/embeddings"
                                   : "/v1/completions";
    _cleanup_(freep) char *full =
        path[0] ? xasprintf("%s%s", u->door.prefix, path) : xstrdup("/-/routes");
    _cleanup_(freep) char *url = doors_url(u->door.address, u->door.port, full);
    strv_add(&headers, sv->key_line);
    struct wire_order o = {.method = s->model ? "POST" : "GET",
                           .url = url,
                           .timeout = CHECK_WAIT,
                           .max_bytes = DOOR_REPLY_MAX,
                           .headers = &headers};
    if (s->model) {
        doors_write_question(u, &body);
        o.body = buf_str(&body);
    }
    struct door_check *c = xcalloc(1, sizeof(*c));
    *c = (struct door_check){.sv = sv,
                             .service = xstrdup(u->of->of->name),
                             .version = u->of->n,
                             .k = u->k,
                             .held_at = u->held_at};
    u->is_asked = true;
    (void)wire_send(sv->wire, &o, doors_on_check, c);
    strv_release(&headers);
    buf_release(&body);
}

void serving_turn_door(struct service_unit *u, usec_t now)
{
    struct serving *sv = u->of->of->serving;
    struct err why = {0};
    char app[SERVE_APP_MAX];
    if (!sv->has_look)
        return; /* as it was */
    const struct cluster_node *n = cluster_find_callable(sv->a->cluster, str_or(u->node, ""), &why);
    const struct serve_proxy *proxy = n ? serve_look_proxy(&sv->look, n->node_id) : NULL;
    if (!n && u->node) {
        text_copy(u->reason.code, why.message);
        text_copy(u->reason.text, why.args);
    }
    /* A proxy tells Serve where it is as a raylet tells Ray: it is called at its machine. */
    u->has_door =
        proxy && proxy->is_healthy && sv->wire && serving_gate(sv, n->ip, sv->look.port, now) > 0;
    if (!u->has_door)
        return;
    text_copy(u->door.address, n->ip);
    u->door.port = (int)sv->look.port;
    u->door.unit = (int)u->k;
    (void)serve_app_route(serve_app_name(u->of->of->name, u->of->n, u->k, app), u->door.prefix);
    if (!u->passed && !u->is_asked && (!u->asked_at || now - u->asked_at >= CHECK_AGAIN))
        doors_check(u);
}

/* ---- for whoever carries requests ---- */

static bool doors_is_better(const struct service_unit *a, const struct service_unit *b, usec_t now)
{
    bool refused_a = a->refused_until > now, refused_b = b->refused_until > now;
    return refused_a != refused_b ? refused_b : a->requests < b->requests;
}

static struct service_unit *doors_best(const struct service_version *v,
                                       const struct service_unit *but,
                                       usec_t now)
{
    struct service_unit *best = NULL;
    for (size_t i = 0; v && i < v->n_units; i++) {
        struct service_unit *u = v->units[i];
        if (u->state == SERVE_UNIT_READY && u != but && (!best || doors_is_better(u, best, now)))
            best = u;
    }
    return best;
}

/* The same replica through the head's proxy, which routes to every application. */
static bool doors_by_head(const struct serving *sv,
                          const struct service_unit *u,
                          struct service_door *ret)
{
    char name[SERVICE_ADDRESS_MAX + 16];
    const char *head = cluster_head_address(sv->a->cluster);
    text_printf(name, "%s:%d", head, u->door.port);
    const struct service_gate *g = map_find(sv->gates, name);
    if (!*head || str_eq(head, u->door.address) || !g || g->is_there < 1)
        return false;
    *ret = u->door;
    text_copy(ret->address, head);
    return true;
}

static int doors_why_not(const struct served *s, const struct service_version *v, struct err *err)
{
    struct reason why = {0};
    int64_t left;
    if (s->stopped)
        return message_refuse(err, ERR_UNAVAILABLE, "serve_is_stopped",
                              MESSAGE_ARGS(MESSAGE_STR("service", s->name)));
    int r = serving_refuse_waking(s, clock_mono(), &left, err);
    if (r < 0)
        return r;
    if (!v)
        v = service_find_version(s, s->wanted);
    if (v)
        service_version_reason(v, &why);
    for (size_t i = 0; v && !why.code[0] && i < v->n_units; i++)
        why = v->units[i]->reason;
    if (why.code[0])
        return message_refuse(
            err, ERR_UNAVAILABLE, "serve_not_ready",
            MESSAGE_ARGS(MESSAGE_STR("service", s->name), MESSAGE_OF("why", why.code, why.text)));
    return message_refuse(err, ERR_UNAVAILABLE, "serve_not_ready",
                          MESSAGE_ARGS(MESSAGE_STR("service", s->name)));
}

/* A key has no role of its own: it asks as whoever made it, as far as he may by now. */
static void doors_who(const struct serving *sv,
                      const struct http_principal *who,
                      struct access_who *ret)
{
    const struct person *maker = *who->only ? people_find(sv->a->people, who->user) : NULL;
    people_who(sv->a->people, who, ret);
    if (maker)
        ret->role = (enum access_role)maker->role;
}

int serving_may_call(const struct serving *sv,
                     const char *name,
                     const struct http_principal *who,
                     struct err *err)
{
    const struct served *s = serving_find(sv, name);
    struct access_who w;
    bool is_shut = *who->only && !str_eq(who->only, name); /* a key of another one */
    if (!s || s->removed || is_shut)
        return message_refuse(
            err, ERR_NOT_FOUND, "not_found",
            MESSAGE_ARGS(MESSAGE_STR("noun", "service"), MESSAGE_STR("name", name)));
    struct access_thing thing = service_thing(s);
    doors_who(sv, who, &w);
    return access_check(&w, ACCESS_SERVICE_CALL, "call", &thing, err);
}

/* What holds of a request, whichever version answers: limits, and the share that is logged. */
static void doors_take_limits(const struct served *s,
                              const struct service_version *v,
                              struct service_target *t)
{
    const struct service_version *current = service_find_version(s, s->current);
    const struct serve_spec *spec = current ? &current->spec : &v->spec;
    t->requests_per_minute = spec->requests_per_minute;
    t->tokens_per_minute = spec->tokens_per_minute;
    t->log_share = spec->log_share;
}

/* For whom its limits count. A key's own go before the service's. */
static void doors_take_caller(const struct serving *sv,
                              const struct http_principal *who,
                              struct service_target *t)
{
    const struct service_key *k =
        *who->only ? service_keys_find(sv->a->service_keys, who->token_id) : NULL;
    text_copy(t->caller, who->user);
    if (!k)
        return;
    text_copy(t->by_key, k->id);
    text_printf(t->caller, "key %s", k->id);
    if (k->requests_per_minute)
        t->requests_per_minute = k->requests_per_minute;
    if (k->tokens_per_minute)
        t->tokens_per_minute = k->tokens_per_minute;
}

/* One that sleeps is loaded from now on, in his name; another stays as it is. */
static int doors_wake(struct serving *sv,
                      const struct served *s,
                      const struct http_principal *who,
                      struct err *err)
{
    if (!s->asleep_at)
        return 0;
    int r = store_check(sv->a->store, err);
    return r == 0 ? serving_wake(sv, s, who->user, err) : r;
}

int service_target(struct serving *sv,
                   const char *name,
                   int64_t version,
                   const struct http_principal *who,
                   struct service_target *ret,
                   struct err *err)
{
    usec_t now = clock_mono();
    struct served *s = map_find(sv->by_name, name);
    int r = serving_may_call(sv, name, who, err);
    if (r == 0)
        r = serving_pick(s, version, err);
    if (r == 0)
        r = doors_wake(sv, s, who, err);
    if (r < 0)
        return r;
    s->quiet_since = now;
    const struct service_version *v = service_find_version(s, version ? version : s->current);
    struct service_unit *first = doors_best(v, NULL, now), *second = doors_best(v, first, now);
    if (!first && v && serving_is_loading(v))
        return serving_refuse_loading(v, err);
    if (!first || s->stopped)
        return doors_why_not(s, service_find_version(s, s->current), err);
    struct service_target t = {.version = v->n,
                               .n_doors = 1,
                               .key_header = "x-argus-key",
                               .counts_tokens = v->spec.model != NULL,
                               .timeout = v->spec.request_timeout,
                               .max_body = v->spec.max_body};
    doors_take_limits(s, v, &t);
    doors_take_caller(sv, who, &t);
    text_copy(t.service, s->name);
    text_copy(t.key, sv->key);
    t.doors[0] = first->door;
    if (second) {
        t.doors[1] = second->door;
        t.n_doors = 2;
    } else if (doors_by_head(sv, first, &t.doors[1])) {
        t.n_doors = 2;
        if (first->refused_until > now) {
            t.doors[0] = t.doors[1];
            t.doors[1] = first->door;
        }
    }
    *ret = t;
    return 0;
}

/* After how many seconds that version may be asked again; 0: nothing of it is being loaded. */
static int64_t doors_load_left_s(const struct served *s, int64_t version)
{
    const struct service_version *v = service_find_version(s, version);
    int64_t left = SERVE_WAKE_UNKNOWN_S;
    if (!s->woken_at)
        return v && serving_is_loading(v) ? serving_load_left_s(v, clock_mono()) : 0;
    (void)serving_refuse_waking(s, clock_mono(), &left, NULL); /* else it is not known */
    return left;
}

void service_refuse(const struct serving *sv,
                    struct http_req *req,
                    int64_t version,
                    const struct err *err)
{
    const struct served *s = serving_find(sv, http_req_param(req, "name"));
    char seconds[24];
    int64_t left = s && err->code == ERR_UNAVAILABLE ? doors_load_left_s(s, version) : 0;
    if (left) {
        text_printf(seconds, "%" PRId64, left);
        http_reply_header(req, "Retry-After", seconds);
    }
    api_fail(req, err, api_reader_barrier(sv->a));
}

static struct service_unit *doors_unit(const struct serving *sv,
                                       const struct service_target *t,
                                       const struct service_door *d)
{
    const struct served *s = serving_find(sv, t->service);
    const struct service_version *v = s ? service_find_version(s, t->version) : NULL;
    for (size_t i = 0; v && d && i < v->n_units; i++)
        if (v->units[i]->k == d->unit)
            return v->units[i];
    return NULL;
}

void service_begin(struct serving *sv, const struct service_target *t, const struct service_door *d)
{
    struct service_unit *u = doors_unit(sv, t, d);
    if (u)
        u->requests++;
}

static struct service_minute *doors_minute(struct served *s)
{
    int64_t at = (int64_t)(clock_mono() / USEC_SEC) / SERVICE_WINDOW_S;
    struct service_minute *m = &s->window[at % SERVICE_WINDOW];
    if (m->at != at)
        *m = (struct service_minute){.at = at};
    return m;
}

static void doors_count(struct service_minute *m, const struct service_counted *c)
{
    usec_t ms = c->took / USEC_MS;
    int span = 0;
    m->refused += c->refused;
    if (c->refused)
        return;
    while (span < SERVICE_SPANS - 1 && ms > (usec_t)1 << span)
        span++;
    m->requests++;
    m->errors += service_call_failed(c->status);
    m->tokens_in += c->tokens_in > 0 ? c->tokens_in : 0;
    m->tokens_out += c->tokens_out > 0 ? c->tokens_out : 0;
    m->took[span]++;
}

void service_end(struct serving *sv,
                 const struct service_target *t,
                 const struct service_door *d,
                 const struct service_counted *c)
{
    struct service_unit *u = doors_unit(sv, t, d);
    struct served *s = map_find(sv->by_name, t->service);
    if (u && u->requests)
        u->requests--;
    if (s) {
        s->quiet_since = clock_mono();
        doors_count(doors_minute(s), c);
        service_totals_add(&s->totals, c);
    }
    if (s && c->path) {
        s->calls = s->calls ? s->calls : xcalloc(1, sizeof(*s->calls));
        service_calls_add(s->calls, t, c, clock_wall());
    }
}

void service_door_failed(struct serving *sv,
                         const struct service_target *t,
                         const struct service_door *d)
{
    struct service_unit *u = doors_unit(sv, t, d);
    if (u && str_eq(u->door.address, d->address))
        u->refused_until = clock_mono() + REFUSED_FOR;
}
