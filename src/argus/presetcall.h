/* SPDX-License-Identifier: Apache-2.0 */
/* presetcall.h - presets on the server, as lines for people. */
#pragma once
#include "argus/cli.h"
#include "argus/table.h"

/* "/v1/presets/<name>?project=…"; project NULL = not said. Yours to free(). */
char *presetcall_path(const char *name, const char *project);
void presetcall_row(struct table *t, const json_t *preset, const struct when *w);
/* What it is for, and its holes. */
void presetcall_print(struct cli *cli, const json_t *preset, bool wide);
