/* SPDX-License-Identifier: Apache-2.0 */
/* serving.h - the services that there are, their versions and replicas.
 *
 * They live in memory, behind them rows of the store; see README.md for what a replica is. Pointers
 * to services, versions and units are borrowed until the loop goes on. */
#pragma once
#include "argusd/kit/api.h"
#include "argusd/services/service_calls.h"
#include "argusd/services/service_target.h"
#include "core/serve/serve_spec.h"
#include "core/serve/serve_step.h"

enum { SERVICES_MAX = 500, SERVICES_OF_USER_MAX = 100, SERVICE_VERSIONS_MAX = 20 };

struct serving;
struct submit;

/* A replica, with the job that is its lease. Read-only to everybody but this room. */
struct service_unit {
    int64_t k; /* 1, 2, … within its version */
    char *job; /* NULL: none */
    bool leaves;
    int64_t failures; /* in a row */

    /* Nothing of this is stored. */
    struct service_version *of;
    struct submit *submit;
    enum serve_unit_state state;
    usec_t again_at;  /* monotonic: not submitted before */
    int attempt;      /* of the job, that what follows is about */
    usec_t held_at;   /* monotonic */
    usec_t late_from; /* monotonic: since when it starts, and nothing else */
    bool is_timed;    /* it was seen without a lease: its load is measured */
    char *node;       /* its machine's name */
    char *dir;        /* of its code, as its job wrote it */
    struct field_list deployments;
    bool inspected, inspecting;
    char *doc;    /* what is put into the list; NULL: nothing yet */
    json_t *sent; /* the same */
    bool is_running, has_door, passed, is_asked;
    bool embeds;          /* its model makes no text, and is checked by an embedding */
    usec_t asked_at;      /* monotonic: of its check */
    int requests;         /* under way */
    usec_t refused_until; /* monotonic: its door did not open */
    struct service_door door;
    struct reason reason; /* why it is not ready */
};

struct service_version {
    int64_t n;
    char *user; /* who deployed it */
    struct serve_spec spec;
    usec_t created_at, ready_at;
    char *model_job; /* its model is still being made, by this job; NULL: it is there */
    bool failed;
    bool unlisted; /* no list had a replica of it yet: what has its name in Ray is not argusd's */
    char *code, *text;         /* why it failed */
    bool sets_keep, sets_idle; /* its service gets these with the traffic: its deploy said so */
    int keep;                  /* enum serve_keep */
    usec_t idle;               /* 0: never */
    usec_t load_took; /* of its last load, from the lease to the first answer; 0: not measured */
    struct service_unit *units[SERVE_REPLICAS_MAX];
    size_t n_units;
    struct served *of;
};

enum { SERVICE_WINDOW = 30, SERVICE_WINDOW_S = 10, SERVICE_SPANS = 24 };
/* What was asked of a service in ten seconds. */
struct service_minute {
    int64_t at; /* which ten seconds, monotonic */
    int64_t requests, errors, refused, tokens_in, tokens_out;
    int64_t took[SERVICE_SPANS]; /* how many took up to 2^i ms */
};

struct served {
    char *name, *owner, *project;
    int keep;                          /* enum serve_keep */
    int64_t current, wanted, previous; /* numbers of versions; 0: none */
    int64_t last;                      /* the highest number that was given */
    int64_t replicas;                  /* of the version that has the traffic, or is to get it */
    int64_t yields_to, yielded; /* the version that was rolled back to, and how many leases the one
                                   before it has given for it; void once another one has the
                                   traffic, or is wanted before this one has it */
    bool stopped, removed;
    double spent_gpu_hours; /* of its leases that are over */
    usec_t created_at, changed_at, switched_at;
    usec_t idle;      /* it sleeps after so long without a request; 0: never */
    usec_t asleep_at; /* since when it sleeps; 0: it does not */
    usec_t woken_at;  /* since when it is being woken: nothing of it answers yet; 0: it is not */
    struct service_version *versions[SERVICE_VERSIONS_MAX]; /* the newest first */
    size_t n_versions;

    struct serving *serving;
    struct serve_scale scale;
    double load;        /* requests under way, smoothed */
    usec_t quiet_since; /* monotonic: nobody asks since then; 0: not known yet */
    struct service_minute window[SERVICE_WINDOW];
    struct service_calls *calls;   /* NULL: there was none */
    struct service_totals *totals; /* the same */
    usec_t down_since; /* monotonic: no replica answers, and one should; 0: it is not so */
    uint64_t mark;     /* of what followers of changes were told */
};
extern const struct field_table service_table, service_version_table;

/* a is borrowed. */
struct serving *serving_new(struct api *a);
#define SERVING_ENTRY_SERVICE "service"
#define SERVING_ENTRY_VERSION "service_version"
#define SERVING_ENTRY_LIST "serve_list"
void serving_restore(struct serving *sv, const struct store_entry *row);
/* The gate's key. */
must_check int serving_open(struct serving *sv, struct err *err);
void serving_start(struct serving *sv);
void serving_durable(struct serving *sv, uint64_t batch);
void serving_close(struct serving *sv); /* NULL is fine */
/* A job has ended, within the open batch: what it held as a lease is what its service has spent,
 * and a version whose model it was to make, and did not, comes to nothing. NULL is fine. */
struct live;
void serving_job_ended(struct serving *sv, const struct live *l);
/* A registry_keeper_f, arg is the struct serving: the version of a service that serves this model,
 * or could be gone back to. */
struct registry_keeper;
bool serving_keeps(const struct registry_entry *e,
                   const struct access_who *who,
                   struct registry_keeper *ret,
                   void *arg);
/* All services with such a version (kit/removal.h). */
struct removal;
void serving_add_removal_users(const struct serving *sv, struct removal *r);
void serving_unplug(struct serving *sv); /* no request is left that asks a service */
void serving_free(struct serving *sv);

/* Services that have the traffic, are neither stopped nor asleep, and have no replica that is
 * ready. *ret_longest: for how long the first of them has had none. */
size_t serving_down(const struct serving *sv, usec_t *ret_longest);

const struct served *serving_find(const struct serving *sv, const char *name);
const struct served *serving_next(const struct serving *sv, size_t *pos);
const struct service_version *service_find_version(const struct served *s, int64_t n);
struct access_thing service_thing(const struct served *s);
bool service_is_seen(const struct served *s, const struct access_who *who); /* who may see it */
/* May he ask the service of this name? A key asks as whoever made it, and finds its own alone.
 * ERR_NOT_FOUND: none that he may see; ERR_FORBIDDEN. */
must_check int serving_may_call(const struct serving *sv,
                                const char *name,
                                const struct http_principal *who,
                                struct err *err);

/* It has the traffic, and its service sleeps. */
bool service_version_sleeps(const struct service_version *v);
/* Its replicas, for serve_version_state(). */
void service_version_see(const struct service_version *v, struct serve_version_seen *ret);
int64_t service_version_requests(const struct service_version *v); /* under way */
/* How many of those are beyond what its replicas take at once: they wait in Ray Serve. */
int64_t service_version_waiting(const struct service_version *v);
double service_gpu_hours(const struct served *s); /* of all its leases since it was made */
/* Why it has failed, by whom its model is being made, since when it sleeps; "": none is so. */
void service_version_reason(const struct service_version *v, struct reason *ret);

/* ask->name, made of the model's or the application's where there is none; or ERR_BAD_SPEC. */
must_check int serving_fill_name(struct serve_ask *ask, struct err *err);
/* A new service, or the next version of one that is there: it takes the traffic once it is ready.
 * taken: its members are taken where 0 is returned; `keep` and `idle` of a service that is there
 * change where they are said, once the version takes the traffic, unless somebody has set them
 * since. ERR_CONFLICT: the service is of another project than taken says. ERR_REFUSED,
 * ERR_UNAVAILABLE (Ray is too old), what the registry says of the model. s: NULL where
 * serving_find() knows none of taken's name. Where taken names a job, its model, which was merged
 * of a checkpoint of it, may still be in the making: the version has no replica until it is there,
 * and has failed where it comes to nothing. */
must_check int serving_deploy(struct serving *sv,
                              const struct http_principal *p,
                              const struct served *s,
                              struct serve_ask *taken,
                              const struct served **ret,
                              struct err *err);
/* What of serving_deploy() can be said before the model is there: e, which is borrowed, has its
 * owner and project, as it would be registered. */
must_check int serving_check_made(struct serving *sv,
                                  const struct http_principal *p,
                                  const struct served *s,
                                  const struct serve_ask *ask,
                                  const struct registry_entry *e,
                                  struct err *err);
/* As many replicas of what has the traffic. ERR_BAD_SPEC: beyond the bounds. */
must_check int serving_scale(struct serving *sv,
                             const struct served *s,
                             int64_t replicas,
                             const char *actor,
                             struct err *err);
/* That version (0: the one before) takes the traffic: at once where it is kept warm. ERR_NOT_FOUND,
 * ERR_CONFLICT: it has it. */
must_check int serving_roll_back(struct serving *sv,
                                 const struct served *s,
                                 int64_t n,
                                 const char *actor,
                                 struct err *err);
/* No replicas any more; the rows stay, and serving_roll_back() to any version starts it again. */
void serving_stop(struct serving *sv, const struct served *s, const char *actor);
/* What a deploy changes before its version has the traffic, so that one that comes to nothing can
 * be undone. */
struct service_before {
    int64_t replicas; /* 0: there was no service */
    bool stopped;
};
/* The deploy of v comes to nothing, called off or failed, and its service is as before: its
 * replicas where nobody scaled in between, stopped where it was stopped or where nothing but v is
 * to have the traffic. */
void serving_undo_deploy(struct serving *sv,
                         const struct service_version *v,
                         const struct service_before *before,
                         const char *actor);
/* As serving_stop(), and the rows go with the last replica. */
void serving_remove(struct serving *sv, const struct served *s, const char *actor);
/* keep is set by the caller's row; what follows from it is done. */
void serving_set_keep(struct serving *sv, const struct served *s, int keep);
/* It sleeps after so long without a request; 0: never, and one that sleeps is woken. */
void serving_set_idle(struct serving *sv, const struct served *s, usec_t idle, const char *actor);
/* One that sleeps is loaded again; another stays as it is. ERR_CONFLICT: it is stopped. */
must_check int serving_wake(struct serving *sv,
                            const struct served *s,
                            const char *actor,
                            struct err *err);

/* Applications in Ray Serve that are not argusd's, as they were last seen. */
struct serve_look;
/* The service of which this application is a replica: argusd's rows know its name, and a list had
 * that version. NULL: it is somebody else's, whatever its name looks like. */
const struct served *serving_owner_of(const struct serving *sv, const char *app);
const struct serve_look *serving_look(const struct serving *sv); /* NULL: nothing was seen yet */
