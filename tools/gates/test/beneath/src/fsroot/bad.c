/* SPDX-License-Identifier: Apache-2.0 */
/* open("/x") in a comment is fine. */
#define BELOW "a/b"

int bad(int dir, const char *path)
{
    int fd = open(path, O_RDONLY);
    file_read(path, &text, err);
    rename(path, "other");
    chmod(path, 0644);
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = openat(dir, "a/b", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW);
    faccessat(dir, name, F_OK, 0);
    return fd;
}

int hidden(int dir, const char *name)
{
    _cleanup_(freep) char *both = xasprintf("%s/data", name);
    unlinkat(dir, both, 0);
    mkdirat(dir, BELOW, 0755);
    const char *way = "a/b";
    return openat(dir, way, O_PATH | O_NOFOLLOW);
}

int others(int dir, const char *path)
{
    file_read_input(path, &text, err);
    archive_read_open_filename(a, path, 1);
    uv_fs_open(loop, &req, path, O_RDONLY, 0, NULL);
    syscall(SYS_open, path, O_RDONLY);
    setxattr(path, "user.x", "", 0, 0);
    mkostemp(path, O_CLOEXEC);
    struct child_spec spec = {.argv = argv, .cwd = path};
    return 0;
}

int unbounded(int dir, const char *name, DIR *d, struct strv *ret)
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    while (read(fd, bytes, sizeof(bytes)) > 0)
        ;
    for (struct dirent *e; (e = readdir(d));)
        strv_add(ret, e->d_name);
    return fd;
}
