/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - layout of table.h: measure, drop, cut, print. */
#include "argus/show/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>

#include "argus/show/cell.h"
#include "argus/show/text.h"
#include "base/str.h"

enum { GAP = 2, LEAST = 4, CELL_MAX = 4096, ROOM_SHARE = 40 /* percent */, ROOM_TIMES = 3 };

struct table_cell {
    char *text;
    enum style style;
};

struct table {
    const struct column *columns;
    size_t n_columns;
    struct table_cell *cells;
    size_t n_cells, cap;
};

struct layout {
    int *width; /* per column; 0 = not shown */
    bool *empty;
    int line; /* the terminal's; 0 = none */
};

struct table *table_new(const struct column *columns, size_t n)
{
    struct table *t = xcalloc(1, sizeof(*t));
    t->columns = columns;
    t->n_columns = n;
    return t;
}

void table_free(struct table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i].text);
    free(t->cells);
    free(t);
}

void table_freep(struct table **t)
{
    table_free(*t);
    *t = NULL;
}

void table_add(struct table *t, enum style style, const char *text)
{
    struct buf clean = BUF_INIT(CELL_MAX);
    text_clean(&clean, text && *text ? text : "-"); /* longer ones end early */
    if (t->n_cells == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->cells = xrealloc(t->cells, t->cap, sizeof(*t->cells));
    }
    t->cells[t->n_cells++] = (struct table_cell){buf_take(&clean), style};
}

void table_addf(struct table *t, enum style style, const char *fmt, ...)
{
    struct buf b = BUF_INIT(CELL_MAX);
    va_list ap;
    va_start(ap, fmt);
    (void)buf_vaddf(&b, fmt, ap); /* too long shows as "-" */
    va_end(ap);
    table_add(t, style, buf_str(&b));
    buf_release(&b);
}

void table_add_item(struct table *t, const json_t *item, const struct when *w)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (t->columns[i].draw)
            t->columns[i].draw(t, item, w);
        else
            cell_add(t, &t->columns[i], item, w);
}

size_t table_rows(const struct table *t)
{
    return t->n_cells / t->n_columns;
}

static const struct table_cell *cell_at(const struct table *t, size_t row, size_t column)
{
    return &t->cells[row * t->n_columns + column];
}

static void measure(const struct table *t, const struct term *term, bool wide, struct layout *l)
{
    for (size_t c = 0; c < t->n_columns; c++) {
        l->empty[c] = true;
        if ((t->columns[c].flags & COLUMN_WIDE) && !wide)
            continue;
        l->width[c] = text_width(msg(term->lang, t->columns[c].title));
        for (size_t r = 0; r < table_rows(t); r++) {
            const char *text = cell_at(t, r, c)->text;
            int w = text_width(text);
            l->width[c] = w > l->width[c] ? w : l->width[c];
            l->empty[c] = l->empty[c] && str_eq(text, "-");
        }
    }
}

static int total(const struct table *t, const struct layout *l)
{
    int sum = 0;
    for (size_t c = 0; c < t->n_columns; c++)
        sum += l->width[c] ? l->width[c] + GAP : 0;
    return sum ? sum - GAP : 0;
}

/* How much of this column may go. */
static int may_give(const struct table *t, const struct layout *l, size_t c)
{
    bool is_room = t->columns[c].flags & COLUMN_ROOM;
    int share = l->line * ROOM_SHARE / 100, least = t->columns[c].least;
    if (is_room)
        least = share > least ? share : least;
    bool is_flexible = t->columns[c].flags & (COLUMN_FLEX | COLUMN_NAME | COLUMN_ROOM);
    return is_flexible && l->width[c] > least ? l->width[c] - least : 0;
}

/* What the flexible columns could still give. */
static int slack(const struct table *t, const struct layout *l)
{
    int sum = 0;
    for (size_t c = 0; c < t->n_columns; c++)
        sum += may_give(t, l, c);
    return sum;
}

/* The shown column of the highest rank, among the empty ones only if so asked. */
static int next_to_drop(const struct table *t, const struct layout *l, bool only_empty)
{
    int best = -1;
    for (size_t c = 0; c < t->n_columns; c++) {
        if (!l->width[c] || !t->columns[c].rank || (only_empty && !l->empty[c]))
            continue;
        if (best < 0 || t->columns[c].rank > t->columns[best].rank)
            best = (int)c;
    }
    return best;
}

/* A column with room gives when it is several times as wide as the widest of the others. */
static int width_felt(const struct table *t, const struct layout *l, size_t c)
{
    return t->columns[c].flags & COLUMN_ROOM ? l->width[c] / ROOM_TIMES : l->width[c];
}

static void table_cut(const struct table *t, struct layout *l, int over)
{
    while (over > 0) {
        int widest = -1;
        for (size_t c = 0; c < t->n_columns; c++)
            if (may_give(t, l, c) &&
                (widest < 0 || width_felt(t, l, c) > width_felt(t, l, (size_t)widest)))
                widest = (int)c;
        if (widest < 0)
            return; /* narrower than the columns that must stay */
        l->width[widest]--;
        over--;
    }
}

/* A terminal narrower than what must stay: from the right, cut whatever is there. */
static int cut_hard(const struct table *t, struct layout *l, int width)
{
    int dropped = 0;
    for (size_t c = t->n_columns; c-- > 0 && total(t, l) > width;) {
        int over = total(t, l) - width;
        bool is_kept = l->width[c] - over >= LEAST;
        dropped += l->width[c] && !is_kept;
        l->width[c] = is_kept ? l->width[c] - over : 0;
    }
    return dropped;
}

static int table_fit(const struct table *t, struct layout *l, int width)
{
    int dropped = 0;
    for (int pass = 0; pass < 2; pass++) {
        bool only_empty = pass == 0;
        while (total(t, l) - (only_empty ? 0 : slack(t, l)) > width) {
            int c = next_to_drop(t, l, only_empty);
            if (c < 0)
                break;
            l->width[c] = 0;
            dropped += !only_empty;
        }
    }
    table_cut(t, l, total(t, l) - width);
    return dropped + cut_hard(t, l, width);
}

static void print_row(const struct table *t,
                      const struct layout *l,
                      const struct term *term,
                      long row,
                      FILE *out)
{
    int pending = 0;
    for (size_t c = 0; c < t->n_columns; c++) {
        if (!l->width[c])
            continue;
        struct buf b = BUF_INIT(CELL_MAX);
        const char *text =
            row < 0 ? msg(term->lang, t->columns[c].title) : cell_at(t, (size_t)row, c)->text;
        enum style style = row < 0 ? STYLE_BOLD : cell_at(t, (size_t)row, c)->style;
        bool is_name = t->columns[c].flags & COLUMN_NAME;
        (is_name ? text_cut_middle : text_cut)(&b, text, l->width[c]);
        int pad = l->width[c] - text_width(buf_str(&b));
        bool right = t->columns[c].flags & COLUMN_RIGHT;
        (void)fprintf(out, "%*s%s%s%s", pending + (right ? pad : 0), "", term_on(term, style),
                      buf_str(&b), term_off(term, style));
        pending = GAP + (right ? 0 : pad); /* never at the end of a line */
        buf_release(&b);
    }
    (void)fputc('\n', out);
}

int table_print(const struct table *t, const struct term *term, bool wide, FILE *out)
{
    assert(t->n_cells % t->n_columns == 0);
    struct layout l = {.width = xcalloc(t->n_columns, sizeof(int)),
                       .empty = xcalloc(t->n_columns, sizeof(bool)),
                       .line = term->width};
    measure(t, term, wide, &l);
    int dropped = !wide && term->width ? table_fit(t, &l, term->width) : 0;
    for (long row = -1; row < (long)table_rows(t); row++)
        print_row(t, &l, term, row, out);
    free(l.width);
    free(l.empty);
    return dropped;
}
