/* SPDX-License-Identifier: Apache-2.0 */
/* The table of who may what, written a second time, cell by cell. */
#include "core/job/access.h"

#include <string.h>

#include "base/mem.h"

#include "base/unit.h"

/* One letter per role (none, viewer, user, admin): Allow, Deny, Hide. */
static const struct {
    enum access_action action;
    const char *own, *shared, *seen, *other;
} expected[] = {
    {ACCESS_JOB_SEE, "DAAA", "DAAA", "DAAA", "HHHH"},
    {ACCESS_JOB_CHANGE, "DDAA", "DDDA", "DDDA", "HHHH"},
    {ACCESS_JOB_ADVISE, "DDAA", "DDAA", "DDAA", "HHHH"},
    {ACCESS_SUBMIT, "DDAA", "DDAA", "DDDA", "HHHH"},
    {ACCESS_MACHINE_SEE, "DAAA", "DAAA", "DAAA", "DAAA"},
    {ACCESS_MACHINE_CHANGE, "DDDA", "DDDA", "DDDA", "DDDA"},
    {ACCESS_EVENTS_SEE, "DAAA", "DAAA", "DAAA", "HHHH"},
    {ACCESS_AUDIT, "DDDD", "DDDD", "DAAA", "DDDD"},
    {ACCESS_USER_SEE, "DAAA", "DAAA", "DAAA", "HHHH"},
    {ACCESS_USER_CHANGE, "DDDA", "DDDA", "DDDA", "HHHH"},
    {ACCESS_TOKEN_SEE, "DAAA", "HHHH", "DDDA", "HHHH"},
    {ACCESS_TOKEN_CHANGE, "DDAA", "HHHH", "DDDA", "HHHH"},
    {ACCESS_SESSION_END, "DAAA", "HHHH", "DDDA", "HHHH"},
    {ACCESS_PROJECT_SEE, "DAAA", "DAAA", "DAAA", "HHHH"},
    {ACCESS_PROJECT_CHANGE, "DDDA", "DDDA", "DDDA", "HHHH"},
    {ACCESS_FILES_SEE, "DAAA", "DAAA", "DDDA", "HHHH"},
    {ACCESS_FILES_CHANGE, "DDAA", "DDAA", "DDDA", "HHHH"},
    {ACCESS_UPLOAD, "DDAA", "HHHH", "HHHH", "HHHH"},
    {ACCESS_DATA_SEE, "DAAA", "DAAA", "DAAA", "HHHH"},
    {ACCESS_DATA_CHANGE, "DDAA", "DDDA", "DDDA", "HHHH"},
    {ACCESS_SNAPSHOT_SEE, "DAAA", "DAAA", "DAAA", "HHHH"},
    {ACCESS_SNAPSHOT_ADD, "DDAA", "DDAA", "DDAA", "HHHH"},
    {ACCESS_SNAPSHOT_CHANGE, "DDAA", "DDDA", "DDDA", "HHHH"},
    {ACCESS_SECRET_SEE, "DAAA", "DAAA", "DDDA", "HHHH"},
    {ACCESS_SECRET_CHANGE, "DDAA", "DDAA", "DDDA", "HHHH"},
    {ACCESS_PRESET_SEE, "DAAA", "DAAA", "DAAA", "HHHH"},
    {ACCESS_PRESET_CHANGE, "DDAA", "DDDA", "DDDA", "HHHH"},
    {ACCESS_SIMULATION_SEE, "DAAA", "HHHH", "DAAA", "HHHH"},
    {ACCESS_SIMULATION_CHANGE, "DDAA", "HHHH", "DDDA", "HHHH"},
    {ACCESS_PIPELINE_SEE, "DAAA", "DAAA", "DAAA", "HHHH"},
    {ACCESS_PIPELINE_CHANGE, "DDAA", "DDDA", "DDDA", "HHHH"},
    {ACCESS_SERVICE_SEE, "DAAA", "DAAA", "DAAA", "HHHH"},
    {ACCESS_SERVICE_CALL, "DDAA", "DDAA", "DDDA", "HHHH"},
    {ACCESS_SERVICE_CHANGE, "DDAA", "DDAA", "DDDA", "HHHH"},
    {ACCESS_NOTEBOOK_SEE, "DAAA", "HHHH", "DAAA", "HHHH"},
    {ACCESS_NOTEBOOK_CHANGE, "DDAA", "HHHH", "DDDA", "HHHH"},
    {ACCESS_PLAN_SEE, "DAAA", "HHHH", "DAAA", "HHHH"},
    {ACCESS_PLAN_CHANGE, "DDAA", "HHHH", "DDDA", "HHHH"},
    {ACCESS_PLAN_APPROVE, "DDDA", "HHHH", "DDDA", "HHHH"},
    {ACCESS_SERVER_SEE, "AAAA", "AAAA", "AAAA", "AAAA"},
};

static void test_every_cell(void **state)
{
    (void)state;
    assert_int_equal(array_len(expected), ACCESS_ACTIONS);
    for (size_t i = 0; i < array_len(expected); i++) {
        const char *const cells[] = {expected[i].own, expected[i].shared, expected[i].seen,
                                     expected[i].other};
        assert_int_equal(expected[i].action, i);
        for (int relation = 0; relation < ACCESS_RELATIONS; relation++)
            for (int role = ACCESS_NONE; role <= ACCESS_ADMIN; role++)
                assert_int_equal(access_ask(expected[i].action, (enum access_relation)relation,
                                            (enum access_role)role),
                                 strchr("ADH", cells[relation][role]) - "ADH");
    }
}

static void test_more_role_is_never_less(void **state)
{
    (void)state;
    for (int action = 0; action < ACCESS_ACTIONS; action++)
        for (int relation = 0; relation < ACCESS_RELATIONS; relation++)
            for (int role = ACCESS_NONE; role < ACCESS_ADMIN; role++)
                assert_true(access_ask((enum access_action)action, (enum access_relation)relation,
                                       (enum access_role)(role + 1)) <=
                            access_ask((enum access_action)action, (enum access_relation)relation,
                                       (enum access_role)role));
}

static void test_relations(void **state)
{
    struct access_who who = {.user = "ann", .projects = "rl,llm"};
    (void)state;
    assert_int_equal(access_relation(&who, "ann", "other"), ACCESS_OWN);
    assert_int_equal(access_relation(&who, "bob", "llm"), ACCESS_SHARED);
    assert_int_equal(access_relation(&who, "bob", "default"), ACCESS_OTHER);
    assert_int_equal(access_relation(&who, "bob", "ll"), ACCESS_OTHER);
    assert_int_equal(access_relation(&who, "bob", ""), ACCESS_OTHER);
    assert_int_equal(access_relation(&who, NULL, NULL), ACCESS_OTHER);
    who.sees_all = true;
    assert_int_equal(access_relation(&who, "bob", "x"), ACCESS_SEEN);
    assert_int_equal(access_relation(&who, "bob", "llm"), ACCESS_SHARED);
    who.any_project = true; /* is about submitting alone */
    assert_int_equal(access_relation(&who, "bob", "x"), ACCESS_SEEN);
    assert_int_equal(access_relation(&who, "bob", NULL), ACCESS_SEEN);
    who = (struct access_who){.user = "ann", .projects = ""};
    assert_int_equal(access_relation(&who, "bob", ""), ACCESS_OTHER);
}

/* Not by seeing everything: that is for reading what is the program's own. */
static void test_answers_are_for_who_configures(void **state)
{
    (void)state;
    for (int role = ACCESS_VIEWER; role <= ACCESS_ADMIN; role++) {
        struct access_who who = {.user = "eve", .role = (enum access_role)role, .sees_all = true};
        assert_int_equal(access_sees_answers(&who), role == ACCESS_ADMIN);
    }
}

static void test_submitting(void **state)
{
    struct access_who who = {.user = "ann", .role = ACCESS_USER, .projects = "llm"};
    struct err err = {0};
    (void)state;
    assert_int_equal(access_check_submit(&who, "default", &err), 0);
    assert_int_equal(access_check_submit(&who, "llm", &err), 0);
    assert_int_equal(access_check_submit(&who, "rl", &err), ERR_NOT_FOUND);
    who.sees_all = true; /* a lesser token of an admin */
    assert_int_equal(access_check_submit(&who, "rl", &err), ERR_FORBIDDEN);
    assert_string_equal(err.text,
                        "you may not submit to project 'rl': only its members or an admin may");
    who.role = ACCESS_ADMIN;
    assert_int_equal(access_check_submit(&who, "rl", &err), 0);
    who.role = ACCESS_VIEWER;
    assert_int_equal(access_check_submit(&who, "default", &err), ERR_FORBIDDEN);
    who = (struct access_who){
        .user = "bob", .role = ACCESS_USER, .projects = "", .any_project = true};
    assert_int_equal(access_check_submit(&who, "rl", &err), 0);
}

static void test_sentences(void **state)
{
    struct access_who who = {.user = "ann", .role = ACCESS_USER, .projects = "llm"};
    struct access_thing mine = {ACCESS_KIND_JOB, "j1", "ann", "x", false, NULL};
    struct access_thing ours = {ACCESS_KIND_JOB, "j2", "bob", "llm", false, NULL};
    struct access_thing theirs = {ACCESS_KIND_JOB, "j3", "bob", "x", false, NULL};
    struct err err = {0};
    (void)state;
    assert_int_equal(access_check(&who, ACCESS_JOB_CHANGE, "stop", &mine, &err), 0);
    assert_int_equal(access_check(&who, ACCESS_JOB_CHANGE, "stop", &ours, &err), ERR_FORBIDDEN);
    assert_string_equal(err.text, "you may not stop job 'j2': only its owner or an admin may");
    assert_int_equal(access_check(&who, ACCESS_JOB_CHANGE, "stop", &theirs, &err), ERR_NOT_FOUND);
    assert_string_equal(err.text, "no job 'j3'");
    who.role = ACCESS_VIEWER;
    assert_int_equal(access_check(&who, ACCESS_JOB_CHANGE, "stop", &mine, &err), ERR_FORBIDDEN);
    assert_string_equal(err.text,
                        "this token may not stop job 'j1': only its owner or an admin may");
}

static void test_names(void **state)
{
    static const char *const good[] = {"a",       "0",     "alice",
                                       "a.b_c-d", "llm-2", "abcdefghijklmnopqrstuvwxyz01234"};
    static const char *const bad[] = {
        "",   "A",    "Alice", ".a",  "-a",
        "_a", "a/b",  "a b",   "a\n", "../x",
        "é",  "a%00", "a,b",   "a:b", "abcdefghijklmnopqrstuvwxyz012345"};
    struct err err = {0};
    (void)state;
    for (size_t i = 0; i < array_len(good); i++)
        assert_int_equal(access_check_name("user", good[i], NULL), 0);
    for (size_t i = 0; i < array_len(bad); i++)
        assert_int_equal(access_check_name("user", bad[i], &err), ERR_BAD_SPEC);
    assert_non_null(strstr(err.text, "user"));
}

static void test_snapshots(void **state)
{
    struct access_who ann = {.user = "ann", .role = ACCESS_USER, .projects = "llm"};
    struct access_who root = {.user = "root", .role = ACCESS_ADMIN, .sees_all = true};
    enum access_kind kind = ACCESS_KIND_SNAPSHOT;
    struct access_thing bobs = {kind, "verl@1", "bob", NULL, false, NULL};
    struct access_thing bobs_common = {kind, "verl@1", "bob", NULL, true, NULL};
    struct access_thing anns = {kind, "verl@1", "ann", NULL, false, NULL};
    struct access_thing anns_common = {kind, "verl@1", "ann", NULL, true, NULL};
    enum access_action see = ACCESS_SNAPSHOT_SEE, rm = ACCESS_SNAPSHOT_CHANGE;
    (void)state;
    assert_int_equal(access_check(&ann, see, "see", &bobs, NULL), ERR_NOT_FOUND);
    assert_int_equal(access_check(&ann, see, "see", &bobs_common, NULL), 0);
    assert_int_equal(access_check(&ann, rm, "remove", &bobs_common, NULL), ERR_FORBIDDEN);
    assert_int_equal(access_check(&ann, rm, "remove", &anns_common, NULL), 0);
    assert_int_equal(access_check(&ann, rm, "remove", &anns, NULL), 0);
    assert_int_equal(access_check(&root, rm, "remove", &bobs, NULL), 0);
    assert_int_equal(access_check(&root, rm, "remove", &bobs_common, NULL), 0);
}

static void test_shared(void **state)
{
    char *names[] = {(char[]){"user/bob"}, (char[]){"project/llm"}, (char[]){"odd"}};
    const struct strv with = {.v = names, .n = 3};
    const struct access_thing thing = {
        .kind = ACCESS_KIND_DATASET, .name = "d@1", .owner = "ann", .shared = &with};
    const struct {
        struct access_who who;
        int sees, changes;
    } rows[] = {
        {{.user = "bob", .role = ACCESS_USER, .projects = ""}, 0, ERR_FORBIDDEN},
        {{.user = "cy", .role = ACCESS_VIEWER, .projects = "rl,llm"}, 0, ERR_FORBIDDEN},
        {{.user = "llm", .role = ACCESS_USER, .projects = "bob"}, ERR_NOT_FOUND, ERR_NOT_FOUND},
        {{.user = "ann", .role = ACCESS_USER, .projects = ""}, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(access_check(&rows[i].who, ACCESS_DATA_SEE, "see", &thing, NULL),
                         rows[i].sees);
        assert_int_equal(access_check(&rows[i].who, ACCESS_DATA_CHANGE, "change", &thing, NULL),
                         rows[i].changes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cell),
        cmocka_unit_test(test_more_role_is_never_less),
        cmocka_unit_test(test_answers_are_for_who_configures),
        cmocka_unit_test(test_relations),
        cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_submitting),
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_shared),
    };
    return cmocka_run_group_tests_name("core/access", tests, NULL, NULL);
}
