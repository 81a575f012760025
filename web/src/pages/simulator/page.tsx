// SPDX-License-Identifier: Apache-2.0
// page.tsx - the simulator: ask for a replay of past jobs, and the replays that are kept; /simulator/ID is one of them.
import type { SimulationItem } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { num, visible } from "../../base/say";
import { query } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { Dash, Head, Panel, Text, Time } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { Form, formCli } from "./form";
import { isGoing, Result, SimState } from "./result";
import { w } from "./words";
import "./page.css";

const cols = (others: boolean): Col<SimulationItem>[] => [
    {
        key: "name",
        title: t("name"),
        draw: (s) => (
            <a class="name cut" href={`/simulator/${encodeURIComponent(s.id)}`}>
                {s.source === "history" && s.name === "history" ? w("own") : <Text of={s.name} />}
            </a>
        ),
        csv: (s) => s.name,
    },
    { key: "state", title: t("state"), width: 110, draw: (s) => <SimState of={s.state} />, csv: (s) => s.state },
    {
        key: "jobs",
        title: t("jobs"),
        num: true,
        wide: true,
        width: 80,
        draw: (s) => (s.jobs ? num(s.jobs) : <Dash />),
        csv: (s) => s.jobs || null,
    },
    ...(others
        ? [
              {
                  key: "user",
                  title: t("user"),
                  wide: true,
                  width: 90,
                  draw: (s: SimulationItem) => <Text of={s.user} />,
                  csv: (s: SimulationItem) => s.user,
              },
          ]
        : []),
    {
        key: "policy",
        title: w("policy"),
        wide: "very",
        width: 130,
        draw: (s) => <span class="dim">{visible(s.policy ?? "fair, easy, fifo").replaceAll(",", ", ")}</span>,
        csv: (s) => s.policy,
    },
    {
        key: "created_at",
        title: w("made"),
        width: 110,
        draw: (s) => <Time at={s.created_at} as="ago" />,
        csv: (s) => s.created_at,
    },
];

function Kept() {
    const asked = useAsk("GET /v1/simulations", {}, { every: 5_000 });
    const rows = asked.data?.simulations;
    const others = rows?.some((s) => s.user !== session.value?.user) ?? false;
    return (
        <Panel
            title={w("kept")}
            count={rows && rows.some(isGoing) ? w("s_running") : undefined}
            bare
            end={rows?.length ? <TableCsv rows={rows} cols={cols(others)} /> : undefined}
        >
            {asked.why || !rows ? (
                <Pending of={asked} lines={4} />
            ) : !rows.length ? (
                <Blank title={w("none")}>{w("none_text")}</Blank>
            ) : (
                <>
                    <Table label={w("kept")} rows={rows} cols={cols(others)} keyOf={(s) => s.id} />
                    <p class="small dim sim-foot">{w("kept_text")}</p>
                </>
            )}
        </Panel>
    );
}

export default function Simulator({ names }: { names: Record<string, string> }) {
    const may = session.value?.role !== "viewer";
    if (names.id) return <Result id={names.id} key={names.id} may={may} />;
    return (
        <>
            <Head title={t("simulator")} sub={w("sub")} cli={may ? formCli(query.value) : "argus simulate ls"} />
            <div class="cols sim-page">
                {may ? (
                    <Form />
                ) : (
                    <Panel title={w("new_title")}>
                        <p class="mid">{w("viewer")}</p>
                    </Panel>
                )}
                <Kept />
            </div>
        </>
    );
}
