/* SPDX-License-Identifier: Apache-2.0 */
/* restore.h - what the store held when argusd ended, given back to the services.
 *
 * Two steps, since a service may need another one that needs the store: restore_load() reads
 * all rows, hands people, tokens, used ids and idempotency keys to their owners and keeps jobs
 * and machines; restore_services() gives those away once jobs and nodes are there. */
#pragma once
#include "argusd/kit/api.h"

enum { RESTORE_INSTANCE_MAX = 40 };

struct restore;

/* A row goes to the service that owns its kind. False: that is not open yet, and the row is kept
 * until restore_services(), when is_late is set. */
typedef bool (*restore_entry_f)(const struct store_entry *row, bool is_late, void *arg);

/* All borrowed; instance has room for RESTORE_INSTANCE_MAX and is filled by restore_load(). */
struct restore *restore_new(struct api *a, char *instance, restore_entry_f entry, void *arg);
void restore_free(struct restore *r); /* NULL is fine */

/* A new store gets its instance here. A job's row that cannot be read is an error in the log;
 * everything else that is wrong is the return code of store_load(). */
must_check int restore_load(struct restore *r, struct store_last *ret_last, struct err *err);
/* Machines first: jobs are restored onto them. */
void restore_services(struct restore *r);
