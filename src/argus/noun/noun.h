/* SPDX-License-Identifier: Apache-2.0 */
/* noun.h - the end of each file of this folder: the commands of one noun, for the table that the
 * build makes of the list in meson.build. */
#pragma once
#include "argus/cli/cli.h"
#include "argus/cli/command.h"
#include "base/str.h"

#define NOUN(name, rows)                                                                           \
    extern const struct noun noun_##name;                                                          \
    const struct noun noun_##name = {(rows), array_len(rows)}
