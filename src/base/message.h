/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - sentences that are said late: a code and its arguments until somebody reads them.
 *
 * A message travels as a code and a text. The text of one is a JSON object, its arguments:
 * {"first":"job-7","at":"2026-01-01T10:00Z"}. A text that is no object is a sentence already: of a
 * source that has no row here, or of a store of an older version, whose names are known by the
 * words before them. The catalogue (message_rows.h) has the sentences of each code in each
 * language. Some arguments are names of jobs, projects and users: the listener says of each whether
 * it may be heard, so privacy depends on no wording.
 *
 * An argument may be a message itself, or a list of messages, which are said one after the other. A
 * code may class what is said without being a row, as the class of a failure does: then the text is
 * {"message": one}, and that message is said in its place. Pure. */
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

enum message_language { MESSAGE_ENGLISH, MESSAGE_CHINESE, MESSAGE_LANGUAGES };

/* The language that the reader likes best by the value of an Accept-Language header; NULL is
 * fine. */
enum message_language message_language(const char *accepted);

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

/* The catalogue has rows of this code. */
bool message_is_known(const char *code);
/* The sentence, either text itself or in *ret, which is zeroed memory and yours to release. NULL
 * texts are "". Of arguments that no row of the code has all, the row that asks for the least is
 * said, with nothing in the place of what is missing. */
const char *message_say(const char *code,
                        const char *text,
                        const struct message_listener *listener,
                        struct buf *ret);
/* All that a page has of a message, of one reading: what is said, the fix and the arguments. */
struct message_page {
    const char *text, *fix; /* fix NULL: the catalogue has nothing to say */
    char *args;    /* a JSON object, null in place of each name that the listener may not hear; NULL
                      for a sentence */
    bool is_whole; /* of a code: no argument was missing */
    struct buf held, held_fix;
};
void message_page(const char *code,
                  const char *text,
                  const struct message_listener *listener,
                  struct message_page *ret);
void message_page_release(struct message_page *p);
/* In English, for logs with every name, for files that others read without any: cut to size. */
void message_to_string(const char *code, const char *text, bool named, char *ret, size_t size);

/* The schema of the arguments in openapi.json. */
#define MESSAGE_ARGS_SCHEMA                                                                        \
    "{\"type\":[\"object\",\"null\"],\"additionalProperties\":{\"description\":"                   \
    "\"arguments of the code; null: there are none\"}}"

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

/* One argument, or a message as an argument; a list ends with a NULL key. An argument without key
 * or with an empty text is left out. Borrowed. */
struct message_arg {
    const char *key, *text, *message; /* text NULL: a number; message: a code whose text text is */
    double number;
};
#define MESSAGE_STR(name, value)                                                                   \
    {                                                                                              \
        .key = (name), .text = (value)                                                             \
    }
#define MESSAGE_NUM(name, value)                                                                   \
    {                                                                                              \
        .key = (name), .number = (double)(value)                                                   \
    }
#define MESSAGE_OF(name, code, value)                                                              \
    {                                                                                              \
        .key = (name), .text = (value), .message = (code)                                          \
    }
/* The text of a code that classes another message; see above. code NULL: text is a sentence. */
#define MESSAGE_SAYS(code, text) MESSAGE_ARGS(MESSAGE_OF("message", code, text))
/* What another error says, as an argument. */
#define MESSAGE_ERR(name, err)                                                                     \
    {                                                                                              \
        .key = (name), .text = (err)->message ? (err)->args : (err)->text,                         \
        .message = (err)->message                                                                  \
    }
#define MESSAGE_ARGS(...) ((const struct message_arg[]){__VA_ARGS__, {.key = NULL}})
#define MESSAGE_NO_ARGS ((const struct message_arg[]){{.key = NULL}})

/* The arguments as a text of a message; long ones are cut until the text fits. */
void message_write(char *text, size_t size, const struct message_arg *args);

/* The catalogue's own text of a code, which is never freed; NULL: it has no such code. */
const char *message_code(const char *code);
/* The first row of the code as it stands, with its holes; never freed. The code itself where the
 * catalogue has none. */
const char *message_words(const char *code, enum message_language in);
/* What an error says in one text, to be kept: "code{…}", or a sentence where it has no code. Taken.
 */
char *message_keep(const struct err *err);
/* A text that was kept, as it is said to this listener. Heap; NULL of NULL. */
char *message_kept_say(const char *kept, const struct message_listener *listener);
/* Refuses with a text that was kept. */
int message_refuse_kept(struct err *err, int code, const char *kept);
/* The catalogue's own code of a text that was kept, or NULL; and the text behind the code. */
const char *message_kept_code(const char *kept);
const char *message_kept_text(const char *kept);
#define MESSAGE_KEPT(name, kept)                                                                   \
    {                                                                                              \
        .key = (name), .text = message_kept_text(kept), .message = message_kept_code(kept)         \
    }

/* As err_set(), with a code of the catalogue and its arguments instead of a sentence: the sentence
 * in English is the error's text, and whoever shows the error may say it in another language. */
int message_refuse(struct err *err, int code, const char *message, const struct message_arg *args);
/* Puts a sentence around the error: it becomes the argument `why` of that message, in its reader's
 * language too; the code stays. Returns err->code. */
int message_wrap(struct err *err, const char *message);
/* As message_refuse(), with arguments that message_write() has written. */
int message_refuse_text(struct err *err, int code, const char *message, const char *args);
