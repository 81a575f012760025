// SPDX-License-Identifier: Apache-2.0
// list.tsx - the pipelines that people keep, or (?view=runs) their runs, the newest first.
import type { PipelineItem } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { useDo } from "../../base/acts";
import { visible } from "../../base/say";
import { query, setQuery } from "../../base/url";
import { Blank, Pending } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Dash, Head, Panel, Seg, Text, Time } from "../../kit/parts";
import { Table, TableCsv, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { addPipeline } from "./deeds";
import { pipeHref, runCols, RunTable } from "./parts";
import { w } from "./words";

const pipeCols = (): Col<PipelineItem>[] => [
    {
        key: "name",
        title: w("pipeline"),
        draw: (p) => (
            <>
                <a class="name" href={pipeHref(p)}>
                    <Text of={p.name} />
                </a>
                {p.description && <span class="dim"> · {visible(p.description)}</span>}
            </>
        ),
        csv: (p) => p.name,
    },
    {
        key: "steps",
        title: w("steps"),
        wide: true,
        draw: (p) => <span class="mid">{p.steps.map((s) => visible(s)).join(" → ")}</span>,
        csv: (p) => p.steps.join(" "),
    },
    {
        key: "owner",
        title: t("user"),
        width: 100,
        wide: true,
        draw: (p) => <Text of={p.owner} />,
        csv: (p) => p.owner,
    },
    {
        key: "cron",
        title: w("schedule"),
        width: 120,
        wide: true,
        draw: (p) => (p.cron ? <code>{visible(p.cron)}</code> : <Dash />),
        csv: (p) => p.cron,
    },
    {
        key: "next_at",
        title: w("next"),
        width: 124,
        draw: (p) => <Time at={p.next_at} />,
        csv: (p) => p.next_at,
    },
];

function List({ act }: { act: preact.ComponentChildren }) {
    const asked = useAsk("GET /v1/pipelines", {}, { topics: ["pipelines"] });
    const rows = asked.data?.pipelines;
    const cols = pipeCols();
    return (
        <Panel
            bare
            title={w("v_pipes")}
            count={rows?.length}
            end={!!rows?.length && <TableCsv rows={rows} cols={cols} />}
        >
            {asked.why || !rows ? (
                <Pending of={asked} lines={5} />
            ) : rows.length ? (
                <Table label={w("v_pipes")} rows={rows} cols={cols} keyOf={(p) => `${p.owner}/${p.name}`} />
            ) : (
                <Blank title={w("none")} act={act}>
                    {w("none_text")}
                </Blank>
            )}
        </Panel>
    );
}

function Runs() {
    const state = query.value.get("state") ?? "";
    const asked = useAsk(
        "GET /v1/pipeline-runs",
        { query: { limit: 200, state: state || undefined } },
        { topics: ["pipelines"] },
    );
    const rows = asked.data?.runs;
    return (
        <Panel
            bare
            title={w("v_runs")}
            count={rows?.length}
            end={
                <>
                    <Seg
                        label={t("state")}
                        value={state}
                        onChange={(v) => setQuery({ state: v })}
                        of={[
                            { value: "", says: t("all") },
                            { value: "WAITING,RUNNING", says: t("RUNNING") },
                            { value: "FAILED", says: t("FAILED") },
                        ]}
                    />
                    {!!rows?.length && <TableCsv rows={rows} cols={runCols(true)} />}
                </>
            }
        >
            {asked.why || !rows ? (
                <Pending of={asked} lines={5} />
            ) : rows.length ? (
                <RunTable rows={rows} withPipe />
            ) : state ? (
                <Blank
                    title={t("nothing_matches")}
                    act={
                        <button type="button" class="btn" onClick={() => setQuery({ state: null })}>
                            {t("clear_filters")}
                        </button>
                    }
                />
            ) : (
                <Blank title={w("no_runs")}>{w("no_runs_text")}</Blank>
            )}
        </Panel>
    );
}

export function Pipelines() {
    const view = query.value.get("view") === "runs" ? "runs" : "";
    const may = session.value?.role !== "viewer";
    useDo({ add: may && addPipeline });
    const act = may && (
        <button type="button" class="btn act" onClick={addPipeline}>
            <Icon name="plus" />
            {t("a_pipeline")}
        </button>
    );
    return (
        <>
            <Head title={t("pipelines")} cli={view ? "argus pipe runs" : "argus pipe ls"}>
                {act}
            </Head>
            <div class="filters bar-of">
                <Seg
                    label={w("view")}
                    value={view}
                    onChange={(v) => setQuery({ view: v, state: null })}
                    of={[
                        { value: "", says: w("v_pipes") },
                        { value: "runs", says: w("v_runs") },
                    ]}
                />
            </div>
            {view ? <Runs /> : <List act={act} />}
        </>
    );
}
