// SPDX-License-Identifier: Apache-2.0
// help.tsx - the keyboard map: every key that acts on the page that is shown.
import { signal } from "@preact/signals";
import { shownKeys } from "../base/keys";
import { keep, letters } from "../base/prefs";
import { Modal } from "../kit/over";
import { t } from "../words/shared";

export const helpOpen = signal(false);

const caps = (keys: string) =>
    keys
        .replace("mod+", "Ctrl ")
        .split(" ")
        .map((k) => (
            <kbd>{k === "Escape" ? "Esc" : k.length === 1 && keys.startsWith("mod+") ? k.toUpperCase() : k}</kbd>
        ));

export function Help() {
    if (!helpOpen.value) return null;
    const close = () => (helpOpen.value = false);
    const rows = new Map<string, string[]>();
    for (const k of shownKeys.value) {
        const list = rows.get(k.says()) ?? [];
        if (!list.includes(k.keys)) rows.set(k.says(), [...list, k.keys]);
    }
    return (
        <Modal label={t("k_title")} onClose={close}>
            <header role="none">
                <h1>{t("k_title")}</h1>
            </header>
            <div class="body">
                <dl class="kv keymap">
                    {[...rows].map(([says, keys]) => (
                        <>
                            <dt>{keys.map((k) => caps(k))}</dt>
                            <dd>{says}</dd>
                        </>
                    ))}
                </dl>
                <label class="row letters">
                    <input
                        type="checkbox"
                        class="check"
                        checked={letters.value}
                        onChange={() => {
                            letters.value = !letters.value;
                            keep("letters", letters.value);
                        }}
                    />
                    {t("k_letters")}
                </label>
            </div>
            <footer role="none">
                <span class="grow" />
                <button type="button" class="btn" data-first onClick={close}>
                    {t("close")}
                </button>
            </footer>
        </Modal>
    );
}
