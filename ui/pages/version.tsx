/** The version that runs, and the one that the release folder has. */
import { useState } from "preact/hooks";
import type { Offered, UpdateView } from "#ui/api/update-types.ts";
import { Confirm } from "#ui/parts/dialog.tsx";
import { Facts } from "#ui/parts/facts.tsx";
import { Rich } from "#ui/parts/rich.tsx";
import { Button, Fault, Panel } from "#ui/parts/small.tsx";
import { textOf, useAction, useEnvironment, useResource, useWords } from "#ui/state/context.ts";
import type { Words } from "#ui/words/words.ts";

/** A slow line takes so long for an archive. */
const UPDATE_MS = 3_600_000;
/** The notice is read by then; the pages are the new version's. */
const RELOAD_MS = 1_500;

export function Version() {
  const { t } = useWords();
  const { value, error } = useResource<UpdateView>("api/svc/update");
  return (
    <Panel title={t("update.title")}>
      <Fault text={error} />
      {value !== null && <Facts rows={[[t("update.running"), value.version]]} />}
      {value?.configured === false && (
        <p class="note">
          <Rich text={t("update.off")} />
        </p>
      )}
      {value?.configured === true && <Newer byController={value.by_controller} />}
    </Panel>
  );
}

function Newer({ byController }: { readonly byController: boolean }) {
  const { link } = useEnvironment();
  const words = useWords();
  const { t } = words;
  const [offered, setOffered] = useState<Offered | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const check = async (): Promise<void> => {
    setBusy(true);
    setError("");
    setOffered(null);
    await link
      .call<Offered>("POST", "api/svc/update/check")
      .then(setOffered, (fault: unknown) => setError(textOf(words, fault)));
    setBusy(false);
  };
  return (
    <>
      <div class="actions">
        <Button label={t("update.check")} busy={busy} onPress={check} />
        {offered?.age === "newer" && byController && <Take version={offered.version} />}
      </div>
      <div aria-live="polite">
        <Fault text={error} />
        {offered !== null && <p>{said(t, offered)}</p>}
        {offered?.age === "newer" && !byController && (
          <p class="note">
            <Rich text={t("update.byHand")} />
          </p>
        )}
      </div>
    </>
  );
}

function said(t: Words["t"], { version, age }: Offered): string {
  if (age === "newer") return t("update.newer", { version });
  if (age === "same") return t("update.same");
  return age === "older" ? t("update.older", { version }) : t("update.unknown", { version });
}

function Take({ version }: { readonly version: string }) {
  const { link, notices } = useEnvironment();
  const act = useAction();
  const { t } = useWords();
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const take = async (): Promise<void> => {
    setBusy(true);
    notices.say("done", t("update.busy"));
    const isDone = await act(
      () => link.send("POST", "upgrade", undefined, UPDATE_MS),
      t("update.failed"),
      t("update.done", { version }),
    );
    setBusy(false);
    if (isDone) setTimeout(() => location.reload(), RELOAD_MS);
  };
  return (
    <>
      <Button label={t("update.take", { version })} kind="main" busy={busy} onPress={() => setAsking(true)} />
      {asking && (
        <Confirm
          title={t("update.ask")}
          text={t("update.text", { version })}
          action={t("update.take", { version })}
          onAnswer={(yes) => {
            setAsking(false);
            if (yes) void take();
          }}
        />
      )}
    </>
  );
}
