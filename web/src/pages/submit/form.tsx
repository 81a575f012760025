// SPDX-License-Identifier: Apache-2.0
// form.tsx - the fields of a new job. Each shows and changes one key of the spec's text (base/spectext.ts); choices come
// from the registries, and what is wrong with a key stands below its field.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { DatasetItem, ModelItem, Preset, PresetItem, SpecProblem } from "../../made/api";
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { bytes, num, parameters, visible } from "../../base/say";
import { hasKey, listOf, overrideOf, removeKey, setOverride, setValue, valueOf } from "../../base/spectext";
import type { KeyDoc } from "../../kit/keydoc";
import { Icon } from "../../kit/icons";
import { t } from "../../words/shared";
import { w } from "./words";

const TRAINS = ["grpo", "ppo", "sft"];
const VERL = [...TRAINS, "eval", "generate", "merge"];
const MICRO: Record<string, string> = {
    grpo: "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
    ppo: "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
    sft: "data.micro_batch_size_per_gpu",
};
const RATE: Record<string, string> = {
    grpo: "actor_rollout_ref.actor.optim.lr",
    ppo: "actor_rollout_ref.actor.optim.lr",
    sft: "optim.lr",
};

export interface FormProps {
    text: string;
    setText: (text: string) => void;
    problems: SpecProblem[];
    preset: Preset | undefined;
    presets: PresetItem[];
    onPreset: (name: string) => void;
    /** What the server makes of it: of a preset, the workload is there alone. */
    workload: string;
    keys: KeyDoc[];
}

/** What is wrong with a key, below its field. */
function Wrong({ of, problems }: { of: string; problems: SpecProblem[] }) {
    const own = problems.filter((p) => p.field === of || p.field.startsWith(`${of}.`) || p.field.startsWith(`${of}[`));
    return (
        <>
            {own.map((p) => (
                <span class={`say ${p.level === "error" ? "bad" : "warn"}`}>
                    <Icon name={p.level === "error" ? "failed" : "unhealthy"} />
                    <span class="said">
                        {visible(p.detail)}
                        {p.hint && <span class="dim"> · {visible(p.hint)}</span>}
                    </span>
                </span>
            ))}
        </>
    );
}

interface FieldProps {
    form: FormProps;
    of: string;
    says: string;
    wide?: 3 | 4 | 6 | 8 | 12;
    placeholder?: string;
    isText?: boolean;
    isList?: boolean;
    isNumber?: boolean;
    choices?: { value: string; says?: string }[];
    more?: ComponentChildren;
    /** Of a training's own settings: the override's key. */
    override?: string;
    needed?: boolean;
}

const WIDE = { 3: "w3", 4: "w4", 6: "", 8: "w8", 12: "w12" };

function Field(p: FieldProps) {
    const { text, setText, problems } = p.form;
    // What is being typed: the page is drawn anew meanwhile, at each answer of a check, and would put the old text back.
    const [typed, setTyped] = useState<string | null>(null);
    const list = p.override ? null : listOf(text, p.of);
    const read = p.override
        ? overrideOf(text, p.override)
        : p.isList || list?.length === 1
          ? valueOf(text, p.of)
          : null;
    const elsewhere = read === null && !p.override && hasKey(text, p.of);
    const doc = p.form.keys.find((k) => k.key === p.of)?.says;
    const wrong = problems.some((x) => x.level === "error" && (x.field === p.of || x.field === p.override));
    const id = `f-${p.of}`;
    const change = (value: string) => {
        if (p.override) setText(setOverride(text, p.override, value));
        else if (p.isList)
            setText(
                setValue(
                    text,
                    p.of,
                    value.split(",").map((v) => v.trim()),
                ),
            );
        else setText(setValue(text, p.of, value, p.isText ?? !p.isNumber));
    };
    return (
        <label class={WIDE[p.wide ?? 6]} title={doc}>
            <span>
                {p.says}
                {p.needed && !read && !wrong && !elsewhere && <b class="c-warn">{w("needed")}</b>}
                <code>{visible(p.override ? p.override.split(".").pop()! : p.of)}</code>
            </span>
            <input
                class={`field ${wrong ? "wrong" : ""}`}
                id={id}
                name={p.of}
                list={p.choices ? `${id}-list` : undefined}
                inputMode={p.isNumber ? "decimal" : undefined}
                autocomplete="off"
                spellcheck={false}
                value={typed ?? read ?? ""}
                disabled={elsewhere}
                placeholder={elsewhere ? w("in_editor") : p.placeholder}
                aria-invalid={wrong}
                onInput={(e) => setTyped(e.currentTarget.value)}
                onChange={(e) => {
                    setTyped(null);
                    change(e.currentTarget.value.trim());
                }}
                onBlur={() => setTyped(null)}
            />
            {p.choices && (
                <datalist id={`${id}-list`}>
                    {p.choices.map((c) => (
                        <option value={c.value}>{c.says ?? ""}</option>
                    ))}
                </datalist>
            )}
            {p.more}
            <Wrong of={p.of} problems={problems} />
        </label>
    );
}

function ModelSays({ models, value }: { models: ModelItem[]; value: string | null }) {
    const m = models.find((x) => x.ref === value || `${x.name}@${x.version}` === value || x.name === value);
    if (!m) return null;
    return (
        <span class={`say ${m.state === "ready" ? "ok" : "warn"}`}>
            <Icon name={m.state === "ready" ? "succeeded" : "pending"} />
            {m.state !== "ready"
                ? w("not_ready")
                : m.parameters
                  ? w("m_says", parameters(m.parameters), bytes(m.bytes))
                  : w("m_size", bytes(m.bytes), m.files)}
        </span>
    );
}

/** Does a data set have the columns that a training of this kind reads? */
export function fitOf(d: DatasetItem, workload: string): { fits: boolean; lacks: string } | null {
    const of = (d.fit as Record<string, { fit?: boolean; missing?: string[] }> | null)?.[
        workload === "grpo" || workload === "ppo" ? "rl" : workload
    ];
    return of ? { fits: of.fit !== false, lacks: (of.missing ?? []).join(", ") } : null;
}

function DataSays({ sets, value, workload }: { sets: DatasetItem[]; value: string | null; workload: string }) {
    const name = value?.split("/")[0];
    const d = name ? sets.find((x) => x.ref === name || `${x.name}@${x.version}` === name || x.name === name) : null;
    if (!d) return null;
    const fit = fitOf(d, workload);
    if (d.state !== "ready")
        return (
            <span class="say warn">
                <Icon name="pending" />
                {w("not_ready")}
            </span>
        );
    return (
        <span class={`say ${fit && !fit.fits ? "bad" : "ok"}`}>
            <Icon name={fit && !fit.fits ? "failed" : "succeeded"} />
            {fit && !fit.fits
                ? w("d_lacks", workload, visible(fit.lacks))
                : fit
                  ? w("d_fits", num(d.rows ?? 0), workload)
                  : d.rows !== null
                    ? w("d_rows", num(d.rows))
                    : w("m_size", bytes(d.bytes), d.files)}
        </span>
    );
}

/** What the registries have to choose from. */
function useChoices() {
    const models = useAsk("GET /v1/models").data?.models ?? [];
    const sets = useAsk("GET /v1/datasets").data?.datasets ?? [];
    const snapshots = useAsk("GET /v1/snapshots").data?.snapshots ?? [];
    const pools = useAsk("GET /v1/pools").data?.pools ?? [];
    const whoami = useAsk("GET /v1/whoami").data;
    const code = useAsk(session.value ? "GET /v1/files" : null, {
        query: { path: `users/${session.value?.user}/code`, limit: 200 },
    }).data;
    const secrets = useAsk("GET /v1/secrets").data?.secrets ?? [];
    return {
        models,
        sets,
        modelChoices: models.map((m) => ({ value: m.ref, says: bytes(m.bytes) })),
        dataChoices: sets.map((d) => ({ value: d.ref, says: d.rows === null ? "" : w("d_rows", num(d.rows)) })),
        codeChoices: snapshots.map((s) => ({ value: s.name, says: s.verl ? `verl ${s.verl}` : "" })),
        poolChoices: pools.flatMap((p) => (p.pool ? [{ value: p.pool, says: w("n_free", p.gpus.free) }] : [])),
        projectChoices: (whoami?.projects ?? []).map((value) => ({ value })),
        rewardChoices: (code?.entries ?? [])
            .filter((e) => e.kind === "file" && e.name?.endsWith(".py"))
            .map((e) => ({ value: `\${USER_ROOT}/code/${e.name}:compute_score` })),
        secretChoices: secrets.map((s) => ({ value: s.name })),
    };
}

function PresetPick({ form }: { form: FormProps }) {
    const chosen = valueOf(form.text, "preset") ?? "";
    const known = form.presets.some((x) => x.name === chosen);
    return (
        <label class="w4">
            <span>{w("preset")}</span>
            <select class="field" value={chosen} onChange={(e) => form.onPreset(e.currentTarget.value)}>
                <option value="">{w("no_preset")}</option>
                {chosen && !known && <option value={chosen}>{visible(chosen)}</option>}
                {form.presets.map((x) => (
                    <option value={x.name}>
                        {x.project ? w("of_project", visible(x.name), visible(x.project)) : visible(x.name)}
                    </option>
                ))}
            </select>
            {form.preset?.description && <span class="help said">{visible(form.preset.description)}</span>}
            <Wrong of="preset" problems={form.problems} />
        </label>
    );
}

function Workload({ form }: { form: FormProps }) {
    const value = valueOf(form.text, "workload") ?? "";
    const known = form.keys.find((k) => k.key === "workload")?.words ?? [];
    return (
        <label class="w4">
            <span>
                {t("workload")}
                <code>workload</code>
            </span>
            <select
                class="field"
                value={value}
                onChange={(e) => form.setText(setValue(form.text, "workload", e.currentTarget.value))}
            >
                {!known.includes(value) && <option value={value}>{visible(value)}</option>}
                {known.map((x) => (
                    <option value={x}>{x}</option>
                ))}
            </select>
            <Wrong of="workload" problems={form.problems} />
        </label>
    );
}

type Choices = ReturnType<typeof useChoices>;

function Holes({ form, choices }: { form: FormProps; choices: Choices }) {
    const holes = form.preset?.holes ?? [];
    if (!holes.length) return null;
    return (
        <fieldset>
            <legend>{w("holes")}</legend>
            {holes.map((h) => {
                const value = valueOf(form.text, h.name);
                const shown = h.default ?? h.example;
                const number = h.type === "integer" || h.type === "number";
                return (
                    <Field
                        key={h.name}
                        form={form}
                        of={h.name}
                        says={visible(h.description || h.name)}
                        needed={h.required}
                        isNumber={number}
                        isText={h.type !== "boolean" && !number}
                        wide={number || h.type === "boolean" ? 4 : 12}
                        placeholder={shown === null || shown === undefined ? "" : visible(String(shown))}
                        choices={
                            h.type === "model"
                                ? choices.modelChoices
                                : h.type === "data"
                                  ? choices.dataChoices
                                  : h.type === "path"
                                    ? choices.rewardChoices
                                    : h.type === "boolean"
                                      ? [{ value: "true" }, { value: "false" }]
                                      : undefined
                        }
                        more={
                            h.type === "model" ? (
                                <ModelSays models={choices.models} value={value} />
                            ) : h.type === "data" ? (
                                <DataSays sets={choices.sets} value={value} workload={form.workload} />
                            ) : undefined
                        }
                    />
                );
            })}
        </fieldset>
    );
}

function ModelAndData({ form, choices }: { form: FormProps; choices: Choices }) {
    const of = form.workload;
    const value = (key: string) => listOf(form.text, key)?.[0] ?? null;
    return (
        <fieldset>
            <legend>{w("model_data")}</legend>
            {of !== "eval" && (
                <Field
                    form={form}
                    of="model_id"
                    says={w("f_model")}
                    wide={12}
                    choices={choices.modelChoices}
                    needed
                    more={<ModelSays models={choices.models} value={value("model_id")} />}
                />
            )}
            {TRAINS.includes(of) && (
                <Field
                    form={form}
                    of="train_file"
                    says={w("f_train")}
                    isList
                    choices={choices.dataChoices}
                    needed
                    more={<DataSays sets={choices.sets} value={value("train_file")} workload={of} />}
                />
            )}
            {of !== "merge" && (
                <Field
                    form={form}
                    of="val_file"
                    says={w("f_val")}
                    isList
                    choices={choices.dataChoices}
                    more={<DataSays sets={choices.sets} value={value("val_file")} workload={of} />}
                />
            )}
            {["grpo", "ppo", "eval"].includes(of) && (
                <Field
                    form={form}
                    of="reward_fn_path"
                    says={w("f_reward")}
                    wide={12}
                    choices={choices.rewardChoices}
                    placeholder={w("d_reward")}
                />
            )}
        </fieldset>
    );
}

function Training({ form }: { form: FormProps }) {
    const of = form.workload;
    const field = (key: string, says: Parameters<typeof w>[0], override?: string) => (
        <Field
            form={form}
            of={override ? `overrides.${key}` : key}
            override={override}
            says={w(says)}
            wide={4}
            isNumber
        />
    );
    return (
        <fieldset>
            <legend>{w("training")}</legend>
            {field("total_training_steps", "f_steps")}
            {field("total_epochs", "f_epochs")}
            {field("save_freq", "f_save")}
            {field("test_freq", "f_test")}
            {field("micro", "f_micro", MICRO[of])}
            {field("lr", "f_lr", RATE[of])}
        </fieldset>
    );
}

function Entrypoint({ form }: { form: FormProps }) {
    return (
        <fieldset>
            <legend>{w("run")}</legend>
            <Field
                form={form}
                of="entrypoint"
                says={w("f_entrypoint")}
                wide={12}
                needed
                placeholder="python train.py"
            />
        </fieldset>
    );
}

export function Form(form: FormProps) {
    const choices = useChoices();
    const byPreset = hasKey(form.text, "preset");
    const isVerl = VERL.includes(form.workload);
    const holes = new Set((form.preset?.holes ?? []).map((h) => h.name));
    const field = (p: Omit<FieldProps, "form">) => (holes.has(p.of) ? null : <Field form={form} {...p} />);
    return (
        <form class="panel form" onSubmit={(e) => e.preventDefault()}>
            <fieldset>
                <legend>{w("what")}</legend>
                <PresetPick form={form} />
                {byPreset ? null : <Workload form={form} />}
                {field({ of: "name", says: w("f_name"), wide: byPreset ? 8 : 4 })}
                {isVerl
                    ? field({
                          of: "code",
                          says: w("f_code"),
                          choices: choices.codeChoices,
                          placeholder: w("d_code"),
                          wide: 8,
                      })
                    : field({ of: "working_dir", says: w("f_working_dir"), choices: choices.codeChoices, wide: 8 })}
                {field({ of: "project", says: t("project"), choices: choices.projectChoices, wide: 4 })}
            </fieldset>
            {byPreset ? (
                <Holes form={form} choices={choices} />
            ) : isVerl ? (
                <ModelAndData form={form} choices={choices} />
            ) : (
                <Entrypoint form={form} />
            )}
            <fieldset>
                <legend>{w("size")}</legend>
                {field({ of: "pool", says: t("pool"), wide: 3, isList: true, choices: choices.poolChoices })}
                {field({ of: "nnodes", says: w("f_nnodes"), wide: 3, isNumber: true, placeholder: "1" })}
                {field({ of: "n_gpus_per_node", says: w("f_gpus"), wide: 3, isNumber: true })}
                {field({ of: "priority", says: t("priority"), wide: 3, isNumber: true, placeholder: "50" })}
            </fieldset>
            {!byPreset && TRAINS.includes(form.workload) && <Training form={form} />}
            <fieldset>
                <legend>{w("limits")}</legend>
                {field({ of: "timeout", says: w("f_timeout"), wide: 4, placeholder: w("d_none") })}
                {field({ of: "resume", says: w("f_resume"), wide: 4, placeholder: "auto" })}
                {field({ of: "secrets", says: w("f_secrets"), wide: 4, isList: true, choices: choices.secretChoices })}
            </fieldset>
        </form>
    );
}

/** The text that a preset begins with: what it needs, and what was set beside it and has a place in it. */
export function withPreset(text: string, name: string, holes: PresetItem["holes"] = []): string {
    if (!name) return setValue(removeKey(text, "preset"), "workload", valueOf(text, "workload") ?? "grpo");
    // Sizes are the preset's own: those that stood there were for another kind of job.
    const chosen = holes.filter((h) => ["model", "data", "path"].includes(h.type)).map((h) => h.name);
    const keep = ["project", "pool", "name", "timeout", "priority", "secrets", ...chosen];
    let out = `preset: ${name}\n`;
    for (const key of keep) {
        const value = listOf(text, key);
        if (value?.length) out = setValue(out, key, value, key !== "priority");
    }
    return out;
}
