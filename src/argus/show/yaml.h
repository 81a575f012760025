/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.h - JSON values as block YAML that reads back with the same types. */
#pragma once
#include "base/buf.h"
#include "base/json.h"

/* Append v; overflow shows in out->failed. */
void yaml_add(struct buf *out, const json_t *v);
