/* SPDX-License-Identifier: Apache-2.0 */
/* services_state.h - what the files of services share: all services, and the row that each one has
 * in the table (services_table.c). Nobody outside run/ includes it. */
#pragma once
#include "argusd/kit/api.h"
#include "argusd/run/restore.h"

struct services {
    uv_loop_t *loop;
    struct settings *settings;
    struct api api;
    struct sched *sched;
    struct ray_client *ray;
    struct people_usage *usage;
    struct sender *sender;
    struct trials *trials;
    struct evals *evals;
    struct metrics *metrics;
    struct gpubooks *gpubooks;
    struct rankbooks *rankbooks;
    struct hangs *hangs;
    struct watcher *watcher;
    struct placement *placement;
    struct secretsweep *sweep;
    struct retention *retention;
    char instance[RESTORE_INSTANCE_MAX]; /* our mark on Ray's records: made with the store */
    char boot_id[CLOCK_BOOT_ID_MAX];
    struct store_last last; /* numbers that the store had at the start */
    bool stopping;
};

/* One service. Rows stand in the order in which services depend on each other: they are opened and
 * started in this order, and closed and freed in the opposite one. Any function may be NULL; those
 * that end something may be called for a service that was never opened. */
struct service {
    const char *name;
    bool is_early;        /* opened before the store is read: it gets its rows at once */
    const char *kinds[6]; /* of its rows in the store */
    void (*make)(struct services *s);                 /* it is opened, and that cannot fail */
    int (*open)(struct services *s, struct err *err); /* or may fail */
    void (*restore)(struct services *s, const struct store_entry *row);
    void (*start)(struct services *s);
    void (*durable)(struct services *s, uint64_t batch); /* that is on disk now */
    void (*close)(struct services *s);  /* no more is begun; requests may still come */
    void (*unplug)(struct services *s); /* no request is left that could ask it anything */
    void (*free)(struct services *s);   /* the loop has run dry */
};

const struct service *services_table(size_t *ret_n);
/* The one whose rows have this kind; NULL: nobody's. */
const struct service *services_find_kind(const char *kind);
