/* SPDX-License-Identifier: Apache-2.0 */
DIR *a(const char *path)
{
    return opendir(path);
}
