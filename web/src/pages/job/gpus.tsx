// SPDX-License-Identifier: Apache-2.0
// gpus.tsx - how much each GPU of a job worked in the last hour, or in all of an attempt that has ended: one strip a GPU
// below that of the median GPU, with the sentence that it shows, and below these what all attempts used and the curves
// of the ranks.
import type { Job, JobGpus } from "../../made/api";
import { useAsk } from "../../api/use";
import { bytes, num } from "../../base/say";
import { words } from "../../base/words";
import { Blank, Loading, Refused } from "../../kit/blank";
import { CopyCsv, Dash, Panel, Text } from "../../kit/parts";
import { t } from "../../words/shared";
import { canRest } from "./idle";
import { justify, justifySays } from "./idlenote";
import { attemptUses, kwh } from "./gpuuse";
import { hasEnded, spanAsked } from "./lately";
import { RankCurves } from "./rankcurves";
import { medians } from "./ranks";
import { w } from "./words";

const g = words({
    none: ["No figures yet", "还没有数据"],
    none_text: [
        "Each node is asked every 15 s; a GPU's use is known a minute after it began.",
        "每 15 秒采集一次；开始一分钟后即有利用率。",
    ],
    slow: ["GPU {0} on {1} works at {2}%, the others at {3}%", "{1} 的 GPU {0} 利用率 {2}%，其余 {3}%"],
    none_ended: ["No figures", "没有数据"],
    none_kept: [
        "Nobody measured it while it ran, or it was so long ago that it is no longer kept.",
        "运行期间没有采集，或已超过保留期限。",
    ],
    last: ["last 60 min", "最近 60 分钟"],
    whole: ["attempt {0}, all of it", "第 {0} 次尝试全程"],
    now: ["Now", "当前"],
    at_end: ["At its end", "结束时"],
    peak: ["Peak memory", "显存峰值"],
    median: ["Median", "中位"],
    median_strip: ["The median GPU: {0}% now", "中位 GPU：当前 {0}%"],
    median_ended: ["The median GPU: {0}% at its end", "中位 GPU：结束时 {0}%"],
    energy: ["Energy over all attempts: {0}", "所有尝试的能耗：{0}"],
    attempt_use: [
        "Attempt {0} on {1} {1|GPU|GPUs}: {2}, at work for {3}% of the time",
        "第 {0} 次尝试，{1} 个 GPU：{2}，{3}% 的时间在工作",
    ],
    strip: ["GPU {0} on {1}: {2}% on the average", "{1} 的 GPU {0}：平均 {2}%"],
});

const level = (v: number | null) => (v === null ? null : Math.min(5, Math.round(v * 5)));

const Strip = ({ of, says }: { of: (number | null)[]; says: string }) => (
    <span class="strip" role="img" aria-label={says}>
        {of.map((v) => (
            <i class={v === null ? "none" : `u${level(v)}`} />
        ))}
    </span>
);

/** The energy of the job, and of each attempt where there were several. */
function Energy({ of, attempt }: { of: JobGpus; attempt: number }) {
    const uses = attemptUses(of, attempt);
    if (of.total.used_joules === null) return null;
    return (
        <div class="gpu-energy body small mid">
            <p>{g("energy", kwh(of.total.used_joules))}</p>
            {uses.length > 1 &&
                uses.map((u) => (
                    <p key={u.attempt}>
                        {g(
                            "attempt_use",
                            u.attempt,
                            u.gpus,
                            u.joules === null ? "?" : kwh(u.joules),
                            u.busy === null ? "?" : num(u.busy * 100),
                        )}
                    </p>
                ))}
        </div>
    );
}

export function Gpus({ job, may }: { job: Job; may: boolean }) {
    const ended = hasEnded(job);
    const asked = useAsk(
        job.attempt > 0 ? "GET /v1/jobs/{id}/gpus" : null,
        { path: { id: job.id }, query: spanAsked(job) },
        ended ? {} : { every: 30_000 },
    );
    const rows = (asked.data?.series ?? []).filter((s) => s.gpu !== null);
    const has = rows.some((s) => s.mean.some((v) => v !== null));
    const known = rows.filter((s) => s.mean_of_all !== null);
    const lowest = known.length > 1 ? known.reduce((a, b) => (a.mean_of_all! < b.mean_of_all! ? a : b)) : null;
    const others = lowest
        ? known.filter((s) => s !== lowest).reduce((sum, s) => sum + s.mean_of_all!, 0) / (known.length - 1)
        : 0;
    const minutes = (asked.data?.step_s ?? 60) / 60;
    const median = medians(rows.map((s) => s.mean));
    const isSlow = lowest && others > 0.2 && lowest.mean_of_all! < others * 0.75;
    return (
        <Panel
            id="gpus"
            title={w("s_gpus")}
            count={has ? (ended ? g("whole", job.attempt) : g("last")) : undefined}
            bare={!has}
            end={
                <>
                    {may && canRest(job) && (
                        <button type="button" class="link small act" onClick={() => justify(job)}>
                            {justifySays()}
                        </button>
                    )}
                    {has && (
                        <CopyCsv
                            head={["node", "gpu", "minute", "mean", "max"]}
                            rows={() =>
                                rows.flatMap((s) => s.mean.map((v, i) => [s.node, s.gpu, i * minutes, v, s.max[i]]))
                            }
                        />
                    )}
                </>
            }
        >
            {asked.why ? (
                <Refused why={asked.why} again={asked.again} />
            ) : job.attempt > 0 && !asked.data ? (
                <Loading rows={2} />
            ) : !has ? (
                <Blank title={g(ended ? "none_ended" : "none")}>{g(ended ? "none_kept" : "none_text")}</Blank>
            ) : (
                <div class="ranks">
                    {isSlow && (
                        <p class="slow-says">
                            {g("slow", lowest.gpu ?? 0, lowest.node, num(lowest.mean_of_all! * 100), num(others * 100))}
                        </p>
                    )}
                    <div class="rk h">
                        <span>{t("nodes")}</span>
                        <span>GPU</span>
                        <span />
                        <span class="num">{g(ended ? "at_end" : "now")}</span>
                        <span class="num">{g("peak")}</span>
                    </div>
                    {rows.length > 2 && (
                        <div class="rk median">
                            <span>{g("median")}</span>
                            <span />
                            <Strip
                                of={median}
                                says={g(ended ? "median_ended" : "median_strip", num((median.at(-1) ?? 0) * 100))}
                            />
                            <span class="num">
                                {median.at(-1) == null ? <Dash /> : `${num(median.at(-1)! * 100)}%`}
                            </span>
                            <span />
                        </div>
                    )}
                    {rows.map((s, i) => (
                        <div class={`rk ${i && rows[i - 1]!.node !== s.node ? "gap" : ""}`}>
                            <span class="cut">{i && rows[i - 1]!.node === s.node ? "" : <Text of={s.node} />}</span>
                            <span>{s.gpu}</span>
                            <Strip
                                of={s.mean}
                                says={g(
                                    "strip",
                                    s.gpu ?? 0,
                                    s.node,
                                    s.mean_of_all === null ? "?" : num(s.mean_of_all * 100),
                                )}
                            />
                            <span class="num">
                                {s.mean.at(-1) == null ? <Dash /> : `${num(s.mean.at(-1)! * 100)}%`}
                            </span>
                            <span class="num">
                                {s.mem_used_max_bytes === null ? <Dash /> : bytes(s.mem_used_max_bytes)}
                            </span>
                        </div>
                    ))}
                    {asked.data && <Energy of={asked.data} attempt={job.attempt} />}
                    {asked.data && <RankCurves of={asked.data} />}
                </div>
            )}
        </Panel>
    );
}
