/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - the three ways to fill an array of char, and the units of bytes.
 *
 * No function here returns a length: callers use them where a cut text is acceptable or where
 * the array is known to be large enough. */
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void text_copy_to(char *dst, size_t size, const char *text)
{
    assert(size > 0);
    size_t n = strnlen(text, size - 1);
    memcpy(dst, text, n);
    dst[n] = '\0';
}

void text_vprintf_to(char *dst, size_t size, const char *fmt, va_list args)
{
    assert(size > 0);
    (void)vsnprintf(dst, size, fmt, args); /* a cut text is this function's promise */
}

void text_printf_to(char *dst, size_t size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    text_vprintf_to(dst, size, fmt, args);
    va_end(args);
}

bool text_is_formula(const char *text)
{
    return *text && strchr("=+-@\t\r", *text);
}

const char *text_bytes_unit(double *bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t i = 0;
    while (fabs(*bytes) >= 1024 && i + 1 < array_len(units)) {
        *bytes /= 1024;
        i++;
    }
    return units[i];
}
