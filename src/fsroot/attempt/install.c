/* SPDX-License-Identifier: Apache-2.0 */
/* install.c - places the shepherd and the hook on the shared root; see install.h.
 *
 * A shepherd that runs keeps reading its binary from there, over NFS from another
 * machine, where replacing a name can take the bytes away from it. So the binary
 * that is replaced keeps one more name, and its inode lives on. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/install.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootdir.h"

enum { BINARY_MAX = 64 << 20, HOOK_MAX = 1 << 20 };

/* `uname -m` of the machine that can run this file; NULL for what we do not know. */
static const char *arch_of(const struct buf *binary)
{
    Elf64_Ehdr head;
    if (binary->len < sizeof(head))
        return NULL;
    memcpy(&head, binary->data, sizeof(head));
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
        return NULL;
    switch (head.e_machine) {
    case EM_X86_64:
        return "x86_64";
    case EM_AARCH64:
        return "aarch64";
    case EM_PPC64:
        return "ppc64le";
    case EM_S390:
        return "s390x";
    case EM_RISCV:
        return "riscv64";
    default:
        return NULL;
    }
}

/* 1: the file has these bytes and this mode already. A read that fails is no other file: the one
 * that running jobs were started from would become the previous one, and be lost at the next try.
 */
static int install_is_there(const struct rootdir *dir,
                            const char *name,
                            const struct buf *want,
                            mode_t mode,
                            struct err *err)
{
    _cleanup_(buf_release) struct buf now = BUF_INIT(BINARY_MAX);
    struct err why = {0};
    struct stat st = {0};
    int r = rootdir_read(dir, name, &now, &why);
    if (r == 0)
        r = rootdir_look(dir, name, &st);
    if (r < 0)
        return rootdir_is_answer(r) ? 0
               : why.code           ? err_copy(err, r, &why)
                                    : message_refuse(err, r, "disk_no_look_in",
                                                     MESSAGE_ARGS(MESSAGE_STR("dir", dir->path),
                                                                  MESSAGE_STR("name", name),
                                                                  MESSAGE_STR("why", strerror(-r))));
    return now.len == want->len && !memcmp(buf_str(&now), buf_str(want), now.len) &&
           S_ISREG(st.st_mode) && (st.st_mode & 07777) == mode;
}

/* 1 when the file was replaced, 0 when it is the same already. */
static int install_place(const struct rootdir *dir,
                         const char *name,
                         const struct buf *want,
                         mode_t mode,
                         bool keep_previous,
                         struct err *err)
{
    int r = install_is_there(dir, name, want, mode, err);
    if (r != 0)
        return r < 0 ? r : 0;
    if (keep_previous) {
        _cleanup_(freep) char *previous = xasprintf("%s.previous", name);
        (void)rootdir_unlink(dir, previous, NULL); /* neither may exist, and a comfort to */
        (void)!rootdir_link(dir, name, dir, previous, NULL); /* jobs must not keep a binary away */
    }
    r = rootdir_write(dir, name, buf_str(want), want->len, mode, FILE_SYNC, err);
    return r < 0 ? r : 1;
}

/* argus-gpus, where it lies beside the shepherd: without it there are no figures of GPUs but Ray's.
 * The number of files that were replaced, with these. */
static int place_gpus(const char *shepherd, const struct rootdir *dir, int placed, struct err *err)
{
    static const char name[] = "argus-gpus";
    _cleanup_(buf_release) struct buf bytes = BUF_INIT(BINARY_MAX);
    const char *slash = strrchr(shepherd, '/');
    _cleanup_(freep) char *path =
        xasprintf("%.*s%s", slash ? (int)(slash + 1 - shepherd) : 0, shepherd, name);
    int r = file_read(path, &bytes, err);
    if (r < 0)
        return r == -ENOENT ? placed : r;
    r = install_place(dir, name, &bytes, 0755, true, err);
    return r < 0 ? r : placed + r;
}

static int place_shepherd(const char *root, const char *binary, struct err *err)
{
    _cleanup_(buf_release) struct buf bytes = BUF_INIT(BINARY_MAX);
    int r = file_read(binary, &bytes, err);
    if (r < 0)
        return r;
    const char *arch = arch_of(&bytes);
    if (!arch)
        return message_refuse(err, -ENOEXEC, "shepherd_no_program",
                              MESSAGE_ARGS(MESSAGE_STR("path", binary)));
    _cleanup_(freep) char *path = xasprintf("argus/bin/%s", arch);
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    r = rootdir_open(root, path, 0755, &dir, err);
    if (r == 0)
        r = install_place(&dir, "argus-shepherd", &bytes, 0755, true, err);
    return r < 0 ? r : place_gpus(binary, &dir, r, err);
}

/* Every Python of every job would write its cache here, over the network and each version its
 * own. A plain file of that name is the one way to forbid it that binds root as well. */
static int block_cache(const struct rootdir *dir, struct err *err)
{
    static const char name[] = "__pycache__";
    bool is_there = false;
    int r = rootdir_look_for(dir, name, &is_there, err);
    return r < 0 || is_there ? r : rootdir_write(dir, name, "", 0, 0444, 0, err);
}

/* The sources of the hook lie in several files, of which the build makes one; the main one alone
 * would say in each Python process of each job that it cannot be imported, and do nothing. */
static int refuse_part(const char *path, const char *text, struct err *err)
{
    static const char PART[] = "from argus_";
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (str_starts(line, PART))
            return message_refuse(err, ERR_USAGE, "hook_is_source",
                                  MESSAGE_ARGS(MESSAGE_STR("path", path)));
    }
    return 0;
}

static int install_place_hook(const char *root, const char *hook_dir, struct err *err)
{
    _cleanup_(buf_release) struct buf bytes = BUF_INIT(HOOK_MAX);
    _cleanup_(freep) char *from = xasprintf("%s/sitecustomize.py", hook_dir);
    _cleanup_(freep) char *path = fsroot_hook_dir(root);
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    int r = file_read(from, &bytes, err);
    if (r == 0)
        r = refuse_part(from, buf_str(&bytes), err);
    if (r == 0)
        r = rootdir_open(root, path, 0755, &dir, err);
    if (r == 0)
        r = block_cache(&dir, err);
    return r < 0 ? r : install_place(&dir, "sitecustomize.py", &bytes, 0644, false, err);
}

char *fsroot_hook_dir(const char *root)
{
    return xasprintf("%s/argus/hook", root);
}

void fsroot_entrypoint(struct buf *out, const char *root, const char *job, int attempt)
{
    _cleanup_(freep) char *dir = fsroot_attempt_dir(root, job, attempt, NULL);
    _cleanup_(freep) char *bin = xasprintf("%s/argus/bin/", root);
    /* overflow: out->failed */
    (void)buf_adds(out, "exec ");
    (void)str_shell_quote(out, bin);
    (void)buf_adds(out, "$(uname -m)/argus-shepherd ");
    (void)str_shell_quote(out, dir);
}

char *fsroot_lib_dir(const char *root)
{
    return xasprintf("%s/argus/lib", root);
}

int fsroot_install_lib(const char *root, const struct fsroot_file *files, size_t n, struct err *err)
{
    _cleanup_(freep) char *path = fsroot_lib_dir(root);
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    int placed = 0, r = rootdir_open(root, path, 0755, &dir, err);
    if (r == 0)
        r = block_cache(&dir, err);
    for (size_t i = 0; i < n && r >= 0; i++) {
        _cleanup_(buf_release) struct buf bytes = BUF_INIT(HOOK_MAX);
        if (buf_add(&bytes, files[i].data, files[i].size) < 0)
            return message_refuse(err, -EMSGSIZE, "program_too_large",
                                  MESSAGE_ARGS(MESSAGE_STR("path", files[i].name)));
        r = install_place(&dir, files[i].name, &bytes, 0644, false, err);
        placed += r > 0;
    }
    return r < 0 ? r : placed;
}

int fsroot_install(const char *root,
                   const char *shepherd_binary,
                   const char *hook_dir,
                   struct err *err)
{
    int shepherd = place_shepherd(root, shepherd_binary, err);
    if (shepherd < 0)
        return shepherd;
    int hook = install_place_hook(root, hook_dir, err);
    return hook < 0 ? hook : shepherd + hook;
}
