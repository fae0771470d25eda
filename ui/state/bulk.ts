/** Changes of many users, one after the other: each names the revision that the one before it has made. */
import { useRef, useState } from "preact/hooks";
import type { AdminLink } from "#ui/api/admin.ts";
import type { ManagedInbound, UserDetail } from "#ui/api/admin-types.ts";
import { ApiError } from "#ui/api/request.ts";
import { WordedError } from "#ui/words/words.ts";
import type { BulkStep } from "./bulk-steps.ts";
import { textOf, useEnvironment, useWords } from "./context.ts";

export interface BulkState {
  readonly done: number;
  readonly total: number;
  /** What was refused, as `name: reason`; the first ones. */
  readonly faults: readonly string[];
  readonly made: readonly UserDetail[];
  readonly isRunning: boolean;
}

export interface Bulk {
  /** Null: nothing was asked for yet. */
  readonly state: BulkState | null;
  run(steps: readonly BulkStep[]): Promise<void>;
  /** Ends behind the step that is under way. */
  cancel(): void;
  forget(): void;
}

const MOST_FAULTS = 10;
const MOST_TRIES = 3;

export function useBulk(onEnd: () => Promise<void>): Bulk {
  const { admin } = useEnvironment();
  const words = useWords();
  const [state, setState] = useState<BulkState | null>(null);
  const stop = useRef(false);
  const run: Bulk["run"] = async (steps) => {
    stop.current = false;
    const revisions = new Map<string, number>();
    let now: BulkState = { done: 0, total: steps.length, faults: [], made: [], isRunning: true };
    setState(now);
    for (const step of steps) {
      if (stop.current) break;
      try {
        const made = await sendStep(admin, step, revisions);
        if (made !== null && step.method === "POST") now = { ...now, made: [...now.made, made] };
      } catch (error) {
        const fault = `${step.name}: ${textOf(words, error)}`;
        if (now.faults.length < MOST_FAULTS) now = { ...now, faults: [...now.faults, fault] };
      }
      now = { ...now, done: now.done + 1 };
      setState(now);
    }
    setState({ ...now, isRunning: false });
    await onEnd();
  };
  return { state, run, cancel: () => (stop.current = true), forget: () => setState(null) };
}

/** Another person's change comes between: then it is sent once more on the new revision. */
async function sendStep(
  admin: AdminLink,
  step: BulkStep,
  revisions: Map<string, number>,
): Promise<UserDetail | null> {
  for (let tries = 1; ; tries++) {
    const revision = revisions.get(step.listener) ?? (await revisionOf(admin, step.listener));
    try {
      const answer = await sendAt(admin, step, revision);
      if (answer === null) revisions.delete(step.listener);
      else revisions.set(step.listener, answer.revision);
      return answer;
    } catch (error) {
      revisions.delete(step.listener);
      if (!(error instanceof ApiError) || error.status !== 409 || tries === MOST_TRIES) throw error;
    }
  }
}

function sendAt(
  admin: AdminLink,
  { method, path, body = {} }: BulkStep,
  revision: number,
): Promise<UserDetail | null> {
  if (method === "DELETE") return admin.call<null>(method, `${path}?revision=${revision}`);
  return admin.call<UserDetail>(method, path, { ...body, revision });
}

async function revisionOf(admin: AdminLink, listener: string): Promise<number> {
  const { inbounds } = await admin.call<{ inbounds: readonly ManagedInbound[] }>("GET", "inbounds");
  const found = inbounds.find(({ tag }) => tag === listener);
  if (found === undefined) throw new WordedError((t) => t("users.noListener"));
  return found.revision;
}
