/** Asks for a secret; it goes to the caller and stays nowhere. */
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { CodeAsked } from "#ui/api/session.ts";
import { useWords } from "#ui/state/context.ts";
import { Button } from "./small.tsx";

interface Props {
  readonly title: string;
  readonly label: string;
  /** Under which password managers keep it: the page has two secrets. */
  readonly account?: string;
  /** The secret that was given last is wrong. */
  readonly refused: boolean;
  /** Answers with what is asked for besides the secret. Never rejects: the caller shows what went wrong. */
  readonly onSecret: (secret: string, code: string) => Promise<CodeAsked | null>;
  readonly level?: "h1" | "h2";
  readonly children: ComponentChildren;
}

export function SecretForm({
  title,
  label,
  account = "weir",
  refused,
  onSecret,
  level = "h1",
  children,
}: Props) {
  const { t } = useWords();
  const [secret, setSecret] = useState("");
  const [code, setCode] = useState("");
  const [asked, setAsked] = useState<CodeAsked | null>(null);
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const errorId = useId();
  const codeField = useRef<HTMLInputElement>(null);
  // Before it is painted: what is typed as soon as a field can be seen goes into that field.
  useLayoutEffect(() => field.current?.focus(), []);
  useLayoutEffect(() => {
    if (asked !== null) codeField.current?.focus();
  }, [asked]);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setAsked(await onSecret(secret, code));
    setCode("");
    setBusy(false);
  };
  const Title = level;
  return (
    <form class="gate" onSubmit={(event) => void submit(event)}>
      <Title>{title}</Title>
      {children}
      <input
        class="account"
        type="text"
        name="username"
        value={account}
        autocomplete="username"
        readOnly
        tabIndex={-1}
        aria-hidden="true"
      />
      <label class="field">
        <span>{label}</span>
        <input
          ref={field}
          type="password"
          value={secret}
          name="password"
          autocomplete="current-password"
          required
          aria-invalid={refused}
          aria-describedby={errorId}
          onInput={(event) => setSecret(event.currentTarget.value)}
        />
      </label>
      {asked !== null && (
        <label class="field">
          <span>{t("gate.code")}</span>
          <input
            ref={codeField}
            type="text"
            value={code}
            name="code"
            autocomplete="one-time-code"
            inputMode="numeric"
            dir="ltr"
            required
            aria-invalid={asked !== "needed"}
            aria-describedby={errorId}
            onInput={(event) => setCode(event.currentTarget.value)}
          />
        </label>
      )}
      <p id={errorId} class="error" role="alert">
        {refused && asked === null ? t("gate.wrong") : ""}
        {asked === "wrong" ? t("gate.codeWrong") : ""}
        {asked === "later" ? t("gate.codeLater") : ""}
      </p>
      <Button label={t("gate.open")} kind="main" busy={busy} />
    </form>
  );
}
