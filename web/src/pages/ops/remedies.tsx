// SPDX-License-Identifier: Apache-2.0
// remedies.tsx - what argusd puts right on machines by itself: each remedy with its limit, and its acts of the last day:
// what each was for, and what came of it.
import type { Remedy, RemedyAct } from "../../made/api";
import { useAsk } from "../../api/use";
import { spanSays, visible } from "../../base/say";
import { withQuery } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import type { IconName } from "../../kit/icons";
import { Cli, Dash, Panel, Text, Time, Toned, type Tone } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { w } from "./words";

const OUTCOMES: Record<RemedyAct["outcome"], [IconName, Tone]> = {
    under_way: ["running", "run"],
    done: ["succeeded", "ok"],
    failed: ["failed", "bad"],
    broken_off: ["unknown", "lost"],
};

/** "gpu-01 3/12": a node on which it acted in the last hour, how often, and its limit. */
const Acted = ({ of: r }: { of: Remedy }) => (
    <div class="ops-said row wrap">
        {r.nodes.length === 0 && <Dash />}
        {r.nodes.map((n) => (
            <span class={n.leave === "spent" ? "flag bad" : "flag"} key={n.node} title={w(`l_${n.leave}`)}>
                {`${visible(n.node)} ${n.acts}/${r.limit}`}
            </span>
        ))}
    </div>
);

const remedyCols = (): Col<Remedy>[] => [
    {
        key: "remedy",
        title: w("remedy"),
        draw: (r) => (
            <div class="ops-said">
                <p class="strong">{w(`r_${r.remedy}`)}</p>
                <p class="small dim mono">{r.key}</p>
            </div>
        ),
        csv: (r) => r.remedy,
    },
    {
        key: "on",
        title: t("state"),
        width: 90,
        draw: (r) => (
            <Toned tone={r.on ? "ok" : "quiet"} icon={r.on ? "online" : "offline"}>
                {w(r.on ? "is_on" : "is_off")}
            </Toned>
        ),
        csv: (r) => (r.on ? 1 : 0),
    },
    { key: "limit", title: w("an_hour"), width: 120, num: true, wide: true, draw: (r) => r.limit, csv: (r) => r.limit },
    {
        key: "rest",
        title: w("rests"),
        width: 110,
        num: true,
        wide: true,
        draw: (r) => spanSays(r.rest) ?? <Dash />,
        csv: (r) => r.rest,
    },
    {
        key: "acted",
        title: w("last_hour"),
        draw: (r) => <Acted of={r} />,
        csv: (r) => r.nodes.map((n) => `${n.node} ${n.acts}`).join("; "),
    },
];

function Outcome({ of }: { of: RemedyAct["outcome"] }) {
    const [icon, tone] = OUTCOMES[of];
    return (
        <Toned tone={tone} icon={icon}>
            {w(`o_${of}`)}
        </Toned>
    );
}

const actCols = (): Col<RemedyAct>[] => [
    { key: "at", title: w("at"), width: 110, wide: true, draw: (a) => <Time at={a.at} as="ago" />, csv: (a) => a.at },
    {
        key: "node",
        title: w("machine"),
        width: 130,
        draw: (a) => (
            <a class="link" href={withQuery("/nodes", { node: a.node })}>
                <Text of={a.node} />
            </a>
        ),
        csv: (a) => a.node,
    },
    {
        key: "why",
        title: w("what_for"),
        draw: (a) => (
            <div class="ops-said">
                <p class="strong">{w(`r_${a.remedy}`)}</p>
                <p class="small">{visible(a.why.text)}</p>
            </div>
        ),
        csv: (a) => a.why.text,
    },
    {
        key: "outcome",
        title: w("came_to"),
        draw: (a) => (
            <div class="ops-said">
                <Outcome of={a.outcome} />
                {a.found && <p class="small">{visible(a.found.text)}</p>}
            </div>
        ),
        csv: (a) => (a.found ? `${a.outcome}: ${a.found.text}` : a.outcome),
    },
];

export function Remedies() {
    const asked = useAsk("GET /v1/remedies", {}, { topics: ["events"], every: 30_000 });
    const of = asked.data;
    return (
        <>
            <Panel
                bare
                id="remedies"
                title={w("remedies")}
                end={of && <TableCsv rows={of.remedies} cols={remedyCols()} />}
            >
                {asked.why || !of ? (
                    <Pending of={asked} lines={3} />
                ) : (
                    <Table label={w("remedies")} rows={of.remedies} cols={remedyCols()} keyOf={(r) => r.remedy} />
                )}
            </Panel>
            {of && (
                <Panel
                    bare
                    id="remedy-acts"
                    title={w("acts")}
                    count={of.cut ? `${of.acts.length}+` : of.acts.length}
                    end={of.acts.length > 0 && <TableCsv rows={of.acts} cols={actCols()} />}
                >
                    {of.acts.length ? (
                        <Table
                            label={w("acts")}
                            rows={of.acts}
                            cols={actCols()}
                            keyOf={(a) => `${a.at} ${a.node} ${a.remedy}`}
                        />
                    ) : (
                        <Blank title={w("no_acts")} act={<Cli line="argus ops remedies" />}>
                            {w("no_acts_text")}
                        </Blank>
                    )}
                </Panel>
            )}
        </>
    );
}
