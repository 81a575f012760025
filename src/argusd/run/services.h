/* SPDX-License-Identifier: Apache-2.0 */
/* services.h - all services of argusd on one loop: opened in the order in which they depend on
 * each other, made known to each other, and closed.
 *
 * One life: new, open, start, close, then the loop until it runs dry, free. An open that failed
 * is closed and freed in the same way, and was never started. */
#pragma once
#include <uv.h>

#include "argusd/ground/settings.h"

struct services;
struct web_file;

/* All borrowed. What settings leave out and argusd finds by itself is put into them. */
struct services *services_new(uv_loop_t *loop,
                              struct settings *settings,
                              const struct web_file *web,
                              const struct web_file *client);
/* The store with all that it knows, then the services, then the door: from here on requests are
 * answered. ERR_USAGE: the configuration is at fault. */
must_check int services_open(struct services *s, struct err *err);
/* They look at Ray, the machines and the shared root, and act. */
void services_start(struct services *s);
/* Once. No more is begun; the loop runs dry when all that runs has ended. */
void services_close(struct services *s);
/* Instead of services_free(), where the loop does not run dry and the process ends at once: what
 * was decided is stored. An exit status. */
int services_flush(struct services *s);
/* When the loop has run dry; it turns once more for the store. An exit status: what could not be
 * stored was logged. */
int services_free(struct services *s);
