/* SPDX-License-Identifier: Apache-2.0 */
/* noderecord.h - a node as the JSON text that the store keeps (kind "node"), and back. */
#pragma once
#include "base/buf.h"
#include "base/json.h"
#include "core/job/node.h"

enum { NODERECORD_MAX = 128 << 10 };

void noderecord_write(const struct node_row *n, struct buf *out);
/* What a text lacks keeps its zero; ERR_STORE for one that cannot be a node. */
must_check int noderecord_read(const char *text, struct node_row **ret, struct err *err);
