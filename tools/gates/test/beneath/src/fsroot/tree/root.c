/* SPDX-License-Identifier: Apache-2.0 */
int root(const char *root)
{
    return stat(root, &st) + stat(root, &st) + statvfs(root, &vfs) + lstat(root, &st);
}
