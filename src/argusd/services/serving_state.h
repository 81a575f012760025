/* SPDX-License-Identifier: Apache-2.0 */
/* serving_state.h - what the files of this room share. Nobody outside it includes this. */
#pragma once
#include "argusd/services/serving.h"
#include "base/map.h"
#include "base/strv.h"
#include "core/serve/serve_idle.h"
#include "core/serve/serve_look.h"
#include "ray/wire.h"

struct serving {
    struct api *a;
    uv_timer_t timer;
    bool started, closing;
    struct map *by_name;
    int handles; /* asynchronous work that still points here */

    /* serving_list.c */
    struct ray_call *get, *put;
    struct serve_look look;
    bool has_look;
    struct strv strangers;          /* names as ours of applications that are not */
    usec_t looked_at, put_at;       /* monotonic */
    char *list;                     /* that is to be put, or was put last */
    uint64_t list_batch;            /* it goes when this is on disk; 0: nothing is to go */
    char session[64];               /* of Ray, for which all that was seen holds */
    char code[JOB_REASON_CODE_MAX]; /* why nothing can be deployed; "" = all is well */
    char text[JOB_REASON_TEXT_MAX];

    /* serving_doors.c */
    struct wire *wire;
    char key[SERVICE_KEY_MAX]; /* of the gate */
    char *key_line;            /* its header */
    bool key_placed, placing;
    struct map *gates; /* "address:port" -> struct service_gate */
};

/* ---- serving_rows.c ---- */

void serving_save(const struct served *s);
void serving_save_version(const struct service_version *v);
void serving_drop_version(struct service_version *v); /* its units are gone */
void service_free(struct served *s);
struct service_unit *serving_add_unit(struct service_version *v, int64_t k);
void serving_drop_unit(struct service_unit *u);   /* freed, and off its version; not stored */
void service_unit_forget(struct service_unit *u); /* what was known of its place */

/* ---- serving.c ---- */

struct serving_said {
    const char *kind, *actor, *from, *to, *code, *text;
};
void serving_note(const struct served *s, const struct serving_said *said);

/* It was never ready and never will be: replicas of it are wanted no more. */
void serving_give_up(struct service_version *v, const char *code, const char *text);
/* Where one of the two has to go, a goes: not ready before ready, the highest number. */
bool service_unit_goes_first(const struct service_unit *a, const struct service_unit *b);
/* It is given up once its replicas have failed often enough: it never was ready, or what answers
 * has given leases for it, and would get them back. */
bool service_may_give_up(const struct service_version *v);

/* ---- serving_model.c ---- */

/* What the model's name means for him who deploys; NULL: an application. */
must_check int serving_find_model(struct serving *sv,
                                  const struct http_principal *p,
                                  const struct serve_ask *ask,
                                  struct registry_entry **ret,
                                  struct err *err);
/* May it be served by a service of this project? */
must_check int serving_check_model(const struct http_principal *p,
                                   const char *project,
                                   const struct registry_entry *e,
                                   struct err *err);
/* It is what v serves, now or once it is made. */
void serving_take_model(struct service_version *v, const struct registry_entry *e);
/* Something of its row is other than it was: it is saved, and told. */
void service_changed(struct served *s);
/* The one of this name, to be changed. */
struct served *serving_own(struct serving *sv, const struct served *s);
/* Another version is being loaded, which is to get the traffic. */
bool service_is_changing(const struct served *s);
/* The number of replicas that its new version asks for, unless that waits for its model while
 * another one serves. */
void service_take_replicas(struct served *s, const struct service_version *v);
/* What became of a model that was still being made. */
void serving_turn_model(struct service_version *v);

/* ---- serving_sleep.c ---- */

/* Puts it to sleep where nobody asked for long enough; a woken one that answers is awake. */
void serving_turn_sleep(struct served *s, usec_t now);
/* It sleeps after so long from now on, whatever deploys said before; an event says so where it was
 * another span. */
void service_take_idle(struct served *s, usec_t idle, const char *actor);
/* The refusal of a request to a service that is being woken. 0, *ret_left untouched: it is not, or
 * something else keeps it from answering; else ERR_UNAVAILABLE, and *ret_left: ask again after so
 * many seconds. */
int serving_refuse_waking(const struct served *s, usec_t now, int64_t *ret_left, struct err *err);
/* After how many seconds a version that is being loaded is worth to be asked again, by its own last
 * load. */
int64_t serving_load_left_s(const struct service_version *v, usec_t now);
/* Since when it sleeps, and what wakes it. */
void serving_say_asleep(const struct served *s, struct reason *ret);

/* ---- serving_yield.c ---- */

/* The service is rolled back to v, which has to be loaded first. */
void serving_yield_begin(struct served *s, const struct service_version *v);
/* How many of its replicas v has given up for the version that the service is rolled back to. */
int64_t serving_yielded(const struct service_version *v);
/* Gives the next lease, where a rollback waits for it. */
void serving_turn_yield(struct served *s);
/* Leases were given for v, which has not the traffic yet, and no replica of it answers. */
bool serving_yield_is_at_stake(const struct service_version *v);
/* So many replicas are wanted no more, of either version: for so many there is room now. */
void serving_yield_scaled(struct served *s, int64_t fewer);
/* Leases were given for v, which now answers as much as the version with the traffic. */
bool serving_yield_suffices(const struct service_version *v);

/* ---- serving_units.c ---- */

/* What became of its lease and its application; submits, checks and gives back what is due. */
void serving_turn_unit(struct service_unit *u, usec_t now);
/* A job has ended: if it was the lease of a replica, what it held goes into the row of its service,
 * in the batch of its own end, so that no kill loses it. */
void serving_lease_ended(struct serving *sv, const struct live *l);
/* It leaves: no request any more, then its lease goes back. */
void serving_release(struct service_unit *u);

/* ---- serving_pick.c ---- */

/* A replica of it is ready. */
bool service_version_answers(const struct service_version *v);
/* It is the version before, and argusd keeps it loaded beside the one that has the traffic, or
 * would while the service is awake. */
bool serving_is_warm(const struct service_version *v);
/* It is warm, and being loaded while its service is awake: no replica of it answers yet. */
bool serving_is_loading(const struct service_version *v);
/* May a request name version n? 0: the one with the traffic, and the service says why that does not
 * answer; else ERR_NOT_FOUND or ERR_CONFLICT, with those that can be asked. One that is being
 * loaded may be named; see serving_refuse_loading(). */
must_check int serving_pick(const struct served *s, int64_t n, struct err *err);
/* The refusal of a request to v, which is being loaded: ERR_UNAVAILABLE, with those that can be
 * asked meanwhile. */
must_check int serving_refuse_loading(const struct service_version *v, struct err *err);

/* ---- serving_list.c ---- */

void serving_turn_list(struct serving *sv, usec_t now);
void serving_list_cancel(struct serving *sv);
/* Ray Serve still has an application of this service, as it was last seen, and a list will be put
 * without it. */
bool serving_list_has(const struct serving *sv, const struct served *s);
/* Somebody else's application that stands where that version's would; NULL: none. Borrowed. */
const char *serving_stranger(const struct serving *sv, const char *service, int64_t version);
/* Ray can serve, or code and text say why it cannot. */
bool serving_is_able(struct serving *sv);

/* ---- serving_doors.c ---- */

must_check int serving_open_doors(struct serving *sv, struct err *err);
void serving_close_doors(struct serving *sv);
/* True: the key lies where the gates read it. */
bool serving_place_key(struct serving *sv);
/* The gate of the proxy at this address: 1 it is there, 0 it is not known yet (and is asked), -1
 * whoever asks gets through. */
int serving_gate(struct serving *sv, const char *address, int64_t port, usec_t now);
/* Where requests for it go, and whether it answers. */
void serving_turn_door(struct service_unit *u, usec_t now);
