/* SPDX-License-Identifier: Apache-2.0 */
/* raylet_names.h - inside of this layer: the words by which a script knows the processes of one
 * node of ours. */
#pragma once
#include "base/err.h"
#include "base/strv.h"

/* -EINVAL: one of them cannot be a part of a path on the machine. */
must_check int raylet_check_names(const char *owner, const char *node, struct err *err);
/* verb OWNER NODE MARK. The mark has a fixed length, so that no node's is the beginning of
 * another's. */
void raylet_add_names(struct strv *words, const char *verb, const char *owner, const char *node);
