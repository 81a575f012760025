/* SPDX-License-Identifier: Apache-2.0 */
/* doclines.h - the common shape of a JobSpec, read without libfyaml and three times as fast:
 * lines `key: value` and `key: [a, "b"]`, and `key:` with a list of plain values or one mapping
 * to them below it.
 *
 * Whatever else there is (a quote, a nested mapping, a value on two lines, anything in doubt,
 * every error) is not read here but left to doc.c as if nothing had happened. */
#pragma once
#include "base/doc/doc.h"

/* The tree is made in d. False: not this shape, *ret is untouched. */
bool doclines_read(const char *text, size_t len, struct doc *d, struct node **ret);

/* Lent by doc.c: nodes and texts that live as long as d. */
struct node *doc_new_node(struct doc *d, enum node_kind kind);
const char *doc_keep_text(struct doc *d, const char *s, size_t n);
size_t doc_count_nodes(const struct doc *d);
