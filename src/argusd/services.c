/* SPDX-License-Identifier: Apache-2.0 */
/* services.c - see services.h.
 *
 * The store's "durable" call is the heart: it lets the answers go, tells the listeners, and
 * starts what was waiting to be done. What each service asks of another by a callback is put
 * together here, so that they do not know each other. */
#include "argusd/services.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
#include "argusd/programs.h"
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

enum { CLOSE_GRACE_S = 3 };

struct services {
    uv_loop_t *loop;
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
    bool stopping;
};

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
    struct services *s = arg;
    if (s->api.http)
        http_server_release(s->api.http, batch);
    if (s->stopping)
        return;
    events_durable(s->api.events, batch);
    jobs_durable(s->api.jobs, batch);
    nodes_durable(s->api.nodes, batch);
    snapshots_durable(s->api.snapshots, batch);
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
    (void)err_set(&err, ERR_STORE, "the store cannot write now: %s", why); /* only fills err */
    if (s->api.http && !s->stopping)
        http_server_refuse_held(s->api.http, &err);
}

static void on_act(struct live *l, void *arg)
{
    struct services *s = arg;
    if (s->stopping)
        return;
    if (l->over)
        people_usage_end(s->usage, l->job);
    else if (l->job->state != JOB_QUEUED)
        people_usage_begin(s->usage, l->job);
    metas_write(s->api.metas, l);
    registry_saw(s->api.registry, l);
    if (l->over || l->job->state == JOB_QUEUED)
        secretsweep_soon(s->sweep);
    if (l->over || job_act(l->job) != JOB_ACT_TRY)
        trials_drop(s->trials, l);
    if (l->over)
        return;
    watcher_strays(s->watcher, l);
    switch (job_act(l->job)) {
    case JOB_ACT_SEND:
        sender_act(s->sender, l);
        break;
    case JOB_ACT_STOP:
        watcher_stop(s->watcher, l);
        break;
    case JOB_ACT_TRY:
        trials_act(s->trials, l);
        break;
    case JOB_ACT_NONE:
        break;
    }
}

static void on_lease_ended(struct live *l, const char *slots, void *arg)
{
    struct services *s = arg;
    if (!s->stopping)
        nodes_lease_ended(s->api.nodes, l->job->id, slots, l->job->demand.cpus_per_node);
}

static bool is_registered(const char *name, void *arg)
{
    const struct services *s = arg;
    return nodes_is_registered(s->api.nodes, name);
}

/* The scheduler has another table of nodes, or Ray and the root another state. */
static void on_room(void *arg)
{
    struct services *s = arg;
    const char *code, *text;
    if (s->stopping)
        return;
    people_dirs_retry(s->loop, s->api.cluster, s->settings->shared_root, s->api.people);
    cluster_why_not(s->api.cluster, &code, &text);
    jobs_block(s->api.jobs, code, text);
    if (!*code)
        jobs_admit(s->api.jobs, clock_wall());
}

static void on_cluster(void *arg)
{
    struct services *s = arg;
    if (s->stopping)
        return;
    nodes_take(s->api.nodes);
    on_room(s);
}

static void on_new_session(void *arg)
{
    struct services *s = arg;
    if (!s->stopping)
        watcher_forget(s->watcher);
}

static bool knows_id(const char *id, void *arg)
{
    const struct services *s = arg;
    return idset_has(s->api.used, id) || drytrials_is_stray(s->api.drytrials, id);
}

static void on_settled(void *arg)
{
    struct services *s = arg;
    if (!s->stopping)
        watcher_look(s->watcher);
}

static usec_t head_gone(void *arg)
{
    const struct services *s = arg;
    return nodes_head_gone(s->api.nodes);
}

static void saw_jobs(const struct ray_jobs *jobs, void *arg)
{
    const struct services *s = arg;
    placement_saw_jobs(s->placement, jobs);
}

/* ---- opening and closing ---- */

static int open_store(struct services *s, struct err *err)
{
    unsigned char seed[16];
    _cleanup_(freep) char *path = settings_store_path(s->settings);
    if (mkdir(s->settings->state_dir, 0700) < 0 && errno != EEXIST)
        return err_set(err, -errno, "state_dir '%s' cannot be made: %s", s->settings->state_dir,
                       strerror(errno));
    struct store_options opt = {.path = path,
                                .loop = s->loop,
                                .on_durable = on_durable,
                                .on_trouble = on_trouble,
                                .arg = s};
    int r = store_open(&opt, &s->api.store, err);
    if (r < 0)
        return r;
    random_bytes(seed, sizeof(seed));
    s->api.used = idset_new(seed);
    s->api.idempotency = map_new(seed);
    s->api.preflights = preflights_new(s->loop);
    s->api.tokens = tokens_new(s->api.store);
    s->api.people = people_new(s->api.store);
    s->api.secrets = secrets_new(s->api.store, s->settings->state_dir);
    s->api.presets = presets_new(s->api.store);
    s->usage = people_usage_new(s->api.store);
    return 0;
}

static int open_ray(struct services *s, struct err *err)
{
    _cleanup_(freep) char *token = NULL;
    if (s->settings->auth == RAY_AUTH_TOKEN && !(token = read_token(s->settings, err)))
        return err->code;
    struct ray_options opt = {.loop = s->loop,
                              .base_url = s->settings->ray_address,
                              .token = token,
                              .user_agent = "argus/" ARGUS_VERSION,
                              .submits_per_second = s->settings->submits_per_second};
    int r = ray_client_new(&opt, &s->ray, err);
    s->api.ray = s->ray;
    s->api.instance = s->instance;
    return r;
}

static int open_nodes(struct services *s, struct err *err)
{
    struct nodes_parts parts = {.loop = s->loop,
                                .settings = s->settings,
                                .store = s->api.store,
                                .events = s->api.events,
                                .sched = s->sched,
                                .jobs = s->api.jobs,
                                .cluster = s->api.cluster,
                                .instance = s->instance,
                                .boot_id = clock_boot_id(s->boot_id),
                                .changed = on_room,
                                .arg = s};
    return nodes_new(&parts, &s->api.nodes, err);
}

static void open_trials(struct services *s)
{
    struct trials_parts trials_parts = {.loop = s->loop,
                                        .settings = s->settings,
                                        .cluster = s->api.cluster,
                                        .nodes = s->api.nodes,
                                        .secrets = s->api.secrets,
                                        .ray = s->ray,
                                        .instance = s->instance};
    s->trials = trials_new(&trials_parts);
    s->api.drytrials = drytrials_new(&s->api);
}

static void open_sweep(struct services *s)
{
    struct secretsweep_parts parts = {.loop = s->loop,
                                      .shared_root = s->settings->shared_root,
                                      .cluster = s->api.cluster,
                                      .jobs = s->api.jobs,
                                      .drytrials = s->api.drytrials};
    s->sweep = secretsweep_new(&parts);
}

static void open_content(struct services *s)
{
    struct registry_parts registry_parts = {.loop = s->loop,
                                            .settings = s->settings,
                                            .store = s->api.store,
                                            .events = s->api.events,
                                            .storage = &s->api.storage,
                                            .cluster = s->api.cluster};
    s->api.registry = registry_new(&registry_parts);
    struct snapshots_parts snapshots_parts = {.loop = s->loop,
                                              .settings = s->settings,
                                              .store = s->api.store,
                                              .storage = &s->api.storage,
                                              .cluster = s->api.cluster};
    s->api.snapshots = snapshots_new(&snapshots_parts);
    s->api.storage = (struct storage){s->api.people, s->api.registry, s->api.snapshots};
}

static void open_placement(struct services *s)
{
    struct placement_parts parts = {.loop = s->loop,
                                    .settings = s->settings,
                                    .cluster = s->api.cluster,
                                    .ray = s->ray,
                                    .jobs = s->api.jobs,
                                    .instance = s->instance};
    s->placement = placement_new(&parts);
}

static void open_metas(struct services *s)
{
    struct metas_parts parts = {.loop = s->loop,
                                .settings = s->settings,
                                .store = s->api.store,
                                .cluster = s->api.cluster,
                                .jobs = s->api.jobs,
                                .secrets = s->api.secrets};
    s->api.metas = metas_new(&parts);
}

static void open_metrics(struct services *s)
{
    struct metrics_parts parts = {.loop = s->loop,
                                  .settings = s->settings,
                                  .cluster = s->api.cluster,
                                  .jobs = s->api.jobs,
                                  .settled = on_settled,
                                  .arg = s};
    s->metrics = metrics_new(&parts);
    struct hangs_parts hangs_parts = {.loop = s->loop,
                                      .settings = s->settings,
                                      .cluster = s->api.cluster,
                                      .jobs = s->api.jobs,
                                      .metrics = s->metrics,
                                      .findings = s->api.findings};
    s->hangs = hangs_new(&hangs_parts);
}

static void open_checkpoints(struct services *s)
{
    struct checkpoints_parts parts = {.loop = s->loop,
                                      .settings = s->settings,
                                      .store = s->api.store,
                                      .events = s->api.events,
                                      .cluster = s->api.cluster,
                                      .jobs = s->api.jobs,
                                      .people = s->api.people,
                                      .storage = &s->api.storage};
    s->api.checkpoints = checkpoints_new(&parts);
}

static int open_findings(struct services *s, struct err *err)
{
    struct findings_parts parts = {.loop = s->loop,
                                   .settings = s->settings,
                                   .store = s->api.store,
                                   .events = s->api.events,
                                   .cluster = s->api.cluster,
                                   .jobs = s->api.jobs,
                                   .metas = s->api.metas};
    return findings_new(&parts, &s->api.findings, err);
}

/* Those of the services that may fail. */
static int open_fallible(struct services *s, struct err *err)
{
    int r = open_nodes(s, err);
    return r < 0 ? r : open_findings(s, err);
}

/* The others, in the order in which they depend on each other. */
static int open_rest(struct services *s, const struct store_last *last, struct err *err)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct sched_limits limits = {.live_jobs = (int)s->settings->live_jobs,
                                  .policy = s->settings->policy == POLICY_FIFO ? SCHED_POLICY_FIFO
                                                                               : SCHED_POLICY_FAIR,
                                  .reclaim_grace = s->settings->reclaim_grace};
    s->sched = sched_new(seed, &limits);
    people_set_sched(s->api.people, s->sched);
    people_usage_restored(s->usage, s->sched);
    s->api.events = events_new(s->api.store, last);
    struct jobs_parts jobs_parts = {.loop = s->loop,
                                    .store = s->api.store,
                                    .sched = s->sched,
                                    .events = s->api.events,
                                    .ops = {.act = on_act, .lease_ended = on_lease_ended, .arg = s},
                                    .next_seq = last->job_seq + 1,
                                    .reclaim_grace = s->settings->reclaim_grace};
    s->api.jobs = jobs_new(&jobs_parts);
    people_usage_start(s->usage, s->loop, s->api.jobs);
    struct cluster_ops cluster_ops = {.is_registered = is_registered,
                                      .changed = on_cluster,
                                      .new_session = on_new_session,
                                      .arg = s};
    s->api.cluster =
        cluster_new(s->loop, s->settings, s->ray, s->instance, s->api.events, &cluster_ops);
    open_metas(s);
    int r = open_fallible(s, err);
    if (r < 0)
        return r;
    on_room(s); /* nothing starts before Ray and the root were seen */
    open_checkpoints(s);
    struct sender_parts sender_parts = {.loop = s->loop,
                                        .settings = s->settings,
                                        .cluster = s->api.cluster,
                                        .ray = s->ray,
                                        .secrets = s->api.secrets,
                                        .checkpoints = s->api.checkpoints,
                                        .instance = s->instance};
    s->sender = sender_new(&sender_parts);
    open_trials(s);
    open_metrics(s);
    struct watcher_parts watcher_parts = {.loop = s->loop,
                                          .settings = s->settings,
                                          .cluster = s->api.cluster,
                                          .ray = s->ray,
                                          .jobs = s->api.jobs,
                                          .sender = s->sender,
                                          .trials = s->trials,
                                          .metrics = s->metrics,
                                          .findings = s->api.findings,
                                          .instance = s->instance,
                                          .knows_id = knows_id,
                                          .head_gone = head_gone,
                                          .saw_jobs = saw_jobs,
                                          .arg = s};
    open_placement(s);
    open_sweep(s);
    s->watcher = watcher_new(&watcher_parts);
    struct uploads_parts uploads_parts = {.loop = s->loop,
                                          .settings = s->settings,
                                          .store = s->api.store,
                                          .events = s->api.events,
                                          .cluster = s->api.cluster};
    s->api.uploads = uploads_new(&uploads_parts);
    open_content(s);
    s->api.tails = tails_new(&s->api);
    s->api.curves = curves_kept_new();
    return 0;
}

static int open_http(struct services *s, struct err *err)
{
    size_t n;
    s->api.routes = routes_join(&n);
    struct http_options opt = {.loop = s->loop,
                               .listen = s->settings->listen,
                               .tls_cert = s->settings->tls_cert,
                               .tls_key = s->settings->tls_key,
                               .routes = s->api.routes,
                               .n_routes = n,
                               .authenticate = api_authenticate,
                               .mono = clock_mono,
                               .app = &s->api};
    return http_server_open(&opt, &s->api.http, err);
}

/* ---- life ---- */

struct services *services_new(uv_loop_t *loop, struct settings *settings)
{
    struct services *s = xcalloc(1, sizeof(*s));
    s->loop = s->api.loop = loop;
    s->settings = settings;
    s->api.settings = settings;
    s->api.started_at = clock_wall();
    return s;
}

int services_open(struct services *s, struct err *err)
{
    struct restore *r = NULL;
    struct store_last last = {0};
    int x = open_store(s, err);
    if (x == 0)
        x = programs_find(s->settings, err);
    if (x == 0) {
        r = restore_new(&s->api, s->usage, s->instance);
        x = restore_load(r, &last, err);
    }
    if (x == 0)
        x = open_ray(s, err);
    if (x == 0)
        x = open_rest(s, &last, err);
    if (x == 0) {
        restore_services(r);
        x = open_http(s, err);
    }
    restore_free(r);
    return x;
}

void services_start(struct services *s)
{
    nodes_start(s->api.nodes);
    cluster_start(s->api.cluster);
    watcher_start(s->watcher);
    metas_start(s->api.metas);
    metrics_start(s->metrics);
    checkpoints_start(s->api.checkpoints);
    hangs_start(s->hangs);
    placement_start(s->placement);
    secretsweep_soon(s->sweep);
    uploads_start(s->api.uploads);
    registry_start(s->api.registry, s->api.jobs);
    snapshots_start(s->api.snapshots);
    log_info("argusd", "argusd %s listens on '%s' (port %u), shared root '%s', Ray at '%s'",
             ARGUS_VERSION, s->settings->listen, http_server_port(s->api.http),
             s->settings->shared_root, s->settings->ray_address);
    if (tokens_count(s->api.tokens) == 0)
        log_warn("argusd", "there is no token yet: stop argusd and run 'argusd init'");
}

/* No request is left that could ask them anything. */
static void on_http_closed(void *arg)
{
    struct services *s = arg;
    s->api.http = NULL;
    preflights_close(s->api.preflights);
    nodes_close(s->api.nodes);
    cluster_free(s->api.cluster);
    ray_client_free(s->ray);
}

/* What was not opened is NULL, which is fine in all. */
void services_close(struct services *s)
{
    s->stopping = true;
    people_usage_close(s->usage);
    uploads_close(s->api.uploads);
    registry_close(s->api.registry);
    findings_close(s->api.findings);
    watcher_free(s->watcher);
    hangs_close(s->hangs);
    metas_close(s->api.metas);
    metrics_close(s->metrics);
    checkpoints_close(s->api.checkpoints);
    placement_free(s->placement);
    secretsweep_free(s->sweep);
    sender_close(s->sender);
    trials_close(s->trials);
    drytrials_close(s->api.drytrials);
    if (s->api.http)
        http_server_close(s->api.http, CLOSE_GRACE_S * USEC_SEC, on_http_closed, s);
    else
        on_http_closed(s);
}

int services_free(struct services *s)
{
    struct err err = {0};
    int status = 0;
    if (store_close(s->api.store, &err) < 0) {
        log_err("store", "%s", err.text);
        status = 1;
    }
    tails_free(s->api.tails);
    (void)uv_run(s->loop, UV_RUN_DEFAULT); /* close callbacks */
    preflights_free(s->api.preflights);
    sender_free(s->sender);
    trials_free(s->trials);
    hangs_free(s->hangs);
    metas_free(s->api.metas);
    metrics_free(s->metrics);
    checkpoints_free(s->api.checkpoints);
    drytrials_free(s->api.drytrials);
    curves_kept_free(s->api.curves);
    nodes_free(s->api.nodes);
    findings_free(s->api.findings);
    jobs_free(s->api.jobs);
    events_free(s->api.events);
    snapshots_free(s->api.snapshots);
    uploads_free(s->api.uploads);
    registry_free(s->api.registry);
    sched_free(s->sched);
    tokens_free(s->api.tokens);
    people_free(s->api.people);
    secrets_free(s->api.secrets);
    presets_free(s->api.presets);
    people_usage_free(s->usage);
    idset_free(s->api.used);
    api_forget(&s->api);
    free(s->api.routes);
    free(s);
    return status;
}
