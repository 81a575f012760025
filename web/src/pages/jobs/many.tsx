// SPDX-License-Identifier: Apache-2.0
// many.tsx - what is done to several chosen jobs: each is looked at and named before it is done, with what will be
// done or why it cannot be, and each tells afterwards what came of it. One that is refused keeps no other from it.
import { signal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { Checkpoint, Job, JobItem } from "../../made/api";
import { call, newKey, Refusal } from "../../api/client";
import { useAsk } from "../../api/use";
import { bytes, num, shape, visible } from "../../base/say";
import { words } from "../../base/words";
import { Tick } from "../../kit/form";
import { ask } from "../../kit/over";
import { shell, State, Text } from "../../kit/parts";
import { isOver, jobName, TRAINS } from "./columns";

export const MOST = 50;

const w = words({
    stop_n: ["Stop {0} {0|job|jobs}?", "停止 {0} 个作业？"],
    stop_text: [
        "{0} {0|GPU comes|GPUs come} back within a minute. What runs can be resumed from its last checkpoint; steps since then are lost.",
        "{0} 张 GPU 将在一分钟内归还。运行中的作业可从最近的检查点恢复，其后的步数将丢失。",
    ],
    stop_go: ["Stop {0} {0|job|jobs}", "停止 {0} 个作业"],
    stopped: ["{0} {0|job is|jobs are} being stopped", "正在停止 {0} 个作业"],
    retry_n: ["Retry {0} {0|job|jobs}?", "重试 {0} 个作业？"],
    retry_text: [
        "Each is submitted once more, with its own spec and a directory of its own. What the old ones left stays.",
        "每个作业按原规格重新提交一次，使用新的目录；原有内容保留。",
    ],
    retry_on: [
        "What did not succeed goes on from its newest checkpoint, where it has one",
        "未成功的作业从其最新检查点继续（如有）",
    ],
    retry_go: ["Retry {0} {0|job|jobs}", "重试 {0} 个作业"],
    from_step: ["goes on from step {0}", "从第 {0} 步继续"],
    anew: ["begins anew", "从头开始"],
    retried: ["Submitted as {0}", "已提交为 {0}"],
    archive_n: ["Archive {0} {0|job|jobs}?", "归档 {0} 个作业？"],
    archive_text: [
        "Each one's directory becomes one file, which is read back before the directory goes. Until it is brought back, its log and its files cannot be read.",
        "每个作业的目录打包为一个文件，读回校验后才删除目录。取回之前，其日志和文件不可读取。",
    ],
    archive_without: ["Without checkpoints: they are removed for good", "不含检查点：检查点将被永久删除"],
    archive_go: ["Archive {0} {0|job|jobs}", "归档 {0} 个作业"],
    no_ckpts: ["no checkpoints", "无检查点"],
    keeps: ["{0} {0|checkpoint|checkpoints}, {1}, {0|is|are} packed too", "连同 {0} 个检查点（{1}）一起打包"],
    loses: ["{0} {0|checkpoint|checkpoints}, {1}, {0|is|are} removed", "{0} 个检查点（{1}）将被删除"],
    packing: ["Is being packed", "正在打包"],
    archived: ["Archived, {0}", "已归档，{0}"],
    is_archived: ["Is archived already", "已归档"],
    live_out: ["{0} of the chosen jobs have not ended and are left out.", "所选作业中有 {0} 个尚未结束，不在其列。"],
    looks: ["{0} of {1} are looked at", "正在查看：{0} / {1}"],
    none_can: ["None of them can be", "均不可执行"],
});

interface Row {
    job: JobItem;
    /** Of this row and this choice: the same request again is the same deed. */
    key: string;
    /** Looked at: as it is, with its checkpoints. */
    page: Job | null;
    kept: Checkpoint[];
    /** What will be done; null: not looked at yet. */
    will: string | null;
    isLoss: boolean;
    /** Why it cannot be done, in the server's words. */
    whyNot: string;
    came: ComponentChildren;
    failed: string;
}
type Rows = Signal<Row[]>;

const rowsOf = (jobs: JobItem[]): Rows =>
    signal(
        jobs.map((job) => ({
            job,
            key: newKey(),
            page: null,
            kept: [],
            will: null,
            isLoss: false,
            whyNot: "",
            came: null,
            failed: "",
        })),
    );
const put = (rows: Rows, id: string, change: Partial<Row>) =>
    (rows.value = rows.value.map((r) => (r.job.id === id ? { ...r, ...change } : r)));
const doable = (rows: Rows) => rows.value.filter((r) => r.will !== null && !r.whyNot);
const idsOf = (rows: Row[]) => rows.map((r) => shell(r.job.id)).join(" ");
const reason = (e: unknown) => (e instanceof Refusal ? e.detail : String(e));

/** Each of them, one after the other: argusd is asked little at once, and the rows fill from the top. */
async function each(rows: Rows, does: (r: Row) => Promise<Partial<Row>>, refused: (why: string) => Partial<Row>) {
    for (const { job } of rows.value) {
        const r = rows.value.find((x) => x.job.id === job.id)!;
        try {
            put(rows, job.id, await does(r));
        } catch (e) {
            put(rows, job.id, refused(reason(e)));
        }
    }
}

function Named({ of: rows }: { of: Rows }) {
    return (
        <ul class="named many">
            {rows.value.map((r) => {
                const bad = r.failed || r.whyNot;
                return (
                    <li key={r.job.id}>
                        <State of={r.job.state} />
                        <span class="cut" title={r.job.id}>
                            <Text of={jobName(r.job)} />
                        </span>
                        <span class="dim">
                            <Text of={r.job.user} /> · {shape(r.job)}
                        </span>
                        <span class={`came small said ${bad || r.isLoss ? "c-bad" : "mid"}`} role="status">
                            {bad ? visible(bad) : (r.came ?? r.will ?? "\u00a0")}
                        </span>
                    </li>
                );
            })}
        </ul>
    );
}

const left = (chosen: JobItem[], over: JobItem[]) =>
    chosen.length > over.length && <p class="mid">{w("live_out", chosen.length - over.length)}</p>;

const missing = (rows: Rows) => {
    const seen = rows.value.filter((r) => r.will !== null || r.whyNot).length;
    if (seen < rows.value.length) return w("looks", seen, rows.value.length);
    return doable(rows).length ? "" : w("none_can");
};

/** What is done to each that can be done; what was done is chosen no more. */
async function act(rows: Rows, does: (r: Row) => Promise<ComponentChildren>, done: (ids: string[]) => void) {
    await each(
        rows,
        async (r) => (r.whyNot || r.came ? {} : { came: await does(r), failed: "", isLoss: false }),
        (failed) => ({ failed }),
    );
    done(rows.value.filter((r) => r.came).map((r) => r.job.id));
}

export function stopChosen(chosen: JobItem[], done: () => void) {
    const live = chosen.filter((j) => !isOver(j));
    const ids = live.map((j) => j.id);
    const gpus = live.filter((j) => j.state !== "QUEUED").reduce((sum, j) => sum + j.gpus, 0);
    ask({
        title: w("stop_n", live.length),
        isBad: true,
        act: w("stop_go", live.length),
        cli: `argus stop ${ids.map(shell).join(" ")}`,
        done: w("stopped", live.length),
        body: (
            <>
                <p>{w("stop_text", gpus)}</p>
                <ul class="named">
                    {live.map((j) => (
                        <li>
                            <State of={j.state} />
                            <Text of={jobName(j)} />
                            <span class="dim">
                                <Text of={j.user} /> · {shape(j)}
                            </span>
                        </li>
                    ))}
                </ul>
            </>
        ),
        does: async () => {
            await call("POST /v1/jobs:stop", { body: { ids } });
            done();
        },
    });
}

async function seen(r: Row): Promise<Row> {
    const path = { id: r.job.id };
    const page = r.page ?? (await call("GET /v1/jobs/{id}", { path }));
    const kept = r.page ? r.kept : (await call("GET /v1/jobs/{id}/checkpoints", { path })).checkpoints;
    return { ...r, page, kept };
}

function fromOf(r: Row, goesOn: boolean): number | null {
    const whole = r.kept.filter((c) => c.state === "complete" || c.state === "verified");
    const may = goesOn && TRAINS.includes(r.job.workload) && r.job.state !== "SUCCEEDED";
    return may && whole.length ? Math.max(...whole.map((c) => c.step)) : null;
}
const retryBody = (from: number | null) => (from === null ? {} : { from: String(from) });

/** Each is tried by the server without being begun, so that what it would refuse is said before. */
async function lookAtRetry(r: Row, goesOn: boolean): Promise<Partial<Row>> {
    const { page, kept } = await seen(r);
    const from = fromOf({ ...r, kept }, goesOn);
    const plan = await call("POST /v1/jobs/{id}:retry", {
        path: { id: r.job.id },
        query: { dry_run: true, no_trial: true },
        body: retryBody(from),
    });
    const wrong = "problems" in plan ? plan.problems.find((p) => p.level === "error") : undefined;
    return { page, kept, will: from === null ? w("anew") : w("from_step", num(from)), whyNot: wrong?.detail ?? "" };
}

export function retryChosen(chosen: JobItem[], done: (ids: string[]) => void) {
    const over = chosen.filter(isOver);
    const rows = rowsOf(over);
    const goesOn = signal(true);
    let turn = 0;
    const look = async (on: boolean) => {
        const mine = ++turn;
        rows.value = rows.value.map((r) => ({ ...r, will: null, whyNot: "" }));
        await each(
            rows,
            async (r) => {
                if (mine !== turn) return {};
                const seen = await lookAtRetry(r, on);
                return mine === turn ? seen : {};
            },
            (whyNot) => (mine === turn ? { whyNot } : {}),
        );
    };
    goesOn.subscribe((on) => void look(on));
    const line = () => {
        const on = doable(rows).filter((r) => fromOf(r, goesOn.value) !== null);
        const anew = doable(rows).filter((r) => !on.includes(r));
        return [on.length && `argus retry --from latest ${idsOf(on)}`, anew.length && `argus retry ${idsOf(anew)}`]
            .filter(Boolean)
            .join("; ");
    };
    ask({
        title: w("retry_n", over.length),
        act: () => w("retry_go", doable(rows).length),
        cli: line,
        missing: () => missing(rows),
        stays: true,
        body: (
            <>
                <p>{w("retry_text")}</p>
                {left(chosen, over)}
                <Tick label={w("retry_on")} of={goesOn} />
                <Named of={rows} />
            </>
        ),
        does: () =>
            act(
                rows,
                async (r) => {
                    const made = await call("POST /v1/jobs/{id}:retry", {
                        path: { id: r.job.id },
                        body: retryBody(fromOf(r, goesOn.value)),
                        idempotencyKey: r.key,
                    });
                    const id = "id" in made && typeof made.id === "string" ? made.id : "";
                    return (
                        <a class="link" href={`/jobs/${encodeURIComponent(id)}`}>
                            {w("retried", visible(id))}
                        </a>
                    );
                },
                done,
            ),
    });
}

/** Packing takes its time: the row follows it to its end. */
function Packed({ id }: { id: string }) {
    const asked = useAsk(
        "GET /v1/jobs/{id}",
        { path: { id } },
        { topics: ["jobs"], about: (x) => x === id, every: 2000 },
    );
    const a = asked.data?.archived;
    if (a?.state === "archived") return <span class="c-ok">{w("archived", bytes(a.packed))}</span>;
    if (a?.state === "failed") return <span class="c-bad">{visible(a.problem ?? "")}</span>;
    return <>{w("packing")}</>;
}

function willArchive({ page, kept }: Row, without: boolean): Partial<Row> {
    const size = bytes(kept.reduce((sum, c) => sum + c.bytes, 0));
    const at = page?.archived?.state;
    if (at && at !== "back" && at !== "failed") return { page, whyNot: w("is_archived") };
    if (!kept.length) return { page, will: w("no_ckpts"), isLoss: false };
    return { page, kept, will: w(without ? "loses" : "keeps", kept.length, size), isLoss: without };
}

export function archiveChosen(chosen: JobItem[], done: (ids: string[]) => void) {
    const over = chosen.filter(isOver);
    const rows = rowsOf(over);
    const without = signal(false);
    void each(
        rows,
        async (r) => willArchive(await seen(r), without.value),
        (whyNot) => ({ whyNot }),
    );
    without.subscribe((isWithout) => {
        rows.value = rows.value.map((r) => (r.page && !r.whyNot ? { ...r, ...willArchive(r, isWithout) } : r));
    });
    ask({
        title: w("archive_n", over.length),
        isBad: true,
        act: () => w("archive_go", doable(rows).length),
        cli: () => `argus archive ${without.value ? "--no-checkpoints " : ""}${idsOf(doable(rows))}`,
        missing: () => missing(rows),
        stays: true,
        body: (
            <>
                <p>{w("archive_text")}</p>
                {left(chosen, over)}
                <Tick label={w("archive_without")} of={without} />
                <Named of={rows} />
            </>
        ),
        does: () =>
            act(
                rows,
                async (r) => {
                    const body = without.value ? { checkpoints: false } : {};
                    await call("POST /v1/jobs/{id}:archive", { path: { id: r.job.id }, body });
                    return <Packed id={r.job.id} />;
                },
                done,
            ),
    });
}
