/* SPDX-License-Identifier: Apache-2.0 */
int good(const struct rootdir *d, const char *name)
{
    int fd = openat(d->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY);
    rootdir_unlink(d, name, "open(x/y)");
    s->open(name);
    unlinkat(d->fd, name, 0);
    return beneath_open(d->fd, "a/b", O_RDONLY, 0);
}
