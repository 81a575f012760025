// SPDX-License-Identifier: Apache-2.0
// curve.tsx - what the thing that an alert is about did around the moment at which the alert opened.
import { useMemo } from "preact/hooks";
import type { Alert, FigureSeries } from "../../made/api";
import { useAsk } from "../../api/use";
import { visible } from "../../base/say";
import { Chart } from "../../kit/chart";
import { medians } from "../job/ranks";
import { around, figureOf, scaleOf, type Around } from "./moment";
import { w } from "./words";

interface Measured {
    from: string;
    step_s: number;
    series: FigureSeries[];
}

function Drawn({ of, name, figure, opened }: { of: Measured; name: string; figure: string; opened: string }) {
    const { by, unit } = scaleOf(figure);
    // The middle one of several GPUs.
    const y = medians(of.series.map((s) => s.mean)).map((v) => (v === null ? null : v * by));
    if (!y.some((v) => v !== null)) return null;
    const from = Date.parse(of.from) / 1000;
    const title = unit ? `${figure}, ${unit}` : figure;
    return (
        <section class="alert-curve">
            <h2>{w("around")}</h2>
            <Chart
                title={title}
                keyName={name}
                lines={[{ label: name, x: y.map((_, i) => from + i * of.step_s), y, color: "--c1" }]}
                marks={[{ x: Date.parse(opened) / 1000, label: w("opened"), kind: "finding" }]}
                isTime
                height={140}
                sync="alert"
                says={w("around_says", visible(name), title)}
            />
        </section>
    );
}

function OfJob({ of: a, figure, span }: { of: Alert; figure: string; span: Around }) {
    const asked = useAsk("GET /v1/jobs/{id}/gpus", { path: { id: a.name }, query: { ...span } });
    return asked.data ? <Drawn of={asked.data} name={a.name} figure={figure} opened={a.since!} /> : null;
}

function OfNode({ of: a, figure, span }: { of: Alert; figure: string; span: Around }) {
    const [node = "", gpu] = a.name.split("/");
    const asked = useAsk("GET /v1/nodes/{name}/figures", { path: { name: node }, query: { figure, ...span } });
    if (!asked.data) return null;
    const series = asked.data.series.filter((s) => gpu === undefined || String(s.gpu) === gpu);
    return <Drawn of={{ ...asked.data, series }} name={a.name} figure={figure} opened={a.since!} />;
}

/** Nothing where nobody measured it, or who looks may not see it. */
export function Curve({ of: a }: { of: Alert }) {
    const rule = useAsk("GET /v1/alert_rules/{rule}", { path: { rule: a.rule } });
    // The span stays while one looks, or each turn of the page would ask again.
    const span = useMemo(() => (a.since ? around(a.since, a.ended_at, Date.now()) : null), [a.since, a.ended_at]);
    const figure = figureOf(a.kind, rule.data?.when ?? "");
    if (!span || !figure || rule.loading) return null;
    return a.kind === "job" ? (
        <OfJob of={a} figure={figure} span={span} />
    ) : (
        <OfNode of={a} figure={figure} span={span} />
    );
}
