/* SPDX-License-Identifier: Apache-2.0 */
/* rootnames.h - the other paths by which this machine reaches the shared root.
 *
 * The path in argus.yaml may be a link, or one of several mounts of the same directory; people
 * write the path that they see. What leads to the very directory (st_dev, st_ino) is the root by
 * another name, and is spelled as argus.yaml spells it before a spec is read. Links that people
 * have of their own elsewhere are not looked for. */
#pragma once
#include "base/strv.h"

enum { ROOTNAMES_MAX = 16 };

/* Adds them to ret, emptied first. Blocks like any look at the root: for the worker pool. */
void rootnames_find(const char *root, struct strv *ret);
/* The text with root in place of each of these paths, where one begins; NULL: none is in it. Heap.
 */
char *rootnames_respell(const char *text, const struct strv *names, const char *root);
