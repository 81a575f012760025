/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - sentences that are said late: a code and its arguments until somebody reads them.
 *
 * A message travels as a code and a text. The text of one is a JSON object, its arguments:
 * {"first":"job-7","at":"2026-01-01T10:00Z"}. A text that is no object is a sentence already: of a
 * source that has no row here, or of a store of an older version, whose names are known by the
 * words before them. The catalogue in message.c has
 * the sentences of each code in each language. Some arguments are names of jobs, projects and
 * users: the listener says of each whether it may be heard, so privacy depends on no wording.
 * Pure. */
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"

enum message_language { MESSAGE_ENGLISH, MESSAGE_CHINESE, MESSAGE_LANGUAGES };

enum message_name { MESSAGE_NO_NAME, MESSAGE_JOB, MESSAGE_PROJECT, MESSAGE_USER };
enum message_hearing {
    MESSAGE_NAMED,    /* by its name */
    MESSAGE_ANOTHERS, /* "another's job" "another project" "another user" */
    MESSAGE_OVER,     /* "a job that is over" */
};

/* To whom it is said. hears NULL: every name. */
struct message_listener {
    enum message_language language;
    enum message_hearing (*hears)(enum message_name kind, const char *name, void *arg);
    void *arg;
};

/* The sentence, either text itself or in *ret, which is zeroed memory and yours to release. NULL
 * texts are "". Arguments that no row of the code has are said as the code. */
const char *message_say(const char *code,
                        const char *text,
                        const struct message_listener *listener,
                        struct buf *ret);
/* In English, for logs with every name, for files that others read without any: cut to size. */
void message_to_string(const char *code, const char *text, bool named, char *ret, size_t size);

/* The arguments as a JSON object, null in place of each name that he may not hear. Heap; NULL for a
 * sentence. */
char *message_args(const char *code, const char *text, const struct message_listener *listener);

/* Writing arguments: message_begin(), jout_… into j, message_end(). */
struct message {
    struct buf buf;
    struct jout j;
};
void message_begin(struct message *m);
/* The arguments that text has, beside those there are. */
void message_add(struct message *m, const char *text);
/* The object into text; "{}" where it does not fit. */
void message_end(struct message *m, char *text, size_t size);
/* An argument that is a message itself. text: as above, or a sentence. */
void message_put(struct jout *j, const char *key, const char *code, const char *text);

/* The catalogue, row by row: NULL behind the last. For tests. */
const char *message_row(size_t i, enum message_language language, const char **ret_code);
