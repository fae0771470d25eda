import { useEffect, useState } from "preact/hooks";
import type { Remark } from "#ui/api/config-types.ts";
import { CodeArea, type Jump } from "#ui/editor/code-area.tsx";
import type { Schema } from "#ui/editor/hints.ts";
import { Rich } from "#ui/parts/rich.tsx";
import { Button, Fault, Page } from "#ui/parts/small.tsx";
import { useResource, useWords } from "#ui/state/context.ts";
import { useConfigEditor, useRemarks } from "#ui/state/config-editor.ts";
import { ApplyDialog, type Proposal } from "./editor-apply.tsx";
import { RemarkList } from "./editor-remarks.tsx";
import { TrialBanner } from "./editor-trial.tsx";
import { Versions } from "./editor-versions.tsx";

const NONE: readonly Remark[] = [];

export function EditorPage() {
  const { t } = useWords();
  const editor = useConfigEditor();
  const schema = useResource<Schema>("api/svc/config/schema");
  const { file, text, error } = editor;
  const remarks = useRemarks(text);
  const [jump, setJump] = useState<Jump | null>(null);
  const [about, setAbout] = useState<{ readonly key: string; readonly schema: Schema | null } | null>(null);
  const [proposal, setProposal] = useState<Proposal | null>(null);
  const present = file?.text ?? "";
  const isChanged = file !== null && text !== (file.trial?.text ?? present);
  useLeaveQuestion(isChanged);
  const hasErrors = (remarks ?? NONE).some(({ severity }) => severity === "error");
  return (
    <Page
      title={t("page.editor")}
      tools={
        <>
          <Button label={t("editor.discard")} disabled={!isChanged} onPress={editor.reload} />
          <Button
            label={t("editor.review")}
            kind="main"
            disabled={!isChanged || hasErrors || file.trial !== null}
            onPress={() => setProposal({ kind: "text", before: present, after: text })}
          />
        </>
      }
    >
      <Fault text={error} />
      {file?.trial !== null && file !== null && (
        <TrialBanner
          secondsLeft={file.trial.seconds_left}
          onEnd={editor.endTrial}
          onOver={editor.reload}
          key={file.trial.seconds_left}
        />
      )}
      {file !== null && (
        <>
          <p class="status break">
            {file.file}
            {isChanged && ` · ${t("editor.changed")}`}
          </p>
          <CodeArea
            label={t("editor.text")}
            text={text}
            onText={editor.setText}
            remarks={remarks ?? NONE}
            schema={schema.value}
            jump={jump}
            onAbout={(key, found) => setAbout({ key, schema: found })}
          />
          <About about={about} />
          <RemarkList remarks={remarks} onJump={({ line, column }) => setJump({ line, column })} />
          <Versions file={file} onShow={setProposal} />
        </>
      )}
      {proposal !== null && (
        <ApplyDialog proposal={proposal} editor={editor} onClose={() => setProposal(null)} />
      )}
    </Page>
  );
}

/** What the key means that the caret is on. */
function About({ about }: { about: { readonly key: string; readonly schema: Schema | null } | null }) {
  const { t } = useWords();
  if (about === null || about.schema === null)
    return (
      <p class="about note">
        <Rich text={t("editor.keys")} />
      </p>
    );
  const { description = "", default: usual } = about.schema;
  return (
    <p class="about note" dir="ltr" lang="en" role="status">
      <code>{about.key}</code> <Rich text={description} />{" "}
      {usual !== undefined && <code>{`${JSON.stringify(usual)}`}</code>}
    </p>
  );
}

/** The browser asks before a page with unsaved changes is closed. */
function useLeaveQuestion(isChanged: boolean): void {
  useEffect(() => {
    if (!isChanged) return;
    const ask = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isChanged]);
}
