/* SPDX-License-Identifier: Apache-2.0 */
/* self.h - where the other programs of Argus lie, seen from the one that runs. */
#pragma once

/* The path of a program of ours: beside this one, in its folder of a build, or in bin/ of the
 * package whose lib/argus/ holds this one (tools/package). NULL: in none of them; else yours to
 * free(). */
char *self_find_program(const char *name);
