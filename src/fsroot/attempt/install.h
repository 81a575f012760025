/* SPDX-License-Identifier: Apache-2.0 */
/* install.h - the shepherd, the hook and our own tools, as they lie on the shared root. Blocking.
 */
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Place argus/bin/<arch>/argus-shepherd (arch: `uname -m` of the ELF header, so
 * one root serves several) and argus/hook/sitecustomize.py, each atomically and
 * only when its bytes differ. An empty plain file argus/hook/__pycache__ keeps
 * Python from writing there. Returns how many were replaced (0 to 2). ERR_USAGE: what lies in
 * hook_dir is one of the sources of the hook only. */
must_check int fsroot_install(const char *root,
                              const char *shepherd_binary,
                              const char *hook_dir,
                              struct err *err);
/* A file that travels inside argusd. */
struct fsroot_file {
    const char *name;
    const void *data;
    size_t size;
};
/* Place argus/lib/<name>, in the same way: what our own jobs on workers run. Returns how many
 * were replaced. */
must_check int fsroot_install_lib(const char *root,
                                  const struct fsroot_file *files,
                                  size_t n,
                                  struct err *err);
char *fsroot_lib_dir(const char *root); /* <root>/argus/lib */

/* <root>/argus/hook, the first entry of a job's PYTHONPATH. */
char *fsroot_hook_dir(const char *root);
/* Append Ray's entrypoint of an attempt, quoted for its shell; the worker's own
 * `uname -m` chooses the binary. */
void fsroot_entrypoint(struct buf *out, const char *root, const char *job, int attempt);
