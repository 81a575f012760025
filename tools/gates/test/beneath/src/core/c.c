/* SPDX-License-Identifier: Apache-2.0 */
int c(const char *path)
{
    return stat(path, &st);
}
