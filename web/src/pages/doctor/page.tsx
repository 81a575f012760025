// SPDX-License-Identifier: Apache-2.0
// page.tsx - what argusd finds of its own state, for admins: a line for each check, with what to do. Nobody else's page
// asks for it, so that what is refused is told without a request.
import type { DoctorCheck } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { visible } from "../../base/say";
import { Blank, Pending } from "../../kit/blank";
import type { IconName } from "../../kit/icons";
import { Head, Panel, Text, Toned, type Tone } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { w as opsWord } from "../ops/words";
import { checkSays, w } from "./words";
import "./page.css";

const MARKS: Record<DoctorCheck["state"], [IconName, Tone]> = {
    well: ["succeeded", "ok"],
    soon: ["unhealthy", "warn"],
    ill: ["failed", "bad"],
    unknown: ["unknown", "lost"],
};

function Mark({ of }: { of: DoctorCheck["state"] }) {
    const [icon, tone] = MARKS[of];
    return (
        <Toned tone={tone} icon={icon}>
            {w(`s_${of}`)}
        </Toned>
    );
}

const cols = (): Col<DoctorCheck>[] => [
    { key: "check", title: w("check"), width: 170, draw: (c) => visible(checkSays(c.name)), csv: (c) => c.name },
    { key: "state", title: t("state"), width: 104, draw: (c) => <Mark of={c.state} />, csv: (c) => c.state },
    {
        key: "text",
        title: w("says"),
        draw: (c) => (
            <div class="doctor-says">
                <Text of={c.text} />
                {c.fix && <p class="small">{visible(c.fix)}</p>}
            </div>
        ),
        csv: (c) => (c.fix ? `${c.text}; ${c.fix}` : c.text),
    },
];

function Checks() {
    const asked = useAsk("GET /v1/doctor", {}, { every: 60_000 });
    const rows = asked.data?.checks;
    const ill = rows?.filter((c) => c.state === "ill").length ?? 0;
    return (
        <Panel
            bare
            title={w("doctor")}
            count={rows && (ill ? w("n_ill", ill) : w("all_well"))}
            end={
                <>
                    {!!rows?.length && <TableCsv rows={rows} cols={cols()} />}
                    <button type="button" class="btn" onClick={asked.again}>
                        {w("again")}
                    </button>
                </>
            }
        >
            {asked.why || !rows ? (
                <Pending of={asked} lines={8} />
            ) : rows.length ? (
                <Table label={w("doctor")} rows={rows} cols={cols()} keyOf={(c) => c.name} />
            ) : (
                <Blank title={w("none")}>{w("none_text")}</Blank>
            )}
        </Panel>
    );
}

export default function Page() {
    const isAdmin = session.value?.role === "admin";
    return (
        <>
            <Head title={w("doctor")} cli="argus doctor">
                <a class="btn" href="/ops">
                    {opsWord("plans")}
                </a>
            </Head>
            <div class="cols">
                {isAdmin ? (
                    <Checks />
                ) : (
                    <section class="panel">
                        <Blank icon="users" title={t("no_permission")}>
                            {w("admins")}
                        </Blank>
                    </section>
                )}
            </div>
        </>
    );
}
