/* SPDX-License-Identifier: Apache-2.0 */
/* manual.h - the table of commands as text for people: --help, man pages, and
 * completion for three shells. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

#include "argus/cli/command.h"

/* `argus help`: every command with its summary. */
void manual_overview(FILE *out);
/* `argus NOUN --help`: the commands that begin with this word. False, and nothing is printed, when
 * none does. */
bool manual_noun(const char *noun, FILE *out);
/* `argus CMD --help`. */
void manual_help(const struct command *c, FILE *out);
/* A man page in roff; c NULL is argus(1) itself. */
void manual_roff(const struct command *c, FILE *out);
/* "command<TAB>summary" and "command --option<TAB>doc" lines, for checks of the docs. */
void manual_list(FILE *out);
