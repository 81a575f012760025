/* SPDX-License-Identifier: Apache-2.0 */
/* term.h - what stands at the other end of stdout and stderr. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

#include "argus/show/msg.h"

enum style {
    STYLE_PLAIN,
    STYLE_DIM,
    STYLE_BOLD,
    STYLE_GREEN,
    STYLE_YELLOW,
    STYLE_RED,
    STYLE_CYAN,
};

struct term {
    int width;    /* columns; 0 = no terminal, nothing is cut */
    bool is_tty;  /* stdout */
    bool is_talk; /* stderr */
    bool colour;  /* of stdout; NO_COLOR, TERM=dumb and pipes switch it off */
    enum message_language lang;
};

/* Width: $COLUMNS, else the terminal's, else none. */
struct term term_read(void);

/* The sequences around coloured text; "" when colour is off. Borrowed for ever. */
const char *term_on(const struct term *t, enum style style);
const char *term_off(const struct term *t, enum style style);
