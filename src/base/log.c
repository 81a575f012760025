/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - one line per decision to stderr; see log.h.
 * Owns the only mutable state of base: the debug switch read from ARGUS_DEBUG. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

static char debug_words[256];

void log_init(void)
{
    const char *s = getenv("ARGUS_DEBUG");
    text_copy(debug_words, s ? s : ""); /* cut: fewer components */
}

bool log_is_debug(const char *component)
{
    bool on = false;
    size_t n = strlen(component);
    for (const char *p = debug_words; *p;) {
        size_t len = strcspn(p, ",");
        bool off = *p == '-';
        const char *word = p + off;
        size_t word_len = len - off;
        if ((word_len == 3 && !strncmp(word, "all", 3)) ||
            (word_len == n && !strncmp(word, component, n)))
            on = !off;
        p += len + (p[len] == ',');
    }
    return on;
}

/* Whatever would leave the line or steer a terminal becomes spaces: control characters, in UTF-8
 * those of 8 bits too (0x9b is an ESC [ in one). */
static void log_clean(char *line, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)line[i], next = i + 1 < n ? (unsigned char)line[i + 1] : 0;
        if (c < 0x20 || c == 0x7f)
            line[i] = ' ';
        else if (c == 0xc2 && next >= 0x80 && next < 0xa0)
            line[i] = line[i + 1] = ' ';
    }
}

void log_line(enum log_level level, const char *component, const char *fmt, ...)
{
    static const char *const names[] = {"err", "warn", "info", "debug"};
    char line[2048], time[CLOCK_TEXT_MAX];
    int head = snprintf(line, sizeof(line), "%s %s %s: ", clock_to_string(clock_wall(), time),
                        names[level], component);
    va_list ap;
    va_start(ap, fmt);
    int body = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, fmt, ap);
    va_end(ap);
    size_t n = strlen(line);
    if (body >= (int)(sizeof(line) - (size_t)head - 1))
        memcpy(line + n - 3, "...", 3);
    log_clean(line, n);
    line[n++] = '\n';
    (void)!write(STDERR_FILENO, line, n); /* a log that cannot be written is lost */
}
