/* SPDX-License-Identifier: Apache-2.0 */
int rootdir(const char *root)
{
    readlink("/proc/self/fd/1", text, 1);
    return open(root, O_RDONLY) + open("/another", O_RDONLY);
}
