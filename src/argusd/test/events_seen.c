/* SPDX-License-Identifier: Apache-2.0 */
/* Who sees an event: one of each kind of thing, of each ownership, is added as its source adds it
 * and read back with everybody's scope. A kind without a row here fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/events.h"
#include "argusd/people/people_rules.h"
#include "base/str.h"
#include "core/job/access.h"
#include "store/test/bed.h"

#include <cmocka.h>

/* alice owns things, carol and she are in project rlhf, bob is in none. A letter each. */
static const struct {
    const char *letter, *user;
    enum http_role role, token;
} people[] = {
    {"a", "alice", HTTP_ROLE_USER, HTTP_ROLE_USER},
    {"c", "carol", HTTP_ROLE_USER, HTTP_ROLE_USER},
    {"b", "bob", HTTP_ROLE_USER, HTTP_ROLE_USER},
    {"r", "root", HTTP_ROLE_ADMIN, HTTP_ROLE_ADMIN},
    {"v", "vera", HTTP_ROLE_VIEWER, HTTP_ROLE_VIEWER},
    {"l", "alice", HTTP_ROLE_USER, HTTP_ROLE_VIEWER}, /* a lesser token of hers */
    {"n", "nobody", HTTP_ROLE_USER, HTTP_ROLE_NONE},
};

enum { OF_ALICE, OF_RLHF, OF_BOTH, OF_ALL, OF_NOBODY, OWNERSHIPS };

/* Who of them sees its event: the kind's thing being alice's, project rlhf's, both, everybody's,
 * nobody's. Admins and users of role viewer read the audit log: all. */
static const struct {
    enum access_kind kind;
    const char *sees[OWNERSHIPS];
} rows[] = {
    {ACCESS_KIND_JOB, {"arvl", "acrvl", "acrvl", "acbrvl", "rv"}},
    {ACCESS_KIND_NODE, {"acbrvl", "acbrvl", "acbrvl", "acbrvl", "acbrvl"}},
    {ACCESS_KIND_CLUSTER, {"acbrvl", "acbrvl", "acbrvl", "acbrvl", "acbrvl"}},
    {ACCESS_KIND_USER, {"arvl", "acrvl", "acrvl", "acbrvl", "rv"}},
    {ACCESS_KIND_TOKEN, {"arvl", "rv", "arvl", "rv", "rv"}},
    {ACCESS_KIND_PROJECT, {"arvl", "acrvl", "acrvl", "acbrvl", "rv"}},
    {ACCESS_KIND_FILE, {"arvl", "acrvl", "acrvl", "acbrvl", "rv"}},
    {ACCESS_KIND_UPLOAD, {"arv", "rv", "arv", "rv", "rv"}},
    {ACCESS_KIND_DATASET, {"arvl", "acrvl", "acrvl", "acbrvl", "rv"}},
    {ACCESS_KIND_MODEL, {"arvl", "acrvl", "acrvl", "acbrvl", "rv"}},
    {ACCESS_KIND_SNAPSHOT, {"arvl", "acrvl", "acrvl", "acbrvl", "rv"}},
    {ACCESS_KIND_SECRET, {"arvl", "acrvl", "acrvl", "acbrvl", "rv"}},
    {ACCESS_KIND_PRESET, {"arvl", "acrvl", "acrvl", "acbrvl", "rv"}},
    {ACCESS_KIND_SIMULATION, {"arvl", "rv", "arvl", "rv", "rv"}},
    {ACCESS_KIND_SERVICE, {"arvl", "acrvl", "acrvl", "acbrvl", "rv"}},
    {ACCESS_KIND_NOTEBOOK, {"arvl", "rv", "arvl", "rv", "rv"}},
    {ACCESS_KIND_PIPELINE, {"arvl", "acrvl", "acrvl", "acbrvl", "rv"}},
    {ACCESS_KIND_PLAN, {"arvl", "rv", "arvl", "rv", "rv"}},
    {ACCESS_KIND_LOG, {"rv", "rv", "rv", "rv", "rv"}},
};

static struct access_thing events_seen_thing(enum access_kind kind, int ownership)
{
    bool owned = ownership == OF_ALICE || ownership == OF_BOTH;
    bool shared = ownership == OF_RLHF || ownership == OF_BOTH;
    return (struct access_thing){.kind = kind,
                                 .name = "x",
                                 .owner = owned ? "alice" : NULL,
                                 .project = shared ? "rlhf" : NULL,
                                 .is_common = ownership == OF_ALL};
}

/* Events 1 … kinds * ownerships, in that order. */
static void add_all(struct events *ev)
{
    for (int kind = 0; kind < ACCESS_KINDS; kind++)
        for (int how = 0; how < OWNERSHIPS; how++) {
            struct access_thing thing = events_seen_thing((enum access_kind)kind, how);
            struct events_note note = {.kind = "k", .actor = "root", .thing = &thing};
            events_add(ev, &note, 1);
        }
}

static struct people *make_people(struct bed *b)
{
    struct people *pp = people_new(b->s);
    for (size_t i = 0; i < array_len(people); i++)
        if (!people_find(pp, people[i].user))
            (void)people_add(pp, people[i].user, people[i].role, 1);
    struct project *p = people_add_project(pp, "rlhf", 1);
    strv_add(&p->members, "alice");
    strv_add(&p->members, "carol");
    people_save_project(pp, p);
    return pp;
}

static bool has_seq(const struct bed_answer *a, int64_t seq)
{
    bool found = false;
    for (size_t i = 0; i < a->nevents; i++)
        found = found || a->event_seqs[i] == seq;
    return found;
}

/* What person i is given, against the table. */
static void expect_person(struct bed *b, const struct people *pp, size_t i)
{
    struct http_principal p = {.role = people[i].token};
    struct people_sight sight;
    struct bed_answer a;
    (void)snprintf(p.user, sizeof(p.user), "%s", people[i].user);
    people_sight(pp, &p, &sight);
    bed_events(b, &(struct store_event_query){.limit = STORE_PAGE_MAX, .scope = sight.scope}, &a);
    people_sight_release(&sight);
    assert_int_equal(a.err.code, 0);
    for (int kind = 0; kind < ACCESS_KINDS; kind++)
        for (int how = 0; how < OWNERSHIPS; how++) {
            bool may = strchr(rows[kind].sees[how], *people[i].letter) != NULL;
            if (has_seq(&a, kind * OWNERSHIPS + how + 1) != may)
                fail_msg("%s %s event %d of a %s", people[i].letter, may ? "misses" : "sees", how,
                         access_kind_to_string((enum access_kind)kind));
        }
    bed_answer_release(&a);
}

static void test_every_kind_for_everybody(void **state)
{
    struct bed b;
    (void)state;
    assert_int_equal(array_len(rows), ACCESS_KINDS);
    for (size_t k = 0; k < array_len(rows); k++)
        assert_int_equal(rows[k].kind, k);
    bed_init(&b, NULL);
    struct people *pp = make_people(&b);
    struct events *ev = events_new(b.s, &(struct store_last){0});
    add_all(ev);
    bed_settle(&b);
    for (size_t i = 0; i < array_len(people); i++)
        expect_person(&b, pp, i);
    events_free(ev);
    people_free(pp);
    bed_release(&b);
}

/* An event is seen by whom the handler of its thing lets see the thing; admins and users of role
 * viewer see events of more than that. */
static void test_as_the_check_says(void **state)
{
    (void)state;
    for (int kind = 0; kind < ACCESS_KINDS; kind++)
        for (int how = 0; how < OWNERSHIPS; how++)
            for (size_t i = 0; i < array_len(people); i++) {
                struct access_thing thing = events_seen_thing((enum access_kind)kind, how);
                struct access_who who = {.user = people[i].user,
                                         .role = (enum access_role)people[i].token,
                                         .projects =
                                             strchr("acl", *people[i].letter) ? "rlhf" : ""};
                if (strchr("rv", *people[i].letter))
                    continue;
                bool may = access_check(&who, access_kind_see((enum access_kind)kind), "see",
                                        &thing, NULL) == 0;
                assert_int_equal(may, strchr(rows[kind].sees[how], *people[i].letter) != NULL);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_for_everybody),
        cmocka_unit_test(test_as_the_check_says),
    };
    return cmocka_run_group_tests_name("argusd/events_seen", tests, NULL, NULL);
}
