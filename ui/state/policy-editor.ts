/** Changes to the policies: each is sent with the revision it was made on, and merged where that is no longer the present one. */
import type { Envelope, GovernanceDocument } from "#ui/api/governance-types.ts";
import { useConflicts, type Conflicts } from "./conflicts.ts";
import { useEnvironment, useWords } from "./context.ts";
import { fromMap, toMap } from "./policy-document.ts";

const POLICIES = "api/svc/traffic-control/policies";

export interface PolicyEditor extends Pick<Conflicts, "conflict" | "decide"> {
  /** The document to start from. */
  open(): Promise<Envelope>;
  /** False: it waits for a decision. Throws what the Controller says. */
  save(base: Envelope, document: GovernanceDocument): Promise<boolean>;
}

/** `persist`: the configuration file is changed as well. */
export function usePolicyEditor(persist: boolean, onSaved: () => Promise<void>): PolicyEditor {
  const { link, notices } = useEnvironment();
  const { t } = useWords();
  const { conflict, decide, attempt } = useConflicts();
  const path = persist ? `${POLICIES}?persist=true` : POLICIES;
  const open = (): Promise<Envelope> => link.get<Envelope>(POLICIES);
  const save = async (base: Envelope, config: GovernanceDocument): Promise<boolean> => {
    const done = await attempt(
      () => link.send("PUT", path, { revision: base.revision, config }),
      async () => {
        const theirs = await open();
        const [before, mine] = [toMap(base.config), toMap(config)];
        return {
          conflict: { what: (say) => say("policies.what"), before, mine, theirs: toMap(theirs.config) },
          again: (merged) => save(theirs, fromMap(merged)),
        };
      },
    );
    if (done === null) return false;
    notices.say("done", t(persist ? "policies.kept" : "policies.untilReload"));
    await onSaved();
    return true;
  };
  return { conflict, open, save, decide };
}
