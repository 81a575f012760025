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
/* The first that the machine is known not to meet, as a sentence: "needs torch>=2.4, and there
 * is 2.1.0". False: there is none; what a probe did not see is no reason. */
bool needs_find_unmet(const struct strv *needs,
                      const struct node_facts *facts,
                      char *ret,
                      size_t size);
