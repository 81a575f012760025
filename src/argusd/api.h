/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - the handlers of the HTTP API and what they share.
 *
 * Each handler reads its request, asks a service, renders with view.h, and answers
 * with the barrier of what it has seen. The table is routes.h. */
#pragma once
#include <uv.h>

#include "argusd/cluster.h"
#include "argusd/events.h"
#include "argusd/idset.h"
#include "argusd/jobs.h"
#include "argusd/nodes.h"
#include "argusd/people_rules.h"
#include "argusd/presets.h"
#include "argusd/secrets.h"
#include "argusd/settings.h"
#include "argusd/storage.h"
#include "argusd/tokens.h"
#include "argusd/turns.h"
#include "base/map.h"
#include "http/http.h"
#include "ray/ray.h"
#include "store/store.h"

struct checkpoints;
struct curves_kept;
struct preflights;
struct snapshots;
struct tails;
struct registry;
struct findings;
struct metas;
struct uploads;

/* The app pointer of every handler. All borrowed; set once by services.c. */
struct api {
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct jobs *jobs;
    struct cluster *cluster;
    struct nodes *nodes;
    struct events *events;
    struct tokens *tokens;
    struct people *people;
    struct secrets *secrets;
    struct presets *presets;
    struct uploads *uploads;
    struct registry *registry;
    struct findings *findings;
    struct metas *metas;
    struct checkpoints *checkpoints;
    struct snapshots *snapshots;
    struct storage storage; /* of these */
    struct idset *used;
    struct map *idempotency; /* "user\nkey" -> struct idempotent */
    struct preflights *preflights;
    struct drytrials *drytrials;
    struct tails *tails;
    struct turns searches; /* in logs */
    struct curves_kept *curves;
    struct ray_client *ray;
    const char *instance; /* our mark on Ray's records */
    struct http_server *http;
    struct http_route *routes; /* owned: the server's table */
    usec_t started_at;
};

/* The answer's barrier: everything up to now. */
uint64_t api_barrier(const struct api *a);
/* The same for readers of what needs no store (machines, logs): they do not wait while it fails. */
uint64_t api_reader_barrier(const struct api *a);
int api_authenticate(const char *bearer, struct http_principal *ret, void *app);
/* For what lasts: the token that it began with still works. */
bool api_may_go_on(const struct api *a, const struct http_principal *p);

/* Who looks. Borrowed. */
struct api_eyes {
    const struct api *a;
    const struct http_principal *p;
};
/* May he see the job with this id? Of one that is not in memory any more no owner is known here:
 * only who sees everything sees it. eyes is a struct api_eyes. */
bool api_sees_job(const char *id, void *eyes);

/* A query parameter that is a time, or a span before now ("2h"); *ret stays if it is absent.
 * ERR_BAD_REQUEST. */
must_check int api_read_time(const struct http_req *req,
                             const char *name,
                             usec_t now,
                             usec_t *ret,
                             struct err *err);

/* err as problem JSON, with nothing else to say. */
void api_fail(struct http_req *req, const struct err *err, uint64_t barrier);

/* The job that the path's {id} means: an id, a name or a unique beginning. Answers the
 * problem itself when there is none; else cb, at once or later. job and extra are borrowed
 * for the call; l is NULL for a job that is over, and for all while the store fails: then
 * job is the last truth on disk, and the reply says that it is stale. */
typedef void (*api_job_f)(struct http_req *req,
                          struct api *a,
                          const struct job *job,
                          const struct record_extra *extra,
                          struct live *l);
void api_find_job(struct http_req *req, struct api *a, api_job_f cb);
/* The same with another name than the path's {id}; copied. */
void api_find_job_named(struct http_req *req, struct api *a, const char *ref, api_job_f cb);

/* The whole job as the answer, with its ETag. */
void api_answer_job(struct http_req *req,
                    struct api *a,
                    const struct job *job,
                    const struct record_extra *extra,
                    struct live *l);
/* All problems of a body or spec as one problem JSON: the first error speaks for all. */
void api_answer_problems(struct http_req *req, const struct problems *ps);
/* May he who asks change this job? ERR_FORBIDDEN; verb: "stop". */
must_check int api_may_change(const struct api *a,
                              const struct http_principal *p,
                              const char *verb,
                              const struct job *job,
                              struct err *err);

/* handlers, by file */
void api_jobs_create(struct http_req *req, void *app); /* api_submit.c */
void api_jobs_list(struct http_req *req, void *app);   /* api_jobs.c */
void api_jobs_get(struct http_req *req, void *app);
void api_jobs_stop(struct http_req *req, void *app); /* api_change.c */
void api_jobs_stop_many(struct http_req *req, void *app);
void api_jobs_hold(struct http_req *req, void *app);
void api_jobs_release(struct http_req *req, void *app);
void api_jobs_priority(struct http_req *req, void *app);
void api_jobs_retry(struct http_req *req, void *app);    /* api_retry.c */
void api_jobs_findings(struct http_req *req, void *app); /* api_findings.c */
void api_checkpoints(struct http_req *req, void *app);   /* api_checkpoints.c */
void api_jobs_checkpoints(struct http_req *req, void *app);
void api_jobs_checkpoints_gc(struct http_req *req, void *app);
void api_jobs_checkpoints_verify(struct http_req *req, void *app);
void api_jobs_why(struct http_req *req, void *app);      /* api_why.c */
void api_jobs_logs(struct http_req *req, void *app);     /* api_logs.c */
void api_jobs_logfiles(struct http_req *req, void *app); /* api_logfiles.c */
void api_logs_search(struct http_req *req, void *app);   /* api_search.c */
void api_jobs_metrics(struct http_req *req, void *app);  /* api_curves.c */
void api_jobs_events(struct http_req *req, void *app);   /* api_events.c */
void api_events(struct http_req *req, void *app);
void api_clusters(struct http_req *req, void *app); /* api_clusters.c */
void api_cluster_nodes(struct http_req *req, void *app);
void api_cluster_actors(struct http_req *req, void *app);
void api_cluster_groups(struct http_req *req, void *app);
void api_cluster_foreign(struct http_req *req, void *app);
void api_cluster_up(struct http_req *req, void *app);
void api_cluster_down(struct http_req *req, void *app);
void api_nodes(struct http_req *req, void *app); /* api_nodes.c */
void api_nodes_create(struct http_req *req, void *app);
void api_nodes_get(struct http_req *req, void *app);
void api_nodes_firewall(struct http_req *req, void *app);
void api_nodes_drain(struct http_req *req, void *app);
void api_nodes_undrain(struct http_req *req, void *app);
void api_nodes_remove(struct http_req *req, void *app);
void api_nodes_check(struct http_req *req, void *app);
void api_pools(struct http_req *req, void *app);
/* The body of an action, an object with these members at most, or nothing (then an empty one).
 * NULL: the refusal was sent. */
json_t *api_read_action(struct http_req *req, const char *const *keys);
void api_whoami(struct http_req *req, void *app); /* api_misc.c */
void api_version(struct http_req *req, void *app);
void api_healthz(struct http_req *req, void *app);
void api_readyz(struct http_req *req, void *app);
void api_metrics(struct http_req *req, void *app);
void api_openapi(struct http_req *req, void *app);

void api_users(struct http_req *req, void *app); /* api_people.c */
void api_user_add(struct http_req *req, void *app);
void api_user_get(struct http_req *req, void *app);
void api_user_change(struct http_req *req, void *app);
void api_user_remove(struct http_req *req, void *app);
void api_tokens(struct http_req *req, void *app); /* api_tokens.c */
void api_token_add(struct http_req *req, void *app);
void api_token_revoke(struct http_req *req, void *app);
void api_secrets(struct http_req *req, void *app); /* api_secrets.c */
void api_secret_put(struct http_req *req, void *app);
void api_secret_remove(struct http_req *req, void *app);
void api_presets(struct http_req *req, void *app); /* api_presets.c */
void api_preset_get(struct http_req *req, void *app);
void api_preset_put(struct http_req *req, void *app);
void api_preset_remove(struct http_req *req, void *app);
void api_projects(struct http_req *req, void *app); /* api_projects.c */
void api_project_add(struct http_req *req, void *app);
void api_project_get(struct http_req *req, void *app);
void api_project_change(struct http_req *req, void *app);
void api_project_remove(struct http_req *req, void *app);
void api_quotas(struct http_req *req, void *app);
void api_project_quota_get(struct http_req *req, void *app);
void api_project_quota_put(struct http_req *req, void *app);
void api_user_quota_get(struct http_req *req, void *app);
void api_user_quota_put(struct http_req *req, void *app);
void api_events_verify(struct http_req *req, void *app); /* api_verify.c */

void api_snapshots(struct http_req *req, void *app); /* api_snapshots.c */
void api_snapshot_add(struct http_req *req, void *app);
void api_snapshot_get(struct http_req *req, void *app);
void api_snapshot_diff(struct http_req *req, void *app);
void api_snapshot_remove(struct http_req *req, void *app);

void api_files(struct http_req *req, void *app); /* api_files.c */
void api_files_put(struct http_req *req, void *app);
void api_files_remove(struct http_req *req, void *app);
void api_files_content(struct http_req *req, void *app); /* api_content.c */
void api_uploads(struct http_req *req, void *app);       /* api_uploads.c */
void api_upload_add(struct http_req *req, void *app);
void api_upload_get(struct http_req *req, void *app);
void api_upload_put(struct http_req *req, void *app);
void api_upload_remove(struct http_req *req, void *app);

void api_datasets(struct http_req *req, void *app); /* api_registry.c */
void api_dataset_import(struct http_req *req, void *app);
void api_dataset_prepare(struct http_req *req, void *app);
void api_dataset_get(struct http_req *req, void *app);
void api_dataset_remove(struct http_req *req, void *app);
void api_models(struct http_req *req, void *app);
void api_model_import(struct http_req *req, void *app);
void api_model_get(struct http_req *req, void *app);
void api_model_remove(struct http_req *req, void *app);

/* Can jobs be taken at all now? ERR_STORE, ERR_UNAVAILABLE, ERR_BUSY. */
must_check int api_check_service(const struct api *a, struct err *err);

/* idempotency.c: what POST remembers */
void api_restore_idempotency(struct api *a, const struct store_idempotency *row);
void api_forget(struct api *a); /* frees what the maps hold */

/* api_curves.c */
struct curves_kept *curves_kept_new(void);
void curves_kept_free(struct curves_kept *all); /* nobody asks any more; NULL is fine */
