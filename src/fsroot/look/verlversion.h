/* SPDX-License-Identifier: Apache-2.0 */
/* verlversion.h - which verl lies in a snapshot, or in the venv of an interpreter. Blocking. */
#pragma once

/* The version of verl in a snapshot (<path>/verl/version/version), or of the one
 * installed beside an interpreter (<venv>/bin/python). NULL: none found on the shared root. */
char *fsroot_verl_version(const char *root, const char *path);

struct rootdir;
/* The path of site-packages/<name> in the venv of this interpreter, below top; NULL: there is none.
 */
char *fsroot_beside_interpreter(const struct rootdir *top, const char *below, const char *name);
