/* SPDX-License-Identifier: Apache-2.0 */
int conn(const char *path)
{
    return sqlite3_open_v2(path, &db, 0, 0);
}
