/* SPDX-License-Identifier: Apache-2.0 */
/* logparts.h - one part of a log of an attempt, read in the worker pool. */
#pragma once
#include <stdint.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"

/* done gets it, borrowed; bytes may be changed. */
struct logpart {
    char *root, *job, *name; /* name: of the log, in the attempt's directory */
    int k;
    uint64_t offset; /* asked for; with since where that is */
    usec_t since;    /* 0: any time */
    size_t want;
    uint64_t at, end; /* where the bytes begin, behind a gap perhaps; where the log ends now */
    size_t n;
    char *bytes;
    int result; /* -ENOENT: there is no log yet */
    struct err err;
    void (*done)(struct logpart *p, void *arg);
    void *arg;
};

struct logpart_ask {
    const char *root, *job, *name; /* copied */
    int k;
    uint64_t offset;
    usec_t since; /* from the first byte on that may have been written since then; 0: from offset */
    size_t want;
    void (*done)(struct logpart *p, void *arg);
    void *arg;
};

/* done is called on the loop, always, once. */
void logpart_read(uv_loop_t *loop, const struct logpart_ask *ask);
