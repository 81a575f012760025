/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of look.h: files, models and verl's configurations as they lie on a disk. */
#define _GNU_SOURCE
#include "fsroot/look/look.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

#include "base/test/unit_look.h"
#include "base/unit_dir.h"
#include "fsroot/look/looked.h"

static struct preflight_model model_at(const char *root, const char *name, bool hub)
{
    struct preflight_facts f = {.model = xcalloc(1, sizeof(*f.model))};
    f.model->path = xasprintf("%s/%s", root, name);
    f.model->is_hub = hub;
    fsroot_look(root, NULL, &f, NULL);
    struct preflight_model m = *f.model;
    free(f.model);
    f.model = NULL;
    preflight_release(&f);
    return m;
}

static void release(struct preflight_model *m)
{
    struct preflight_facts f = {.model = xcalloc(1, sizeof(*m))};
    *f.model = *m;
    preflight_release(&f);
}

static struct preflight_model known_model(struct looked *known, const char *root)
{
    struct preflight_facts f = {.model = xcalloc(1, sizeof(*f.model))};
    f.model->path = xasprintf("%s/m", root);
    fsroot_look(root, known, &f, NULL);
    struct preflight_model m = *f.model;
    free(f.model);
    f.model = NULL;
    preflight_release(&f);
    return m;
}

static void put_shard(const char *root, const char *name, size_t cut)
{
    static const char header[] = "{\"a\":{\"dtype\":\"BF16\",\"shape\":[2,3],"
                                 "\"data_offsets\":[0,12]}}";
    char bytes[8 + sizeof(header) - 1 + 12] = {0};
    bytes[0] = (char)(sizeof(header) - 1);
    memcpy(bytes + 8, header, sizeof(header) - 1);
    _cleanup_(freep) char *path = xasprintf("%s/%s", root, name);
    assert_int_equal(file_write(path, bytes, sizeof(bytes) - cut, 0644, 0, NULL), 0);
}

static void sees_files(void **state)
{
    const char *root = *state;
    put(root, "a.parquet", "PAR1....PAR1");
    put(root, "t.yaml", "tools: [\n");
    _cleanup_(freep) char *fifo = xasprintf("%s/fifo", root);
    assert_int_equal(mkfifo(fifo, 0644), 0);
    const char *const names[] = {"a.parquet", "none", "", "t.yaml", "fifo"};
    struct preflight_facts f = {.files = xcalloc(5, sizeof(*f.files)), .n_files = 5};
    for (size_t i = 0; i < 5; i++) {
        f.files[i].path = xasprintf("%s/%s", root, names[i]);
        f.files[i].kind = i == 3 ? PREFLIGHT_TREE : PREFLIGHT_DATA;
    }
    fsroot_look(root, NULL, &f, NULL);
    assert_true(f.files[0].is_file && f.files[0].size == 12 && f.files[0].n_head == 12);
    assert_memory_equal(f.files[0].tail, "PAR1", 4);
    assert_int_equal(f.files[1].error, ENOENT);
    assert_true(f.files[2].is_dir && !f.files[2].error);
    assert_non_null(strstr(f.files[3].broken, "\"line\":2,\"column\":1"));
    assert_true(!f.files[4].is_file && !f.files[4].is_dir && !f.files[4].error);
    assert_true(f.has_free && f.free_bytes > 0);
    preflight_release(&f);
}

static struct preflight_file file_at(const char *root, const char *name, enum preflight_kind kind)
{
    struct preflight_facts f = {.files = xcalloc(1, sizeof(*f.files)), .n_files = 1};
    f.files[0].path = xasprintf("%s/%s", root, name);
    f.files[0].kind = kind;
    fsroot_look(root, NULL, &f, NULL);
    struct preflight_file got = f.files[0];
    free(got.path);
    f.n_files = 0;
    preflight_release(&f);
    got.path = NULL;
    return got;
}

static void expect_file(const char *root,
                        const char *name,
                        bool is_file,
                        int error,
                        const char *real)
{
    _cleanup_(freep) char *below =
        *real == '+' ? xasprintf("%s/%s", root, real + 1) : xstrdup(real);
    struct preflight_file f = file_at(root, name, PREFLIGHT_TREE);
    assert_int_equal(f.is_file, is_file);
    assert_int_equal(f.error, error);
    assert_string_equal(str_or(f.real, ""), below);
    assert_null(f.broken);
    free(f.real);
}

static void put_link(const char *root, const char *name, const char *text)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", root, name);
    assert_int_equal(symlink(text, path), 0);
}

/* A link is followed on the root alone, and elsewhere is not even asked what is there. */
static void follows_links_on_the_root(void **state)
{
    const char *root = *state;
    put(root, "d/t.yaml", "a: 1\n");
    put_link(root, "to", "d");
    put_link(root, "t", "to/t.yaml");
    put_link(root, "out", "/proc/self/status");
    put_link(root, "gone", "/nowhere");
    put_link(root, "proc", "../../../../../../proc");
    put_link(root, "self", "self");
    expect_file(root, "d/t.yaml", true, 0, "+d/t.yaml");
    expect_file(root, "to/t.yaml", true, 0, "+d/t.yaml");
    expect_file(root, "t", true, 0, "+d/t.yaml");
    expect_file(root, "out", false, 0, "/proc/self/status");
    expect_file(root, "gone", false, 0, "/nowhere");
    expect_file(root, "proc/self/status", false, 0, "../../../../../../proc");
    expect_file(root, "self", false, ELOOP, "");
    expect_file(root, "../x", false, 0, "..");
    struct preflight_file f = file_at(root, "out", PREFLIGHT_PROGRAM);
    assert_true(f.is_elsewhere && !f.error && !f.may_run);
    free(f.real);
}

/* As the hub's own library lays a cache out. */
static void follows_links_of_a_cache(void **state)
{
    const char *root = *state;
    put(root, "models--q--w/blobs/1", "{}");
    put_shard(root, "models--q--w/blobs/2", 0);
    put(root, "models--q--w/snapshots/abc/tokenizer.json", "{}");
    put_link(root, "models--q--w/snapshots/abc/config.json", "../../blobs/1");
    put_link(root, "models--q--w/snapshots/abc/model.safetensors", "../../blobs/2");
    struct preflight_model m = model_at(root, "models--q--w", true);
    assert_true(m.has_config && !m.config_broken && m.n_shards == 1 && m.shards[0].wants);
    release(&m);
    put_link(root, "models--away", "/nowhere");
    m = model_at(root, "models--away", true);
    assert_true(m.is_elsewhere && !m.error);
    release(&m);
}

/* What a link has elsewhere is there, and is not read. */
static void reads_no_part_of_a_model_elsewhere(void **state)
{
    const char *root = *state;
    put(root, "l/tokenizer.json", "{}");
    put_link(root, "l/config.json", "/proc/self/status");
    put_link(root, "l/model.safetensors", "/proc/self/status");
    put_link(root, "l/model.safetensors.index.json", "/proc/self/status");
    struct preflight_model m = model_at(root, "l", false);
    assert_true(m.has_config && !m.config_broken && !m.has_index && m.n_shards == 1);
    assert_true(m.shards[0].is_elsewhere && !m.shards[0].error && !m.shards[0].broken);
    release(&m);
    put_link(root, "k", "/proc/self");
    m = model_at(root, "k", false);
    assert_true(m.is_dir && !m.error && !m.n_shards);
    assert_string_equal(m.real, "/proc/self");
    release(&m);
}

/* What was read before is told again, unless it is another file by now. */
static void sees_what_changed(void **state)
{
    const char *root = *state;
    put(root, "m/config.json", "{}");
    put(root, "m/tokenizer.json", "{}");
    put(root, "m/model.safetensors.index.json",
        "{\"weight_map\": {\"a\": \"1.safetensors\", \"b\": \"2.safetensors\", \"c\": "
        "\"1.safetensors\"}}");
    put_shard(root, "m/1.safetensors", 0);
    put_shard(root, "m/2.safetensors", 0);
    struct looked *known = looked_new(100, 0, clock_wall);
    for (int i = 0; i < 3; i++) { /* read, and perhaps known */
        struct preflight_model m = known_model(known, root);
        assert_true(m.has_index && m.has_config && m.has_tokenizer && m.n_shards == 2);
        assert_string_equal(m.shards[0].name, "1.safetensors");
        assert_int_equal(m.shards[1].wants, m.shards[1].size);
        release(&m);
    }
    put_shard(root, "m/2.safetensors", 4);
    put(root, "m/config.json", "[");
    struct preflight_model m = known_model(known, root);
    assert_true(m.shards[1].wants > m.shards[1].size);
    assert_non_null(m.config_broken);
    release(&m);
    looked_free(known);
}

static struct stat a_stat(int inode, time_t changed)
{
    struct stat st = {.st_ino = (ino_t)inode, .st_size = 7};
    st.st_mtim.tv_sec = 1000;
    st.st_ctim.tv_sec = changed;
    return st;
}

static void remembers(void **state)
{
    (void)state;
    struct looked *known = looked_new(4, USEC_SEC, clock_wall);
    struct looked_facts f = {.n_head = 3, .wants = 9, .broken = xstrdup("it is")}, got;
    struct stat st = a_stat(1, 1000), other = a_stat(2, 1000), later = a_stat(1, 1001);
    struct stat now = a_stat(1, (time_t)(clock_wall() / USEC_SEC));
    strv_add(&f.names, "a");
    looked_add(known, LOOKED_SHARD, "/a", &st, &f);
    assert_true(looked_find(known, LOOKED_SHARD, "/a", &st, &got));
    assert_true(got.n_head == 3 && got.wants == 9 && strv_has(&got.names, "a"));
    assert_string_equal(got.broken, "it is");
    looked_facts_release(&got);
    assert_false(looked_find(known, LOOKED_FILE, "/a", &st, &got));
    assert_false(looked_find(known, LOOKED_SHARD, "/a", &other, &got));
    assert_false(looked_find(known, LOOKED_SHARD, "/a", &later, &got));
    looked_add(known, LOOKED_SHARD, "/b", &now, &f); /* changed a moment ago */
    assert_false(looked_find(known, LOOKED_SHARD, "/b", &now, &got));
    for (int i = 0; i < 9; i++) { /* what is asked for stays, the others go */
        _cleanup_(freep) char *path = xasprintf("/%d", i);
        looked_add(known, LOOKED_FILE, path, &st, &f);
        assert_true(looked_find(known, LOOKED_SHARD, "/a", &st, &got));
        looked_facts_release(&got);
    }
    assert_false(looked_find(known, LOOKED_FILE, "/0", &st, &got));
    assert_false(looked_find(NULL, LOOKED_FILE, "/8", &st, &got));
    looked_facts_release(&f);
    looked_free(known);
}

static void sees_a_whole_model(void **state)
{
    const char *root = *state;
    put(root, "m/config.json", "{\"model_type\": \"qwen2\"}");
    put(root, "m/tokenizer.json", "{}");
    put_shard(root, "m/model.safetensors", 0);
    struct preflight_model m = model_at(root, "m", false);
    assert_true(m.is_dir && m.has_config && !m.config_broken && m.has_tokenizer && !m.error);
    assert_int_equal(m.n_shards, 1);
    assert_int_equal(m.shards[0].wants, m.shards[0].size);
    assert_int_equal(m.shards[0].elements, 6);
    release(&m);
}

static void sees_what_a_model_lacks(void **state)
{
    const char *root = *state;
    put(root, "n/config.json", "{\"model_type\": ");
    put(root, "n/model.safetensors.index.json",
        "{\"weight_map\": {\"a\": \"m-1.safetensors\", \"b\": \"m-2.safetensors\","
        " \"c\": \"../../etc/passwd\"}}");
    put_shard(root, "n/m-1.safetensors", 5);
    struct preflight_model m = model_at(root, "n", false);
    assert_true(m.has_config && m.config_broken && !m.has_tokenizer && m.has_index);
    assert_int_equal(m.n_shards, 2);
    assert_int_equal(m.shards[0].wants, m.shards[0].size + 5);
    assert_int_equal(m.shards[1].error, ENOENT);
    release(&m);
    m = model_at(root, "nowhere", false);
    assert_int_equal(m.error, ENOENT);
    release(&m);
}

static void sees_the_cache_of_the_hub(void **state)
{
    const char *root = *state;
    put(root, "models--q--w/refs/main", "abc\n");
    put(root, "models--q--w/snapshots/abc/config.json", "{}");
    struct preflight_model m = model_at(root, "models--q--w", true);
    assert_true(m.has_config && str_ends(m.path, "/snapshots/abc"));
    release(&m);
    put(root, "models--q--x/refs/main", "../../up");
    m = model_at(root, "models--q--x", true);
    assert_int_equal(m.error, ENOENT);
    release(&m);
}

static void has(const struct preflight_keys *k, const char *key)
{
    if (!strv_has(&k->keys, key))
        print_message("there is no %s\n", key);
    assert_true(strv_has(&k->keys, key));
}

static void composes_keys(void **state)
{
    const char *root = *state;
    put(root, "t/verl/trainer/config/sft.yaml",
        "defaults:\n- model@model: hf\n- optim\n- optional x@y.z: one\n- _self_\n"
        "data: {files: a, empty: {}, none: null}\n");
    put(root, "t/verl/trainer/config/optim.yaml", "seed: 1\n");
    put(root, "t/verl/trainer/config/model/hf.yaml",
        "defaults: [../x@inner: one, base, _self_]\npath: p\n");
    put(root, "t/verl/trainer/config/model/base.yaml", "lora: {rank: 1}\n");
    put(root, "t/verl/trainer/config/x/one.yaml", "k: 1\n");
    put(root, "t/verl/trainer/config/_generated_ppo.yaml", "trainer: {nnodes: 1}\n");
    put(root, "t/verl/trainer/config/ppo.yaml", "defaults: [gone]\n");
    put(root, "t/verl/trainer/config/odd.yaml", "defaults:\n- m: ${n}\na: 1\n");
    _cleanup_(freep) char *tree = xasprintf("%s/t", root);
    struct preflight_keys k;
    assert_int_equal(fsroot_verl_keys(root, tree, "sft", &k), 1);
    static const char *const all[] = {
        "data.files",    "data.empty", "model.path", "seed", "model.lora.rank",
        "model.inner.k", "y.z.k",      "y",          "model"};
    for (size_t i = 0; i < array_len(all); i++)
        has(&k, all[i]);
    assert_false(strv_has(&k.keys, "defaults"));
    assert_true(k.whole && strv_has(&k.groups, "model") && strv_has(&k.options, "model=hf"));
    assert_true(strv_has(&k.leaves, "data.empty") && !strv_has(&k.leaves, "data"));
    preflight_keys_release(&k);
    assert_int_equal(fsroot_verl_keys(root, tree, "ppo", &k), 1);
    has(&k, "trainer.nnodes");
    assert_true(k.whole);
    preflight_keys_release(&k);
    assert_int_equal(fsroot_verl_keys(root, tree, "odd", &k), 1);
    assert_false(k.whole);
    preflight_keys_release(&k);
    assert_int_equal(fsroot_verl_keys(root, tree, "none", &k), 0);
    assert_int_equal(fsroot_verl_keys(root, "/nowhere", "sft", &k), 0);
}

static void a_failed_look_finds_no_keys(void **state)
{
    static const int unseen[] = {ESTALE, EIO, EMFILE};
    static const char *const names[] = {"config", "_generated_sft.yaml", "sft.yaml", "optim.yaml"};
    const char *root = *state;
    struct preflight_keys k;
    put(root, "t/verl/trainer/config/sft.yaml", "defaults:\n- optim\n- _self_\ndata: {a: 1}\n");
    put(root, "t/verl/trainer/config/optim.yaml", "seed: 1\n");
    _cleanup_(freep) char *tree = xasprintf("%s/t", root);
    for (size_t i = 0; i < array_len(unseen); i++)
        for (size_t n = 0; n < array_len(names); n++) {
            look_broken = (struct look_broken){names[n], unseen[i], 0, false};
            assert_int_equal(fsroot_verl_keys(root, tree, "sft", &k), -unseen[i]);
            assert_int_equal(k.keys.n, 0);
        }
    look_broken = (struct look_broken){"config", ENOENT, 0, false};
    assert_int_equal(fsroot_verl_keys(root, tree, "sft", &k), 0);
    look_broken = (struct look_broken){0};
    assert_int_equal(fsroot_verl_keys(root, tree, "sft", &k), 1);
    preflight_keys_release(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_failed_look_finds_no_keys, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(sees_files, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(follows_links_on_the_root, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(follows_links_of_a_cache, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(reads_no_part_of_a_model_elsewhere, root_setup,
                                        root_teardown),
        cmocka_unit_test_setup_teardown(sees_what_changed, root_setup, root_teardown),
        cmocka_unit_test(remembers),
        cmocka_unit_test_setup_teardown(sees_a_whole_model, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(sees_what_a_model_lacks, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(sees_the_cache_of_the_hub, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(composes_keys, root_setup, root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
