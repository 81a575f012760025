/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - GET /v1/doctor: what argusd knows of its own state, one check a row, for admins.
 *
 * Most is known already and is only said. What blocks, the test of the shared root, the room on
 * disks and the certificate, is one look on a worker thread, and the trackers are asked meanwhile:
 * who asks while it is under way waits for the same one, so that a root that hangs holds one
 * thread, however often it is asked about. An answer does not wait for it longer than
 * DOCTOR_LIMIT_SEC. A check that cannot be made is "unknown", and only "ill" is a failure. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "argusd/alerts/alerts.h"
#include "argusd/api/machines/doctor_run.h"
#include "argusd/ground/work.h"
#include "argusd/kit/part.h"
#include "argusd/trackers/trackers.h"
#include "base/str.h"

enum { DOCTOR_TOKEN_DAYS = 7 };
enum { DOCTOR_ROOM_PART = 20 }; /* with less than a twentieth free a disk is nearly full */
static const usec_t MILLISECOND = USEC_SEC / 1000;
static const double GIB = 1024.0 * 1024 * 1024;

static const char *const doctor_states[] = {"well", "soon", "ill", "unknown", NULL};

#define CHECK(key, ftype, member, ...) FIELD_AT(doctor_check, key, ftype, member, __VA_ARGS__)
static const struct field check_rows[] = {
    CHECK("name", FIELD_STR, name, .flags = FIELD_ALWAYS),
    CHECK("state",
          FIELD_ENUM,
          state,
          .names = doctor_states,
          .doc = "soon: it will be ill; unknown: it could not be looked at"),
    CHECK("", FIELD_INLINE, said, .of = &said_table),
    CHECK("fix", FIELD_STR, said.fix, .doc = "what to do about it"),
};
#undef CHECK
static const struct field_table check_table = FIELD_TABLE("DoctorCheck", check_rows, doctor_check);

struct doctor_page {
    bool ill;
    struct field_list checks;
};
static const struct field page_rows[] = {
    FIELD_AT(doctor_page, "ill", FIELD_BOOL, ill, .doc = "one check or more is ill"),
    FIELD_AT(doctor_page, "checks", FIELD_LIST, checks, .of = &check_table),
};
static const struct field_table page_table = FIELD_TABLE("Doctor", page_rows, doctor_page);

/* One request; its answer or its client's end takes it off the look. Freed once its timer is
 * closed. */
struct doctor_ask {
    struct http_req *req;
    struct doctor_look *look;
    struct doctor_ask *next;
    uv_timer_t limit;
};

void doctor_say(struct doctor_sight *s,
                const char *name,
                enum doctor_state state,
                const char *code,
                const struct message_arg *args)
{
    if (s->n == array_len(s->v))
        return; /* a test has them all */
    struct doctor_check *c = &s->v[s->n++];
    c->name = name;
    c->state = (int)state;
    message_write(c->text, sizeof(c->text), args);
    saying_say(&s->eyes, NULL, code, c->text, &c->said);
}

/* ---- store, Ray, shared root ---- */

static void doctor_see_store(struct doctor_sight *s)
{
    bool is_ill = store_is_failing(s->a->store);
    doctor_say(s, "store", is_ill ? DOCTOR_ILL : DOCTOR_WELL,
               is_ill ? "doctor_store_ill" : "doctor_store", MESSAGE_NO_ARGS);
}

static void doctor_see_ray(struct doctor_sight *s)
{
    const struct cluster *c = s->a->cluster;
    const char *code, *text;
    char since[CLOCK_TEXT_MAX];
    cluster_ray_why(c, &code, &text);
    if (!*code)
        doctor_say(s, "ray", DOCTOR_WELL, "doctor_ray",
                   MESSAGE_ARGS(MESSAGE_STR("version", cluster_ray_version(c)),
                                MESSAGE_STR("address", s->a->settings->ray_address),
                                MESSAGE_STR("since", clock_to_string(cluster_up_since(c), since))));
    else
        doctor_say(s, "ray", DOCTOR_ILL, "doctor_ray_ill",
                   MESSAGE_ARGS(MESSAGE_OF("why", code, text)));
}

static void doctor_see_root(struct doctor_sight *s)
{
    const struct cluster *c = s->a->cluster;
    const char *code, *text;
    cluster_root_why(c, &code, &text);
    if (!cluster_root_is_known(c))
        doctor_say(s, "root", DOCTOR_UNKNOWN, "doctor_root_unseen", MESSAGE_NO_ARGS);
    else if (cluster_root_is_ok(c))
        doctor_say(s, "root", DOCTOR_WELL, "doctor_root",
                   MESSAGE_ARGS(MESSAGE_NUM("ms", cluster_root_write_took(c) / MILLISECOND)));
    else
        doctor_say(s, "root", DOCTOR_ILL, "doctor_root_ill",
                   MESSAGE_ARGS(MESSAGE_OF("why", code, text)));
}

static void doctor_see_rootprobe(struct doctor_sight *s)
{
    const struct doctor_look *k = s->look;
    if (!k->tests_root)
        doctor_say(s, "root_test", DOCTOR_UNKNOWN, "doctor_rootprobe_none", MESSAGE_NO_ARGS);
    else if (!k->is_over)
        doctor_say(s, "root_test", DOCTOR_ILL, "doctor_rootprobe_late",
                   MESSAGE_ARGS(MESSAGE_NUM("seconds", DOCTOR_LIMIT_SEC)));
    else if (k->err.code)
        doctor_say(s, "root_test", DOCTOR_ILL, "doctor_rootprobe_ill",
                   MESSAGE_ARGS(MESSAGE_ERR("why", &k->err)));
    else
        doctor_say(s, "root_test", DOCTOR_WELL, "doctor_rootprobe",
                   MESSAGE_ARGS(MESSAGE_NUM("ms", k->probe.took / MILLISECOND)));
}

static void doctor_see_room(struct doctor_sight *s,
                            const char *name,
                            const char *place,
                            const struct doctor_room *room)
{
    bool is_known = !room->trouble && room->total_bytes;
    bool is_ill = room->free_bytes < room->total_bytes / DOCTOR_ROOM_PART;
    if (!is_known)
        doctor_say(s, name, DOCTOR_UNKNOWN, "doctor_room_unseen",
                   MESSAGE_ARGS(MESSAGE_STR("place", place)));
    else
        doctor_say(s, name, is_ill ? DOCTOR_ILL : DOCTOR_WELL,
                   is_ill ? "doctor_room_ill" : "doctor_room",
                   MESSAGE_ARGS(MESSAGE_NUM("gib", floor((double)room->free_bytes / GIB)),
                                MESSAGE_NUM("all", floor((double)room->total_bytes / GIB)),
                                MESSAGE_STR("place", place)));
}

static void doctor_see_rooms(struct doctor_sight *s)
{
    const struct doctor_look *k = s->look;
    struct doctor_room root = {.trouble = -ENODATA}, state = {.trouble = -ENODATA};
    if (k->is_over) /* until then all of this belongs to the other thread */
        state = k->state;
    if (k->is_over && k->tests_root && !k->err.code)
        root = (struct doctor_room){.free_bytes = k->probe.free_bytes,
                                    .total_bytes = k->probe.total_bytes};
    doctor_see_room(s, "root_room", s->a->settings->shared_root, &root);
    doctor_see_room(s, "state_room", s->a->settings->state_dir, &state);
}

/* ---- machines ---- */

static void doctor_see_clocks(struct doctor_sight *s)
{
    const struct node_row *n, *worst = NULL;
    size_t seen = 0;
    for (size_t pos = 0; (n = nodes_next(s->a->nodes, &pos));) {
        if (!n->facts.at)
            continue;
        seen++;
        if (!worst || llabs(n->facts.skew) > llabs(worst->facts.skew))
            worst = n;
    }
    if (!worst) {
        doctor_say(s, "clocks", DOCTOR_UNKNOWN, "doctor_clocks_unseen", MESSAGE_NO_ARGS);
        return;
    }
    usec_t off = (usec_t)llabs(worst->facts.skew), most = s->a->settings->max_skew;
    bool is_ill = off > most;
    doctor_say(s, "clocks", is_ill ? DOCTOR_ILL : DOCTOR_WELL,
               is_ill ? "doctor_clocks_ill" : "doctor_clocks",
               MESSAGE_ARGS(MESSAGE_NUM("n", seen), MESSAGE_STR("node", worst->spec.name),
                            MESSAGE_NUM("seconds", round((double)off / USEC_SEC * 10) / 10),
                            MESSAGE_NUM("most", round((double)most / USEC_SEC * 10) / 10)));
}

static void doctor_see_versions(struct doctor_sight *s)
{
    const char *version = cluster_ray_version(s->a->cluster);
    const struct node_row *n, *other = NULL;
    size_t seen = 0;
    for (size_t pos = 0; (n = nodes_next(s->a->nodes, &pos));) {
        if (!*n->facts.ray)
            continue;
        seen++;
        if (!str_eq(n->facts.ray, version))
            other = n;
    }
    if (!*version || !seen)
        doctor_say(s, "versions", DOCTOR_UNKNOWN, "doctor_versions_unseen", MESSAGE_NO_ARGS);
    else if (other)
        doctor_say(s, "versions", DOCTOR_ILL, "doctor_versions_ill",
                   MESSAGE_ARGS(MESSAGE_STR("node", other->spec.name),
                                MESSAGE_STR("other", other->facts.ray),
                                MESSAGE_STR("version", version)));
    else
        doctor_say(s, "versions", DOCTOR_WELL, "doctor_versions",
                   MESSAGE_ARGS(MESSAGE_NUM("n", seen), MESSAGE_STR("version", version)));
}

static void doctor_see_ports(struct doctor_sight *s)
{
    const struct node_row *n, *ill = NULL;
    struct nodes_port port = {0}, open = {0};
    size_t opens = 0, closed = 0;
    if (s->a->settings->auth != RAY_AUTH_NONE) {
        doctor_say(s, "ports", DOCTOR_WELL, "doctor_ports_token", MESSAGE_NO_ARGS);
        return;
    }
    for (size_t pos = 0; (n = nodes_next(s->a->nodes, &pos));) {
        enum nodes_ports_known known = nodes_open_port(s->a->nodes, n->spec.name, &port);
        closed += known == NODES_PORTS_CLOSED;
        opens += known == NODES_PORTS_OPEN;
        if (known == NODES_PORTS_OPEN && !ill) {
            ill = n;
            open = port;
        }
    }
    if (ill)
        doctor_say(s, "ports", DOCTOR_ILL, "doctor_ports_ill",
                   MESSAGE_ARGS(MESSAGE_NUM("port", open.port), MESSAGE_STR("node", ill->spec.name),
                                MESSAGE_NUM("n", opens)));
    else if (closed)
        doctor_say(s, "ports", DOCTOR_WELL, "doctor_ports", MESSAGE_ARGS(MESSAGE_NUM("n", closed)));
    else
        doctor_say(s, "ports", DOCTOR_UNKNOWN, "doctor_ports_unseen", MESSAGE_NO_ARGS);
}

/* ---- tokens and receivers ---- */

static void doctor_see_tokens(struct doctor_sight *s)
{
    const usec_t until = s->now + DOCTOR_TOKEN_DAYS * USEC_DAY;
    const struct token *k, *first = NULL;
    char at[CLOCK_TEXT_MAX];
    size_t n = 0;
    for (size_t pos = 0; (k = tokens_next(s->a->tokens, &pos));) {
        if (!token_works(k, s->now) || !k->expires_at || k->expires_at > until)
            continue;
        n++;
        if (!first || k->expires_at < first->expires_at)
            first = k;
    }
    if (first)
        doctor_say(
            s, "tokens", DOCTOR_SOON, "doctor_tokens_soon",
            MESSAGE_ARGS(MESSAGE_NUM("n", n), MESSAGE_NUM("days", DOCTOR_TOKEN_DAYS),
                         MESSAGE_STR("name", *str_or(first->name, "") ? first->name : first->id),
                         MESSAGE_STR("user", first->user),
                         MESSAGE_STR("at", clock_to_string(first->expires_at, at))));
    else
        doctor_say(s, "tokens", DOCTOR_WELL, "doctor_tokens",
                   MESSAGE_ARGS(MESSAGE_NUM("days", DOCTOR_TOKEN_DAYS)));
}

static void doctor_see_receivers(struct doctor_sight *s)
{
    struct alerts_outlet o, worst = {0};
    char since[CLOCK_TEXT_MAX];
    size_t all = 0, ill = 0;
    for (; alerts_outlet_at(s->a->alerts, all, &o); all++) {
        if (!o.failing_since)
            continue;
        ill++;
        if (!worst.receiver || o.failing_since < worst.failing_since)
            worst = o;
    }
    if (ill)
        doctor_say(s, "receivers", DOCTOR_ILL, "doctor_receivers_ill",
                   MESSAGE_ARGS(MESSAGE_STR("name", worst.receiver->name), MESSAGE_NUM("n", ill),
                                MESSAGE_STR("since", clock_to_string(worst.failing_since, since))));
    else
        doctor_say(s, "receivers", DOCTOR_WELL, "doctor_receivers",
                   MESSAGE_ARGS(MESSAGE_NUM("n", all)));
}

/* ---- the request ---- */

static void (*const doctor_sees[])(struct doctor_sight *s) = {
    doctor_see_store,       doctor_see_ray,    doctor_see_root,      doctor_see_rootprobe,
    doctor_see_rooms,       doctor_see_clocks, doctor_see_ports,     doctor_see_versions,
    doctor_see_certificate, doctor_see_tokens, doctor_see_receivers, doctor_see_trackers,
    doctor_see_prometheus};

static void doctor_on_closed(uv_handle_t *h)
{
    free(container_of(h, struct doctor_ask, limit));
}

static void doctor_leave(struct doctor_ask *k)
{
    struct doctor_ask **at = &k->look->asks;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    uv_close((uv_handle_t *)&k->limit, doctor_on_closed);
}

/* The name by which one came. NULL: a server in front passed it on, and people meet the certificate
 * of that server. */
static const char *doctor_host_of(const struct http_req *req)
{
    static const char *const passed_on[] = {"X-Forwarded-For", "Forwarded", "Via"};
    for (size_t i = 0; i < array_len(passed_on); i++)
        if (http_req_header(req, passed_on[i]))
            return NULL;
    return http_req_header(req, "Host");
}

static void doctor_answer(struct doctor_ask *k)
{
    struct http_req *req = k->req;
    struct api *a = k->look->a;
    struct doctor_sight s = {.a = a,
                             .look = k->look,
                             .eyes = {.a = a, .p = http_req_principal(req)},
                             .host = doctor_host_of(req),
                             .now = clock_wall()};
    struct buf out = BUF_INIT(256 << 10);
    struct jout j = jout_begin(&out);
    struct doctor_page page = {0};
    http_req_on_close(req, NULL, NULL);
    for (size_t i = 0; i < array_len(doctor_sees); i++)
        doctor_sees[i](&s);
    for (size_t i = 0; i < s.n; i++)
        page.ill |= s.v[i].state == DOCTOR_ILL;
    page.checks = (struct field_list){.v = s.v, .n = s.n};
    field_to_json(&page_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    doctor_leave(k);
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
    for (size_t i = 0; i < s.n; i++)
        said_release(&s.v[i].said);
}

/* The root comes last: it may hang. */
static void doctor_look_around(void *arg)
{
    struct doctor_look *k = arg;
    struct statvfs vfs;
    doctor_look_at_tls(&k->tls);
    if (statvfs(k->state_dir, &vfs) < 0)
        k->state.trouble = -errno;
    else
        k->state = (struct doctor_room){.free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize,
                                        .total_bytes = (uint64_t)vfs.f_blocks * vfs.f_frsize};
    if (k->tests_root && rootprobe_run(k->root, clock_mono, &k->probe, &k->err) == 0)
        k->err = (struct err){0};
}

/* One of what it waits for is over. */
static void doctor_on_part(void *arg)
{
    struct doctor_look *k = arg;
    if (--k->waits)
        return;
    k->a->doctor = NULL;
    while (k->asks)
        doctor_answer(k->asks);
    free(k->root);
    free(k->state_dir);
    free(k->tls.cert);
    free(k->tls.key);
    certificate_release(&k->tls.file);
    free(k);
}

static void doctor_on_looked(void *arg)
{
    struct doctor_look *k = arg;
    k->is_over = true;
    doctor_on_part(k);
}

static void doctor_on_limit(uv_timer_t *t)
{
    struct doctor_ask *k = container_of(t, struct doctor_ask, limit);
    k->look->is_late = true;
    doctor_answer(k);
}

static void doctor_on_gone(struct http_req *req, void *arg)
{
    (void)req;
    doctor_leave(arg);
}

static struct doctor_look *doctor_begin(struct api *a, const char *user)
{
    struct doctor_look *k = xcalloc(1, sizeof(*k));
    const struct settings *set = a->settings;
    *k = (struct doctor_look){.a = a,
                              .waits = 1,
                              .root = xstrdup(set->shared_root),
                              .state_dir = xstrdup(set->state_dir),
                              .tls = {.cert = set->tls_cert ? xstrdup(set->tls_cert) : NULL,
                                      .key = set->tls_key ? xstrdup(set->tls_key) : NULL},
                              .tests_root = cluster_root_is_ok(a->cluster)};
    if (trackers_look(a->trackers, doctor_on_part, k))
        k->waits++;
    work_start_for(a->loop, user, doctor_look_around, doctor_on_looked, k);
    return k;
}

static void api_doctor(struct http_req *req, void *app)
{
    struct api *a = app;
    struct doctor_ask *k = xcalloc(1, sizeof(*k));
    if (!a->doctor)
        a->doctor = doctor_begin(a, http_req_principal(req)->user);
    *k = (struct doctor_ask){.req = req, .look = a->doctor, .next = a->doctor->asks};
    a->doctor->asks = k;
    http_req_on_close(req, doctor_on_gone, k);
    (void)uv_timer_init(a->loop, &k->limit); /* never fails */
    (void)uv_timer_start(&k->limit, doctor_on_limit, k->look->is_late ? 0 : DOCTOR_LIMIT_SEC * 1000,
                         0); /* cannot fail */
}

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/doctor",
     .least = HTTP_ROLE_ADMIN,
     .handle = api_doctor,
     .summary = "what argusd finds of its own state: Ray, shared root, disks, clocks, certificate, "
                "tokens, receivers, trackers, Prometheus; each with what to do",
     .reply_schema = "Doctor"},
};
static const struct http_schema schemas[] = {
    {.name = "DoctorCheck", .table = &check_table},
    {.name = "Doctor", .table = &page_table},
};
const struct api_part part_doctor = {rows, array_len(rows), schemas, array_len(schemas)};
