/* SPDX-License-Identifier: Apache-2.0 */
/* restore.c - see restore.h. Rows are kept as copies: the store's are gone after each call. */
#include "argusd/run/restore.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/jobs/record.h"
#include "argusd/people/people.h"
#include "argusd/submit/idempotency.h"
#include "base/digest/hash.h"
#include "base/digest/seal.h"
#include "base/log.h"
#include "base/order/place.h"
#include "base/text.h"

struct restore {
    struct api *api;
    char *instance;
    restore_entry_f entry;
    void *arg;
    bool has_instance;
    struct restored {
        struct job *job;
        struct record_extra extra;
    } * v;
    size_t n;
    struct kept_entry {
        char *kind, *name, *body;
        usec_t at;
    } * entries;
    size_t n_entries;
};

struct restore *restore_new(struct api *a, char *instance, restore_entry_f entry, void *arg)
{
    struct restore *r = xcalloc(1, sizeof(*r));
    *r = (struct restore){.api = a, .instance = instance, .entry = entry, .arg = arg};
    return r;
}

void restore_free(struct restore *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_entries; i++) {
        free(r->entries[i].kind);
        free(r->entries[i].name);
        free(r->entries[i].body);
    }
    free(r->entries);
    for (size_t i = 0; i < r->n; i++) {
        job_free(r->v[i].job);
        record_extra_release(&r->v[i].extra);
    }
    free(r->v);
    free(r);
}

/* ---- rows ---- */

static void restore_on_job_row(const struct store_job *row, void *arg)
{
    struct restore *r = arg;
    struct restored x = {0};
    struct err err = {0};
    if (record_to_job(row, &x.job, &x.extra, &err) < 0) {
        log_err("store", "%s", err.text);
        record_extra_release(&x.extra);
        return;
    }
    if ((r->n & (r->n - 1)) == 0)
        r->v = xrealloc(r->v, r->n ? r->n * 2 : 1, sizeof(*r->v));
    r->v[r->n++] = x;
}

static int to_restored(const void *seq, const void *element)
{
    const int64_t *key = seq;
    const struct restored *x = element;
    return *key < x->job->seq ? -1 : *key > x->job->seq;
}

/* Both kinds of rows come in the order of submission. */
static void on_attempt_row(const struct store_attempt *row, void *arg)
{
    struct restore *r = arg;
    size_t i = place_of(&row->job_seq, r->v, r->n, sizeof(*r->v), to_restored);
    if (i < r->n && r->v[i].job->seq == row->job_seq)
        record_add_attempt(r->v[i].job, row);
}

static void on_id_row(const char *id, void *arg)
{
    struct restore *r = arg;
    idset_add(r->api->used, id);
}

static void restore_on_token_row(const struct store_token *row, void *arg)
{
    struct restore *r = arg;
    tokens_restore(r->api->tokens, row);
    people_imply_user(r->api->people, row);
}

static void restore_on_user_row(const struct store_user *row, void *arg)
{
    struct restore *r = arg;
    people_restore_user(r->api->people, row);
}

static void on_idempotency_row(const struct store_idempotency *row, void *arg)
{
    struct restore *r = arg;
    api_restore_idempotency(r->api, row);
}

static void on_meta_row(const char *key, const char *value, void *arg)
{
    struct restore *r = arg;
    if (strcmp(key, "instance") != 0)
        return;
    text_copy_to(r->instance, RESTORE_INSTANCE_MAX, value);
    r->has_instance = true;
}

static void restore_on_entry_row(const struct store_entry *row, void *arg)
{
    struct restore *r = arg;
    if (r->entry(row, false, r->arg))
        return;
    if ((r->n_entries & (r->n_entries - 1)) == 0)
        r->entries = xrealloc(r->entries, r->n_entries ? r->n_entries * 2 : 1, sizeof(*r->entries));
    r->entries[r->n_entries++] = (struct kept_entry){.kind = xstrdup(row->kind),
                                                     .name = xstrdup(row->name),
                                                     .body = xstrdup(row->body),
                                                     .at = row->at};
}

/* ---- the two steps ---- */

static void make_instance(struct restore *r)
{
    (void)random_hex_to(r->instance, 16);
    store_put_meta(r->api->store, "instance", r->instance);
}

static int open_secrets(struct restore *r, struct err *err)
{
    bool has_sealed = false;
    for (size_t i = 0; i < r->n; i++)
        has_sealed = has_sealed || seal_is_sealed(r->v[i].job->spec);
    int x = secrets_restored(r->api->secrets, has_sealed, err);
    for (size_t i = 0; x == 0 && i < r->n; i++)
        secrets_open_spec(r->api->secrets, r->v[i].job->id, &r->v[i].job->spec);
    return x;
}

int restore_load(struct restore *r, struct store_last *ret_last, struct err *err)
{
    static const struct store_load_ops ops = {.on_job = restore_on_job_row,
                                              .on_attempt = on_attempt_row,
                                              .on_id = on_id_row,
                                              .on_user = restore_on_user_row,
                                              .on_entry = restore_on_entry_row,
                                              .on_token = restore_on_token_row,
                                              .on_idempotency = on_idempotency_row,
                                              .on_meta = on_meta_row};
    int x = store_load(r->api->store, &ops, r, ret_last, err);
    if (x < 0)
        return x;
    if (!r->has_instance)
        make_instance(r);
    x = open_secrets(r, err);
    if (x < 0)
        return x;
    people_restored(r->api->people);
    store_prune_idempotency(r->api->store, NULL, clock_wall() - USEC_DAY);
    return 0;
}

void restore_services(struct restore *r)
{
    for (size_t i = 0; i < r->n_entries; i++) {
        const struct kept_entry *k = &r->entries[i];
        struct store_entry entry = {.kind = k->kind, .name = k->name, .body = k->body, .at = k->at};
        (void)r->entry(&entry, true, r->arg); /* nobody's: it stays in the store */
    }
    for (size_t i = 0; i < r->n; i++)
        jobs_restore(r->api->jobs, r->v[i].job, &r->v[i].extra);
    r->n = 0; /* they are the table's now */
    jobs_restored(r->api->jobs);
}
