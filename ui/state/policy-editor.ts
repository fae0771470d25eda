/** Changes to the policies: each goes out with the revision it was made on; who was too late merges. */
import { useState } from "preact/hooks";
import type { Envelope, GovernanceDocument } from "#ui/api/governance-types.ts";
import { ApiError } from "#ui/api/request.ts";
import type { Conflict } from "#ui/parts/merge-dialog.tsx";
import { useEnvironment } from "./context.ts";
import type { Json } from "./merge.ts";
import { fromMap, toMap } from "./policies.ts";

export const POLICIES = "api/svc/traffic-control/policies";

export interface PolicyEditor {
  /** Not null while somebody has to decide. */
  readonly conflict: Conflict | null;
  /** The document to start from. */
  open(): Promise<Envelope>;
  /** False: it waits for a decision. Throws what the Controller says. */
  save(base: Envelope, document: GovernanceDocument): Promise<boolean>;
  decide(merged: Json | null): Promise<void>;
}

interface Waiting {
  readonly conflict: Conflict;
  readonly theirs: Envelope;
}

/** `persist`: the configuration file is changed as well. */
export function usePolicyEditor(persist: boolean, onSaved: () => Promise<void>): PolicyEditor {
  const { link, notices } = useEnvironment();
  const [waiting, setWaiting] = useState<Waiting | null>(null);
  const path = persist ? `${POLICIES}?persist=true` : POLICIES;
  const open = (): Promise<Envelope> => link.get<Envelope>(POLICIES);
  const save = async (base: Envelope, config: GovernanceDocument): Promise<boolean> => {
    try {
      await link.send("PUT", path, { revision: base.revision, config });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      const theirs = await open();
      const [before, mine] = [toMap(base.config), toMap(config)];
      const conflict = { what: "the policies", before, mine, theirs: toMap(theirs.config) };
      setWaiting({ conflict, theirs });
      return false;
    }
    notices.say("done", persist ? "In force, and written into the file" : "In force until the next reload");
    await onSaved();
    return true;
  };
  const decide = async (merged: Json | null): Promise<void> => {
    const { theirs } = waiting as Waiting;
    setWaiting(null);
    if (merged !== null) await save(theirs, fromMap(merged));
  };
  return { conflict: waiting?.conflict ?? null, open, save, decide };
}
