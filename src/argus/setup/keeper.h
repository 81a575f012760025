/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.h - what keeps argusd running: a unit of systemd, or a script in the foreground.
 *
 * Both are texts that name argusd and its configuration by path. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"

/* The path means itself in a unit, in a shell and in YAML. */
bool keeper_is_plain(const char *path);

/* Both paths are plain and absolute. */
void keeper_write_unit(struct buf *out, const char *argusd, const char *config);
void keeper_write_script(struct buf *out, const char *argusd, const char *config);

/* systemd is the init of this machine. */
bool keeper_has_systemd(void);
/* Where a unit of argusd is, which a package brought or somebody wrote; NULL: there is none. */
const char *keeper_find_unit(void);
/* Where ours goes. */
extern const char KEEPER_UNIT[];
