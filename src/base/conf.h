/* SPDX-License-Identifier: Apache-2.0 */
/* conf.h - one typed table says what keys a YAML mapping may have.
 *
 * A row is a dotted key, a type, where it lands in a struct, its default, its
 * bounds and a line of documentation. Reading reports every problem at once with
 * place and nearest known name. Used for argus.yaml and for the JobSpec; the
 * reference documentation is made from the same rows. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/doc.h"
#include "base/problem.h"
#include "base/strv.h"

enum conf_type {
    CONF_STR,   /* char * */
    CONF_INT,   /* int64_t */
    CONF_REAL,  /* double */
    CONF_BOOL,  /* bool */
    CONF_SPAN,  /* usec_t: 90s 30m 12h 2d */
    CONF_SIZE,  /* uint64_t bytes: 512MiB */
    CONF_ENUM,  /* int: index into names */
    CONF_STRV,  /* struct strv: a list of texts, or one text */
    CONF_PAIRS, /* struct pairs: a mapping of texts */
    CONF_NODE,  /* const struct node *: as it is, borrowed from the doc */
};

enum conf_flags {
    CONF_REQUIRED = 1 << 0,
    CONF_RELOADABLE = 1 << 1,
    CONF_ACCEPTED = 1 << 2, /* known and valid, but nothing acts on it yet: a warning says so */
};

struct conf_key {
    const char *name; /* "ray.head.port" */
    enum conf_type type;
    size_t offset;
    const char *dflt;         /* as text, parsed like input; NULL = zero / empty */
    double min, max;          /* of numbers, spans in seconds, sizes in bytes; both 0 = none */
    const char *const *names; /* CONF_ENUM: NULL-terminated */
    unsigned flags;
    const char *doc;
};

/* Fill *out (zeroed by the caller) with defaults, then with what root (a map, or
 * NULL for none) holds. Problems are appended; *out is whole and releasable even then. */
void conf_read(const struct conf_key *keys,
               size_t n,
               const struct node *root,
               void *out,
               struct problems *ps);
/* Free what conf_read put into *out. */
void conf_release(const struct conf_key *keys, size_t n, void *out);
/* Reference text: "key  type  default  doc" as YAML comments and keys. */
void conf_describe(const struct conf_key *keys, size_t n, struct buf *out);
