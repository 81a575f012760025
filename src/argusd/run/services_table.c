/* SPDX-License-Identifier: Apache-2.0 */
/* services_table.c - every service of argusd: how it is opened, and its row of the table. A new
 * service is a member of struct services, an open function, and a row. */
#include <string.h>

#include "argusd/account/accounting.h"
#include "argusd/agent/agent.h"
#include "argusd/agent/secondopinion.h"
#include "argusd/alerts/alerts.h"
#include "argusd/api/jobs/curves.h"
#include "argusd/api/routes.h"
#include "argusd/archive/archives.h"
#include "argusd/archive/retention.h"
#include "argusd/backup/backups.h"
#include "argusd/calls/callbook.h"
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/content/registry.h"
#include "argusd/content/snapshots.h"
#include "argusd/content/uploads.h"
#include "argusd/evals/evals.h"
#include "argusd/evidence/gpubooks.h"
#include "argusd/evidence/placement.h"
#include "argusd/evidence/rankbooks.h"
#include "argusd/export/remotewriter.h"
#include "argusd/figures/figures.h"
#include "argusd/imports/registry_export.h"
#include "argusd/jobs/people_usage.h"
#include "argusd/kit/view.h"
#include "argusd/launch/drytrial.h"
#include "argusd/launch/preflight.h"
#include "argusd/launch/secretsweep.h"
#include "argusd/launch/trials.h"
#include "argusd/logs/tails.h"
#include "argusd/network/netchecks.h"
#include "argusd/notebooks/notebooks.h"
#include "argusd/ops/ops.h"
#include "argusd/people/ownsettings.h"
#include "argusd/people/people_dirs.h"
#include "argusd/pipes/pipes.h"
#include "argusd/run/programs.h"
#include "argusd/run/services_calls.h"
#include "argusd/run/services_state.h"
#include "argusd/samples/sampler.h"
#include "argusd/services/serving.h"
#include "argusd/simulations/simulations.h"
#include "argusd/submit/idempotency.h"
#include "argusd/submit/keybook.h"
#include "argusd/trackers/trackers.h"
#include "argusd/watch/findings.h"
#include "argusd/watch/hangs.h"
#include "argusd/watch/meta.h"
#include "argusd/watch/metrics.h"
#include "argusd/watch/sender.h"
#include "argusd/watch/watcher.h"
#include "argusd/web/changes.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/version.h"
#include "http/proxy/proxy.h"

/* A function of the table that hands a service to its own function. */
#define CALL_WITH(name, arg, call)                                                                 \
    static void name(struct services *s arg)                                                       \
    {                                                                                              \
        call;                                                                                      \
    }                                                                                              \
    _Static_assert(true, "")
#define CALL(name, call) CALL_WITH(name, , call)
#define CALL_ROW(name, call) CALL_WITH(name, COMMA const struct store_entry *row, call)
#define CALL_BATCH(name, call) CALL_WITH(name, COMMA uint64_t batch, call)
#define COMMA ,

/* ---- before the store is read ---- */

static void make_ids(struct services *s)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    s->api.used = idset_new(seed);
    s->api.keys = keybook_new();
}

CALL(make_preflights, s->api.preflights = preflights_new(s->loop));
CALL(make_tokens, s->api.tokens = tokens_new(s->api.store));

static void make_sessions(struct services *s)
{
    const struct sessions_parts parts = {.store = s->api.store,
                                         .tokens = s->api.tokens,
                                         .idle = s->settings->session_idle,
                                         .longest = s->settings->session_longest,
                                         .most = (size_t)s->settings->session_most,
                                         .is_secure = s->settings->tls_cert != NULL};
    s->api.sessions = sessions_new(&parts);
}

CALL(make_service_keys, s->api.service_keys = service_keys_new(s->api.store));
CALL(make_people, s->api.people = people_new(s->api.store));
CALL(make_ownsettings, s->api.ownsettings = ownsettings_new(s->api.store));
CALL(make_secrets, s->api.secrets = secrets_new(s->api.store, s->settings->state_dir));
CALL(make_presets, s->api.presets = presets_new(s->api.store));
CALL(make_adopted, s->api.adopted = adopted_new(s->api.store));
CALL(make_usage, s->usage = people_usage_new(s->api.store));

/* ---- after it ---- */

static int open_ray(struct services *s, struct err *err)
{
    _cleanup_(freep) char *token = NULL;
    int r = settings_read_token(s->settings, &token, err);
    if (r < 0)
        return r;
    struct ray_options opt = {.loop = s->loop,
                              .base_url = s->settings->ray_address,
                              .token = token,
                              .user_agent = "argus/" ARGUS_VERSION,
                              .submits_per_second = s->settings->submits_per_second};
    r = ray_client_new(&opt, &s->ray, err);
    s->api.ray = s->ray;
    s->api.instance = s->instance;
    return r;
}

static void make_sched(struct services *s)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct sched_limits limits = {.live_jobs = (int)s->settings->live_jobs,
                                  .policy = settings_sched_policy(s->settings),
                                  .reclaim_grace = s->settings->reclaim_grace,
                                  .flow = {.quantum = s->settings->flow_quantum,
                                           .back_within = s->settings->flow_back_within}};
    s->sched = sched_new(seed, &limits);
    people_set_sched(s->api.people, s->sched);
    people_usage_restored(s->usage, s->sched);
}

static void make_accounting(struct services *s)
{
    struct accounting_parts parts = {
        .loop = s->loop, .store = s->api.store, .sched = s->sched, .cluster = s->settings->cluster};
    s->api.accounting = accounting_new(&parts);
}

CALL(make_events, s->api.events = events_new(s->api.store, &s->last));

static void make_jobs(struct services *s)
{
    struct jobs_parts jobs_parts = {.loop = s->loop,
                                    .store = s->api.store,
                                    .sched = s->sched,
                                    .events = s->api.events,
                                    .accounting = s->api.accounting,
                                    .ops = {.act = calls_act,
                                            .ended = calls_ended,
                                            .trial = calls_trial,
                                            .needs = calls_needs,
                                            .lease_ended = calls_lease_ended,
                                            .arg = s},
                                    .next_seq = s->last.job_seq + 1,
                                    .reclaim_grace = s->settings->reclaim_grace};
    s->api.jobs = jobs_new(&jobs_parts);
    people_usage_start(s->usage, s->loop, s->api.jobs);
}

static void make_cluster(struct services *s)
{
    struct cluster_ops cluster_ops = {.is_registered = calls_is_registered,
                                      .registered_address = calls_registered_address,
                                      .changed = calls_cluster,
                                      .new_session = calls_new_session,
                                      .arg = s};
    s->api.cluster =
        cluster_new(s->loop, s->settings, s->ray, s->instance, s->api.events, &cluster_ops);
}

static int open_figures(struct services *s, struct err *err)
{
    struct figures_parts parts = {
        .loop = s->loop, .settings = s->settings, .cluster = s->api.cluster, .ray = s->ray};
    return figures_new(&parts, &s->api.figures, err);
}

static void make_metas(struct services *s)
{
    struct metas_parts parts = {.loop = s->loop,
                                .settings = s->settings,
                                .store = s->api.store,
                                .cluster = s->api.cluster,
                                .jobs = s->api.jobs,
                                .secrets = s->api.secrets,
                                .view = calls_view_for_file};
    s->api.metas = metas_new(&parts);
}

static int open_nodes(struct services *s, struct err *err)
{
    struct nodes_parts parts = {.loop = s->loop,
                                .settings = s->settings,
                                .store = s->api.store,
                                .events = s->api.events,
                                .sched = s->sched,
                                .accounting = s->api.accounting,
                                .jobs = s->api.jobs,
                                .cluster = s->api.cluster,
                                .adopted = s->api.adopted,
                                .figures = s->api.figures,
                                .instance = s->instance,
                                .boot_id = clock_boot_id(s->boot_id),
                                .changed = calls_room,
                                .also_in = calls_also_in,
                                .arg = s};
    return nodes_new(&parts, &s->api.nodes, err);
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

static int open_backups(struct services *s, struct err *err)
{
    struct backups_parts parts = {.loop = s->loop,
                                  .settings = s->settings,
                                  .events = s->api.events,
                                  .cluster = s->api.cluster};
    return backups_new(&parts, &s->api.backups, err);
}

static void make_alerts(struct services *s)
{
    struct alerts_parts parts = {.loop = s->loop,
                                 .settings = s->settings,
                                 .store = s->api.store,
                                 .events = s->api.events,
                                 .cluster = s->api.cluster,
                                 .jobs = s->api.jobs,
                                 .nodes = s->api.nodes,
                                 .people = s->api.people,
                                 .secrets = s->api.secrets,
                                 .figures = s->api.figures,
                                 .agent_failing = calls_agent_failing,
                                 .backup_overdue = calls_backup_overdue,
                                 .services_down = calls_services_down,
                                 .notebook_of = calls_notebook_of,
                                 .arg = s};
    s->api.alerts = alerts_new(&parts);
}

static void make_archives(struct services *s)
{
    struct archives_parts parts = {.loop = s->loop,
                                   .settings = s->settings,
                                   .store = s->api.store,
                                   .events = s->api.events,
                                   .cluster = s->api.cluster,
                                   .check_unused = calls_check_unused,
                                   .checkpoints_gone = calls_checkpoints_gone,
                                   .arg = s};
    s->api.archives = archives_new(&parts);
}

static void make_retention(struct services *s)
{
    struct retention_parts parts = {.loop = s->loop,
                                    .store = s->api.store,
                                    .events = s->api.events,
                                    .cluster = s->api.cluster,
                                    .people = s->api.people,
                                    .archives = s->api.archives,
                                    .has_checkpoints = calls_has_checkpoints,
                                    .arg = s};
    s->retention = retention_new(&parts);
}

static void make_checkpoints(struct services *s)
{
    struct checkpoints_parts parts = {.loop = s->loop,
                                      .settings = s->settings,
                                      .store = s->api.store,
                                      .events = s->api.events,
                                      .cluster = s->api.cluster,
                                      .jobs = s->api.jobs,
                                      .people = s->api.people,
                                      .storage = &s->api.storage,
                                      .archives = s->api.archives};
    s->api.checkpoints = checkpoints_new(&parts);
}

static int open_trackers(struct services *s, struct err *err)
{
    struct trackers_parts parts = {.loop = s->loop,
                                   .settings = s->settings,
                                   .store = s->api.store,
                                   .jobs = s->api.jobs,
                                   .secrets = s->api.secrets,
                                   .importer = &s->api.importer};
    return trackers_new(&parts, &s->api.trackers, err);
}

static void make_sender(struct services *s)
{
    struct sender_parts sender_parts = {.loop = s->loop,
                                        .settings = s->settings,
                                        .cluster = s->api.cluster,
                                        .ray = s->ray,
                                        .secrets = s->api.secrets,
                                        .checkpoints = s->api.checkpoints,
                                        .nodes = s->api.nodes,
                                        .trackers = s->api.trackers,
                                        .instance = s->instance};
    s->sender = sender_new(&sender_parts);
}

static void make_trials(struct services *s)
{
    struct trials_parts trials_parts = {.loop = s->loop,
                                        .settings = s->settings,
                                        .cluster = s->api.cluster,
                                        .nodes = s->api.nodes,
                                        .secrets = s->api.secrets,
                                        .ray = s->ray,
                                        .instance = s->instance,
                                        .failed = calls_trial_failed,
                                        .arg = s};
    s->trials = trials_new(&trials_parts);
}

static void make_drytrials(struct services *s)
{
    struct drytrials_parts drytrials_parts = {.loop = s->loop,
                                              .cluster = s->api.cluster,
                                              .nodes = s->api.nodes,
                                              .secrets = s->api.secrets,
                                              .ray = s->ray,
                                              .used = s->api.used,
                                              .instance = s->instance};
    s->api.drytrials = drytrials_new(&drytrials_parts);
}

static void make_metrics(struct services *s)
{
    struct metrics_parts parts = {.loop = s->loop,
                                  .settings = s->settings,
                                  .cluster = s->api.cluster,
                                  .figures = s->api.figures,
                                  .jobs = s->api.jobs,
                                  .settled = calls_settled,
                                  .arg = s};
    s->metrics = metrics_new(&parts);
}

static void make_gpubooks(struct services *s)
{
    struct gpubooks_parts parts = {.loop = s->loop,
                                   .settings = s->settings,
                                   .cluster = s->api.cluster,
                                   .jobs = s->api.jobs,
                                   .figures = s->api.figures};
    s->gpubooks = gpubooks_new(&parts);
}

static void make_rankbooks(struct services *s)
{
    struct rankbooks_parts parts = {.loop = s->loop,
                                    .settings = s->settings,
                                    .cluster = s->api.cluster,
                                    .jobs = s->api.jobs,
                                    .nodes = s->api.nodes};
    s->rankbooks = rankbooks_new(&parts);
}

static void make_hangs(struct services *s)
{
    struct hangs_parts hangs_parts = {.loop = s->loop,
                                      .settings = s->settings,
                                      .cluster = s->api.cluster,
                                      .jobs = s->api.jobs,
                                      .metrics = s->metrics,
                                      .findings = s->api.findings,
                                      .figures = s->api.figures,
                                      .checkpoints = s->api.checkpoints};
    s->hangs = hangs_new(&hangs_parts);
}

static void make_placement(struct services *s)
{
    struct placement_parts parts = {.loop = s->loop,
                                    .settings = s->settings,
                                    .cluster = s->api.cluster,
                                    .ray = s->ray,
                                    .jobs = s->api.jobs,
                                    .instance = s->instance};
    s->placement = placement_new(&parts);
}

static void make_sweep(struct services *s)
{
    struct secretsweep_parts parts = {.loop = s->loop,
                                      .shared_root = s->settings->shared_root,
                                      .cluster = s->api.cluster,
                                      .jobs = s->api.jobs,
                                      .drytrials = s->api.drytrials};
    s->sweep = secretsweep_new(&parts);
}

static void make_watcher(struct services *s)
{
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
                                          .knows_id = calls_knows_id,
                                          .head_gone = calls_head_gone,
                                          .saw_jobs = calls_saw_jobs,
                                          .arg = s};
    s->watcher = watcher_new(&watcher_parts);
}

static void make_uploads(struct services *s)
{
    struct uploads_parts uploads_parts = {.loop = s->loop,
                                          .settings = s->settings,
                                          .store = s->api.store,
                                          .events = s->api.events,
                                          .cluster = s->api.cluster};
    s->api.uploads = uploads_new(&uploads_parts);
}

static void make_registry(struct services *s)
{
    struct registry_parts registry_parts = {.loop = s->loop,
                                            .settings = s->settings,
                                            .store = s->api.store,
                                            .events = s->api.events,
                                            .storage = &s->api.storage,
                                            .cluster = s->api.cluster};
    s->api.registry = registry_new(&registry_parts);
}

static void make_snapshots(struct services *s)
{
    struct snapshots_parts snapshots_parts = {.loop = s->loop,
                                              .settings = s->settings,
                                              .store = s->api.store,
                                              .storage = &s->api.storage,
                                              .cluster = s->api.cluster};
    s->api.snapshots = snapshots_new(&snapshots_parts);
}

static void make_imports(struct services *s)
{
    s->api.storage =
        (struct storage){s->api.people, s->api.registry, s->api.snapshots, s->api.archives};
    s->api.importer = (struct importer){.loop = s->loop,
                                        .settings = s->settings,
                                        .store = s->api.store,
                                        .cluster = s->api.cluster,
                                        .jobs = s->api.jobs,
                                        .used = s->api.used,
                                        .people = s->api.people,
                                        .secrets = s->api.secrets,
                                        .checkpoints = s->api.checkpoints,
                                        .registry = s->api.registry,
                                        .storage = &s->api.storage};
    registry_on_made(s->api.registry, registry_export_take, &s->api.importer);
}

static void make_netchecks(struct services *s)
{
    struct netchecks_parts parts = {.loop = s->loop,
                                    .settings = s->settings,
                                    .store = s->api.store,
                                    .events = s->api.events,
                                    .cluster = s->api.cluster,
                                    .jobs = s->api.jobs,
                                    .nodes = s->api.nodes,
                                    .importer = &s->api.importer};
    s->api.netchecks = netchecks_new(&parts);
}

static void make_calls(struct services *s)
{
    const struct proxy_options opt = {.loop = s->loop, .mono = clock_mono};
    s->api.proxy = proxy_new(&opt);
    s->api.calls = callbook_new();
}

static void unplug_calls(struct services *s)
{
    proxy_close(s->api.proxy);
    callbook_free(s->api.calls);
    s->api.proxy = NULL;
    s->api.calls = NULL;
}

static void make_tails(struct services *s)
{
    struct tails_parts tails_parts = {.loop = s->loop,
                                      .settings = s->settings,
                                      .store = s->api.store,
                                      .cluster = s->api.cluster,
                                      .jobs = s->api.jobs,
                                      .people = s->api.people,
                                      .tokens = s->api.tokens};
    s->api.tails = tails_new(&tails_parts);
}

static void make_sampler(struct services *s)
{
    const struct sampler_parts parts = {
        .loop = s->loop, .settings = s->settings, .cluster = s->api.cluster, .jobs = s->api.jobs};
    s->api.sampler = sampler_new(&parts);
}

CALL(start_backups, backups_start(s->api.backups));
CALL(close_backups, backups_close(s->api.backups));
CALL(free_backups, backups_free(s->api.backups));
CALL(make_simulations, s->api.simulations = simulations_new(s->loop, s->api.store));
CALL(make_agent, s->api.agent = agent_new(&s->api));
CALL(make_secondopinion, s->api.secondopinion = secondopinion_new(&s->api));

static int open_serving(struct services *s, struct err *err)
{
    s->api.serving = serving_new(&s->api);
    s->api.put_metrics = calls_put_metrics;
    s->api.add_removal_users = calls_add_removal_users;
    s->api.add_stop_steps = calls_add_stop_steps;
    registry_on_keeper(s->api.registry, serving_keeps, s->api.serving);
    return serving_open(s->api.serving, err);
}

CALL(make_notebooks, s->api.notebooks = notebooks_new(&s->api));
CALL(make_ops, s->api.ops = ops_new(&s->api));
CALL(make_pipes, s->api.pipes = pipes_new(&s->api));
CALL(make_evals, s->evals = evals_new(&s->api));
CALL(make_changes, s->api.changes = changes_new(&s->api));
CALL(make_curves, s->api.curves = curves_kept_new());

/* ---- the row of each ---- */

static void free_ids(struct services *s)
{
    idset_free(s->api.used);
    api_forget(&s->api);
}

CALL(unplug_preflights, preflights_close(s->api.preflights));
CALL(free_preflights, preflights_free(s->api.preflights));
CALL(free_tokens, tokens_free(s->api.tokens));
CALL_ROW(restore_sessions, sessions_restore(s->api.sessions, row));
CALL(free_sessions, sessions_free(s->api.sessions));
CALL_ROW(restore_service_keys, service_keys_restore(s->api.service_keys, row));
CALL(free_service_keys, service_keys_free(s->api.service_keys));
CALL_ROW(restore_people, people_restore_entry(s->api.people, row));
CALL(free_people, people_free(s->api.people));
CALL_ROW(restore_ownsettings, ownsettings_restore(s->api.ownsettings, row));
CALL(free_ownsettings, ownsettings_free(s->api.ownsettings));
CALL_ROW(restore_secrets, secrets_restore_entry(s->api.secrets, row));
CALL(free_secrets, secrets_free(s->api.secrets));
CALL_ROW(restore_presets, presets_restore_entry(s->api.presets, row));
CALL(free_presets, presets_free(s->api.presets));
CALL_ROW(restore_adopted, adopted_restore_entry(s->api.adopted, row));
CALL(free_adopted, adopted_free(s->api.adopted));
CALL_ROW(restore_usage, people_usage_restore_entry(s->usage, row));
CALL(close_usage, people_usage_close(s->usage));
CALL(free_usage, people_usage_free(s->usage));
CALL(unplug_ray, ray_client_free(s->ray));
CALL(free_sched, sched_free(s->sched));
CALL_BATCH(durable_events, events_durable(s->api.events, batch));
CALL(free_events, events_free(s->api.events));
CALL_BATCH(durable_jobs, jobs_durable(s->api.jobs, batch));
CALL(free_jobs, jobs_free(s->api.jobs));
CALL_ROW(restore_accounting, accounting_restore(s->api.accounting, row));
CALL(start_accounting, accounting_start(s->api.accounting, s->api.figures));
CALL_BATCH(durable_accounting, accounting_durable(s->api.accounting, batch));
CALL(close_accounting, accounting_close(s->api.accounting));
CALL(free_accounting, accounting_free(s->api.accounting));
CALL(start_cluster, cluster_start(s->api.cluster));
CALL(unplug_cluster, cluster_free(s->api.cluster));
CALL(start_figures, figures_start(s->api.figures));
CALL(close_figures, figures_close(s->api.figures));
CALL(free_figures, figures_free(s->api.figures));
CALL_ROW(restore_metas, metas_restore(s->api.metas, row));
CALL(start_metas, metas_start(s->api.metas));
CALL(close_metas, metas_close(s->api.metas));
CALL(free_metas, metas_free(s->api.metas));
CALL_ROW(restore_nodes, nodes_restore(s->api.nodes, row));
CALL(start_nodes, nodes_start(s->api.nodes));
CALL_BATCH(durable_nodes, nodes_durable(s->api.nodes, batch));
CALL(unplug_nodes, nodes_close(s->api.nodes));
CALL(free_nodes, nodes_free(s->api.nodes));
CALL_ROW(restore_findings, findings_restore(s->api.findings, row));
CALL(close_findings, findings_close(s->api.findings));
CALL(free_findings, findings_free(s->api.findings));
CALL_ROW(restore_alerts, alerts_restore(s->api.alerts, row));
CALL(start_alerts, alerts_start(s->api.alerts));
CALL_BATCH(durable_alerts, alerts_durable(s->api.alerts, batch));
CALL(close_alerts, alerts_close(s->api.alerts));
CALL(free_alerts, alerts_free(s->api.alerts));
CALL_ROW(restore_archives, archives_restore(s->api.archives, row));
CALL(start_archives, archives_start(s->api.archives));
CALL_BATCH(durable_archives, archives_durable(s->api.archives, batch));
CALL(close_archives, archives_close(s->api.archives));
CALL(free_archives, archives_free(s->api.archives));
CALL(start_retention, retention_start(s->retention));
CALL(close_retention, retention_close(s->retention));
CALL(free_retention, retention_free(s->retention));
CALL_ROW(restore_checkpoints, checkpoints_restore(s->api.checkpoints, row));
CALL(start_checkpoints, checkpoints_start(s->api.checkpoints));
CALL(close_checkpoints, checkpoints_close(s->api.checkpoints));
CALL(free_checkpoints, checkpoints_free(s->api.checkpoints));
CALL_ROW(restore_trackers, trackers_restore(s->api.trackers, row));
CALL(start_trackers, trackers_start(s->api.trackers));
CALL(close_trackers, trackers_close(s->api.trackers));
CALL(free_trackers, trackers_free(s->api.trackers));
CALL(close_sender, sender_close(s->sender));
CALL(free_sender, sender_free(s->sender));
CALL(close_trials, trials_close(s->trials));
CALL(free_trials, trials_free(s->trials));
CALL(close_drytrials, drytrials_close(s->api.drytrials));
CALL(free_drytrials, drytrials_free(s->api.drytrials));
CALL(start_gpubooks, gpubooks_start(s->gpubooks));
CALL(close_gpubooks, gpubooks_close(s->gpubooks));
CALL(free_gpubooks, gpubooks_free(s->gpubooks));
CALL(start_rankbooks, rankbooks_start(s->rankbooks));
CALL(close_rankbooks, rankbooks_close(s->rankbooks));
CALL(free_rankbooks, rankbooks_free(s->rankbooks));
CALL(start_metrics, metrics_start(s->metrics));
CALL(close_metrics, metrics_close(s->metrics));
CALL(free_metrics, metrics_free(s->metrics));
CALL(start_hangs, hangs_start(s->hangs));
CALL(close_hangs, hangs_close(s->hangs));
CALL(free_hangs, hangs_free(s->hangs));
CALL(start_placement, placement_start(s->placement));
CALL(close_placement, placement_free(s->placement));
CALL(start_sweep, secretsweep_soon(s->sweep));
CALL(close_sweep, secretsweep_free(s->sweep));
CALL(start_watcher, watcher_start(s->watcher));
CALL(close_watcher, watcher_free(s->watcher));
CALL_ROW(restore_uploads, uploads_restore(s->api.uploads, row));
CALL(start_uploads, uploads_start(s->api.uploads));
CALL(close_uploads, uploads_close(s->api.uploads));
CALL(free_uploads, uploads_free(s->api.uploads));
CALL_ROW(restore_registry, registry_restore(s->api.registry, row));
CALL(start_registry, registry_start(s->api.registry, s->api.jobs));
CALL(close_registry, registry_close(s->api.registry));
CALL(free_registry, registry_free(s->api.registry));
CALL_ROW(restore_snapshots, snapshots_restore(s->api.snapshots, row));
CALL(start_snapshots, snapshots_start(s->api.snapshots));
CALL_BATCH(durable_snapshots, snapshots_durable(s->api.snapshots, batch));
CALL(free_snapshots, snapshots_free(s->api.snapshots));
CALL_ROW(restore_netchecks, netchecks_restore(s->api.netchecks, row));
CALL(start_netchecks, netchecks_start(s->api.netchecks));
CALL(close_netchecks, netchecks_close(s->api.netchecks));
CALL(free_netchecks, netchecks_free(s->api.netchecks));
CALL(free_tails, tails_free(s->api.tails));
CALL_ROW(restore_simulations, simulations_restore(s->api.simulations, row));
CALL(close_simulations, simulations_close(s->api.simulations));
CALL(free_simulations, simulations_free(s->api.simulations));
CALL_ROW(restore_agent, agent_restore(s->api.agent, row));
CALL(start_agent, agent_start(s->api.agent));
CALL(close_agent, agent_close(s->api.agent));
CALL(free_agent, agent_free(s->api.agent));
CALL_ROW(restore_secondopinion, secondopinion_restore(s->api.secondopinion, row));
CALL(start_secondopinion, secondopinion_start(s->api.secondopinion));
CALL(close_secondopinion, secondopinion_close(s->api.secondopinion));
CALL(free_secondopinion, secondopinion_free(s->api.secondopinion));
CALL(make_remotewriter, s->api.remotewriter = remotewriter_new(&s->api));
CALL(start_remotewriter, remotewriter_start(s->api.remotewriter));
CALL(close_remotewriter, remotewriter_close(s->api.remotewriter));
CALL(free_remotewriter, remotewriter_free(s->api.remotewriter));
CALL_ROW(restore_serving, serving_restore(s->api.serving, row));
CALL(start_serving, serving_start(s->api.serving));
CALL_BATCH(durable_serving, serving_durable(s->api.serving, batch));
CALL(close_serving, serving_close(s->api.serving));
CALL(unplug_serving, serving_unplug(s->api.serving));
CALL(free_serving, serving_free(s->api.serving));
CALL_ROW(restore_notebooks, notebooks_restore(s->api.notebooks, row));
CALL(start_notebooks, notebooks_start(s->api.notebooks));
CALL(close_notebooks, notebooks_close(s->api.notebooks));
CALL(free_notebooks, notebooks_free(s->api.notebooks));
CALL_ROW(restore_ops, ops_restore(s->api.ops, row));
CALL(start_ops, ops_start(s->api.ops));
CALL(close_ops, ops_close(s->api.ops));
CALL(free_ops, ops_free(s->api.ops));
CALL_ROW(restore_pipes, pipes_restore(s->api.pipes, row));
CALL(start_pipes, pipes_start(s->api.pipes));
CALL(close_pipes, pipes_close(s->api.pipes));
CALL(free_pipes, pipes_free(s->api.pipes));
CALL(start_evals, evals_start(s->evals));
CALL(close_evals, evals_close(s->evals));
CALL(free_evals, evals_free(s->evals));
CALL(close_changes, changes_close(s->api.changes));
CALL(free_changes, changes_free(s->api.changes));
CALL(free_curves, curves_kept_free(s->api.curves));
CALL(start_sampler, sampler_start(s->api.sampler));
CALL(close_sampler, sampler_close(s->api.sampler));
CALL(free_sampler, sampler_free(s->api.sampler));

static const struct service services[] = {
    {.name = "ids", .make = make_ids, .is_early = true, .free = free_ids},
    {.name = "preflights",
     .make = make_preflights,
     .is_early = true,
     .unplug = unplug_preflights,
     .free = free_preflights},
    {.name = "tokens", .make = make_tokens, .is_early = true, .free = free_tokens},
    {.name = "sessions",
     .make = make_sessions,
     .is_early = true,
     .kinds = {SESSIONS_ENTRY},
     .restore = restore_sessions,
     .free = free_sessions},
    {.name = "service_keys",
     .make = make_service_keys,
     .is_early = true,
     .kinds = {SERVICE_KEYS_ENTRY},
     .restore = restore_service_keys,
     .free = free_service_keys},
    {.name = "people",
     .make = make_people,
     .is_early = true,
     .kinds = {PEOPLE_ENTRY_PROJECT, PEOPLE_ENTRY_QUOTA},
     .restore = restore_people,
     .free = free_people},
    {.name = "ownsettings",
     .make = make_ownsettings,
     .is_early = true,
     .kinds = {OWNSETTINGS_ENTRY},
     .restore = restore_ownsettings,
     .free = free_ownsettings},
    {.name = "secrets",
     .make = make_secrets,
     .is_early = true,
     .kinds = {SECRETS_ENTRY},
     .restore = restore_secrets,
     .free = free_secrets},
    {.name = "presets",
     .make = make_presets,
     .is_early = true,
     .kinds = {PRESETS_ENTRY},
     .restore = restore_presets,
     .free = free_presets},
    {.name = "adopted",
     .make = make_adopted,
     .is_early = true,
     .kinds = {ADOPTED_ENTRY},
     .restore = restore_adopted,
     .free = free_adopted},
    {.name = "usage",
     .make = make_usage,
     .is_early = true,
     .kinds = {PEOPLE_USAGE_ENTRY},
     .restore = restore_usage,
     .close = close_usage,
     .free = free_usage},
    {.name = "ray", .open = open_ray, .unplug = unplug_ray},
    {.name = "sched", .make = make_sched, .free = free_sched},
    {.name = "accounting",
     .make = make_accounting,
     .kinds = {ACCOUNTING_ENTRY},
     .restore = restore_accounting,
     .start = start_accounting,
     .durable = durable_accounting,
     .close = close_accounting,
     .free = free_accounting},
    {.name = "events", .make = make_events, .durable = durable_events, .free = free_events},
    {.name = "jobs", .make = make_jobs, .durable = durable_jobs, .free = free_jobs},
    {.name = "cluster", .make = make_cluster, .start = start_cluster, .unplug = unplug_cluster},
    {.name = "figures",
     .open = open_figures,
     .start = start_figures,
     .close = close_figures,
     .free = free_figures},
    {.name = "metas",
     .make = make_metas,
     .kinds = {METAS_ENTRY},
     .restore = restore_metas,
     .start = start_metas,
     .close = close_metas,
     .free = free_metas},
    {.name = "nodes",
     .open = open_nodes,
     .kinds = {NODES_ENTRY, NODES_ENTRY_HEAD},
     .restore = restore_nodes,
     .start = start_nodes,
     .durable = durable_nodes,
     .unplug = unplug_nodes,
     .free = free_nodes},
    {.name = "findings",
     .open = open_findings,
     .kinds = {FINDINGS_ENTRY},
     .restore = restore_findings,
     .close = close_findings,
     .free = free_findings},
    {.name = "alerts",
     .make = make_alerts,
     .kinds = {ALERTS_ENTRY_INCIDENT, ALERTS_ENTRY_ALERT, ALERTS_ENTRY_SILENCE, ALERTS_ENTRY_RULE,
               ALERTS_ENTRY_DELIVERY, ALERTS_ENTRY_NODE},
     .restore = restore_alerts,
     .start = start_alerts,
     .durable = durable_alerts,
     .close = close_alerts,
     .free = free_alerts},
    {.name = "archives",
     .make = make_archives,
     .kinds = {ARCHIVES_ENTRY},
     .restore = restore_archives,
     .start = start_archives,
     .durable = durable_archives,
     .close = close_archives,
     .free = free_archives},
    {.name = "backups",
     .open = open_backups,
     .start = start_backups,
     .close = close_backups,
     .free = free_backups},
    {.name = "retention",
     .make = make_retention,
     .start = start_retention,
     .close = close_retention,
     .free = free_retention},
    {.name = "checkpoints",
     .make = make_checkpoints,
     .kinds = {CHECKPOINTS_ENTRY},
     .restore = restore_checkpoints,
     .start = start_checkpoints,
     .close = close_checkpoints,
     .free = free_checkpoints},
    {.name = "trackers",
     .open = open_trackers,
     .kinds = {TRACKERS_ENTRY},
     .restore = restore_trackers,
     .start = start_trackers,
     .close = close_trackers,
     .free = free_trackers},
    {.name = "sender", .make = make_sender, .close = close_sender, .free = free_sender},
    {.name = "trials", .make = make_trials, .close = close_trials, .free = free_trials},
    {.name = "drytrials", .make = make_drytrials, .close = close_drytrials, .free = free_drytrials},
    {.name = "metrics",
     .make = make_metrics,
     .start = start_metrics,
     .close = close_metrics,
     .free = free_metrics},
    {.name = "gpubooks",
     .make = make_gpubooks,
     .start = start_gpubooks,
     .close = close_gpubooks,
     .free = free_gpubooks},
    {.name = "rankbooks",
     .make = make_rankbooks,
     .start = start_rankbooks,
     .close = close_rankbooks,
     .free = free_rankbooks},
    {.name = "hangs",
     .make = make_hangs,
     .start = start_hangs,
     .close = close_hangs,
     .free = free_hangs},
    {.name = "placement",
     .make = make_placement,
     .start = start_placement,
     .close = close_placement},
    {.name = "sweep", .make = make_sweep, .start = start_sweep, .close = close_sweep},
    {.name = "watcher", .make = make_watcher, .start = start_watcher, .close = close_watcher},
    {.name = "uploads",
     .make = make_uploads,
     .kinds = {UPLOADS_ENTRY},
     .restore = restore_uploads,
     .start = start_uploads,
     .close = close_uploads,
     .free = free_uploads},
    {.name = "registry",
     .make = make_registry,
     .kinds = {REGISTRY_ENTRY_DATASET, REGISTRY_ENTRY_MODEL, REGISTRY_ENTRY_DATASET_LAST,
               REGISTRY_ENTRY_MODEL_LAST},
     .restore = restore_registry,
     .start = start_registry,
     .close = close_registry,
     .free = free_registry},
    {.name = "snapshots",
     .make = make_snapshots,
     .kinds = {SNAPSHOTS_ENTRY},
     .restore = restore_snapshots,
     .start = start_snapshots,
     .durable = durable_snapshots,
     .free = free_snapshots},
    {.name = "imports", .make = make_imports},
    {.name = "netchecks",
     .make = make_netchecks,
     .kinds = {NETCHECKS_ENTRY, NETPAIRS_ENTRY},
     .restore = restore_netchecks,
     .start = start_netchecks,
     .close = close_netchecks,
     .free = free_netchecks},
    {.name = "tails", .make = make_tails, .free = free_tails},
    {.name = "simulations",
     .make = make_simulations,
     .kinds = {SIMULATIONS_ENTRY},
     .restore = restore_simulations,
     .close = close_simulations,
     .free = free_simulations},
    {.name = "agent",
     .make = make_agent,
     .kinds = {AGENT_ENTRY},
     .restore = restore_agent,
     .start = start_agent,
     .close = close_agent,
     .free = free_agent},
    {.name = "secondopinion",
     .make = make_secondopinion,
     .kinds = {SECONDOPINION_ENTRY},
     .restore = restore_secondopinion,
     .start = start_secondopinion,
     .close = close_secondopinion,
     .free = free_secondopinion},
    {.name = "remotewriter",
     .make = make_remotewriter,
     .start = start_remotewriter,
     .close = close_remotewriter,
     .free = free_remotewriter},
    {.name = "serving",
     .open = open_serving,
     .kinds = {SERVING_ENTRY_SERVICE, SERVING_ENTRY_VERSION, SERVING_ENTRY_LIST},
     .restore = restore_serving,
     .start = start_serving,
     .durable = durable_serving,
     .close = close_serving,
     .unplug = unplug_serving,
     .free = free_serving},
    {.name = "notebooks",
     .make = make_notebooks,
     .kinds = {NOTEBOOKS_ENTRY},
     .restore = restore_notebooks,
     .start = start_notebooks,
     .close = close_notebooks,
     .free = free_notebooks},
    {.name = "pipes",
     .make = make_pipes,
     .kinds = {PIPES_ENTRY_PIPELINE, PIPES_ENTRY_RUN, PIPES_ENTRY_LAST},
     .restore = restore_pipes,
     .start = start_pipes,
     .close = close_pipes,
     .free = free_pipes},
    {.name = "evals",
     .make = make_evals,
     .start = start_evals,
     .close = close_evals,
     .free = free_evals},
    {.name = "ops",
     .make = make_ops,
     .kinds = {OPS_ENTRY},
     .restore = restore_ops,
     .start = start_ops,
     .close = close_ops,
     .free = free_ops},
    {.name = "calls", .make = make_calls, .unplug = unplug_calls},
    {.name = "changes", .make = make_changes, .close = close_changes, .free = free_changes},
    {.name = "curves", .make = make_curves, .free = free_curves},
    {.name = "sampler",
     .make = make_sampler,
     .start = start_sampler,
     .close = close_sampler,
     .free = free_sampler},
};

const struct service *services_table(size_t *ret_n)
{
    *ret_n = array_len(services);
    return services;
}

const struct service *services_find_kind(const char *kind)
{
    for (size_t i = 0; i < array_len(services); i++)
        for (size_t k = 0; k < array_len(services[i].kinds) && services[i].kinds[k]; k++)
            if (!strcmp(services[i].kinds[k], kind))
                return &services[i];
    return NULL;
}
