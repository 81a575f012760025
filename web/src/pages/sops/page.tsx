// SPDX-License-Identifier: Apache-2.0
// page.tsx - the SOPs that are shipped, and one of them: what it needs, its values, and its steps, each command with a
// button that copies it, the answer that is expected, and the button of a plan or the page that does the same.
import { lang } from "../../base/prefs";
import { Blank } from "../../kit/blank";
import { Head, Panel } from "../../kit/parts";
import { Table, type Col } from "../../kit/table";
import { w as opsWord } from "../ops/words";
import "./page.css";
import { Blocks, DeedRow, givenNow, StepRow } from "./parts";
import { allShipped, shipped, type Shipped } from "./shipped";
import { commandsOf, type Section } from "./sop";
import { w } from "./words";

const stepsOf = (x: Shipped) => x.sop.sections.reduce((n, s) => n + s.steps.length, 0) || commandsOf(x.sop).length;

const cols = (): Col<Shipped>[] => [
    {
        key: "sop",
        title: w("sop"),
        draw: (x) => (
            <a class="name" href={`/ops/sops/${x.name}`} lang={x.lang}>
                {x.sop.title}
            </a>
        ),
    },
    { key: "steps", title: w("n_steps"), num: true, width: 110, wide: true, draw: (x) => stepsOf(x) },
];

function All() {
    const all = allShipped(lang.value);
    return (
        <>
            <Head title={w("sops")} sub={w("sub")}>
                <a class="btn" href="/ops">
                    {opsWord("plans")}
                </a>
            </Head>
            <div class="cols">
                <Panel bare>
                    <Table label={w("sops")} rows={all} cols={cols()} keyOf={(x) => x.name} />
                </Panel>
            </div>
        </>
    );
}

/** What the page is for stands above its sections, in a section without a title. */
function Part({ of: s, own }: { of: Section; own: string }) {
    const given = givenNow();
    if (!s.lead.length && !s.steps.length && !s.deeds.length) return null;
    return (
        <Panel title={s.title || undefined} id={s.id || undefined} class={s.title ? "" : "sop-intro"}>
            {s.lead.length > 0 && (
                <div class={s.lead.some((b) => b.kind === "table" || b.kind === "values") ? "sop-values" : "sop-lead"}>
                    <Blocks of={s.lead} own={own} given={given} />
                </div>
            )}
            {s.deeds.map((d) => (
                <DeedRow of={d} title={s.title} own={own} given={given} />
            ))}
            {s.steps.length > 0 && (
                <ol class="sop-steps">
                    {s.steps.map((x) => (
                        <StepRow of={x} own={own} given={given} />
                    ))}
                </ol>
            )}
        </Panel>
    );
}

function One({ of: x }: { of: Shipped }) {
    const isForeign = x.lang !== lang.value;
    return (
        <>
            <Head title={<span lang={x.lang}>{x.sop.title}</span>}>
                <a class="btn" href="/ops/sops">
                    {w("all")}
                </a>
            </Head>
            {isForeign && <p class="note quiet">{w("only_english")}</p>}
            <div class="cols sop" lang={x.lang}>
                {x.sop.sections.map((s) => (
                    <Part key={s.title} of={s} own={x.name} />
                ))}
            </div>
        </>
    );
}

export default function Sops({ names }: { names: Record<string, string> }) {
    if (names.name === undefined) return <All />;
    const one = shipped(names.name, lang.value);
    if (one) return <One key={`${one.name} ${one.lang}`} of={one} />;
    return (
        <Blank
            whole
            title={w("no_such")}
            act={
                <a class="btn" href="/ops/sops">
                    {w("all")}
                </a>
            }
        >
            {w("no_such_text")}
        </Blank>
    );
}
