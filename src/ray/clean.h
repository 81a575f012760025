/* SPDX-License-Identifier: Apache-2.0 */
/* clean.h - Ray's bytes made fit for a strict JSON reader.
 *
 * Ray's replies carry whatever a driver printed, written by Python, whose JSON is
 * laxer than JSON: bytes that are not UTF-8, lone surrogates, NUL, NaN. A log line
 * must never make the state of a cluster unreadable. */
#pragma once
#include "base/buf.h"

/* Append text with each byte that is not UTF-8, each lone surrogate and each NUL
 * escape replaced by U+FFFD, raw control characters in strings by blanks, and
 * NaN and Infinity by null. Good JSON comes out as it was. -EMSGSIZE: out is full.
 * -E2BIG: more than max_values values, which would cost a hundred times their bytes. */
must_check int clean_json(const char *text, size_t len, size_t max_values, struct buf *out);
