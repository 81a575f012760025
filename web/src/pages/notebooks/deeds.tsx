// SPDX-License-Identifier: Apache-2.0
// deeds.tsx - what is done to notebooks: started, opened, kept though idle, their packages frozen, stopped, removed.
import { signal, type Signal } from "@preact/signals";
import type { NotebookForm, NotebookItem, Snapshot } from "../../made/api";
import { call, Refusal } from "../../api/client";
import { useAsk } from "../../api/use";
import { figure, visible } from "../../base/say";
import { setQuery } from "../../base/url";
import { Choose, Field } from "../../kit/form";
import { ask } from "../../kit/over";
import { shell } from "../../kit/parts";
import { t } from "../../words/shared";
import { keyOf, line, whose } from "./parts";
import { w } from "./words";

const GPUS = ["0", "0.5", "1", "2", "4", "8"];
const SPANS = ["1h", "2h", "4h", "8h", "1d", "3d", "7d"];
type Texts = Record<"name" | "gpus" | "snapshot" | "project" | "idle", Signal<string>>;

/** Only what is other than it was is said: argusd has the rest, and its own defaults. */
function bodyOf(f: Texts, was: NotebookItem | undefined): NotebookForm {
    const body: Record<string, unknown> = {};
    const name = was?.name ?? f.name.value.trim();
    if (name) body.name = name;
    if (Number(f.gpus.value) !== (was?.gpus ?? 0)) body.gpus = Number(f.gpus.value);
    for (const k of ["snapshot", "project", "idle"] as const) {
        const text = f[k].value.trim();
        if (text && text !== (k === "idle" ? "" : was?.[k])) body[k] = text;
    }
    return body as NotebookForm;
}

function lineOf(body: NotebookForm): string {
    const words = body.name ? [shell(body.name)] : [];
    for (const k of ["gpus", "snapshot", "project", "idle"] as const)
        if (body[k] !== undefined) words.push(`--${k} ${shell(String(body[k]))}`);
    return ["argus notebook start", ...words].join(" ");
}

function Fields({ of: f, isNew }: { of: Texts; isNew: boolean }) {
    const snapshots = useAsk("GET /v1/snapshots").data?.snapshots ?? [];
    const gpus = GPUS.includes(f.gpus.value) ? GPUS : [f.gpus.value, ...GPUS];
    return (
        <div class="form in-dialog">
            <fieldset>
                {isNew && (
                    <Field label={t("name")} code="name" of={f.name} placeholder="main" help={w("f_name")} first />
                )}
                <Choose
                    label={t("gpus")}
                    code="gpus"
                    of={f.gpus}
                    choices={gpus.map((g) => ({ value: g, says: g }))}
                    help={Number(f.gpus.value) % 1 ? w("f_part") : undefined}
                />
                <Field
                    label={w("f_snapshot")}
                    code="snapshot"
                    of={f.snapshot}
                    placeholder="code@1"
                    list={snapshots.map((s) => s.name)}
                />
                <Field label={t("project")} code="project" of={f.project} placeholder="default" />
                <Field label={w("f_idle")} code="idle" of={f.idle} placeholder="1h" />
            </fieldset>
        </div>
    );
}

/** was: one that is stopped; without it, a new one. */
export function startNotebook(was: NotebookItem | undefined, done: () => void) {
    const f: Texts = {
        name: signal(was?.name ?? ""),
        gpus: signal(String(was?.gpus ?? 0)),
        snapshot: signal(was?.snapshot ?? ""),
        project: signal(was?.project ?? ""),
        idle: signal(""),
    };
    ask({
        title: was ? w("again_title", visible(was.name)) : w("start_title"),
        act: w("start_go"),
        cli: () => lineOf(bodyOf(f, was)),
        body: (
            <>
                <p>{was ? w("again_text") : w("start_text")}</p>
                <Fields of={f} isNew={!was} />
            </>
        ),
        does: async () => {
            const made = await call("POST /v1/notebooks", { body: bodyOf(f, was) });
            setQuery({ name: keyOf(made) });
            done();
        },
        done: w("start_done"),
    });
}

/** Why the one that was to be opened last was not. */
export const notOpened = signal<{ name: string; why: string } | null>(null);

/** The tab is made by the click itself, which browsers allow; where it goes is known once argusd has answered. */
export async function openNotebook(n: NotebookItem) {
    const tab = open("about:blank", "_blank");
    notOpened.value = tab ? null : { name: n.name, why: w("blocked") };
    if (!tab) return;
    tab.opener = null;
    try {
        const { url } = await call("POST /v1/notebooks/{name}:open", whose(n));
        tab.location.replace(url);
    } catch (e) {
        tab.close();
        notOpened.value = { name: n.name, why: e instanceof Refusal ? e.detail : String(e) };
    }
}

export function extendNotebook(n: NotebookItem, done: () => void) {
    const span = signal("4h");
    ask({
        title: w("extend_title", visible(n.name)),
        act: w("extend_go"),
        cli: () => line("extend", n, ` --for ${span.value}`),
        body: (
            <>
                <p>{w("extend_text", figure(n.gpus))}</p>
                <div class="form in-dialog">
                    <fieldset>
                        <Choose
                            label={w("extend_for")}
                            code="for"
                            of={span}
                            choices={SPANS.map((s) => ({ value: s, says: s }))}
                        />
                    </fieldset>
                </div>
            </>
        ),
        does: async () => {
            await call("POST /v1/notebooks/{name}:extend", { ...whose(n), body: { for: span.value } });
            done();
        },
        done: w("extend_done"),
    });
}

/** made: with the snapshot that came of it. */
export function freezeNotebook(n: NotebookItem, made: (snapshot: Snapshot) => void) {
    const name = signal("");
    const asked = () => name.value.trim();
    ask({
        title: w("freeze_title", visible(n.name)),
        act: w("freeze_go"),
        cli: () => line("freeze", n, asked() && ` --as ${shell(asked())}`),
        body: (
            <>
                <p>{w("freeze_text")}</p>
                <div class="form in-dialog">
                    <fieldset>
                        <Field
                            label={w("freeze_name")}
                            code="as"
                            of={name}
                            placeholder="tools@1"
                            help={w("freeze_help", visible(n.name))}
                            first
                        />
                    </fieldset>
                </div>
            </>
        ),
        does: async () => {
            const body = asked() ? { snapshot: asked() } : {};
            made(await call("POST /v1/notebooks/{name}:freeze", { path: { name: n.name }, body }));
        },
        done: w("freeze_done"),
    });
}

export function stopNotebook(n: NotebookItem, done: () => void) {
    ask({
        title: w("stop_title", visible(n.name)),
        act: w("stop_go"),
        isBad: true,
        cli: line("stop", n),
        body: <p>{n.state === "WAITING" ? w("stop_waiting") : w("stop_text", figure(n.gpus))}</p>,
        does: async () => {
            await call("POST /v1/notebooks/{name}:stop", whose(n));
            done();
        },
        done: w("stop_done"),
    });
}

export function removeNotebook(n: NotebookItem, done: () => void) {
    ask({
        title: w("rm_title", visible(n.name)),
        act: w("rm_go"),
        isBad: true,
        cli: line("rm", n),
        body: <p>{w("rm_text", visible(n.owner))}</p>,
        does: async () => {
            await call("DELETE /v1/notebooks/{name}", whose(n));
            setQuery({ name: null });
            done();
        },
        done: w("rm_done"),
    });
}
