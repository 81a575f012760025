/* SPDX-License-Identifier: Apache-2.0 */
void shared(struct jobs *js)
{
    struct userlines_place *next;
    while ((next = userlines_next(&js->lines, BUSY_MAX)))
        work_start(loop, run, done, next);
}
