/* SPDX-License-Identifier: Apache-2.0 */
/* unit_message.h - messages in English, for unit tests that look at what is said. The texts live as
 * long as the block that asked. */
#pragma once
#include <stdio.h>

#include "base/doc/problem.h"
#include "base/message.h"
#include "base/str.h"

enum { UNIT_SAID_MAX = 1024 };

static inline const char *unit_said_into(char *said, const char *code, const char *text)
{
    message_to_string(code, text, true, said, UNIT_SAID_MAX);
    return said;
}

static inline const char *unit_fix_into(char *said, const char *code, const char *text)
{
    static const struct message_listener to = {.language = MESSAGE_ENGLISH};
    struct message_page page;
    message_page(code, text, &to, &page);
    (void)snprintf(said, UNIT_SAID_MAX, "%s", str_or(page.fix, ""));
    message_page_release(&page);
    return said;
}

/* "code: sentence (fix)" */
static inline const char *unit_problem_into(char *said, const struct problem *p)
{
    struct problem_page page = problem_say(p, MESSAGE_ENGLISH);
    (void)snprintf(said, UNIT_SAID_MAX, "%s: %s%s%s%s", str_or(p->code, ""), page.detail,
                   page.hint ? " (" : "", str_or(page.hint, ""), page.hint ? ")" : "");
    problem_page_release(&page);
    return said;
}

#define unit_problem(p) unit_problem_into((char[UNIT_SAID_MAX]){0}, p)
#define unit_said(code, text) unit_said_into((char[UNIT_SAID_MAX]){0}, code, text)
/* "" where there is none. */
#define unit_fix(code, text) unit_fix_into((char[UNIT_SAID_MAX]){0}, code, text)
