/* SPDX-License-Identifier: Apache-2.0 */
/* completion.h - the table of commands as completion scripts. */
#pragma once
#include <stdio.h>

void completion_bash(FILE *out);
void completion_zsh(FILE *out);
void completion_fish(FILE *out);
