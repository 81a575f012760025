/* SPDX-License-Identifier: Apache-2.0 */
/* metric_json.h - the numbers of a JSON object that a program printed among its metrics.
 *
 * A metric must not be lost because of what stands beside it, so this reader takes more than JSON
 * (RFC 8259): a value that it cannot read costs that value alone. One table of rules:
 *
 *     3, -2.5e-3, 1e999, 2^70   numbers of any size; what is too large is infinite
 *     NaN Infinity -Infinity    as json.dumps() of Python writes them; nan, inf, -inf too
 *     true, false               1, 0
 *     null                      NaN: it has no value in this step
 *     {…}                       its members, as "outer/inner", METRIC_JSON_DEPTH deep; unread below
 *     "text", […]               no metric, and no error: passed over
 *     anything else             unread: told with its key, and reading goes on behind it
 *     a key twice               the last one counts
 *     \uD83D alone, \u0000      U+FFFD and a blank, in a key
 *     an object without its end half a line: no object
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { METRIC_JSON_DEPTH = 4 };

/* depth: how many objects lie around it, from 0. is_object: it has members, which follow. `name`
 * has n bytes, whatever they are, and lives as long as the call. */
struct metric_json_value {
    const char *name;
    size_t n;
    int depth;
    bool is_object, is_unread;
    double value;
};

typedef void (*metric_json_fn)(const struct metric_json_value *v, void *arg);

/* Reads the object that begins at text[0] and tells of each member in its order. Returns how many
 * bytes it has; 0, and maybe some members told, where it has no end or is no object. */
size_t metric_json_read(const char *text, size_t n, metric_json_fn each, void *arg);
