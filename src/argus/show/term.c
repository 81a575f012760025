/* SPDX-License-Identifier: Apache-2.0 */
/* term.c - reads the environment and the descriptors once; see term.h. */
#include "argus/show/term.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/str.h"

static int read_width(bool is_tty)
{
    int64_t columns = 0;
    const char *text = getenv("COLUMNS");
    if (text && str_to_int(text, 20, 10000, &columns, NULL) == 0)
        return (int)columns;
    struct winsize ws = {0};
    if (is_tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col)
        return ws.ws_col < 20 ? 20 : ws.ws_col;
    return is_tty ? 80 : 0;
}

static const char *locale_name(void)
{
    static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; i < array_len(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return value;
    }
    return NULL;
}

struct term term_read(void)
{
    struct term t = {.is_tty = isatty(STDOUT_FILENO),
                     .is_talk = isatty(STDERR_FILENO),
                     .lang = lang_from_string(locale_name())};
    const char *no_color = getenv("NO_COLOR");
    t.width = read_width(t.is_tty);
    t.colour = t.is_tty && !(no_color && *no_color) && !str_eq(getenv("TERM"), "dumb");
    return t;
}

const char *term_on(const struct term *t, enum style style)
{
    static const char *const on[] = {
        [STYLE_PLAIN] = "",         [STYLE_DIM] = "\033[2m",     [STYLE_BOLD] = "\033[1m",
        [STYLE_GREEN] = "\033[32m", [STYLE_YELLOW] = "\033[33m", [STYLE_RED] = "\033[31m",
        [STYLE_CYAN] = "\033[36m",
    };
    return t->colour ? on[style] : "";
}

const char *term_off(const struct term *t, enum style style)
{
    return t->colour && style != STYLE_PLAIN ? "\033[0m" : "";
}
