// SPDX-License-Identifier: Apache-2.0
// deeds.tsx - what is done to services: served, deployed, scaled, rolled back, kept, woken, stopped, removed.
import { signal, type Signal } from "@preact/signals";
import type { Service, ServiceForm, ServiceVersion } from "../../made/api";
import { call } from "../../api/client";
import { useAsk } from "../../api/use";
import { figure, spanSays, visible } from "../../base/say";
import { go } from "../../base/url";
import { Choose, Field } from "../../kit/form";
import { ask } from "../../kit/over";
import { shell } from "../../kit/parts";
import { replicasOf, serviceHref, versionOf } from "./parts";
import { w } from "./words";

type Kind = "model" | "app";
const ENGINES = ["transformers", "vllm", "sglang"] as const;
const KEEPS = ["warm", "cold", "none"] as const;
type Engine = (typeof ENGINES)[number];
type Keep = (typeof KEEPS)[number];

/** What the fields of a deploy say. base: what the service has now; only what is other than that is said. */
interface Form {
    kind: Signal<Kind>;
    engine: Signal<Engine>;
    keep: Signal<Keep>;
    [text: string]: Signal<string>;
}
const TEXTS = ["model", "app", "code", "name", "project", "replicas", "gpus", "cpus", "requests", "tokens"] as const;
const NUMBERS: Record<string, keyof ServiceForm> = {
    replicas: "replicas",
    gpus: "gpus",
    cpus: "cpus",
    requests: "requests_per_minute",
    tokens: "tokens_per_minute",
};
const FLAGS: Record<string, string> = { requests: "requests-per-minute", tokens: "tokens-per-minute" };
/** A field that is empty says nothing: argusd has its default. */
function formOf(base: ServiceVersion | undefined, keep: Keep): Form {
    const s = base?.spec;
    const first: Record<string, string | number | null | undefined> = {
        model: s?.model,
        app: s?.app,
        code: s?.code,
        replicas: s?.replicas,
        gpus: s?.gpus,
        cpus: s?.cpus,
        requests: s?.requests_per_minute,
        tokens: s?.tokens_per_minute,
    };
    const texts = Object.fromEntries(TEXTS.map((k) => [k, signal(String(first[k] ?? ""))]));
    return {
        ...texts,
        kind: signal<Kind>(s?.app ? "app" : "model"),
        engine: signal<Engine>(s?.engine ?? "transformers"),
        keep: signal<Keep>(keep),
    } as Form;
}

function bodyOf(f: Form, base: ServiceVersion | undefined): ServiceForm {
    const isApp = f.kind.value === "app";
    const was = formOf(base, f.keep.value);
    const says = (k: string) => f[k]!.value.trim() !== "" && (!base || f[k]!.value !== was[k]!.value);
    const body: Record<string, unknown> = {};
    for (const k of isApp ? ["app", "code"] : ["model"]) if (says(k)) body[k] = f[k]!.value.trim();
    for (const k of ["name", "project"]) if (!base && says(k)) body[k] = f[k]!.value.trim();
    for (const [k, to] of Object.entries(NUMBERS)) if (says(k)) body[to] = Number(f[k]!.value);
    if (!isApp && (!base ? f.engine.value !== "transformers" : f.engine.value !== was.engine.value))
        body.engine = f.engine.value;
    if (!base && f.keep.value !== "warm") body.keep = f.keep.value;
    return body as ServiceForm;
}

function lineOf(f: Form, base: ServiceVersion | undefined, start: string): string {
    const body = bodyOf(f, base) as Record<string, unknown>;
    const words = body.model ? [shell(String(body.model))] : [];
    for (const k of ["name", "app", "code", "project", "engine", "keep"])
        if (body[k] !== undefined) words.push(`--${k} ${shell(String(body[k]))}`);
    for (const [k, to] of Object.entries(NUMBERS))
        if (body[to] !== undefined) words.push(`--${FLAGS[k] ?? k} ${String(body[to])}`);
    return [start, ...words].join(" ");
}

function Fields({ of: f, isNew }: { of: Form; isNew: boolean }) {
    const models = useAsk("GET /v1/models").data?.models ?? [];
    const isApp = f.kind.value === "app";
    return (
        <div class="form in-dialog">
            <fieldset>
                {isNew && (
                    <Choose
                        label={w("f_kind")}
                        wide={12}
                        of={f.kind}
                        choices={[
                            { value: "model", says: w("f_model") },
                            { value: "app", says: w("f_app") },
                        ]}
                    />
                )}
                {isApp ? (
                    <>
                        <Field label={w("f_app")} code="app" of={f.app!} placeholder="module:app" first />
                        <Field label={w("f_code")} code="code" of={f.code!} placeholder="translator@1" />
                    </>
                ) : (
                    <>
                        <Field
                            label={w("f_model")}
                            code="model"
                            of={f.model!}
                            list={models.filter((m) => m.state === "ready").map((m) => m.ref)}
                            first
                        />
                        <Choose
                            label={w("f_engine")}
                            code="engine"
                            of={f.engine}
                            choices={ENGINES.map((e) => ({ value: e, says: e }))}
                        />
                    </>
                )}
                {isNew && (
                    <>
                        <Field label={w("f_name")} code="name" of={f.name!} placeholder={w("f_as_model")} />
                        <Field label={w("f_project")} code="project" of={f.project!} placeholder={w("f_as_model")} />
                    </>
                )}
                <Field label={w("f_replicas")} code="replicas" of={f.replicas!} kind="number" least={1} wide={4} />
                <Field label={w("f_gpus")} code="gpus" of={f.gpus!} kind="number" least={0} wide={4} />
                <Field label={w("f_cpus")} code="cpus" of={f.cpus!} kind="number" least={0} wide={4} />
                <Field label={w("f_requests")} code="requests_per_minute" of={f.requests!} kind="number" least={0} />
                <Field label={w("f_tokens")} code="tokens_per_minute" of={f.tokens!} kind="number" least={0} />
                {isNew && (
                    <Choose
                        label={w("f_keep")}
                        code="keep"
                        wide={12}
                        of={f.keep}
                        choices={KEEPS.map((k) => ({ value: k, says: w(`k_${k}`) }))}
                    />
                )}
            </fieldset>
        </div>
    );
}

export function addService(model: string) {
    const f = formOf(undefined, "warm");
    f.model!.value = model;
    ask({
        title: w("add_title"),
        act: w("add_go"),
        missing: () => ((f.kind.value === "app" ? f.app : f.model)!.value.trim() ? "" : w("f_must")),
        cli: () => lineOf(f, undefined, "argus serve"),
        body: (
            <>
                <p>{w("add_text")}</p>
                <Fields of={f} isNew />
            </>
        ),
        does: async () => {
            const made = await call("POST /v1/services", { body: bodyOf(f, undefined) });
            go(serviceHref(made.name));
        },
        done: w("add_done"),
    });
}

export function deployService(s: Service, done: () => void) {
    const base = versionOf(s);
    const f = formOf(base, s.keep);
    const path = { name: s.name };
    ask({
        title: w("d_title", Math.max(0, ...s.versions.map((v) => v.n)) + 1, visible(s.name)),
        act: w("d_go"),
        cli: () => lineOf(f, base, `argus service deploy ${shell(s.name)}`),
        body: (
            <>
                <p>
                    {w("d_text")} {!!base?.spec.gpus && w("d_gpus", figure(base.spec.gpus * s.replicas))}
                </p>
                <Fields of={f} isNew={false} />
            </>
        ),
        does: async () => {
            await call("POST /v1/services/{name}:deploy", { path, body: bodyOf(f, base) });
            done();
        },
        done: w("add_done"),
    });
}

export function scaleService(s: Service, done: () => void) {
    const n = signal(String(s.replicas));
    ask({
        title: w("scale_title", visible(s.name)),
        act: w("scale_go"),
        missing: () => (Number(n.value) >= 1 ? "" : w("f_replicas")),
        cli: () => `argus service scale ${shell(s.name)} ${Number(n.value)}`,
        body: (
            <>
                <p>{w("scale_text", figure(versionOf(s)?.spec.gpus ?? 0))}</p>
                <div class="form in-dialog">
                    <fieldset>
                        <Field label={w("f_replicas")} code="replicas" of={n} kind="number" least={1} first />
                    </fieldset>
                </div>
            </>
        ),
        does: async () => {
            await call("POST /v1/services/{name}:scale", {
                path: { name: s.name },
                body: { replicas: Number(n.value) },
            });
            done();
        },
        done: w("scale_done"),
    });
}

export function rollBack(s: Service, v: ServiceVersion, done: () => void) {
    const isWarm = !s.stopped && v.state === "READY";
    ask({
        title: w("back_title", v.n),
        act: w("back_go", v.n),
        cli: `argus service rollback ${shell(s.name)} --version ${v.n}`,
        body: (
            <p>{s.stopped || !s.current ? w("back_stopped") : isWarm ? w("back_warm") : w("back_cold", s.current)}</p>
        ),
        does: async () => {
            await call("POST /v1/services/{name}:rollback", { path: { name: s.name }, body: { version: v.n } });
            done();
        },
        done: w("back_done"),
    });
}

export function stopService(s: Service, done: () => void) {
    ask({
        title: w("stop_title", visible(s.name)),
        act: w("stop_go"),
        isBad: true,
        cli: `argus service stop ${shell(s.name)}`,
        body: <p>{w("stop_text", replicasOf(s).length, figure(s.gpus))}</p>,
        does: async () => {
            await call("POST /v1/services/{name}:stop", { path: { name: s.name } });
            done();
        },
        done: w("stop_done"),
    });
}

export function wakeService(s: Service, done: () => void) {
    ask({
        title: w("wake_title", visible(s.name)),
        act: w("wake_go"),
        cli: `argus service wake ${shell(s.name)}`,
        body: <p>{w("wake_text", s.replicas, figure((versionOf(s)?.spec.gpus ?? 0) * s.replicas))}</p>,
        does: async () => {
            await call("POST /v1/services/{name}:wake", { path: { name: s.name } });
            done();
        },
        done: w("wake_done"),
    });
}

export function removeService(s: Service) {
    ask({
        title: w("rm_title", visible(s.name)),
        act: w("rm_go"),
        isBad: true,
        cli: `argus service rm ${shell(s.name)}`,
        body: <p>{w("rm_text", replicasOf(s).length)}</p>,
        does: async () => {
            await call("DELETE /v1/services/{name}", { path: { name: s.name } });
            go("/services");
        },
        done: w("rm_done"),
    });
}

export function keepVersions(s: Service, done: () => void) {
    const was = (spanSays(s.idle) && s.idle) || "off";
    const keep = signal<Keep>(s.keep);
    const idle = signal(was);
    const after = () => idle.value.trim() || "off";
    /* What is not changed is not said, unless nothing is changed. */
    const lines = () => [
        ...(keep.value !== s.keep || after() === was
            ? [`argus service keep ${shell(s.name)} --keep ${keep.value}`]
            : []),
        ...(after() !== was ? [`argus service idle ${shell(s.name)} --after ${shell(after())}`] : []),
    ];
    ask({
        title: w("keep_title"),
        act: w("keep_go"),
        cli: () => lines().join(" && "),
        body: (
            <div class="form in-dialog">
                <fieldset>
                    <Choose
                        label={w("f_keep")}
                        code="keep"
                        wide={12}
                        of={keep}
                        choices={KEEPS.map((k) => ({ value: k, says: w(`k_${k}`) }))}
                    />
                    <Field
                        label={w("f_idle")}
                        code="idle"
                        wide={12}
                        of={idle}
                        list={["off", "30m", "2h", "12h"]}
                        placeholder="off"
                    />
                </fieldset>
            </div>
        ),
        does: async () => {
            const idled = after() !== was ? { idle: after() } : {};
            await call("PATCH /v1/services/{name}", { path: { name: s.name }, body: { keep: keep.value, ...idled } });
            done();
        },
        done: w("keep_done"),
    });
}
