/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - the handlers of the HTTP API and what they share.
 *
 * Each handler reads its request, asks a service, renders with view.h, and answers
 * with the barrier of what it has seen. The table is routes.c. */
#pragma once
#include <uv.h>

#include "argusd/cluster.h"
#include "argusd/events.h"
#include "argusd/idset.h"
#include "argusd/jobs.h"
#include "argusd/settings.h"
#include "argusd/tokens.h"
#include "base/map.h"
#include "http/http.h"
#include "ray/ray.h"
#include "store/store.h"

struct tails;

/* The app pointer of every handler. All borrowed; set once by main.c. */
struct api {
    uv_loop_t *loop;
    const struct settings *settings;
    struct store *store;
    struct jobs *jobs;
    struct cluster *cluster;
    struct events *events;
    struct tokens *tokens;
    struct idset *used;
    struct map *idempotency; /* "user\nkey" -> struct idempotent */
    struct map *verl_cache;  /* path -> struct verl_known */
    struct tails *tails;
    struct ray_client *ray;
    const char *instance; /* our mark on Ray's records */
    struct http_server *http;
    usec_t started_at;
};

/* The answer's barrier: everything up to now. */
uint64_t api_barrier(const struct api *a);
/* The same for readers of what needs no store (machines, logs): they do not wait while it fails. */
uint64_t api_reader_barrier(const struct api *a);
int api_authenticate(const char *bearer, struct http_principal *ret, void *app);

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

/* handlers, by file */
void api_jobs_create(struct http_req *req, void *app); /* api_submit.c */
void api_jobs_list(struct http_req *req, void *app);   /* api_jobs.c */
void api_jobs_get(struct http_req *req, void *app);
void api_jobs_stop(struct http_req *req, void *app);
void api_jobs_logs(struct http_req *req, void *app);   /* api_logs.c */
void api_jobs_events(struct http_req *req, void *app); /* api_events.c */
void api_events(struct http_req *req, void *app);
void api_clusters(struct http_req *req, void *app); /* api_clusters.c */
void api_cluster_nodes(struct http_req *req, void *app);
void api_cluster_actors(struct http_req *req, void *app);
void api_cluster_groups(struct http_req *req, void *app);
void api_cluster_foreign(struct http_req *req, void *app);
void api_nodes(struct http_req *req, void *app); /* api_misc.c */
void api_whoami(struct http_req *req, void *app);
void api_version(struct http_req *req, void *app);
void api_healthz(struct http_req *req, void *app);
void api_readyz(struct http_req *req, void *app);
void api_metrics(struct http_req *req, void *app);
void api_openapi(struct http_req *req, void *app);

/* routes.c */
const struct http_route *api_routes(size_t *ret_n);
void api_openapi_text(struct buf *out);

/* api_submit.c: what POST remembers */
void api_restore_idempotency(struct api *a, const struct store_idempotency *row);
void api_forget(struct api *a); /* frees what the maps hold */

/* api_logs.c */
struct tails *tails_new(struct api *a);
void tails_free(struct tails *t); /* streams are gone already */
