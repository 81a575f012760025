/* SPDX-License-Identifier: Apache-2.0 */
/* What is read from setup files as people write them, and from some that they should not. */
#include "core/job/needs.h"
#include "base/unit.h"
#include "core/job/node.h"

#include <string.h>

#include "base/text.h"

static void expect(const char *file, const char *text, const char *want)
{
    _cleanup_(strv_release) struct strv all = {0};
    char is[1000] = "";
    needs_read(file, text, &all);
    for (size_t i = 0; i < all.n; i++) {
        size_t n = strlen(is);
        text_printf_to(is + n, sizeof(is) - n, "%s%s", i ? " " : "", all.v[i]);
    }
    assert_string_equal(is, want);
}

static void test_requirements(void **state)
{
    (void)state;
    expect("requirements.txt",
           "# vllm==0.8.4\n-r other.txt\naccelerate\nNumPy < 2.0.0\nray[default] >= 2.41.0  # why\n"
           "torch==2.6.0; platform_system == 'Linux'\nvllm @ https://x/vllm.whl\ntransformers\r\n"
           "torchdata>=1\ntorch (>=2.4)\ntorch>=9\nsglang=garbage\n",
           "numpy<2.0.0 ray>=2.41.0 torch>=2.4");
    expect("other.txt", "torch>=2.4\n", "");
}

static void test_pyproject(void **state)
{
    (void)state;
    expect("pyproject.toml",
           "[build-system]\nrequires = [\"torch>=1\"]\n[project]\nname = \"x\"\n"
           "requires-python = \">=3.10\"\ndependencies = [\n  \"torch>=2.4,<2.7\", # as tested\n"
           "  # \"vllm==1\",\n  'ray[default]>=2.41',\n  \"numpy\",\n]\n[project.optional]\n"
           "dependencies = [\"vllm>=0.8\"]\n",
           "python>=3.10 torch>=2.4,<2.7 ray>=2.41");
}

static void test_setup_files(void **state)
{
    (void)state;
    expect("setup.py",
           "from setuptools import setup\ninstall_requires = [\n    \"ray[default]>=2.41.0\",\n"
           "    'numpy<2.0.0',\n]\nsetup(\n    python_requires=\">=3.9\",\n"
           "    install_requires=install_requires,\n    extras_require={\"a\": [\"vllm>=1\"]})\n",
           "ray>=2.41.0 numpy<2.0.0 python>=3.9");
    expect(
        "setup.cfg",
        "[metadata]\nname = x\n[options]\npython_requires = >=3.10\ninstall_requires =\n"
        "    torch>=2.4\n    numpy\npackages = find:\n[options.extras_require]\nall =\n    vllm>=1\n",
        "python>=3.10 torch>=2.4");
}

static void test_files_that_are_none(void **state)
{
    char quotes[3000] = "install_requires = [";
    (void)state;
    memset(quotes + 20, '"', sizeof(quotes) - 21);
    quotes[sizeof(quotes) - 1] = 0;
    expect("setup.py", quotes, "");
    expect("setup.py", "install_requires = [\"torch>=2.4", "");
    expect("setup.py", "install_requires", "");
    expect("pyproject.toml", "[project]\ndependencies = [[\"torch>=2\"]]", "");
    expect("requirements.txt", "torch[a", "");
    memset(quotes, '>', sizeof(quotes) - 1);
    memcpy(quotes, "torch", 5);
    expect("requirements.txt", quotes, "");
}

static void test_against_a_machine(void **state)
{
    struct node_facts facts = {.python = "3.11.2",
                               .torch = "2.3.1+cu121",
                               .driver = "550.54.15",
                               .cuda = "twelve",
                               .numpy = "1.26.4 or so"};
    _cleanup_(freep) char *has = needs_versions(&facts);
    struct needs_unmet why;
    (void)state;
    assert_string_equal(has, "python=3.11.2 torch=2.3.1+cu121 driver=550.54.15");
    assert_false(needs_find_unmet("", has, NULL));
    assert_false(needs_find_unmet("python>=3.10 driver>=535 vllm>=0.8", has, &why));
    assert_true(needs_find_unseen("python>=3.10 vllm>=0.8 cuda>=12", has, &why));
    assert_string_equal(why.need, "vllm>=0.8");
    assert_string_equal(why.has, "");
    assert_false(needs_find_unseen("python>=3.10", has, &why));
    assert_true(needs_find_unmet("python>=3.10 vllm>=0.8 torch>=2.4,!=2.5.*", has, &why));
    assert_string_equal(why.need, "torch>=2.4,!=2.5.*");
    assert_string_equal(why.has, "2.3.1+cu121");
    assert_false(needs_find_unmet("torch>=2.4", "", NULL)); /* nobody looked */
    assert_false(needs_find_unmet("torch>=2.4", "torchx=1 xtorch=1", NULL));
}

static void test_beside_an_own_python(void **state)
{
    _cleanup_(freep) char *some = needs_beside_own_python("python>=3.10 ray>=2.41 driver>=535");
    _cleanup_(freep) char *none = needs_beside_own_python("torch>=2.4 numpy<2");
    (void)state;
    assert_string_equal(some, "ray>=2.41 driver>=535");
    assert_string_equal(none, "");
}

static void test_given_by_people(void **state)
{
    static const char *const bad[] = {"", "torch", "Torch>=2", "flash>=2", "torch 2.4", "torch>=x"};
    struct err err = {0};
    (void)state;
    assert_int_equal(needs_check("torch>=2.4,!=2.5.*", &err), 0);
    assert_int_equal(needs_check("driver>=550.54.15", &err), 0);
    for (size_t i = 0; i < array_len(bad); i++)
        if (needs_check(bad[i], &err) != ERR_BAD_SPEC)
            fail_msg("'%s' is no need", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requirements),         cmocka_unit_test(test_pyproject),
        cmocka_unit_test(test_setup_files),          cmocka_unit_test(test_files_that_are_none),
        cmocka_unit_test(test_against_a_machine),    cmocka_unit_test(test_given_by_people),
        cmocka_unit_test(test_beside_an_own_python),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
