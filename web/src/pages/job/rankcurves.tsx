// SPDX-License-Identifier: Apache-2.0
// rankcurves.tsx - the use of the GPUs of a job as curves: the chosen rank beside the median one, the others thin behind them.
import type { JobGpus } from "../../made/api";
import { num } from "../../base/say";
import { query, setQuery } from "../../base/url";
import { words } from "../../base/words";
import { Chart } from "../../kit/chart";
import { CopyCsv } from "../../kit/parts";
import type { Line } from "../../kit/plot";
import { keyOfRank, rankCsv, rankPicture, timesOf, type RankRow } from "./ranks";

const g = words({
    title: ["GPU use by rank, %", "各 rank 的 GPU 利用率，%"],
    which: ["Which rank", "选择 rank"],
    rank: ["rank {0} · {1} GPU {2}", "rank {0} · {1} GPU {2}"],
    gpu: ["{0} GPU {1}", "{0} GPU {1}"],
    median: ["median rank", "中位 rank"],
    says: ["{0} works at {1}% on the average, the median rank at {2}%", "{0} 平均利用率 {1}%，中位 rank {2}%"],
    key: [
        "Bold: the median of {0} · thin: the {1} that differ most from it",
        "粗线：{0} 个 rank 的中位 · 细线：与其相差最大的 {1} 个",
    ],
});

const nameOf = (r: RankRow) =>
    r.rank === null ? g("gpu", r.node, r.gpu ?? 0) : g("rank", num(r.rank), r.node, r.gpu ?? 0);
const percents = (of: (number | null)[]) => of.map((v) => (v === null ? null : v * 100));
const meanOf = (of: (number | null)[]) => {
    const known = of.filter((v) => v !== null);
    return known.length ? num((known.reduce((sum, v) => sum + v, 0) / known.length) * 100) : "?";
};

export function RankCurves({ of }: { of: JobGpus }) {
    const picture = rankPicture(of.series, query.value.get("rank"));
    if (!picture) return null;
    const { chosen, median, others, all } = picture;
    const x = timesOf(of);
    const lines: Line[] = [
        { label: nameOf(chosen), x, y: percents(chosen.mean), color: "--c2" },
        { label: g("median"), x, y: percents(median), color: "--c1", isBold: true },
        ...others.map((r) => ({ label: nameOf(r), x, y: percents(r.mean), color: "--text-3", isThin: true })),
    ];
    return (
        <div class="rank-curves">
            <div class="row">
                <select
                    class="field"
                    aria-label={g("which")}
                    value={keyOfRank(chosen)}
                    onChange={(e) => setQuery({ rank: e.currentTarget.value })}
                >
                    {all.map((r) => (
                        <option value={keyOfRank(r)} selected={r === chosen}>
                            {nameOf(r)}
                        </option>
                    ))}
                </select>
                <CopyCsv {...rankCsv(picture, x, nameOf)} />
            </div>
            <div class="charts rank-charts">
                <Chart
                    title={g("title")}
                    keyName={nameOf(chosen)}
                    lines={others.length ? lines : lines.slice(0, 1)}
                    isTime
                    height={160}
                    sync="ranks"
                    says={g("says", nameOf(chosen), meanOf(chosen.mean), meanOf(median))}
                />
            </div>
            {others.length > 0 && <p class="small mid">{g("key", num(all.length), num(others.length))}</p>}
        </div>
    );
}
