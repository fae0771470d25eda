import { createHash } from "node:crypto";
import { withEdits } from "#config/edit/index.ts";
import type { ConfigChange, ConfigFileControl, ConfigKept } from "#core/control.ts";
import { ApiError } from "#core/errors.ts";

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");

/** A configuration file in memory: nothing is put in force. */
export function memoryConfigFile(): ConfigFileControl {
  let text = "mixed-port: 7890\n";
  const earlier: string[] = [];
  let trial: { readonly text: string; readonly leftMs: number } | null = null;
  const kept = (): ConfigKept => ({ hash: hashOf(text), settle: () => {} });
  const write = (next: string): void => {
    earlier.push(text);
    text = next;
  };
  const change = (next: string, { hash, trialMs }: ConfigChange): ConfigKept => {
    if (hash !== hashOf(text)) throw new ApiError(409, "the configuration file has changed meanwhile");
    if (trialMs === null) write(next);
    else trial = { text: next, leftMs: trialMs };
    return kept();
  };
  const onTrial = (): { readonly text: string } => {
    if (trial === null) throw new ApiError(409, "no configuration is on trial");
    const held = trial;
    trial = null;
    return held;
  };
  const version = (id: number): string => {
    const found = earlier[id - 1];
    if (found === undefined) throw new ApiError(404, `there is no version ${id}`);
    return found;
  };
  return {
    view: async () => {
      const versions = earlier.map((old, at) => ({ id: at + 1, sizeBytes: old.length, writtenAtMs: 0 }));
      return { file: "/etc/weir/config.yaml", text, hash: hashOf(text), versions, trial };
    },
    check: async () => [
      { severity: "error", line: 1, column: 1, path: "mode", message: "expected another word" },
    ],
    preview: async (edits) => ({
      before: text,
      text: withEdits(text, edits),
      hash: hashOf(text),
      remarks: [],
    }),
    put: async (next, how) => change(next, how),
    edit: async (edits, how) => change(withEdits(text, edits), how),
    rollback: async (id, how) => change(version(id ?? earlier.length), how),
    version: async (id) => version(id),
    confirm: async () => {
      write(onTrial().text);
      return kept();
    },
    cancel: async () => {
      onTrial();
      return kept();
    },
    schema: async () => ({ type: "object" }),
  };
}
