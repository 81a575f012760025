/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - glue for jansson: reading outside bytes, and writing without a tree.
 *
 * Readers never trust a type: a member that is missing or of another type gives
 * the default. Numbers are accepted as numbers and as strings (Ray sends both). */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Parses a text of at most max bytes. ERR_TOO_LARGE, or ERR_BAD_REQUEST with line:column. *ret
 * is a new reference (json_decref). */
must_check int json_parse(const char *text, size_t len, size_t max, json_t **ret, struct err *err);

/* Borrowed; dflt when absent or not a string. */
const char *json_get_str(const json_t *object, const char *key, const char *dflt);
int64_t json_get_int(const json_t *object, const char *key, int64_t dflt);
double json_get_real(const json_t *object, const char *key, double dflt);
bool json_get_bool(const json_t *object, const char *key, bool dflt);
/* Borrowed; NULL when absent or not an object / array. */
const json_t *json_get_object(const json_t *object, const char *key);
const json_t *json_get_array(const json_t *object, const char *key);

void json_unrefp(json_t **p); /* for _cleanup_ */

enum { JSON_REAL_TEXT = 32 };
/* The shortest decimal number that reads back as the same double: "1e-05", and not
 * "1.0000000000000001e-05". v is finite. */
void json_real_text(double v, char ret[static JSON_REAL_TEXT]);

/* A writer: appends JSON text to a buf and puts commas by itself.
 *   struct jout j = jout_begin(&buf);
 *   jout_open(&j, NULL, '{'); jout_str(&j, "id", id); jout_close(&j, '}');
 * key is NULL inside arrays. Invalid UTF-8 becomes U+FFFD. A NULL string is null.
 * The buf's `failed` tells of overflow. */
struct jout {
    struct buf *out;
    bool comma;
};

struct jout jout_begin(struct buf *out);
void jout_open(struct jout *j, const char *key, char bracket);
/* The key of the value that is written next, with NULL as its key: n bytes of a name of ours, which
 * needs no escape. */
void jout_key(struct jout *j, const char *key, size_t n);
void jout_close(struct jout *j, char bracket);
void jout_str(struct jout *j, const char *key, const char *value);
void jout_strn(struct jout *j, const char *key, const char *value, size_t n);
void jout_int(struct jout *j, const char *key, int64_t value);
void jout_real(struct jout *j, const char *key, double value); /* NaN and inf become null */
void jout_bool(struct jout *j, const char *key, bool value);
void jout_null(struct jout *j, const char *key);
/* A number that is not known below 0: then null. */
void jout_count(struct jout *j, const char *key, int64_t value);
/* A wall time as RFC 3339 text, null for 0. */
void jout_time(struct jout *j, const char *key, uint64_t wall_usec);
/* text is JSON already. */
void jout_raw(struct jout *j, const char *key, const char *text);
