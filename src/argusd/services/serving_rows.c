/* SPDX-License-Identifier: Apache-2.0 */
/* serving_rows.c - services and their versions as rows of the store, and back. A version's row
 * holds its replicas with the jobs that are their leases: it is written in the batch in which such
 * a job is made, so that none is made twice and none is forgotten. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/services/serving_state.h"
#include "argusd/submit/submit.h"
#include "base/log.h"
#include "base/str.h"

#define ROW(of, key, ftype, ...) FIELD_AT(of, #key, ftype, key, __VA_ARGS__)
enum { BOTH = FIELD_STORED | FIELD_SHOWN | FIELD_LISTED, WHOLE = FIELD_STORED | FIELD_SHOWN };
static const struct field service_rows[] = {
    ROW(served, name, FIELD_STR, .flags = BOTH | FIELD_ALWAYS),
    ROW(served, owner, FIELD_STR, .flags = BOTH | FIELD_ALWAYS, .doc = "user who made it"),
    ROW(served,
        project,
        FIELD_STR,
        .flags = BOTH | FIELD_ALWAYS,
        .doc = "project whose members may call and change it"),
    ROW(served,
        keep,
        FIELD_ENUM,
        .names = serve_keep_words,
        .flags = WHOLE,
        .doc = "what becomes of the version before"),
    ROW(served,
        current,
        FIELD_INT,
        .flags = BOTH,
        .doc = "the version that has the traffic; 0: none"),
    ROW(served,
        wanted,
        FIELD_INT,
        .flags = BOTH,
        .doc = "the one that gets it once it is ready; 0: none"),
    ROW(served, previous, FIELD_INT, .flags = WHOLE, .doc = "the one that had it before; 0: none"),
    ROW(served, last, FIELD_INT, .flags = FIELD_STORED),
    ROW(served, replicas, FIELD_INT, .flags = BOTH, .doc = "replicas that are wanted"),
    ROW(served, yields_to, FIELD_INT, .flags = FIELD_STORED),
    ROW(served, yielded, FIELD_INT, .flags = FIELD_STORED),
    ROW(served, stopped, FIELD_BOOL, .flags = BOTH),
    ROW(served, removed, FIELD_BOOL, .flags = FIELD_STORED),
    ROW(served, spent_gpu_hours, FIELD_REAL, .flags = FIELD_STORED),
    ROW(served, created_at, FIELD_TIME, .flags = BOTH),
    ROW(served, changed_at, FIELD_TIME, .flags = WHOLE),
    ROW(served, switched_at, FIELD_TIME, .flags = WHOLE, .doc = "when the version got the traffic"),
    ROW(served,
        idle,
        FIELD_SPAN,
        .flags = WHOLE,
        .doc = "it sleeps after so long without a request; 0s: never"),
    ROW(served,
        asleep_at,
        FIELD_TIME,
        .flags = WHOLE,
        .doc = "since when it sleeps; null: it does not"),
    ROW(served,
        woken_at,
        FIELD_TIME,
        .flags = WHOLE,
        .doc = "since when it is being woken and does not answer yet; null: it is not"),
};
const struct field_table service_table = FIELD_TABLE("Service", service_rows, served);

/* A unit as it is stored. */
struct unit_row {
    int64_t k;
    char *job;
    bool leaves;
    int64_t failures;
};
static const struct field unit_rows[] = {
    ROW(unit_row, k, FIELD_INT),
    ROW(unit_row, job, FIELD_STR),
    ROW(unit_row, leaves, FIELD_BOOL),
    ROW(unit_row, failures, FIELD_INT),
};
static const struct field_table unit_table = FIELD_TABLE(NULL, unit_rows, unit_row);

struct version_row {
    char *service;
    struct service_version v;
    struct field_list units;
};
#define VROW(key, ftype, ...)                                                                      \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct service_version, key), __VA_ARGS__  \
    }
static const struct field version_rows[] = {
    VROW(n, FIELD_INT, .flags = WHOLE, .doc = "1, 2, …"),
    VROW(user, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS, .doc = "user who deployed it"),
    VROW(spec, FIELD_OBJECT, .of = &serve_spec_table, .flags = WHOLE),
    VROW(created_at, FIELD_TIME, .flags = WHOLE),
    VROW(ready_at, FIELD_TIME, .flags = WHOLE, .doc = "time at which it was ready first"),
    VROW(model_job,
         FIELD_STR,
         .flags = WHOLE,
         .doc = "job by which its model is still being made; null: it is there"),
    VROW(load_took,
         FIELD_SPAN,
         .flags = WHOLE,
         .doc = "its last load, from the lease to the first answer; 0s: not measured yet"),
    VROW(failed, FIELD_BOOL, .flags = FIELD_STORED),
    VROW(unlisted, FIELD_BOOL, .flags = FIELD_STORED), /* older rows: no */
    VROW(code, FIELD_STR, .flags = FIELD_STORED),
    VROW(text, FIELD_STR, .flags = FIELD_STORED),
    VROW(sets_keep, FIELD_BOOL, .flags = FIELD_STORED),
    VROW(keep, FIELD_ENUM, .names = serve_keep_words, .flags = FIELD_STORED),
    VROW(sets_idle, FIELD_BOOL, .flags = FIELD_STORED),
    VROW(idle, FIELD_SPAN, .flags = FIELD_STORED),
};
const struct field_table service_version_table =
    FIELD_TABLE("ServiceVersion", version_rows, service_version);

static const struct field stored_rows[] = {
    ROW(version_row, service, FIELD_STR),
    FIELD_AT(version_row, "version", FIELD_OBJECT, v, .of = &service_version_table),
    ROW(version_row, units, FIELD_LIST, .of = &unit_table),
};
static const struct field_table stored_table = FIELD_TABLE(NULL, stored_rows, version_row);

static char *version_key(const struct served *s, int64_t n)
{
    return xasprintf("%s/%" PRId64, s->name, n);
}

void serving_save(const struct served *s)
{
    _cleanup_(freep) char *body = field_to_text(&service_table, s, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {
        .kind = SERVING_ENTRY_SERVICE, .name = s->name, .body = body, .at = clock_wall()};
    store_put_entry(s->serving->a->store, &row);
}

void serving_save_version(const struct service_version *v)
{
    struct unit_row units[SERVE_REPLICAS_MAX];
    struct version_row all = {.service = v->of->name, .v = *v};
    for (size_t i = 0; i < v->n_units; i++)
        units[i] = (struct unit_row){.k = v->units[i]->k,
                                     .job = v->units[i]->job,
                                     .leaves = v->units[i]->leaves,
                                     .failures = v->units[i]->failures};
    all.units = (struct field_list){.v = units, .n = v->n_units};
    _cleanup_(freep) char *body = field_to_text(&stored_table, &all, FIELD_ALL, FIELD_ROW);
    _cleanup_(freep) char *key = version_key(v->of, v->n);
    struct store_entry row = {
        .kind = SERVING_ENTRY_VERSION, .name = key, .body = body, .at = clock_wall()};
    store_put_entry(v->of->serving->a->store, &row);
}

/* ---- their end ---- */

void service_unit_forget(struct service_unit *u)
{
    free(u->node);
    free(u->dir);
    free(u->doc);
    json_decref(u->sent);
    serve_deployments_release(&u->deployments);
    u->node = u->dir = u->doc = NULL;
    u->sent = NULL;
    u->inspected = u->is_running = u->has_door = u->passed = u->is_asked = false;
    u->held_at = u->asked_at = u->late_from = 0;
}

static void service_unit_free(struct service_unit *u)
{
    submit_own_forget(u->submit);
    service_unit_forget(u);
    free(u->job);
    free(u);
}

void serving_drop_unit(struct service_unit *u)
{
    struct service_version *v = u->of;
    size_t i = 0;
    while (v->units[i] != u)
        i++;
    v->n_units--;
    for (; i < v->n_units; i++)
        v->units[i] = v->units[i + 1];
    service_unit_free(u);
}

static void service_version_free(struct service_version *v)
{
    for (size_t i = 0; i < v->n_units; i++)
        service_unit_free(v->units[i]);
    field_release(&service_version_table, v);
    free(v);
}

void serving_drop_version(struct service_version *v)
{
    struct served *s = v->of;
    _cleanup_(freep) char *key = version_key(s, v->n);
    size_t i = 0;
    store_remove_entry(s->serving->a->store, SERVING_ENTRY_VERSION, key);
    while (s->versions[i] != v)
        i++;
    s->n_versions--;
    for (; i < s->n_versions; i++)
        s->versions[i] = s->versions[i + 1];
    service_version_free(v);
}

void service_free(struct served *s)
{
    for (size_t i = 0; i < s->n_versions; i++)
        service_version_free(s->versions[i]);
    field_release(&service_table, s);
    free(s->calls);
    free(s->totals);
    free(s);
}

/* ---- rows at the start ---- */

struct service_unit *serving_add_unit(struct service_version *v, int64_t k)
{
    if (v->n_units == SERVE_REPLICAS_MAX)
        return NULL;
    struct service_unit *u = xcalloc(1, sizeof(*u));
    u->k = k;
    u->of = v;
    v->units[v->n_units++] = u;
    return u;
}

static void serving_restore_service(struct serving *sv, const struct store_entry *row)
{
    struct served *s = xcalloc(1, sizeof(*s));
    s->serving = sv;
    if (!field_from_text(&service_table, row->body, FIELD_STORED, s) || !s->name || !s->owner) {
        log_warn("serve", "the row of service '%s' cannot be read: it is left out", row->name);
        service_free(s);
        return;
    }
    (void)map_set(sv->by_name, s->name, s); /* rows have different names */
}

static void serving_take_units(struct service_version *v, struct field_list *units)
{
    struct unit_row *rows = units->v;
    for (size_t i = 0; i < units->n; i++) {
        struct service_unit *u = serving_add_unit(v, rows[i].k);
        if (u) {
            u->job = rows[i].job;
            u->leaves = rows[i].leaves;
            u->failures = rows[i].failures;
            rows[i].job = NULL;
        }
        field_release(&unit_table, &rows[i]);
    }
    free(rows);
    *units = (struct field_list){0};
}

/* The newest first. Rows of services come before those of versions. */
static void serving_keep_version(struct served *s, struct service_version *v)
{
    size_t i = s->n_versions++;
    for (; i && s->versions[i - 1]->n < v->n; i--)
        s->versions[i] = s->versions[i - 1];
    s->versions[i] = v;
    v->of = s;
}

static void serving_restore_version(struct serving *sv, const struct store_entry *row)
{
    struct version_row r = {0};
    bool ok = field_from_text(&stored_table, row->body, FIELD_ALL, &r);
    struct served *s = ok && r.service ? map_find(sv->by_name, r.service) : NULL;
    if (!s || s->n_versions == SERVICE_VERSIONS_MAX) {
        log_warn("serve", "the row of version '%s' cannot be read: it is left out", row->name);
        field_release(&stored_table, &r);
        return;
    }
    struct service_version *v = xcalloc(1, sizeof(*v));
    *v = r.v;
    serving_keep_version(s, v);
    serving_take_units(v, &r.units);
    free(r.service);
}

void serving_restore(struct serving *sv, const struct store_entry *row)
{
    if (str_eq(row->kind, SERVING_ENTRY_SERVICE))
        serving_restore_service(sv, row);
    else if (str_eq(row->kind, SERVING_ENTRY_VERSION))
        serving_restore_version(sv, row);
    else
        set_str(&sv->list, row->body);
}
