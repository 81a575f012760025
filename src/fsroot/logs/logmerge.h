/* SPDX-License-Identifier: Apache-2.0 */
/* logmerge.h - several logs of an attempt as one row of lines: the driver's and its workers'.
 *
 * A look takes whole lines from each log, from the place where the look before it ended; the first
 * look takes the newest ones. Every log has the same share of a look, so that a loud one holds up
 * none of the others; what is left of it comes with the next look.
 *
 * Logs of workers say nowhere when a line was written. Lines of one look stand in the order of the
 * times that they themselves begin with (2026-01-31 12:00:00,123); a line without one stays behind
 * the line before it in its log. Logs without any time take turns, each by how far it has come.
 * The lines of one log never change their order. Ray repeats in the driver's log what workers
 * print, behind "(name pid=11)": where a log of that process is a source, the repetition is left
 * out. Blocking. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fsroot/logs/loglist.h"

enum {
    LOGMERGE_SOURCES_MAX = 128,
    LOGMERGE_LINES_MAX = 2000,     /* of a look */
    LOGMERGE_LINE_BYTES = 8 << 10, /* of one line; what is longer is cut */
    LOGMERGE_PLACES_MAX = 3200,    /* bytes of text: they stand in the address of a request */
};

struct logmerge_ask { /* all borrowed for the call */
    const char *root, *job;
    int attempt;
    bool has_driver;
    bool is_over; /* no more is written: a last line without its end is whole */
    int64_t tail; /* of a first look: its last so many lines; below 0: all */
    const char
        *places; /* of the look before; "": each log from its first byte; NULL: a first look */
};

struct logmerge_source {
    const struct loglist_file *file; /* NULL: the driver's */
    uint64_t next;                   /* offset of the first byte that was not taken */
    uint64_t skipped;                /* bytes before its first line that are not there any more */
    uint32_t key;
    uint64_t bytes; /* where it ended when it was listed */
    char *chunk;
    size_t first, n_lines, taken; /* its lines, before they are merged */
};

struct logmerge_line {
    size_t source; /* its index */
    uint64_t offset;
    const char *text; /* without its end, has no NUL and none behind it */
    size_t n;
    bool is_cut; /* the line is longer */
    uint64_t stamp;
};

/* Zeroed memory is an empty one. */
struct logmerge {
    struct loglist files;
    struct logmerge_source *sources;
    size_t n_sources;
    struct logmerge_line *lines;
    size_t n_lines;
    size_t left_out; /* logs beyond LOGMERGE_SOURCES_MAX, and those that cannot be read */
    bool has_more;   /* another look brings lines at once */
};

/* A log without a byte is no source yet. Sources of the look before come first, then the driver's
 * and those of a known rank. */
must_check int logmerge_look(const struct logmerge_ask *ask, struct logmerge *ret, struct err *err);
void logmerge_release(struct logmerge *m);

/* Where the next look begins: letters, digits and '-'. Yours. */
char *logmerge_places(const struct logmerge *m);
/* Can this text from a client be such places? */
bool logmerge_are_places(const char *text);
