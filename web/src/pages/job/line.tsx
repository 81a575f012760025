// SPDX-License-Identifier: Apache-2.0
// line.tsx - the time line of a job in true scale: waits, attempts, checkpoints, its end, and now.
import type { Checkpoint, Job } from "../../made/api";
import { clock, fullTime, ms, now, span } from "../../base/say";
import { Icon } from "../../kit/icons";
import { t } from "../../words/shared";
import { isOver } from "../jobs/columns";
import { w } from "./words";

interface Span {
    kind: "queued" | "starting" | "running" | "succeeded" | "ahead";
    from: number;
    to: number;
    says: string;
}

/** What it did when. Pure. */
export function spansOf(job: Job, at: number): Span[] {
    const out: Span[] = [];
    let last = ms(job.queued_at);
    for (const a of job.attempts) {
        const accepted = ms(a.accepted_at ?? a.started_at);
        if (!Number.isFinite(accepted)) continue;
        if (accepted > last) out.push({ kind: "queued", from: last, to: accepted, says: w("queued") });
        const started = ms(a.started_at);
        const end = Number.isFinite(ms(a.ended_at))
            ? ms(a.ended_at)
            : Number.isFinite(ms(job.ended_at))
              ? ms(job.ended_at)
              : at;
        if (Number.isFinite(started)) {
            if (started > accepted) out.push({ kind: "starting", from: accepted, to: started, says: t("STARTING") });
            const good = job.state === "SUCCEEDED" && a === job.attempts.at(-1);
            const says =
                job.attempts.length > 1 ? `${w("attempt_n", a.k)} · ${span(end - started)}` : span(end - started);
            out.push({ kind: good ? "succeeded" : "running", from: started, to: end, says });
        } else out.push({ kind: "starting", from: accepted, to: end, says: t("STARTING") });
        last = end;
    }
    if (!isOver(job) && job.state === "QUEUED") out.push({ kind: "queued", from: last, to: at, says: w("queued") });
    const ahead = job.metrics?.eta ? ms(job.metrics.eta) : job.eta ? ms(job.eta.p50) : NaN;
    if (!isOver(job) && ahead > at) out.push({ kind: "ahead", from: at, to: ahead, says: "" });
    return out;
}

/** Round times between two, at most six. */
export function ticksOf(from: number, to: number): number[] {
    const steps = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 21600, 43200, 86400, 604800].map((s) => s * 1000);
    const step = steps.find((s) => (to - from) / s <= 6) ?? steps.at(-1)!;
    const zone = new Date(from).getTimezoneOffset() * 60_000;
    const out: number[] = [];
    for (let x = Math.ceil((from - zone) / step) * step + zone; x < to; x += step) out.push(x);
    return out;
}

export function TimeLine({ job, checkpoints }: { job: Job; checkpoints: Checkpoint[] }) {
    const spans = spansOf(job, now.value);
    if (!spans.length || !job.queued_at) return null;
    const from = ms(job.queued_at);
    const to = Math.max(from + 1000, ...spans.map((s) => s.to), isOver(job) ? ms(job.ended_at) : now.value);
    const ticks = ticksOf(from, to);
    const isShort = ticks.length > 1 && ticks[1]! - ticks[0]! < 60_000;
    const pos = (x: number) => ((x - from) / (to - from)) * 100;
    const saved = checkpoints.filter((c) => c.at && ms(c.at) >= from && ms(c.at) <= to);
    const bad = job.state === "FAILED" || job.state === "TIMEOUT";
    const says = spans.map((s) => w("line_says", clock(s.from), clock(s.to), s.says || "…")).join("; ");
    return (
        <div class="tline" role="img" aria-label={says}>
            <div class="track">
                {spans.map((s) => (
                    <span
                        class={`span ${s.kind}`}
                        title={`${s.says} ${clock(s.from)} – ${clock(s.to)}`}
                        style={{ left: `${pos(s.from)}%`, width: `${pos(s.to) - pos(s.from)}%` }}
                    >
                        {s.kind !== "starting" && pos(s.to) - pos(s.from) > 7 ? s.says : ""}
                    </span>
                ))}
            </div>
            {saved.map((c) => (
                <i
                    class={`tick ${c.state === "verified" ? "kept" : ""}`}
                    title={`${t("step")} ${c.step}`}
                    style={{ left: `${pos(ms(c.at))}%` }}
                />
            ))}
            {bad && job.ended_at && (
                <>
                    <span class="at r c-bad" style={{ left: `${pos(ms(job.ended_at))}%` }}>
                        <Icon name="failed" />
                        {job.reason.code || t(job.state)}
                    </span>
                    <i class="pin" style={{ left: `${pos(ms(job.ended_at))}%` }} />
                </>
            )}
            {!isOver(job) && (
                <>
                    <span class={`at ${pos(now.value) > 90 ? "r" : ""}`} style={{ left: `${pos(now.value)}%` }}>
                        {w("now")}
                    </span>
                    <i class="pin now" style={{ left: `${pos(now.value)}%` }} />
                </>
            )}
            <div class="axis">
                {ticks.map((x) => (
                    <span class={pos(x) < 3 ? "l" : pos(x) > 97 ? "r" : ""} style={{ left: `${pos(x)}%` }}>
                        {isShort ? fullTime(x).slice(11) : clock(x)}
                    </span>
                ))}
            </div>
        </div>
    );
}
