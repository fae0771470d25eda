/** A backup chosen in the browser: looked at, shown with what would be lost, and put in force by a restart. */
import { useId, useState } from "preact/hooks";
import type { BackupView } from "#ui/api/restore-types.ts";
import { Dialog } from "#ui/parts/dialog.tsx";
import { Switch } from "#ui/parts/inputs.tsx";
import { Button, Fault } from "#ui/parts/small.tsx";
import { textOf, useEnvironment, useWords } from "#ui/state/context.ts";
import { RestoreFacts } from "./restore-facts.tsx";

interface Chosen {
  readonly file: File;
  /** A passphrase, or an identity of age; "" is none. */
  readonly key: string;
  readonly view: BackupView;
}

export function RestoreDialog({ onClose }: { readonly onClose: () => void }) {
  const { t } = useWords();
  const [chosen, choose] = useState<Chosen | null>(null);
  return (
    <Dialog title={t("restore.title")} onClose={onClose}>
      {chosen === null ? (
        <Choose onChosen={choose} onClose={onClose} />
      ) : (
        <PutInForce chosen={chosen} onBack={() => choose(null)} onClose={onClose} />
      )}
    </Dialog>
  );
}

/** One thing at a time that may fail, and why it has. */
function useTry() {
  const words = useWords();
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const run = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setError("");
    await work().catch((fault: unknown) => setError(textOf(words, fault)));
    setBusy(false);
  };
  return { error, busy, run };
}

function Choose({
  onChosen,
  onClose,
}: {
  readonly onChosen: (chosen: Chosen) => void;
  readonly onClose: () => void;
}) {
  const { link } = useEnvironment();
  const { t } = useWords();
  const [file, setFile] = useState<File | null>(null);
  const [key, setKey] = useState("");
  const { error, busy, run } = useTry();
  const hintId = useId();
  const look = (): Promise<void> =>
    run(async () => {
      if (file === null) return;
      const view = await link.sendBackup<BackupView>("api/svc/restore/check", file, key);
      onChosen({ file, key, view });
    });
  return (
    <form
      class="fields"
      onSubmit={(event) => {
        event.preventDefault();
        void look();
      }}
    >
      <label class="field wide">
        <span>{t("restore.file")}</span>
        <input type="file" required onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} />
      </label>
      <label class="field wide">
        <span>{t("restore.key")}</span>
        <input
          type="password"
          value={key}
          autocomplete="off"
          aria-describedby={hintId}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
      </label>
      <p id={hintId} class="note wide">
        {t("restore.keyHint")}
      </p>
      <div class="wide">
        <Fault text={error} />
      </div>
      <div class="actions wide">
        <Button label={t("common.cancel")} onPress={onClose} />
        <Button label={t("restore.look")} kind="main" busy={busy} />
      </div>
    </form>
  );
}

interface PutProps {
  readonly chosen: Chosen;
  readonly onBack: () => void;
  readonly onClose: () => void;
}

function PutInForce({ chosen: { file, key, view }, onBack, onClose }: PutProps) {
  const { link, notices } = useEnvironment();
  const { t } = useWords();
  const [isSure, setSure] = useState(false);
  const { error, busy, run } = useTry();
  const put = (): Promise<void> =>
    run(async () => {
      await link.sendBackup("api/svc/restore", file, key, view.sum);
      notices.say("done", t("restore.restarting"));
      onClose();
      setTimeout(() => void link.probe(), 1000); // sessions end with the restart: the page asks for the secret
    });
  return (
    <>
      <RestoreFacts view={view} />
      <div class="setting">
        <Switch label={t("restore.sure")} on={isSure} onChange={setSure} />
      </div>
      <Fault text={error} />
      <div class="actions">
        <Button label={t("restore.other")} onPress={onBack} />
        <Button label={t("restore.put")} kind="danger" busy={busy} disabled={!isSure} onPress={put} />
      </div>
    </>
  );
}
