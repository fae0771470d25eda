import { useState } from "preact/hooks";
import type { ManagedUser } from "#ui/api/admin-types.ts";
import { CopyButton } from "#ui/parts/copy.tsx";
import { Confirm, Dialog } from "#ui/parts/dialog.tsx";
import { Input } from "#ui/parts/inputs.tsx";
import { Button, Fault } from "#ui/parts/small.tsx";
import type { Bulk } from "#ui/state/bulk.ts";
import { BULK_ACTIONS, stepOf, type BulkAction, type BulkWith } from "#ui/state/bulk-steps.ts";
import { useWords } from "#ui/state/context.ts";

const LABELS = {
  enable: "user.enable",
  disable: "user.disable",
  extend: "bulk.extend",
  label: "bulk.label",
  unlabel: "bulk.unlabel",
  reset: "user.resetCounters",
  delete: "common.delete",
} as const;
const USUAL_DAYS = "30";
/** Those that a dialog stands before. */
const ASKING: ReadonlySet<BulkAction> = new Set(["delete", "extend", "label", "unlabel"]);

interface BarProps {
  readonly chosen: readonly ManagedUser[];
  readonly bulk: Bulk;
  readonly onNone: () => void;
}

/** What can be done with all users that are chosen. */
export function BulkBar({ chosen, bulk, onNone }: BarProps) {
  const { t } = useWords();
  const [asked, setAsked] = useState<BulkAction | null>(null);
  const run = (action: BulkAction, more: BulkWith = {}): void => {
    setAsked(null);
    const nowMs = Date.now();
    void bulk.run(chosen.map((user) => stepOf(user, action, { nowMs, ...more })));
  };
  if (chosen.length === 0) return null;
  return (
    <div class="actions bulk" role="group" aria-label={t("bulk.chosen", { count: chosen.length })}>
      <span class="status">{t("bulk.chosen", { count: chosen.length })}</span>
      {BULK_ACTIONS.map((action) => (
        <Button
          key={action}
          label={t(LABELS[action])}
          name={t("bulk.forChosen", { action: t(LABELS[action]) })}
          kind={action === "delete" ? "danger" : "plain"}
          onPress={() => (ASKING.has(action) ? setAsked(action) : run(action))}
        />
      ))}
      <Button label={t("bulk.none")} onPress={onNone} />
      {asked === "delete" && (
        <Confirm
          title={t("bulk.deleteAsk", { count: chosen.length })}
          text={t("users.deleteText")}
          action={t("common.delete")}
          onAnswer={(yes) => (yes ? run("delete") : setAsked(null))}
        />
      )}
      {asked === "extend" && (
        <ExtendDialog onDays={(days) => run("extend", { days })} onClose={() => setAsked(null)} />
      )}
      {(asked === "label" || asked === "unlabel") && (
        <LabelDialog
          title={t(LABELS[asked])}
          onLabel={(label) => run(asked, { label })}
          onClose={() => setAsked(null)}
        />
      )}
    </div>
  );
}

function ExtendDialog({
  onDays,
  onClose,
}: {
  readonly onDays: (days: number) => void;
  readonly onClose: () => void;
}) {
  const { t } = useWords();
  const [days, setDays] = useState(USUAL_DAYS);
  const submit = (event: Event): void => {
    event.preventDefault();
    onDays(Number(days));
  };
  return (
    <Dialog title={t("bulk.extend")} onClose={onClose}>
      <form class="fields" onSubmit={submit}>
        <Input label={t("bulk.days")} type="number" value={days} onInput={setDays} required />
        <p class="note">{t("bulk.extendText")}</p>
        <div class="actions wide">
          <Button label={t("common.cancel")} onPress={onClose} />
          <Button label={t("bulk.extend")} kind="main" />
        </div>
      </form>
    </Dialog>
  );
}

function LabelDialog({
  title,
  onLabel,
  onClose,
}: {
  readonly title: string;
  readonly onLabel: (label: string) => void;
  readonly onClose: () => void;
}) {
  const { t } = useWords();
  const [label, setLabel] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (label.trim() !== "") onLabel(label.trim());
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="fields" onSubmit={submit}>
        <Input label={t("user.label")} value={label} onInput={setLabel} required />
        <div class="actions wide">
          <Button label={t("common.cancel")} onPress={onClose} />
          <Button label={title} kind="main" />
        </div>
      </form>
    </Dialog>
  );
}

/** How far many changes have come, what was refused, and the links of new users. */
export function BulkProgress({ bulk }: { readonly bulk: Bulk }) {
  const { t } = useWords();
  const { state } = bulk;
  if (state === null) return null;
  const { done, total, faults, made, isRunning } = state;
  const links = made.flatMap(({ name, subscription_url: url }) =>
    url === undefined ? [] : [`${name} ${url}`],
  );
  return (
    <Dialog title={t("bulk.title")} onClose={() => (isRunning ? bulk.cancel() : bulk.forget())}>
      <p role="status">{t("bulk.progress", { done, count: total })}</p>
      <progress class="wide" value={done} max={total} aria-label={t("bulk.title")} />
      {faults.map((text) => (
        <Fault key={text} text={text} />
      ))}
      {!isRunning && links.length > 0 && (
        <>
          <pre class="links" tabIndex={0} dir="ltr" aria-label={t("bulk.links")}>
            {links.join("\n")}
          </pre>
          <CopyButton text={links.join("\n")} label={t("bulk.copyLinks")} done={t("user.linkCopied")} />
        </>
      )}
      <div class="actions">
        {isRunning ? (
          <Button label={t("common.cancel")} onPress={bulk.cancel} />
        ) : (
          <Button label={t("setup.done")} kind="main" onPress={bulk.forget} />
        )}
      </div>
    </Dialog>
  );
}
