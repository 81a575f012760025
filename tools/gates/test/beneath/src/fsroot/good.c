/* SPDX-License-Identifier: Apache-2.0 */
#define NAMES_MAX 10
#define FLAGS (O_WRONLY | O_CREAT | O_EXCL)

int good(const struct rootdir *d, const char *name)
{
    char text[64] = "a/b";
    int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY);
    fd = openat(d->fd, name, FLAGS | O_NOFOLLOW | O_CLOEXEC);
    fd = openat(d->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    rootdir_unlink(d, name, "open(x/y)");
    s->open(name);
    s->read(fd, text, 1);
    unlinkat(d->fd, name, 0);
    return beneath_open(d->fd, "a/b", O_RDONLY, 0);
}

void good_names(DIR *d, struct strv *ret)
{
    for (struct dirent *e; ret->n < NAMES_MAX && (e = readdir(d));)
        strv_add(ret, e->d_name);
}

int count_names(DIR *d)
{
    int n = 0;
    while (readdir(d))
        n++;
    return n;
}
