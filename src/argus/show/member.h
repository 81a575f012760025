/* SPDX-License-Identifier: Apache-2.0 */
/* member.h - a member of the server's reply as a text for people. */
#pragma once
#include <stdint.h>

#include "base/json.h"

/* Borrowed; "-" when the member is missing or empty. */
const char *member_str(const json_t *object, const char *key);

/* The member "a", or "a.b" of the object in it; NULL when there is none. Borrowed. */
const json_t *member_at(const json_t *object, const char *path);

enum { SIZE_TEXT_MAX = 32 };
/* "1.5 GiB". Returns text. */
const char *size_text(int64_t bytes, char text[static SIZE_TEXT_MAX]);
