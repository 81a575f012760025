/* SPDX-License-Identifier: Apache-2.0 */
/* training_message.h - a sentence about a training as members of a page: code, args, text and fix,
 * which base/said.h says anew in its reader's language. */
#pragma once
#include "base/field.h"
#include "base/message.h"

enum { TRAINING_ARGS_MAX = 768 };

struct training_message {
    const char *code, *text, *fix;
    const char *args; /* a JSON object */
    char held_args[TRAINING_ARGS_MAX];
    struct message_page page;
};
/* In English, and in its place: it points into itself. */
void training_message_say(struct training_message *m,
                          const char *code,
                          const struct message_arg *args);
/* The same of arguments as message_write() has written them. */
void training_message_say_text(struct training_message *m, const char *code, const char *args);
void training_message_release(struct training_message *m);

/* Its rows in the table of a struct that has it as `member`. */
#define TRAINING_MESSAGE_ROWS(of, member)                                                          \
    FIELD_AT(of, "code", FIELD_STR, member.code, .flags = FIELD_ALWAYS),                           \
        FIELD_AT(of, "args", FIELD_JSON, member.args, .schema = MESSAGE_ARGS_SCHEMA),              \
        FIELD_AT(of, "text", FIELD_STR, member.text, .flags = FIELD_ALWAYS),                       \
        FIELD_AT(of, "fix", FIELD_STR, member.fix)
