// SPDX-License-Identifier: Apache-2.0
// deeds.tsx - what an admin does to projects and people.
import { signal, type Signal } from "@preact/signals";
import type { Limits, Project, User } from "../../made/api";
import { call } from "../../api/client";
import { setQuery } from "../../base/url";
import { Choose, Field, Tick } from "../../kit/form";
import { ask } from "../../kit/over";
import { shell } from "../../kit/parts";
import { t } from "../../words/shared";
import { w } from "./words";

const ROLES = ["viewer", "user", "admin"] as const;
type Role = User["role"];
const opt = (o: string, v: string) => (v.trim() ? ` ${o} ${shell(v.trim())}` : "");

export function addProject(done: () => void) {
    const name = signal("");
    const members = signal("");
    const note = signal("");
    const list = () => members.value.split(/[\s,]+/).filter(Boolean);
    ask({
        title: w("add_project"),
        act: w("a_go"),
        missing: () => (name.value.trim() ? "" : w("name_must")),
        cli: () =>
            `argus project add ${shell(name.value.trim() || "NAME")}` +
            list()
                .map((m) => ` --member ${shell(m)}`)
                .join("") +
            opt("--note", note.value),
        body: (
            <div class="form in-dialog">
                <fieldset>
                    <Field label={t("name")} code="name" of={name} first />
                    <Field label={w("members")} code="members" of={members} placeholder="alice, bob" />
                    <Field wide={12} label={w("note")} code="note" of={note} />
                </fieldset>
            </div>
        ),
        does: async () => {
            await call("POST /v1/projects", {
                body: {
                    name: name.value.trim(),
                    members: list(),
                    ...(note.value.trim() && { note: note.value.trim() }),
                },
            });
            done();
        },
        done: () => w("added", name.value.trim()),
    });
}

export function addUser(done: () => void) {
    const name = signal("");
    const role = signal<Role>("user");
    const note = signal("");
    ask({
        title: w("add_user"),
        act: w("a_go"),
        missing: () => (name.value.trim() ? "" : w("name_must")),
        cli: () =>
            `argus user add ${shell(name.value.trim() || "NAME")} --role ${role.value}${opt("--note", note.value)}`,
        body: (
            <div class="form in-dialog">
                <fieldset>
                    <Field wide={8} label={t("name")} code="name" of={name} first />
                    <Choose
                        wide={4}
                        label={w("role")}
                        code="role"
                        of={role}
                        choices={ROLES.map((r) => ({ value: r, says: r }))}
                    />
                    <Field wide={12} label={w("note")} code="note" of={note} />
                </fieldset>
            </div>
        ),
        does: async () => {
            await call("POST /v1/users", {
                body: {
                    name: name.value.trim(),
                    role: role.value,
                    ...(note.value.trim() && { note: note.value.trim() }),
                },
            });
            done();
        },
        done: () => w("added", name.value.trim()),
    });
}

const SHOWN = ["gpus_guaranteed", "gpus_ceiling", "running", "queued", "gpu_hours_per_month", "cpus"] as const;
const OPTION: Record<(typeof SHOWN)[number], string> = {
    gpus_guaranteed: "--guaranteed",
    gpus_ceiling: "--gpus",
    running: "--running",
    queued: "--queued",
    gpu_hours_per_month: "--gpu-hours",
    cpus: "--cpus",
};
const LABEL = {
    gpus_guaranteed: "guaranteed",
    gpus_ceiling: "ceiling",
    running: "running",
    queued: "queued",
    gpu_hours_per_month: "hours",
    cpus: "cpus",
} as const;

export function setQuota(kind: "project" | "user", name: string, now: Limits, done: () => void) {
    const fields = Object.fromEntries(SHOWN.map((k) => [k, signal(now[k] === null ? "" : String(now[k]))])) as Record<
        (typeof SHOWN)[number],
        Signal<string>
    >;
    const changed = () => SHOWN.filter((k) => fields[k].value.trim() !== (now[k] === null ? "" : String(now[k])));
    ask({
        title: w("q_title", name),
        act: w("q_go"),
        cli: () =>
            `argus quota set --${kind} ${shell(name)}` +
            changed()
                .map((k) => ` ${OPTION[k]} ${shell(fields[k].value.trim() || "none")}`)
                .join(""),
        body: (
            <>
                <p>{w("q_text")}</p>
                <div class="form in-dialog">
                    <fieldset>
                        {SHOWN.map((k, i) => (
                            <Field
                                wide={4}
                                kind="number"
                                least={0}
                                label={w(LABEL[k])}
                                of={fields[k]}
                                placeholder={w("unlimited")}
                                first={i === 0}
                            />
                        ))}
                    </fieldset>
                </div>
            </>
        ),
        does: async () => {
            const told = Object.fromEntries(
                SHOWN.map((k) => [k, fields[k].value.trim() ? Number(fields[k].value) : null]),
            );
            const body = { ...now, ...told };
            if (kind === "project") await call("PUT /v1/projects/{project}/quota", { path: { project: name }, body });
            else await call("PUT /v1/users/{user}/quota", { path: { user: name }, body });
            done();
        },
        done: w("q_done", name),
    });
}

export function editProject(p: Project, users: string[], done: () => void) {
    const add = signal("");
    const out = signal("");
    const share = signal(String(p.share));
    const note = signal(p.note);
    ask({
        title: w("e_title", p.name),
        act: w("e_go"),
        cli: () =>
            `argus project set ${shell(p.name)}` +
            opt("--add", add.value) +
            opt("--remove", out.value) +
            (share.value === String(p.share) ? "" : opt("--share", share.value)) +
            (note.value === p.note ? "" : ` --note ${shell(note.value)}`),
        body: (
            <div class="form in-dialog">
                <fieldset>
                    <Field label={w("in")} code="add" of={add} list={users} first />
                    <Field label={w("out")} code="remove" of={out} list={p.members} />
                    <Field wide={4} label={w("share")} code="share" of={share} kind="number" least={1} />
                    <Field wide={8} label={w("note")} code="note" of={note} />
                </fieldset>
            </div>
        ),
        does: async () => {
            await call("PATCH /v1/projects/{project}", {
                path: { project: p.name },
                body: {
                    note: note.value,
                    share: Number(share.value) || p.share,
                    ...(add.value.trim() && { add: [add.value.trim()] }),
                    ...(out.value.trim() && { remove: [out.value.trim()] }),
                },
            });
            done();
        },
        done: w("e_done", p.name),
    });
}

export function editUser(u: User, done: () => void) {
    const role = signal<Role>(u.role);
    const off = signal(u.disabled);
    const note = signal(u.note);
    ask({
        title: w("e_title", u.name),
        act: w("e_go"),
        cli: () =>
            `argus user set ${shell(u.name)}` +
            (role.value === u.role ? "" : ` --role ${role.value}`) +
            (off.value === u.disabled ? "" : off.value ? " --disable" : " --enable") +
            (note.value === u.note ? "" : ` --note ${shell(note.value)}`),
        body: (
            <div class="form in-dialog">
                <fieldset>
                    <Choose
                        wide={4}
                        label={w("role")}
                        code="role"
                        of={role}
                        choices={(["none", ...ROLES] as const).map((r) => ({ value: r, says: r }))}
                    />
                    <Field wide={8} label={w("note")} code="note" of={note} />
                </fieldset>
                <Tick label={w("dis")} of={off} />
            </div>
        ),
        does: async () => {
            await call("PATCH /v1/users/{user}", {
                path: { user: u.name },
                body: { role: role.value, disabled: off.value, note: note.value },
            });
            done();
        },
        done: w("e_done", u.name),
    });
}

export function removeProject(p: Project, done: () => void) {
    ask({
        title: w("rp_title", p.name),
        act: w("rp_go"),
        isBad: true,
        cli: `argus project rm ${shell(p.name)}`,
        body: <p>{w("rp_text")}</p>,
        does: async () => {
            await call("DELETE /v1/projects/{project}", { path: { project: p.name } });
            setQuery({ project: null });
            done();
        },
        done: w("removed", p.name),
    });
}

export function removeUser(u: User, done: () => void) {
    ask({
        title: w("ru_title", u.name),
        act: w("ru_go"),
        isBad: true,
        cli: `argus user rm ${shell(u.name)}`,
        body: <p>{w("ru_text", u.tokens)}</p>,
        does: async () => {
            await call("DELETE /v1/users/{user}", { path: { user: u.name } });
            setQuery({ user: null });
            done();
        },
        done: w("removed", u.name),
    });
}
