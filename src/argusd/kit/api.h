/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - the kit of all handlers of the HTTP API.
 *
 * Each handler reads its request, asks a service, renders with view.h, and answers
 * with the barrier of what it has seen. The table is made of parts (part.h). */
#pragma once
#include <uv.h>

#include "argusd/content/presets.h"
#include "argusd/content/storage.h"
#include "argusd/ground/cluster.h"
#include "argusd/ground/events.h"
#include "argusd/ground/idset.h"
#include "argusd/ground/settings.h"
#include "argusd/ground/turns.h"
#include "argusd/imports/importer.h"
#include "argusd/jobs/jobs.h"
#include "argusd/machines/adopted.h"
#include "argusd/machines/nodes.h"
#include "argusd/people/people_rules.h"
#include "argusd/people/secrets.h"
#include "argusd/people/servicekeys.h"
#include "argusd/people/sessions.h"
#include "argusd/people/tokens.h"
#include "base/field.h"
#include "base/map.h"
#include "http/http.h"
#include "ray/ray.h"
#include "store/store.h"

struct accounting;
struct agent;
struct api_eyes;
struct callbook;
struct proxy;
struct secondopinion;
struct alerts;
struct archives;
struct backups;
struct changes;
struct checkpoints;
struct curves_kept;
struct doctor_look;
struct freezing;
struct preflights;
struct remotewriter;
struct simulations;
struct ownsettings;
struct sampler;
struct snapshots;
struct stopplan;
struct tails;
struct trackers;
struct registry;
struct removal;
struct figures;
struct findings;
struct metas;
struct netchecks;
struct notebooks;
struct ops;
struct pipes;
struct serving;
struct uploads;
struct web_file;

enum { METRICS_TAKERS_TEXT_MAX = 200 };
/* Who takes the page of metrics. Wall times; 0: never. */
struct metrics_takers {
    usec_t read_at;                    /* GET /metrics was answered */
    usec_t pushed_at;                  /* by remote_write, and it was taken */
    usec_t failing_since;              /* 0: the last push was taken, or there was none */
    char why[METRICS_TAKERS_TEXT_MAX]; /* the last push failed */
};

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
    struct sessions *sessions;
    struct service_keys *service_keys;
    struct people *people;
    struct secrets *secrets;
    struct presets *presets;
    struct adopted *adopted;
    struct uploads *uploads;
    struct registry *registry;
    struct figures *figures;
    struct accounting *accounting;
    struct findings *findings;
    struct metas *metas;
    struct netchecks *netchecks;
    struct checkpoints *checkpoints;
    struct archives *archives;
    struct backups *backups;
    struct trackers *trackers;
    struct alerts *alerts;
    struct agent *agent;
    struct ownsettings *ownsettings;
    struct secondopinion *secondopinion;
    struct remotewriter *remotewriter;
    struct pipes *pipes;
    struct serving *serving;
    struct notebooks *notebooks;
    struct ops *ops;
    struct snapshots *snapshots;
    struct simulations *simulations;
    struct storage storage;   /* of these */
    struct importer importer; /* of data sets and models */
    struct idset *used;
    struct keybook *keys; /* Idempotency-Keys of submits */
    struct preflights *preflights;
    struct drytrials *drytrials;
    struct tails *tails;
    struct turns searches;      /* in logs */
    struct turns families;      /* of jobs, that are asked for */
    struct doctor_look *doctor; /* of the doctor, under way; NULL: none is */
    struct freezing *freezings; /* of packages of notebooks, under way; NULL: none is */
    struct metrics_takers metrics_takers;
    struct curves_kept *curves;
    struct sampler *sampler;
    struct ray_client *ray;
    const char *instance; /* our mark on Ray's records */
    struct changes *changes;
    const struct web_file *web;    /* the pages, ends with a NULL path */
    const struct web_file *client; /* the Python client and its page for pip, the same way */
    struct http_server *http;
    struct http_server *door;  /* of notebooks; NULL: there is none */
    struct proxy *proxy;       /* carries requests to servers behind */
    struct callbook *calls;    /* how many, by service and user */
    struct http_route *routes; /* owned: the server's table */
    struct buf openapi;        /* owned: openapi.json, made once */
    struct buf jobspec_schema; /* owned: jobspec.schema.json, as well */
    usec_t started_at;
    /* What /metrics has of rooms above the API's own, for this reader. */
    void (*put_metrics)(const struct api *a, const struct access_who *who, struct expo *e);
    /* What of rooms above the API's own uses a thing that is to be removed: kit/removal.h. */
    void (*add_removal_users)(const struct api *a, struct removal *r);
    /* What of rooms above the API's own ends with a job that is stopped: kit/stopplan.h. */
    void (*add_stop_steps)(const struct api_eyes *eyes, struct stopplan *p);
};

/* The answer's barrier: everything up to now. */
uint64_t api_barrier(const struct api *a);
/* The same for readers of what needs no store (machines, logs): they do not wait while it fails. */
uint64_t api_reader_barrier(const struct api *a);
/* The reply says when it is the last truth on disk, because the store fails. */
void api_mark_stale(struct http_req *req, const struct api *a);
int api_authenticate(const struct http_credentials *c, struct http_principal *ret, void *app);

/* Who looks. Borrowed. */
struct api_eyes {
    const struct api *a;
    const struct http_principal *p;
};
/* May he see the job with this id? Of one that is not in memory any more no owner is known here:
 * only who sees everything sees it. eyes is a struct api_eyes. */
bool api_sees_job(const char *id, void *eyes);

/* Has the job this attempt, or none yet? ERR_NOT_FOUND. */
must_check int api_check_attempt(const struct job *job, int64_t k, struct err *err);

/* A query parameter that is a time, or a span before now ("2h"); *ret stays if it is absent, and is
 * not 0 else, which means none. ERR_BAD_REQUEST. */
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

/* Its files are where they were; else false, and it was answered. */
bool api_has_files(struct http_req *req, const struct api *a, const struct job *job);

/* All problems of a body or spec as one problem JSON: the first error speaks for all. */
void api_answer_problems(struct http_req *req, const struct problems *ps);
/* May he who asks change this job? ERR_FORBIDDEN; verb: "stop". */
must_check int api_may_change(const struct api *a,
                              const struct http_principal *p,
                              const char *verb,
                              const struct job *job,
                              struct err *err);

/* The body of an action, an object with the members of this form at most (NULL: it has none), or
 * nothing (then an empty one). NULL: the refusal was sent. */
json_t *api_read_action(struct http_req *req, const struct field_table *form);
/* 0, or it was answered: he may not, or the store cannot write now (when `changes`). */
must_check int api_people_may(struct http_req *req,
                              struct api *a,
                              enum access_action action,
                              const char *verb,
                              const struct access_thing *thing,
                              bool changes);
