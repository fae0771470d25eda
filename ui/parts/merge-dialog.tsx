/** Somebody else was faster: what they changed, and what is to become of it. */
import { useMemo, useState } from "preact/hooks";
import { merge, type Difference, type Json } from "#ui/state/merge.ts";
import { Dialog } from "./dialog.tsx";
import { Button } from "./small.tsx";

export interface Conflict {
  /** What was edited: `alice`, `the policies`. */
  readonly what: string;
  readonly before: Json;
  readonly mine: Json;
  readonly theirs: Json;
}

interface Props {
  readonly conflict: Conflict;
  /** Names of keys for people; what is missing shows as it is. */
  readonly names?: Readonly<Record<string, string>>;
  /** Null: given up; nothing was saved. */
  readonly onDone: (merged: Json | null) => unknown;
}

export function MergeDialog({ conflict, names = {}, onDone }: Props) {
  const { what, before, mine, theirs } = conflict;
  const merged = useMemo(() => merge(before, mine, theirs), [conflict]);
  const [chosen, setChosen] = useState<ReadonlySet<Difference>>(new Set());
  const pick = (difference: Difference, isTheirs: boolean): void => {
    const next = new Set(chosen);
    if (isTheirs) next.add(difference);
    else next.delete(difference);
    setChosen(next);
  };
  const { taken, conflicts } = merged;
  return (
    <Dialog title="Changed meanwhile" onClose={() => onDone(null)}>
      <p>
        Somebody else saved a change while you were editing {what}. Nothing of yours has been saved yet.
        {taken.length + conflicts.length === 0 && " What you edit is as it was; something beside it changed."}
      </p>
      {taken.length > 0 && (
        <section>
          <h3>Their changes, kept beside yours</h3>
          <ul class="lines">
            {taken.map((difference) => (
              <li key={difference.path.join("/")} class="line break">
                <span>
                  {nameOf(difference, names)}: {shown(difference.before)} → {shown(difference.theirs)}
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {conflicts.map((difference) => (
        <fieldset key={difference.path.join("/")} class="choice">
          <legend>
            {nameOf(difference, names)} was {shown(difference.before)}
          </legend>
          {[false, true].map((isTheirs) => (
            <label key={String(isTheirs)}>
              <input
                type="radio"
                name={difference.path.join("/")}
                checked={chosen.has(difference) === isTheirs}
                onChange={() => pick(difference, isTheirs)}
              />
              <span class="break">
                {isTheirs ? "Theirs" : "Yours"}: {shown(isTheirs ? difference.theirs : difference.mine)}
              </span>
            </label>
          ))}
        </fieldset>
      ))}
      <div class="actions">
        <Button label="Give up" onPress={() => onDone(null)} />
        <Button label="Save merged" kind="main" onPress={() => onDone(merged.resolve(chosen))} />
      </div>
    </Dialog>
  );
}

function nameOf({ path }: Difference, names: Readonly<Record<string, string>>): string {
  return path.map((key) => names[key] ?? key).join(" › ") || "All of it";
}

function shown(value: Json | undefined): string {
  if (value === undefined || value === "") return "nothing";
  return typeof value === "string" ? value : JSON.stringify(value);
}
