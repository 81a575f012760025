// SPDX-License-Identifier: Apache-2.0
// quotas.tsx - what projects and people may hold, beside what they hold now and have held this month.
import type { Quota } from "../../made/api";
import type { Asked } from "../../api/use";
import { withQuery } from "../../base/url";
import { words } from "../../base/words";
import { Pending } from "../../kit/blank";
import { Dash, Panel, Text } from "../../kit/parts";
import { short } from "../../kit/stack";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { limited } from "./lead";

const w = words({
    title: ["Quotas", "配额"],
    who: ["Who", "归属"],
    guaranteed: ["Guaranteed", "保障"],
    ceiling: ["Limit", "上限"],
    holds: ["Holds now", "现占用"],
    borrowed: ["Borrowed", "借用"],
    queued: ["Jobs waiting", "等待作业"],
    month: ["GPU-hours, month", "本月 GPU 时"],
    per_month: ["of at most", "每月上限"],
});

const quotaCol = (
    key: string,
    title: string,
    of: (q: Quota) => number | null,
    more: Partial<Col<Quota>> = {},
): Col<Quota> => ({
    key,
    title,
    num: true,
    width: 104,
    draw: (q) => {
        const v = of(q);
        return v === null ? <Dash /> : short(v);
    },
    csv: of,
    ...more,
});

const quotaCols = (): Col<Quota>[] => [
    {
        key: "name",
        title: w("who"),
        draw: (q) => (
            <span class="row">
                <a
                    class="name cut"
                    href={
                        q.kind === "user"
                            ? withQuery("/people", { view: "users", user: q.name })
                            : withQuery("/people", { project: q.name })
                    }
                >
                    <Text of={q.name} />
                </a>
                <span class="small dim">{t(q.kind)}</span>
            </span>
        ),
        csv: (q) => `${q.kind}:${q.name}`,
    },
    quotaCol("gpus_guaranteed", w("guaranteed"), (q) => q.quota.gpus_guaranteed, { wide: true }),
    quotaCol("gpus_ceiling", w("ceiling"), (q) => q.quota.gpus_ceiling, { wide: true }),
    quotaCol("gpus", w("holds"), (q) => q.usage.gpus),
    quotaCol("gpus_borrowed", w("borrowed"), (q) => q.usage.gpus_borrowed, { wide: "very" }),
    quotaCol("queued", w("queued"), (q) => q.usage.queued, { wide: "very" }),
    quotaCol("gpu_hours_this_month", w("month"), (q) => q.usage.gpu_hours_this_month, { width: 136 }),
    quotaCol("gpu_hours_per_month", w("per_month"), (q) => q.quota.gpu_hours_per_month, { wide: true }),
];

/** Nothing where nobody has a quota or holds anything. */
export function Quotas({ asked }: { asked: Asked<{ quotas: Quota[] }> }) {
    const rows = asked.data && limited(asked.data.quotas);
    if (rows && !rows.length && !asked.why) return null;
    return (
        <Panel
            bare
            title={w("title")}
            count={rows?.length}
            end={!!rows?.length && <TableCsv rows={rows} cols={quotaCols()} />}
        >
            {asked.why || !rows ? (
                <Pending of={asked} lines={3} />
            ) : (
                <Table label={w("title")} rows={rows} cols={quotaCols()} keyOf={(q) => `${q.kind}:${q.name}`} />
            )}
        </Panel>
    );
}
