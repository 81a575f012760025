/* SPDX-License-Identifier: Apache-2.0 */
/* pep440.h - versions of Python packages: their order, and whether one satisfies specifiers.
 *
 * By PEP 440: epochs, pre-, post- and development releases, local versions, ~= and wildcards. The
 * version is that of something that is installed, so a pre-release is taken wherever the order
 * allows it, as `pip check` does. Pure. */
#pragma once
#include <stdbool.h>

#include "base/err.h"

enum { PEP440_RELEASE_MAX = 8, PEP440_LOCAL_MAX = 32 };

enum pep440_phase { PEP440_ALPHA, PEP440_BETA, PEP440_CANDIDATE, PEP440_FINAL };

struct pep440 {
    long epoch;
    long release[PEP440_RELEASE_MAX]; /* the rest is 0 */
    int n;                            /* numbers that were written */
    enum pep440_phase phase;
    long phase_number;            /* of a pre-release */
    long post, dev;               /* -1: none */
    char local[PEP440_LOCAL_MAX]; /* "cu121"; "": none */
};

/* "2.4.0+cu121", "1.0rc1". False: it is no version, or longer than any. */
bool pep440_read(const char *text, struct pep440 *ret);
/* Below, equal to or above 0. */
int pep440_compare(const struct pep440 *a, const struct pep440 *b);

/* Specifiers, ">=2.4,!=2.5.*". ERR_BAD_SPEC with the one that cannot be read. */
must_check int pep440_check(const char *specifiers, struct err *err);
/* False: one of them is not satisfied. What cannot be read is no reason. */
bool pep440_satisfies(const struct pep440 *version, const char *specifiers);
