// SPDX-License-Identifier: Apache-2.0
// page.tsx - data of the registry: see library/entries.tsx.
import { Entries } from "../../library/entries";

export default function Page({ names }: { names: Record<string, string> }) {
    return <Entries kind="data" name={names.name} />;
}
