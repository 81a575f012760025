/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - argusd itself: opens its parts, runs the loop, and takes them down again. */
#pragma once
#include "argusd/settings.h"

/* Returns an exit status. A start-up error is one line on stderr. */
int daemon_run(struct settings *settings);

/* The store below state_dir, and the programs that stand beside argusd: used by init too. */
char *daemon_store_path(const struct settings *settings);
