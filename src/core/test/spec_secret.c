/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that look like keys, and texts that only look like their names. */
#include "core/spec/spec_secret.h"

#include <string.h>

#include "base/unit.h"
#include "core/spec/spec.h"

#define RANDOM "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"

static void test_keys_are_found(void **state)
{
    static const struct {
        const char *text, *previous, *value, *name;
    } rows[] = {
        {"+reward.kwargs.api_key=" RANDOM, NULL, RANDOM, "reward.kwargs.api_key"},
        {"+reward.kwargs={api_key: " RANDOM ", n: 1}", NULL, RANDOM, "api_key"},
        {"WANDB_API_KEY=" RANDOM " python3 train.py", NULL, RANDOM, "WANDB_API_KEY"},
        {"python3 t.py --hf-token '" RANDOM "' --n 1", NULL, RANDOM, "hf-token"},
        {"python3 t.py --hf-token=" RANDOM, NULL, RANDOM, "hf-token"},
        {RANDOM, "--api-key", RANDOM, "api-key"},
        {"python3 t.py sk-aaaaaaaaaaaaaaaaaaaa", NULL, "sk-aaaaaaaaaaaaaaaaaaaa", ""},
        {"a.b=hf_AbCdEfGhIjKlMnOpQrSt", NULL, "hf_AbCdEfGhIjKlMnOpQrSt", "a.b"},
        {"curl -H 'Authorization: Bearer " RANDOM "' http://x", NULL, RANDOM, "token"},
        {"DB_PASSWORD=hunter2 ./run", NULL, "hunter2", "DB_PASSWORD"},
        {"git clone https://me:pa55word@host/x.git", NULL, "pa55word", ""},
        {"export AWS_SECRET_ACCESS_KEY=\"" RANDOM "\"; run", NULL, RANDOM, "AWS_SECRET_ACCESS_KEY"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct strv values = {0}, names = {0};
        spec_secrets_in(rows[i].text, rows[i].previous, &values, &names);
        if (values.n != 1 || strcmp(values.v[0], rows[i].value) != 0 ||
            strcmp(names.v[0], rows[i].name) != 0)
            fail_msg("%s: %zu, %s", rows[i].text, values.n, values.n ? values.v[0] : "");
        strv_release(&values);
        strv_release(&names);
    }
}

static void test_what_is_no_key(void **state)
{
    static const char *const texts[] = {
        "data.prompt_key=prompt",
        "data.reward_model_key=reward_model",
        "data.max_tokens=4096",
        "tokenizer.pad_token=<|endoftext|>",
        "+a.api_key=${oc.env:API_KEY}",
        "python3 t.py --token $HF_TOKEN",
        "python3 t.py --token ${HF_TOKEN}",
        "model.key=Qwen2.5-7B-Instruct",
        "model.path=/ckpt/0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        "trainer.experiment_name=0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        "python3 train.py --tokens-per-batch 1048576 --key-frames 12",
        "wget http://host:8080/a@b",
        "",
    };
    (void)state;
    for (size_t i = 0; i < array_len(texts); i++) {
        struct strv values = {0};
        spec_secrets_in(texts[i], NULL, &values, NULL);
        if (values.n)
            fail_msg("%s: %s", texts[i], values.v[0]);
        strv_release(&values);
    }
}

static void test_all_of_a_spec(void **state)
{
    struct spec s = {0};
    struct strv all = {0};
    (void)state;
    strv_add(&s.overrides, "a.api_key=" RANDOM);
    strv_add(&s.entrypoint, "run");
    strv_add(&s.entrypoint, "--password");
    strv_add(&s.entrypoint, "open sesame");
    strv_add(&s.entrypoint, RANDOM);
    spec_list_secrets(&s, &all);
    assert_int_equal(all.n, 2); /* each once */
    assert_true(strv_has(&all, RANDOM));
    assert_true(strv_has(&all, "open"));
    strv_release(&all);
    strv_release(&s.overrides);
    strv_release(&s.entrypoint);
}

/* None is left out of a text that is made to hold as many as fit. */
static void test_a_text_of_many(void **state)
{
    enum { MANY = 4 * SPEC_SECRETS_ONCE };
    struct buf text = BUF_INIT(1 << 20);
    struct strv values = {0}, all = {0};
    (void)state;
    for (int twice = 0; twice < 2; twice++)
        for (int i = 0; i < MANY; i++)
            (void)buf_addf(&text, "x://u:pass%d@ ", i);
    assert_false(text.failed);
    spec_secrets_in(buf_str(&text), NULL, &values, NULL);
    assert_int_equal(values.n, 2 * MANY); /* past the bound nobody looks whether it is there */
    assert_true(strv_has(&values, "pass0") && strv_has(&values, "pass1023"));
    struct spec s = {0};
    strv_add(&s.entrypoint, buf_str(&text));
    spec_list_secrets(&s, &all);
    assert_int_equal(all.n, MANY); /* each once */
    strv_release(&s.entrypoint);
    strv_release(&values);
    strv_release(&all);
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_found), cmocka_unit_test(test_what_is_no_key),
        cmocka_unit_test(test_all_of_a_spec), cmocka_unit_test(test_a_text_of_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
