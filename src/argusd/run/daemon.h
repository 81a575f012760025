/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - argusd itself: runs its services on one loop until a signal ends it. */
#pragma once
#include "argusd/ground/settings.h"

struct web_file;

/* web: the pages, see web/pages.h; client: the Python client, see web/client.h. Returns an exit
 * status. A start-up error is one line on stderr. */
int daemon_run(struct settings *settings,
               const struct web_file *web,
               const struct web_file *client);
