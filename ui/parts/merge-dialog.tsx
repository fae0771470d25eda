/** Another user's change came first: what it was, and how to continue. */
import { useMemo, useState } from "preact/hooks";
import type { Conflict } from "#ui/state/conflicts.ts";
import { textOf, useWords } from "#ui/state/context.ts";
import { merge, type Difference, type Json } from "#ui/state/merge.ts";
import type { PlainKey, Words } from "#ui/words/words.ts";
import { Dialog } from "./dialog.tsx";
import { Button, Fault } from "./small.tsx";

type Names = Readonly<Record<string, PlainKey>>;

interface Props {
  readonly conflict: Conflict;
  /** Names of keys for people; what is missing shows as it is. */
  readonly names?: Names;
  /** Null: given up; nothing was saved. What it throws is shown, and can be tried again. */
  readonly onDone: (merged: Json | null) => Promise<void>;
}

export function MergeDialog({ conflict, names = {}, onDone }: Props) {
  const words = useWords();
  const { t } = words;
  const { what, before, mine, theirs } = conflict;
  const { taken, conflicts, resolve } = useMemo(() => merge(before, mine, theirs), [conflict]);
  const [chosen, setChosen] = useState<ReadonlySet<Difference>>(new Set());
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const save = async (): Promise<void> => {
    setBusy(true);
    setError("");
    await onDone(resolve(chosen)).catch((fault: unknown) => setError(textOf(words, fault)));
    setBusy(false);
  };
  const giveUp = (): void => void onDone(null);
  return (
    <Dialog title={t("merge.title")} onClose={giveUp}>
      <p>
        {t("merge.text", { what: what(t) })} {taken.length + conflicts.length === 0 && t("merge.same")}
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
        <Button label={t("merge.giveUp")} onPress={giveUp} />
        <Button label={t("merge.save")} kind="main" busy={busy} onPress={save} />
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
  const words = useWords();
  return (
    <section>
      <h3>{words.t("merge.theirs")}</h3>
      <ul class="lines">
        {differences.map((difference) => (
          <li key={keyOf(difference)} class="line break">
            <span>
              {nameOf(words, difference, names)}: {shown(words, difference.before)} →{" "}
              {shown(words, difference.theirs)}
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
  const words = useWords();
  const { t } = words;
  return (
    <fieldset class="choice">
      <legend>
        {t("merge.was", { name: nameOf(words, difference, names), value: shown(words, difference.before) })}
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
            {theirs
              ? t("merge.theirValue", { value: shown(words, difference.theirs) })
              : t("merge.yourValue", { value: shown(words, difference.mine) })}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

const keyOf = ({ path }: Difference): string => path.join("/");

function nameOf({ t }: Words, { path }: Difference, names: Names): string {
  const texts = path.map((key) => {
    const name = names[key];
    return name === undefined ? key : t(name);
  });
  return texts.join(" › ") || t("merge.all");
}

function shown({ t }: Words, value: Json | undefined): string {
  if (value === undefined || value === "") return t("merge.nothing");
  return typeof value === "string" ? value : JSON.stringify(value);
}
