/* SPDX-License-Identifier: Apache-2.0 */
/* needs.h - what code asks of the machine it runs on: versions of Python, packages, CUDA, driver.
 *
 * A need is a text, "torch>=2.4": a name that a node's probe knows, and specifiers of PEP 440. They
 * are read from a tree's setup files as they are written; nothing is run, so what a setup.py works
 * out is not seen. A line that holds only under a condition (an extra, a platform) is no need. The
 * files are a user's: ceilings hold for all of it, and what cannot be read is passed over. Pure. */
#pragma once
#include "base/err.h"
#include "base/strv.h"

struct node_facts;

enum { NEEDS_MAX = 16, NEEDS_TEXT_MAX = 120, NEEDS_FILE_MAX = 1 << 20 };

/* Setup files by their name in a tree's top directory, in the order in which the first that names a
 * need is believed; NULL ends them. */
extern const char *const needs_files[];
/* Appends what this file asks for and ret does not name yet. */
void needs_read(const char *file, const char *text, struct strv *ret);

/* One that a person gave. ERR_BAD_SPEC: an unknown name, or specifiers that cannot be read. */
must_check int needs_check(const char *need, struct err *err);
/* What a probe saw, for needs_find_unmet(): "python=3.11.2 torch=2.4.0+cu121"; what is no version
 * is left out. Yours. */
char *needs_versions(const struct node_facts *facts);

enum { NEEDS_VERSION_MAX = 32 };
struct needs_unmet {
    char need[NEEDS_TEXT_MAX], has[NEEDS_VERSION_MAX];
};
/* needs: texts parted by spaces. The first that these versions do not meet: true. What nobody saw
 * is no reason. ret may be NULL. */
bool needs_find_unmet(const char *needs, const char *versions, struct needs_unmet *ret);
/* The first that these versions say nothing of; has is "". */
bool needs_find_unseen(const char *needs, const char *versions, struct needs_unmet *ret);
/* Those that hold for code that brings its own Python: what its packages are is not the machine's.
 * Yours. */
char *needs_beside_own_python(const char *needs);
