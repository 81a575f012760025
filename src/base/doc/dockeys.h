/* SPDX-License-Identifier: Apache-2.0 */
/* dockeys.h - where a YAML text has an explicit key, "? key".
 *
 * libfyaml 0.7.12 frees what it does not own when a tab stands in one, so that none may reach it.
 * A question mark in a comment, in quotes, in block text or within a plain text is none. In doubt
 * it is taken for a key: a text is refused then that could have been read. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* True: there is one, and *ret_line and *ret_column (from 1) say where its '?' stands. */
bool dockeys_find(const char *text, size_t len, int *ret_line, int *ret_column);
