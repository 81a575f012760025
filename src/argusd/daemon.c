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
#include "argusd/checkpoints.h"
#include "argusd/drytrial.h"
#include "argusd/findings.h"
#include "argusd/hangs.h"
#include "argusd/meta.h"
#include "argusd/metrics.h"
#include "argusd/people_dirs.h"
#include "argusd/people_usage.h"
#include "argusd/placement.h"
#include "argusd/preflight.h"
#include "argusd/registry.h"
#include "argusd/restore.h"
#include "argusd/routes.h"
#include "argusd/secretsweep.h"
#include "argusd/sender.h"
#include "argusd/snapshots.h"
#include "argusd/tails.h"
#include "argusd/trials.h"
#include "argusd/uploads.h"
#include "argusd/watcher.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/version.h"
#include "embedded.h"

enum { CLOSE_GRACE_S = 3 };

struct argusd {
    uv_loop_t loop;
    struct settings *settings;
    struct api api;
    struct sched *sched;
    struct ray_client *ray;
    struct people_usage *usage;
    struct sender *sender;
    struct trials *trials;
    struct metrics *metrics;
    struct hangs *hangs;
    struct watcher *watcher;
    struct placement *placement;
    struct secretsweep *sweep;
    char instance[RESTORE_INSTANCE_MAX]; /* our mark on Ray's records: made with the store */
    char boot_id[CLOCK_BOOT_ID_MAX];
    uv_signal_t signals[2];
    bool stopping;
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
    nodes_durable(d->api.nodes, batch);
    snapshots_durable(d->api.snapshots, batch);
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
    if (l->over)
        people_usage_end(d->usage, l->job);
    else if (l->job->state != JOB_QUEUED)
        people_usage_begin(d->usage, l->job);
    metas_write(d->api.metas, l);
    registry_saw(d->api.registry, l);
    if (l->over || l->job->state == JOB_QUEUED)
        secretsweep_soon(d->sweep);
    if (l->over || job_act(l->job) != JOB_ACT_TRY)
        trials_drop(d->trials, l);
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
    case JOB_ACT_TRY:
        trials_act(d->trials, l);
        break;
    case JOB_ACT_NONE:
        break;
    }
}

static void on_lease_ended(struct live *l, const char *slots, void *arg)
{
    struct argusd *d = arg;
    if (!d->stopping)
        nodes_lease_ended(d->api.nodes, l->job->id, slots, l->job->demand.cpus_per_node);
}

static bool is_registered(const char *name, void *arg)
{
    const struct argusd *d = arg;
    return nodes_is_registered(d->api.nodes, name);
}

/* The scheduler has another table of nodes, or Ray and the root another state. */
static void on_room(void *arg)
{
    struct argusd *d = arg;
    const char *code, *text;
    if (d->stopping)
        return;
    people_dirs_retry(&d->loop, d->api.cluster, d->settings->shared_root, d->api.people);
    cluster_why_not(d->api.cluster, &code, &text);
    jobs_block(d->api.jobs, code, text);
    if (!*code)
        jobs_admit(d->api.jobs, clock_wall());
}

static void on_cluster(void *arg)
{
    struct argusd *d = arg;
    if (d->stopping)
        return;
    nodes_take(d->api.nodes);
    on_room(d);
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
    return idset_has(d->api.used, id) || drytrials_is_stray(d->api.drytrials, id);
}

static void on_settled(void *arg)
{
    struct argusd *d = arg;
    if (!d->stopping)
        watcher_look(d->watcher);
}

static usec_t head_gone(void *arg)
{
    const struct argusd *d = arg;
    return nodes_head_gone(d->api.nodes);
}

static void saw_jobs(const struct ray_jobs *jobs, void *arg)
{
    const struct argusd *d = arg;
    placement_saw_jobs(d->placement, jobs);
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
    d->api.preflights = preflights_new(&d->loop);
    d->api.tokens = tokens_new(d->api.store);
    d->api.people = people_new(d->api.store);
    d->api.secrets = secrets_new(d->api.store, d->settings->state_dir);
    d->api.presets = presets_new(d->api.store);
    d->usage = people_usage_new(d->api.store);
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

static int open_nodes(struct argusd *d, struct err *err)
{
    struct nodes_parts parts = {.loop = &d->loop,
                                .settings = d->settings,
                                .store = d->api.store,
                                .events = d->api.events,
                                .sched = d->sched,
                                .jobs = d->api.jobs,
                                .cluster = d->api.cluster,
                                .instance = d->instance,
                                .boot_id = clock_boot_id(d->boot_id),
                                .changed = on_room,
                                .arg = d};
    return nodes_new(&parts, &d->api.nodes, err);
}

static void open_trials(struct argusd *d)
{
    struct trials_parts trials_parts = {.loop = &d->loop,
                                        .settings = d->settings,
                                        .cluster = d->api.cluster,
                                        .nodes = d->api.nodes,
                                        .secrets = d->api.secrets,
                                        .ray = d->ray,
                                        .instance = d->instance};
    d->trials = trials_new(&trials_parts);
    d->api.drytrials = drytrials_new(&d->api);
}

static void open_sweep(struct argusd *d)
{
    struct secretsweep_parts parts = {.loop = &d->loop,
                                      .shared_root = d->settings->shared_root,
                                      .cluster = d->api.cluster,
                                      .jobs = d->api.jobs,
                                      .drytrials = d->api.drytrials};
    d->sweep = secretsweep_new(&parts);
}

static void open_content(struct argusd *d)
{
    struct registry_parts registry_parts = {.loop = &d->loop,
                                            .settings = d->settings,
                                            .store = d->api.store,
                                            .events = d->api.events,
                                            .storage = &d->api.storage,
                                            .cluster = d->api.cluster};
    d->api.registry = registry_new(&registry_parts);
    struct snapshots_parts snapshots_parts = {.loop = &d->loop,
                                              .settings = d->settings,
                                              .store = d->api.store,
                                              .storage = &d->api.storage,
                                              .cluster = d->api.cluster};
    d->api.snapshots = snapshots_new(&snapshots_parts);
    d->api.storage = (struct storage){d->api.people, d->api.registry, d->api.snapshots};
}

static void open_placement(struct argusd *d)
{
    struct placement_parts parts = {.loop = &d->loop,
                                    .settings = d->settings,
                                    .cluster = d->api.cluster,
                                    .ray = d->ray,
                                    .jobs = d->api.jobs,
                                    .instance = d->instance};
    d->placement = placement_new(&parts);
}

static void open_metas(struct argusd *d)
{
    struct metas_parts parts = {.loop = &d->loop,
                                .settings = d->settings,
                                .store = d->api.store,
                                .cluster = d->api.cluster,
                                .jobs = d->api.jobs,
                                .secrets = d->api.secrets};
    d->api.metas = metas_new(&parts);
}

static void open_metrics(struct argusd *d)
{
    struct metrics_parts parts = {.loop = &d->loop,
                                  .settings = d->settings,
                                  .cluster = d->api.cluster,
                                  .jobs = d->api.jobs,
                                  .settled = on_settled,
                                  .arg = d};
    d->metrics = metrics_new(&parts);
    struct hangs_parts hangs_parts = {.loop = &d->loop,
                                      .settings = d->settings,
                                      .cluster = d->api.cluster,
                                      .jobs = d->api.jobs,
                                      .metrics = d->metrics,
                                      .findings = d->api.findings};
    d->hangs = hangs_new(&hangs_parts);
}

static void open_checkpoints(struct argusd *d)
{
    struct checkpoints_parts parts = {.loop = &d->loop,
                                      .settings = d->settings,
                                      .store = d->api.store,
                                      .events = d->api.events,
                                      .cluster = d->api.cluster,
                                      .jobs = d->api.jobs,
                                      .people = d->api.people,
                                      .storage = &d->api.storage};
    d->api.checkpoints = checkpoints_new(&parts);
}

static int open_findings(struct argusd *d, struct err *err)
{
    struct findings_parts parts = {.loop = &d->loop,
                                   .settings = d->settings,
                                   .store = d->api.store,
                                   .events = d->api.events,
                                   .cluster = d->api.cluster,
                                   .jobs = d->api.jobs,
                                   .metas = d->api.metas};
    return findings_new(&parts, &d->api.findings, err);
}

/* Those of the services that may fail. */
static int open_fallible(struct argusd *d, struct err *err)
{
    int r = open_nodes(d, err);
    return r < 0 ? r : open_findings(d, err);
}

static int open_services(struct argusd *d, const struct store_last *last, struct err *err)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct sched_limits limits = {.live_jobs = (int)d->settings->live_jobs,
                                  .policy = d->settings->policy == POLICY_FIFO ? SCHED_POLICY_FIFO
                                                                               : SCHED_POLICY_FAIR,
                                  .reclaim_grace = d->settings->reclaim_grace};
    d->sched = sched_new(seed, &limits);
    people_set_sched(d->api.people, d->sched);
    people_usage_restored(d->usage, d->sched);
    d->api.events = events_new(d->api.store, last);
    struct jobs_parts jobs_parts = {.loop = &d->loop,
                                    .store = d->api.store,
                                    .sched = d->sched,
                                    .events = d->api.events,
                                    .ops = {.act = on_act, .lease_ended = on_lease_ended, .arg = d},
                                    .next_seq = last->job_seq + 1,
                                    .reclaim_grace = d->settings->reclaim_grace};
    d->api.jobs = jobs_new(&jobs_parts);
    people_usage_start(d->usage, &d->loop, d->api.jobs);
    struct cluster_ops cluster_ops = {.is_registered = is_registered,
                                      .changed = on_cluster,
                                      .new_session = on_new_session,
                                      .arg = d};
    d->api.cluster =
        cluster_new(&d->loop, d->settings, d->ray, d->instance, d->api.events, &cluster_ops);
    open_metas(d);
    int r = open_fallible(d, err);
    if (r < 0)
        return r;
    on_room(d); /* nothing starts before Ray and the root were seen */
    open_checkpoints(d);
    struct sender_parts sender_parts = {.loop = &d->loop,
                                        .settings = d->settings,
                                        .cluster = d->api.cluster,
                                        .ray = d->ray,
                                        .secrets = d->api.secrets,
                                        .checkpoints = d->api.checkpoints,
                                        .instance = d->instance};
    d->sender = sender_new(&sender_parts);
    open_trials(d);
    open_metrics(d);
    struct watcher_parts watcher_parts = {.loop = &d->loop,
                                          .settings = d->settings,
                                          .cluster = d->api.cluster,
                                          .ray = d->ray,
                                          .jobs = d->api.jobs,
                                          .sender = d->sender,
                                          .trials = d->trials,
                                          .metrics = d->metrics,
                                          .findings = d->api.findings,
                                          .instance = d->instance,
                                          .knows_id = knows_id,
                                          .head_gone = head_gone,
                                          .saw_jobs = saw_jobs,
                                          .arg = d};
    open_placement(d);
    open_sweep(d);
    d->watcher = watcher_new(&watcher_parts);
    struct uploads_parts uploads_parts = {.loop = &d->loop,
                                          .settings = d->settings,
                                          .store = d->api.store,
                                          .events = d->api.events,
                                          .cluster = d->api.cluster};
    d->api.uploads = uploads_new(&uploads_parts);
    open_content(d);
    d->api.tails = tails_new(&d->api);
    d->api.curves = curves_kept_new();
    return 0;
}

static int open_http(struct argusd *d, struct err *err)
{
    size_t n;
    d->api.routes = routes_join(&n);
    struct http_options opt = {.loop = &d->loop,
                               .listen = d->settings->listen,
                               .tls_cert = d->settings->tls_cert,
                               .tls_key = d->settings->tls_key,
                               .routes = d->api.routes,
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
    preflights_close(d->api.preflights);
    nodes_close(d->api.nodes);
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
    people_usage_close(d->usage);
    uploads_close(d->api.uploads);
    registry_close(d->api.registry);
    findings_close(d->api.findings);
    watcher_free(d->watcher);
    hangs_close(d->hangs);
    metas_close(d->api.metas);
    metrics_close(d->metrics);
    checkpoints_close(d->api.checkpoints);
    placement_free(d->placement);
    secretsweep_free(d->sweep);
    sender_close(d->sender);
    trials_close(d->trials);
    drytrials_close(d->api.drytrials);
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

static int open_parts(struct argusd *d, struct err *err)
{
    struct restore *r = NULL;
    struct store_last last = {0};
    int x = open_store(d, err);
    if (x == 0)
        x = find_programs(d->settings, err);
    if (x == 0) {
        r = restore_new(&d->api, d->usage, d->instance);
        x = restore_load(r, &last, err);
    }
    if (x == 0)
        x = open_ray(d, err);
    if (x == 0)
        x = open_services(d, &last, err);
    if (x == 0) {
        restore_services(r);
        x = open_http(d, err);
    }
    restore_free(r);
    return x;
}

static int start(struct argusd *d, struct err *err)
{
    int x = open_parts(d, err);
    if (x < 0) {
        d->stopping = true;
        people_usage_close(d->usage);
        watcher_free(d->watcher); /* what was not opened is NULL */
        hangs_close(d->hangs);
        metas_close(d->api.metas);
        metrics_close(d->metrics);
        checkpoints_close(d->api.checkpoints);
        drytrials_close(d->api.drytrials);
        placement_free(d->placement);
        secretsweep_free(d->sweep);
        on_http_closed(d);
        return x;
    }
    start_signals(d);
    nodes_start(d->api.nodes);
    cluster_start(d->api.cluster);
    watcher_start(d->watcher);
    metas_start(d->api.metas);
    metrics_start(d->metrics);
    checkpoints_start(d->api.checkpoints);
    hangs_start(d->hangs);
    placement_start(d->placement);
    secretsweep_soon(d->sweep);
    uploads_start(d->api.uploads);
    registry_start(d->api.registry, d->api.jobs);
    snapshots_start(d->api.snapshots);
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
    preflights_free(d->api.preflights);
    sender_free(d->sender);
    trials_free(d->trials);
    hangs_free(d->hangs);
    metas_free(d->api.metas);
    metrics_free(d->metrics);
    checkpoints_free(d->api.checkpoints);
    drytrials_free(d->api.drytrials);
    curves_kept_free(d->api.curves);
    nodes_free(d->api.nodes);
    findings_free(d->api.findings);
    jobs_free(d->api.jobs);
    events_free(d->api.events);
    snapshots_free(d->api.snapshots);
    uploads_free(d->api.uploads);
    registry_free(d->api.registry);
    sched_free(d->sched);
    tokens_free(d->api.tokens);
    people_free(d->api.people);
    secrets_free(d->api.secrets);
    presets_free(d->api.presets);
    people_usage_free(d->usage);
    idset_free(d->api.used);
    api_forget(&d->api);
    free(d->api.routes);
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
