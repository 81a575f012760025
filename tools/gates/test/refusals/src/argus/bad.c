/* SPDX-License-Identifier: Apache-2.0 */
int bad(struct err *err)
{
    return err_set(err, ERR_USAGE, "give ID");
}
