// SPDX-License-Identifier: Apache-2.0
// page.tsx - pipelines: the list of them and of their runs, one pipeline with its form, one run with its graph.
import { PipelinePage } from "./pipeline";
import { Pipelines } from "./list";
import { RunPage } from "./run";
import "../../library/library.css";
import "./page.css";

export default function Page({ names }: { names: Record<string, string> }) {
    if (names.run) return <RunPage key={names.run} id={names.run} pipeline={names.name!} />;
    return names.name ? <PipelinePage name={names.name} /> : <Pipelines />;
}
