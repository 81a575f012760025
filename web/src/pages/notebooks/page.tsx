// SPDX-License-Identifier: Apache-2.0
// page.tsx - notebooks: JupyterLab on leases, yours or (admins) all. ?name=OWNER/NAME opens the drawer of one.
import type { NotebookItem } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { useDo } from "../../base/acts";
import { figure, spanSays, visible } from "../../base/say";
import { query, setQuery, withQuery } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Drawer } from "../../kit/over";
import { Dash, Head, Panel, State, Text } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { notOpened, startNotebook } from "./deeds";
import { OpenButton, One } from "./one";
import { isMine, keyOf } from "./parts";
import { w } from "./words";
import "./page.css";

const EVERY = 5000; // idleness goes on without a word

const cols = (): Col<NotebookItem>[] => [
    {
        key: "name",
        title: w("notebook"),
        draw: (n) => {
            const why = n.reason ?? (n.phase ? n.interruption : null); // one that is stopped does not start again
            return (
                <>
                    <a class="name" href={withQuery("/notebooks", { name: keyOf(n) })}>
                        <Text of={n.name} />
                    </a>
                    {why && <span class="said nb-why">{visible(why.text)}</span>}
                </>
            );
        },
        csv: (n) => n.name,
    },
    {
        key: "owner",
        title: t("user"),
        width: 110,
        wide: true,
        draw: (n) => <Text of={n.owner} />,
        csv: (n) => n.owner,
    },
    { key: "state", title: t("state"), width: 104, draw: (n) => <State of={n.state} />, csv: (n) => n.state },
    {
        key: "node",
        title: w("node"),
        width: 140,
        wide: true,
        draw: (n) => (n.node ? <Text of={n.node} /> : <Dash />),
        csv: (n) => n.node,
    },
    {
        key: "gpus",
        title: t("gpus"),
        width: 60,
        num: true,
        wide: true,
        draw: (n) => figure(n.gpus),
        csv: (n) => n.gpus,
    },
    {
        key: "idle_for",
        title: w("idle"),
        width: 90,
        num: true,
        wide: true,
        draw: (n) => spanSays(n.idle_for) ?? (n.state === "READY" ? w("in_use") : <Dash />),
        csv: (n) => n.idle_for,
    },
    {
        key: "stops_in",
        title: w("stops"),
        width: 90,
        num: true,
        wide: true,
        draw: (n) => spanSays(n.stops_in) ?? <Dash />,
        csv: (n) => n.stops_in,
    },
    {
        key: "open",
        title: "",
        width: 84,
        wide: true,
        draw: (n) => n.state === "READY" && isMine(n) && <OpenButton of={n} />,
    },
];

function NotOpened() {
    const it = notOpened.value;
    if (!it) return null;
    return (
        <div class="note bad" role="alert">
            <Icon name="failed" />
            <div class="grow">
                <p class="strong">{w("not_opened", visible(it.name))}</p>
                <p class="said">{visible(it.why)}</p>
            </div>
            <button
                type="button"
                class="btn bare icon"
                aria-label={t("close")}
                onClick={() => (notOpened.value = null)}
            >
                <Icon name="close" />
            </button>
        </div>
    );
}

const Gone = () => (
    <Drawer label={w("gone")} onClose={() => setQuery({ name: null })} head={<h2>{w("gone")}</h2>}>
        <Blank title={w("gone")} icon="unknown">
            {w("gone_text")}
        </Blank>
    </Drawer>
);

export default function Page() {
    const asked = useAsk("GET /v1/notebooks", {}, { topics: ["jobs"], every: EVERY });
    const rows = asked.data?.notebooks;
    const chosen = query.value.get("name");
    const one = rows?.find((n) => keyOf(n) === chosen);
    const may = session.value?.role !== "viewer";
    const start = () => startNotebook(undefined, asked.again);
    useDo({ start: may && start });
    const act = may && (
        <button type="button" class="btn act" onClick={start}>
            <Icon name="plus" />
            {t("a_notebook")}
        </button>
    );
    return (
        <>
            <Head title={t("notebooks")} cli="argus notebook ls">
                {act}
            </Head>
            <div class="cols">
                <NotOpened />
                <Panel
                    bare
                    title={t("notebooks")}
                    count={rows?.length}
                    end={!!rows?.length && <TableCsv rows={rows} cols={cols()} />}
                >
                    {asked.why || !rows ? (
                        <Pending of={asked} lines={5} />
                    ) : rows.length ? (
                        <Table label={t("notebooks")} rows={rows} cols={cols()} keyOf={keyOf} current={chosen} />
                    ) : (
                        <Blank title={w("none")} act={act}>
                            {w("none_text")}
                        </Blank>
                    )}
                </Panel>
            </div>
            {one ? <One key={keyOf(one)} of={one} again={asked.again} /> : rows && chosen && <Gone />}
        </>
    );
}
