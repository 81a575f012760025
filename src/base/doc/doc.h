/* SPDX-License-Identifier: Apache-2.0 */
/* doc.h - a YAML or JSON text as a tree whose every node knows its place.
 *
 * YAML 1.2 through libfyaml; a text that begins with '{' is tried as JSON first
 * (fast, no places) and read again as YAML when places are wanted. Refused:
 * more than DOC_MAX_BYTES, DOC_MAX_NODES, DOC_MAX_DEPTH, DOC_MAX_KEYS in one
 * mapping, aliases, several documents, duplicate keys, keys that are not text,
 * "? key", NUL in a scalar, tags other than those of the core schema (!!str,
 * !!int …), which must fit. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/doc/problem.h"
#include "base/json.h"

/* KEYS: each key of a mapping is compared with those before it, and so is each pair that is made of
 * one: the time grows with the square of the keys, and one request must not hold the loop. */
enum { DOC_MAX_BYTES = 1 << 20, DOC_MAX_NODES = 20000, DOC_MAX_DEPTH = 32, DOC_MAX_KEYS = 1000 };

enum node_kind { NODE_SCALAR, NODE_MAP, NODE_SEQ };

/* Read-only to everybody but doc.c; lives as long as its doc. */
struct node {
    enum node_kind kind;
    bool plain;       /* scalar without quotes: null, true, 12 have their YAML meaning */
    const char *key;  /* inside a map, else NULL */
    const char *text; /* scalar: its value, NUL-terminated, without NUL inside */
    struct node *first, *next;
    size_t n;                 /* children */
    int line, column;         /* of the value, from 1; 0 when not known */
    int key_line, key_column; /* of the key */
};

struct doc;

/* Parse; every problem found goes into ps (then the result is -EINVAL). With
 * want_places false a JSON text gets no lines: cheap, for the happy path. */
must_check int doc_parse(const char *text,
                         size_t len,
                         bool want_places,
                         struct doc **ret,
                         struct problems *ps);
void doc_free(struct doc *d);
void doc_freep(struct doc **d);
const struct node *doc_root(const struct doc *d);

/* The child of a map, NULL if absent or n is no map (NULL is fine). */
const struct node *node_find(const struct node *n, const char *key);
/* The node that a dotted path names below a map, the map itself for ""; NULL as above. */
const struct node *node_find_path(const struct node *root, const char *path);
/* True for a plain null, ~ or empty scalar. */
bool node_is_null(const struct node *n);
/* Append the tree as JSON under key (NULL inside arrays): plain scalars get their YAML 1.2
 * core-schema type, quoted ones are strings. */
void node_to_json(const struct node *n, struct jout *j, const char *key);
