/* SPDX-License-Identifier: Apache-2.0 */
/* handlers.h - every handler of the API, by file, for the route table. */
#pragma once
#include "argusd/kit/api.h"

struct job;

/* Stopped as this user's wish; false: it was already. api/jobs/change.c */
bool api_stop_job(struct live *l, const char *user);

void api_jobs_list(struct http_req *req, void *app); /* api/jobs/jobs.c */
void api_jobs_get(struct http_req *req, void *app);
void api_jobs_retry(struct http_req *req, void *app);    /* api/jobs/retry.c */
void api_jobs_findings(struct http_req *req, void *app); /* api/jobs/findings.c */
void api_checkpoints(struct http_req *req, void *app);   /* api/content/checkpoints.c */
void api_jobs_checkpoints(struct http_req *req, void *app);
void api_jobs_checkpoints_gc(struct http_req *req, void *app);
void api_jobs_checkpoints_verify(struct http_req *req, void *app);
void api_jobs_why(struct http_req *req, void *app);      /* api/jobs/why.c */
void api_jobs_logs(struct http_req *req, void *app);     /* api/jobs/logs.c */
void api_jobs_logfiles(struct http_req *req, void *app); /* api/jobs/logfiles.c */
void api_logs_search(struct http_req *req, void *app);   /* api/jobs/search.c */
void api_jobs_metrics(struct http_req *req, void *app);  /* api/jobs/curves.c */
void api_jobs_events(struct http_req *req, void *app);   /* api/events.c */
void api_events(struct http_req *req, void *app);
struct store_event;
/* One event as these eyes see it: "Event" in openapi.json. */
void api_event_put(const struct api_eyes *eyes, const struct store_event *row, struct jout *j);
void api_clusters(struct http_req *req, void *app); /* api/machines/clusters.c */
void api_cluster_nodes(struct http_req *req, void *app);
void api_cluster_up(struct http_req *req, void *app);
void api_cluster_down(struct http_req *req, void *app);
/* True if the path names our cluster; else the 404 was sent. */
bool api_is_our_cluster(struct http_req *req, const struct api *a);
void api_cluster_actors(struct http_req *req, void *app); /* api/machines/rayside.c */
void api_cluster_groups(struct http_req *req, void *app);
void api_cluster_foreign(struct http_req *req, void *app);
void api_cluster_adopt(struct http_req *req, void *app);
void api_nodes(struct http_req *req, void *app); /* api/machines/nodes.c */
void api_nodes_create(struct http_req *req, void *app);
void api_nodes_get(struct http_req *req, void *app);
void api_nodes_firewall(struct http_req *req, void *app);
void api_nodes_drain(struct http_req *req, void *app);
/* What it would do, and nothing is done: api/machines/drainplan.c */
void api_nodes_plan_drain(struct http_req *req,
                          const struct api *a,
                          const struct noderun *nr,
                          const struct nodes_drain *how);
void api_nodes_undrain(struct http_req *req, void *app);
void api_nodes_remove(struct http_req *req, void *app);
void api_nodes_check(struct http_req *req, void *app);
void api_pools(struct http_req *req, void *app);
void api_whoami(struct http_req *req, void *app); /* api/misc.c */
void api_version(struct http_req *req, void *app);
void api_healthz(struct http_req *req, void *app);
void api_readyz(struct http_req *req, void *app);
void api_openapi(struct http_req *req, void *app);

void api_events_verify(struct http_req *req, void *app); /* api/jobs/verify.c */

void api_files(struct http_req *req, void *app); /* api/content/files.c */
void api_files_put(struct http_req *req, void *app);
void api_files_remove(struct http_req *req, void *app);
void api_files_content(struct http_req *req, void *app); /* api/content/content.c */

/* The whole job as the answer, with its ETag. */
void api_answer_job(struct http_req *req,
                    struct api *a,
                    const struct job *job,
                    const struct record_extra *extra,
                    struct live *l);

/* api/jobs/curves.c */
struct curves_kept *curves_kept_new(void);
void curves_kept_free(struct curves_kept *all); /* nobody asks any more; NULL is fine */

/* Answers with the lines of attempt k that match ?grep=, up to ?limit= of them from ?cursor= on. */
void search_job(struct http_req *req, struct api *a, const struct job *job, int k); /* search.c */
