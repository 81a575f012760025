/* SPDX-License-Identifier: Apache-2.0 */
static void file_begin(struct file *f)
{
    work_start(loop, file_run, file_done, f);
}

static void job_begin(struct job *j)
{
    if (j->is_over)
        file_begin(j->file);
}

void tick(struct jobs *js)
{
    for (struct job *j = js->first; j; j = j->next)
        job_begin(j);
    for (size_t i = 0; i < js->n; i++) {
        if (js->v[i]->wanted)
            work_start(loop, run, done, js->v[i]);
    }
    while ((r = take_next(js)))
        uv_queue_work(loop, &r->work, run, done);
}

void one_at_once(struct jobs *js)
{
    for (struct job *j = js->first; j; j = j->next)
        if (j->wanted) {
            work_start(loop, run, done, j);
            return;
        }
    for (struct job *j = js->first; j; j = j->next)
        work_start_for(loop, j->user, run, done, j);
}
