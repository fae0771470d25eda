/** Another user's change came first: what it was, and how to continue. */
import { useMemo, useState } from "preact/hooks";
import type { Conflict } from "#ui/state/conflicts.ts";
import { textOf } from "#ui/state/context.ts";
import { merge, type Difference, type Json } from "#ui/state/merge.ts";
import { Dialog } from "./dialog.tsx";
import { Button, Fault } from "./small.tsx";

type Names = Readonly<Record<string, string>>;

interface Props {
  readonly conflict: Conflict;
  /** Names of keys for people; what is missing shows as it is. */
  readonly names?: Names;
  /** Null: given up; nothing was saved. What it throws is shown, and can be tried again. */
  readonly onDone: (merged: Json | null) => Promise<void>;
}

export function MergeDialog({ conflict, names = {}, onDone }: Props) {
  const { what, before, mine, theirs } = conflict;
  const { taken, conflicts, resolve } = useMemo(() => merge(before, mine, theirs), [conflict]);
  const [chosen, setChosen] = useState<ReadonlySet<Difference>>(new Set());
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const save = async (): Promise<void> => {
    setBusy(true);
    setError("");
    await onDone(resolve(chosen)).catch((fault: unknown) => setError(textOf(fault)));
    setBusy(false);
  };
  const giveUp = (): void => void onDone(null);
  return (
    <Dialog title="Changed meanwhile" onClose={giveUp}>
      <p>
        Somebody else saved a change while you were editing {what}. Nothing of yours has been saved yet.
        {taken.length + conflicts.length === 0 && " What you edit is as it was; something beside it changed."}
      </p>
      {taken.length > 0 && <Taken differences={taken} names={names} />}
      {conflicts.map((difference) => (
        <Choice
          key={keyOf(difference)}
          difference={difference}
          names={names}
          isTheirs={chosen.has(difference)}
          onPick={(isTheirs) => setChosen((before) => withOne(before, difference, isTheirs))}
        />
      ))}
      <Fault text={error} />
      <div class="actions">
        <Button label="Give up" onPress={giveUp} />
        <Button label="Save merged" kind="main" busy={busy} onPress={save} />
      </div>
    </Dialog>
  );
}

function withOne<T>(set: ReadonlySet<T>, item: T, isIn: boolean): ReadonlySet<T> {
  const next = new Set(set);
  if (isIn) next.add(item);
  else next.delete(item);
  return next;
}

function Taken({
  differences,
  names,
}: {
  readonly differences: readonly Difference[];
  readonly names: Names;
}) {
  return (
    <section>
      <h3>Their changes, kept beside yours</h3>
      <ul class="lines">
        {differences.map((difference) => (
          <li key={keyOf(difference)} class="line break">
            <span>
              {nameOf(difference, names)}: {shown(difference.before)} → {shown(difference.theirs)}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface ChoiceProps {
  readonly difference: Difference;
  readonly names: Names;
  readonly isTheirs: boolean;
  readonly onPick: (isTheirs: boolean) => void;
}

/** What both changed: one of the two. */
function Choice({ difference, names, isTheirs, onPick }: ChoiceProps) {
  return (
    <fieldset class="choice">
      <legend>
        {nameOf(difference, names)} was {shown(difference.before)}
      </legend>
      {[false, true].map((theirs) => (
        <label key={String(theirs)}>
          <input
            type="radio"
            name={keyOf(difference)}
            checked={isTheirs === theirs}
            onChange={() => onPick(theirs)}
          />
          <span class="break">
            {theirs ? "Theirs" : "Yours"}: {shown(theirs ? difference.theirs : difference.mine)}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

const keyOf = ({ path }: Difference): string => path.join("/");

function nameOf({ path }: Difference, names: Names): string {
  return path.map((key) => names[key] ?? key).join(" › ") || "All of it";
}

function shown(value: Json | undefined): string {
  if (value === undefined || value === "") return "nothing";
  return typeof value === "string" ? value : JSON.stringify(value);
}
