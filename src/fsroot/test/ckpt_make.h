/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_make.h - for unit tests: files as torch.save writes them, and checkpoints of them. */
#pragma once
#include "base/digest/crc.h"
#include "base/unit_dir.h"

static inline void put_le(struct buf *out, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        (void)buf_addc(out,
                       (char)(i < 8 ? v >> (8 * i) & 0xff : 0)); /* it grows to what a test wants */
}

struct made_member {
    const char *name;
    const char *data;
    size_t n;
};

static inline void put_member(struct buf *out, struct buf *dir, const struct made_member *m)
{
    uint32_t crc = crc32_add(0, m->data, m->n);
    uint64_t at = out->len;
    size_t name = strlen(m->name);
    put_le(out, 0x04034b50, 4);
    put_le(out, 0, 10);
    put_le(out, crc, 4);
    put_le(out, m->n, 4);
    put_le(out, m->n, 4);
    put_le(out, name, 2);
    put_le(out, 0, 2);
    (void)buf_adds(out, m->name);
    (void)buf_add(out, m->data, m->n);
    put_le(dir, 0x02014b50, 4);
    put_le(dir, 0, 12);
    put_le(dir, crc, 4);
    put_le(dir, m->n, 4);
    put_le(dir, m->n, 4);
    put_le(dir, name, 2);
    put_le(dir, 0, 12);
    put_le(dir, at, 4);
    (void)buf_adds(dir, m->name);
}

/* A pickle, and a tensor of so many bytes. */
static inline void make_torch(struct buf *out, size_t tensor)
{
    struct buf dir = BUF_INIT(1 << 20);
    _cleanup_(freep) char *data = xcalloc(tensor ? tensor : 1, 1);
    memset(data, 0x5a, tensor);
    const struct made_member members[] = {{"archive/data.pkl", "\x80\x02}.", 4},
                                          {"archive/data/0", data, tensor},
                                          {"archive/version", "3\n", 2}};
    for (size_t i = 0; i < array_len(members); i++)
        put_member(out, &dir, &members[i]);
    uint64_t at = out->len;
    (void)buf_add(out, dir.data, dir.len);
    put_le(out, 0x06054b50, 4);
    put_le(out, 0, 4);
    put_le(out, array_len(members), 2);
    put_le(out, array_len(members), 2);
    put_le(out, dir.len, 4);
    put_le(out, at, 4);
    put_le(out, 0, 2);
    buf_release(&dir);
    assert_false(out->failed);
}

static inline void put_torch(const char *dir, const char *name, size_t tensor)
{
    struct buf out = BUF_INIT(8 << 20);
    _cleanup_(freep) char *path = xasprintf("%s/%s", dir, name);
    _cleanup_(freep) char *parent = xstrndup(path, (size_t)(strrchr(path, '/') - path));
    make_torch(&out, tensor);
    assert_int_equal(file_mkdirs(parent, 0755, NULL), 0);
    assert_int_equal(file_write(path, out.data, out.len, 0644, 0, NULL), 0);
    buf_release(&out);
}

/* global_step_<step> of one actor with `world` ranks, whole; the tracker is left as it is. */
static inline void put_checkpoint(const char *root, const char *job, int step, int world)
{
    static const char *const kinds[] = {"model", "optim", "extra_state"};
    _cleanup_(freep) char *dir =
        xasprintf("%s/jobs/%s/checkpoints/global_step_%d", root, job, step);
    for (int rank = 0; rank < world; rank++)
        for (size_t k = 0; k < array_len(kinds); k++) {
            _cleanup_(freep) char *name =
                xasprintf("actor/%s_world_size_%d_rank_%d.pt", kinds[k], world, rank);
            put_torch(dir, name, 100000);
        }
    put(dir, "actor/huggingface/config.json", "{}");
    put_torch(dir, "data.pt", 10);
}

static inline void put_tracker(const char *root, const char *job, const char *text)
{
    _cleanup_(freep) char *name =
        xasprintf("jobs/%s/checkpoints/latest_checkpointed_iteration.txt", job);
    put(root, name, text);
}
