/* SPDX-License-Identifier: Apache-2.0 */
/* Every command's row is whole: it has its words, it can be run, and what it asks can be shown. */
#include <stdlib.h>
#include <string.h>

#include "argus/cli/command.h"
#include "base/str.h"
#include "base/unit.h"

static bool has_place(const char *to)
{
    static const char *const places[] = {"body:", "query:", "path:"};
    bool found = false;
    for (size_t i = 0; i < array_len(places); i++)
        found |= str_starts(to, places[i]) && to[strlen(places[i])];
    return found;
}

/* A code of the catalogue, or none. */
static void check_words(const char *code)
{
    assert_true(!code || message_is_known(code));
}

static void check_options(const struct command *c)
{
    for (size_t i = 0; i < c->n_opts; i++) {
        const struct opt *o = &c->opts[i];
        assert_true(o->doc && *o->doc);
        assert_true(o->type == OPT_FLAG || (o->arg && *o->arg));
        assert_true((o->type == OPT_CHOICE) == (o->choices != NULL));
        assert_true(!o->to || has_place(o->to));
        if (o->to && str_starts(o->to, "query:"))
            assert_true(o->type == OPT_FLAG || o->type == OPT_TEXT || o->type == OPT_CHOICE);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(o->name, c->opts[k].name);
    }
}

/* A row that is data says what becomes of the reply. */
static void check_ask(const struct ask *a)
{
    assert_true(str_starts(a->path, "/v1/"));
    check_words(a->done);
    check_words(a->table.none);
    assert_int_equal(1, (a->done != NULL) + (a->table.key != NULL) + (a->print != NULL));
    assert_true((a->done != NULL) == (a->subject != NULL));
    assert_true((a->table.key != NULL) == (a->table.n_columns > 0));
    for (size_t i = 0; i < a->table.n_columns; i++) {
        check_words(a->table.columns[i].title);
        assert_true(!a->table.columns[i].draw != !a->table.columns[i].key);
    }
}

static void test_rows(void **state)
{
    (void)state;
    const struct command *c;
    size_t n = 0;
    for (; (c = command_at(n)); n++) {
        assert_true(c->name && c->args && c->summary && c->text && *c->text);
        assert_true(c->least <= c->most);
        assert_ptr_equal(command_find(c->name), c);
        assert_true(!c->run != !c->ask.path);
        assert_true(c->run || !c->opts_size);
        check_options(c);
        if (c->ask.path)
            check_ask(&c->ask);
    }
    assert_true(n > 50);
    assert_null(command_find("no such command"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
