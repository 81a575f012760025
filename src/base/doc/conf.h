/* SPDX-License-Identifier: Apache-2.0 */
/* conf.h - reads a YAML or JSON mapping by the rows of a field table (field.h).
 *
 * Reading reports every problem at once, with place and nearest known name. Used for argus.yaml,
 * the JobSpec, a NodeSpec, rules, and bodies of requests. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/doc/doc.h"
#include "base/doc/problem.h"
#include "base/field.h"

/* Fill *out (zeroed by the caller) with defaults, then with what root (a map, or
 * NULL for none) holds. Problems are appended; *out is whole and releasable even then. */
void conf_read(const struct field *keys,
               size_t n,
               const struct node *root,
               void *out,
               struct problems *ps);
/* The rows of `which` alone, those inside FIELD_INLINE too: a body that asks for a new object
 * (is_change false), or for a change of the one that *out is: then nothing gets a default and
 * nothing is required. */
void conf_read_table(const struct field_table *t,
                     unsigned which,
                     bool is_change,
                     const struct node *root,
                     void *out,
                     struct problems *ps);
/* Free what conf_read put into *out. */
void conf_release(const struct field *keys, size_t n, void *out);
