/* SPDX-License-Identifier: Apache-2.0 */
/* cell.c - see cell.h. A member that is missing or null shows as "-"; only a number that is always
 * there in meaning (CELL_NUMBER) shows as 0. */
#include "argus/show/cell.h"

#include <inttypes.h>

#include "argus/show/member.h"
#include "argus/show/when.h"
#include "base/text.h"

enum { JOINED_MAX = 8 << 10 };

static void cell_number(struct table *t, enum style style, const json_t *v)
{
    if (json_is_real(v))
        table_addf(t, style, "%g", json_real_value(v));
    else
        table_addf(t, style, "%" PRId64, (int64_t)json_integer_value(v));
}

static void cell_list(struct table *t, enum style style, const json_t *list)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(JOINED_MAX);
    size_t i;
    json_t *v;
    json_array_foreach (list, i, v)
        (void)buf_addf(&text, "%s%s", i ? "," : "",
                       json_is_string(v) ? json_string_value(v) : "?"); /* a long one is cut */
    table_add(t, style, buf_str(&text));
}

static void cell_use(struct table *t, enum style style, const json_t *used, const json_t *most)
{
    char limit[40] = "-";
    double u = json_number_value(used);
    int decimals = u < 1e9 && u == (double)(int64_t)u ? 0 : 1;
    if (json_is_number(most))
        text_printf(limit, "%g", json_number_value(most));
    table_addf(t, style, "%.*f/%s", decimals, u, limit);
}

/* A rate is no whole number; what no machine has is cut. */
static void cell_size(struct table *t, enum style style, const json_t *v)
{
    const double most = 1e18;
    double real = json_real_value(v);
    char text[SIZE_TEXT_MAX];
    if (json_is_integer(v))
        table_add(t, style, size_text(json_integer_value(v), text));
    else if (json_is_real(v))
        table_add(t, style, size_text((int64_t)(real > most ? most : real > 0 ? real : 0), text));
    else
        table_add(t, style, NULL);
}

static void cell_ratio(struct table *t, enum style style, const json_t *v)
{
    if (json_is_number(v))
        table_addf(t, style, "%.0f%%", 100 * json_number_value(v));
    else
        table_add(t, style, NULL);
}

void cell_add(struct table *t,
              const struct column *column,
              const json_t *item,
              const struct when *w)
{
    const json_t *v = member_at(item, column->key);
    char text[WHEN_TEXT_MAX];
    switch (column->as) {
    case CELL_TEXT:
        table_add(t, column->style, json_string_value(v));
        break;
    case CELL_TIME:
        table_add(t, column->style, when_point(w, when_of(v), text));
        break;
    case CELL_VALUE:
        if (!json_is_number(v)) {
            table_add(t, column->style, NULL);
            break;
        }
        cell_number(t, column->style, v);
        break;
    case CELL_NUMBER:
        cell_number(t, column->style, v);
        break;
    case CELL_SIZE:
        cell_size(t, column->style, v);
        break;
    case CELL_RATIO:
        cell_ratio(t, column->style, v);
        break;
    case CELL_LIST:
        cell_list(t, column->style, v);
        break;
    case CELL_USE:
        cell_use(t, column->style, v, member_at(item, column->most));
        break;
    }
}
