/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - argusd's parts in the order in which they depend on each other.
 *
 * Everything lives on one loop. The store's "durable" call is the heart: it lets
 * the answers go, tells the listeners, and starts what was waiting to be done. */
#include "argusd/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "argusd/api.h"
#include "argusd/meta.h"
#include "argusd/sender.h"
#include "argusd/watcher.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/version.h"
#include "embedded.h"
#include "fsroot/file.h"

enum { CLOSE_GRACE_S = 3, INSTANCE_MAX = 40 };

struct argusd {
    uv_loop_t loop;
    struct settings *settings;
    struct api api;
    struct sched *sched;
    struct ray_client *ray;
    struct sender *sender;
    struct watcher *watcher;
    char instance[INSTANCE_MAX]; /* our mark on Ray's records: made with the store */
    uv_signal_t signals[2];
    bool stopping;
    struct restore *restore;
};

/* ---- small things ---- */

char *daemon_store_path(const struct settings *settings)
{
    return xasprintf("%s/argus.db", settings->state_dir);
}

/* Type=notify: READY=1 and STATUS= to systemd, where there is one. */
static void notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (!path || !*path || strlen(path) >= sizeof(at.sun_path))
        return;
    memcpy(at.sun_path, path, strlen(path) + 1);
    if (at.sun_path[0] == '@')
        at.sun_path[0] = 0;
    _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) /* nobody listening is no reason to fail */
        (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&at,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
}

static char *beside(const char *self, const char *rel)
{
    char *path = xasprintf("%s/%s", self, rel);
    if (access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* The hook travels inside argusd; from state_dir it is placed on the shared root. */
static int place_hook(struct settings *s, struct err *err)
{
    _cleanup_(freep) char *dir = xasprintf("%s/hook", s->state_dir);
    _cleanup_(freep) char *path = xasprintf("%s/sitecustomize.py", dir);
    int r = file_mkdirs(dir, 0755, err);
    if (r == 0)
        r = file_write(path, embedded_sitecustomize_py, embedded_sitecustomize_py_size, 0644, 0,
                       err);
    if (r == 0)
        set_str(&s->hook, dir);
    return r;
}

/* The shepherd: named in argus.yaml, or beside argusd. */
static int find_programs(struct settings *s, struct err *err)
{
    static const char *const shepherds[] = {"argus-shepherd", "../shepherd/argus-shepherd"};
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0)
        return err_set(err, -errno, "'/proc/self/exe' cannot be read: %s", strerror(errno));
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < array_len(shepherds) && !s->shepherd; i++)
        s->shepherd = beside(self, shepherds[i]);
    if (!s->shepherd || access(s->shepherd, X_OK) < 0)
        return err_set(err, ERR_USAGE, "argus-shepherd is not at '%s'; name it with 'shepherd:'",
                       s->shepherd ? s->shepherd : self);
    return s->hook ? 0 : place_hook(s, err);
}

static char *read_token(const struct settings *s, struct err *err)
{
    struct buf text = BUF_INIT(4096);
    char *token = NULL;
    if (file_read(s->auth_token_file, &text, err) == 0) {
        token = buf_take(&text);
        token[strcspn(token, " \r\n")] = 0;
    }
    buf_release(&text);
    return token;
}

/* ---- what happens when ---- */

static void on_durable(uint64_t batch, void *arg)
{
    struct argusd *d = arg;
    if (d->api.http)
        http_server_release(d->api.http, batch);
    if (d->stopping)
        return;
    events_durable(d->api.events, batch);
    jobs_durable(d->api.jobs, batch);
}

static void on_trouble(bool failing, const char *why, void *arg)
{
    struct argusd *d = arg;
    struct err err = {0};
    if (!failing) {
        log_info("store", "the store writes again");
        return;
    }
    log_err("store", "the store cannot write, trying again: %s", why);
    (void)err_set(&err, ERR_STORE, "the store cannot write now: %s", why); /* only fills err */
    if (d->api.http && !d->stopping)
        http_server_refuse_held(d->api.http, &err);
}

static void on_act(struct live *l, void *arg)
{
    struct argusd *d = arg;
    if (d->stopping)
        return;
    if (!cluster_root_hangs(d->api.cluster)) /* else each would take a worker for itself */
        meta_write(&d->loop, d->settings, l);
    if (l->over)
        return;
    watcher_strays(d->watcher, l);
    switch (job_act(l->job)) {
    case JOB_ACT_SEND:
        sender_act(d->sender, l);
        break;
    case JOB_ACT_STOP:
        watcher_stop(d->watcher, l);
        break;
    case JOB_ACT_NONE:
        break;
    }
}

static void on_cluster(void *arg)
{
    struct argusd *d = arg;
    const char *code, *text;
    if (d->stopping)
        return;
    cluster_why_not(d->api.cluster, &code, &text);
    jobs_block(d->api.jobs, code, text);
    if (!*code)
        jobs_admit(d->api.jobs, clock_wall());
}

static void on_new_session(void *arg)
{
    struct argusd *d = arg;
    if (!d->stopping)
        watcher_forget(d->watcher);
}

static bool knows_id(const char *id, void *arg)
{
    const struct argusd *d = arg;
    return idset_has(d->api.used, id);
}

/* ---- from the store ---- */

struct restore {
    struct argusd *d;
    struct restored {
        struct job *job;
        struct record_extra extra;
    } * v;
    size_t n;
    bool has_instance;
    struct err err;
};

static void on_job_row(const struct store_job *row, void *arg)
{
    struct restore *r = arg;
    struct restored x = {0};
    if (record_to_job(row, &x.job, &x.extra, &r->err) < 0) {
        log_err("store", "%s", r->err.text);
        record_extra_release(&x.extra);
        return;
    }
    if ((r->n & (r->n - 1)) == 0)
        r->v = xrealloc(r->v, r->n ? r->n * 2 : 1, sizeof(*r->v));
    r->v[r->n++] = x;
}

static void on_attempt_row(const struct store_attempt *row, void *arg)
{
    struct restore *r = arg;
    /* Both come in the order of submission: search from behind only when that fails. */
    size_t lo = 0, hi = r->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (r->v[mid].job->seq < row->job_seq)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < r->n && r->v[lo].job->seq == row->job_seq)
        record_add_attempt(r->v[lo].job, row);
}

static void on_id_row(const char *id, void *arg)
{
    struct restore *r = arg;
    idset_add(r->d->api.used, id);
}

static void on_token_row(const struct store_token *row, void *arg)
{
    struct restore *r = arg;
    tokens_restore(r->d->api.tokens, row);
}

static void on_idempotency_row(const struct store_idempotency *row, void *arg)
{
    struct restore *r = arg;
    api_restore_idempotency(&r->d->api, row);
}

static void on_meta_row(const char *key, const char *value, void *arg)
{
    struct restore *r = arg;
    if (strcmp(key, "instance") != 0)
        return;
    (void)snprintf(r->d->instance, sizeof(r->d->instance), "%s", value); /* it is 32 long */
    r->has_instance = true;
}

static void make_instance(struct argusd *d)
{
    unsigned char bytes[16];
    random_bytes(bytes, sizeof(bytes));
    (void)str_hex(bytes, sizeof(bytes), d->instance);
    store_put_meta(d->api.store, "instance", d->instance);
}

static int load_store(struct argusd *d, struct restore *r, struct store_last *last, struct err *err)
{
    static const struct store_load_ops ops = {.on_job = on_job_row,
                                              .on_attempt = on_attempt_row,
                                              .on_id = on_id_row,
                                              .on_token = on_token_row,
                                              .on_idempotency = on_idempotency_row,
                                              .on_meta = on_meta_row};
    int x = store_load(d->api.store, &ops, r, last, err);
    if (x == 0 && !r->has_instance)
        make_instance(d);
    if (x == 0)
        store_prune_idempotency(d->api.store, clock_wall() - USEC_DAY);
    return x;
}

/* ---- opening and closing ---- */

static int open_store(struct argusd *d, struct err *err)
{
    unsigned char seed[16];
    _cleanup_(freep) char *path = daemon_store_path(d->settings);
    if (mkdir(d->settings->state_dir, 0700) < 0 && errno != EEXIST)
        return err_set(err, -errno, "state_dir '%s' cannot be made: %s", d->settings->state_dir,
                       strerror(errno));
    struct store_options opt = {.path = path,
                                .loop = &d->loop,
                                .on_durable = on_durable,
                                .on_trouble = on_trouble,
                                .arg = d};
    int r = store_open(&opt, &d->api.store, err);
    if (r < 0)
        return r;
    random_bytes(seed, sizeof(seed));
    d->api.used = idset_new(seed);
    d->api.idempotency = map_new(seed);
    d->api.verl_cache = map_new(seed);
    d->api.tokens = tokens_new(d->api.store);
    return 0;
}

static int open_ray(struct argusd *d, struct err *err)
{
    _cleanup_(freep) char *token = NULL;
    if (d->settings->auth == RAY_AUTH_TOKEN && !(token = read_token(d->settings, err)))
        return err->code;
    struct ray_options opt = {.loop = &d->loop,
                              .base_url = d->settings->ray_address,
                              .token = token,
                              .user_agent = "argus/" ARGUS_VERSION,
                              .submits_per_second = d->settings->submits_per_second};
    int r = ray_client_new(&opt, &d->ray, err);
    d->api.ray = d->ray;
    d->api.instance = d->instance;
    return r;
}

static void open_services(struct argusd *d, const struct store_last *last)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct sched_limits limits = {.live_jobs = (int)d->settings->live_jobs};
    d->sched = sched_new(seed, &limits);
    d->api.events = events_new(d->api.store, last->event_seq + 1);
    struct jobs_ops jobs_ops = {.act = on_act, .arg = d};
    d->api.jobs = jobs_new(d->api.store, d->sched, d->api.events, &jobs_ops, last->job_seq + 1);
    struct cluster_ops cluster_ops = {
        .changed = on_cluster, .new_session = on_new_session, .arg = d};
    d->api.cluster =
        cluster_new(&d->loop, d->settings, d->ray, d->sched, d->api.events, &cluster_ops);
    on_cluster(d); /* nothing starts before Ray and the root were seen */
    struct sender_parts sender_parts = {.loop = &d->loop,
                                        .settings = d->settings,
                                        .cluster = d->api.cluster,
                                        .ray = d->ray,
                                        .instance = d->instance};
    d->sender = sender_new(&sender_parts);
    struct watcher_parts watcher_parts = {.loop = &d->loop,
                                          .settings = d->settings,
                                          .cluster = d->api.cluster,
                                          .ray = d->ray,
                                          .jobs = d->api.jobs,
                                          .sender = d->sender,
                                          .instance = d->instance,
                                          .knows_id = knows_id,
                                          .arg = d};
    d->watcher = watcher_new(&watcher_parts);
    d->api.tails = tails_new(&d->api);
}

static int open_http(struct argusd *d, struct err *err)
{
    size_t n;
    const struct http_route *routes = api_routes(&n);
    struct http_options opt = {.loop = &d->loop,
                               .listen = d->settings->listen,
                               .tls_cert = d->settings->tls_cert,
                               .tls_key = d->settings->tls_key,
                               .routes = routes,
                               .n_routes = n,
                               .authenticate = api_authenticate,
                               .mono = clock_mono,
                               .app = &d->api};
    return http_server_open(&opt, &d->api.http, err);
}

static void close_signals(struct argusd *d)
{
    for (size_t i = 0; i < array_len(d->signals); i++)
        uv_close((uv_handle_t *)&d->signals[i], NULL);
}

/* No request is left that could ask them anything. */
static void on_http_closed(void *arg)
{
    struct argusd *d = arg;
    d->api.http = NULL;
    cluster_free(d->api.cluster);
    ray_client_free(d->ray);
}

static void begin_stop(struct argusd *d)
{
    if (d->stopping)
        return;
    notify("STOPPING=1\nSTATUS=stopping");
    log_info("argusd", "stopping; running jobs go on");
    d->stopping = true;
    watcher_free(d->watcher);
    sender_close(d->sender);
    http_server_close(d->api.http, CLOSE_GRACE_S * USEC_SEC, on_http_closed, d);
    close_signals(d);
}

static void on_signal(uv_signal_t *s, int number)
{
    (void)number;
    begin_stop(s->data);
}

static void start_signals(struct argusd *d)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < array_len(numbers); i++) {
        (void)uv_signal_init(&d->loop, &d->signals[i]); /* these fail only without memory */
        d->signals[i].data = d;
        (void)uv_signal_start(&d->signals[i], on_signal, numbers[i]);
    }
    (void)signal(SIGPIPE, SIG_IGN); /* a closed peer is an error code, not an end */
}

static void restore_jobs(struct argusd *d, struct restore *r)
{
    for (size_t i = 0; i < r->n; i++)
        jobs_restore(d->api.jobs, r->v[i].job, &r->v[i].extra);
    r->n = 0;
}

static void say_ready(const struct argusd *d)
{
    char status[256];
    (void)snprintf(status, sizeof(status), "READY=1\nSTATUS=listening on %s",
                   d->settings->listen); /* cut: fine */
    notify(status);
    log_info("argusd", "argusd %s listens on '%s' (port %u), shared root '%s', Ray at '%s'",
             ARGUS_VERSION, d->settings->listen, http_server_port(d->api.http),
             d->settings->shared_root, d->settings->ray_address);
}

static void restore_release(struct restore *r)
{
    for (size_t i = 0; i < r->n; i++) {
        job_free(r->v[i].job);
        record_extra_release(&r->v[i].extra);
    }
    free(r->v);
}

static int open_parts(struct argusd *d, struct err *err)
{
    struct restore r = {.d = d};
    struct store_last last = {0};
    int x = open_store(d, err);
    if (x == 0)
        x = find_programs(d->settings, err);
    if (x == 0)
        x = load_store(d, &r, &last, err);
    if (x == 0)
        x = open_ray(d, err);
    if (x == 0) {
        open_services(d, &last);
        restore_jobs(d, &r);
        x = open_http(d, err);
    }
    restore_release(&r);
    return x;
}

static int start(struct argusd *d, struct err *err)
{
    int x = open_parts(d, err);
    if (x < 0) {
        d->stopping = true;
        watcher_free(d->watcher); /* what was not opened is NULL */
        on_http_closed(d);
        return x;
    }
    start_signals(d);
    cluster_start(d->api.cluster);
    watcher_start(d->watcher);
    say_ready(d);
    if (tokens_count(d->api.tokens) == 0)
        log_warn("argusd", "there is no token yet: stop argusd and run 'argusd init'");
    return 0;
}

/* After the loop has run dry: nobody points at these any more. NULL is fine in all. */
static int close_rest(struct argusd *d)
{
    struct err err = {0};
    int status = 0;
    if (store_close(d->api.store, &err) < 0) {
        log_err("store", "%s", err.text);
        status = 1;
    }
    tails_free(d->api.tails);
    (void)uv_run(&d->loop, UV_RUN_DEFAULT); /* close callbacks */
    sender_free(d->sender);
    jobs_free(d->api.jobs);
    events_free(d->api.events);
    sched_free(d->sched);
    tokens_free(d->api.tokens);
    idset_free(d->api.used);
    api_forget(&d->api);
    return status;
}

int daemon_run(struct settings *settings)
{
    struct argusd *d = xcalloc(1, sizeof(*d));
    struct err err = {0};
    d->settings = settings;
    (void)umask(022);
    (void)setenv("UV_THREADPOOL_SIZE", "16", 0); /* a hung NFS call must not stop the others */
    if (uv_loop_init(&d->loop) < 0) {
        free(d);
        return 1;
    }
    d->api.loop = &d->loop;
    d->api.settings = settings;
    d->api.started_at = clock_wall();
    int status = start(d, &err) < 0 ? 1 : 0;
    if (status)
        (void)fprintf(stderr, "argusd: %s\n", err.text); /* nowhere else to say it */
    (void)uv_run(&d->loop, UV_RUN_DEFAULT);              /* until begin_stop() closed everything */
    if (close_rest(d) != 0 && status == 0)
        status = 1;
    if (err.code == ERR_USAGE)
        status = 2;
    (void)uv_loop_close(&d->loop); /* a handle left would be our bug, and harmless now */
    free(d);
    return status;
}
