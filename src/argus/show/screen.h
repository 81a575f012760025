/* SPDX-License-Identifier: Apache-2.0 */
/* screen.h - the terminal as the commands write to it: colours pass, whatever else would steer it
 * is shown.
 *
 * Pages are full of texts that somebody else chose: notes, names, the answer of a service. Tables
 * clean their cells; this holds for every command, also for one that prints a text as it came. */
#pragma once
#include <stdio.h>

/* Written line by line through ansi.h; fclose() lets the rest out and leaves `to` open. Borrows
 * `to`, which has to live as long. NULL: there is no memory for it. */
FILE *screen_open(FILE *to);
