/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - rows of text under titles, made to fit a terminal.
 *
 * A table that is too wide first loses the columns that say nothing (every cell
 * "-"), then cuts its flexible columns, then drops columns by rank, highest first.
 * The column that the table is read for (COLUMN_ROOM: why a job waits, what happened)
 * keeps two fifths of the line: others are dropped before it gets less.
 * It never wraps. Without a width (a pipe, or `wide`) nothing is cut or dropped. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "argus/show/term.h"
#include "base/json.h"
#include "base/mem.h"

enum column_flags {
    COLUMN_RIGHT = 1 << 0, /* numbers */
    COLUMN_FLEX = 1 << 1,  /* may be cut down to `least` columns */
    COLUMN_WIDE = 1 << 2,  /* only in the wide form */
    COLUMN_NAME = 1 << 3,  /* flexible, and cut in the middle: its end tells it from others */
    COLUMN_ROOM = 1 << 4,  /* flexible, and what the others leave is for it */
};

/* How a member of a reply becomes a cell. */
enum cell {
    CELL_TEXT,
    CELL_TIME,   /* "3m ago" */
    CELL_NUMBER, /* 0 when it is missing */
    CELL_VALUE,  /* a number, "-" when there is none */
    CELL_SIZE,   /* bytes as "1.5 GiB" */
    CELL_RATIO,  /* 0.37 as "37%" */
    CELL_LIST,   /* texts as "a,b" */
    CELL_USE,    /* "4/8": what is used of what may be, which is `most` */
};

struct table;
struct when;
/* Adds one cell that needs more than one member. */
typedef void (*cell_f)(struct table *t, const json_t *item, const struct when *w);

struct column {
    const char *title;
    unsigned flags;
    int least;
    int rank;        /* dropped when it does not fit, highest first; 0 = never */
    const char *key; /* the item's member, "usage.running" of an object in it */
    const char *most;
    enum cell as;
    enum style style;
    cell_f draw; /* in place of key and as */
};

/* columns is borrowed for the table's life. */
struct table *table_new(const struct column *columns, size_t n);
void table_free(struct table *t); /* NULL is fine */
void table_freep(struct table **t);

/* Fill the next cell, row by row. The text is copied and cleaned; NULL and "" show as "-". */
void table_add(struct table *t, enum style style, const char *text);
void table_addf(struct table *t, enum style style, const char *fmt, ...) printf_like(3, 4);
/* One row, as the columns say. */
void table_add_item(struct table *t, const json_t *item, const struct when *w);
size_t table_rows(const struct table *t);

/* Print with titles; returns how many columns had to be dropped. */
int table_print(const struct table *t, const struct term *term, bool wide, FILE *out);
