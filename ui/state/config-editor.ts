/** The configuration file while it is edited: what the file is, what was typed, what the program says of that. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { ConfigFile, Remark } from "#ui/api/config-types.ts";
import { textOf, useAction, useEnvironment, useWords } from "./context.ts";
import { useStore } from "./store.ts";

const PATH = "api/svc/config";
/** Typing has to rest for so long before a text is checked. */
const REST_MS = 400;
/** How long a trial lasts. */
export const TRIAL_SECONDS = 60;

export interface ConfigEditor {
  /** Null until the first answer. */
  readonly file: ConfigFile | null;
  readonly error: string;
  /** What was typed; kept while other pages are looked at. */
  readonly text: string;
  setText(text: string): void;
  reload(): Promise<void>;
  /** In force at once, and written; for a trial only with `confirm`. */
  apply(isTrial: boolean): Promise<boolean>;
  rollback(version: number, isTrial: boolean): Promise<boolean>;
  endTrial(how: "confirm" | "cancel"): Promise<boolean>;
}

export function useConfigEditor(): ConfigEditor {
  const { link, draft } = useEnvironment();
  const words = useWords();
  const { t } = words;
  const act = useAction();
  const [file, setFile] = useState<ConfigFile | null>(null);
  const [error, setError] = useState("");
  const typed = useStore(draft);
  const load = async (): Promise<void> => {
    try {
      setFile(await link.get<ConfigFile>(PATH));
      setError("");
    } catch (fault) {
      setError(textOf(words, fault));
    }
  };
  useEffect(() => void load(), []);
  const present = file?.trial?.text ?? file?.text ?? "";
  const change = (send: () => Promise<void>, done: string): Promise<boolean> =>
    act(
      async () => {
        await send();
        draft.set(null);
        await load();
      },
      t("editor.notApplied"),
      done,
    );
  const query = (isTrial: boolean): string => (isTrial ? `?confirm=${TRIAL_SECONDS}` : "");
  const doneText = (isTrial: boolean): string => (isTrial ? t("editor.onTrial") : t("editor.applied"));
  return {
    file,
    error,
    text: typed ?? present,
    setText: (text) => draft.set(text === present ? null : text),
    async reload() {
      draft.set(null);
      await load();
    },
    apply: (isTrial) =>
      change(
        () => link.send("PUT", `${PATH}${query(isTrial)}`, { text: typed ?? present, hash: file?.hash }),
        doneText(isTrial),
      ),
    rollback: (version, isTrial) =>
      change(
        () => link.send("POST", `${PATH}/rollback${query(isTrial)}`, { version, hash: file?.hash }),
        doneText(isTrial),
      ),
    endTrial: (how) =>
      act(
        async () => {
          await link.send("POST", `${PATH}/${how}`);
          await load();
        },
        t("editor.notEnded"),
        how === "confirm" ? t("editor.applied") : t("editor.takenBack"),
      ),
  };
}

/** What the program says of a text, once typing rests; null: it has not said yet. An answer about an older text is dropped. */
export function useRemarks(text: string): readonly Remark[] | null {
  const { link } = useEnvironment();
  const [remarks, setRemarks] = useState<readonly Remark[] | null>(null);
  const newest = useRef(text);
  newest.current = text;
  useEffect(() => {
    if (text === "") return setRemarks([]);
    const timer = setTimeout(() => {
      link.call<{ remarks: readonly Remark[] }>("POST", `${PATH}/check`, { text }).then(
        (answer) => newest.current === text && setRemarks(answer.remarks),
        () => newest.current === text && setRemarks(null), // the banner says that the Controller is gone
      );
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return remarks;
}
