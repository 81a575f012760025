/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - how text from a server looks on a terminal: how wide it is, how it is
 * cut, and what of it may not reach the terminal.
 *
 * Text is UTF-8 whatever the locale says (containers seldom set one); a byte that
 * is none counts as one column. East Asian characters are two columns wide. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Decode the character at s (n > 0 bytes): its length, 1 for a byte that is no
 * UTF-8 (then *ret_cp is U+FFFD). */
size_t text_next(const char *s, size_t n, uint32_t *ret_cp);

/* Columns on a terminal. */
int text_width(const char *s);

/* Append s with every control character replaced: tabs and line ends by a space,
 * the others by '?'. What a server sends may never move a cursor. */
void text_clean(struct buf *out, const char *s);

/* Append at most width columns of s (already clean); when something was left out the last
 * column is an ellipsis. */
void text_cut(struct buf *out, const char *s, int width);

/* The same, with the ellipsis in the middle: what tells names apart is often their end. */
void text_cut_middle(struct buf *out, const char *s, int width);

/* Append s broken at spaces so that lines (with indent spaces in front of every
 * one but the first) fit the width. */
void text_wrap(struct buf *out, const char *s, int width, int indent);
