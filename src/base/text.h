/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - fills arrays of char: the size is the array's own, and a pointer does not compile.
 *
 * A text that is longer than the array is cut after the last byte that fits. The array ends with
 * a zero byte in every case. The source must not lie inside the array.
 *
 * The functions whose names end in _to are for a buffer that arrives as a pointer with its size
 * (at least 1). Code that must know about a cut text uses struct buf or snprintf() instead. */
#pragma once
#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

/* sizeof(array); a pointer is refused at compile time. */
#define TEXT_SIZE(array)                                                                           \
    (sizeof(array) +                                                                               \
     0 * sizeof(struct {                                                                           \
         static_assert(!__builtin_types_compatible_p(__typeof__(array), __typeof__(&(array)[0])),  \
                       "the size of the text is needed: this is a pointer, not an array");         \
         char unused;                                                                              \
     }))

#define text_copy(array, text) text_copy_to((array), TEXT_SIZE(array), (text))
#define text_printf(array, ...) text_printf_to((array), TEXT_SIZE(array), __VA_ARGS__)
#define text_vprintf(array, fmt, args) text_vprintf_to((array), TEXT_SIZE(array), (fmt), (args))

void text_copy_to(char *dst, size_t size, const char *text);
void text_printf_to(char *dst, size_t size, const char *fmt, ...) printf_like(3, 4);
void text_vprintf_to(char *dst, size_t size, const char *fmt, va_list args) printf_like(3, 0);

/* A table would take it for a formula: one writes ' before it into a cell of CSV, and the table
 * shows it as a text. */
bool text_is_formula(const char *text);

/* The unit to tell so many bytes in, "B" to "PiB"; *bytes is changed to it, so that it is below
 * 1024 of every unit but the last. */
const char *text_bytes_unit(double *bytes);
