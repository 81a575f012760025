/* SPDX-License-Identifier: Apache-2.0 */
/* services.c - the life of all services; see services.h.
 *
 * The store's "durable" call is the heart: it lets the answers go, tells the listeners, and
 * starts what was waiting to be done. Which services there are is services_table.c. */
#include "argusd/run/services.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "argusd/api/routes.h"
#include "argusd/api/specschema.h"
#include "argusd/notebooks/notebooks_door.h"
#include "argusd/run/programs.h"
#include "argusd/run/restore.h"
#include "argusd/run/services_calls.h"
#include "argusd/run/services_state.h"
#include "argusd/web/pages.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/version.h"

enum { OPENAPI_MAX = 8 << 20, CLOSE_GRACE_S = 3, OWN_FILES = 256, OPEN_FILES_MAX = 1 << 20 };

/* ---- what the store tells ---- */

static void on_durable(uint64_t batch, void *arg)
{
    struct services *s = arg;
    size_t n;
    const struct service *v = services_table(&n);
    if (s->api.http)
        http_server_release(s->api.http, batch);
    if (s->api.door)
        http_server_release(s->api.door, batch);
    for (size_t i = 0; i < n && !s->stopping; i++)
        if (v[i].durable)
            v[i].durable(s, batch);
}

static void on_trouble(bool failing, const char *why, void *arg)
{
    struct services *s = arg;
    struct err err = {0};
    if (!failing) {
        log_info("store", "the store writes again");
        return;
    }
    log_err("store", "the store cannot write, trying again: %s", why);
    (void)message_refuse(&err, ERR_STORE, "store_stopped",
                         MESSAGE_ARGS(MESSAGE_STR("why", why))); /* only fills err */
    if (s->api.http && !s->stopping)
        http_server_refuse_held(s->api.http, &err);
}

static int open_store(struct services *s, struct err *err)
{
    _cleanup_(freep) char *path = settings_store_path(s->settings);
    if (mkdir(s->settings->state_dir, 0700) < 0 && errno != EEXIST)
        return err_set(err, -errno, "state_dir '%s' cannot be made: %s", s->settings->state_dir,
                       strerror(errno));
    struct stat st;
    if (stat(s->settings->state_dir, &st) == 0 && st.st_mode & (S_IWGRP | S_IRWXO))
        log_warn("store", "state_dir '%s' has mode %03o: chmod 700 it, it holds keys and tokens",
                 s->settings->state_dir, (unsigned)st.st_mode & 0777);
    struct store_options opt = {.path = path,
                                .loop = s->loop,
                                .on_durable = on_durable,
                                .on_trouble = on_trouble,
                                .arg = s};
    return store_open(&opt, &s->api.store, err);
}

/* Sockets of clients never take the open files that our own work needs: the store, the root, ssh,
 * Ray. The soft limit goes up to the hard one, or to a million: some programs walk over all. */
static unsigned room_for_connections(int64_t wanted)
{
    struct rlimit lim;
    if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
        return (unsigned)wanted;
    rlim_t most = lim.rlim_max < OPEN_FILES_MAX ? lim.rlim_max : OPEN_FILES_MAX;
    if (lim.rlim_cur < most) {
        lim.rlim_cur = most;
        if (setrlimit(RLIMIT_NOFILE, &lim) < 0)
            log_warn("http", "the limit of open files stays low: %s", strerror(errno));
        (void)getrlimit(RLIMIT_NOFILE, &lim); /* it worked above */
    }
    rlim_t room = lim.rlim_cur > 2 * OWN_FILES ? lim.rlim_cur - OWN_FILES : lim.rlim_cur / 2;
    if (room >= (rlim_t)wanted)
        return (unsigned)wanted;
    log_info("http", "%llu open files leave room for %llu connections, not %lld",
             (unsigned long long)lim.rlim_cur, (unsigned long long)room, (long long)wanted);
    return (unsigned)room;
}

/* As the API's server, with other routes, and on another address. */
static int open_door(struct services *s, struct http_options opt, struct err *err)
{
    opt.listen = s->settings->notebooks_listen;
    opt.routes = notebooks_door_routes(&opt.n_routes);
    opt.pages = NULL;
    opt.authenticate = notebooks_door_authenticate;
    return http_server_open(&opt, &s->api.door, err);
}

static int open_http(struct services *s, struct err *err)
{
    size_t n;
    s->api.routes = routes_join(&n);
    buf_init(&s->api.openapi, OPENAPI_MAX);
    routes_openapi(&s->api.openapi);
    buf_init(&s->api.jobspec_schema, OPENAPI_MAX);
    specschema_make(&s->api.jobspec_schema);
    const struct settings *set = s->settings;
    unsigned room = room_for_connections(set->connections);
    if (set->notebooks_listen)
        room = room / 2 ? room / 2 : 1; /* as much for the door: both take files of one limit */
    const struct http_limits limits = {.connections = room,
                                       .address_connections = (unsigned)set->address_connections,
                                       .exempt = &set->proxies,
                                       .user_streams = (unsigned)set->user_streams,
                                       .user_bodies = (unsigned)set->user_bodies,
                                       .user_polls = (unsigned)set->user_polls,
                                       .user_relays = (unsigned)set->user_relays};
    struct http_options opt = {.loop = s->loop,
                               .listen = s->settings->listen,
                               .tls_cert = s->settings->tls_cert,
                               .tls_key = s->settings->tls_key,
                               .limits = limits,
                               .routes = s->api.routes,
                               .n_routes = n,
                               .pages = &web_pages,
                               .authenticate = api_authenticate,
                               .mono = clock_mono,
                               .app = &s->api};
    int r = http_server_open(&opt, &s->api.http, err);
    return r < 0 || !set->notebooks_listen ? r : open_door(s, opt, err);
}

/* ---- life ---- */

struct services *services_new(uv_loop_t *loop,
                              struct settings *settings,
                              const struct web_file *web,
                              const struct web_file *client)
{
    struct services *s = xcalloc(1, sizeof(*s));
    s->loop = s->api.loop = loop;
    s->settings = settings;
    s->api.settings = settings;
    s->api.web = web;
    s->api.client = client;
    s->api.started_at = clock_wall();
    return s;
}

static int open_services(struct services *s, bool early, struct err *err)
{
    size_t n;
    const struct service *v = services_table(&n);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        if (v[i].is_early == early && v[i].make)
            v[i].make(s);
        else if (v[i].is_early == early)
            r = v[i].open(s, err);
    return r;
}

/* A row of the store; *ret_later: its service is not open yet. */
static bool take_entry(const struct store_entry *row, bool is_late, void *arg)
{
    struct services *s = arg;
    const struct service *v = services_find_kind(row->kind);
    if (v && v->is_early == is_late)
        return false;
    if (v)
        v->restore(s, row);
    return true;
}

int services_open(struct services *s, struct err *err)
{
    struct restore *r = NULL;
    int x = open_store(s, err);
    if (x == 0)
        x = open_services(s, true, err);
    if (x == 0)
        x = programs_find(s->settings, err);
    if (x == 0) {
        r = restore_new(&s->api, s->instance, take_entry, s);
        x = restore_load(r, &s->last, err);
    }
    if (x == 0)
        x = open_services(s, false, err);
    if (x == 0) {
        calls_room(s); /* nothing starts before Ray and the root were seen */
        restore_services(r);
        x = open_http(s, err);
    }
    restore_free(r);
    return x;
}

void services_start(struct services *s)
{
    size_t n;
    const struct service *v = services_table(&n);
    for (size_t i = 0; i < n; i++)
        if (v[i].start)
            v[i].start(s);
    log_info("argusd", "argusd %s listens on '%s' (port %u), shared root '%s', Ray at '%s'",
             ARGUS_VERSION, s->settings->listen, http_server_port(s->api.http),
             s->settings->shared_root, s->settings->ray_address);
    if (tokens_count(s->api.tokens) == 0)
        log_warn("argusd", "there is no token yet: stop argusd and run 'argusd init'");
}

static void services_unplug(struct services *s)
{
    size_t n;
    const struct service *v = services_table(&n);
    while (n-- > 0)
        if (v[n].unplug)
            v[n].unplug(s);
}

static void on_door_closed(void *arg)
{
    struct services *s = arg;
    s->api.door = NULL;
    if (!s->api.http)
        services_unplug(s);
}

static void on_http_closed(void *arg)
{
    struct services *s = arg;
    s->api.http = NULL;
    if (!s->api.door)
        services_unplug(s);
}

/* What was not opened is NULL, which is fine in all. */
void services_close(struct services *s)
{
    size_t n;
    const struct service *v = services_table(&n);
    s->stopping = true;
    while (n-- > 0)
        if (v[n].close)
            v[n].close(s);
    if (s->api.door)
        http_server_close(s->api.door, CLOSE_GRACE_S * USEC_SEC, on_door_closed, s);
    if (s->api.http)
        http_server_close(s->api.http, CLOSE_GRACE_S * USEC_SEC, on_http_closed, s);
    else
        on_http_closed(s);
}

int services_flush(struct services *s)
{
    struct err err = {0};
    if (store_close(s->api.store, &err) == 0)
        return 0;
    log_err("store", "%s", err.text);
    return 1;
}

int services_free(struct services *s)
{
    size_t n;
    const struct service *v = services_table(&n);
    int status = services_flush(s);
    (void)uv_run(s->loop, UV_RUN_DEFAULT); /* the store's last answers */
    while (n-- > 0)
        if (v[n].free)
            v[n].free(s);
    (void)uv_run(s->loop, UV_RUN_DEFAULT); /* close callbacks */
    free(s->api.routes);
    buf_release(&s->api.openapi);
    buf_release(&s->api.jobspec_schema);
    free(s);
    return status;
}
