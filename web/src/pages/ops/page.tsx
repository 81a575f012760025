// SPDX-License-Identifier: Apache-2.0
// page.tsx - plans of what is dangerous: those that wait, are applied, or are over; ?plan=ID opens the drawer of one.
// Below them what argusd puts right by itself.
import type { OpsPlanItem } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { gpuHours, visible } from "../../base/say";
import { query, withQuery } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { Cli, Dash, Head, Panel, Text, Time } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { w as doctorWord } from "../doctor/words";
import { w as sopWord } from "../sops/words";
import { titleOf } from "./deeds";
import { One } from "./one";
import { Remedies } from "./remedies";
import { stateSays, w } from "./words";
import "./page.css";

const cols = (): Col<OpsPlanItem>[] => [
    {
        key: "plan",
        title: w("plan"),
        draw: (p) => (
            <a class="name" href={withQuery("/ops", { plan: p.id })}>
                {titleOf(p)}
            </a>
        ),
        csv: (p) => `${p.id} ${p.action} ${p.target ?? ""}`,
    },
    { key: "state", title: t("state"), width: 110, draw: (p) => visible(stateSays(p.state)), csv: (p) => p.state },
    { key: "by", title: w("by"), width: 110, wide: true, draw: (p) => <Text of={p.user} />, csv: (p) => p.user },
    {
        key: "approvals",
        title: w("approvals"),
        width: 96,
        num: true,
        wide: true,
        draw: (p) => `${p.approvals.length}/${p.needs}`,
        csv: (p) => p.approvals.length,
    },
    {
        key: "risk",
        title: w("risk"),
        width: 150,
        num: true,
        wide: true,
        draw: (p) => gpuHours(p.at_risk_gpu_hours),
        csv: (p) => p.at_risk_gpu_hours,
    },
    {
        key: "expires",
        title: w("expires"),
        width: 110,
        wide: true,
        draw: (p) => (p.state === "waiting" ? <Time at={p.expires_at} as="until" /> : <Dash />),
        csv: (p) => p.expires_at,
    },
];

export default function Page() {
    const asked = useAsk("GET /v1/ops/plans", {}, { topics: ["events"], every: 15_000 });
    const rows = asked.data?.plans;
    const chosen = query.value.get("plan");
    return (
        <>
            <Head title={w("ops")} cli="argus ops ls">
                <a class="btn" href="/ops/sops">
                    {sopWord("sops")}
                </a>
                {session.value?.role === "admin" && (
                    <a class="btn" href="/ops/doctor">
                        {doctorWord("doctor")}
                    </a>
                )}
            </Head>
            <div class="cols">
                <Panel
                    bare
                    title={w("plans")}
                    count={rows?.length}
                    end={!!rows?.length && <TableCsv rows={rows} cols={cols()} />}
                >
                    {asked.why || !rows ? (
                        <Pending of={asked} lines={5} />
                    ) : rows.length ? (
                        <Table label={w("plans")} rows={rows} cols={cols()} keyOf={(p) => p.id} current={chosen} />
                    ) : (
                        <Blank title={w("none")} act={<Cli line="argus ops plan drain_node --node NODE" />}>
                            {w("none_text")}
                        </Blank>
                    )}
                </Panel>
                <Remedies />
            </div>
            {chosen && <One key={chosen} id={chosen} again={asked.again} />}
        </>
    );
}
