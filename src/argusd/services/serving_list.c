/* SPDX-License-Identifier: Apache-2.0 */
/* serving_list.c - Ray Serve's list, of which argusd is the only writer: looked at, compared with
 * what there should be, written down, put.
 *
 * The list is made of the replicas that hold a lease, and of the applications that others have put
 * there. Nothing depends on what was put before: what Ray shows is compared, so that a list that
 * was lost (a kill, a new head) is put again and one that arrived is not. */
#include <stdlib.h>
#include <string.h>

#include "argusd/services/serving_state.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/serve/serve_doc.h"

enum { LIST_MAX = 8 << 20, LEAST_MAJOR = 2, LEAST_MINOR = 60 };
static const usec_t LOOK_EVERY = USEC_SEC, LOOK_IDLE = 10 * USEC_SEC, PUT_AGAIN = 3 * USEC_SEC;

/* ---- what there should be ---- */

struct list_parts {
    const char **apps, **foreign;
    char **texts; /* owned: of the foreign ones */
    size_t n_apps, n_foreign;
};

static size_t list_count_units(const struct serving *sv)
{
    const struct served *s;
    size_t n = 0;
    for (size_t pos = 0; (s = serving_next(sv, &pos));)
        for (size_t i = 0; i < s->n_versions; i++)
            n += s->versions[i]->n_units;
    return n;
}

struct list_walk {
    const struct served *s;
    size_t pos, version, unit; /* the next one */
};

/* One replica after the other, of all services; NULL behind the last. */
static struct service_unit *list_next_unit(const struct serving *sv, struct list_walk *w)
{
    for (;;) {
        const struct served *s = w->s;
        if (!s || w->version == s->n_versions) {
            w->s = serving_next(sv, &w->pos);
            w->version = w->unit = 0;
            if (!w->s)
                return NULL;
        } else if (w->unit == s->versions[w->version]->n_units) {
            w->version++;
            w->unit = 0;
        } else {
            return s->versions[w->version]->units[w->unit++];
        }
    }
}

static bool list_has_unit(const struct service_unit *u)
{
    return u->doc &&
           (u->state == SERVE_UNIT_LOADING || u->state == SERVE_UNIT_CHECKING ||
            u->state == SERVE_UNIT_READY || (u->state == SERVE_UNIT_LEAVING && u->leaves));
}

/* Is its lease still held? One that leaves by itself stays until its job is asked to stop. One
 * whose name somebody else has is in no list: Ray would refuse the whole of it. */
static bool list_holds(const struct serving *sv, const struct service_unit *u)
{
    const struct live *l = u->job ? jobs_find_id(sv->a->jobs, u->job) : NULL;
    return list_has_unit(u) && l && l->job->state == JOB_RUNNING &&
           !serving_stranger(sv, u->of->of->name, u->of->n);
}

static int list_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void list_take_units(const struct serving *sv, struct list_parts *p)
{
    const struct service_unit *u;
    p->apps = xcalloc(list_count_units(sv) + 1, sizeof(*p->apps));
    for (struct list_walk w = {0}; (u = list_next_unit(sv, &w));)
        if (list_holds(sv, u))
            p->apps[p->n_apps++] = u->doc;
    xsort(p->apps, p->n_apps, sizeof(*p->apps), list_compare); /* each begins with its name */
}

const struct served *serving_owner_of(const struct serving *sv, const char *app)
{
    char service[SERVE_NAME_MAX + 1];
    int64_t version, unit;
    const struct served *s =
        serve_app_parse(app, service, &version, &unit) ? serving_find(sv, service) : NULL;
    const struct service_version *v = s ? service_find_version(s, version) : NULL;
    return s && version <= s->last && !(v && v->unlisted) ? s : NULL;
}

static bool list_is_ours(const struct serving *sv, const char *app)
{
    return serving_owner_of(sv, app) != NULL;
}

/* Ray refuses a list with a route twice: what stands on one of ours cannot stay. */
static bool list_is_on_our_route(const struct serving *sv, const char *route)
{
    return str_starts(route, SERVE_ROUTES) && list_is_ours(sv, route + strlen(SERVE_ROUTES));
}

/* Somebody else put it there with a list of his own: it stays, as it is. */
static bool list_is_foreign(const struct serving *sv, const struct serve_seen *seen)
{
    return !seen->imperative && seen->config && seen->status != SERVE_STATUS_DELETING &&
           !list_is_ours(sv, seen->name) && !list_is_on_our_route(sv, str_or(seen->route, ""));
}

static void list_take_foreign(const struct serving *sv, struct list_parts *p)
{
    p->foreign = xcalloc(sv->look.n_apps + 1, sizeof(*p->foreign));
    p->texts = xcalloc(sv->look.n_apps + 1, sizeof(*p->texts));
    for (size_t i = 0; i < sv->look.n_apps; i++)
        if (list_is_foreign(sv, &sv->look.apps[i])) {
            p->texts[p->n_foreign] = json_dumps(sv->look.apps[i].config, JSON_COMPACT);
            p->foreign[p->n_foreign] = p->texts[p->n_foreign];
            p->n_foreign++;
        }
}

/* NULL: longer than it may be. */
static char *list_write(const struct serving *sv, bool has_apps)
{
    struct list_parts p = {0};
    struct buf out = BUF_INIT(LIST_MAX);
    if (has_apps)
        list_take_units(sv, &p);
    list_take_foreign(sv, &p);
    const struct serve_doc d = {.port = sv->a->settings->serve_port,
                                .apps = p.apps,
                                .n_apps = p.n_apps,
                                .foreign = p.foreign,
                                .n_foreign = p.n_foreign};
    serve_doc_write(&d, &out);
    bool is_whole = !out.failed;
    for (size_t i = 0; i < p.n_foreign; i++)
        free(p.texts[i]);
    free(p.texts);
    free(p.foreign);
    free(p.apps);
    if (is_whole)
        return buf_take(&out);
    buf_release(&out);
    return NULL;
}

/* ---- is it as it should be? ---- */

static bool list_shows(const struct serving *sv, const struct service_unit *u)
{
    char app[SERVE_APP_MAX];
    const struct serve_seen *seen =
        serve_look_find(&sv->look, serve_app_name(u->of->of->name, u->of->n, u->k, app));
    return seen && seen->config && serve_doc_has(u->sent, seen->config);
}

static bool list_lacks_unit(const struct serving *sv)
{
    const struct service_unit *u;
    for (struct list_walk w = {0}; (u = list_next_unit(sv, &w));)
        if (list_holds(sv, u) && !list_shows(sv, u))
            return true;
    return false;
}

static const struct service_unit *list_find_unit(const struct serving *sv, const char *app)
{
    char service[SERVE_NAME_MAX + 1];
    int64_t version, k;
    const struct served *s =
        serve_app_parse(app, service, &version, &k) ? serving_find(sv, service) : NULL;
    const struct service_version *v = s ? service_find_version(s, version) : NULL;
    for (size_t i = 0; v && i < v->n_units; i++)
        if (v->units[i]->k == k)
            return v->units[i];
    return NULL;
}

/* An application of ours that has no lease any more. */
static bool list_has_stray(const struct serving *sv)
{
    for (size_t i = 0; i < sv->look.n_apps; i++) {
        const struct serve_seen *seen = &sv->look.apps[i];
        const struct service_unit *u = list_find_unit(sv, seen->name);
        if (!list_is_ours(sv, seen->name) || seen->imperative ||
            seen->status == SERVE_STATUS_DELETING)
            continue;
        if (!u || !list_holds(sv, u))
            return true;
    }
    return false;
}

static bool list_had(const struct served *s)
{
    bool had = false;
    for (size_t i = 0; i < s->n_versions; i++)
        had |= !s->versions[i]->unlisted;
    return had;
}

/* Where Ray could not be asked since they ended, the row waits: without it nobody would know that
 * they are ours. Where no list can be put at all, it does not. */
bool serving_list_has(const struct serving *sv, const struct served *s)
{
    bool will_be_put =
        !sv->code[0] || str_eq(sv->code, "serve_unseen") || str_eq(sv->code, "serve_unput");
    if (!sv->has_look) /* argusd has just started, or a list was put */
        return will_be_put && list_had(s);
    for (size_t i = 0; will_be_put && i < sv->look.n_apps; i++) {
        const struct serve_seen *seen = &sv->look.apps[i];
        if (!seen->imperative && seen->status != SERVE_STATUS_DELETING &&
            serving_owner_of(sv, seen->name) == s)
            return true;
    }
    return false;
}

const char *serving_stranger(const struct serving *sv, const char *service, int64_t version)
{
    char name[SERVE_NAME_MAX + 1];
    int64_t v, unit;
    for (size_t i = 0; i < sv->strangers.n; i++)
        if (serve_app_parse(sv->strangers.v[i], name, &v, &unit) && v == version &&
            str_eq(name, service))
            return sv->strangers.v[i];
    return NULL;
}

/* A replica holds its lease and Ray serves it, but what it is made of is not read yet: after a
 * start of argusd a list would go without it. */
static bool list_is_early(const struct serving *sv)
{
    char app[SERVE_APP_MAX];
    const struct service_unit *u;
    for (struct list_walk w = {0}; (u = list_next_unit(sv, &w));) {
        const struct live *l = u->job ? jobs_find_id(sv->a->jobs, u->job) : NULL;
        if (!u->doc && !u->leaves && l && l->job->state == JOB_RUNNING &&
            serve_look_find(&sv->look, serve_app_name(u->of->of->name, u->of->n, u->k, app)))
            return true;
    }
    return false;
}

/* ---- why not ---- */

static void list_say(struct serving *sv, const char *code, const char *text)
{
    text_copy(sv->code, code);
    text_copy(sv->text, text);
}

static void list_say_err(struct serving *sv, const char *code, const struct err *err)
{
    text_copy(sv->code, code);
    message_write(sv->text, sizeof(sv->text), MESSAGE_ARGS(MESSAGE_ERR("why", err)));
}

static bool list_is_old(const char *version)
{
    char text[32];
    int64_t major, minor;
    text_copy(text, version);
    char *dot = strchr(text, '.'), *end = dot ? strchr(dot + 1, '.') : NULL;
    if (!dot)
        return true;
    *dot = '\0';
    if (end)
        *end = '\0';
    if (str_to_int(text, 0, 1 << 20, &major, NULL) < 0 ||
        str_to_int(dot + 1, 0, 1 << 20, &minor, NULL) < 0)
        return true;
    return major < LEAST_MAJOR || (major == LEAST_MAJOR && minor < LEAST_MINOR);
}

static bool list_suits(struct serving *sv)
{
    const char *version = cluster_ray_version(sv->a->cluster);
    if (*version && list_is_old(version)) {
        text_copy(sv->code, "serve_old_ray");
        message_write(sv->text, sizeof(sv->text), MESSAGE_ARGS(MESSAGE_STR("version", version)));
        return false;
    }
    if (str_eq(sv->code, "serve_old_ray"))
        list_say(sv, "", "");
    return true;
}

bool serving_is_able(struct serving *sv)
{
    return list_suits(sv) && !str_eq(sv->code, "serve_no_gate");
}

const struct serve_look *serving_look(const struct serving *sv)
{
    return sv->has_look ? &sv->look : NULL;
}

/* ---- looking ---- */

/* An application has a name as ours have, and is not ours. One that Ray takes down is nobody's. */
static void list_warn_of(struct serving *sv, const struct serve_seen *seen, struct strv *now)
{
    char service[SERVE_NAME_MAX + 1];
    int64_t version, unit;
    if (seen->status == SERVE_STATUS_DELETING || list_is_ours(sv, seen->name) ||
        !serve_app_parse(seen->name, service, &version, &unit))
        return;
    strv_add(now, seen->name);
    if (!strv_has(&sv->strangers, seen->name))
        log_warn("serve",
                 "Ray Serve has an application with a name as argusd's own have, which argusd did "
                 "not put there: it stays as it is app=%s",
                 seen->name);
}

/* Each is told once, until it goes and comes again. */
static void list_warn_of_strangers(struct serving *sv)
{
    struct strv now = {0};
    for (size_t i = 0; i < sv->look.n_apps; i++)
        list_warn_of(sv, &sv->look.apps[i], &now);
    strv_release(&sv->strangers);
    sv->strangers = now;
}

static void list_on_look(const char *text, size_t len, const struct err *err, void *arg)
{
    struct serving *sv = arg;
    struct serve_look look;
    struct err bad = {0};
    sv->get = NULL;
    sv->looked_at = clock_mono();
    if (text && serve_look_read(text, len, &look, &bad) == 0) {
        serve_look_release(&sv->look);
        sv->look = look;
        sv->has_look = true;
        list_warn_of_strangers(sv);
        if (str_eq(sv->code, "serve_unseen"))
            list_say(sv, "", "");
        return;
    }
    list_say_err(sv, "serve_unseen", text ? &bad : err);
    log_debug("serve", "%s", text ? bad.text : err->text);
}

static void list_look(struct serving *sv, usec_t now)
{
    usec_t every = list_count_units(sv) ? LOOK_EVERY : LOOK_IDLE;
    if (sv->get || sv->put || (sv->looked_at && now - sv->looked_at < every))
        return;
    sv->get = ray_get_serve(sv->a->ray, list_on_look, sv);
}

/* ---- putting ---- */

static void list_on_put(const char *text, size_t len, const struct err *err, void *arg)
{
    struct serving *sv = arg;
    (void)len;
    sv->put = NULL;
    sv->looked_at = 0; /* what it made of that is looked at now */
    sv->has_look = false;
    if (text) {
        if (str_eq(sv->code, "serve_unput"))
            list_say(sv, "", "");
        return;
    }
    list_say_err(sv, "serve_unput", err);
    log_warn("serve", "the list of applications could not be put: %s", err->text);
}

void serving_durable(struct serving *sv, uint64_t batch)
{
    if (!sv->list_batch || batch < sv->list_batch || sv->closing || sv->put)
        return;
    sv->list_batch = 0;
    sv->put_at = clock_mono();
    sv->put = ray_put_serve(sv->a->ray, sv->list, list_on_put, sv);
}

/* What has their names is argusd's from now on: in the batch of the list. */
static void list_note_versions(struct serving *sv)
{
    struct service_unit *u;
    for (struct list_walk w = {0}; (u = list_next_unit(sv, &w));)
        if (u->of->unlisted && list_holds(sv, u)) {
            u->of->unlisted = false;
            serving_save_version(u->of);
        }
}

/* Written down before it is sent. */
static void list_put(struct serving *sv, bool has_apps)
{
    char *list = list_write(sv, has_apps);
    if (!list) {
        text_copy(sv->code, "serve_list_large");
        message_write(sv->text, sizeof(sv->text), MESSAGE_ARGS(MESSAGE_NUM("most", LIST_MAX)));
        return;
    }
    if (str_eq(sv->code, "serve_list_large"))
        list_say(sv, "", "");
    free(sv->list);
    sv->list = list;
    if (has_apps)
        list_note_versions(sv);
    struct store_entry row = {
        .kind = SERVING_ENTRY_LIST, .name = "list", .body = sv->list, .at = clock_wall()};
    store_put_entry(sv->a->store, &row);
    sv->list_batch = store_batch(sv->a->store);
}

/* Serve's own way to be reached is fixed when it starts, perhaps by somebody else. */
static bool list_can_be_reached(struct serving *sv)
{
    if (str_eq(sv->look.host, "127.0.0.1") || str_eq(sv->look.host, "localhost") ||
        !str_eq(sv->look.location, "EveryNode")) {
        text_copy(sv->code, "serve_unreachable");
        message_write(sv->text, sizeof(sv->text),
                      MESSAGE_ARGS(MESSAGE_STR("host", str_or(sv->look.host, "")),
                                   MESSAGE_STR("location", str_or(sv->look.location, ""))));
        return false;
    }
    if (str_eq(sv->code, "serve_unreachable"))
        list_say(sv, "", "");
    return true;
}

/* The gate of the head's proxy, which is there as soon as Serve is. */
static bool list_is_guarded(struct serving *sv, usec_t now)
{
    if (sv->a->settings->serve_gate == SERVE_GATE_FIREWALL)
        return true;
    const char *head = cluster_head_address(sv->a->cluster);
    const char *told = cluster_head_ip(sv->a->cluster);
    if (!*head && *told) {
        text_copy(sv->code, "head_only_ray_says");
        message_write(sv->text, sizeof(sv->text), MESSAGE_ARGS(MESSAGE_STR("ip", told)));
    }
    if (!*head)
        return false;
    int gate = serving_gate(sv, head, sv->look.port, now);
    if (gate < 0)
        list_say(sv, "serve_no_gate", "{}");
    else if (str_eq(sv->code, "serve_no_gate") || str_eq(sv->code, "head_only_ray_says"))
        list_say(sv, "", "");
    return gate > 0;
}

static void list_reconcile(struct serving *sv, usec_t now)
{
    bool again = !sv->put_at || now - sv->put_at >= PUT_AGAIN;
    if (sv->put || sv->list_batch || !again)
        return;
    if (!sv->look.is_there) {
        if (list_count_units(sv))
            list_put(sv, false); /* Serve starts, and its gate can be tried */
        return;
    }
    bool due = list_has_stray(sv) || list_lacks_unit(sv);
    if (due && !list_is_early(sv) && list_can_be_reached(sv) && list_is_guarded(sv, now))
        list_put(sv, true);
}

static void list_forget_running(struct serving *sv)
{
    struct service_unit *u;
    for (struct list_walk w = {0}; (u = list_next_unit(sv, &w));)
        u->is_running = u->has_door = u->passed = false;
}

/* Another head: what was seen of the one before is void. */
static void list_see_session(struct serving *sv)
{
    const char *session = cluster_session(sv->a->cluster);
    if (str_eq(sv->session, session))
        return;
    if (*sv->session)
        list_forget_running(sv);
    text_copy(sv->session, session);
    serve_look_release(&sv->look);
    sv->has_look = false;
    sv->looked_at = sv->put_at = 0;
}

void serving_turn_list(struct serving *sv, usec_t now)
{
    bool has_services = map_count(sv->by_name) > 0 || sv->list;
    if (!has_services || !cluster_is_up(sv->a->cluster) || !list_suits(sv) ||
        !serving_place_key(sv))
        return;
    list_see_session(sv);
    list_look(sv, now);
    if (sv->has_look)
        list_reconcile(sv, now);
}

void serving_list_cancel(struct serving *sv)
{
    ray_call_free(sv->get);
    ray_call_free(sv->put);
    sv->get = sv->put = NULL;
}
