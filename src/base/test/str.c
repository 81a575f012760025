/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, sizes, nearest names, patterns, expansion, and shell quoting that a
 * real shell reads back byte for byte. */
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unit.h"

static void test_numbers(void **state)
{
    (void)state;
    int64_t i = 9;
    uint64_t b = 9;
    assert_int_equal(str_to_int("-12", -20, 20, &i, NULL), 0);
    assert_int_equal(i, -12);
    static const char *const bad[] = {"", " 1", "1 ", "1x", "x", "99999999999999999999", "21"};
    for (size_t k = 0; k < array_len(bad); k++)
        assert_int_equal(str_to_int(bad[k], -20, 20, &i, NULL), -EINVAL);
    assert_int_equal(i, -12);
    assert_int_equal(size_from_string("512MiB", &b, NULL), 0);
    assert_int_equal(b, 512 << 20);
    assert_int_equal(size_from_string("40GB", &b, NULL), 0);
    assert_int_equal(b, 40000000000);
    assert_int_equal(size_from_string("-1GB", &b, NULL), -EINVAL);
    assert_int_equal(size_from_string("99999999999TB", &b, NULL), -EINVAL);
}

static void test_nearest_name(void **state)
{
    (void)state;
    static const char *const names[] = {"nnodes", "n_gpus_per_node", "timeout", "model_id"};
    assert_string_equal(str_nearest("n_gpu_per_node", names, 4), "n_gpus_per_node");
    assert_string_equal(str_nearest("Timeout", names, 4), "timeout");
    assert_null(str_nearest("checkpoint", names, 4));
    assert_null(str_nearest("", names, 4));
}

static void test_glob(void **state)
{
    (void)state;
    assert_true(str_glob("val-core/*", "val-core/toy/acc"));
    assert_true(str_glob("a*b*c", "axxbyyc"));
    assert_true(str_glob("?", "x"));
    assert_false(str_glob("a*b", "axc"));
    assert_false(str_glob("", "x"));
}

static const char *look_up(const char *name, void *arg)
{
    return !strcmp(name, "SHARED_ROOT") ? arg : NULL;
}

static void test_expand(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(100);
    struct err err = {0};
    char root[] = "/private";
    assert_int_equal(str_expand(&out, "${SHARED_ROOT}/a$b${", look_up, root, NULL), 0);
    assert_string_equal(buf_str(&out), "/private/a$b${");
    assert_int_equal(str_expand(&out, "${NOPE}", look_up, root, &err), -EINVAL);
    assert_string_equal(err.text, "'${NOPE}' is not known here");
    buf_release(&out);
}

static void test_secret_names(void **state)
{
    (void)state;
    assert_true(str_is_secret_name("WANDB_API_KEY"));
    assert_true(str_is_secret_name("hf_token"));
    assert_true(str_is_secret_name("DB_PASSWORD"));
    assert_false(str_is_secret_name("TOKENIZERS_PARALLELISM"));
    assert_false(str_is_secret_name("PATH"));
    assert_false(str_is_secret_name("MAX_TOKENS"));
}

/* What /bin/sh makes of the quoted word. */
static void shell_echo(const char *quoted, struct buf *out)
{
    struct buf line = BUF_INIT(4096);
    assert_int_equal(buf_addf(&line, "printf %%s %s", quoted), 0);
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(fds[1], 1);
        (void)close(fds[0]);
        (void)close(fds[1]);
        (void)execl("/bin/sh", "sh", "-c", buf_str(&line), (char *)NULL);
        _exit(127);
    }
    (void)close(fds[1]);
    char chunk[512];
    ssize_t n;
    while ((n = read(fds[0], chunk, sizeof(chunk))) > 0)
        assert_int_equal(buf_add(out, chunk, (size_t)n), 0);
    (void)close(fds[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    buf_release(&line);
}

static void test_shell_quote_every_byte(void **state)
{
    (void)state;
    char all[256], edge[] = "'; rm -rf \"$HOME\" `x` \\ \n'";
    for (int c = 1; c < 256; c++)
        all[c - 1] = (char)c;
    all[255] = 0;
    const char *words[] = {all, edge, "", "plain-word_1", "*"};
    for (size_t i = 0; i < array_len(words); i++) {
        struct buf quoted = BUF_INIT(4096), back = BUF_INIT(4096);
        assert_int_equal(str_shell_quote(&quoted, words[i]), 0);
        shell_echo(buf_str(&quoted), &back);
        assert_string_equal(buf_str(&back), words[i]);
        buf_release(&quoted);
        buf_release(&back);
    }
}

static void test_utf8_forms(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n, len;
    } forms[] = {
        {"a", 1, 1},
        {"\xc2\x80", 2, 2},
        {"\xe0\xa0\x80", 3, 3},
        {"\xed\x9f\xbf", 3, 3},
        {"\xf4\x8f\xbf\xbf", 4, 4},
        {"\x80", 1, 0},
        {"\xc1\xbf", 2, 0},         /* overlong */
        {"\xe0\x9f\xbf", 3, 0},     /* overlong */
        {"\xed\xa0\x80", 3, 0},     /* a surrogate */
        {"\xf4\x90\x80\x80", 4, 0}, /* above U+10FFFF */
        {"\xe2\x82\xac", 2, 0},     /* cut */
        {"\xe2\x82\x20", 3, 0},     /* broken in its last byte */
    };
    for (size_t i = 0; i < array_len(forms); i++)
        assert_int_equal(str_utf8_length(forms[i].text, forms[i].n), forms[i].len);
}

static void test_a_cut_is_between_characters(void **state)
{
    static const struct {
        const char *text;
        size_t most, n;
    } cuts[] = {
        {"", 0, 0},
        {"", 4, 0},
        {"abc", 0, 0},
        {"abc", 2, 2},
        {"abc", 3, 3},
        {"abc", 9, 3},
        {"a\xe2\x82\xac!", 1, 1},
        {"a\xe2\x82\xac!", 2, 1},
        {"a\xe2\x82\xac!", 3, 1},
        {"a\xe2\x82\xac!", 4, 4},
        {"\xf0\x9f\x98\x80", 3, 0},
        {"\xf0\x9f\x98\x80", 4, 4},
        {"\x80\x80\x80\x80\x80\x80", 5, 5}, /* no UTF-8 */
    };
    (void)state;
    for (size_t i = 0; i < array_len(cuts); i++)
        assert_int_equal(str_cut(cuts[i].text, cuts[i].most), cuts[i].n);
}

static void test_lists(void **state)
{
    (void)state;
    struct buf seen = BUF_INIT(64);
    const char *list = "a,,bc,";
    size_t n;
    for (const char *it; (it = str_item(&list, &n));)
        assert_int_equal(buf_addf(&seen, "[%.*s]", (int)n, it), 0);
    assert_string_equal(buf_str(&seen), "[a][][bc]");
    buf_release(&seen);
    list = NULL;
    assert_null(str_item(&list, &n));
    assert_true(str_list_has("a,bc", "bc"));
    assert_false(str_list_has("a,bc", "b"));
    assert_false(str_list_has("a,bc", "bcd"));
    assert_false(str_list_has(NULL, "a"));
    assert_true(str_list_has_all("x,y,z", "z,x"));
    assert_true(str_list_has_all("x", ""));
    assert_false(str_list_has_all("x,y", "y,w"));
    assert_false(str_list_has_all(NULL, "y"));
}

static void test_with_port(void **state)
{
    (void)state;
    _cleanup_(freep) char *v4 = str_with_port("10.0.0.1", 80), *v6 = str_with_port("fd00::1", 8265);
    assert_string_equal(v4, "10.0.0.1:80");
    assert_string_equal(v6, "[fd00::1]:8265");
}

/* The vectors of its authors. */
static void test_mark(void **state)
{
    (void)state;
    assert_int_equal(str_mark("", SIZE_MAX), 0x811c9dc5);
    assert_int_equal(str_mark("a", SIZE_MAX), 0xe40c292c);
    assert_int_equal(str_mark("foobar", SIZE_MAX), 0xbf9cf968);
    assert_int_equal(str_mark("foobar and more", 6), 0xbf9cf968);
}

static void test_control_characters(void **state)
{
    static const char *const plain[] = {"", "a b", "\xc2\xa0", "\xc3\x9b", "\xe4\xbd\xa0", "\xc2"};
    static const char *const odd[] = {"a\n", "\t", "\x1b[31m", "\x7f", "a\xc2\x80", "\xc2\x9bm"};
    (void)state;
    for (size_t i = 0; i < array_len(plain); i++)
        assert_false(str_has_control(plain[i]));
    for (size_t i = 0; i < array_len(odd); i++)
        assert_true(str_has_control(odd[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mark),
                                       cmocka_unit_test(test_control_characters),
                                       cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_nearest_name),
                                       cmocka_unit_test(test_glob),
                                       cmocka_unit_test(test_expand),
                                       cmocka_unit_test(test_secret_names),
                                       cmocka_unit_test(test_shell_quote_every_byte),
                                       cmocka_unit_test(test_with_port),
                                       cmocka_unit_test(test_utf8_forms),
                                       cmocka_unit_test(test_a_cut_is_between_characters),
                                       cmocka_unit_test(test_lists)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
