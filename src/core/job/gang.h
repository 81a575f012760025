/* SPDX-License-Identifier: Apache-2.0 */
/* gang.h - the nodes that one job has leased together, and its GPUs on each of them.
 *
 * The text form is "a:0+1,b:2": nodes in the gang's order, the driver's first, each with its GPUs;
 * a node alone ("a") has no GPUs of the job, or it is not known which. Stores keep that text; a
 * store that was written before GPUs were known has the names alone, which is the same text. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { GANG_GPUS_MAX = 64 }; /* of one node */

struct gang_node {
    char *name;
    uint64_t gpus; /* bit n: GPU n, wholly or a share of it */
};

/* Zeroed: nothing is leased. */
struct gang {
    struct gang_node *v;
    size_t n;
};

/* name: of so many bytes; copied. */
void gang_add(struct gang *g, const char *name, size_t len, uint64_t gpus);
void gang_release(struct gang *g);
void gang_copy(struct gang *dst, const struct gang *src); /* src NULL: of nothing */

/* What is no GPU of a node is left out. text NULL: nothing is leased. */
void gang_from_text(const char *text, struct gang *ret);
void gang_to_text(const struct gang *g, struct buf *out);
/* "a,b", to be freed; NULL where nothing is leased. */
char *gang_names(const struct gang *g);

/* Where the driver is sent; NULL where nothing is leased. Borrowed. */
const char *gang_driver(const struct gang *g);
/* That node comes first, if it is one of them. */
void gang_set_driver(struct gang *g, const char *name);
bool gang_has(const struct gang *g, const char *name); /* name may be NULL */
/* Do they have a node in common? */
bool gang_meets(const struct gang *a, const struct gang *b);
/* How many GPUs of this node are leased, shares of one included. */
int gang_node_gpus(const struct gang_node *n);
