/* SPDX-License-Identifier: Apache-2.0 */
/* open("/x") in a comment is fine. */
int bad(int dir, const char *path)
{
    int fd = open(path, O_RDONLY);
    file_read(path, &text, err);
    rename(path, "other");
    chmod(path, 0644);
    fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    fd = openat(dir, "a/b", O_RDONLY | O_NOFOLLOW);
    fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW);
    faccessat(dir, name, F_OK, 0);
    return fd;
}
